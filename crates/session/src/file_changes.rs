//! The files that a session's tools changed: records each change before it is made, undoes changes, and
//! redoes them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use aside_core::block::Time;
use aside_engine::tools::{self, ChangeObserver, FileContent, FileRestorer, PriorFile};
use aside_store::file_changes::{
    ChangeKept, FileChange, FileChangeId, FileVersion, MAX_CONTENT_BYTES, NewFileChange, StoredVersion, UnkeptChange,
    WhyUnkept,
};
use aside_store::{SessionId, SqliteStore, StoreError};

/// How many files one notice names.
const MAX_NAMED: usize = 5;

/// Records the changes of the running turn in the store. Without a stored session, changes cannot be undone.
#[derive(Debug, Default)]
pub(crate) struct ChangeRecorder(Mutex<RecorderState>);

#[derive(Debug, Default)]
struct RecorderState {
    target: Option<RecordingTarget>,
    notices: Vec<String>,
    /// The folders that did not exist before a file was written into them, by the path of the file.
    created_folders: HashMap<String, Vec<String>>,
}

#[derive(Debug, Clone)]
struct RecordingTarget {
    store: Arc<SqliteStore>,
    session: SessionId,
    turn: Time,
}

impl ChangeRecorder {
    /// The changes that follow belong to this turn.
    pub(crate) fn begin_turn(&self, store: &Arc<SqliteStore>, session: &SessionId, turn: Time) {
        let target = RecordingTarget { store: Arc::clone(store), session: session.clone(), turn };
        self.lock().target = Some(target);
    }

    /// The changes that follow are not recorded.
    pub(crate) fn stop(&self) {
        self.lock().target = None;
    }

    /// Remembers, for as long as the program runs, which folders a new file needs.
    fn note_missing_folders(&self, path: &Path) {
        let is_missing = |folder: &&Path| matches!(fs::symlink_metadata(folder), Err(error) if error.kind() == io::ErrorKind::NotFound);
        let folders = path.ancestors().skip(1).take_while(is_missing);
        let folders: Vec<String> = folders.filter_map(Path::to_str).map(str::to_owned).collect();
        if let Some(path) = path.to_str().filter(|_| !folders.is_empty()) {
            self.lock().created_folders.insert(path.to_owned(), folders);
        }
    }

    fn notice(&self, notice: String) {
        self.lock().notices.push(notice);
    }

    fn lock(&self) -> MutexGuard<'_, RecorderState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeObserver for ChangeRecorder {
    fn before_change(&self, change: &tools::FileChange<'_>) {
        let Some(RecordingTarget { store, session, turn }) = self.lock().target.clone() else { return };
        let name = change.name;
        let Some(path) = change.path.to_str() else {
            return self.notice(format!("the path of {name} is not UTF-8; /undo cannot put it back"));
        };
        let too_large = || format!("{name} is too large to be kept; /undo cannot put it back");
        let failed = |error: StoreError| format!("/undo cannot put {name} back: {error}");
        let before = match &change.before {
            PriorFile::Missing => {
                self.note_missing_folders(change.path);
                None
            }
            PriorFile::File { content, mode } => Some(FileVersion { content, mode: Some(*mode) }),
            PriorFile::TooLarge => {
                let recorded = store.record_too_large_change(&session, turn, path);
                return self.notice(recorded.map_or_else(failed, |()| too_large()));
            }
        };
        let after = FileVersion { content: change.after, mode: before.and_then(|before| before.mode) };
        let new = NewFileChange { turn, path, before, after: Some(after) };
        let notice = match store.record_file_change(&session, &new, MAX_CONTENT_BYTES) {
            Ok(ChangeKept::Kept { dropped }) if dropped.is_empty() => return,
            Ok(ChangeKept::Kept { dropped }) => dropped_notice(&dropped, path.strip_suffix(name).unwrap_or_default()),
            Ok(ChangeKept::TooLarge) => too_large(),
            Err(error) => failed(error),
        };
        self.notice(notice);
    }

    fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().notices)
    }
}

/// Names the files whose oldest changes made room for newer ones. Those below `root` are named without it.
fn dropped_notice(paths: &[String], root: &str) -> String {
    let mut names: Vec<&str> = paths.iter().map(|path| path.strip_prefix(root).unwrap_or(path)).collect();
    names.dedup();
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let kept = MAX_CONTENT_BYTES >> 20;
    format!("the oldest changes of {}{more} cannot be undone any more; {kept} MiB are kept", names.join(", "))
}

/// Whether changes are undone or redone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Undo,
    Redo,
}

/// What happens to files that something else has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangedSince {
    Skip,
    Overwrite,
}

/// One file with the changes to undo or redo.
#[derive(Debug)]
pub(crate) struct FilePlan {
    path: String,
    /// As the user sees it.
    pub(crate) name: String,
    /// The content that it should have; none for no file.
    target: Option<StoredVersion>,
    pub(crate) state: FileState,
    pub(crate) changes: Vec<FileChangeId>,
    /// What the newest of these changes left, and the turn that made it.
    newest: Option<(Option<StoredVersion>, Time)>,
}

/// The file on the disk, compared with the changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileState {
    /// It is as a change left it or found it.
    AsRecorded,
    /// It already has the wanted content.
    AtTarget,
    ChangedSince,
    /// It cannot be read or compared.
    Unknown(String),
}

impl FilePlan {
    /// The turn that made the newest change.
    pub(crate) fn turn(&self) -> Option<Time> {
        self.newest.map(|(_, turn)| turn)
    }

    /// What undoing would do to the file, for the question.
    pub(crate) fn preview(&self) -> String {
        match (&self.state, &self.target) {
            (FileState::AsRecorded, None) => format!("{}: will be removed", self.name),
            (FileState::AsRecorded, Some(_)) => format!("{}: will be as it was", self.name),
            (FileState::AtTarget | FileState::ChangedSince | FileState::Unknown(_), _) => {
                self.describe(Direction::Undo)
            }
        }
    }

    /// What has happened to the file, in a few words.
    fn describe(&self, direction: Direction) -> String {
        self.describe_state(&self.state, direction)
    }

    fn describe_state(&self, state: &FileState, direction: Direction) -> String {
        let name = &self.name;
        match (state, &self.target, direction) {
            (FileState::AsRecorded, None, _) => format!("{name}: removed"),
            (FileState::AsRecorded, Some(_), Direction::Undo) => format!("{name}: back as it was"),
            (FileState::AsRecorded, Some(_), Direction::Redo) => format!("{name}: changed again"),
            (FileState::AtTarget, ..) => format!("{name}: is already as it was"),
            (FileState::ChangedSince, ..) => format!("{name}: changed since, so it stays"),
            (FileState::Unknown(why), ..) => format!("{name}: stays, because {why}"),
        }
    }
}

/// The files of a session that were changed.
pub(crate) struct ChangedFiles<'a> {
    pub(crate) store: &'a SqliteStore,
    pub(crate) restorer: &'a FileRestorer,
}

impl ChangedFiles<'_> {
    /// Compares each file of these changes, the oldest first, with the disk.
    pub(crate) fn plan(&self, changes: &[FileChange], direction: Direction) -> Result<Vec<FilePlan>, StoreError> {
        let mut order: Vec<&str> = Vec::new();
        let mut by_path: HashMap<&str, Vec<&FileChange>> = HashMap::new();
        for change in changes {
            let of_path = by_path.entry(&change.path).or_default();
            if of_path.is_empty() {
                order.push(&change.path);
            }
            of_path.push(change);
        }
        let plan = |path: &str| {
            let changes = by_path.get(path).map(Vec::as_slice).unwrap_or_default();
            let target = match direction {
                Direction::Undo => changes.first().and_then(|first| first.before),
                Direction::Redo => changes.last().and_then(|last| last.after),
            };
            let versions = changes.iter().flat_map(|change| [change.before, change.after]);
            Ok(FilePlan {
                path: path.to_owned(),
                name: self.restorer.name(path),
                target,
                state: self.state(path, target, versions)?,
                changes: changes.iter().map(|change| change.id).collect(),
                newest: changes.last().map(|last| (last.after, last.turn)),
            })
        };
        order.into_iter().map(plan).collect()
    }

    fn state(
        &self,
        path: &str,
        target: Option<StoredVersion>,
        versions: impl Iterator<Item = Option<StoredVersion>>,
    ) -> Result<FileState, StoreError> {
        let now = match self.restorer.read(path) {
            Ok(now) => now,
            Err(why) => return Ok(FileState::Unknown(why)),
        };
        if self.is_same(now.as_ref(), target)? {
            return Ok(FileState::AtTarget);
        }
        for version in versions {
            if self.is_same(now.as_ref(), version)? {
                return Ok(FileState::AsRecorded);
            }
        }
        Ok(FileState::ChangedSince)
    }

    fn is_same(&self, now: Option<&FileContent>, version: Option<StoredVersion>) -> Result<bool, StoreError> {
        let (Some(now), Some(version)) = (now, version) else { return Ok(now.is_none() && version.is_none()) };
        let same_mode = now.mode.zip(version.mode).is_none_or(|(now, then)| now == then);
        if !same_mode || now.content.len() as u64 != version.n_bytes {
            return Ok(false);
        }
        Ok(self.store.file_content(version.content)? == now.content)
    }

    /// Records what else changed these files, as if their turns had done it, so that redoing brings it back. A file
    /// that is too large to be kept is left out.
    pub(crate) fn record_other_changes(&self, session: &SessionId, plans: &[FilePlan]) -> Result<(), StoreError> {
        for plan in plans.iter().filter(|plan| plan.state == FileState::ChangedSince) {
            let (Some((version, turn)), Ok(now)) = (plan.newest, self.restorer.read(&plan.path)) else { continue };
            let content = version.map(|version| self.store.file_content(version.content)).transpose()?;
            let before = version.zip(content.as_ref());
            let change = NewFileChange {
                turn,
                path: &plan.path,
                before: before.map(|(version, content)| FileVersion { content, mode: version.mode }),
                after: now.as_ref().map(|now| FileVersion { content: &now.content, mode: now.mode }),
            };
            self.store.record_file_change(session, &change, MAX_CONTENT_BYTES)?;
        }
        Ok(())
    }

    /// Removes the folders that were created for files that undoing removed, unless something is in them. Returns a line
    /// for each.
    pub(crate) fn remove_created_folders(&self, plans: &[FilePlan], recorder: &ChangeRecorder) -> Vec<String> {
        let removed = plans.iter().filter(|plan| plan.target.is_none());
        let state = recorder.lock();
        let folders = removed.filter_map(|plan| state.created_folders.get(&plan.path)).flatten();
        let mut folders: Vec<&String> = folders.collect();
        // A folder comes after those inside it.
        folders.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        folders.dedup();
        let removed = folders.into_iter().filter(|folder| self.restorer.remove_empty_folder(folder));
        removed.map(|folder| format!("{}/: removed", self.restorer.name(folder))).collect()
    }

    /// Restores the files, and returns the changes that were handled and a line for each file.
    pub(crate) fn restore(
        &self,
        plans: &[FilePlan],
        direction: Direction,
        changed_since: ChangedSince,
    ) -> Result<(Vec<FileChangeId>, Vec<String>), StoreError> {
        let (mut done, mut lines) = (Vec::new(), Vec::new());
        for plan in plans {
            let writes = match (&plan.state, changed_since) {
                (FileState::AsRecorded, _) | (FileState::ChangedSince, ChangedSince::Overwrite) => true,
                (FileState::AtTarget, _) => false,
                (FileState::ChangedSince, ChangedSince::Skip) => {
                    let hint = match direction {
                        Direction::Undo => " (/undo files force puts it back anyway)",
                        // That would put back what was before the turn.
                        Direction::Redo => "",
                    };
                    lines.push(format!("{}{hint}", plan.describe(direction)));
                    continue;
                }
                (FileState::Unknown(_), _) => {
                    lines.push(plan.describe(direction));
                    continue;
                }
            };
            let content = match plan.target.filter(|_| writes) {
                Some(version) => {
                    let content = self.store.file_content(version.content)?;
                    Some(FileContent { content, mode: version.mode })
                }
                None => None,
            };
            let restored = if writes { self.restorer.restore(&plan.path, content.as_ref()) } else { Ok(()) };
            match restored {
                Ok(()) => {
                    done.extend(&plan.changes);
                    let state = if writes { FileState::AsRecorded } else { FileState::AtTarget };
                    lines.push(plan.describe_state(&state, direction));
                }
                Err(why) => lines.push(format!("{}: stays, because {why}", plan.name)),
            }
        }
        Ok((done, lines))
    }
}

/// The changes since the turn that began then: its own and all later ones that are not undone.
pub(crate) fn changes_since(changes: Vec<FileChange>, turn: Time) -> Vec<FileChange> {
    let first = changes.iter().position(|change| change.turn == turn);
    let Some(first) = first else { return Vec::new() };
    changes.into_iter().skip(first).filter(|change| change.undone_by.is_none()).collect()
}

/// A line for each file with changes that are not kept.
pub(crate) fn unkept_lines(changes: &[UnkeptChange], restorer: &FileRestorer) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for UnkeptChange { path, why, .. } in changes {
        let why = match why {
            WhyUnkept::TooLarge => "too large to be kept, stays as it is",
            WhyUnkept::NoRoom => "its oldest changes are not kept any more and stay",
        };
        let line = format!("{}: {why}", restorer.name(path));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
#[path = "file_changes_tests.rs"]
mod tests;
