//! The data folder and its permissions.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The user's data folder: `$ASIDE_DATA_DIR`, else `aside` in the XDG data
/// folder. The caller passes the environment.
pub fn data_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("ASIDE_DATA_DIR")
        // The XDG specification says to ignore relative paths.
        .or_else(|| set("XDG_DATA_HOME").filter(|path| path.is_absolute()).map(|path| path.join("aside")))
        .or_else(|| set("HOME").map(|home| home.join(".local/share/aside")))
}

/// Creates a folder that only the owner can access. An existing folder keeps
/// its mode unless it is empty or named `aside`: the user may have chosen a
/// shared folder, and the files in it are private anyway.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    let existed = path.is_dir();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    if existed && (path.ends_with("aside") || path.read_dir()?.next().is_none()) {
        restrict(&File::open(path)?, 0o700)?;
    }
    Ok(())
}

/// Creates a file that only the owner can access, or restricts an existing one.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // Through the handle: a lock file may already be gone from its path.
    restrict(&file, 0o600)?;
    Ok(file)
}

/// Removes access for group and others; leaves a mode that has none alone.
#[cfg(unix)]
fn restrict(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let now = file.metadata()?.permissions().mode();
    if now & 0o077 == 0 || now & 0o1000 != 0 {
        return Ok(());
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn restrict(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_is_the_users_choice_then_xdg_then_home() {
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a str>);
        #[rustfmt::skip]
        let cases: &[Case<'_>] = &[
            ("own setting",  &[("ASIDE_DATA_DIR", "/x"), ("XDG_DATA_HOME", "/y"), ("HOME", "/h")], Some("/x")),
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
