//! Failed connections: the message says what failed, and the hint how to cure it.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::{RunOutput, TestConfig, run};

/// A TLS server with a self-signed certificate. It accepts connections and never answers a POST.
struct TlsServer {
    process: Child,
    address: String,
    /// Kept open: the server ends when it cannot write.
    _output: BufReader<ChildStdout>,
}

impl TlsServer {
    /// `constraint` says whether the certificate is that of an authority.
    fn start(folder: &Path, constraint: &str) -> TlsServer {
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "certificate.pem"])
            .args(["-days", "2", "-subj", "/CN=aside test server", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", constraint])
            .current_dir(folder)
            .output()
            .expect("openssl makes the certificate");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut process = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-cert", "certificate.pem", "-key", "key.pem"])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut lines = output.by_ref().lines().map(Result::unwrap);
        let address = lines.find_map(|line| line.strip_prefix("ACCEPT ").map(str::to_owned));
        TlsServer { process, address: address.expect("it says where it listens"), _output: output }
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn ask(config: &TestConfig, variables: &[(&str, &str)]) -> RunOutput {
    ask_with(config, variables, &[])
}

fn ask_with(config: &TestConfig, variables: &[(&str, &str)], arguments: &[&str]) -> RunOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    // A busy machine may need long for a connection.
    command.args(["ask", "--no-save", "--no-tools", "--set", "http.connectSeconds=300", "hi"]).args(arguments);
    command.current_dir(&config.0);
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    run(command.envs(variables.iter().copied()), b"", Some(config))
}

fn provider(name: &str, base_url: &str) -> TestConfig {
    let table = format!("[providers.work]\nprotocol = \"openai-chat\"\nbase_url = \"{base_url}\"\n");
    TestConfig::with(name, &format!("model = \"work/m\"\n{table}"))
}

#[test]
fn t18_an_unknown_authority_is_named_and_its_cure_works() {
    let folder = TestConfig::new("authority-server");
    let server = TlsServer::start(&folder.0, "basicConstraints=critical,CA:FALSE");
    let config = provider("authority", &format!("https://{}/v1", server.address));
    let refused = ask(&config, &[]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("an unknown authority issued its certificate"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: ") && refused.stderr.contains("SSL_CERT_FILE"), "{}", refused.stderr);
    let certificate = folder.0.join("certificate.pem");
    let variables = [("SSL_CERT_FILE", certificate.to_str().unwrap())];
    let trusted = ask_with(&config, &variables, &["--set", "http.idleSeconds=2"]);
    assert!(trusted.stderr.contains("was silent for 2 s"), "the connection is there: {}", trusted.stderr);
    assert!(trusted.stderr.contains("http.idleSeconds"), "{}", trusted.stderr);
}

#[test]
fn t18_a_self_signed_authority_as_a_server_is_named() {
    let folder = TestConfig::new("self-signed-server");
    let server = TlsServer::start(&folder.0, "basicConstraints=critical,CA:TRUE");
    let refused = ask(&provider("self-signed", &format!("https://{}/v1", server.address)), &[]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("its certificate is self-signed"), "{}", refused.stderr);
    assert!(refused.stderr.contains("CA:FALSE") && refused.stderr.contains("SSL_CERT_FILE"), "{}", refused.stderr);
}

#[test]
fn t18_a_dead_proxy_is_named_without_its_password() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = listener.local_addr().unwrap();
    drop(listener);
    for (scheme, variable) in [("https", "HTTPS_PROXY"), ("http", "http_proxy"), ("https", "ALL_PROXY")] {
        let config = provider("proxy", &format!("{scheme}://provider.invalid/v1"));
        let failed = ask(&config, &[(variable, &format!("http://me:hunter2@{dead}"))]);
        assert_eq!(failed.code, 1, "{variable}: {}", failed.stderr);
        let what = format!("cannot be reached through the proxy {dead}: Connection refused");
        assert!(failed.stderr.contains(&what), "{variable}: {}", failed.stderr);
        assert!(failed.stderr.contains("HTTPS_PROXY") && failed.stderr.contains("NO_PROXY"), "{}", failed.stderr);
        assert!(!failed.stderr.contains("hunter2"), "{}", failed.stderr);
        // The cure.
        let around = ask(&config, &[(variable, &format!("http://{dead}")), ("NO_PROXY", "provider.invalid")]);
        assert!(around.stderr.contains("provider.invalid") && !around.stderr.contains("proxy 1"), "{}", around.stderr);
    }
}
