//! Compares token counts with known ones and with another implementation.

use std::sync::LazyLock;

use aside_core::dialect::Tokenizer;
use aside_core::tokens::{TokenCount, estimate, upper_bound};
use aside_tokens::{approximate_counter, counter};
use proptest::prelude::*;
use tiktoken_rs::CoreBPE;

#[rustfmt::skip]
const KNOWN: &[(&str, u64, u64)] = &[
    // text, o200k_base, cl100k_base
    ("",                                                                      0,  0),
    ("hello world",                                                           2,  2),
    ("Let me look at this carefully.",                                        7,  7),
    ("fn main() { println!(\"hello\"); }",                                    9,  9),
    ("今日は良い天気ですね",                                                     6, 11),
    ("2f1c9e0a-77b4-4d1e-9a3b-5c0d8e7f6a21",                                 34, 34),
    ("👩\u{200d}👩\u{200d}👧 🎉🚀",                                            12, 19),
    ("   \n\n\t  x",                                                          3,  3),
    // Special tokens are ordinary text: a user may type them.
    ("<|endoftext|>",                                                         7,  7),
    ("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a \\\"b\\\"\\n\"}]}", 21, 20),
    ("ሰላም ለዓለም",                                                            15, 21),
    ("Съешь же ещё этих мягких французских булок",                           12, 28),
    ("don't I'LL we've",                                                      4,  7),
];

#[test]
fn c4_known_texts_are_counted_exactly() {
    let (o200k, cl100k) = (counter(Tokenizer::O200k), counter(Tokenizer::Cl100k));
    for (text, in_o200k, in_cl100k) in KNOWN {
        let counted = (o200k.count(text), cl100k.count(text));
        assert_eq!(counted, (TokenCount::Exact(*in_o200k), TokenCount::Exact(*in_cl100k)), "{text:?}");
    }
}

#[test]
fn c4_without_a_vocabulary_counts_are_estimates_and_never_exact() {
    for (text, in_o200k, _) in KNOWN {
        assert_eq!(counter(Tokenizer::None).count(text), TokenCount::Estimated(estimate(text)), "{text:?}");
        assert_eq!(approximate_counter().count(text), TokenCount::Estimated(*in_o200k), "{text:?}");
    }
}

/// Text like prose, code and tool output.
fn words() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z]{1,12}",
        "[0-9]{1,12}",
        "[ \\t\\n]{1,4}",
        "[!-/:-@\\[-`{-~]{1,6}",
        "\\PC{1,4}",
        Just("<|im_start|>".to_owned()),
        Just("'ll".to_owned()),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

static O200K: LazyLock<CoreBPE> = LazyLock::new(|| tiktoken_rs::o200k_base().unwrap());
static CL100K: LazyLock<CoreBPE> = LazyLock::new(|| tiktoken_rs::cl100k_base().unwrap());

proptest! {
    #[test]
    fn c4_another_implementation_counts_the_same(text in words()) {
        let other = |vocabulary: &CoreBPE| TokenCount::Exact(vocabulary.encode_ordinary(&text).len() as u64);
        prop_assert_eq!(counter(Tokenizer::O200k).count(&text), other(&O200K));
        prop_assert_eq!(counter(Tokenizer::Cl100k).count(&text), other(&CL100K));
    }

    #[test]
    fn c4_no_text_has_more_tokens_than_bytes(text in words()) {
        for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k] {
            prop_assert!(counter(tokenizer).count(&text).tokens() <= upper_bound(text.len()));
        }
    }
}

#[test]
fn err_002_the_estimate_errs_high_for_typical_conversation_content() {
    let o200k = counter(Tokenizer::O200k);
    let file = |name: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        std::fs::read_to_string(path).unwrap()
    };
    let base64: String = (0..4_000_u32).map(|i| char::from(b"Ab0cD1eF2+gH3i/J"[(i * i / 7 % 16) as usize])).collect();
    #[rustfmt::skip]
    let cases = [
        ("prose",   file("README.md")),
        ("code",    file("crates/core/src/wire/request_draft.rs")),
        ("data",    file("dialects/openai.toml")),
        ("hashes",  file("Cargo.lock")),
        ("shell",   file("scripts/costs")),
        ("request", file("examples/conversation.jsonl")),
        ("base64",  base64),
        ("emoji",   "🎉🚀👩\u{200d}👩\u{200d}👧🏳\u{fe0f}\u{200d}🌈😀🦀🧵".repeat(20)),
        ("amharic", "ሰላም ለዓለም ሁሉ ይሁን ".repeat(20)),
        ("chinese", "我们需要检查所有的输入参数，然后再决定。".repeat(20)),
        ("a table", "+-----+-----+\n|  a  |  b  |\n+=====+=====+\n".repeat(20)),
    ];
    for (name, text) in cases {
        let (real, estimated) = (o200k.count(&text).tokens(), estimate(&text));
        assert!((real..real * 3).contains(&estimated), "{name}: {real} tokens, estimated {estimated}");
    }
}
