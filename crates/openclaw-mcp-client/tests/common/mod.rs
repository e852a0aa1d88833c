//! How to connect, calls over a lane, and what is left of servers.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::time::Duration;

use openclaw_config::{HttpFlavour, HttpServer, OAuthSettings, ProxySetting, TlsSettings};
use openclaw_mcp_client::connection::local::LocalOptions;
use openclaw_mcp_client::connection::remote::{Network, RemotePlan};
use openclaw_mcp_client::host::{ClientSide, Host};
use openclaw_mcp_client::log::ServerLog;
use openclaw_mcp_client::process::Launch;
use openclaw_mcp_client::wire::{CallError, FastLane, TimeLimits, Traffic, WireCall};
use openclaw_testkit::{Script, TestServer, processes};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

/// Enough for a busy machine.
pub(crate) const LIMITS: TimeLimits =
    TimeLimits { timeout: Duration::from_secs(120), cap: Duration::from_secs(300) };

pub(crate) fn client() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("test", "0"))
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

/// The command line of a server of the testkit.
pub(crate) fn scripted(script: &Script) -> (String, Vec<String>) {
    let (program, args) = TestServer::stdio(script);
    (program.to_str().unwrap().to_owned(), args)
}

/// How to connect to a local server.
pub(crate) fn plan((program, args): (String, Vec<String>)) -> LocalOptions {
    let path = "/usr/local/bin:/usr/bin:/bin".into();
    let env = BTreeMap::from([("PATH".to_owned(), path)]);
    LocalOptions {
        server: "test".to_owned(),
        launch: Launch { program, args, env, cwd: None },
        client: ClientSide::new("test", Host::default()),
        known_era: None,
        only_era: None,
        offer: ProtocolVersion::LATEST_WITH_INITIALIZE,
        timeout: Duration::from_secs(120),
        log: ServerLog::none(),
        traffic: Traffic::default(),
    }
}

/// How to connect to a remote server.
pub(crate) fn remote_plan(url: &str) -> RemotePlan {
    RemotePlan {
        server: "remote".to_owned(),
        config: HttpServer {
            url: Url::parse(url).unwrap().into(),
            flavour: HttpFlavour::Streamable,
            headers: BTreeMap::new(),
            api_key: None,
            oauth: OAuthSettings::default(),
            tls: TlsSettings::default(),
            proxy: ProxySetting::Environment,
        },
        auth: None,
        headers: BTreeMap::new(),
        network: Network::default(),
        client: client(),
        known: None,
        only: None,
        timeout: Duration::from_secs(60),
        log: ServerLog::none(),
        traffic: Traffic::default(),
    }
}

/// Calls a tool with these arguments and members of `_meta`.
pub(crate) async fn call_tool(
    lane: &FastLane,
    (tool, arguments, meta): (&str, &str, &str),
    limits: TimeLimits,
) -> Result<Value, CallError> {
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    let call = WireCall {
        tool,
        arguments: &arguments,
        meta,
        more: "",
        headers: &[],
        trace: None,
        work: None,
    };
    let result = lane.call_tool(call, limits, None).await?;
    Ok(serde_json::from_str(result.get()).unwrap())
}

/// Asserts that no process of a server is left. The tag is the name in its script.
pub(crate) async fn assert_nothing_left(tag: &'static str) {
    let left = tokio::task::spawn_blocking(move || {
        processes::wait_until_none(Duration::from_secs(60), || processes::mentioning(tag))
    });
    assert_eq!(left.await.unwrap(), Vec::<u32>::new());
}

/// Waits until the condition holds.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), waiting).await.unwrap();
}
