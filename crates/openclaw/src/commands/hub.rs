//! `openclaw mcp-server --hub`: the servers of an agent as one MCP server, over stdin and stdout.
//!
//! With a running gateway, this process only copies bytes, and the gateway's servers are used.

use std::io;
use std::time::Duration;

use openclaw_config::{Config, Paths};
use openclaw_content::{Untrusted, clean_line};
use openclaw_gateway::Gateway;
use openclaw_gateway::socket::hub::LINES;
use openclaw_mcp::fleet::StartMode;
use openclaw_mcp_server::hub::lines::LinesError;
use openclaw_mcp_server::hub::{HubClientOptions, lines, stdio};
use openclaw_protocol::client::{self, Address};
use openclaw_secrets::SecretString;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::link::{self, ClientRole, GatewayTarget, Need, Servers};
use super::{block_on, load_config_at};
use crate::cli::{HubTools, McpServerArgs};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::{Signals, end_after};

/// How long running work may take to stop.
const GRACE: Duration = Duration::from_secs(1);
/// How long the gateway may take to accept the connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Maximum length of the head of the gateway's response.
const MAX_HEAD: u64 = 16 * 1024;
/// Maximum length of an error of the gateway.
const MAX_ERROR: usize = 1_000;

/// Serves until stdin closes.
pub(crate) fn serve(args: &McpServerArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let paths = edge.paths()?;
    // Also with a running gateway, which would offer the tools of this server to itself.
    edge.check_not_own_server(&paths)?;
    let target = GatewayTarget::find(&args.gateway, edge)?;
    let options = HubClientOptions {
        agent: args.order.agent.clone(),
        servers: args.hub.server.clone(),
        prefix: !args.hub.no_prefix,
        wrap: !args.hub.no_wrap,
        search: args.hub.tools == HubTools::Search,
        ..HubClientOptions::default()
    };
    block_on(async {
        // Before any process is spawned: from here on, a signal must not leave one behind.
        let mut signals = Signals::listen().context("cannot start")?;
        if let Some(stream) = gateway(&target, &options, &paths, edge, output).await? {
            return tokio::select! {
                served = relay(stream) => served,
                _ = signals.next() => Err(CommandError::Interrupted),
            };
        }
        let config = load_config_at(&paths, edge, output)?;
        super::find_agent(&config, options.agent.as_deref())?;
        let gateway = start(config, &options, &paths, edge, output).await?;
        let hub = std::sync::Arc::clone(gateway.hub());
        // A task: whenever the future of `block_on` is woken, the runtime asks the operating system
        // for events first, which would be two more system calls for each call of a tool.
        let mut serving = tokio::spawn(async move {
            let (input, out) = stdio();
            lines::serve(&hub, options, input, out).await
        });
        let served = tokio::select! {
            served = &mut serving => match served {
                Ok(Ok(())) => Ok(Exit::Ok),
                Ok(Err(LinesError::Hub(error))) => Err(wrong_options(error.to_string())),
                Ok(Err(error)) => Err(CommandError::failed(error.to_string())),
                Err(error) => Err(CommandError::failed(error.to_string())),
            },
            _ = signals.next() => Err(CommandError::Interrupted),
        };
        serving.abort();
        if matches!(served, Err(CommandError::Interrupted)) {
            end_after(GRACE);
        }
        gateway.stop(GRACE).await;
        served
    })
}

/// The error for an agent or a server that does not exist.
fn wrong_options(message: String) -> CommandError {
    CommandError::usage(message).hint("run `openclaw mcp list` to list the servers")
}

/// Starts the servers of the agent in this process.
async fn start(
    config: Config,
    options: &HubClientOptions,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Result<std::sync::Arc<Gateway>, CommandError> {
    let servers = Servers {
        agent: options.agent.clone(),
        start: StartMode::Eager,
        calls: true,
        role: ClientRole::Chatting,
        alone: true,
    };
    let mut setup = link::setup(config, &Need::Servers(servers), paths, edge, output)?;
    // Unlike a single command, it stays.
    setup.fleet.tries_again = true;
    let gateway = Gateway::start(setup).await.map_err(|error| link::cannot_start(&error))?;
    gateway.fleet().learn();
    Ok(gateway)
}

/// Connects to the hub of the chosen gateway, or of the one that runs with the same configuration, if
/// there is one.
async fn gateway(
    target: &GatewayTarget,
    options: &HubClientOptions,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Result<Option<BufReader<TcpStream>>, CommandError> {
    let need = Need::Agents(ClientRole::Script);
    // The servers of `gateway.remote` are those of another machine; `--hub` offers those of this one.
    if let Some(named) = target.named().filter(|named| named.is_option) {
        let client::ConnectOptions { url, token, .. } = named.options(&need, edge).await?;
        let stream = connect(&url, token.as_ref(), options).await;
        return stream.map(Some).map_err(|error| match error {
            NoHub::WrongOptions(message) => wrong_options(message),
            NoHub::Unreachable(error) => CommandError::unavailable(error.to_string()),
        });
    }
    let Some(running) = link::running(&paths.state, edge) else { return Ok(None) };
    if link::usable_options(paths, &need, edge, output).await.is_none() {
        return Ok(None);
    }
    match connect(&running.url, running.token.as_ref(), options).await {
        Ok(stream) => Ok(Some(stream)),
        Err(NoHub::WrongOptions(message)) => Err(wrong_options(message)),
        Err(NoHub::Unreachable(error)) => {
            output.note(&format!("not using the gateway (process {}): {error}", running.pid));
            Ok(None)
        }
    }
}

/// Why there is no connection to the hub of a gateway.
enum NoHub {
    /// The gateway has no such agent or server.
    WrongOptions(String),
    /// It cannot be reached, or does not offer a hub.
    Unreachable(io::Error),
}

impl From<io::Error> for NoHub {
    fn from(error: io::Error) -> Self {
        Self::Unreachable(error)
    }
}

/// Asks a gateway for its hub, over HTTP; from the response on, the connection carries lines.
async fn connect(
    url: &str,
    token: Option<&SecretString>,
    options: &HubClientOptions,
) -> Result<BufReader<TcpStream>, NoHub> {
    let connected = timeout(CONNECT, upgrade(url, token, options)).await;
    connected.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}

async fn upgrade(
    url: &str,
    token: Option<&SecretString>,
    options: &HubClientOptions,
) -> Result<BufReader<TcpStream>, NoHub> {
    let address = Address::parse(url).map_err(io::Error::other)?;
    if address.is_tls() || !address.is_loopback() {
        let words = "the hub of a gateway is available on its own machine only; use a tunnel to \
                     ws://127.0.0.1:PORT";
        return Err(io::Error::other(words).into());
    }
    let stream = TcpStream::connect((address.host(), address.port())).await?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let token = token.map_or("", |token| token.expose());
    let request = format!(
        "GET /mcp?{} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Connection: upgrade\r\nUpgrade: {LINES}\r\n\r\n",
        options.query()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = (&mut stream).take(MAX_HEAD);
    let (mut status, mut line) = (String::new(), String::new());
    head.read_line(&mut status).await?;
    let mut length = 0;
    while head.read_line(&mut line).await? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    match status.split_ascii_whitespace().nth(1) {
        Some("101") => Ok(stream),
        Some("400") => {
            let mut message = vec![0; length.min(MAX_ERROR)];
            stream.read_exact(&mut message).await?;
            let message = String::from_utf8_lossy(&message);
            Err(NoHub::WrongOptions(clean_line(Untrusted::new(&message), MAX_ERROR)))
        }
        _ => Err(io::Error::other(format!("it replied `{}`", status.trim())).into()),
    }
}

/// Copies bytes in both directions until one end closes.
async fn relay(stream: BufReader<TcpStream>) -> CommandResult {
    let read = stream.buffer().to_vec();
    let (mut from_gateway, mut to_gateway) = stream.into_inner().into_split();
    let (mut input, mut out) = stdio();
    let forth = async {
        copy(&mut input, &mut to_gateway).await?;
        to_gateway.shutdown().await
    };
    let back = async {
        out.write_all(&read).await?;
        copy(&mut from_gateway, &mut out).await?;
        out.flush().await
    };
    let copied = async {
        tokio::select! {
            // The replies to what the client has sent still arrive.
            copied = async { forth.await?; std::future::pending().await } => copied,
            copied = back => copied,
        }
    };
    copied.await.context("connection to the gateway lost")?;
    Ok(Exit::Ok)
}
