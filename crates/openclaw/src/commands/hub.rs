//! `openclaw mcp-server --hub`: the servers of an agent as one MCP server, over stdin and stdout.
//!
//! With a running gateway, this process only copies bytes, and the gateway's servers are used. When that
//! gateway ends, it connects to the next one, or starts the servers itself.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{Config, Paths};
use openclaw_content::{Untrusted, clean_line};
use openclaw_gateway::Gateway;
use openclaw_gateway::socket::hub::LINES;
use openclaw_mcp::server::StartMode;
use openclaw_mcp_server::hub::lines::LinesError;
use openclaw_mcp_server::hub::relay::{ClosedBy, HubStream, LineRelay};
use openclaw_mcp_server::hub::{HubCaller, HubClientOptions, lines, stdio};
use openclaw_protocol::client::{self, Address};
use openclaw_secrets::SecretString;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

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
/// How long to wait for a gateway that restarts before the servers are started in this process.
const RESTART: Duration = Duration::from_secs(3);
/// How long to wait for a gateway that was named with `--gateway`, which nothing replaces.
const NAMED_RESTART: Duration = Duration::from_secs(60);
/// The time between two attempts.
const RETRY: Duration = Duration::from_millis(300);
/// How long another hub may take to complete the handshake of the client.
const INTRODUCE: Duration = Duration::from_secs(20);
/// Bytes between the client and a hub in this process that replaces that of a gateway.
const PIPE: usize = 64 * 1024;
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
            let mut own = None;
            let lasting = LastingHub { target: &target, options: &options, paths: &paths, edge };
            let serving = Box::pin(lasting.serve(stream, &mut own, output));
            let served = signals.interrupt(serving).await;
            if matches!(served, Err(CommandError::Interrupted)) {
                end_after(GRACE);
            }
            if let Some(OwnHub { gateway, serving }) = own {
                serving.abort();
                gateway.stop(GRACE).await;
            }
            return served;
        }
        let config = load_config_at(&paths, edge, output)?;
        super::find_agent(&config, options.agent.as_deref())?;
        let gateway = start(config, &options, &paths, edge, output).await?;
        let hub = Arc::clone(gateway.hub());
        // A task: whenever the future of `block_on` is woken, the runtime asks the operating system
        // for events first, which would be two more system calls for each call of a tool.
        let mut serving = tokio::spawn(async move {
            let (input, out) = stdio();
            lines::serve(&hub, HubCaller::local(), options, input, out).await
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

/// A hub that a client keeps when the gateway ends.
struct LastingHub<'a> {
    target: &'a GatewayTarget,
    options: &'a HubClientOptions,
    paths: &'a Paths,
    edge: &'a Edge,
}

/// A hub in this process, which replaces that of a gateway.
struct OwnHub {
    gateway: Arc<Gateway>,
    serving: JoinHandle<Result<(), LinesError>>,
}

impl LastingHub<'_> {
    /// Serves the client until it closes its end. The servers that are started in this process are left in
    /// `own`.
    async fn serve(
        &self,
        stream: BufReader<TcpStream>,
        own: &mut Option<OwnHub>,
        output: &mut Output,
    ) -> CommandResult {
        let mut relay = LineRelay::new(stdio());
        let lost = "connection to the client lost";
        let mut hub: Box<dyn HubStream> = Box::new(stream);
        loop {
            match relay.pass(hub).await.context(lost)? {
                ClosedBy::Client => return Ok(Exit::Ok),
                ClosedBy::Hub if own.is_some() => {
                    return Err(CommandError::failed("the hub in this process has ended"));
                }
                ClosedBy::Hub => {}
            }
            output.note("the gateway has stopped; looking for another one");
            relay.fail_requests().await.context(lost)?;
            let next: Box<dyn HubStream> = match self.find_again(output).await? {
                Some(stream) => Box::new(stream),
                None => {
                    output.note("no gateway is running; starting the servers in this process");
                    Box::pin(self.start(own, output)).await?
                }
            };
            let introduced = timeout(INTRODUCE, relay.introduce(next)).await;
            let introduced = introduced.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            hub = Box::new(introduced.map_err(|error| {
                CommandError::unavailable("cannot continue with another gateway")
                    .cause(error.to_string())
            })?);
        }
    }

    /// Waits for another gateway, but not for long; `None` if there is none.
    async fn find_again(
        &self,
        output: &mut Output,
    ) -> Result<Option<BufReader<TcpStream>>, CommandError> {
        let Self { target, options, paths, edge } = self;
        let is_named = target.named().is_some_and(|named| named.is_option);
        let until = Instant::now() + if is_named { NAMED_RESTART } else { RESTART };
        loop {
            let found = gateway(target, options, paths, edge, output).await;
            if matches!(found, Ok(Some(_))) || Instant::now() >= until {
                return found;
            }
            sleep(RETRY).await;
        }
    }

    /// Starts the servers in this process, and returns a connection to them.
    async fn start(
        &self,
        own: &mut Option<OwnHub>,
        output: &mut Output,
    ) -> Result<Box<dyn HubStream>, CommandError> {
        let config = load_config_at(self.paths, self.edge, output)?;
        super::find_agent(&config, self.options.agent.as_deref())?;
        let gateway = start(config, self.options, self.paths, self.edge, output).await?;
        let (near, far) = tokio::io::duplex(PIPE);
        let (hub, options) = (Arc::clone(gateway.hub()), self.options.clone());
        let serving = tokio::spawn(async move {
            let (input, out) = tokio::io::split(far);
            lines::serve(&hub, HubCaller::local(), options, input, out).await
        });
        *own = Some(OwnHub { gateway, serving });
        Ok(Box::new(near))
    }
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
) -> Result<Arc<Gateway>, CommandError> {
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
            NoHub::Unreachable(error) => {
                let message = format!("cannot use the gateway at {url}");
                let failed = CommandError::unavailable(message).cause(error.to_string());
                match error.kind() {
                    // The URL itself is the cause.
                    io::ErrorKind::InvalidInput => failed,
                    _ => failed.hint("run `openclaw gateway status` on its machine"),
                }
            }
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
            output.note(&format!("not using the gateway (PID {}): {error}", running.pid));
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
        return Err(io::Error::new(io::ErrorKind::InvalidInput, words).into());
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
