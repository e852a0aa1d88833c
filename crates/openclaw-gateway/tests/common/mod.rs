//! A gateway with its own directory, and callers in this process.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{LoadEnvironment, Loaded, load};
use openclaw_gateway::serve::{Served, serve};
use openclaw_gateway::socket::{Caller, CallerService as _, Endpoint};
use openclaw_gateway::{Gateway, GatewaySetup, Prepare, state};
use openclaw_mcp::fleet;
use openclaw_mcp::server::StorageFolders;
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp::services::CallServices;
use openclaw_mcp::store::pins::Pins;
use openclaw_mcp_client::connection::remote::AuthContext;
use openclaw_oauth::refresh::Renewals;
use openclaw_oauth::store::{FileStore, KeyOptions};
use openclaw_protocol::ErrorShape;
use openclaw_protocol::client::{Client, ConnectOptions};
use openclaw_secrets::Environment;
use openclaw_tools::audit::{Audit, AuditOptions};
use serde_json::Value;
use serde_json::value::to_raw_value;
use tempfile::TempDir;
use tokio::time::timeout;

/// Generous: the machine may be busy.
pub(crate) const LONG: Duration = Duration::from_secs(120);
/// The scopes of a caller that may do everything.
pub(crate) const ALL_SCOPES: [&str; 4] = ["admin", "read", "write", "approvals"];

/// A directory with a configuration.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new(config: &Value) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write(config);
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.path().join("openclaw.json")
    }

    /// Writes another configuration.
    pub(crate) fn write(&self, config: &(impl Display + ?Sized)) {
        std::fs::write(self.config_file(), config.to_string()).unwrap();
    }

    pub(crate) fn setup(&self) -> GatewaySetup {
        let environment: Environment =
            [("PATH", "/usr/local/bin:/usr/bin:/bin")].into_iter().collect();
        let file = self.config_file();
        let load: Arc<dyn Fn() -> Loaded + Send + Sync> =
            Arc::new(move || load(&file, LoadEnvironment::empty()));
        let loaded = load();
        let Some(config) = loaded.config else { panic!("{:?}", loaded.report) };
        let state = self.path().join("state");
        std::fs::create_dir_all(&state).unwrap();
        let pins = Some(Pins::load(state.join("pins.json")).unwrap().into());
        GatewaySetup {
            config,
            config_file: self.config_file(),
            load,
            state,
            fleet: fleet::FleetSetup {
                folders: StorageFolders { catalogue: None, logs: Some(self.path().join("logs")) },
                services: CallServices { pins, ..CallServices::none() },
                ..fleet::FleetSetup::new(DialContext {
                    auth: Some(self.logins()),
                    ..DialContext::new(environment.clone())
                })
            },
            environment,
            version: "1.2.3".to_owned(),
            prepare: Prepare::AtStart,
            workspace: None,
        }
    }

    fn logins(&self) -> AuthContext {
        let keys = KeyOptions { use_keychain: false };
        AuthContext {
            store: Arc::new(FileStore::new(self.path(), keys)),
            prompt: None,
            logs_in: false,
            client_metadata_url: None,
            renewals: Renewals::default(),
        }
    }

    /// Starts a gateway and waits until all servers were tried.
    pub(crate) async fn start(&self) -> Arc<Gateway> {
        start(self.setup()).await
    }

    /// Like [`start`](Self::start), with an audit log. Returns that, and its file.
    pub(crate) async fn start_audited(&self) -> (Arc<Gateway>, Audit, PathBuf) {
        let file = self.path().join("audit.jsonl");
        let audit = Audit::to_file(&file, AuditOptions::default()).unwrap();
        let mut setup = self.setup();
        setup.fleet.services.audit = audit.clone();
        (start(setup).await, audit, file)
    }

    /// Like [`start`](Self::start), with a socket on any port.
    pub(crate) async fn serve(&self, bind: Option<IpAddr>) -> Served {
        let served = serve(self.setup(), bind, Some(0)).await.unwrap();
        timeout(LONG, served.gateway.fleet().tried()).await.unwrap();
        served
    }
}

async fn start(setup: GatewaySetup) -> Arc<Gateway> {
    let gateway = Gateway::start(setup).await.unwrap();
    timeout(LONG, gateway.fleet().tried()).await.unwrap();
    gateway
}

/// Options to connect to a gateway on its socket.
pub(crate) fn connect_options(served: &Served) -> ConnectOptions {
    let found = state::find(served.state()).unwrap();
    let options = ConnectOptions::new(found.url, found.token, "1");
    ConnectOptions { connect_timeout: LONG, ..options }
}

/// Connects to a gateway on its socket.
pub(crate) async fn connect_to(served: &Served) -> Client {
    Client::connect(&connect_options(served)).await.unwrap()
}

/// Connects a caller in this process, with these scopes and capabilities.
pub(crate) fn connect(gateway: &Arc<Gateway>, scopes: &[&str], caps: &[&str]) -> Arc<dyn Endpoint> {
    let options = ConnectOptions::new("", None, "1");
    let caller = Caller {
        client: options.client,
        role: options.role,
        scopes: scopes.iter().map(|scope| format!("operator.{scope}")).collect(),
        caps: caps.iter().map(|&cap| cap.to_owned()).collect(),
        commands: Vec::new(),
        remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        connection: "this process".to_owned(),
    };
    gateway.open(caller).unwrap()
}

/// Sends a request, and returns its result.
pub(crate) async fn request(
    endpoint: &Arc<dyn Endpoint>,
    method: &str,
    params: Value,
) -> Result<Value, ErrorShape> {
    let params = to_raw_value(&params).unwrap();
    let answer = timeout(LONG, endpoint.request(method, Some(params))).await.unwrap()?;
    Ok(serde_json::from_str(answer.get()).unwrap())
}
