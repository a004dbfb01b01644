//! `aside web`: a page on this machine that shows sessions, and the server behind it.
//!
//! The page gets the events of a session as a stream and sends commands; both are the values of
//! `aside_front`, with Markdown as typed nodes. Nothing from a model becomes HTML. `secret` and
//! `guard` decide who may connect, `sessions` and `hub` connect tabs to sessions, and `page/` is the
//! page itself.

mod entry;
mod frames;
mod guard;
mod hub;
mod page_files;
mod peer_user;
mod secret;
mod server;
mod sessions;
mod transcript;
mod view;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aside_session::{HintedError, SessionChoice};
use tokio::net::TcpListener;

pub use secret::{SecretChoice, WebSecret};
pub use sessions::{OptionsMaker, Sessions};

/// How often sessions without tabs are looked for.
const CLOSE_IDLE_EVERY: Duration = Duration::from_secs(2);

/// A server that listens.
pub struct WebServer {
    listener: TcpListener,
    address: SocketAddr,
    secret: Arc<WebSecret>,
    fixed_token: Option<String>,
    sessions: Arc<Sessions>,
}

impl std::fmt::Debug for WebServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl WebServer {
    pub async fn bind(
        listen: SocketAddr,
        secret: Arc<WebSecret>,
        fixed_token: Option<String>,
        sessions: Arc<Sessions>,
    ) -> io::Result<WebServer> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        Ok(WebServer { listener, address, secret, fixed_token, sessions })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The path of the page that shows this session.
    pub fn session_path(&self, choice: &SessionChoice) -> Result<String, HintedError> {
        Ok(self.sessions.find(choice)?.map_or_else(|| "/".to_owned(), |id| format!("/s/{id}")))
    }

    /// Serves until `stop`, then ends all sessions.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let WebServer { listener, address, secret, fixed_token, sessions } = self;
        let server = server::Server { listen: address, secret, fixed_token, sessions: Arc::clone(&sessions) };
        let routes = server::router(Arc::new(server));
        let close_idle = async {
            loop {
                tokio::time::sleep(CLOSE_IDLE_EVERY).await;
                sessions.close_idle();
            }
        };
        let served = tokio::select! {
            served = async { axum::serve(listener, routes.into_make_service_with_connect_info::<SocketAddr>()).await } => served,
            () = close_idle => Ok(()),
            () = stop => Ok(()),
        };
        sessions.close_all();
        served
    }
}

/// The address of the page, with a token for one login. It is in the fragment, which browsers do
/// not send, so that it is in no log.
pub fn login_url(address: SocketAddr, path: &str, token: &str) -> String {
    let ip = address.ip();
    let host = match ip.is_unspecified() {
        true => SocketAddr::new([127, 0, 0, 1].into(), address.port()),
        false => SocketAddr::new(ip, address.port()),
    };
    format!("http://{host}{path}#t={token}")
}
