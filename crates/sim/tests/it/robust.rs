//! Whatever a client sends, it gets an answer.

use aside_core::dialect::Dialect;
use aside_sim::{Asked, Next, Options, Stage};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::{Desk, dialects};

/// Everything an answer says, without waiting for it.
fn told(stage: &Stage, path: &str, body: &[u8]) -> (u16, Vec<u8>, Next) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut answer = stage.answer(&Asked { method: "POST", path, query, headers: &[], body });
    let mut bytes = Vec::new();
    loop {
        match answer.body.step() {
            Next::Bytes(piece) => bytes.extend(piece),
            Next::Wait(_) => (),
            end @ (Next::Abort | Next::End) => return (answer.status, bytes, end),
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
    fn x1_a_damaged_request_is_answered_all_the_same(
        dialect in any_dialect(),
        script in select(SCRIPTS.to_vec()),
        at in any::<Index>(),
        with in prop::collection::vec(any::<u8>(), 0..6),
    ) {
        let stage = Stage::new(dialects().clone(), Options::default());
        let encoded = Desk::new(dialect, &format!("Why?\nsim: {script}")).encoded();
        let (status, ..) = told(&stage, &encoded.path, encoded.body.as_bytes());
        prop_assert_eq!(status, 200, "{} {}", &dialect.id, script);
        let mut body = encoded.body.as_bytes().to_vec();
        let at = at.index(body.len());
        let end = (at + with.len()).min(body.len());
        body.splice(at..end, with);
        let (status, bytes, _) = told(&stage, &encoded.path, &body);
        prop_assert!([200, 400, 404].contains(&status), "{}", status);
        prop_assert!(status == 200 || !bytes.is_empty());
    }

    #[test]
    fn x2_pieces_of_any_size_are_the_same_bytes(dialect in any_dialect(), chunk in 1usize..60, cut in 0u64..3000) {
        let stage = Stage::new(dialects().clone(), Options::default());
        let ask = |script: &str| {
            let encoded = Desk::new(dialect, &format!("Why?\nsim: {script}")).encoded();
            told(&stage, &encoded.path, encoded.body.as_bytes()).1
        };
        // The id of a reply depends on the request, its length does not.
        let whole = ask("think");
        prop_assert_eq!(ask(&format!("think chunk={chunk}")).len(), whole.len());
        let least = usize::try_from(cut).unwrap().min(whole.len());
        prop_assert_eq!(ask(&format!("cut {cut}")).len(), least);
    }
}
