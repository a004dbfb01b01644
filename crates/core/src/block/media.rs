//! Images and documents.

/// An image or a document in a message or tool result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// Such as `image/png`. Empty if unknown.
    pub media_type: String,
    /// Where its content is.
    pub source: MediaSource,
    /// The file name or title of a document.
    pub name: Option<String>,
}

/// The kinds of media that most providers read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A PDF, a text or another file.
    Document,
}

/// Where the content of an image or a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource {
    /// Base64, as it goes over the wire.
    Data(String),
    /// The provider fetches it.
    Url(String),
    /// The provider has it already, under this id.
    FileId(String),
}

/// How many bytes this Base64 holds.
pub fn base64_size(data: &str) -> usize {
    let letters = data.trim_end_matches('=').len();
    letters / 4 * 3 + letters % 4 * 3 / 4
}

impl Media {
    /// A picture in Base64.
    pub fn image(media_type: String, data: String) -> Media {
        Media { kind: MediaKind::Image, media_type, source: MediaSource::Data(data), name: None }
    }

    /// A document in Base64.
    pub fn document(media_type: String, data: String, name: Option<String>) -> Media {
        Media { kind: MediaKind::Document, media_type, source: MediaSource::Data(data), name }
    }

    /// The content in Base64. None if it is elsewhere.
    pub fn data(&self) -> Option<&str> {
        match &self.source {
            MediaSource::Data(data) => Some(data),
            MediaSource::Url(_) | MediaSource::FileId(_) => None,
        }
    }

    /// A short description for people: `[image, 24 KB, image/png]`.
    pub fn describe(&self) -> String {
        let kind = match self.kind {
            MediaKind::Image => "image",
            MediaKind::Document => "document",
        };
        let place = match &self.source {
            MediaSource::Data(data) => match base64_size(data) {
                bytes @ ..1024 => format!("{bytes} bytes"),
                bytes => format!("{} KB", bytes.div_ceil(1024)),
            },
            MediaSource::Url(url) => url.clone(),
            MediaSource::FileId(id) => format!("file {id}"),
        };
        let rest = [self.name.as_deref().unwrap_or(""), place.as_str(), self.media_type.as_str()];
        let rest = rest.into_iter().filter(|part| !part.is_empty());
        format!("[{}]", std::iter::once(kind).chain(rest).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_described_size_is_exact() {
        for (data, expected) in [("", 0), ("aQ==", 1), ("aQ", 1), ("aGk=", 2), ("aGkh", 3), ("aGkhIQ==", 4)] {
            let shown = Media::image("image/png".to_owned(), data.to_owned()).describe();
            assert_eq!(shown, format!("[image, {expected} bytes, image/png]"), "{data}");
        }
    }
}
