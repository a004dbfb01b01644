use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::*;
use crate::test_dir::TestDir;

/// A folder `root` with symlinks of every kind, and a secret next to it.
fn tree(name: &str) -> (TestDir, Dir) {
    let test_dir = TestDir::new(name);
    let root = test_dir.path().join("root");
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/file"), "inside").unwrap();
    fs::write(test_dir.path().join("secret"), "outside").unwrap();
    symlink("../secret", root.join("link")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("a", root.join("within")).unwrap();
    symlink("/", root.join("top")).unwrap();
    let dir = Dir::open(&root).unwrap();
    (test_dir, dir)
}

#[test]
fn l3_neither_way_of_opening_follows_links_or_leaves_the_directory() {
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
        assert_eq!(kind(dir.open_beneath(Path::new(path), flags)), expected, "in one call: {path}");
        if expected != Err(Errno::INVAL) {
            assert_eq!(kind(dir.open_stepwise(Path::new(path), flags)), expected, "by steps: {path}");
        }
    }
    assert!(leads_elsewhere(&dir.open_at(Path::new("link")).unwrap_err()));
}

#[test]
fn l4_only_regular_files_are_opened() {
    let (test_dir, dir) = tree("dir-kinds");
    let fifo = test_dir.path().join("root/pipe");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(matches!(dir.open_at(Path::new("pipe")).unwrap(), OpenedPath::Special));
    assert!(matches!(dir.open_at(Path::new("a")).unwrap(), OpenedPath::Folder));
    assert!(matches!(dir.open_at(Path::new("")).unwrap(), OpenedPath::Folder));
    assert!(matches!(dir.open_at(Path::new("a/b/file")).unwrap(), OpenedPath::File(..)));
    let mut names: Vec<_> = dir.entries().unwrap().map(|entry| entry.unwrap()).collect();
    names.sort_by(|a, b| a.name.cmp(&b.name));
    let kinds: Vec<_> = names.iter().map(|entry| (entry.name.to_str().unwrap(), entry.kind)).collect();
    let links = ["link", "top", "up", "within"].map(|name| (name, EntryKind::Link));
    let [link, top, up, within] = links;
    assert_eq!(kinds, [("a", EntryKind::Folder), link, ("pipe", EntryKind::Special), top, up, within]);
    assert_eq!(dir.link_target(OsStr::new("within")).unwrap(), "a");
}

#[test]
fn l2_a_file_is_replaced_whole_and_a_link_is_not_written_through() {
    let (test_dir, dir) = tree("dir-replace");
    let root = test_dir.path().join("root");
    dir.replace(OsStr::new("link"), b"new", FileMode::Private).unwrap();
    assert_eq!(fs::read_to_string(test_dir.path().join("secret")).unwrap(), "outside");
    assert!(fs::symlink_metadata(root.join("link")).unwrap().is_file());
    assert_eq!(fs::metadata(root.join("link")).unwrap().permissions().mode() & 0o777, 0o600);
    let deep = dir.make_folders(Path::new("a/new/deep")).unwrap();
    let long = "n".repeat(255);
    deep.replace(OsStr::new(&long), b"x", FileMode::SameAs(Permissions::from_mode(0o640))).unwrap();
    assert_eq!(fs::metadata(root.join("a/new/deep").join(&long)).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(leads_elsewhere(&dir.make_folders(Path::new("up/new")).unwrap_err()));
    assert!(!test_dir.path().join("new").exists());
    assert!(deep.replace(OsStr::new(&"n".repeat(256)), b"x", FileMode::Default).is_err());
    assert_eq!(fs::read_dir(root.join("a/new/deep")).unwrap().count(), 1, "no draft is left");
}
