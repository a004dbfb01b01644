//! Wrong thinking is never restored: conversations that look alike, changed in every way that
//! clients change them. A turn gets its own thinking back, or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use aside_core::{Arguments, Block, CallId, Message, Role, ToolCall};
use aside_memory::{Memory, StoreKey, Tenant};

use super::support::*;

/// The conversations of the first tenant. The second one has the first of them,
/// with other thinking.
const LOOK_ALIKES: usize = 1_000;
/// How many of them are sent back. The others are only remembered.
const CHECKED: usize = 24;

/// A history as a client sends it. Each message has the thinking that it should
/// get back; none for messages that were never remembered.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) messages: Vec<Message>,
    pub(super) truth: Vec<Option<Truth>>,
}

/// The thinking of a reply: texts and opaque payloads, in order.
pub(super) type Truth = Vec<String>;

pub(super) fn truth_of(message: &Message) -> Truth {
    let mut truth = Vec::new();
    for block in &message.blocks {
        match block {
            Block::Thinking(thinking) => {
                truth.push(thinking.text().to_owned());
                let seals =
                    thinking.seals().into_iter().flat_map(|seals| seals.signature.iter().chain(&seals.encrypted));
                truth.extend(seals.map(|seal| seal.payload.clone()));
            }
            Block::Text(text) => truth.extend(text.seal.iter().map(|seal| seal.payload.clone())),
            Block::ToolCall(call) => truth.extend(call.seal.iter().map(|seal| seal.payload.clone())),
            Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
        }
    }
    truth
}

impl Sent {
    /// What a client sends that keeps only what it shows.
    pub(super) fn lost(messages: &[Message]) -> Sent {
        let truth =
            messages.iter().map(|message| (message.role == Role::Assistant).then(|| truth_of(message))).collect();
        Sent { messages: all_without_thinking(messages), truth }
    }

    fn remove(&mut self, range: std::ops::Range<usize>) {
        self.messages.drain(range.clone());
        self.truth.drain(range);
    }

    fn insert(&mut self, at: usize, message: Message) {
        self.messages.insert(at, message);
        self.truth.insert(at, None);
    }

    fn each_text(&mut self, role: Role, change: impl Fn(&str) -> Vec<String>) {
        for message in self.messages.iter_mut().filter(|message| message.role == role) {
            let blocks = std::mem::take(&mut message.blocks);
            message.blocks = blocks
                .into_iter()
                .flat_map(|block| match block {
                    Block::Text(old) => change(&old.text).iter().map(|new| text(new)).collect(),
                    other @ (Block::Thinking(_)
                    | Block::ToolCall(_)
                    | Block::ToolResult(_)
                    | Block::Media(_)
                    | Block::Unmodelled(_)) => vec![other],
                })
                .collect();
        }
    }

    fn each_call(&mut self, mut change: impl FnMut(&mut ToolCall)) {
        for block in self.messages.iter_mut().flat_map(|message| &mut message.blocks) {
            if let Block::ToolCall(call) = block {
                change(call);
            }
        }
    }

    fn rename_ids(&mut self, rename: impl Fn(usize, &str) -> String) {
        let (mut n, mut names) = (0, BTreeMap::new());
        for block in self.messages.iter_mut().flat_map(|message| &mut message.blocks) {
            match block {
                Block::ToolCall(call) => {
                    let new = rename(n, call.id.as_str());
                    n += 1;
                    names.insert(call.id.as_str().to_owned(), new.clone());
                    call.id = CallId::Given(new);
                }
                Block::ToolResult(result) => result.id = names.get(&result.id).cloned().unwrap_or_default(),
                Block::Text(_) | Block::Thinking(_) | Block::Media(_) | Block::Unmodelled(_) => (),
            }
        }
    }

    fn first_answer_end(&self) -> usize {
        let second_question = self.messages.iter().skip(1).position(|message| message.role != Role::Assistant);
        second_question.map_or(0, |at| at + 1)
    }
}

type Change = fn(&mut Sent);

/// Every way in which clients change a history.
#[rustfmt::skip]
pub(super) const CHANGES: [(&str, Change); 26] = [
    ("thinking dropped",         |_| ()),
    ("arguments rewritten",      |sent| sent.each_call(rewrite_arguments)),
    ("text trimmed",             |sent| sent.each_text(Role::Assistant, |text| vec![text.trim().to_owned()])),
    ("space added",              |sent| sent.each_text(Role::Assistant, |text| vec![format!("\n{text} \n")])),
    ("text split into parts",    |sent| sent.each_text(Role::Assistant, halves)),
    ("parts merged",             |sent| merge_text(sent)),
    ("empty parts added",        |sent| sent.each_text(Role::Assistant, |text| vec![String::new(), text.to_owned(), String::new()])),
    ("empty text beside calls",  |sent| for message in sent.messages.iter_mut().filter(|message| message.has_calls()) { message.blocks.insert(0, text("")); }),
    ("ids cut to 40 characters", |sent| sent.rename_ids(|_, id| id.chars().take(40).collect())),
    ("one id for all calls",     |sent| sent.rename_ids(|_, _| "call_1".to_owned())),
    ("Windows line ends",        |sent| { sent.each_text(Role::User, |text| vec![text.replace('\n', "\r\n")]); sent.each_text(Role::Assistant, |text| vec![text.replace('\n', "\r\n")]); }),
    ("tags added",               |sent| sent.each_text(Role::Assistant, |text| vec![format!("<think>shown</think>\n{text}")])),
    ("details added",            |sent| sent.each_text(Role::Assistant, |text| vec![format!("<details type=\"reasoning\" done=\"true\">x</details>\n{text}")])),
    ("ids renamed to counters",  |sent| sent.rename_ids(|n, _| format!("call_{n}"))),
    ("ids renamed at random",    |sent| sent.rename_ids(|n, id| format!("tooluse_{n}{}a7F2", id.len()))),
    ("ids cut",                  |sent| sent.rename_ids(|_, id| id.chars().take(6).collect())),
    ("system prompt changed",    |sent| sent.insert(0, Message::new(Role::System, vec![text("Today is Monday.")]))),
    ("reminders added",          |sent| sent.each_text(Role::User, |text| vec![text.to_owned(), "\n<system-reminder>12:00</system-reminder>".to_owned()])),
    ("first message cut",        |sent| sent.remove(0..1)),
    ("first turn cut",           |sent| { let end = sent.first_answer_end(); sent.remove(0..end); }),
    ("compacted",                |sent| { let end = sent.first_answer_end(); sent.remove(0..end); sent.insert(0, user("Summary of the conversation so far.")); }),
    ("questions changed",        |sent| sent.each_text(Role::User, |text| vec![format!("Please: {text}")])),
    ("text beside calls dropped", drop_text_beside_calls),
    ("results repeated",         |sent| for message in sent.messages.iter_mut().filter(|message| message.role == Role::Tool) { message.blocks.extend_from_within(..); }),
    ("answers cut short",        |sent| sent.each_text(Role::Assistant, |text| vec![text.chars().take(70).collect()])),
    ("last messages dropped",    |sent| { let end = sent.messages.len(); let start = end.saturating_sub(2).max(1); sent.remove(start..end); sent.insert(start, user("Go on.")); }),
];

fn rewrite_arguments(call: &mut ToolCall) {
    if let Arguments::Json(json) = &call.arguments
        && let Ok(serde_json::Value::Object(members)) = serde_json::from_str(json)
    {
        // Another order, more space, other numbers.
        let members: Vec<String> = members
            .iter()
            .rev()
            .map(|(name, value)| match value.as_i64() {
                Some(number) => format!("{name:?} : {number}.0"),
                None => format!("{name:?} : {value}"),
            })
            .collect();
        call.arguments = Arguments::Json(format!("{{ {} }}", members.join(" , ")));
    }
}

fn halves(text: &str) -> Vec<String> {
    let half = text.chars().count() / 2;
    vec![text.chars().take(half).collect(), text.chars().skip(half).collect()]
}

/// All text of a message as one part, before its calls.
fn merge_text(sent: &mut Sent) {
    for message in sent.messages.iter_mut().filter(|message| message.role == Role::Assistant) {
        let mut words = String::new();
        message.blocks.retain(|block| match block {
            Block::Text(text) => {
                words.push_str(&text.text);
                false
            }
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => {
                true
            }
        });
        if !words.is_empty() {
            message.blocks.insert(0, text(&words));
        }
    }
}

fn drop_text_beside_calls(sent: &mut Sent) {
    for message in sent.messages.iter_mut().filter(|message| message.has_calls()) {
        message.blocks.retain(|block| !matches!(block, Block::Text(_)));
    }
}

/// How often a change left something to restore.
#[derive(Default)]
pub(super) struct Tally {
    wanted: usize,
    pub(super) restored: usize,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.wanted += other.wanted;
        self.restored += other.restored;
    }
}

/// Sends a history back, and checks every turn.
pub(super) async fn check(
    target: &Target,
    memory: &Memory,
    tenant: &Arc<Tenant>,
    sent: &Sent,
    session: Option<&str>,
    name: &str,
    tally: &mut Tally,
) {
    let restored = target.restore(memory, tenant, &sent.messages, session).await;
    let refs: Vec<&Message> = sent.messages.iter().collect();
    let view = restored.view(&refs);
    for turn in &restored.turns {
        if turn.demand == aside_core::ThinkingDemand::Unwanted {
            continue;
        }
        let got = truth_of(view[turn.message]);
        let truth = sent.truth[turn.message].as_ref();
        tally.wanted += usize::from(truth.is_some_and(|truth| !truth.is_empty()));
        if got.is_empty() {
            continue;
        }
        assert_eq!(Some(&got), truth, "{name}: message {} got another thought by {:?}", turn.message, turn.evidence);
        tally.restored += 1;
    }
}

pub(super) fn print(title: &str, tallies: &BTreeMap<&str, Tally>) {
    println!("{title}");
    for (name, _) in CHANGES {
        if let Some(Tally { wanted, restored }) = tallies.get(name) {
            println!("  {name:<28} {restored:>5} of {wanted}");
        }
    }
}

/// One of many conversations that look alike. Each has its own thinking.
fn look_alike(n: usize, sealed: bool, owner: &str) -> Vec<Message> {
    let thought = |turn: usize| {
        let words = format!("thought {turn} of conversation {n} of {owner}");
        if sealed { sealed_thinking(&words, &format!("Eq{turn}x{n}x{owner}Signature")) } else { open_thinking(&words) }
    };
    // A sixth of them is equal in everything. The others differ in one place each.
    let own = |kind: usize, words: &str| if n % 6 == kind { format!("{words} ({n})") } else { words.to_owned() };
    let id = if n.is_multiple_of(2) { "call_1" } else { "call_00_x8Bq2LmVf3kZ" };
    vec![
        user(&own(1, "How deep is berth 4?")),
        assistant(vec![
            thought(1),
            text("Let me look."),
            call(id, "depth", &format!(r#"{{"berth":4,"at":"{}"}}"#, own(2, "low water"))),
        ]),
        result(id, &own(3, "4 m")),
        assistant(vec![
            thought(2),
            text(&own(4, "Berth 4 is four metres deep at low water.\nDo you need the depth at high water as well?")),
        ]),
        user(&own(5, "Yes.")),
        assistant(vec![thought(3), call("functions.depth:0", "depth", r#"{"berth":4,"at":"high water"}"#)]),
        result("functions.depth:0", "6 m"),
    ]
}

async fn never_wrong_among_look_alikes(dialect: &'static str, model: &'static str, sealed: bool) {
    let (folder, key) = (Folder::new("look-alikes"), StoreKey::generate());
    let memory = open(&folder, &key).await;
    let target = Arc::new(Target::new(dialect, model));
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for (owner, n_conversations) in [("a", LOOK_ALIKES), ("b", LOOK_ALIKES / 10)] {
        let tenant = memory.tenant(owner, NOW).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for part in 0..32 {
            let (memory, target, tenant) = (memory.clone(), Arc::clone(&target), Arc::clone(&tenant));
            tasks.spawn(async move {
                for n in (0..n_conversations).filter(|n| n % 32 == part) {
                    let session = format!("session {}", n % 100);
                    target.remember(&memory, &tenant, &look_alike(n, sealed, tenant.name()), Some(&session)).await;
                }
            });
        }
        tasks.join_all().await;
    }
    for owner in ["a", "b"] {
        let tenant = memory.tenant(owner, NOW).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..CHECKED {
            let (memory, target, tenant) = (memory.clone(), Arc::clone(&target), Arc::clone(&tenant));
            tasks.spawn(async move {
                let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
                let original = Sent::lost(&look_alike(n, sealed, owner));
                for (name, change) in CHANGES {
                    let mut sent = original.clone();
                    change(&mut sent);
                    // Its own session, none, and that of another conversation.
                    let (own, other) = (format!("session {}", n % 100), format!("session {}", (n + 1) % 100));
                    for session in [Some(own.as_str()), None, Some(other.as_str())] {
                        check(&target, &memory, &tenant, &sent, session, name, tallies.entry(name).or_default()).await;
                    }
                }
                tallies
            });
        }
        for (name, tally) in tasks.join_all().await.into_iter().flatten() {
            tallies.entry(name).or_default().add(&tally);
        }
    }
    print(
        &format!("{dialect}: {LOOK_ALIKES} look-alikes of two tenants, {CHECKED} sent back in three sessions"),
        &tallies,
    );
    let restored: usize = tallies.values().map(|tally| tally.restored).sum();
    assert!(restored > 0, "nothing was restored, so nothing was checked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g2_never_a_wrong_thought_among_look_alikes_without_seals() {
    never_wrong_among_look_alikes("deepseek", "deepseek-v4-pro", false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g2_never_a_wrong_thought_among_look_alikes_with_seals() {
    never_wrong_among_look_alikes("anthropic", "claude-sonnet-4-5", true).await;
}
