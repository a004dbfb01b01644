//! Recorded conversations: what real clients sent back, and what real providers
//! had sent. The recordings are in the folder that `ASIDE_CORPUS` names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aside_core::block::Seal;
use aside_core::dialect::Dialect;
use aside_core::{
    Arguments, Block, Decoder, Dialects, Fold, Message, Origin, Protocol, Role, Settings, ThinkingContent, ToolCall,
    read_request,
};
use aside_memory::{Memory, StoreKey, Tenant};

use super::never_wrong::{CHANGES, Sent, Tally, check, print, truth_of};
use super::support::*;

/// Conversations that differ from the recorded ones in their thinking.
const LOOK_ALIKES: usize = 1_000;

/// One recorded exchange.
struct Exchange {
    asked: Vec<Message>,
    reply: Message,
}

/// One recorded conversation, with the dialect of its provider.
struct Recording {
    name: String,
    target: Target,
    exchanges: Vec<Exchange>,
}

fn dialect_of<'d>(dialects: &'d Dialects, provider: &str, protocol: Protocol) -> Option<&'d Dialect> {
    let own = dialects.get(provider).filter(|dialect| dialect.protocol == protocol);
    own.or_else(|| dialects.generic(protocol))
}

fn read(folder: &Path) -> Option<Recording> {
    let meta: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("meta.json")).ok()?).ok()?;
    let protocol = match meta["protocol"].as_str()? {
        "openai-chat" => Protocol::OpenaiChat,
        "openai-responses" => Protocol::OpenaiResponses,
        "anthropic" => Protocol::Anthropic,
        "gemini" => Protocol::Gemini,
        "ollama" => Protocol::Ollama,
        "bedrock" => Protocol::Bedrock,
        "cohere" => Protocol::Cohere,
        _ => return None,
    };
    let (provider, model) = (meta["provider"].as_str()?.to_owned(), meta["model"].as_str()?.to_owned());
    let dialects = dialects();
    let dialect = dialect_of(&dialects, &provider, protocol)?;
    let id = dialect.id.clone();
    let origin = Origin::default().with_provider(provider).with_dialect(id.clone()).with_model(model.clone());
    let mut exchanges = Vec::new();
    for turn in 1.. {
        let Ok(body) = std::fs::read_to_string(folder.join(format!("turn{turn}.request.json"))) else { break };
        let rules = dialect.rules(Some(&model));
        let Ok(request) = read_request(protocol, rules, &body) else { break };
        let response = ["sse", "json", "ndjson", "eventstream"]
            .iter()
            .find_map(|end| std::fs::read(folder.join(format!("turn{turn}.response.{end}"))).ok());
        let Some(response) = response else { break };
        let (mut decoder, mut fold) = (Decoder::new(protocol, rules), Fold::new());
        decoder.push(&response, &mut fold);
        if decoder.finish(&mut fold).is_err() {
            break;
        }
        let reply = Message::from_reply(fold.finish(), Some(origin.clone()));
        exchanges.push(Exchange { asked: request.messages, reply });
    }
    let target = Target { dialects, dialect: id, model, origin, settings: Settings::new(), tools: Target::tools() };
    Some(Recording { name: folder.file_name()?.to_string_lossy().into_owned(), target, exchanges })
}

/// The history that the client of an exchange sent, and the thinking that each of
/// its replies had.
fn sent(exchanges: &[Exchange], at: usize) -> Sent {
    let exchange = &exchanges[at];
    let mut sent = Sent::lost(&exchange.asked);
    let mut next = 0;
    for (message, truth) in exchange.asked.iter().zip(&mut sent.truth) {
        *truth = None;
        let earlier = (next..at).find(|reply| is_same(message, &exchanges[*reply].reply));
        if let Some(earlier) = earlier.filter(|_| message.role == Role::Assistant) {
            next = earlier + 1;
            *truth = Some(truth_of(&exchanges[earlier].reply));
        }
    }
    sent
}

/// The same conversation, with other thinking that looks the same to its user.
fn with_other_thinking(exchanges: &[Exchange], owner: &str, question: Question) -> Vec<Exchange> {
    let other_seal = |seal: &mut Seal| seal.payload.push_str(&owner.replace(' ', ""));
    let other = |exchange: &Exchange| {
        let mut reply = exchange.reply.clone();
        for block in &mut reply.blocks {
            match block {
                Block::Thinking(thinking) => {
                    thinking.native = None;
                    thinking.items.clear();
                    match &mut thinking.content {
                        ThinkingContent::Open { text } => text.push_str(owner),
                        ThinkingContent::Sealed { text, seals } => {
                            text.push_str(owner);
                            seals.signature.iter_mut().chain(&mut seals.encrypted).for_each(other_seal);
                        }
                        ThinkingContent::Hidden { seals } => {
                            seals.signature.iter_mut().chain(&mut seals.encrypted).for_each(other_seal);
                        }
                    }
                }
                Block::Text(text) => text.seal.iter_mut().for_each(other_seal),
                Block::ToolCall(call) => call.seal.iter_mut().for_each(other_seal),
                Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
            }
        }
        let mut asked = exchange.asked.clone();
        if let (Question::Other, Some(first)) = (question, asked.iter_mut().find(|each| each.role == Role::User)) {
            first.blocks.push(text(owner));
        }
        Exchange { asked, reply }
    };
    exchanges.iter().map(other).collect()
}

/// Whether a look-alike begins with the same question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Same,
    Other,
}

/// Whether a client's message is this reply: it has its calls, or its text.
fn is_same(sent: &Message, reply: &Message) -> bool {
    let shown = |message: &Message| {
        let (mut calls, mut words) = (Vec::new(), String::new());
        for block in &message.blocks {
            match block {
                Block::ToolCall(call) => calls.push((call.id.as_str().to_owned(), call_value(call))),
                Block::Text(text) => words.push_str(text.text.trim()),
                Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
            }
        }
        (calls, words)
    };
    let ((sent_calls, sent_words), (calls, words)) = (shown(sent), shown(reply));
    if calls.is_empty() {
        return sent_calls.is_empty() && sent_words == words;
    }
    // Some protocols have no ids.
    let same_id = calls.iter().any(|(id, _)| sent_calls.iter().any(|(sent, _)| sent == id));
    same_id || calls.iter().map(|(_, call)| call).eq(sent_calls.iter().map(|(_, call)| call))
}

fn call_value(call: &ToolCall) -> (String, serde_json::Value) {
    let arguments = match &call.arguments {
        Arguments::Json(json) => serde_json::from_str(json).unwrap(),
        Arguments::Broken(text) => text.clone().into(),
    };
    (call.name.clone(), arguments)
}

async fn remember(memory: &Memory, tenant: &Arc<Tenant>, target: &Target, exchanges: &[Exchange]) {
    for exchange in exchanges {
        let asked = all_without_thinking(&exchange.asked);
        let restored = target.restore(memory, tenant, &asked, None).await;
        memory.begin(tenant, &restored).finish(exchange.reply.clone(), NOW).durable().await;
    }
}

/// Everything that the test needs, for tasks that run at the same time.
struct Setting {
    memory: Memory,
    local: Arc<Tenant>,
    other: Arc<Tenant>,
    recordings: Vec<Recording>,
    /// The same conversations of the other tenant.
    others: Vec<Vec<Exchange>>,
}

impl Setting {
    async fn remember(&self, at: usize) {
        let target = &self.recordings[at].target;
        remember(&self.memory, &self.local, target, &self.recordings[at].exchanges).await;
        remember(&self.memory, &self.other, target, &self.others[at]).await;
    }

    /// Remembers conversations with the same call ids: every second recording has some
    /// that are equal in all that their user sees.
    async fn remember_look_alikes(&self, at: usize) {
        let recording = &self.recordings[at];
        for n in (0..LOOK_ALIKES).filter(|n| n % self.recordings.len() == at) {
            let question = if at % 2 == 1 && n % 3 == 0 { Question::Same } else { Question::Other };
            let alike = with_other_thinking(&recording.exchanges, &format!(" look-alike {n}"), question);
            remember(&self.memory, &self.local, &recording.target, &alike).await;
        }
    }

    /// Sends a recording back in every way, as both tenants.
    async fn check(&self, at: usize) -> BTreeMap<&'static str, Tally> {
        let recording = &self.recordings[at];
        let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
        for (tenant, exchanges) in [(&self.local, &recording.exchanges), (&self.other, &self.others[at])] {
            for (at, (name, change)) in (1..exchanges.len()).flat_map(|at| CHANGES.map(|change| (at, change))) {
                let mut sent = sent(exchanges, at);
                change(&mut sent);
                let name_of_case = format!("{} of {}, turn {}, {name}", recording.name, tenant.name(), at + 1);
                let tally = tallies.entry(name).or_default();
                check(&recording.target, &self.memory, tenant, &sent, None, &name_of_case, tally).await;
            }
        }
        tallies
    }
}

/// What is done with each recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Remember,
    RememberLookAlikes,
    Check,
}

/// Works on all recordings, on many at a time, because each waits for the store.
async fn on_all(setting: &Arc<Setting>, work: Work) -> BTreeMap<&'static str, Tally> {
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..setting.recordings.len() {
        let setting = Arc::clone(setting);
        tasks.spawn(async move {
            match work {
                Work::Remember => setting.remember(at).await,
                Work::RememberLookAlikes => setting.remember_look_alikes(at).await,
                Work::Check => return setting.check(at).await,
            }
            BTreeMap::new()
        });
    }
    let mut all: BTreeMap<&str, Tally> = BTreeMap::new();
    for (name, tally) in tasks.join_all().await.into_iter().flatten() {
        all.entry(name).or_default().add(&tally);
    }
    all
}

fn recordings(corpus: &Path) -> Vec<Recording> {
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(corpus.join("cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let recordings = folders.iter().filter_map(|folder| read(folder));
    let recordings: Vec<Recording> = recordings.filter(|each| each.exchanges.len() > 1).collect();
    assert!(recordings.len() > 50, "only {} conversations", recordings.len());
    recordings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g2_never_a_wrong_thought_in_recorded_conversations() {
    let Some(corpus) = std::env::var_os("ASIDE_CORPUS").map(PathBuf::from) else {
        println!("ASIDE_CORPUS is not set: nothing to check");
        return;
    };
    let recordings = recordings(&corpus);
    let (place, key) = (Folder::new("recorded"), StoreKey::generate());
    let memory = open(&place, &key).await;
    let owner = " of the other tenant";
    let others = recordings.iter().map(|each| with_other_thinking(&each.exchanges, owner, Question::Same)).collect();
    let (local, other) = (memory.tenant("local", NOW).await.unwrap(), memory.tenant("other", NOW).await.unwrap());
    let setting = Arc::new(Setting { memory, local, other, recordings, others });
    for (company, work) in [("alone", Work::Remember), ("among look-alikes", Work::RememberLookAlikes)] {
        on_all(&setting, work).await;
        let tallies = on_all(&setting, Work::Check).await;
        print(&format!("{} recorded conversations of two tenants, {company}", setting.recordings.len()), &tallies);
        let restored: usize = tallies.values().map(|tally| tally.restored).sum();
        assert!(restored > 0, "nothing was restored, so nothing was checked");
    }
}
