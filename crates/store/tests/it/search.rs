//! Search over stored sessions: which hits, where, and in which order.

use aside_core::block::Time;
use aside_core::conversation::Conversation;
use aside_core::history::History;
use aside_core::message::{Message, Role};
use aside_store::search::{HitCount, HitKind, HitList, HitOrder, SearchHit, SearchQuery, SearchScope};
use aside_store::session::{NewSession, Parent};
use aside_store::{SessionId, Store, StoreError};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{MAKERS, assistant, at, call, new_session, result, text, thinking, user};

const HOUR: u64 = 3_600_000;

fn each(rule: fn(&str, &dyn Store)) {
    for (name, make) in MAKERS {
        let (_folder, store) = make();
        rule(name, &*store);
    }
}

fn session(store: &dyn Store, messages: &[Message]) -> SessionId {
    let id = store.create(&new_session()).unwrap();
    let lock = store.lock_session(&id).unwrap();
    for message in messages {
        store.append(&lock, Parent::Head, message).unwrap();
    }
    id
}

/// Two sessions on two days, with two models.
fn two_sessions(store: &dyn Store) -> (SessionId, SessionId) {
    let first = session(
        store,
        &[
            at(user("Why does the parser fail on 東京都?"), 10 * HOUR),
            at(
                assistant(
                    "alpha-1",
                    vec![thinking("The parser calls readHttpHeader first."), call("grep", r#"{"pattern":"parser"}"#)],
                ),
                11 * HOUR,
            ),
            at(Message::new(Role::Tool, vec![result("src/parser.rs:42: fn parse_http_header()")]), 12 * HOUR),
            at(assistant("alpha-1", vec![text("The parser fails in parse_http_header.")]), 13 * HOUR),
        ],
    );
    let second = session(
        store,
        &[
            at(user("soup with parsley"), 40 * HOUR),
            at(
                assistant("beta-2", vec![thinking("The user wants soup, not a parser."), text("Boil the soup.")]),
                41 * HOUR,
            ),
        ],
    );
    (first, second)
}

fn kinds(found: &HitList) -> Vec<&'static str> {
    let mut kinds: Vec<&'static str> = found.hits.iter().map(|hit| hit.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds
}

fn drawn(hit: &SearchHit) -> String {
    let mut snippet = hit.snippet.clone();
    for mark in hit.marks.iter().rev() {
        snippet.insert(mark.end, ']');
        snippet.insert(mark.start, '[');
    }
    snippet
}

#[test]
fn p4_everything_is_found_under_its_kind() {
    each(|name, store| {
        two_sessions(store);
        #[rustfmt::skip]
        let cases: &[(&str, &str, &[&str])] = &[
            ("everywhere",           "parser",              &["answer", "prompt", "thinking", "thinking", "tool", "tool"]),
            ("two words",            "parser fails",        &["answer"]),
            ("case",                 "PARSER FAILS",        &["answer"]),
            ("piece of identifier",  "http",                &["answer", "thinking", "tool"]),
            ("another case",         "parseHttpHeader",     &["answer", "tool"]),
            ("some of its pieces",   "http_header",         &["answer", "thinking", "tool"]),
            ("name of a tool",       "grep",                &["tool"]),
            ("path",                 "src/parser.rs",       &["tool"]),
            ("phrase",               "\"the soup\"",        &["answer"]),
            ("phrase, other order",  "\"soup the\"",        &[]),
            ("words in any order",   "soup the",            &["answer", "thinking"]),
            ("han",                  "東京",                 &["prompt"]),
            ("han, middle",          "京都",                 &["prompt"]),
            ("han, one letter",      "都",                   &["prompt"]),
            ("han, other order",     "都京",                 &[]),
            ("no substring",         "pars",                &[]),
            ("prefix",               "pars*",               &["answer", "prompt", "prompt", "thinking", "thinking", "tool", "tool"]),
            ("prefix of a piece",    "head*",               &["answer", "thinking", "tool"]),
            ("two letters at least", "p*",                  &[]),
            ("index metadata",       "kt",                  &[]),
            ("operators are words",  "parser NOT fails",    &[]),
        ];
        for (case, query, expected) in cases {
            let found = store.search(&SearchQuery::new(*query)).unwrap();
            assert_eq!(kinds(&found), *expected, "{name}: {case}");
            assert_eq!(found.count, HitCount::Exactly(expected.len()), "{name}: {case}");
        }
    });
}

#[test]
fn p4_filters_narrow_a_search() {
    each(|name, store| {
        let (first, second) = two_sessions(store);
        let parser = || SearchQuery::new("parser");
        let only = |kind| SearchQuery { scope: SearchScope::Only(kind), ..parser() };
        let model = |model: &str| SearchQuery { model: Some(model.to_owned()), ..parser() };
        let since = |hour| SearchQuery { since: Some(Time(hour * HOUR)), ..parser() };
        #[rustfmt::skip]
        let cases: Vec<(&str, SearchQuery, &[&str])> = vec![
            ("thinking",        only(HitKind::Thinking),                                 &["thinking", "thinking"]),
            ("answer",          only(HitKind::Answer),                                   &["answer"]),
            ("prompt",          only(HitKind::Prompt),                                   &["prompt"]),
            ("tool",            only(HitKind::Tool),                                     &["tool", "tool"]),
            ("model",           model("beta"),                                        &["thinking"]),
            ("model, any case", model("ALPHA"),                                       &["answer", "thinking", "tool"]),
            ("unknown model",   model("gamma"),                                       &[]),
            ("session",         SearchQuery { session: Some(second.clone()), ..parser() },  &["thinking"]),
            ("since an hour",   since(12),                                            &["answer", "thinking", "tool"]),
            ("since a day",     since(30),                                            &["thinking"]),
            ("since later",     since(99),                                            &[]),
            ("all at once",     SearchQuery { session: Some(first), since: Some(Time(11 * HOUR)), scope: SearchScope::Only(HitKind::Thinking), ..model("alpha") }, &["thinking"]),
        ];
        for (case, query, expected) in cases {
            assert_eq!(kinds(&store.search(&query).unwrap()), expected, "{name}: {case}");
        }
        let nowhere = SearchQuery { session: Some(SessionId::new("nobody")), ..parser() };
        assert!(matches!(store.search(&nowhere), Err(StoreError::NoSuchSession { .. })), "{name}");
        assert!(matches!(store.search(&SearchQuery::new(" !? ")), Err(StoreError::NothingToFind { .. })), "{name}");
    });
}

#[test]
fn p4_a_hit_has_its_position_and_a_snippet() {
    each(|name, store| {
        let (first, _) = two_sessions(store);
        let found = store
            .search(&SearchQuery { scope: SearchScope::Only(HitKind::Thinking), ..SearchQuery::new("header") })
            .unwrap();
        let [hit] = found.hits.as_slice() else { panic!("{name}: {found:?}") };
        let loaded = store.load(&first).unwrap();
        let entry = loaded.ids.iter().position(|id| *id == hit.message).expect("it is in the session");
        let block = &loaded.conversation.history.entries()[entry].message.blocks[hit.block];
        let aside_core::block::Block::Thinking(thinking) = block else { panic!("{name}: {block:?}") };
        assert_eq!(&thinking.text()[hit.match_range.clone().unwrap()], "Header", "{name}");
        assert_eq!(drawn(hit), "The parser calls readHttp[Header] first.", "{name}");
        assert_eq!((&hit.session, hit.kind, hit.at), (&first, HitKind::Thinking, Some(Time(11 * HOUR))), "{name}");
        assert_eq!(hit.model.as_deref(), Some("alpha-1"), "{name}");
        assert_eq!(hit.title.as_deref(), Some("Why does the parser fail on 東京都?"), "{name}");

        let tool = store.search(&SearchQuery::new("grep")).unwrap();
        assert_eq!(drawn(&tool.hits[0]), r#"[grep] {"pattern":"parser"}"#, "{name}");
        assert_eq!(tool.hits[0].match_range, None, "{name}: the tool's name is not in the text");
        let argument = store
            .search(&SearchQuery { scope: SearchScope::Only(HitKind::Tool), ..SearchQuery::new("pattern") })
            .unwrap();
        assert_eq!(argument.hits[0].match_range, Some(2..9), "{name}: in the arguments");
    });
}

#[test]
fn p4_few_hits_come_best_first_and_many_newest_first() {
    each(|name, store| {
        let mut history = History::new();
        for n in 0..1200 {
            let word = if n == 7 {
                "needle needle needle"
            } else if n % 100 == 0 {
                "needle"
            } else {
                "hay"
            };
            history.append(at(user(&format!("everywhere {word} {n}")), n));
        }
        store.import(&Conversation { history, ..Conversation::default() }, None).unwrap();
        let few = store.search(&SearchQuery::new("needle")).unwrap();
        assert_eq!((few.order, few.count), (HitOrder::BestFirst, HitCount::Exactly(13)), "{name}");
        assert_eq!(few.hits[0].at, Some(Time(7)), "{name}: three needles are better than one");
        let many = store.search(&SearchQuery::new("everywhere")).unwrap();
        assert_eq!((many.order, many.count), (HitOrder::NewestFirst, HitCount::AtLeast(1001)), "{name}");
        let times: Vec<u64> = many.hits.iter().map(|hit| hit.at.unwrap().0).collect();
        assert_eq!(times, (1180..1200).rev().collect::<Vec<_>>(), "{name}: the default limit is twenty");
        let three = store.search(&SearchQuery { limit: 3, ..SearchQuery::new("needle") }).unwrap();
        assert_eq!((three.hits.len(), three.count), (3, HitCount::Exactly(13)), "{name}");
    });
}

#[test]
fn p4_a_search_by_time_uses_the_time_of_imported_messages() {
    each(|name, store| {
        let import = |time: u64| {
            let mut history = History::new();
            history.append(at(user("same word"), time));
            store.import(&Conversation { history, ..Conversation::default() }, None).unwrap()
        };
        let new = import(100 * HOUR);
        import(HOUR);
        let found = store.search(&SearchQuery { since: Some(Time(99 * HOUR)), ..SearchQuery::new("word") }).unwrap();
        assert_eq!(found.hits.iter().map(|hit| &hit.session).collect::<Vec<_>>(), [&new], "{name}");
    });
}

#[test]
fn p4_a_search_by_time_misses_nothing_after_a_deletion() {
    each(|name, store| {
        let day = 24 * HOUR;
        session(store, &[at(user("word zero"), 0)]);
        let gone = session(store, &[at(user("word gone"), 0), at(user("word too"), day)]);
        store.delete(&gone).unwrap();
        let new = session(store, &[at(user("word one"), day), at(user("word two"), day)]);
        let found = store.search(&SearchQuery { since: Some(Time(day)), ..SearchQuery::new("word") }).unwrap();
        assert_eq!(found.hits.iter().map(|hit| &hit.session).collect::<Vec<_>>(), [&new, &new], "{name}");
    });
}

#[test]
fn p4_no_query_causes_an_index_error() {
    each(|name, store| {
        two_sessions(store);
        let long: String = (0..3000).map(|n| format!("word{n} ")).collect();
        assert_eq!(store.search(&SearchQuery::new(long.clone())).unwrap().count, HitCount::Exactly(0), "{name}");
        assert_eq!(store.search(&SearchQuery::new(format!("\"{long}"))).unwrap().count, HitCount::Exactly(0), "{name}");
        let mut runner = TestRunner::new(Config { cases: 150, failure_persistence: None, ..Config::default() });
        let query = prop_oneof![
            any::<String>(),
            "[a-z\"*():^+{}\\-東京 ]{0,30}",
            "(AND|OR|NOT|NEAR|words:|meta : kt| |\"){1,8}"
        ];
        runner
            .run(&query, |query| match store.search(&SearchQuery::new(query)) {
                Ok(_) | Err(StoreError::NothingToFind { .. }) => Ok(()),
                Err(error) => Err(TestCaseError::fail(error.to_string())),
            })
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    });
}

#[test]
fn p4_every_word_of_any_text_finds_its_block() {
    each(|name, store| {
        let mut runner = TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
        let words = proptest::collection::vec(
            "[a-z]{1,8}|[a-z]{2,4}_[a-z]{2,4}|[a-z]{2,4}[A-Z][a-z]{2,4}|[一-丂]{1,5}|[0-9]{1,4}|É[a-zé]{1,3}",
            1..12,
        );
        runner
            .run(&words, |words| {
                let id = store.create(&NewSession::default()).unwrap();
                let lock = store.lock_session(&id).unwrap();
                store.append(&lock, Parent::Head, &user(&words.join(" "))).unwrap();
                let all = words.join(" ");
                for asked in words.iter().chain([&all, &format!("\"{all}\""), &all.to_uppercase()]) {
                    let query = SearchQuery { session: Some(id.clone()), ..SearchQuery::new(asked.clone()) };
                    let found = store.search(&query).unwrap();
                    prop_assert_eq!(found.hits.len(), 1, "{} in {}", asked, all);
                    prop_assert!(!found.hits[0].marks.is_empty(), "{} in {} is marked", asked, all);
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    });
}

#[test]
fn p4_a_hit_says_whether_it_is_still_part_of_the_conversation() {
    each(|name, store| {
        let id = store.create(&new_session()).unwrap();
        let lock = store.lock_session(&id).unwrap();
        let first = store.append(&lock, Parent::Head, &user("the first walrus")).unwrap();
        store.append(&lock, Parent::Head, &user("an undone walrus")).unwrap();
        store.set_head(&lock, Some(first)).unwrap();
        store.append(&lock, Parent::Head, &user("another walrus")).unwrap();
        let hits = store.search(&SearchQuery::new("walrus")).unwrap().hits;
        let mut found: Vec<_> = hits.iter().map(|hit| (hit.snippet.as_str(), hit.is_current)).collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [("an undone walrus", false), ("another walrus", true), ("the first walrus", true)],
            "{name}"
        );
        store.set_head(&lock, None).unwrap();
        assert!(store.search(&SearchQuery::new("walrus")).unwrap().hits.iter().all(|hit| !hit.is_current), "{name}");
    });
}
