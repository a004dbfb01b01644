//! How a run of `ask` ends: exit codes, the last JSON line, statistics and limits.

use serde_json::{Value, json};

use crate::support::{RunOutput, TestConfig, aside};

/// A provider of our own that is served by the simulator, with a price.
fn priced(name: &str, simulator: &RunningSimulatorProcess) -> TestConfig {
    TestConfig::with(
        name,
        &format!(
            "[providers.paid]\ndialect = \"deepseek\"\nbase_url = \"http://{}/v1\"\n\
             [providers.paid.models.\"*\"]\nprice = {{ input = 1000, output = 2000 }}\n",
            simulator.address
        ),
    )
}

/// `aside sim` on a free port, killed at the end of the test.
struct RunningSimulatorProcess {
    child: std::process::Child,
    address: String,
}

impl RunningSimulatorProcess {
    fn start() -> RunningSimulatorProcess {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_aside"))
            .args(["sim", "--listen", "127.0.0.1:0"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            line.clear();
            let read = std::io::BufRead::read_line(&mut output, &mut line).unwrap();
            assert!(read > 0, "the simulator names its address");
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.chars().take_while(|one| one.is_ascii_digit() || ".:".contains(*one)).collect::<String>();
            }
        };
        // Its pipe must stay open, or its next line ends it.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        RunningSimulatorProcess { child, address }
    }
}

impl Drop for RunningSimulatorProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn last_events(run: &RunOutput) -> (Value, Value) {
    let events: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (events[events.len().saturating_sub(2)].clone(), events.last().unwrap().clone())
}

#[test]
fn c6_stats_sum_the_requests_of_a_run_and_their_cost() {
    let simulator = RunningSimulatorProcess::start();
    let config = priced("stats", &simulator);
    let arguments = ["ask", "-m", "paid/deepseek", "--no-save", "--stats", "sim: tool-loop 2"];
    let run = aside(&arguments, b"", Some(&config));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let line = run.stderr.lines().find(|line| line.starts_with("stats: ")).unwrap_or_else(|| panic!("{}", run.stderr));
    for part in [" in, ", " out (", " thinking), ", " cached, ", " written, $", " s, 3 requests"] {
        assert!(line.contains(part), "{part:?} is missing in {line:?}");
    }
    let run = aside(&[&arguments[..], &["--json"]].concat(), b"", Some(&config));
    let (stats, last) = last_events(&run);
    assert_eq!((&stats["event"], &last["event"]), (&Value::from("stats"), &Value::from("answer")));
    let number = |name: &str| stats[name].as_f64().unwrap_or_else(|| panic!("{name} in {stats}"));
    let expected = number("input") * 1000.0 / 1e6 + number("output") * 2000.0 / 1e6;
    assert!((number("cost") - expected).abs() < 1e-9, "{stats}");
    assert_eq!((&stats["costIsExact"], &stats["requests"], &stats["repairs"]), (&true.into(), &3.into(), &0.into()));
    assert!(number("seconds") > 0.0 && stats["thinkingSeconds"].is_number(), "{stats}");
}

#[test]
fn a_run_stops_at_its_limits() {
    let simulator = RunningSimulatorProcess::start();
    let config = priced("limits", &simulator);
    let ask = |flags: &[&str]| {
        let fixed = ["ask", "-m", "paid/deepseek", "--no-save", "--json", "--stats", "sim: tool-loop 4"];
        aside(&[&fixed[..], flags].concat(), b"", Some(&config))
    };
    #[rustfmt::skip]
    let cases: [(&[&str], &str, u64); 2] = [
        (&["--max-steps", "2"],     "max_steps", 2),
        (&["--max-cost", "0.0001"], "max_cost",  1),
    ];
    for (flags, code, requests) in cases {
        let run = ask(flags);
        let (stats, last) = last_events(&run);
        assert_eq!(run.code, 1, "{flags:?}: {}", run.stderr);
        assert_eq!(
            (&last["event"], &last["code"], &last["exit"]),
            (&"failed".into(), &code.into(), &1.into()),
            "{last}"
        );
        assert_eq!(stats["requests"], requests, "{flags:?}");
    }
    assert_eq!(ask(&["--max-cost", "1000"]).code, 0);
    let unpriced = aside(&["ask", "-m", "sim/kimi", "--max-cost", "1", "hi"], b"", Some(&config));
    assert_eq!(unpriced.code, 2);
    assert!(unpriced.stderr.contains("no price is known for sim/kimi"), "{}", unpriced.stderr);
    let wrong = aside(&["ask", "--max-cost", "-1", "hi"], b"", Some(&config));
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

#[test]
fn the_last_line_of_json_says_how_a_run_ended() {
    #[rustfmt::skip]
    let cases = [
        ("sim: plain",          0, json!({"event": "answer"})),
        ("sim: reasoning-only", 3, json!({"event": "failed", "outcome": "thinking_only", "exit": 3, "status": null})),
        ("sim: empty",          1, json!({"event": "failed", "outcome": "empty", "exit": 1, "code": null})),
        ("sim: status 403",     1, json!({"event": "failed", "outcome": "error", "exit": 1, "status": 403})),
        ("sim: cut 300",        1, json!({"event": "failed", "outcome": "error", "exit": 1})),
    ];
    for (prompt, exit, expected) in cases {
        let run = aside(&["ask", "-m", "sim/deepseek", "--no-save", "--no-tools", "--json", prompt], b"", None);
        let (_, last) = last_events(&run);
        assert_eq!(run.code, exit, "{prompt}: {}", run.stdout);
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(last[name], *value, "{prompt}: {last}");
        }
        assert!(exit == 0 || last["message"].as_str().is_some_and(|message| !message.is_empty()), "{last}");
    }
    let wrong = aside(&["ask", "-m", "nobody/m", "--json", "hi"], b"", None);
    let (_, last) = last_events(&wrong);
    assert_eq!(
        (wrong.code, &last["event"], &last["outcome"], &last["exit"]),
        (2, &"failed".into(), &"error".into(), &2.into())
    );
    assert!(last["message"].as_str().unwrap().contains("names no provider"), "{last}");
}

#[test]
fn a_refusal_is_exit_code_4_in_every_protocol() {
    for model in
        ["sim/deepseek", "sim/openai", "sim/anthropic", "sim/gemini", "sim/ollama", "sim/cohere", "sim/bedrock"]
    {
        let ask = |flags: &[&str]| {
            let fixed = ["ask", "-m", model, "--no-save", "--no-tools", "sim: decline"];
            aside(&[&fixed[..], flags].concat(), b"", None)
        };
        let run = ask(&["--json"]);
        let (_, last) = last_events(&run);
        assert_eq!(run.code, 4, "{model}: {}", run.stdout);
        assert_eq!(
            (&last["event"], &last["outcome"], &last["exit"]),
            (&"failed".into(), &"refused".into(), &4.into()),
            "{model}: {last}"
        );
        let plain = ask(&[]);
        assert_eq!(plain.code, 4, "{model}: {}", plain.stderr);
        assert!(plain.stderr.contains("error: "), "{model}: {}", plain.stderr);
    }
}

const SCHEMA: &str = r#"{"type": "object", "properties": {"depth": {"type": "number", "minimum": 3}, "unit": {"enum": ["m", "ft"]}},
    "required": ["depth", "unit"], "additionalProperties": false}"#;

#[test]
fn e17_an_answer_is_checked_against_the_schema() {
    let config = TestConfig::new("schema");
    let file = config.0.join("depth.json");
    std::fs::write(&file, SCHEMA).unwrap();
    let file = file.display().to_string();
    let ask = |model: &str, prompt: &str, flags: &[&str]| {
        let fixed = ["ask", "-m", model, "--no-save", "--schema", &file, prompt];
        aside(&[&fixed[..], flags].concat(), b"", Some(&config))
    };
    for model in ["sim/openai", "sim/anthropic", "sim/gemini", "sim/ollama", "sim/cohere", "sim/openai-chat"] {
        let run = ask(model, "how deep is berth 4?", &[]);
        assert_eq!(run.code, 0, "{model}: {}", run.stderr);
        let answer: Value =
            serde_json::from_str(run.stdout.trim()).unwrap_or_else(|_| panic!("{model}: {}", run.stdout));
        assert_eq!(answer, json!({"depth": 3, "unit": "m"}), "{model}");
    }
    let wrong = ask("sim/openai", "sim: echo\n{\"depth\": \"deep\", \"unit\": \"m\"}", &[]);
    assert_eq!(wrong.code, 1, "{}", wrong.stderr);
    assert!(wrong.stdout.contains("deep"), "the answer is printed as it came: {}", wrong.stdout);
    let message = "error: the answer does not fit the schema: /depth: expected number, found the string \"deep\"";
    assert!(wrong.stderr.contains(message), "{}", wrong.stderr);
    let wrong = ask("sim/openai", "sim: echo\nfour metres", &["--json"]);
    let (_, last) = last_events(&wrong);
    assert_eq!(
        (wrong.code, &last["event"], &last["code"], &last["exit"]),
        (1, &"failed".into(), &"schema_mismatch".into(), &1.into()),
        "{last}"
    );
    assert!(last["message"].as_str().unwrap().contains("it is not JSON"), "{last}");
}

#[test]
fn a_signal_in_the_middle_of_an_answer_ends_the_events_and_sets_the_exit_code() {
    use rustix::process::{Pid, Signal, kill_process};
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let arguments = ["ask", "-m", "sim/deepseek", "--no-save", "--no-tools", "--json", "sim: slow tokens=4000"];
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_aside"));
        let mut child = crate::support::start(command.args(arguments).current_dir(crate::support::repository()), None);
        drop(child.stdin.take());
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        let grew = lines.by_ref().map(Result::unwrap).find(|line| line.contains("\"grew\""));
        assert!(grew.is_some(), "{code}: the answer begins");
        let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(id, signal).unwrap();
        let last: Value = serde_json::from_str(&lines.map(Result::unwrap).last().unwrap()).unwrap();
        assert_eq!(
            (&last["event"], &last["outcome"], &last["exit"]),
            (&"failed".into(), &"interrupted".into(), &code.into()),
            "{last}"
        );
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn a_provider_that_takes_too_long_is_given_up() {
    let simulator = RunningSimulatorProcess::start();
    let config = priced("timeouts", &simulator);
    #[rustfmt::skip]
    let cases = [
        ("http.idleSeconds=0.3",  "was silent for"),
        ("http.totalSeconds=0.3", "was not complete after"),
    ];
    for (setting, message) in cases {
        let arguments = ["ask", "-m", "paid/deepseek", "--no-save", "--no-tools", "--set", setting, "sim: stall 20"];
        let began = std::time::Instant::now();
        let run = aside(&arguments, b"", Some(&config));
        assert!(began.elapsed().as_secs() < 15, "{setting}");
        assert_eq!(run.code, 1, "{setting}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{setting}: {}", run.stderr);
    }
}

#[test]
fn wrong_arguments_end_the_events_too() {
    for (arguments, message) in [
        (&["ask", "--json", "--nope", "hi"][..], "unexpected argument '--nope' found"),
        (&["ask", "--json", "--max-cost", "free", "hi"], "invalid value 'free' for '--max-cost <USD>'"),
    ] {
        let run = crate::support::aside(arguments, b"", None);
        assert_eq!(run.code, 2, "{}", run.stderr);
        let last: serde_json::Value = serde_json::from_str(run.stdout.trim_end()).unwrap();
        assert_eq!((&last["event"], &last["exit"]), (&"failed".into(), &2.into()), "{last}");
        assert!(last["message"].as_str().unwrap().contains(message), "{last}");
    }
    let plain = crate::support::aside(&["ask", "--nope", "--", "--json"], b"", None);
    assert_eq!(plain.code, 2);
}
