//! The judge against recorded requests: it accepts what a provider accepted, and refuses
//! what one refused because of thinking. The recordings are in the folder that
//! `ASIDE_CORPUS` names, as in `recordings.rs`.

use std::fs;
use std::path::Path;

use aside_core::protocol::Protocol;
use aside_core::rules::{IssuedThinking, JudgeVerdict, classify, judge};
use serde_json::Value;

use crate::recorded_round_trips::{corpus, dialect_of};
use crate::support::dialects;

/// Accepted by the provider, refused by the judge: the case, and why.
#[rustfmt::skip]
const STRICTER: &[(&str, &str)] = &[
    ("224-openrouter-tool-round-trip-qwen-qwen3-next-80b-a3b-thinki/turn2", "the details are left out; the model behind it does not ask for them, others do"),
    ("243-openrouter-openrouter-tool-variations/turn2", "as in 224"),
    ("243-openrouter-openrouter-tool-variations/turn4", "as in 224"),
    ("497-vercel-gateway-multi-tool-gemini-3-pro-preview/turn2", "as in 224; the signature of the first call is missing too"),
    ("488-together-genstream-tools-squareroot-qwen3-235b-a22b-ins/turn2", "the client counts a repeated finish as a second call; this host does not mind one id twice"),
    ("490-together-genstream-tools-squareroot-qwen3-next-80b-a3b/turn2", "as in 488"),
];

/// Refused because of thinking, for a reason that the request does not show.
#[rustfmt::skip]
const NOT_DETECTABLE: &[(&str, &str)] = &[];

struct JudgedRequest {
    name: String,
    verdict: JudgeVerdict,
    status: u64,
    /// The error of the provider, if it refused.
    answer: String,
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn judged_requests(case: &Path) -> Vec<JudgedRequest> {
    let meta = json(&case.join("meta.json"));
    let Ok(protocol) = meta["protocol"].as_str().unwrap().parse::<Protocol>() else { return Vec::new() };
    let dialect = dialect_of(meta["provider"].as_str().unwrap(), protocol);
    let mut found = Vec::new();
    for turn in 0..20 {
        let prefix = if turn == 0 { String::new() } else { format!("turn{turn}.") };
        let path = case.join(format!("{prefix}request.json"));
        if !path.exists() {
            continue;
        }
        let status = if turn == 0 { &meta["status"] } else { &meta["turn_status"][format!("turn{turn}")] };
        let request = json(&path);
        let model = request["model"].as_str().or(meta["model"].as_str()).unwrap_or_default().to_owned();
        let body = request.to_string();
        let verdict = judge(dialect, &model, &[], &body, IssuedThinking::Unknown).unwrap();
        let expected = case.join(format!("{prefix}expected.json"));
        let answer = if expected.exists() {
            json(&expected)["error"].as_str().unwrap_or_default().to_owned()
        } else {
            String::new()
        };
        let name = format!("{}/{prefix}", case.file_name().unwrap().to_string_lossy());
        found.push(JudgedRequest { name, verdict, status: status.as_u64().unwrap_or(200), answer });
    }
    found
}

fn listed(name: &str, list: &[(&str, &str)]) -> bool {
    list.iter().any(|(case, _)| name.starts_with(case))
}

#[test]
fn x6_recorded_requests_are_judged_as_their_providers_did() {
    let Some(folder) = corpus() else {
        println!("ASIDE_CORPUS is not set: nothing to compare");
        return;
    };
    let mut cases: Vec<_> = fs::read_dir(folder.join("cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    let (mut n_taken, mut n_refused, mut wrong) = (0, 0, Vec::new());
    for request in cases.iter().flat_map(|case| judged_requests(case)) {
        let about_thinking = classify(dialects().catalogue(), None, &request.answer);
        let ok = request.verdict.is_ok();
        match about_thinking {
            Some(row) => {
                n_refused += 1;
                let seen = request.verdict.broken.iter().any(|broken| {
                    classify(dialects().catalogue(), None, &broken.message).is_some_and(|said| said.id == row.id)
                });
                if seen == listed(&request.name, NOT_DETECTABLE) {
                    wrong.push(format!(
                        "{}: refused with {:?}: {:?}",
                        request.name, request.answer, request.verdict.broken
                    ));
                }
            }
            None if request.status == 200 => {
                n_taken += 1;
                if ok == listed(&request.name, STRICTER) {
                    let first = request.verdict.broken.first();
                    wrong.push(format!(
                        "{}: taken, judged {:?}",
                        request.name,
                        first.map(|b| (&b.rule, &b.path, &b.message))
                    ));
                }
            }
            None => (),
        }
    }
    println!("{n_taken} taken, {n_refused} refused over thinking");
    assert!(n_taken > 300 && n_refused > 3, "{n_taken} taken, {n_refused} refused");
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}
