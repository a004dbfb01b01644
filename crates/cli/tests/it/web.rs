//! `aside web`, by raw sockets: who gets in, and what a tab receives.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::TestConfig;

/// Much longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

struct WebProcess {
    child: Child,
    port: u16,
    token: String,
    cookie: String,
}

impl Drop for WebProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn aside(config: &TestConfig, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.args(arguments).current_dir(config.project()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", &config.0);
    for name in ["ASIDE_CONFIG_DIR", "ASIDE_DATA_DIR", "ASIDE_STATE_DIR"] {
        command.env(name, &config.0);
    }
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// The port and the token of a printed address.
fn parse_url(url: &str) -> (u16, String) {
    let rest = url.trim().strip_prefix("http://127.0.0.1:").unwrap();
    let (port, token) = rest.split_once("/#t=").unwrap();
    (port.parse().unwrap(), token.to_owned())
}

impl WebProcess {
    fn start(config: &TestConfig) -> WebProcess {
        let mut child = aside(config, &["web", "--print-url"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (port, token) = parse_url(&line);
        WebProcess { child, port, token, cookie: String::new() }
    }

    fn logged_in(config: &TestConfig) -> WebProcess {
        let mut web = WebProcess::start(config);
        let answer = web.post("/api/login", &json!({"token": web.token}));
        assert_eq!(answer.status, 204, "{answer:?}");
        web.cookie = answer.headers["set-cookie"].split(';').next().unwrap().to_owned();
        web
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn raw(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        Answer::parse(&String::from_utf8_lossy(&text))
    }

    fn get(&self, path: &str) -> Answer {
        let WebProcess { port, cookie, .. } = self;
        self.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        ))
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        let (WebProcess { port, cookie, .. }, body) = (self, body.to_string());
        self.raw(&format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nConnection: close\r\naside-web: 1\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    fn begin(&self) -> String {
        let answer = self.post("/api/sessions", &json!({}));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    fn command(&self, id: &str, command: &Value) -> Answer {
        self.post(&format!("/api/sessions/{id}/commands"), command)
    }

    fn prompt(&self, id: &str, text: &str) {
        let answer = self.command(id, &json!({"type": "prompt", "value": text}));
        assert_eq!(answer.status, 204, "{answer:?}");
    }

    fn events(&self, id: &str, from: Option<&str>) -> Events {
        let mut stream = self.connect();
        let WebProcess { port, cookie, .. } = self;
        let from = from.map_or_else(String::new, |from| format!("Last-Event-ID: {from}\r\n"));
        let path = format!("/api/sessions/{id}/events");
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n{from}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        Events { lines: BufReader::new(stream), id: String::new() }
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Answer {
    fn parse(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let status = lines.next().unwrap_or_default().split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        Answer { status, headers, body: body.to_owned() }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The events of a stream, with the id of the last one.
struct Events {
    lines: BufReader<TcpStream>,
    id: String,
}

impl Iterator for Events {
    type Item = (String, Value);

    fn next(&mut self) -> Option<(String, Value)> {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            // Lines between them are the lengths of chunks.
            if let Some(id) = line.strip_prefix("id: ") {
                self.id = id.trim_end().to_owned();
            } else if let Some(event) = line.strip_prefix("event: ") {
                name = event.trim_end().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).unwrap()));
            }
        }
    }
}

impl Events {
    fn until(&mut self, name: &str) -> Value {
        self.by_ref().find(|(event, _)| event == name).unwrap_or_else(|| panic!("no `{name}`")).1
    }

    /// Everything until the turn is over.
    fn turn(&mut self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        let mut has_begun = false;
        for (name, data) in self.by_ref() {
            let is_turn = name == "turn";
            let is_running = is_turn && data["running"] == true;
            has_begun |= is_running;
            events.push((name, data));
            if is_turn && !is_running && has_begun {
                return events;
            }
        }
        panic!("the turn never ended: {events:?}");
    }
}

/// The thinking that these events say, for block 0 of a message.
fn thinking_of(events: &[(String, Value)]) -> String {
    let mut text = String::new();
    for (name, data) in events {
        match name.as_str() {
            "grew" if data["block"] == 0 => text.push_str(data["text"].as_str().unwrap()),
            "block" if data["block"] == 0 && data["value"]["text"].is_string() => {
                data["value"]["text"].as_str().unwrap().clone_into(&mut text);
            }
            _ => (),
        }
    }
    text
}

#[test]
fn w4_only_the_page_itself_gets_in() {
    let config = TestConfig::new("web-guard");
    let web = WebProcess::logged_in(&config);
    let (port, cookie) = (web.port, web.cookie.as_str());
    let own = format!("Host: 127.0.0.1:{port}\r\n");
    let json = "Content-Type: application/json\r\naside-web: 1\r\nContent-Length: 2\r\n";
    let with_cookie = format!("{own}Cookie: {cookie}\r\n");
    #[rustfmt::skip]
    let cases = [
        ("page",                "GET / ",             own.clone(),                                                          200),
        ("script",              "GET /main.js ",      own.clone(),                                                          200),
        ("page by localhost",   "GET / ",             format!("Host: localhost:{port}\r\n"),                                200),
        ("no such file",        "GET /../secret ",    own.clone(),                                                          404),
        ("list",                "GET /api/sessions ", with_cookie.clone(),                                                  200),
        ("no cookie",           "GET /api/sessions ", own.clone(),                                                          401),
        ("wrong cookie",        "GET /api/sessions ", format!("{own}Cookie: aside_{port}=AAAA\r\n"),                        401),
        ("cookie of a port",    "GET /api/sessions ", format!("{own}Cookie: {}\r\n", cookie.replace("aside_", "aside_1")),  401),
        ("token in the query",  "GET /api/sessions?t=x ", own.clone(),                                                      401),
        ("rebound name",        "GET /api/sessions ", format!("Host: evil.example:{port}\r\nCookie: {cookie}\r\n"),         403),
        ("rebound name, page",  "GET / ",             format!("Host: evil.example:{port}\r\n"),                             403),
        ("no host",             "GET / ",             String::new(),                                                        403),
        ("other port",          "GET / ",             "Host: 127.0.0.1:1\r\n".to_owned(),                                   403),
        ("other origin",        "GET /api/sessions ", format!("{with_cookie}Origin: http://evil.example\r\n"),              403),
        ("null origin",         "GET /api/sessions ", format!("{with_cookie}Origin: null\r\n"),                             403),
        ("cross site",          "GET /api/sessions ", format!("{with_cookie}Sec-Fetch-Site: cross-site\r\n"),               403),
        ("same site",           "GET /api/sessions ", format!("{with_cookie}Sec-Fetch-Site: same-site\r\n"),                403),
        ("same origin",         "GET /api/sessions ", format!("{with_cookie}Sec-Fetch-Site: same-origin\r\n"),              200),
        ("preflight",           "OPTIONS /api/sessions ", format!("{with_cookie}Origin: http://evil.example\r\n"),          403),
        ("own preflight",       "OPTIONS /api/sessions ", with_cookie.clone(),                                              403),
        ("form",                "POST /api/sessions ", format!("{with_cookie}Content-Type: text/plain\r\naside-web: 1\r\nContent-Length: 2\r\n"), 415),
        ("no header of ours",   "POST /api/sessions ", format!("{with_cookie}Content-Type: application/json\r\nContent-Length: 2\r\n"), 403),
        ("no cookie, post",     "POST /api/sessions ", format!("{own}{json}"),                                              401),
        ("other origin, post",  "POST /api/sessions ", format!("{with_cookie}{json}Origin: http://127.0.0.1:1\r\n"),        403),
        ("delete",              "DELETE /api/sessions ", format!("{with_cookie}{json}"),                                    403),
        ("no session",          "GET /api/sessions/nothing/events ", with_cookie.clone(),                                   404),
    ];
    for (name, line, headers, status) in cases {
        let body = if headers.contains("Content-Length") { "{}" } else { "" };
        let answer = web.raw(&format!("{line}HTTP/1.1\r\n{headers}Connection: close\r\n\r\n{body}"));
        // Without a host, the HTTP library may refuse it first.
        let expected = if name == "no host" && answer.status == 400 { 400 } else { status };
        assert_eq!(answer.status, expected, "{name}: {answer:?}");
        let cors = answer.headers.keys().filter(|name| name.starts_with("access-control-")).count();
        assert_eq!(cors, 0, "{name}: {answer:?}");
        if answer.status != 400 {
            let policy = &answer.headers["content-security-policy"];
            assert!(policy.contains("default-src 'none'") && policy.contains("require-trusted-types-for"), "{name}");
        }
    }
}

#[test]
fn w4_a_login_token_works_once_and_a_new_secret_logs_everybody_out() {
    let config = TestConfig::new("web-token");
    let mut web = WebProcess::logged_in(&config);
    let used = web.post("/api/login", &json!({"token": web.token}));
    assert_eq!(used.status, 401, "{used:?}");
    for guess in ["", "x", &"A".repeat(75), &web.cookie] {
        let answer = web.post("/api/login", &json!({"token": guess}));
        assert_eq!((answer.status, answer.headers.get("set-cookie")), (401, None), "{guess}");
    }
    // While it runs, another process prints a new address of it.
    let printed = aside(&config, &["web", "--print-url"]).output().unwrap();
    let (port, token) = parse_url(&String::from_utf8(printed.stdout).unwrap());
    assert_eq!(port, web.port);
    let answer = web.post("/api/login", &json!({"token": token}));
    assert_eq!(answer.status, 204);
    let cookie = &answer.headers["set-cookie"];
    for word in [format!("aside_{port}="), "HttpOnly".into(), "SameSite=Strict".into(), "Path=/".into()] {
        assert!(cookie.contains(&word), "{cookie}");
    }
    assert_eq!(web.get("/api/sessions").status, 200);
    let printed = aside(&config, &["web", "--print-url", "--new-token"]).output().unwrap();
    assert_eq!(web.get("/api/sessions").status, 401);
    let (_, token) = parse_url(&String::from_utf8(printed.stdout).unwrap());
    let answer = web.post("/api/login", &json!({"token": token}));
    web.cookie = answer.headers["set-cookie"].split(';').next().unwrap().to_owned();
    assert_eq!(web.get("/api/sessions").status, 200);
}

#[test]
fn w4_an_address_that_others_reach_needs_a_token() {
    let config = TestConfig::new("web-listen");
    for arguments in
        [&["web", "--listen", "0.0.0.0:0"][..], &["web", "--listen", "0.0.0.0:0", "--token-env", "NO_SUCH"]]
    {
        let run = aside(&config, arguments).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(run.stderr).unwrap();
        assert_eq!((run.status.code(), run.stdout.as_slice()), (Some(2), &b""[..]), "{stderr}");
        assert!(stderr.contains("token") || stderr.contains("NO_SUCH"), "{stderr}");
    }
}

#[test]
fn w3_two_tabs_see_the_same_and_a_tab_goes_on_where_it_stopped() {
    let config = TestConfig::new("web-tabs");
    let web = WebProcess::logged_in(&config);
    let id = web.begin();
    let (mut first, mut second) = (web.events(&id, None), web.events(&id, None));
    first.until("entries");
    second.until("entries");
    web.prompt(&id, "sim: think tokens=120");
    let all = first.turn();
    // The second tab stops in the middle of the thinking, and comes back.
    let mut seen = Vec::new();
    while thinking_of(&seen).is_empty() {
        seen.push(second.next().unwrap());
    }
    let mut again = web.events(&id, Some(&second.id));
    let last = all.iter().rev().find(|(name, _)| name == "facts").unwrap().1.clone();
    for event in again.by_ref() {
        let is_last = event.0 == "facts" && event.1["state"] == "done";
        seen.push(event);
        if is_last {
            break;
        }
    }
    let whole = thinking_of(&all);
    assert!(whole.len() > 200, "{whole}");
    assert_eq!(thinking_of(&seen), whole);
    // The store says the same.
    let entry = last["entry"].as_i64().unwrap();
    let block = web.get(&format!("/api/sessions/{id}/blocks/{entry}.0")).json();
    assert_eq!((block["kind"].as_str(), block["text"].as_str()), (Some("thinking"), Some(whole.as_str())));
    assert!(block["endedAt"].as_u64() > block["startedAt"].as_u64(), "{block}");
    // A tab that has everything gets no text again.
    let mut up_to_date = web.events(&id, Some(&first.id));
    assert_eq!(up_to_date.next().unwrap().0, "hello");
    let (name, data) = up_to_date.next().unwrap();
    assert_eq!((name.as_str(), data["value"]["text"].as_str()), ("block", None), "{data}");
    let hits = web.get("/api/search?q=simulator").json();
    assert!(hits["hits"].as_array().unwrap().iter().any(|hit| hit["session"] == id.as_str()), "{hits}");
    let listed = web.get("/api/sessions").json();
    assert_eq!(listed["sessions"][0]["id"], id.as_str(), "{listed}");
}

#[test]
fn w3_after_a_kill_the_tab_is_cut_back_to_what_the_store_has() {
    let config = TestConfig::new("web-kill");
    let mut web = WebProcess::logged_in(&config);
    let id = web.begin();
    let mut tab = web.events(&id, None);
    web.prompt(&id, "sim: think tokens=4000");
    let mut seen = Vec::new();
    while thinking_of(&seen).len() < 300 {
        seen.push(tab.next().unwrap());
    }
    web.child.kill().unwrap();
    web.child.wait().unwrap();
    seen.extend(tab.by_ref());
    let (cookie, port) = (web.cookie.clone(), web.port);
    drop(web);
    let mut web = WebProcess::start(&config);
    assert_eq!(web.port, port, "the port is taken again");
    web.cookie = cookie;
    // As far as the tab got, and beyond everything that can be stored.
    let mut place = tab.id.split('.').map(str::to_owned).collect::<Vec<_>>();
    place[2] = "9000000".to_owned();
    let mut again = web.events(&id, Some(&place.join(".")));
    let to = again.until("rewind");
    let (entry, bytes) = (to["entry"].as_i64().unwrap(), to["bytes"].as_u64().unwrap() as usize);
    let stored = web.get(&format!("/api/sessions/{id}/blocks/{entry}.0")).json();
    let text = stored["text"].as_str().unwrap();
    assert_eq!(text.len(), bytes);
    assert_eq!(stored["state"], "interrupted");
    let before = thinking_of(&seen);
    assert!(before.starts_with(text) || text.starts_with(&before), "{before}\n{text}");
    assert!(before.len().abs_diff(bytes) < 1000, "less than a second of text is lost");
}

#[test]
fn w4_a_question_cannot_be_answered_at_once_nor_twice() {
    let config = TestConfig::with("web-question", "[permissions]\nlist = \"ask\"\n");
    let web = WebProcess::logged_in(&config);
    let id = web.begin();
    let mut tab = web.events(&id, None);
    web.prompt(&id, "sim: tool-loop 1");
    let question = tab.until("question");
    assert!(question["head"].as_str().unwrap().starts_with("list"), "{question}");
    let answer =
        |answer: Value| web.command(&id, &json!({"type": "answer", "value": {"id": question["id"], "answer": answer}}));
    let early = answer(json!({"type": "once"}));
    // The machine may be too slow to be early; then it is an answer like any other.
    if early.status == 409 {
        assert_eq!(early.json(), json!({"error": "too_early"}));
        std::thread::sleep(Duration::from_millis(600));
        assert_eq!(answer(json!({"type": "once"})).status, 204);
    } else {
        assert_eq!(early.status, 204);
    }
    let late = answer(json!({"type": "once"}));
    assert_eq!((late.status, late.json()), (409, json!({"error": "answered"})));
    let result = tab.until("result");
    assert_eq!(result["state"], "done", "{result}");
}

#[test]
fn w3_a_session_that_is_open_elsewhere_is_read_and_followed_but_not_written() {
    let config = TestConfig::new("web-elsewhere");
    let web = WebProcess::logged_in(&config);
    let made = aside(&config, &["ask", "-m", "sim/deepseek", "sim: think"]).output().unwrap();
    assert_eq!(made.status.code(), Some(0));
    let id = web.get("/api/sessions").json()["sessions"][0]["id"].as_str().unwrap().to_owned();
    let mut other = aside(&config, &["--plain", "-r", &id]);
    let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = other.stdin.take().unwrap();
    let mut output = BufReader::new(other.stdout.take().unwrap()).lines();
    output.find(|line| line.as_ref().unwrap().contains("Model:")).unwrap().unwrap();
    let mut tab = web.events(&id, None);
    assert_eq!(tab.until("hello")["readOnly"], true);
    let before = tab.until("entries")["entries"].as_array().unwrap().len();
    assert!(before >= 2, "{before}");
    let refused = web.command(&id, &json!({"type": "prompt", "value": "hello"}));
    assert_eq!((refused.status, refused.json()), (409, json!({"error": "open_elsewhere"})));
    input.write_all(b"sim: plain\n").unwrap();
    let followed = tab.until("entry");
    assert_eq!(followed["blocks"][0]["text"], "sim: plain", "{followed}");
    drop(input);
    other.wait().unwrap();
    web.prompt(&id, "sim: plain");
    let taken = tab.by_ref().find(|(name, data)| name == "hello" && data["readOnly"] == false);
    assert!(taken.is_some());
}

#[test]
fn w1_slash_commands_work_and_views_efforts_and_models_change() {
    let config = TestConfig::new("web-commands");
    let web = WebProcess::logged_in(&config);
    let id = web.begin();
    let mut tab = web.events(&id, None);
    tab.until("entries");
    let prompt = |text: &str| web.command(&id, &json!({"type": "prompt", "value": text}));
    assert_eq!(web.command(&id, &json!({"type": "effort", "value": "high"})).status, 204);
    let status = tab.by_ref().find(|(name, data)| name == "status" && data["effort"] == "high");
    assert!(status.is_some());
    assert_eq!(prompt("/model sim/kimi").status, 204);
    let status = tab.by_ref().find(|(name, data)| name == "status" && data["model"] == "sim/kimi");
    assert!(status.is_some());
    assert_eq!(prompt("/thinking full").status, 204);
    let status = tab.by_ref().find(|(name, data)| name == "status" && data["view"] == "full");
    assert!(status.is_some());
    let wrong = prompt("/thinkng");
    assert_eq!((wrong.status, wrong.json()["hint"].as_str()), (400, Some("/thinking")));
    assert_eq!(prompt("/sent").json(), json!({"local": "sent", "rest": ""}));
    assert_eq!(web.command(&id, &json!({"type": "nonsense"})).status, 400);
    assert_eq!(web.command(&id, &json!({"type": "terminal", "value": {"type": "suspend"}})).status, 400);
}
