//! Failures: each gives a clear error, and nothing is lost.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use aside_core::event::{BlockId, BlockOpening, Event, Sink};
use aside_core::message::Message;
use aside_store::session::{NewReply, NewSession, PageQuery, Parent};
use aside_store::{FILE_NAME, ReplyRecorder, SessionId, SqliteStore, Store, StoreError, StoreOptions};

use crate::support::{Folder, assistant, new_session, text, user};

fn all(store: &dyn Store, id: &SessionId) -> Vec<Message> {
    let page = store.page(id, PageQuery { from: None, limit: usize::MAX }).unwrap();
    page.messages.into_iter().map(|kept| kept.message).collect()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn p7_only_the_owner_can_access_the_files() {
    let outer = Folder::new();
    let folder = outer.path().join("aside");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(folder.join(FILE_NAME), "").unwrap();
    std::fs::set_permissions(folder.join(FILE_NAME), PermissionsExt::from_mode(0o644)).unwrap();
    let store = SqliteStore::open(&folder).unwrap();
    let id = store.create(&new_session()).unwrap();
    let lock = store.lock_session(&id).unwrap();
    store.append(&lock, Parent::Head, &user("private")).unwrap();
    assert_eq!(mode(&folder), 0o700, "our own folder is restricted though it was open");
    assert_eq!(mode(&folder.join("locks")), 0o700);
    let mut names = Vec::new();
    for entry in folder.read_dir().unwrap().chain(folder.join("locks").read_dir().unwrap()) {
        let path = entry.unwrap().path();
        if path.is_file() {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            names.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    names.sort();
    assert_eq!(names.len(), 4, "the file, its log, its shared memory and a lock: {names:?}");
    drop(lock);
    assert_eq!(folder.join("locks").read_dir().unwrap().count(), 0, "a released lock leaves no file");

    // A folder with other files in it keeps its mode.
    let shared = outer.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::write(shared.join("theirs"), "x").unwrap();
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o755)).unwrap();
    drop(SqliteStore::open(&shared).unwrap());
    assert_eq!((mode(&shared), mode(&shared.join(FILE_NAME))), (0o755, 0o600));
    let fresh = outer.path().join("a/b/c");
    drop(SqliteStore::open(&fresh).unwrap());
    assert_eq!((mode(&fresh), mode(&outer.path().join("a"))), (0o700, 0o700));
}

#[test]
fn a_full_disk_loses_nothing_that_was_stored_and_writing_resumes_when_there_is_space() {
    let folder = Folder::new();
    let store = folder.store();
    let id = store.create(&new_session()).unwrap();
    store.append(&store.lock_session(&id).unwrap(), Parent::Head, &user("before")).unwrap();
    drop(store);
    let n_pages = std::fs::metadata(folder.path().join(FILE_NAME)).unwrap().len() / 16384;
    let options = StoreOptions { max_pages: Some(u32::try_from(n_pages).unwrap() + 3) };
    let store = Arc::new(SqliteStore::open_with(folder.path(), options).unwrap());
    let lock = store.lock_session(&id).unwrap();
    // Noise, which does not compress.
    let mut state = 1u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        format!("{:x} ", state >> 20)
    });
    let big: String = noise.take(40_000).collect();
    let error = store.append(&lock, Parent::Head, &user(&big)).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().contains(FILE_NAME) && error.to_string().contains("free some space"), "{error}");
    assert_eq!(all(&*store, &id), [user("before")]);

    // A running reply stays pending, reports the error, and is complete in the end.
    let shared: Arc<dyn Store> = store.clone();
    let reply = NewReply { parent: Parent::Head, origin: None, at: None };
    let mut recorder = ReplyRecorder::begin(shared, &lock, &reply).unwrap();
    recorder.take(Event::Opened { block: BlockId(0), opening: BlockOpening::Text });
    recorder.take(Event::Grew { block: BlockId(0), text: &big });
    let error = recorder.flush().unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(recorder.write_error().is_some_and(|error| error.contains("no space")), "{:?}", recorder.write_error());
    recorder.take(Event::Grew { block: BlockId(0), text: "the end" });
    let whole = assistant("m", vec![text(&format!("{big}the end"))]);
    assert!(recorder.finish(&whole, None).is_err());
    store.set_max_pages(100_000).unwrap();
    recorder.flush().unwrap();
    assert_eq!(recorder.write_error(), None);
    assert_eq!(all(&*store, &id)[1].blocks, whole.blocks, "nothing was lost on the way");
    recorder.finish(&whole, None).unwrap();
    assert_eq!(all(&*store, &id), [user("before"), whole]);
    assert_eq!(store.integrity_errors().unwrap(), Vec::<String>::new());
}

#[test]
fn a_store_that_cannot_be_written_can_still_be_read() {
    let folder = Folder::new();
    let store = folder.store();
    let id = store.create(&new_session()).unwrap();
    store.append(&store.lock_session(&id).unwrap(), Parent::Head, &user("readable")).unwrap();
    // With a writer at the same time, and without.
    for alone in [false, true] {
        let beside = (!alone).then(|| folder.store());
        let reader = SqliteStore::open_read_only(folder.path()).unwrap();
        assert_eq!(all(&reader, &id), [user("readable")]);
        assert_eq!(reader.search(&aside_store::search::SearchQuery::new("readable")).unwrap().hits.len(), 1);
        for refused in [reader.create(&new_session()).map(drop), reader.lock_session(&id).map(drop), reader.delete(&id)]
        {
            let error = refused.unwrap_err();
            assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
            assert!(error.to_string().contains("ASIDE_DATA_DIR"), "{error}");
        }
        drop(beside);
    }
    let nothing = SqliteStore::open_read_only(&folder.path().join("nothing")).unwrap_err();
    assert!(matches!(nothing, StoreError::CannotOpen { .. }), "{nothing}");
}

#[test]
fn a_folder_that_cannot_be_created_is_named() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let error = SqliteStore::open(&folder.path().join("file/below")).unwrap_err();
    assert!(matches!(error, StoreError::CannotOpen { .. } | StoreError::ReadOnly { .. }), "{error}");
    assert!(error.to_string().contains("file/below"), "{error}");
}

#[test]
fn a_newer_file_and_a_foreign_one_are_left_untouched() {
    type Edit = fn(&rusqlite::Connection);
    #[rustfmt::skip]
    let cases: &[(&str, Edit, &str)] = &[
        ("newer",   |db| db.pragma_update(None, "user_version", 99).unwrap(),             "newer aside"),
        ("foreign", |db| db.pragma_update(None, "application_id", 12345).unwrap(),        "not a session store"),
    ];
    for (name, change, says) in cases {
        let folder = Folder::new();
        drop(folder.store());
        let path = folder.path().join(FILE_NAME);
        let db = rusqlite::Connection::open(&path).unwrap();
        change(&db);
        drop(db);
        let before = std::fs::read(&path).unwrap();
        for result in [SqliteStore::open(folder.path()), SqliteStore::open_read_only(folder.path())] {
            let error = result.unwrap_err();
            match name {
                &"newer" => {
                    assert!(matches!(error, StoreError::NewerThanUs { found: 99, supported: 6, .. }), "{name}: {error}")
                }
                _ => assert!(matches!(error, StoreError::NotOurs { .. }), "{name}: {error}"),
            }
            assert!(error.to_string().contains(says), "{name}: {error}");
            assert!(error.to_string().contains(FILE_NAME), "{name}: {error}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), before, "{name}: not a byte was changed");
    }
}

#[test]
fn a_damaged_file_is_reported_and_never_repaired_silently() {
    let folder = Folder::new();
    let store = folder.store();
    let id = store.create(&new_session()).unwrap();
    let lock = store.lock_session(&id).unwrap();
    for n in 0..200 {
        store.append(&lock, Parent::Head, &user(&format!("message {n} {}", "text ".repeat(50)))).unwrap();
    }
    drop(lock);
    drop(store);
    let path = folder.path().join(FILE_NAME);
    let good = std::fs::read(&path).unwrap();

    // Text where the header was.
    std::fs::write(&path, "this is no database, it is a letter\n".repeat(100)).unwrap();
    let error = SqliteStore::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");

    // Garbage after the first page.
    let mut bad = good.clone();
    for byte in bad.iter_mut().skip(16384) {
        *byte = 0xA5;
    }
    std::fs::write(&path, &bad).unwrap();
    let result = SqliteStore::open(folder.path()).and_then(|store| store.load(&id).map(drop));
    let error = result.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains(".recover"), "{error}");

    // A truncated file.
    std::fs::write(&path, &good[..good.len() / 2]).unwrap();
    let result = SqliteStore::open(folder.path()).and_then(|store| store.load(&id).map(drop));
    assert!(matches!(result, Err(StoreError::Damaged { .. })), "{result:?}");

    std::fs::write(&path, &good).unwrap();
    assert_eq!(folder.store().load(&id).unwrap().ids.len(), 200, "the undamaged file still loads");
}

#[test]
fn p8_many_writers_at_once_lose_nothing() {
    let folder = Folder::new();
    drop(folder.store());
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let path = folder.path().to_owned();
            std::thread::spawn(move || {
                let store = SqliteStore::open(&path).unwrap();
                let id =
                    store.create(&NewSession { title: Some(format!("thread {thread}")), ..new_session() }).unwrap();
                let lock = store.lock_session(&id).unwrap();
                for n in 0..25 {
                    store.append(&lock, Parent::Head, &user(&format!("{thread} {n}"))).unwrap();
                }
                id
            })
        })
        .collect();
    let ids: Vec<SessionId> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let store = folder.store();
    for (thread, id) in ids.iter().enumerate() {
        let expected: Vec<Message> = (0..25).map(|n| user(&format!("{thread} {n}"))).collect();
        assert_eq!(all(&store, id), expected);
    }
    assert_eq!(store.integrity_errors().unwrap(), Vec::<String>::new());
}

#[test]
fn processes_that_open_a_new_store_at_once_create_it_only_once() {
    for _ in 0..10 {
        let folder = Folder::new();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let path = folder.path().to_owned();
                std::thread::spawn(move || SqliteStore::open(&path).and_then(|store| store.create(&new_session())))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
        assert_eq!(folder.store().sessions(10).unwrap().len(), 4);
    }
}
