use aside_core::block::Time;

use super::*;
use crate::reply_id::ReplyId;
use crate::tenant::TenantId;

/// A folder that is removed at the end of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("aside-journal-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn database(&self) -> PathBuf {
        self.0.join("gateway.db")
    }

    fn n_files(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn row(at: u64) -> WriteRow {
    WriteRow::Rejected { tenant: TenantId::of("a"), reply: ReplyId([7; 12]), expires: Time(at) }
}

fn begin(folder: &Folder) -> Journal {
    Journal::create(&folder.database(), JournalUse::Append).unwrap()
}

fn recovered(folder: &Folder) -> Vec<WriteRow> {
    recover(&folder.database()).unwrap().into_iter().flat_map(|other| other.rows).collect()
}

#[test]
fn g7_rows_of_a_killed_process_are_found_up_to_the_one_it_was_writing() {
    let folder = Folder::new("killed");
    let journal = begin(&folder);
    let rows: Vec<WriteRow> = (0..3).map(row).collect();
    rows.iter().for_each(|row| assert!(journal.append(row).is_some()));
    assert!(recover(&folder.database()).unwrap().is_empty(), "it belongs to a process that runs");
    let path = journal.lock().current.as_ref().unwrap().path.clone();
    drop(journal);
    assert_eq!(recovered(&folder), rows);
    let mut bytes = std::fs::read(&path).unwrap();
    for cut in 1..bytes.len() {
        std::fs::write(&path, &bytes[..bytes.len() - cut]).unwrap();
        let kept = recovered(&folder);
        assert_eq!(kept, rows[..kept.len()], "{cut}");
        assert_eq!(kept.len(), 2 - (cut - 1) / (bytes.len() / 3), "{cut}");
    }
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let left = recover(&folder.database()).unwrap().remove(0);
    assert_eq!(left.rows, rows[..2], "a damaged row");
    left.are_stored().unwrap();
    assert_eq!(folder.n_files(), 0);
}

#[test]
fn g7_a_second_process_makes_every_reply_visible_at_once() {
    let folder = Folder::new("shared");
    let first = begin(&folder);
    assert!(!first.append(&row(1)).unwrap().is_shared);
    let second = begin(&folder);
    assert!(first.append(&row(2)).unwrap().is_shared && second.append(&row(3)).unwrap().is_shared);
    assert!(first.was_shared() && second.was_shared());
    let others = second.others().unwrap();
    let rows: Vec<WriteRow> = others.iter().flat_map(|other| other.rows.clone()).collect();
    assert_eq!(rows, [row(1), row(2)], "what the first process has is copied");
    others.into_iter().for_each(|other| other.are_stored().unwrap());
    assert_eq!(first.others().unwrap().len(), 1);
    assert!(first.lock().current.as_ref().unwrap().path.exists(), "its files stay");
    assert!(second.check_ended().is_none(), "not yet");
    second.lock().checked -= CHECK_EVERY;
    assert!(second.check_ended().unwrap().unwrap().is_empty());
    second.were_checked();
    assert!(second.was_shared(), "the first process runs");
    // It is killed, with rows that are not stored.
    drop(first);
    second.lock().checked -= CHECK_EVERY;
    assert_eq!(second.check_ended().unwrap().unwrap().remove(0).rows, [row(1), row(2)]);
    // They could not be stored.
    second.check_again();
    assert!(second.check_ended().is_none() && second.was_shared());
    second.lock().checked -= CHECK_EVERY;
    let ended = second.check_ended().unwrap().unwrap().remove(0);
    assert_eq!(ended.rows, [row(1), row(2)]);
    ended.are_stored().unwrap();
    second.were_checked();
    assert!(!second.was_shared(), "it is alone again");
    assert!(!second.append(&row(4)).unwrap().is_shared);
}

#[test]
fn g7_a_process_that_commits_at_once_is_known_to_the_others() {
    let folder = Folder::new("presence");
    let power = Journal::create(&folder.database(), JournalUse::OnlyPresence).unwrap();
    assert_eq!(power.append(&row(1)), None);
    let other = begin(&folder);
    assert!(other.append(&row(1)).unwrap().is_shared);
}

#[test]
fn g7_a_process_is_seen_while_it_begins_the_next_file() {
    let folder = Folder::new("next-file");
    let first = begin(&folder);
    let mut numbers = Vec::new();
    for n in 0..20 {
        numbers.push(first.append(&row(n)).unwrap().number);
        first.lock().current.as_mut().unwrap().bytes = MAX_FILE_BYTES + 1;
    }
    let second = begin(&folder);
    assert!(second.was_shared());
    let rows: Vec<WriteRow> = second.others().unwrap().into_iter().flat_map(|other| other.rows).collect();
    assert_eq!(rows, (0..20).map(row).collect::<Vec<_>>(), "in the order in which they were written");
    drop(second);
    numbers.into_iter().for_each(|number| first.stored(number));
    // The file that is current, the file of the process, and its mark.
    assert_eq!(folder.n_files(), 3);
}

/// Processes that start and end at the same time see each other, or what the other has appended is copied.
#[test]
fn g7_no_reply_is_missed_by_a_process_that_starts_at_the_same_time() {
    let folder = Folder::new("at-once");
    for round in 0..200 {
        let (first, second) = std::thread::scope(|scope| {
            let started = |n: u64| {
                let folder = &folder;
                move || {
                    let journal = begin(folder);
                    let appended = journal.append(&row(n)).unwrap();
                    let others = journal.others().unwrap();
                    let copied = others.iter().any(|other| other.rows.contains(&row(1 - n)));
                    (journal, appended.is_shared, copied)
                }
            };
            let first = scope.spawn(started(0));
            let second = scope.spawn(started(1));
            (first.join().unwrap(), second.join().unwrap())
        });
        for ((_, is_shared, _), (_, _, is_copied)) in [(&first, &second), (&second, &first)] {
            assert!(
                *is_shared || *is_copied,
                "round {round}: a client was told that a reply is durable, and it is missed"
            );
        }
        for journal in [first.0, second.0] {
            journal.lock().current.as_mut().unwrap().n_pending = 0;
        }
    }
    recover(&folder.database()).unwrap().into_iter().for_each(|other| other.are_stored().unwrap());
    assert_eq!(folder.n_files(), 0);
}

#[test]
fn g7_rows_after_a_torn_one_are_found() {
    let folder = Folder::new("torn");
    let journal = begin(&folder);
    assert!(journal.append(&row(1)).is_some());
    {
        let mut files = journal.lock();
        let current = files.current.as_mut().unwrap();
        // A disk that is full takes a part of a row, and the file cannot be shortened.
        current.file.write_all(&[9; 5]).unwrap();
        current.is_torn = true;
        let path = current.path.clone();
        current.file = File::open(path).unwrap();
    }
    assert!(journal.append(&row(2)).is_some());
    drop(journal);
    assert_eq!(recovered(&folder), [row(1), row(2)]);
}

#[test]
fn g7_files_whose_rows_are_stored_are_emptied_or_removed() {
    let folder = Folder::new("stored");
    let journal = begin(&folder);
    let length = || std::fs::metadata(journal.lock().current.as_ref().unwrap().path.clone()).unwrap().len();
    let first = journal.append(&row(1)).unwrap().number;
    journal.empty();
    assert!(length() > 0, "it is not stored yet");
    journal.lock().current.as_mut().unwrap().bytes = MAX_FILE_BYTES + 1;
    let second = journal.append(&row(2)).unwrap().number;
    assert_ne!(first, second, "the first file was full");
    assert_eq!(folder.n_files(), 3);
    journal.stored(first);
    assert_eq!(folder.n_files(), 2);
    journal.empty();
    assert!(length() > 0, "the second is not stored yet");
    journal.stored(second);
    journal.empty();
    assert_eq!(length(), 0);
    drop(journal);
    assert_eq!(folder.n_files(), 0);
}
