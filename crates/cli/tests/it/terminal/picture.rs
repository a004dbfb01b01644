//! The picture of the README: a session of the real program with a scripted
//! provider. `scripts/picture` draws it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::emulator::Background;
use super::scripted_provider::{ScriptedProvider, ScriptedStep};
use super::test_folders::TestFolders;
use super::{Terminal, TerminalOptions, svg};

const COLUMNS: u16 = 96;
const ROWS: u16 = 35;

const SOURCE: &str = "\
/// How long to wait before the next try.
pub fn delay(attempt: u32) -> Duration {
    let ms = 100 * 2u64.pow(attempt);
    Duration::from_millis(ms)
}
";

const FIRST: &str = "**Finding the overflow**\n\n\
The delay doubles with every attempt. I want to see how it is computed before I guess, and who calls it.";

const SECOND: &str = "**Choosing a cap**\n\n\
`2u64.pow(64)` overflows: a panic in debug builds, zero in release. A saturating power alone would wait for ages, \
so the result needs a cap as well. Thirty seconds is what the callers expect.";

const ANSWER: &str = "The delay doubled without a limit, and `2u64.pow(64)` overflows:\n\n\
- **debug builds** panicked, **release builds** waited for *nothing* and hammered the server\n\
- now it grows as before and stops at **30 s**\n";

const LIVE: &str = "**Giving up in time**\n\n\
An hour of failures is the caller's business, not the delay's: `delay` is a pure function and should stay one. \
The loop in `fetch` knows when it began. It can compare against a deadline before it sleeps, and return the last \
error with how often it tried. What if the clock jumps? `Instant` does not, so";

/// Streams a text word by word, as a model does.
fn written(text: &'static str, in_all: Duration, beat: fn(&'static str) -> ScriptedStep) -> Vec<ScriptedStep> {
    let words: Vec<&'static str> = text.split_inclusive(' ').collect();
    let pause = in_all / u32::try_from(words.len()).unwrap();
    words.into_iter().flat_map(|word| [beat(word), ScriptedStep::Pause(pause)]).collect()
}

fn replies() -> Vec<Vec<ScriptedStep>> {
    let read = ScriptedStep::Call { id: "c1", name: "read", arguments: json!({"path": "src/retry.rs"}) };
    let change = json!({
        "path": "src/retry.rs",
        "old": "    let ms = 100 * 2u64.pow(attempt);\n",
        "new": "    let ms = 2u64.saturating_pow(attempt).saturating_mul(100).min(30_000);\n",
    });
    let edit = ScriptedStep::Call { id: "c2", name: "edit", arguments: change };
    let seconds = Duration::from_secs;
    vec![
        [written(FIRST, seconds(2), ScriptedStep::Think), vec![read]].concat(),
        [written(SECOND, seconds(3), ScriptedStep::Think), vec![edit]].concat(),
        vec![ScriptedStep::Say(ANSWER)],
        [written(LIVE, seconds(2), ScriptedStep::Think), vec![ScriptedStep::Hold]].concat(),
    ]
}

/// Removes what differs between runs: durations and speeds.
fn without_times(svg: &str) -> String {
    let mut out = String::new();
    // Only the spinner is drawn as small dots.
    for line in svg.lines().filter(|line| !line.contains(r#"r="1.1""#)) {
        let words = line.split_inclusive([' ', '>', '<']).map(|word| {
            let (bare, end) = word.split_at(word.trim_end_matches([' ', '>', '<']).len());
            let number = bare.trim_start_matches('~').trim_end_matches('s');
            let is_time = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            if is_time { format!("N{end}") } else { word.to_owned() }
        });
        out.extend(words);
        out.push('\n');
    }
    out
}

fn picture(name: &str, background: Background) {
    let provider = ScriptedProvider::new(replies());
    let folder = TestFolders::new(name)
        .config(&format!(
            "{}\n[providers.demo.models.\"*\"]\ncontext_limit = 200_000\n\n\
             [permissions]\nedit = \"allow\"\n\n[tools]\nconfine = \"off\"\n\n[settings]\n\"reasoning.effort\" = \"high\"\n",
            provider.config_named("demo")
        ))
        // The status line names the branch, which must not be the one of this checkout.
        .file(".git/HEAD", "ref: refs/heads/delays\n")
        .file("src/retry.rs", SOURCE);
    let options = TerminalOptions { columns: COLUMNS, rows: ROWS, background, env: &[] };
    let mut terminal = Terminal::start(&folder, &["-m", "demo/thinker"], options);
    terminal.see("❯ ");
    terminal.enter("retries hammer the server: fix src/retry.rs");
    terminal.see("stops at 30 s");
    terminal.idle();
    terminal.enter("and can it give up after an hour?");
    terminal.until("the thought, and the same seconds twice", |lines| {
        let seconds = |before: &str, after: &str| {
            let line = lines.iter().find(|line| line.contains(before))?;
            let (_, rest) = line.split_once(before)?;
            rest.split_once(after)?.0.parse::<u32>().ok()
        };
        let (block, turn) = (seconds("Giving up in time · ", "s · "), seconds(" thinking · ", "s · Esc"));
        block >= Some(3) && block == turn && lines.iter().any(|line| line.contains("does not, so"))
    });
    let drawn = svg::draw(terminal.emulator().screen(), background);
    provider.resume_reply();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(format!("{name}.svg"));
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let is_same = without_times(&committed) == without_times(&drawn);
    if std::env::var_os("UPDATE_EXPECT").is_some() && !is_same {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &drawn).unwrap();
    } else {
        assert!(is_same, "docs/{name}.svg is not what the program shows; scripts/picture draws it again");
    }
    assert!(drawn.len() < 100_000, "{} bytes are too many for a picture", drawn.len());
}

#[test]
fn the_picture_of_the_readme_on_dark_is_what_the_program_shows() {
    picture("screen", Background::Dark);
}

#[test]
fn the_picture_of_the_readme_on_light_is_what_the_program_shows() {
    picture("screen-light", Background::Light);
}
