//! Tests that the lines of `ask --json` are the events themselves.

use std::fs;
use std::path::Path;

use aside_core::dialect::Dialects;
use aside_core::event::Sink;
use aside_core::fold::Fold;
use aside_core::wire::Decoder;
use aside_engine::Front;
use aside_session::UpdateFront;

use super::*;

/// Prints each event twice: as JSON of the event itself, and as `ask --json` does.
struct BothPrinters<'a> {
    fold: Fold,
    expected: Vec<String>,
    front: UpdateFront<&'a mut JsonEvents<Vec<u8>>>,
}

impl Sink for BothPrinters<'_> {
    fn take(&mut self, event: Event<'_>) {
        self.fold.take(event);
        self.expected.extend(json::event(&event, &self.fold));
        self.front.on_update(aside_engine::Update::Event { event, fold: &self.fold });
    }
}

/// The lines without their time.
fn lines(events: JsonEvents<Vec<u8>>) -> Vec<String> {
    let text = String::from_utf8(events.out).unwrap();
    let without_time = |line: &str| format!("{{{}", line.split_once(',').unwrap().1);
    text.lines().map(without_time).collect()
}

#[test]
fn each_event_of_a_reply_is_a_line_with_all_its_members() {
    let dialects = Dialects::builtin().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut n_lines = 0;
    for dialect in dialects.iter() {
        let Ok(cases) = fs::read_dir(fixtures.join(&dialect.id)) else { continue };
        let files = cases.flat_map(|case| fs::read_dir(case.unwrap().path()).unwrap());
        let is_response = |path: &Path| path.file_name().unwrap().to_string_lossy().starts_with("response.");
        for path in files.map(|file| file.unwrap().path()).filter(|path| is_response(path)) {
            let mut events = JsonEvents::new(Vec::new());
            let front = UpdateFront::detailed(&mut events);
            let mut both = BothPrinters { fold: Fold::new(), expected: Vec::new(), front };
            let mut decoder = Decoder::new(dialect.protocol, dialect.rules(None));
            decoder.push(&fs::read(&path).unwrap(), &mut both);
            decoder.finish(&mut both).unwrap();
            let expected = both.expected;
            n_lines += expected.len();
            assert_eq!(lines(events), expected, "{}", path.display());
        }
    }
    assert!(n_lines > 100, "{n_lines}");
}

#[test]
fn everything_that_is_said_about_a_request_is_a_line() {
    let mut events = JsonEvents::new(Vec::new());
    let notes = vec!["message 2: this provider requires the field".to_owned(), "lowered".to_owned()];
    let sending = Sending { step: 2, model: "deep".to_owned(), tokens: 12, notes, ..Sending::default() };
    events.take(Update::Sending(Box::new(sending)));
    events.take(Update::Detail(Box::new(UpdateDetail::LeftOut("an image".to_owned()))));
    assert_eq!(
        lines(events),
        [
            r#"{"effort":null,"event":"request","model":"deep","step":2,"tokens":12}"#,
            r#"{"code":"request","event":"notice","message":"message 2: this provider requires the field"}"#,
            r#"{"code":"request","event":"notice","message":"lowered"}"#,
            r#"{"code":"left_out","event":"notice","message":"an image"}"#,
        ]
    );
}
