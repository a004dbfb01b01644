use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::*;
use crate::scratch::Scratch;

/// A folder `root` with links of every kind in it, and a secret beside it.
fn tree(name: &str) -> (Scratch, Dir) {
    let scratch = Scratch::new(name);
    let root = scratch.path().join("root");
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/file"), "inside").unwrap();
    fs::write(scratch.path().join("secret"), "outside").unwrap();
    symlink("../secret", root.join("link")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("a", root.join("within")).unwrap();
    symlink("/", root.join("top")).unwrap();
    let dir = Dir::open(&root).unwrap();
    (scratch, dir)
}

#[test]
fn l3_nothing_is_reached_through_a_link_or_above_in_either_way_of_opening() {
    let (_scratch, dir) = tree("dir-links");
    #[rustfmt::skip]
    let cases = [
        ("a/b/file",      Ok(())),
        ("a/b",           Ok(())),
        ("",              Ok(())),
        ("a/none",        Err(Errno::NOENT)),
        ("a/b/file/x",    Err(Errno::NOTDIR)),
        ("link",          Err(Errno::LOOP)),
        ("up/secret",     Err(Errno::LOOP)),
        ("within/b/file", Err(Errno::LOOP)),
        ("top/etc",       Err(Errno::LOOP)),
        ("../secret",     Err(Errno::INVAL)),
        ("a/../../secret", Err(Errno::INVAL)),
        ("/etc/passwd",   Err(Errno::INVAL)),
        ("a/..",          Err(Errno::INVAL)),
    ];
    for (path, expected) in cases {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let kind =
            |opened: io::Result<OwnedFd>| opened.map(drop).map_err(|error| Errno::from_io_error(&error).unwrap());
        assert_eq!(kind(dir.beneath(Path::new(path), flags)), expected, "in one call: {path}");
        if expected != Err(Errno::INVAL) {
            assert_eq!(kind(dir.by_steps(Path::new(path), flags)), expected, "by steps: {path}");
        }
    }
    assert!(is_elsewhere(&dir.look(Path::new("link")).unwrap_err()));
}

#[test]
fn l4_only_plain_files_are_opened() {
    let (scratch, dir) = tree("dir-kinds");
    let fifo = scratch.path().join("root/pipe");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(matches!(dir.look(Path::new("pipe")).unwrap(), Opened::Special));
    assert!(matches!(dir.look(Path::new("a")).unwrap(), Opened::Folder));
    assert!(matches!(dir.look(Path::new("")).unwrap(), Opened::Folder));
    assert!(matches!(dir.look(Path::new("a/b/file")).unwrap(), Opened::File(..)));
    let mut names: Vec<_> = dir.entries().unwrap().map(|entry| entry.unwrap()).collect();
    names.sort_by(|a, b| a.name.cmp(&b.name));
    let kinds: Vec<_> = names.iter().map(|entry| (entry.name.to_str().unwrap(), entry.kind)).collect();
    let links = ["link", "top", "up", "within"].map(|name| (name, Kind::Link));
    let [link, top, up, within] = links;
    assert_eq!(kinds, [("a", Kind::Folder), link, ("pipe", Kind::Special), top, up, within]);
    assert_eq!(dir.link_target(OsStr::new("within")).unwrap(), "a");
}

#[test]
fn l2_a_file_is_replaced_whole_and_a_link_is_not_written_through() {
    let (scratch, dir) = tree("dir-replace");
    let root = scratch.path().join("root");
    dir.replace(OsStr::new("link"), b"new", Access::Private).unwrap();
    assert_eq!(fs::read_to_string(scratch.path().join("secret")).unwrap(), "outside");
    assert!(fs::symlink_metadata(root.join("link")).unwrap().is_file());
    assert_eq!(fs::metadata(root.join("link")).unwrap().permissions().mode() & 0o777, 0o600);
    let deep = dir.make_folders(Path::new("a/new/deep")).unwrap();
    let long = "n".repeat(255);
    deep.replace(OsStr::new(&long), b"x", Access::Like(Permissions::from_mode(0o640))).unwrap();
    assert_eq!(fs::metadata(root.join("a/new/deep").join(&long)).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(is_elsewhere(&dir.make_folders(Path::new("up/new")).unwrap_err()));
    assert!(!scratch.path().join("new").exists());
    assert!(deep.replace(OsStr::new(&"n".repeat(256)), b"x", Access::Usual).is_err());
    assert_eq!(fs::read_dir(root.join("a/new/deep")).unwrap().count(), 1, "no draft is left");
}
