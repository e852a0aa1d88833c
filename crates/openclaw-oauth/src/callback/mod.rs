//! The local end of a browser's redirect: a small HTTP server on 127.0.0.1 for one login (RFC 8252,
//! section 7.3).
//!
//! Other programs and any web page can connect to it. So requests are limited in size, time and
//! number, only the response with the right `state` counts, and no page repeats anything that was
//! sent.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openclaw_secrets::SecretString;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

mod page;

use page::CallbackPage;

const PATH: &str = "/callback";
/// Maximum size of a request, in bytes.
const MAX_REQUEST: usize = 16 * 1024;
/// Maximum number of connections at the same time. A further one ends the oldest that has not sent
/// the response to the login: others may hold theirs open without a word.
const MAX_CONNECTIONS: usize = 64;
/// How long a client may take to send its request, and to read the response.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client may take to close its connection after the response.
const LINGER: Duration = Duration::from_millis(500);
/// How long open connections may take to finish at the end.
const GRACE: Duration = Duration::from_secs(2);

/// Waits on 127.0.0.1 for the response to an authorization request. Dropping it frees the port.
#[derive(Debug)]
pub struct CallbackListener {
    listener: TcpListener,
    port: u16,
}

impl CallbackListener {
    /// Listens on this port, or on a random one.
    ///
    /// # Errors
    /// If the port cannot be used. The kind is `AddrInUse` if another program uses it.
    pub async fn bind(port: Option<u16>) -> io::Result<Self> {
        let wanted = port.unwrap_or(0);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, wanted));
        let listener = TcpListener::bind(address).await.map_err(|error| {
            let cause = match error.kind() {
                io::ErrorKind::AddrInUse => "the port is in use by another program".to_owned(),
                io::ErrorKind::PermissionDenied => "the port needs more privileges".to_owned(),
                _ => error.to_string(),
            };
            io::Error::new(
                error.kind(),
                format!("cannot listen on {address} for the login: {cause}"),
            )
        })?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Returns the URL that the browser is redirected to, or that it is below.
    #[must_use]
    pub fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the response with this state at this path. Other requests get an error page and are
    /// ignored.
    ///
    /// Cancel-safe: dropping the future closes the port. `server` is shown to the user.
    ///
    /// # Errors
    /// If the server task failed.
    pub async fn wait(
        self,
        server: &str,
        expected_state: &str,
        path: &str,
    ) -> io::Result<Callback> {
        let (outcome, outcome_seen) = watch::channel(None);
        let (found, mut finds) = mpsc::channel(1);
        let login = Login {
            port: self.port,
            path: path.to_owned(),
            server: server.to_owned(),
            state: expected_state.into(),
            found,
            outcome: outcome_seen,
        };
        // It ends when `outcome` is dropped.
        let task = tokio::spawn(serve(self.listener, login));
        match finds.recv().await {
            Some(query) => Ok(Callback { query: SecretString::from(query), outcome, task }),
            None => Err(io::Error::other("the server for the login failed")),
        }
    }
}

/// The response to an authorization request. The browser waits for [`finish`](Self::finish). If it
/// is dropped instead, the browser shows that the login failed.
#[derive(Debug)]
pub struct Callback {
    /// Secret: it has the code.
    query: SecretString,
    outcome: watch::Sender<Option<LoginOutcome>>,
    task: JoinHandle<()>,
}

/// How a login ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginOutcome {
    /// The tokens are stored.
    LoggedIn,
    /// The login failed; the program shows why.
    Failed,
}

impl Callback {
    /// Returns the query of the redirect, with its parameters still encoded. Only `state` has been
    /// verified.
    #[must_use]
    pub fn query(&self) -> &str {
        self.query.expose()
    }

    /// Shows the outcome in the browser and closes the port. Takes at most a few seconds.
    pub async fn finish(self, outcome: LoginOutcome) {
        let Self { query: _, outcome: sender, task } = self;
        sender.send_replace(Some(outcome));
        drop(sender);
        // It limits its own time.
        let _ = task.await;
    }
}

/// What a connection needs to know.
#[derive(Clone)]
struct Login {
    port: u16,
    path: String,
    server: String,
    state: SecretString,
    found: mpsc::Sender<String>,
    outcome: watch::Receiver<Option<LoginOutcome>>,
}

/// A connection that may be ended for a newer one.
struct OpenConnection {
    task: AbortHandle,
    /// Whether it has sent the response to the login.
    is_awaited: Arc<AtomicBool>,
}

/// Accepts connections until the login has ended.
async fn serve(listener: TcpListener, login: Login) {
    let mut outcome = login.outcome.clone();
    let mut connections = JoinSet::new();
    // The oldest is the first.
    let mut open: VecDeque<OpenConnection> = VecDeque::new();
    loop {
        tokio::select! {
            // An error: the sender was dropped.
            changed = outcome.changed() => if changed.is_err() { break },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    open.retain(|connection| !connection.task.is_finished());
                    if open.len() >= MAX_CONNECTIONS {
                        make_room(&mut open);
                    }
                    let is_awaited = Arc::new(AtomicBool::new(false));
                    let serving = connection(stream, login.clone(), Arc::clone(&is_awaited));
                    open.push_back(OpenConnection { task: connections.spawn(serving), is_awaited });
                }
                // Out of file descriptors, or the client has left.
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection for the login");
                    sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    // Dropping the set aborts the others.
    let _ = timeout(GRACE, all).await;
}

/// Ends the oldest connection that is not the browser's, or the oldest of the browser.
fn make_room(open: &mut VecDeque<OpenConnection>) {
    let is_free = |one: &OpenConnection| !one.is_awaited.load(Ordering::Relaxed);
    let oldest = open.iter().position(is_free).unwrap_or(0);
    if let Some(connection) = open.remove(oldest) {
        connection.task.abort();
    }
}

async fn connection(mut stream: TcpStream, mut login: Login, is_awaited: Arc<AtomicBool>) {
    let mut outcome = login.outcome.clone();
    let ended = async { while outcome.changed().await.is_ok() {} };
    let request = tokio::select! {
        biased;
        request = timeout(PATIENCE, read_request(&mut stream)) => request,
        // Browsers open connections in advance and leave them idle.
        () = ended => return,
    };
    let page = match request {
        Ok(Ok(Some(head))) => respond(&head, &mut login, &is_awaited).await,
        Ok(Ok(None)) => CallbackPage::TooLarge,
        // It left, or was too slow: there may be no one to respond to.
        Ok(Err(_)) => return,
        Err(_) => CallbackPage::TooSlow,
    };
    let response = page.response(&login.server);
    let write = async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    };
    if let Ok(Ok(())) = timeout(PATIENCE, write).await {
        // Closing with unread data would reset the connection before the response is read.
        let rest = async { while matches!(stream.read(&mut [0; 4096]).await, Ok(1..)) {} };
        let _ = timeout(LINGER, rest).await;
    }
}

/// Reads up to the end of the headers. `None` if they are too large.
async fn read_request(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    loop {
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            head.truncate(end);
            return Ok(Some(head));
        }
        if head.len() >= MAX_REQUEST {
            return Ok(None);
        }
        let room = (MAX_REQUEST - head.len()) as u64;
        if (&mut *stream).take(room).read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Chooses the page. For the awaited response, that takes until the login has ended.
async fn respond(head: &[u8], login: &mut Login, is_awaited: &AtomicBool) -> CallbackPage {
    let query = match query(head, login.port, &login.path) {
        Ok(query) => query,
        Err(page) => return page,
    };
    let mut states =
        url::form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "state");
    let is_expected = match (states.next(), states.next()) {
        // Compared in constant time.
        (Some((_, state)), None) => SecretString::from(state.into_owned()) == login.state,
        _ => false,
    };
    if !is_expected {
        tracing::warn!("ignored a response to a login with another state");
        return CallbackPage::OtherLogin;
    }
    is_awaited.store(true, Ordering::Relaxed);
    // Fails for a second response, as after a reload: that gets the same page.
    let _ = login.found.try_send(query.to_owned());
    let outcome = login.outcome.wait_for(Option::is_some).await;
    match outcome.map(|outcome| *outcome) {
        Ok(Some(LoginOutcome::LoggedIn)) => CallbackPage::LoggedIn,
        _ => CallbackPage::Failed,
    }
}

/// Returns the query of a request for this path.
fn query<'a>(head: &'a [u8], port: u16, wanted: &str) -> Result<&'a str, CallbackPage> {
    let head = str::from_utf8(head).map_err(|_| CallbackPage::Invalid)?;
    let mut lines = head.split("\r\n");
    let mut request = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (request.next(), request.next(), request.next(), request.next())
    else {
        return Err(CallbackPage::Invalid);
    };
    let mut hosts = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(CallbackPage::Invalid)?;
        if name.eq_ignore_ascii_case("host") {
            hosts.push(value.trim_ascii());
        }
    }
    // Against DNS rebinding: a page of another host must not reach this server by its own name.
    let is_ours = |host: &str| {
        let (name, given) = host.split_once(':').unwrap_or((host, "80"));
        (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")) && given == port.to_string()
    };
    if !matches!(hosts[..], [host] if is_ours(host)) {
        return Err(CallbackPage::Invalid);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if method != "GET" || path != wanted {
        return Err(CallbackPage::NotFound);
    }
    Ok(query)
}

#[cfg(test)]
mod tests;
