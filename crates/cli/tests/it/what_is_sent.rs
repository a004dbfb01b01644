//! What is sent to a provider: only what the user typed, attached or trusted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{RunOutput, TestConfig, run};
use crate::terminal::scripted_provider::{ScriptedProvider, ScriptedStep};

/// A folder with a secret, and a provider that records its requests.
struct TestProject {
    provider: ScriptedProvider,
    config: TestConfig,
    folder: PathBuf,
}

impl TestProject {
    fn new(name: &str) -> TestProject {
        let provider = ScriptedProvider::new(vec![vec![ScriptedStep::Say("Yes.")]; 9]);
        let config = TestConfig::with(name, &provider.config());
        let folder = config.project();
        fs::write(folder.join("secret.txt"), "hunter2\n").unwrap();
        TestProject { provider, config, folder }
    }

    fn file(self, name: &str, text: &str) -> TestProject {
        fs::write(self.folder.join(name), text).unwrap();
        self
    }

    fn ask(&self, arguments: &[&str], stdin: &[u8]) -> RunOutput {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
        command.args(["ask", "-m", "played/some-model"]).args(arguments).current_dir(&self.folder);
        run(&mut command, stdin, Some(&self.config))
    }

    /// All request bodies, as text.
    fn sent(&self) -> String {
        self.provider.bodies().iter().map(Value::to_string).collect()
    }

    fn aside(&self, arguments: &[&str]) -> RunOutput {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
        run(command.args(arguments).current_dir(&self.folder), b"", Some(&self.config))
    }
}

#[test]
fn e17_a_schema_is_sent_or_refused_before_anything_is_sent() {
    let schema = r#"{"type":"object","properties":{"depth":{"type":"number"}}}"#;
    let project = TestProject::new("schema").file("depth.json", schema).file("list.json", "[1]").file("bad.json", "{");
    let run = project.aside(&["ask", "-m", "sim/kimi", "--record", "run.jsonl", "--schema", "depth.json", "How deep?"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let recorded = fs::read_to_string(project.folder.join("run.jsonl")).unwrap();
    let line: Value = recorded.lines().map(|line| serde_json::from_str(line).unwrap()).find(has_body).unwrap();
    let format = &line["body"]["response_format"];
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["json_schema"]["schema"], serde_json::from_str::<Value>(schema).unwrap());
    #[rustfmt::skip]
    let refused = [
        (&["-m", "played/m", "--schema", "depth.json"][..], "played/m cannot answer in a JSON schema: this model does not accept it"),
        (&["--schema", "list.json"],                            "list.json is not a JSON schema"),
        (&["--schema", "bad.json"],                             "bad.json is not JSON"),
        (&["--schema", "absent.json"],                          "cannot read the schema absent.json"),
    ];
    for (arguments, problem) in refused {
        let run = project.aside(&[&["ask"], arguments, &["How deep?"]].concat());
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(problem), "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(project.sent(), "");
}

fn has_body(line: &Value) -> bool {
    line.get("body").is_some()
}

#[test]
fn l5_a_file_named_in_piped_text_is_not_sent() {
    let project = TestProject::new("leaves-piped");
    let said = project.ask(&["sum it up"], b"+ see @secret.txt\n");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(project.sent().contains("@secret.txt") && !project.sent().contains("hunter2"), "{}", project.sent());
}

#[test]
fn l5_a_typed_file_name_is_attached_and_reported() {
    let project = TestProject::new("leaves-typed");
    let said = project.ask(&["what is @secret.txt about?"], b"");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(project.sent().contains("hunter2"));
    assert!(said.stderr.contains("attached secret.txt"), "{}", said.stderr);
}

#[test]
fn l5_a_file_that_cannot_be_attached_is_exit_code_2_and_nothing_is_sent() {
    let project = TestProject::new("leaves-wrong").file("fake.png", "no image").file("blob", "a\0b");
    for prompt in ["@none.rs", "@\"no such\"", "@fake.png", "@blob", "@src/none"] {
        let said = project.ask(&[prompt], b"");
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{prompt}: {}", said.stderr);
    }
    assert_eq!(project.provider.bodies().len(), 0);
    assert_eq!(project.ask(&["@@none.rs and @alice"], b"").code, 0);
    assert!(
        project.sent().contains("@none.rs and @alice") && !project.sent().contains("@@none.rs"),
        "{}",
        project.sent()
    );
}

#[test]
fn l5_a_line_of_a_script_attaches_no_file() {
    let project = TestProject::new("leaves-script");
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.args(["--plain", "-m", "played/some-model"]).current_dir(&project.folder);
    let said = run(&mut command, b"look at @secret.txt\n", Some(&project.config));
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(project.sent().contains("@secret.txt") && !project.sent().contains("hunter2"), "{}", project.sent());
}

#[test]
fn standard_input_that_is_not_text_is_refused() {
    let project = TestProject::new("leaves-binary");
    for bytes in [&b"\x7fELF\0\0"[..], b"caf\xe9"] {
        let said = project.ask(&["what is it?"], bytes);
        assert_eq!(said.code, 2, "{}", said.stderr);
    }
    assert_eq!(project.provider.bodies().len(), 0);
}

#[test]
fn a_prompt_far_over_the_window_is_refused_unless_the_limit_is_the_users() {
    let project = TestProject::new("leaves-window");
    let config = format!("{}[providers.played.models.\"*\"]\ncontext_limit = 1000\n", project.provider.config());
    fs::write(project.config.0.join("config.toml"), &config).unwrap();
    let words = |count: usize| "word ".repeat(count);
    assert_eq!(project.ask(&[&words(3000)], b"").code, 2);
    assert_eq!(project.provider.bodies().len(), 0);
    let said = project.ask(&["--set", "context.limit=1000", &words(3000)], b"");
    assert!(said.code != 2 && said.stderr.contains("takes 1000"), "{}", said.stderr);
}

#[test]
fn l5_instructions_of_a_folder_are_sent_once_it_is_trusted() {
    let project = TestProject::new("leaves-trust").file("AGENTS.md", "Obey the folder.\n");
    let sends = |said: &RunOutput| {
        assert_eq!(said.code, 0, "{}", said.stderr);
        project.provider.bodies().last().unwrap().to_string().contains("Obey the folder.")
    };
    let said = project.ask(&["hello"], b"");
    assert!(!sends(&said), "nobody trusted it");
    assert_eq!(said.stderr.matches("AGENTS.md is not sent").count(), 1, "{}", said.stderr);
    assert_eq!(project.aside(&["trust"]).code, 0);
    assert!(sends(&project.ask(&["hello"], b"")));
    assert!(project.aside(&["trust", "--list"]).stdout.contains("project"));
    assert_eq!(project.aside(&["trust", "--forget"]).code, 0);
    assert!(!sends(&project.ask(&["hello"], b"")));
    assert!(sends(&project.ask(&["--trust", "hello"], b"")));
    assert!(sends(&project.ask(&["hello"], b"")), "the answer is remembered");
}

#[test]
fn l5_instructions_linked_from_outside_the_folder_are_not_sent() {
    let project = TestProject::new("leaves-link");
    let outside = project.config.0.join("outside.txt");
    fs::write(&outside, "hunter3\n").unwrap();
    std::os::unix::fs::symlink(&outside, project.folder.join("AGENTS.md")).unwrap();
    let said = project.ask(&["--trust", "hello"], b"");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(!project.sent().contains("hunter3"));
    assert!(said.stderr.contains("leads out of the project"), "{}", said.stderr);
}

#[test]
fn l5_the_user_is_asked_once_whether_a_folder_is_trusted() {
    use crate::pty::Terminal;
    let provider = ScriptedProvider::new(vec![vec![ScriptedStep::Say("Yes.")]; 3]);
    let config = TestConfig::with("leaves-asked", &provider.config());
    fs::write(config.project().join("AGENTS.md"), "Obey the folder.\n").unwrap();
    let ask = ["aside", "ask", "-m", "played/some-model", "hello"];
    let mut terminal = Terminal::run(&ask, &config, &[]);
    let asked = terminal.wait_for("v all");
    assert!(asked.contains("trust: ") && asked.contains("│ AGENTS.md"), "{asked}");
    assert!(asked.contains("allow? y from now on · n no · v all"), "a yes is remembered: {asked}");
    std::thread::sleep(std::time::Duration::from_millis(900));
    terminal.types("y");
    assert_eq!(terminal.end().code(), Some(0));
    let sent = provider.bodies().last().unwrap().to_string();
    assert!(sent.contains("Obey the folder."), "{sent}");
    let mut again = Terminal::run(&ask, &config, &[]);
    assert_eq!(again.end().code(), Some(0), "it is not asked again");
    assert!(Path::new(&config.0.join("data/trust.json")).exists());
}

const KEY: &str = "sk-echo-0123456789abcdef";

/// Answers every request with these bytes.
fn answering(response: &'static str) -> std::net::SocketAddr {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 64 * 1024];
            let _read = stream.read(&mut buffer).unwrap();
            stream.write_all(response.as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn k4_a_key_that_a_provider_repeats_is_written_nowhere() {
    #[rustfmt::skip]
    let cases = [
        ("refused", "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"error\":{\"message\":\"Incorrect API key provided: sk-echo-0123456789abcdef.\",\"code\":\"sk-echo-0123456789abcdef\"}}"),
        ("html", "HTTP/1.1 403 Forbidden\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<p>bad key sk-echo-0123456789abcdef</p>"),
        ("in the stream", "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\ndata: {\"error\":{\"message\":\"key sk-echo-0123456789abcdef is over its quota\"}}\n\n"),
    ];
    for (name, response) in cases {
        let address = answering(response);
        let table = format!(
            "[providers.echo]\nprotocol = \"openai-chat\"\nbase_url = \"http://{address}/v1\"\napi_key_env = \"ECHO_KEY\"\n"
        );
        let config = TestConfig::with("leaves-echo", &table);
        let mut everything = String::new();
        for arguments in [
            &["ask", "-m", "echo/m", "--record", "tape.jsonl", "hello"][..],
            &["ask", "--json", "-m", "echo/m", "hello"],
        ] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
            command.args(arguments).current_dir(config.project()).env("ECHO_KEY", KEY);
            command.env("ASIDE_LOG", "debug").env("ASIDE_STATE_DIR", config.0.join("state"));
            let said = run(&mut command, b"", Some(&config));
            assert_eq!(said.code, 1, "{name}: {}", said.stderr);
            assert!(
                said.stderr.contains("***") || said.stdout.contains("***"),
                "{name}: {} {}",
                said.stdout,
                said.stderr
            );
            everything += &(said.stdout + &said.stderr);
        }
        everything += &fs::read_to_string(config.project().join("tape.jsonl")).unwrap();
        fs::remove_file(config.project().join("tape.jsonl")).unwrap();
        everything += &config.stdout("sessions export --format jsonl");
        for file in ["data/sessions.db", "data/sessions.db-wal", "state/aside.log"] {
            everything += &String::from_utf8_lossy(&fs::read(config.0.join(file)).unwrap_or_default());
        }
        assert!(!everything.contains(KEY), "{name}: {everything}");
    }
}
