//! The files of the page, which are part of the program.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A file of the page.
pub(crate) struct PageFile {
    pub(crate) content_type: &'static str,
    pub(crate) content: &'static str,
}

impl PageFile {
    /// Changes with the content.
    pub(crate) fn etag(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.content.hash(&mut hasher);
        format!("\"{:016x}\"", hasher.finish())
    }
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($path:literal, $content_type:expr, $file:literal;)+) => {
        /// The file at a path of the server.
        pub(crate) fn find(path: &str) -> Option<PageFile> {
            match path {
                $($path => Some(PageFile { content_type: $content_type, content: include_str!(concat!("../page/", $file)) }),)+
                // The id of a session in the address; the page reads it.
                _ if path.strip_prefix("/s/").is_some_and(|id| !id.contains('/')) => find("/"),
                _ => None,
            }
        }

        #[cfg(test)]
        const PATHS: &[&str] = &[$($path),+];
    };
}

files! {
    "/", "text/html; charset=utf-8", "index.html";
    "/page.css", "text/css; charset=utf-8", "page.css";
    "/main.js", SCRIPT, "main.js";
    "/server.js", SCRIPT, "server.js";
    "/dom.js", SCRIPT, "dom.js";
    "/markdown.js", SCRIPT, "markdown.js";
    "/transcript.js", SCRIPT, "transcript.js";
    "/thinking.js", SCRIPT, "thinking.js";
    "/tools.js", SCRIPT, "tools.js";
    "/question.js", SCRIPT, "question.js";
    "/composer.js", SCRIPT, "composer.js";
    "/sidebar.js", SCRIPT, "sidebar.js";
    "/manifest.webmanifest", "application/manifest+json", "manifest.webmanifest";
    "/icon.svg", "image/svg+xml", "icon.svg";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w4_no_file_of_the_page_makes_html_of_text_or_loads_anything_from_elsewhere() {
        let forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "style=\"",
            "onclick=",
        ];
        for path in PATHS {
            let file = find(path).unwrap();
            for word in forbidden {
                assert!(!file.content.contains(word), "{path} contains {word}");
            }
            let addresses = file.content.matches("://").count();
            let known = file.content.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(addresses, known, "{path} names another server");
        }
        assert!(find("/s/k3f9").is_some());
        assert!(find("/s/k3f9/x").is_none());
        assert!(find("/../Cargo.toml").is_none());
    }
}
