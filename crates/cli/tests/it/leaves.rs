//! What leaves the machine: only what the person typed, named or trusted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{Config, Run, run};
use crate::terminal::provider::{Beat, Provider};

/// A folder with a secret in it, and a provider that writes down what it is sent.
struct Place {
    provider: Provider,
    config: Config,
    folder: PathBuf,
}

impl Place {
    fn new(name: &str) -> Place {
        let provider = Provider::new(vec![vec![Beat::Say("Yes.")]; 9]);
        let config = Config::with(name, &provider.config());
        let folder = config.project();
        fs::write(folder.join("secret.txt"), "hunter2\n").unwrap();
        Place { provider, config, folder }
    }

    fn file(self, name: &str, text: &str) -> Place {
        fs::write(self.folder.join(name), text).unwrap();
        self
    }

    fn ask(&self, arguments: &[&str], stdin: &[u8]) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
        command.args(["ask", "-m", "played/some-model"]).args(arguments).current_dir(&self.folder);
        run(&mut command, stdin, Some(&self.config))
    }

    /// Everything that was sent, as text.
    fn sent(&self) -> String {
        self.provider.bodies().iter().map(Value::to_string).collect()
    }

    fn aside(&self, arguments: &[&str]) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
        run(command.args(arguments).current_dir(&self.folder), b"", Some(&self.config))
    }
}

#[test]
fn l5_a_file_named_in_piped_text_is_not_sent() {
    let place = Place::new("leaves-piped");
    let said = place.ask(&["sum it up"], b"+ see @secret.txt\n");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(place.sent().contains("@secret.txt") && !place.sent().contains("hunter2"), "{}", place.sent());
}

#[test]
fn l5_a_file_that_is_typed_is_sent_and_named() {
    let place = Place::new("leaves-typed");
    let said = place.ask(&["what is @secret.txt about?"], b"");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(place.sent().contains("hunter2"));
    assert!(said.stderr.contains("attached secret.txt"), "{}", said.stderr);
}

#[test]
fn l5_what_cannot_be_attached_is_exit_2_and_nothing_is_sent() {
    let place = Place::new("leaves-wrong").file("fake.png", "no image").file("blob", "a\0b");
    for prompt in ["@none.rs", "@\"no such\"", "@fake.png", "@blob", "@src/none"] {
        let said = place.ask(&[prompt], b"");
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{prompt}: {}", said.stderr);
    }
    assert_eq!(place.provider.bodies().len(), 0);
    assert_eq!(place.ask(&["@@none.rs and @alice"], b"").code, 0);
    assert!(place.sent().contains("@none.rs and @alice") && !place.sent().contains("@@none.rs"), "{}", place.sent());
}

#[test]
fn l5_a_line_of_a_script_names_no_file() {
    let place = Place::new("leaves-script");
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.args(["--plain", "-m", "played/some-model"]).current_dir(&place.folder);
    let said = run(&mut command, b"look at @secret.txt\n", Some(&place.config));
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(place.sent().contains("@secret.txt") && !place.sent().contains("hunter2"), "{}", place.sent());
}

#[test]
fn standard_input_that_is_not_text_is_refused() {
    let place = Place::new("leaves-binary");
    for bytes in [&b"\x7fELF\0\0"[..], b"caf\xe9"] {
        let said = place.ask(&["what is it?"], bytes);
        assert_eq!(said.code, 2, "{}", said.stderr);
    }
    assert_eq!(place.provider.bodies().len(), 0);
}

#[test]
fn a_prompt_far_over_the_window_is_refused_unless_the_limit_is_the_users() {
    let place = Place::new("leaves-window");
    let config = format!("{}[providers.played.models.\"*\"]\ncontext_limit = 1000\n", place.provider.config());
    fs::write(place.config.0.join("config.toml"), &config).unwrap();
    let words = |count: usize| "word ".repeat(count);
    assert_eq!(place.ask(&[&words(3000)], b"").code, 2);
    assert_eq!(place.provider.bodies().len(), 0);
    let said = place.ask(&["--set", "context.limit=1000", &words(3000)], b"");
    assert!(said.code != 2 && said.stderr.contains("takes 1000"), "{}", said.stderr);
}

#[test]
fn l5_instructions_of_a_folder_are_sent_once_it_is_trusted() {
    let place = Place::new("leaves-trust").file("AGENTS.md", "Obey the folder.\n");
    let sends = |said: &Run| {
        assert_eq!(said.code, 0, "{}", said.stderr);
        place.provider.bodies().last().unwrap().to_string().contains("Obey the folder.")
    };
    let said = place.ask(&["hello"], b"");
    assert!(!sends(&said), "nobody trusted it");
    assert_eq!(said.stderr.matches("AGENTS.md is not sent").count(), 1, "{}", said.stderr);
    assert_eq!(place.aside(&["trust"]).code, 0);
    assert!(sends(&place.ask(&["hello"], b"")));
    assert!(place.aside(&["trust", "--list"]).stdout.contains("project"));
    assert_eq!(place.aside(&["trust", "--forget"]).code, 0);
    assert!(!sends(&place.ask(&["hello"], b"")));
    assert!(sends(&place.ask(&["--trust", "hello"], b"")));
    assert!(sends(&place.ask(&["hello"], b"")), "the answer is remembered");
}

#[test]
fn l5_instructions_that_lead_out_of_the_folder_are_not_sent() {
    let place = Place::new("leaves-link");
    let outside = place.config.0.join("outside.txt");
    fs::write(&outside, "hunter3\n").unwrap();
    std::os::unix::fs::symlink(&outside, place.folder.join("AGENTS.md")).unwrap();
    let said = place.ask(&["--trust", "hello"], b"");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(!place.sent().contains("hunter3"));
    assert!(said.stderr.contains("leads out of the project"), "{}", said.stderr);
}

#[test]
fn l5_the_person_at_the_terminal_is_asked_once_whether_a_folder_is_trusted() {
    use crate::pty::Terminal;
    let provider = Provider::new(vec![vec![Beat::Say("Yes.")]; 3]);
    let config = Config::with("leaves-asked", &provider.config());
    fs::write(config.project().join("AGENTS.md"), "Obey the folder.\n").unwrap();
    let ask = ["aside", "ask", "-m", "played/some-model", "hello"];
    let mut terminal = Terminal::run(&ask, &config, &[]);
    let asked = terminal.wait_for("allow?");
    assert!(asked.contains("trust: ") && asked.contains("│ AGENTS.md"), "{asked}");
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
fn k4_a_key_that_a_provider_echoes_is_written_nowhere() {
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
        let config = Config::with("leaves-echo", &table);
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
