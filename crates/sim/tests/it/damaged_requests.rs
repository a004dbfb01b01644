//! Any request gets a response.

use aside_core::dialect::Dialect;
use aside_sim::{BodyStep, HttpRequest, ScriptOptions, Service};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::{TestClient, dialects};

/// Runs a response to its end without waiting.
fn full_response(service: &Service, path: &str, body: &[u8]) -> (u16, Vec<u8>, BodyStep) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut answer = service.respond(&HttpRequest { method: "POST", path, query, headers: &[], body, received: 0 });
    let mut bytes = Vec::new();
    loop {
        match answer.body.step() {
            BodyStep::Bytes(piece) => bytes.extend(piece),
            BodyStep::Wait(_) => (),
            end @ (BodyStep::Abort | BodyStep::End) => return (answer.status, bytes, end),
        }
    }
}

fn any_dialect() -> impl Strategy<Value = &'static Dialect> {
    select(dialects().iter().collect::<Vec<_>>())
}

#[rustfmt::skip]
const SCRIPTS: [&str; 13] = [
    "", "thoughts 0", "thoughts 9", "tool-loop 0", "parallel 0", "summaries 0", "loop tokens=0", "plain tokens=3",
    "cut 10", "malformed", "tags chunk=1", "stall 999999", "think rate=1e-300",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn x1_a_damaged_request_still_gets_a_response(
        dialect in any_dialect(),
        script in select(SCRIPTS.to_vec()),
        at in any::<Index>(),
        with in prop::collection::vec(any::<u8>(), 0..6),
    ) {
        let service = Service::new(dialects().clone(), ScriptOptions::default());
        let encoded = TestClient::new(dialect, &format!("Why?\nsim: {script}")).encoded();
        let (status, ..) = full_response(&service, &encoded.path, encoded.body.as_bytes());
        prop_assert_eq!(status, 200, "{} {}", &dialect.id, script);
        let mut body = encoded.body.as_bytes().to_vec();
        let at = at.index(body.len());
        let end = (at + with.len()).min(body.len());
        body.splice(at..end, with);
        let (status, bytes, _) = full_response(&service, &encoded.path, &body);
        prop_assert!([200, 400, 404].contains(&status), "{}", status);
        prop_assert!(status == 200 || !bytes.is_empty());
    }

    #[test]
    fn x2_chunks_of_any_size_add_up_to_the_same_bytes(dialect in any_dialect(), chunk in 1usize..60, cut in 0u64..3000) {
        let service = Service::new(dialects().clone(), ScriptOptions::default());
        let ask = |script: &str| {
            let encoded = TestClient::new(dialect, &format!("Why?\nsim: {script}")).encoded();
            full_response(&service, &encoded.path, encoded.body.as_bytes()).1
        };
        // The id of a reply depends on the request; its length does not.
        let whole = ask("think");
        prop_assert_eq!(ask(&format!("think chunk={chunk}")).len(), whole.len());
        let least = usize::try_from(cut).unwrap().min(whole.len());
        prop_assert_eq!(ask(&format!("cut {cut}")).len(), least);
    }
}
