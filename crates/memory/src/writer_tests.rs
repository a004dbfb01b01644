use std::path::PathBuf;

use aside_core::block::Time;

use super::*;
use crate::journal::JournalUse;
use crate::reply_id::ReplyId;

/// A folder that is removed at the end of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("aside-writer-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn database(&self) -> PathBuf {
        self.0.join("gateway.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn row() -> WriteRow {
    WriteRow::Rejected { tenant: TenantId::of("a"), reply: ReplyId([7; 12]), expires: Time(0) }
}

#[test]
fn g3_receipts_wait_less_long_if_other_gateways_may_be_asked_for_them() {
    let folder = Folder::new("group-time");
    let alone = Journal::create(&folder.database(), JournalUse::Append).unwrap();
    assert_eq!((group_time(None), group_time(Some(&alone))), (SHARED_GROUP_TIME, GROUP_TIME));
    let second = Journal::create(&folder.database(), JournalUse::Append).unwrap();
    for journal in [&alone, &second] {
        // Every reply looks for the mark.
        assert!(journal.append(&row()).unwrap().is_shared);
        assert_eq!(group_time(Some(journal)), SHARED_GROUP_TIME);
    }
}
