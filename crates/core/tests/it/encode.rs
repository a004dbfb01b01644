//! What is sent back to a provider, by the rules of the seeds. The dialects are made
//! for the tests: each has only what its rule needs.

use aside_core::block::{Arguments, Block, CallId, Origin, Text, Thinking, ThinkingContent, ToolCall, ToolResult};
use aside_core::conversation::ToolSpec;
use aside_core::dialect::{DialectSource, Dialects, Repair};
use aside_core::history::{EntryId, History};
use aside_core::message::{Message, Role};
use aside_core::rules::{AppliedRepair, EgressAction, classify, next_repair};
use aside_core::settings::{Layer, Settings};
use aside_core::wire::{Encoded, Encoder, Request, encode};
use serde_json::{Value, json};

const ACME: &str = r#"
id = "acme"
protocol = "openai-chat"
[echo]
carrier = "field"
field = "reasoning_content"
loop = "must"
turns = "should"
"#;

/// A request to a dialect made for the test.
struct EncodeSetup {
    dialects: Dialects,
    settings: Settings,
    tools: Vec<ToolSpec>,
    repairs: Vec<AppliedRepair>,
}

impl EncodeSetup {
    fn new(dialect: &str) -> EncodeSetup {
        let sources = [DialectSource { path: "acme.toml", text: dialect }];
        let dialects = Dialects::with_user_files(&sources).unwrap_or_else(|error| panic!("{error}"));
        let tool = ToolSpec::new("get", "d", r#"{"type":"object"}"#);
        EncodeSetup { dialects, settings: Settings::new(), tools: vec![tool], repairs: Vec::new() }
    }

    /// Sets a value in the user's session layer.
    fn set(mut self, key: &str, value: &str) -> EncodeSetup {
        self.settings.set(Layer::Session, key, value).unwrap();
        self
    }

    fn encode(&self, messages: &[Message]) -> Encoded {
        self.request(messages, encode)
    }

    fn request<T>(&self, messages: &[Message], build: impl FnOnce(&Request<'_>) -> T) -> T {
        let messages: Vec<&Message> = messages.iter().collect();
        let target = Origin::default().with_provider("acme".to_owned());
        build(
            &Request::new(&self.dialects, self.dialects.get("acme").unwrap(), "m1", &target, &self.settings)
                .with_messages(&messages)
                .with_tools(&self.tools)
                .with_repairs(&self.repairs),
        )
    }

    /// The thinking field of each assistant message; `-` for no field.
    fn fields(&self, messages: &[Message]) -> Vec<String> {
        let body: Value = serde_json::from_str(&self.encode(messages).body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let assistants = messages.iter().filter(|message| message["role"] == "assistant");
        assistants
            .map(|message| {
                message.get("reasoning_content").map_or("-".into(), |field| field.as_str().unwrap().to_owned())
            })
            .collect()
    }
}

fn acme() -> Origin {
    Origin::default().with_provider("acme".to_owned()).with_dialect("acme".to_owned()).with_model("m1".to_owned())
}

fn thinking_block(text: &str) -> Block {
    Block::Thinking(Thinking::new(ThinkingContent::Open { text: text.into() }, "reasoning_content"))
}

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.into(), ..Text::default() })
}

fn call(id: &str) -> Block {
    Block::ToolCall(ToolCall::new(CallId::Given(id.into()), "get", Arguments::Json(r#"{"k":1}"#.into())))
}

fn user(words: &str) -> Message {
    Message::new(Role::User, vec![text(words)])
}

fn assistant(blocks: Vec<Block>) -> Message {
    Message { origin: Some(acme()), ..Message::new(Role::Assistant, blocks) }
}

fn result(id: &str) -> Message {
    let result =
        ToolResult { id: id.into(), name: "get".into(), content: "42".into(), is_error: false, media: Vec::new() };
    Message::new(Role::Tool, vec![Block::ToolResult(result)])
}

/// Three turns, each with thinking and a response, and a question.
fn three_turns() -> Vec<Message> {
    let turn =
        |n: usize| [user(&format!("q{n}")), assistant(vec![thinking_block(&format!("T{n}")), text(&format!("R{n}"))])];
    (1..=3).flat_map(turn).chain([user("q4")]).collect()
}

/// A question with an open tool loop.
fn open_loop() -> Vec<Message> {
    vec![
        user("q1"),
        assistant(vec![thinking_block("T1"), text("R1")]),
        user("q2"),
        assistant(vec![thinking_block("T2"), call("c1")]),
        result("c1"),
    ]
}

#[test]
fn seed_001_worked_example_of_strip_and_include() {
    #[rustfmt::skip]
    let cases = [
        ("allButLast", "true",  ["-", "-", "T3"]),
        ("allButLast", "false", ["-", "-", "-"]),
        ("none",       "true",  ["T1", "T2", "T3"]),
        ("all",        "true",  ["-", "-", "-"]),
        ("none",       "false", ["-", "-", "-"]),
    ];
    for (strip, include, expected) in cases {
        let setup =
            EncodeSetup::new(ACME).set("reasoning.stripFromContext", strip).set("reasoning.includeInContext", include);
        assert_eq!(setup.fields(&three_turns()), expected, "strip {strip}, include {include}");
    }
}

#[test]
fn br_001_req_think_004_4_nothing_is_included_by_default() {
    assert_eq!(EncodeSetup::new(ACME).fields(&three_turns()), ["-", "-", "-"]);
}

#[test]
fn req_think_004_3_dialect_data_includes_without_any_setting() {
    let including = ACME.replace("[echo]", "[echo]\ninclude = true");
    assert_eq!(EncodeSetup::new(&including).fields(&three_turns()), ["T1", "T2", "T3"]);
    let user = EncodeSetup::new(&including).set("reasoning.includeInContext", "false");
    assert_eq!(user.fields(&three_turns()), ["-", "-", "-"], "the user's setting wins over the data");
}

#[test]
fn br_005_strip_comes_before_include_and_spares_the_open_loop() {
    let setup =
        EncodeSetup::new(ACME).set("reasoning.stripFromContext", "all").set("reasoning.includeInContext", "true");
    assert_eq!(setup.fields(&open_loop()), ["-", "T2"]);
    let rules: Vec<String> =
        setup.encode(&open_loop()).decisions.iter().map(|decision| decision.reason.rule()).collect();
    assert!(rules.contains(&"the open tool loop is never stripped".to_owned()), "{rules:?}");
}

#[test]
fn ec_006_thinking_goes_with_the_call_it_led_to() {
    let setup = EncodeSetup::new(ACME).set("reasoning.includeInContext", "true");
    let body: Value = serde_json::from_str(&setup.encode(&open_loop()).body).unwrap();
    let step = &body["messages"][3];
    assert_eq!(step["reasoning_content"], "T2");
    assert_eq!(step["tool_calls"][0]["id"], "c1");
    assert_eq!(step["tool_calls"][0]["function"]["arguments"], r#"{"k":1}"#);
    assert_eq!(body["messages"][4], json!({"role": "tool", "tool_call_id": "c1", "content": "42"}));
}

#[test]
fn ec_007_an_empty_field_is_left_out_unless_it_is_demanded() {
    let messages = [user("q"), assistant(vec![text("R")]), user("q2")];
    assert_eq!(EncodeSetup::new(ACME).fields(&messages), ["-"]);
    let demanding = format!("{ACME}fill_empty = \"all\"\n");
    assert_eq!(EncodeSetup::new(&demanding).fields(&messages), [""]);
    assert_eq!(EncodeSetup::new(&demanding).set("reasoning.sendEmpty", "space").fields(&messages), [" "]);
    let spaced = format!("{ACME}fill_empty = \"all\"\nfill = \" \"\n");
    assert_eq!(EncodeSetup::new(&spaced).fields(&messages), [" "]);
    let with_calls = format!("{ACME}fill_empty = \"with_tool_calls\"\n");
    let messages = [user("q"), assistant(vec![text("R")]), user("q"), assistant(vec![call("c1")]), result("c1")];
    assert_eq!(EncodeSetup::new(&with_calls).fields(&messages), ["-", ""]);
}

#[test]
fn e13_withheld_thinking_is_replaced_by_the_filler_and_never_sent() {
    let demanding = format!("{ACME}fill_empty = \"all\"\ninclude = true\n");
    let setup = EncodeSetup::new(&demanding).set("reasoning.includeInContext", "false");
    assert_eq!(setup.fields(&open_loop()), ["", ""]);
    let encoded = setup.encode(&open_loop());
    assert!(!encoded.body.contains("T1") && !encoded.body.contains("T2"));
    assert_eq!(encoded.decisions.iter().filter(|decision| decision.action == EgressAction::Filler).count(), 2);
    assert_eq!(encoded.notes.len(), 1, "one note reports it: {:?}", encoded.notes);
}

#[test]
fn br_006_when_switched_off_no_thinking_is_sent_but_an_open_loop_is_completed() {
    let setup = EncodeSetup::new(ACME).set("reasoning.includeInContext", "true").set("reasoning.enabled", "false");
    assert_eq!(setup.fields(&three_turns()), ["-", "-", "-"]);
    assert_eq!(setup.fields(&open_loop()), ["-", "T2"]);
}

#[test]
fn br_002_br_009_ec_004_settings_decide_what_is_sent_and_touch_nothing_stored() {
    let messages = three_turns();
    let before = messages.clone();
    let setup = EncodeSetup::new(ACME).set("reasoning.includeInContext", "true");
    assert_eq!(setup.fields(&messages), ["T1", "T2", "T3"]);
    // Settings are read for each request: new ones apply to old data at once (BR-008).
    let setup = setup.set("reasoning.stripFromContext", "all");
    assert_eq!(setup.fields(&messages), ["-", "-", "-"]);
    let setup = setup.set("reasoning.stripFromContext", "none");
    assert_eq!(setup.fields(&messages), ["T1", "T2", "T3"]);
    assert_eq!(messages, before);
}

#[test]
fn req_think_002_helpers_extract_join_and_estimate() {
    let message = assistant(vec![thinking_block("a"), text("R"), thinking_block("b"), call("c1")]);
    assert_eq!(message.thinking().map(Thinking::text).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(message.thinking_text().as_deref(), Some("ab"));
    assert_eq!(assistant(vec![text("R")]).thinking_text(), None);
    assert!(aside_core::tokens::estimate("some words of a thought") >= 5);
}

#[test]
fn duties_across_turns_and_in_the_loop() {
    #[rustfmt::skip]
    let cases = [
        ("should, should",            "loop = \"should\"\nturns = \"should\"",      ["T1", "T2"]),
        ("dropped across turns",      "loop = \"must\"\nturns = \"forbidden\"",     ["-", "T2"]),
        ("ignored may be sent",       "loop = \"must\"\nturns = \"ignored\"",       ["T1", "T2"]),
        ("never",                     "loop = \"forbidden\"\nturns = \"forbidden\"", ["-", "-"]),
    ];
    for (name, duties, expected) in cases {
        let dialect = format!(
            "id = \"acme\"\nprotocol = \"openai-chat\"\n[echo]\ncarrier = \"field\"\nfield = \"reasoning_content\"\n{duties}\n"
        );
        assert_eq!(
            EncodeSetup::new(&dialect).set("reasoning.includeInContext", "true").fields(&open_loop()),
            expected,
            "{name}"
        );
    }
    // Unless the user decides, ignored thinking is not sent: that saves tokens.
    let saving = ACME.replace("turns = \"should\"", "turns = \"ignored\"\ninclude = true");
    assert_eq!(EncodeSetup::new(&saving).fields(&open_loop()), ["-", "T2"]);
    let tools = format!("{ACME}turns_if = \"tools\"\ninclude = true\n");
    let mut setup = EncodeSetup::new(&tools);
    assert_eq!(setup.fields(&three_turns()), ["T1", "T2", "T3"]);
    setup.tools.clear();
    assert_eq!(setup.fields(&three_turns()), ["-", "-", "-"]);
}

#[test]
fn the_switch_that_keeps_history_is_sent_when_history_is() {
    let flagged = format!("{ACME}turns_if = \"flag\"\nflag = {{ thinking = {{ keep = \"all\" }} }}\n");
    let setup = EncodeSetup::new(&flagged).set("reasoning.includeInContext", "true");
    let body = |messages: &[Message]| serde_json::from_str::<Value>(&setup.encode(messages).body).unwrap();
    assert_eq!(body(&three_turns())["thinking"]["keep"], "all");
    assert_eq!(body(&[user("q")]).get("thinking"), None);
}

#[test]
fn e8_thinking_of_another_provider_is_not_sent_but_is_sent_to_its_own_again() {
    let foreign = Origin::default().with_dialect("other".to_owned());
    let mut messages = three_turns();
    messages[1].origin = Some(foreign);
    messages[3].origin = None;
    let setup = EncodeSetup::new(ACME).set("reasoning.includeInContext", "true");
    assert_eq!(setup.fields(&messages), ["-", "-", "T3"]);
    let encoded = setup.encode(&messages);
    // The answer is part of the conversation; its thinking is not sent.
    assert!(encoded.body.contains("R1") && !encoded.body.contains("T1"));
    messages[1].origin = Some(acme());
    assert_eq!(setup.fields(&messages), ["T1", "-", "T3"]);
}

#[test]
fn e12_the_same_history_gives_the_same_bytes_and_a_longer_one_keeps_the_prefix() {
    let setup = EncodeSetup::new(ACME).set("reasoning.includeInContext", "true");
    let short = setup.encode(&three_turns()).body;
    assert_eq!(setup.encode(&three_turns()).body, short);
    let mut longer = three_turns();
    longer.extend([assistant(vec![thinking_block("T4"), text("R4")]), user("q5")]);
    let longer = setup.encode(&longer).body;
    let prefix = short.strip_suffix("]}").unwrap();
    assert!(longer.starts_with(prefix), "{short}\n{longer}");
}

#[test]
fn e9_effort_budget_and_off_switch_come_from_the_dialect() {
    let asking = r#"
id = "acme"
protocol = "openai-chat"
[ask]
on = { thinking = { type = "enabled" } }
off = { thinking = { type = "disabled" } }
effort = { path = "reasoning_effort", values = ["low", "high", "max"] }
budget = { path = "thinking.budget", range = [1024, 32000], with = { thinking = { mode = "manual" } } }
forbid_when_on = ["temperature"]
"#;
    let sent = |setup: EncodeSetup| {
        let encoded = setup.encode(&[user("q")]);
        let body: Value = serde_json::from_str(&encoded.body).unwrap();
        (body["thinking"].clone(), body["reasoning_effort"].clone(), encoded.notes.len() + encoded.left_out.len())
    };
    let on = json!({"type": "enabled"});
    #[rustfmt::skip]
    let cases = [
        ("no setting",    vec![],                               (on.clone(), Value::Null, 0)),
        ("supported",       vec![("reasoning.effort", "high")],   (on.clone(), json!("high"), 0)),
        ("highest below",   vec![("reasoning.effort", "medium")], (on.clone(), json!("low"), 1)),
        ("lowest there is", vec![("reasoning.effort", "minimal")], (on.clone(), json!("low"), 1)),
        ("none is off",     vec![("reasoning.effort", "none")],   (json!({"type": "disabled"}), Value::Null, 0)),
        ("off",             vec![("reasoning.enabled", "false")], (json!({"type": "disabled"}), Value::Null, 0)),
        ("budget",          vec![("reasoning.maxTokens", "2000")], (json!({"type": "enabled", "budget": 2000, "mode": "manual"}), Value::Null, 0)),
        ("sampling",        vec![("request.temperature", "0.5")], (on.clone(), Value::Null, 1)),
        ("budget clamped",  vec![("reasoning.maxTokens", "5")],   (json!({"type": "enabled", "budget": 1024, "mode": "manual"}), Value::Null, 1)),
    ];
    for (name, settings, expected) in cases {
        let setup = settings.into_iter().fold(EncodeSetup::new(asking), |setup, (key, value)| setup.set(key, value));
        assert_eq!(sent(setup), expected, "{name}");
    }
}

#[test]
fn req_think_001_thinking_is_sent_back_in_the_field_it_came_in() {
    let same = ACME.replace("field = \"reasoning_content\"", "field = \"same\"");
    let mut message = assistant(vec![thinking_block("T"), text("R")]);
    if let Block::Thinking(thinking) = &mut message.blocks[0] {
        thinking.source = "reasoning".into();
    }
    let setup = EncodeSetup::new(&same).set("reasoning.includeInContext", "true");
    let body: Value = serde_json::from_str(&setup.encode(&[user("q"), message, user("q")]).body).unwrap();
    assert_eq!(body["messages"][1]["reasoning"], "T");
    assert_eq!(body["messages"][1].get("reasoning_content"), None);
}

#[test]
fn e10_there_is_a_decision_for_every_stored_block() {
    let setup = EncodeSetup::new(ACME).set("reasoning.includeInContext", "true");
    for messages in [three_turns(), open_loop()] {
        let decisions = setup.encode(&messages).decisions;
        let stored: usize = messages.iter().map(|message| message.blocks.len()).sum();
        assert_eq!(decisions.iter().filter(|decision| decision.block.is_some()).count(), stored);
    }
}

#[test]
fn e11_each_refusal_has_one_repair_and_no_repair_is_tried_twice() {
    let dialects = Dialects::builtin().unwrap();
    #[rustfmt::skip]
    let cases = [
        (400, "The `reasoning_content` in the thinking mode must be passed back to the API.",              Some(Repair::FillAll)),
        (400, "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2", Some(Repair::FillCalls)),
        (400, "messages.1.content.0: Invalid `signature` in `thinking` block",                             Some(Repair::StripForeign)),
        (429, "Invalid signature in thinking block",                                                      Some(Repair::StripForeign)),
        (400, "Function call is missing a thought_signature in functionCall parts.",                       Some(Repair::DummySignature)),
        (400, "text content is empty",                                                                    Some(Repair::OmitEmptyContent)),
        (400, "Item 'rs_1' of type 'reasoning' was provided without its required following item.",         Some(Repair::DropOrphan)),
        (429, "Rate limit reached",                                                                       None),
        (500, "The server had an error",                                                                  None),
    ];
    for (status, message, expected) in cases {
        let row = classify(dialects.catalogue(), Some(status), message);
        assert_eq!(row.and_then(|row| next_repair(row, &[])), expected, "{message}");
        if let (Some(row), Some(repair)) = (row, expected) {
            assert_ne!(next_repair(row, &[repair]), Some(repair), "{message}: once is enough");
        }
    }
}

#[test]
fn e11_a_missing_field_is_filled_with_the_thinking_or_the_filler() {
    let shy = "id = \"acme\"\nprotocol = \"openai-chat\"\n[echo]\ncarrier = \"field\"\nfield = \"reasoning_content\"\n";
    let mut setup = EncodeSetup::new(shy);
    assert_eq!(setup.fields(&open_loop()), ["-", "-"]);
    setup.repairs = vec![Repair::FillAll.into()];
    assert_eq!(setup.fields(&open_loop()), ["T1", "T2"]);
    let mut setup = EncodeSetup::new(shy).set("reasoning.includeInContext", "false");
    setup.repairs = vec![Repair::FillAll.into()];
    assert_eq!(setup.fields(&open_loop()), ["", ""], "a thought the user withheld is never sent");
}

#[test]
fn e11_a_bad_seal_costs_the_thinking_and_not_the_session() {
    let mut setup = EncodeSetup::new(ACME).set("reasoning.includeInContext", "true");
    setup.repairs = vec![Repair::StripTurn.into()];
    let encoded = setup.encode(&open_loop());
    assert_eq!(setup.fields(&open_loop()), ["-", "-"]);
    assert!(encoded.body.contains("R1") && encoded.body.contains("c1"), "the conversation goes on");
}

#[test]
fn e13_thinking_is_switched_off_where_sealed_thinking_is_demanded_but_withheld() {
    let manual = r#"
id = "acme"
protocol = "anthropic"
[echo]
include = true
carrier = "block"
need_opaque = false
loop = "must"
turns = "should"
[ask]
on = { thinking = { type = "enabled", budget_tokens = 4096 } }
off = { thinking = { type = "disabled" } }
"#;
    let thinking = |setup: &EncodeSetup| {
        let encoded = setup.encode(&open_loop());
        let body: Value = serde_json::from_str(&encoded.body).unwrap();
        (body["thinking"]["type"].as_str().unwrap().to_owned(), encoded.notes.len())
    };
    assert_eq!(thinking(&EncodeSetup::new(manual)), ("enabled".to_owned(), 0));
    let withheld = EncodeSetup::new(manual).set("reasoning.includeInContext", "false");
    assert_eq!(thinking(&withheld), ("disabled".to_owned(), 2), "both are noted");
}

/// The encode cache changes only the speed.
#[test]
fn e12_a_caching_encoder_writes_the_same_bytes() {
    let mut history = History::new();
    let mut encoder = Encoder::new();
    let mut setup = EncodeSetup::new(&format!("{ACME}include = true\n"));
    let mut messages = three_turns();
    messages.extend(open_loop());
    for (n, message) in messages.into_iter().enumerate() {
        history.append(message);
        // A setting changes in between, and the history forks.
        match n {
            5 => setup = setup.set("reasoning.stripFromContext", "allButLast"),
            8 => setup = setup.set("reasoning.stripFromContext", "none"),
            9 => assert!(history.undo().is_some()),
            _ => (),
        }
        let branch = history.branch();
        let entries: Vec<EntryId> = branch.iter().map(|(entry, _)| *entry).collect();
        let messages: Vec<Message> = branch.iter().map(|(_, message)| (*message).clone()).collect();
        let fresh = setup.encode(&messages);
        let remembered = setup.request(&messages, |request| encoder.encode(request, &entries));
        assert_eq!(remembered, fresh, "after message {n}");
    }
}
