//! Where the store lives, and who may look into it.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The folder of a user's data: `$ASIDE_DATA_DIR`, else `aside` in the XDG data
/// folder. The environment is handed in.
pub fn data_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("ASIDE_DATA_DIR")
        // The XDG rules say that a relative path is to be ignored.
        .or_else(|| set("XDG_DATA_HOME").filter(|path| path.is_absolute()).map(|path| path.join("aside")))
        .or_else(|| set("HOME").map(|home| home.join(".local/share/aside")))
}

/// Creates a folder for the owner alone. One that existed keeps its mode unless
/// it is plainly ours: empty, or named after us. A shared folder that a user
/// points us at is not ours to close; the files in it are private anyway.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    let existed = path.is_dir();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    if existed && (path.ends_with("aside") || path.read_dir()?.next().is_none()) {
        narrow(&File::open(path)?, 0o700)?;
    }
    Ok(())
}

/// Creates a file for the owner alone, or narrows one that exists.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // By the handle: a lock file may be gone from its path already.
    narrow(&file, 0o600)?;
    Ok(file)
}

/// Takes rights away from others; a mode that is narrow already is left alone.
#[cfg(unix)]
fn narrow(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let now = file.metadata()?.permissions().mode();
    if now & 0o077 == 0 || now & 0o1000 != 0 {
        return Ok(());
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn narrow(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_is_the_users_word_then_xdg_then_home() {
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a str>);
        #[rustfmt::skip]
        let cases: &[Case<'_>] = &[
            ("own word",     &[("ASIDE_DATA_DIR", "/x"), ("XDG_DATA_HOME", "/y"), ("HOME", "/h")], Some("/x")),
            ("xdg",          &[("XDG_DATA_HOME", "/y"), ("HOME", "/h")],                           Some("/y/aside")),
            ("relative xdg", &[("XDG_DATA_HOME", "y"), ("HOME", "/h")],                            Some("/h/.local/share/aside")),
            ("empty",        &[("ASIDE_DATA_DIR", ""), ("HOME", "/h")],                            Some("/h/.local/share/aside")),
            ("nothing",      &[],                                                                  None),
        ];
        for (name, variables, expected) in cases {
            let look = |wanted: &str| {
                variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| OsString::from(value))
            };
            assert_eq!(data_folder(look), expected.map(PathBuf::from), "{name}");
        }
    }
}
