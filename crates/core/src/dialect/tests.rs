use super::*;
use crate::tags::{TagReach, TagStart};

fn with(text: &str) -> Result<Dialects, DialectError> {
    Dialects::with_user_files(&[DialectSource { path: "mine.toml", text }])
}

#[test]
fn the_built_in_files_are_valid_and_every_protocol_has_a_generic_dialect() {
    // With a user file, everything is parsed.
    let dialects = with("id = \"deepseek\"\n").expect("valid");
    for protocol in Protocol::ALL {
        let generic: Vec<&str> =
            dialects.iter().filter(|d| d.generic && d.protocol == protocol).map(|d| d.id.as_str()).collect();
        assert_eq!(generic.len(), 1, "{protocol}: {generic:?}");
    }
}

#[test]
fn a_dialect_inherits_missing_keys_from_the_generic_one() {
    let dialects = with("id = \"acme\"\nprotocol = \"openai-chat\"\n[read]\ntext = [\"pondering\"]\n").expect("valid");
    let rules = dialects.get("acme").expect("new").rules(None);
    assert_eq!(rules.read.text, ["pondering"]);
    assert_eq!(rules.read.tags, dialects.generic(Protocol::OpenaiChat).expect("generic").rules(None).read.tags);
}

#[test]
fn a_users_file_is_merged_key_by_key_over_the_built_in_one() {
    let before = Dialects::builtin().expect("valid");
    let after =
        with("id = \"deepseek\"\nbase_url = \"http://127.0.0.1:1\"\n[read]\ntags = [\"thought\"]\n").expect("valid");
    let (before, after) = (before.get("deepseek").expect("known"), after.get("deepseek").expect("known"));
    assert_eq!(after.base_url.as_deref(), Some("http://127.0.0.1:1"));
    assert_eq!(after.rules(None).read.tags.pairs[0].id, "thought");
    assert_eq!(after.rules(None).read.text, before.rules(None).read.text);
    assert_eq!(after.api_key_env, before.api_key_env);
}

#[test]
fn the_first_model_pattern_that_matches_wins() {
    let text = r#"
id = "acme"
protocol = "openai-chat"
[[model]]
match = "*-thinking*"
read.tags_start = "prefilled"
[[model]]
match = "acme-*"
read.tags_reach = "anywhere"
"#;
    let dialects = with(text).expect("valid");
    let acme = dialects.get("acme").expect("new");
    let tags = |model| acme.rules(Some(model)).read.tags.clone();
    assert_eq!(
        (tags("acme-thinking-2").start, tags("acme-thinking-2").reach),
        (TagStart::Prefilled, TagReach::Leading)
    );
    assert_eq!((tags("acme-2").start, tags("acme-2").reach), (TagStart::Explicit, TagReach::Anywhere));
    assert_eq!((tags("other").start, tags("other").reach), (TagStart::Explicit, TagReach::Leading));
}

#[test]
fn a_users_model_pattern_is_matched_before_the_built_in_ones() {
    let text = "id = \"vllm\"\n[[model]]\nmatch = \"*\"\nread.tags = []\n";
    let dialects = with(text).expect("valid");
    assert!(dialects.get("vllm").expect("known").rules(Some("deepseek-r1")).read.tags.pairs.is_empty());
}

#[test]
fn users_may_add_tag_families() {
    let dialects = Dialects::with_user_files(&[
        DialectSource {
            path: "x/tags.toml",
            text: "[[pair]]\nid = \"mull\"\nopen = [\"<mull>\"]\nclose = [\"</mull>\"]\n",
        },
        DialectSource {
            path: "x/acme.toml",
            text: "id = \"acme\"\nprotocol = \"ollama\"\n[read]\ntags = [\"mull\"]\n",
        },
    ])
    .expect("valid");
    assert_eq!(dialects.get("acme").expect("new").rules(None).read.tags.pairs[0].open, ["<mull>"]);
}

#[test]
fn a_model_name_finds_its_dialect() {
    let dialects = Dialects::builtin().expect("valid");
    let maker = |protocol, model| dialects.made_by(protocol, model).map(|dialect| dialect.id.as_str());
    assert_eq!(maker(Protocol::OpenaiChat, "deepseek-chat"), Some("deepseek"));
    assert_eq!(maker(Protocol::Anthropic, "claude-sonnet-5"), Some("anthropic"));
    assert_eq!(maker(Protocol::OpenaiChat, "nobody-knows"), None);
}

#[test]
fn an_error_names_file_line_and_key() {
    #[rustfmt::skip]
    let cases = [
        ("unknown key",      "id = \"a\"\nprotocol = \"openai-chat\"\n[read]\ntxt = []\n",               "mine.toml:4: read.txt: unknown field `txt`"),
        ("unknown value",    "id = \"a\"\nprotocol = \"openai-chat\"\n[read]\ndelta_mode = \"all\"\n",   "mine.toml:4: read.delta_mode: unknown variant `all`"),
        ("wrong kind",       "id = \"a\"\nprotocol = \"openai-chat\"\n[read]\ntext = \"x\"\n",           "mine.toml:4: read.text: invalid type"),
        ("unknown protocol", "id = \"a\"\nprotocol = \"smtp\"\n",                                        "mine.toml:2: protocol: unknown protocol `smtp`; use openai-chat"),
        ("unknown tags",     "id = \"a\"\nprotocol = \"openai-chat\"\n[read]\ntags = [\"hmm\"]\n",       "mine.toml:4: read.tags: unknown tag family `hmm`; known: "),
        ("wrong assembly",   "id = \"a\"\nprotocol = \"anthropic\"\n[read]\nassemble_by = \"none\"\n",   "mine.toml:4: read.assemble_by: does not fit the anthropic protocol"),
        ("unknown error",    "id = \"vllm\"\nerrors = [\"hm\"]\n",                                         "mine.toml:2: errors: unknown error `hm`"),
        ("no protocol",      "id = \"a\"\n",                                                             "mine.toml:1: protocol: a new dialect needs a protocol"),
        ("in a model table", "id = \"vllm\"\n[[model]]\nmatch = \"*\"\n[model.read]\ntagz = []\n",       "mine.toml:5: model.read.tagz: unknown field `tagz`"),
        ("not TOML",         "id = \"a\"\nprotocol\n",                                                   "mine.toml:2: protocol: "),
    ];
    for (name, text, expected) in cases {
        let error = with(text).expect_err(name).to_string();
        assert!(error.starts_with(expected), "{name}: {error}");
    }
}

#[test]
fn a_url_finds_its_dialect() {
    let dialects = Dialects::builtin().expect("valid");
    let at = |protocol, url| dialects.by_url(protocol, url).map(|dialect| dialect.id.as_str());
    #[rustfmt::skip]
    let cases = [
        (Protocol::OpenaiChat,      "https://api.deepseek.com",                            Some("deepseek")),
        (Protocol::OpenaiChat,      "https://API.deepseek.com/beta/",                      Some("deepseek")),
        (Protocol::Anthropic,       "https://api.deepseek.com/anthropic",                  Some("deepseek-anthropic")),
        (Protocol::OpenaiChat,      "https://api.minimax.io/v1",                           Some("minimax")),
        (Protocol::OpenaiChat,      "https://api.moonshot.cn/v1",                          Some("kimi")),
        (Protocol::OpenaiChat,      "https://me.openai.azure.com/openai/v1",               Some("azure")),
        (Protocol::OpenaiResponses, "https://me.openai.azure.com/openai/v1",               Some("azure-responses")),
        (Protocol::Ollama,          "http://localhost:11434",                              Some("ollama")),
        (Protocol::Bedrock,         "https://bedrock-runtime.eu-west-3.amazonaws.com",     Some("bedrock")),
        (Protocol::OpenaiChat,      "https://api.deepseek.com.evil.example",               None),
        (Protocol::OpenaiChat,      "http://127.0.0.1:9000/v1",                            None),
        (Protocol::OpenaiChat,      "not a url",                                           None),
    ];
    for (protocol, url, expected) in cases {
        assert_eq!(at(protocol, url), expected, "{url}");
    }
}

#[test]
fn access_is_inherited_except_the_default_model_and_order() {
    let dialects = with("id = \"acme\"\nprotocol = \"anthropic\"\nauth = \"bearer\"\n").expect("valid");
    let access = |id: &str| dialects.get(id).expect("known").access.clone();
    assert_eq!(access("kimi-anthropic").auth, Auth::XApiKey);
    assert_eq!(access("acme").auth, Auth::Bearer);
    assert_eq!(access("acme").headers.get("anthropic-version").map(String::as_str), Some("2023-06-01"));
    assert_eq!((access("acme").default_model, access("acme").order), (None, None));
    assert_eq!(Auth::Bearer.header("k"), ("authorization".to_owned(), "Bearer k".to_owned()));
    assert_eq!(Auth::ApiKey.header("k"), ("api-key".to_owned(), "k".to_owned()));
}

#[test]
fn t18_an_account_without_credit_is_recognised_by_its_words_and_a_rate_limit_is_not() {
    let dialects = Dialects::builtin().unwrap();
    #[rustfmt::skip]
    let cases = [
        ("You exceeded your current quota, please check your plan and billing details",  true),
        ("org exceeded current quota exceeded_current_quota_error",                       true),
        ("Denied insufficient_quota",                                                     true),
        ("Your credit balance is too low to access the API",                              true),
        ("Insufficient Balance",                                                          true),
        ("suspended due to insufficient balance, please recharge",                        true),
        ("This request requires more credits, or fewer max_tokens",                       true),
        ("used all available credits or reached its monthly spending limit",              true),
        ("Access denied, please make sure your account is in good standing Arrearage",     true),
        ("You can only afford 120 tokens",                                                true),
        ("Budget has been exceeded! Current cost: 3.1",                                   true),
        ("personal-team-blocked:spending-limit",                                          true),
        ("Rate limit reached for requests per minute",                                    false),
        ("Resource has been exhausted (e.g. check quota)",                                false),
        ("Quota exceeded for metric requests, limit: 5; retry in 7s",                     false),
        ("Overloaded",                                                                    false),
        ("`reasoning_content` must be passed back",                                       false),
    ];
    for (words, expected) in cases {
        assert_eq!(dialects.lacks_credit(words), expected, "{words}");
    }
}
