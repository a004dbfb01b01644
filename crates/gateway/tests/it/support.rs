//! A scripted provider, a running gateway and a client.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aside_core::protocol::Protocol;
use aside_engine::Http;
use aside_engine::http::ForwardedRequest;
use aside_gateway::{Gateway, GatewayOptions, Listening};
use aside_session::serve_table::StoreChoice;
use aside_session::{Overrides, UserFolders};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// A request as a provider received it.
#[derive(Debug, Clone)]
pub struct Received {
    pub path: String,
    pub head: String,
    pub body: String,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

/// The answer of a provider, as its pieces are written.
#[derive(Debug, Clone)]
pub struct Scripted {
    pub status: u16,
    pub content_type: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub pieces: Vec<Vec<u8>>,
    /// Break the connection at the end instead of ending the body.
    pub breaks_off: bool,
}

impl Scripted {
    pub fn stream(bytes: impl Into<Vec<u8>>) -> Scripted {
        Scripted {
            status: 200,
            content_type: "text/event-stream",
            headers: Vec::new(),
            pieces: vec![bytes.into()],
            breaks_off: false,
        }
    }
}

type Script = Arc<dyn Fn(&Received) -> Scripted + Send + Sync>;

/// A provider on a local port. Dropping it stops it.
pub struct Provider {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Provider {
    pub async fn start(script: impl Fn(&Received) -> Scripted + Send + Sync + 'static) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let received = Arc::new(Mutex::new(Vec::new()));
        let (log, script): (_, Script) = (Arc::clone(&received), Arc::new(script));
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(answer(socket, Arc::clone(&log), Arc::clone(&script)));
            }
        });
        Provider { address, received, task }
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no panic").clone()
    }
}

async fn answer(mut socket: TcpStream, log: Arc<Mutex<Vec<Received>>>, script: Script) -> Option<()> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        (socket.read_buf(&mut bytes).await.ok()? > 0).then_some(())?;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let received = Received { path: head.split(' ').nth(1)?.to_owned(), head, body: String::new() };
    let length: usize = received.header("content-length").unwrap_or("0").parse().ok()?;
    while bytes.len() < end + length {
        (socket.read_buf(&mut bytes).await.ok()? > 0).then_some(())?;
    }
    let received = Received { body: String::from_utf8_lossy(&bytes[end..]).into_owned(), ..received };
    log.lock().expect("no panic").push(received.clone());
    let scripted = script(&received);
    let mut head = format!(
        "HTTP/1.1 {} OK\r\ncontent-type: {}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n",
        scripted.status, scripted.content_type
    );
    for (name, value) in &scripted.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    socket.write_all(format!("{head}\r\n").as_bytes()).await.ok()?;
    for piece in scripted.pieces.iter().filter(|piece| !piece.is_empty()) {
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        socket.write_all(&chunk).await.ok()?;
        socket.flush().await.ok()?;
        tokio::task::yield_now().await;
    }
    if !scripted.breaks_off {
        socket.write_all(b"0\r\n\r\n").await.ok()?;
    }
    socket.shutdown().await.ok()
}

/// A gateway on a local port, with folders of its own. Dropping it stops it.
pub struct Running {
    pub address: SocketAddr,
    pub gateway: Arc<Gateway>,
    pub stop: CancellationToken,
    pub stop_now: CancellationToken,
    pub task: tokio::task::JoinHandle<()>,
    folder: Option<PathBuf>,
    setup: Setup,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        self.stop_now.cancel();
        self.task.abort();
        if let Some(folder) = &self.folder {
            let _gone = std::fs::remove_dir_all(folder);
        }
    }
}

static N_FOLDERS: AtomicUsize = AtomicUsize::new(0);

/// How a gateway is started in a test.
#[derive(Clone)]
pub struct Setup {
    pub config: String,
    pub shadow: bool,
    pub store: StoreChoice,
}

impl Setup {
    pub fn new(config: impl Into<String>) -> Setup {
        Setup { config: config.into(), shadow: false, store: StoreChoice::None }
    }

    pub async fn start(self) -> Running {
        let nth = N_FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("aside-gateway-test-{}-{nth}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("config.toml"), &self.config).expect("a config");
        self.start_in(folder).await
    }

    async fn start_in(self, folder: PathBuf) -> Running {
        let setup = self.clone();
        let folders = UserFolders {
            config: Some(folder.clone()),
            data: Some(folder.join("data")),
            state: Some(folder.join("state")),
        };
        let options = GatewayOptions {
            folders,
            overrides: Overrides::default(),
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            store: Some(self.store),
            shadow: self.shadow,
        };
        let gateway = Arc::new(Gateway::open(options).await.expect("a valid config"));
        let listening = Listening::bind(&gateway).await.expect("a port");
        let address = listening.address().expect("an address");
        let (stop, stop_now) = (CancellationToken::new(), CancellationToken::new());
        let task = tokio::spawn(aside_gateway::serve(Arc::clone(&gateway), listening, stop.clone(), stop_now.clone()));
        Running { address, gateway, stop, stop_now, task, folder: Some(folder), setup }
    }
}

impl Running {
    pub fn write_config(&self, text: &str) {
        std::fs::write(self.folder.as_ref().expect("a folder").join("config.toml"), text).expect("a config");
    }

    /// Ends the gateway and starts another on the same folders.
    pub async fn restart(mut self) -> Running {
        self.stop.cancel();
        self.stop_now.cancel();
        let _ended = (&mut self.task).await;
        self.gateway.flush().await;
        let folder = self.folder.take().expect("a folder");
        self.setup.clone().start_in(folder).await
    }

    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Answer {
        self.send("POST", path, headers, body.into()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], Vec::new()).await
    }

    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        self.send_watched(method, path, headers, body, |_| ()).await
    }

    /// Shows what has arrived so far after each read.
    pub async fn send_watched(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
        mut watch: impl FnMut(&[u8]),
    ) -> Answer {
        let http = Http::default();
        let url = format!("http://{}{path}", self.address);
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request = ForwardedRequest { method, url: &url, headers: &headers, body: body.into() };
        let mut reply = http.forward(request).await.expect("an answer");
        let headers = reply
            .headers()
            .map(|(name, value)| (name.to_owned(), String::from_utf8_lossy(value).into_owned()))
            .collect();
        let (status, mut bytes, mut broke_off) = (reply.status(), Vec::new(), false);
        loop {
            match reply.next_bytes(&http).await {
                Ok(Some(more)) => {
                    bytes.extend_from_slice(&more);
                    watch(&bytes);
                }
                Ok(None) => break,
                Err(_) => {
                    broke_off = true;
                    break;
                }
            }
        }
        Answer { status, headers, bytes, broke_off }
    }

    /// The receipt of an answer, once it is there.
    pub async fn receipt(&self, answer: &Answer) -> serde_json::Value {
        let id = answer.header("aside-request").expect("an id").to_owned();
        let receipt = self.get(&format!("/aside/requests/{id}")).await;
        assert_eq!(receipt.status, 200, "{}", receipt.text());
        serde_json::from_str(&receipt.text()).expect("JSON")
    }
}

/// What a client received.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
    pub broke_off: bool,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// The path at which a client of a protocol asks for a streamed reply.
pub fn client_path(protocol: Protocol, model: &str) -> String {
    match protocol {
        Protocol::OpenaiChat => "/v1/chat/completions".to_owned(),
        Protocol::OpenaiResponses => "/v1/responses".to_owned(),
        Protocol::Anthropic => "/v1/messages".to_owned(),
        Protocol::Gemini => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        Protocol::Ollama => "/api/chat".to_owned(),
        Protocol::Bedrock | Protocol::Cohere => panic!("clients do not speak {protocol}"),
    }
}
