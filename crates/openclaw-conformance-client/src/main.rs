//! The client that the official MCP conformance suite runs as `openclaw-conformance-client URL`: runs
//! a fleet of one server, built with the public API that the product uses, through one scenario.

#![allow(clippy::print_stderr, reason = "the suite logs stderr")]

mod auth;
mod host;
mod scenarios;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{LoadEnvironment, load_text};
use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp_client::connection::remote::AuthContext;
use openclaw_mcp_client::host::Host;
use openclaw_oauth::login::LoginPrompt;
use openclaw_oauth::refresh::Renewals;
use openclaw_oauth::store::{FileStore, KeyOptions};
use openclaw_secrets::Environment;

use host::{Defaults, Echo};
use scenarios::{Problem, Scenario};

/// The timeout of a scenario, below the suite's own of 30 s.
const PATIENCE: Duration = Duration::from_secs(25);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: openclaw-conformance-client URL");
        return ExitCode::from(2);
    };
    let outcome = tokio::time::timeout(PATIENCE, Box::pin(run(&url))).await;
    match outcome.unwrap_or_else(|_| Err("the scenario timed out".into())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

async fn run(url: &str) -> Result<(), Problem> {
    let variable = |name: &str| std::env::var(name).ok();
    let name = variable("MCP_CONFORMANCE_SCENARIO").ok_or("MCP_CONFORMANCE_SCENARIO is not set")?;
    let context = variable("MCP_CONFORMANCE_CONTEXT");
    let scenario = Scenario::new(&name, context.as_deref())?;

    let mut server = serde_json::json!({ "url": url, "sampling": "always", "roots": true });
    if name.starts_with("auth/") {
        server["auth"] = auth::settings(context.as_deref());
        server["auth"]["grantType"] = auth::grant_type(&name).into();
    }
    let config = serde_json::json!({ "mcp": { "servers": { "suite": server } } });
    let loaded =
        load_text(Path::new("openclaw.json"), &config.to_string(), LoadEnvironment::empty());
    let config = loaded.config.ok_or("invalid settings")?;

    let environment = Environment::new(move |name| std::env::var(name).ok());
    let host = Host {
        elicitor: Some(Arc::new(Defaults)),
        sampler: Some(Arc::new(Echo)),
        workspace: std::env::current_dir().ok(),
        downstream: None,
    };
    let state = tempfile::tempdir()?;
    let store = FileStore::new(state.path(), KeyOptions { use_keychain: false });
    let prompt: Option<Arc<dyn LoginPrompt>> = Some(Arc::new(auth::Browser));
    let auth = AuthContext {
        store: Arc::new(store),
        prompt,
        logs_in: true,
        client_metadata_url: None,
        renewals: Renewals::default(),
    };
    let context = DialContext { host, auth: Some(auth), ..DialContext::new(environment) };
    let setup = FleetSetup { tries_again: false, ..FleetSetup::new(context) };
    let fleet = Fleet::start(&config, setup);
    let tools = fleet.agent("main").ok_or("agent `main` not found")?;
    let outcome = match tools.server("suite") {
        Some(server) => match server.ready().await {
            Ok(_) => Box::pin(scenario.play(&tools)).await,
            Err(unavailable) => Err(unavailable.to_string().into()),
        },
        None => Err("server `suite` not found".into()),
    };
    fleet.stop().await;
    outcome
}
