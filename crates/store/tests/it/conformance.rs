//! The contract of [`Store`], checked against every implementation.

use std::collections::BTreeMap;

use aside_core::block::{Block, Time};
use aside_core::conversation::{Conversation, ToolSpec};
use aside_core::dialect::Repair;
use aside_core::event::ProviderError;
use aside_core::history::History;
use aside_core::interchange::Program;
use aside_core::message::{Message, Role};
use aside_core::rules::LearnedRepair;
use aside_core::turn::TurnEnd;
use aside_store::session::{
    BranchLength, ImportedSession, NewReply, NewSession, PageQuery, Parent, SessionChange, SessionDates, SessionFolder,
};
use aside_store::{EventBatch, MessageId, SessionId, Store, StoreError};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::arbitrary;
use crate::support::{MAKERS, assistant, at, new_session, text, thinking, user};

/// Runs a check against every implementation.
fn each(rule: fn(&str, &dyn Store)) {
    for (name, make) in MAKERS {
        let (_folder, store) = make();
        rule(name, &*store);
    }
}

fn all(store: &dyn Store, id: &SessionId) -> Vec<Message> {
    let page = store.page(id, PageQuery { from: None, limit: usize::MAX }).unwrap();
    assert_eq!(page.earlier, None, "the page has no limit");
    page.messages.into_iter().map(|kept| kept.message).collect()
}

#[test]
fn p2_any_message_is_read_back_unchanged() {
    each(|name, store| {
        let config = Config { cases: 128, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        let messages = proptest::collection::vec(arbitrary::message(), 1..4);
        runner
            .run(&messages, |messages| {
                let id = store.create(&new_session()).unwrap();
                let lock = store.lock_session(&id).unwrap();
                for message in &messages {
                    store.append(&lock, Parent::Head, message).unwrap();
                }
                prop_assert_eq!(&all(store, &id), &messages);
                let loaded = store.load(&id).unwrap();
                let branch: Vec<Message> =
                    loaded.conversation.history.branch().into_iter().map(|(_, message)| message.clone()).collect();
                prop_assert_eq!(branch, messages);
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    });
}

#[test]
fn p2_resume_restores_model_settings_tools_and_title() {
    each(|name, store| {
        let settings = BTreeMap::from([("reasoning.effort".to_owned(), "high".to_owned())]);
        let tool = ToolSpec::new("read", "reads", "{}");
        let new = NewSession {
            id: None,
            title: None,
            model: Some("one/two".to_owned()),
            settings: settings.clone(),
            tools: vec![tool.clone()],
            extra: vec![("note".to_owned(), "[1]".to_owned())],
            folder: None,
            at: Some(Time(5)),
        };
        let id = store.create(&new).unwrap();
        let lock = store.lock_session(&id).unwrap();
        store.append(&lock, Parent::Head, &user("why is the sky blue?\nreally")).unwrap();
        store.append(&lock, Parent::Head, &user("a second prompt")).unwrap();
        let session = store.session(&id).unwrap();
        assert_eq!(session.title.as_deref(), Some("why is the sky blue?"), "{name}");
        assert_eq!((&session.settings, &session.tools, session.created), (&settings, &vec![tool], Time(5)), "{name}");
        assert_eq!(session.model.as_deref(), Some("one/two"), "{name}");
        store.append(&lock, Parent::Head, &Message::answer_now()).unwrap();
        assert_eq!(store.branch_lengths(&[&id]).unwrap(), [BranchLength { n_messages: 3, n_prompts: 2 }], "{name}");

        let later = BTreeMap::from([("reasoning.effort".to_owned(), "low".to_owned())]);
        store.change(&id, &SessionChange::Title("sky".to_owned())).unwrap();
        store.change(&id, &SessionChange::Model(None)).unwrap();
        store.change(&id, &SessionChange::Settings(later.clone())).unwrap();
        store.change(&id, &SessionChange::Tools(Vec::new())).unwrap();
        store.append(&lock, Parent::Head, &user("a third prompt")).unwrap();
        let session = store.session(&id).unwrap();
        assert_eq!(session.title.as_deref(), Some("sky"), "{name}: a given title stays");
        assert_eq!((session.model, session.settings, session.tools), (None, later, Vec::new()), "{name}");
    });
}

#[test]
fn h5_fork_undo_and_retry_keep_the_abandoned_branch() {
    each(|name, store| {
        let id = store.create(&new_session()).unwrap();
        let lock = store.lock_session(&id).unwrap();
        let first = store.append(&lock, Parent::Head, &user("q")).unwrap();
        let tried = store.append(&lock, Parent::Head, &assistant("m", vec![text("a")])).unwrap();
        // Retry: a second answer to the same prompt.
        store.set_head(&lock, Some(first)).unwrap();
        let again = store.append(&lock, Parent::Head, &assistant("m", vec![text("b")])).unwrap();
        assert_eq!(all(store, &id), [user("q"), assistant("m", vec![text("b")])], "{name}");
        // A branch from an earlier message, and one without a parent.
        store.append(&lock, Parent::Message(tried), &user("after a")).unwrap();
        assert_eq!(all(store, &id)[1], assistant("m", vec![text("a")]), "{name}");
        let (empty, unknown) = (store.create(&new_session()).unwrap(), SessionId::new("unknown"));
        let counts = || {
            let lengths = store.branch_lengths(&[&id, &empty, &unknown]).unwrap();
            lengths.iter().map(|length| (length.n_messages, length.n_prompts)).collect::<Vec<_>>()
        };
        assert_eq!(store.n_sessions().unwrap(), 2, "{name}");
        assert_eq!(counts(), [(3, 2), (0, 0), (0, 0)], "{name}: the abandoned answer does not count");
        store.append(&lock, Parent::Nothing, &user("alone")).unwrap();
        assert_eq!(all(store, &id), [user("alone")], "{name}");
        // Undo to the very beginning.
        store.set_head(&lock, None).unwrap();
        assert_eq!(all(store, &id), [], "{name}");
        assert_eq!(counts(), [(0, 0); 3], "{name}");
        store.set_head(&lock, Some(again)).unwrap();

        let loaded = store.load(&id).unwrap();
        assert_eq!(loaded.ids.len(), 5, "{name}: nothing was lost");
        let parents: Vec<Option<usize>> =
            loaded.conversation.history.entries().iter().map(|entry| entry.parent.map(|id| id.0)).collect();
        assert_eq!(parents, [None, Some(0), Some(0), Some(1), None], "{name}");
        assert_eq!(loaded.conversation.history.head().map(|head| loaded.ids[head.0]), Some(again), "{name}");
    });
}

#[test]
fn a_message_of_another_session_is_refused_and_changes_nothing() {
    each(|name, store| {
        let (id, other) = (store.create(&new_session()).unwrap(), store.create(&new_session()).unwrap());
        let (lock, other_lock) = (store.lock_session(&id).unwrap(), store.lock_session(&other).unwrap());
        let mine = store.append(&lock, Parent::Head, &user("mine")).unwrap();
        let theirs = store.append(&other_lock, Parent::Head, &user("theirs")).unwrap();
        let refused = [
            store.append(&lock, Parent::Message(theirs), &user("x")).map(drop),
            store.set_head(&lock, Some(theirs)),
            store.begin(&lock, &NewReply { parent: Parent::Message(theirs), origin: None, at: None }).map(drop),
            store.page(&id, PageQuery { from: Some(theirs), limit: 1 }).map(drop),
        ];
        for result in refused {
            assert!(matches!(result, Err(StoreError::NoSuchMessage { .. })), "{name}: {result:?}");
        }
        assert_eq!(store.session(&id).unwrap().head, Some(mine), "{name}");
        assert_eq!(store.branch_lengths(&[&id]).unwrap()[0].n_messages, 1, "{name}");
    });
}

#[test]
fn p6_a_long_session_is_read_from_its_end_page_by_page() {
    each(|name, store| {
        let mut history = History::new();
        for n in 0..250 {
            history.append(at(user(&format!("message {n}")), n));
        }
        let conversation = Conversation { history, ..Conversation::default() };
        let id = store.import(&conversation, Some(Time(9))).unwrap();
        let (mut from, mut pages, mut seen) = (None, Vec::new(), Vec::new());
        loop {
            let page = store.page(&id, PageQuery { from, limit: 100 }).unwrap();
            pages.push(page.messages.len());
            seen.splice(0..0, page.messages.into_iter().map(|kept| kept.message));
            from = page.earlier;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(pages, [100, 100, 50], "{name}");
        let expected: Vec<Message> = (0..250).map(|n| at(user(&format!("message {n}")), n)).collect();
        assert_eq!(seen, expected, "{name}");
    });
}

#[test]
fn an_import_keeps_names_branches_head_and_unknown_members() {
    each(|name, store| {
        let mut history = History::new();
        let root = history.append_named(Some("m1".to_owned()), None, user("q")).unwrap();
        history
            .append_named(Some("m2".to_owned()), Some(root), assistant("m", vec![thinking("t"), text("a")]))
            .unwrap();
        let mut odd = assistant("m", vec![text("b")]);
        odd.unknown_members = vec![("x".to_owned(), r#"{"y": 1}"#.to_owned())];
        history.append_named(None, Some(root), odd).unwrap();
        history.fork(Some(root)).unwrap();
        let conversation = Conversation {
            model: Some("m".to_owned()),
            title: Some("given".to_owned()),
            settings: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            history,
            ..Conversation::default()
        };
        let id = store.import(&conversation, None).unwrap();
        let loaded = store.load(&id).unwrap().conversation;
        assert_eq!(loaded.history.entries(), conversation.history.entries(), "{name}");
        assert_eq!(loaded.history.head(), conversation.history.head(), "{name}");
        assert_eq!((loaded.model, loaded.title), (conversation.model, conversation.title), "{name}");
        assert_eq!(loaded.settings, conversation.settings, "{name}");
    });
}

#[test]
fn sessions_are_listed_by_last_use_even_when_the_clock_goes_back() {
    each(|name, store| {
        let new = |time| NewSession { at: Some(Time(time)), ..NewSession::default() };
        let a = store.create(&new(3_000)).unwrap();
        let b = store.create(&new(2_000)).unwrap();
        let c = store.create(&new(1_000)).unwrap();
        let order = |most| -> Vec<SessionId> { store.sessions(most).unwrap().into_iter().map(|one| one.id).collect() };
        assert_eq!(order(10), [c.clone(), b.clone(), a.clone()], "{name}");
        store.append(&store.lock_session(&a).unwrap(), Parent::Head, &at(user("old clock"), 1)).unwrap();
        assert_eq!(order(10), [a.clone(), c, b], "{name}");
        assert_eq!(order(1), [a], "{name}");
    });
}

#[test]
fn p11_sessions_imported_by_date_are_listed_among_those_of_their_time() {
    each(|name, store| {
        let own = |time| store.create(&NewSession { at: Some(Time(time)), ..NewSession::default() }).unwrap();
        let imported = |time| {
            let dates = SessionDates { created: Time(time - 1), changed: Time(time) };
            store.import_dated(&Conversation::default(), dates).unwrap()
        };
        let order = || -> Vec<SessionId> { store.sessions(10).unwrap().into_iter().map(|one| one.id).collect() };
        let (old, new) = (own(1_000), own(5_000));
        let (last, first, between, newest) = (imported(2_000), imported(500), imported(1_500), imported(9_000));
        let expected = [&newest, &new, &last, &between, &old, &first].map(SessionId::clone);
        assert_eq!(order(), expected, "{name}");
        // A session that is used is the first, wherever it was.
        for used in [&new, &first, &newest] {
            store.set_head(&store.lock_session(used).unwrap(), None).unwrap();
            assert_eq!(order().first(), Some(used), "{name}");
        }
        assert_eq!(store.session(&between).unwrap().created, Time(1_499), "{name}");
    });
}

#[test]
fn p11_imported_sessions_are_known_by_the_ids_of_their_program() {
    each(|name, store| {
        let from = |program: &str, session: &str, title: &str| {
            let extra = format!(r#"{{"program":"{program}","session":"{session}"}}"#);
            let extra = vec![("folder".to_owned(), "\"/w\"".to_owned()), ("importedFrom".to_owned(), extra)];
            let title = Some(title.to_owned());
            store.import(&Conversation { title, extra, ..Conversation::default() }, None).unwrap()
        };
        let (one, _two) = (from("codex", "s1", "One"), from("claude", "s2", "Two"));
        let _odd = from("unknown", "s3", "Three");
        store.create(&new_session()).unwrap();
        let known = store.imported_sessions(Program::Codex).unwrap();
        let expected = ImportedSession { id: one.clone(), title: Some("One".to_owned()) };
        assert_eq!(known, BTreeMap::from([("s1".to_owned(), expected)]), "{name}");
        store.delete(&one).unwrap();
        assert!(store.imported_sessions(Program::Codex).unwrap().is_empty(), "{name}: a deleted session is not known");
    });
}

#[test]
fn p9_sessions_of_this_root_come_first_and_those_without_a_folder_last() {
    each(|name, store| {
        let folder = |path: &str, root: &str| Some(SessionFolder { path: path.to_owned(), root: root.to_owned() });
        let create = |folder| store.create(&NewSession { folder, ..new_session() }).unwrap();
        let old_here = create(folder("/p/sub", "/p"));
        let elsewhere = create(folder("/q", "/q"));
        let here = create(folder("/p", "/p"));
        let newest = create(None);
        let order = |root| -> Vec<SessionId> {
            store.sessions_by_folder(root, 10).unwrap().into_iter().map(|one| one.id).collect()
        };
        assert_eq!(order("/p"), [here.clone(), old_here.clone(), elsewhere.clone(), newest.clone()], "{name}");
        assert_eq!(order("/q"), [elsewhere.clone(), here.clone(), old_here.clone(), newest.clone()], "{name}");
        assert_eq!(store.session(&old_here).unwrap().folder, folder("/p/sub", "/p"), "{name}");
        assert_eq!(store.session(&newest).unwrap().folder, None, "{name}");
        store.change(&newest, &SessionChange::Folder(folder("/p", "/p").unwrap())).unwrap();
        assert_eq!(order("/p"), [newest, here, old_here, elsewhere], "{name}");
    });
}

#[test]
fn messages_stay_in_insertion_order_when_the_clock_goes_back() {
    each(|name, store| {
        let id = store.create(&new_session()).unwrap();
        let lock = store.lock_session(&id).unwrap();
        let said = [at(user("first"), 900), at(user("second"), 100), at(user("third"), 500)];
        for message in &said {
            store.append(&lock, Parent::Head, message).unwrap();
        }
        assert_eq!(all(store, &id), said, "{name}");
    });
}

#[test]
fn a_session_is_found_by_id_prefix_and_title() {
    each(|name, store| {
        let titled =
            |title: &str| store.create(&NewSession { title: Some(title.to_owned()), ..new_session() }).unwrap();
        let (fix, fish) = (titled("fix the build"), titled("Fish soup"));
        let (twin, other_twin) = (titled("twin"), titled("twin"));
        #[rustfmt::skip]
        let cases = [
            ("whole id",          fix.as_str(),        &fix),
            ("beginning of id",   &fix.as_str()[..8],  &fix),
            ("whole title",       "fix the build",     &fix),
            ("case of a title",   "FISH SOUP",         &fish),
            ("beginning of it",   "fix the",           &fix),
            ("spaces around",     " Fish soup ",       &fish),
        ];
        for (case, word, expected) in cases {
            assert_eq!(&store.find(word).unwrap(), expected, "{name}: {case}");
        }
        let Err(StoreError::Ambiguous { candidates, word }) = store.find("twin") else { panic!("{name}") };
        let ids: Vec<SessionId> = candidates.into_iter().map(|candidate| candidate.id).collect();
        assert_eq!((word.as_str(), ids), ("twin", vec![other_twin, twin]), "{name}: newest first");
        for word in ["nobody", "", "100%", "_"] {
            assert!(matches!(store.find(word), Err(StoreError::NoSuchSession { .. })), "{name}: {word}");
        }
        let message = store.find("fi").unwrap_err().to_string();
        assert!(message.contains("fix the build") && message.contains("Fish soup"), "{name}: {message}");
    });
}

#[test]
fn a_deleted_session_is_gone_and_the_others_are_not() {
    each(|name, store| {
        let (id, other) = (store.create(&new_session()).unwrap(), store.create(&new_session()).unwrap());
        for session in [&id, &other] {
            let lock = store.lock_session(session).unwrap();
            store.append(&lock, Parent::Head, &user("findable")).unwrap();
            let held = store.delete(session);
            assert!(matches!(held, Err(StoreError::InUse { .. })), "{name}: it is open: {held:?}");
        }
        store.delete(&id).unwrap();
        for gone in [store.session(&id).map(drop), store.lock_session(&id).map(drop), store.delete(&id)] {
            assert!(matches!(gone, Err(StoreError::NoSuchSession { .. })), "{name}: {gone:?}");
        }
        let found = store.search(&aside_store::search::SearchQuery::new("findable")).unwrap();
        assert_eq!(found.hits.iter().map(|hit| &hit.session).collect::<Vec<_>>(), [&other], "{name}");
        assert_eq!(all(store, &other), [user("findable")], "{name}");
    });
}

#[test]
fn p8_a_second_writer_of_a_session_is_refused_until_the_first_is_done() {
    each(|name, store| {
        let (id, other) = (store.create(&new_session()).unwrap(), store.create(&new_session()).unwrap());
        let lock = store.lock_session(&id).unwrap();
        let error = store.lock_session(&id).unwrap_err();
        assert!(matches!(error, StoreError::InUse { .. }), "{name}: {error}");
        assert!(error.to_string().contains(&std::process::id().to_string()), "{name}: {error}");
        drop(store.lock_session(&other).unwrap());
        // Reading needs no lock.
        assert_eq!(all(store, &id), [], "{name}");
        drop(lock);
        drop(store.lock_session(&id).unwrap());
    });
}

#[test]
fn p1_a_running_reply_can_be_read_and_is_then_replaced_by_the_final_message() {
    use aside_core::event::{BlockId, BlockOpening, Event};
    each(|name, store| {
        let id = store.create(&new_session()).unwrap();
        let lock = store.lock_session(&id).unwrap();
        store.append(&lock, Parent::Head, &user("q")).unwrap();
        let reply = store.begin(&lock, &NewReply { parent: Parent::Head, origin: None, at: Some(Time(7)) }).unwrap();
        let mut batch = EventBatch::default();
        batch.push(Event::Opened { block: BlockId(0), opening: BlockOpening::Text }, None);
        for delta in ["Hel", "lo"] {
            batch.push(Event::Grew { block: BlockId(0), text: delta }, None);
        }
        store.extend(reply, &batch).unwrap();
        let read = all(store, &id).pop().unwrap();
        assert_eq!((read.blocks, read.interrupted, read.at), (vec![text("Hello")], true, Some(Time(7))), "{name}");

        let whole = assistant("m", vec![thinking("t"), text("Hello.")]);
        store.finish(reply, &whole, Some(Time(9))).unwrap();
        let dated = at(whole.clone(), 7);
        assert_eq!(all(store, &id), [user("q"), dated], "{name}: it has the time it began at");
        for late in [store.extend(reply, &batch), store.finish(reply, &whole, None)] {
            assert!(matches!(late, Err(StoreError::NotRunning { .. })), "{name}: {late:?}");
        }
        let nobody = store.extend(MessageId(999), &batch);
        assert!(matches!(nobody, Err(StoreError::NotRunning { .. })), "{name}: {nobody:?}");
    });
}

#[test]
fn h3_everything_is_stored_whatever_the_settings_say() {
    each(|name, store| {
        let settings = BTreeMap::from([
            ("reasoning.enabled".to_owned(), "false".to_owned()),
            ("reasoning.includeInResponse".to_owned(), "false".to_owned()),
        ]);
        let id = store.create(&NewSession { settings, ..new_session() }).unwrap();
        let lock = store.lock_session(&id).unwrap();
        let message = assistant("m", vec![thinking("kept"), Block::Text(Default::default())]);
        store.append(&lock, Parent::Head, &message).unwrap();
        assert_eq!(all(store, &id), [message], "{name}");
        assert_eq!(store.session(&id).unwrap().title, None, "{name}: thinking gives no title");
        assert_eq!(store.load(&id).unwrap().conversation.history.entries()[0].message.role, Role::Assistant);
    });
}

#[test]
fn t10_prompts_of_all_sessions_come_newest_first_without_duplicates() {
    each(|name, store| {
        let ids = [(); 2].map(|()| store.create(&new_session()).unwrap());
        let locks = ids.each_ref().map(|id| store.lock_session(id).unwrap());
        let long = "a long one ".repeat(2000);
        for (at, said) in [(0, "first"), (1, "second"), (0, long.as_str()), (1, "first"), (1, "  ")] {
            store.append(&locks[at], Parent::Head, &user(said)).unwrap();
            store.append(&locks[at], Parent::Head, &assistant("m", vec![text("an answer")])).unwrap();
        }
        let summary = aside_core::compaction::summary_message("nobody typed this").unwrap();
        store.append(&locks[0], Parent::Head, &summary).unwrap();
        assert_eq!(store.prompts(10).unwrap(), ["first", long.as_str(), "second"], "{name}");
        assert_eq!(store.prompts(1).unwrap(), ["first"], "{name}");
    });
}

#[test]
fn e11_learned_repairs_are_kept_for_seven_days() {
    each(|name, store| {
        let day = 24 * 60 * 60 * 1000;
        let learned = |model: &str| LearnedRepair {
            base_url: "http://host/v1".to_owned(),
            dialect: "generic".to_owned(),
            model: model.to_owned(),
            repair: Repair::OmitParameter,
            details: vec!["reasoning".to_owned()],
        };
        store.learn_repairs(&[learned("a"), learned("b")], Time(0)).unwrap();
        store.learn_repairs(&[learned("b"), learned("c")], Time(day)).unwrap();
        assert_eq!(store.learned_repairs(Time(day)).unwrap(), ["a", "b", "c"].map(learned), "{name}");
        assert_eq!(store.learned_repairs(Time(7 * day)).unwrap(), ["b", "c"].map(learned), "{name}: one has expired");
        assert_eq!(store.learned_repairs(Time(8 * day)).unwrap(), [], "{name}");
        assert_eq!(store.forget_repairs().unwrap(), 3, "{name}");
        assert_eq!(store.learned_repairs(Time(day)).unwrap(), [], "{name}");
    });
}

#[test]
fn t18_how_a_turn_ended_is_kept_with_the_head_and_the_last_end_counts() {
    each(|name, store| {
        let mut history = History::new();
        let failed = TurnEnd::Failed(ProviderError::new("no credit").with_status(429).with_lacks_credit(true));
        let id = store.create(&new_session()).unwrap();
        let lock = store.lock_session(&id).unwrap();
        let mut odd = user("q");
        odd.unknown_members = vec![("x".to_owned(), "1".to_owned())];
        store.append(&lock, Parent::Head, &odd).unwrap();
        history.append(odd);
        for end in [TurnEnd::Interrupted, failed.clone(), TurnEnd::Answered] {
            store.end_turn(&lock, &end).unwrap();
            history.end_turn(&end);
        }
        let loaded = store.load(&id).unwrap().conversation.history;
        assert_eq!(loaded.entries()[0].message, history.entries()[0].message, "{name}");
        assert_eq!(loaded.entries()[0].message.turn_end(), Some(failed), "{name}");
        assert_eq!(loaded.entries()[0].message.unknown_members.len(), 2, "{name}");
    });
}
