//! A connection to a server, local or remote: calls, lists, reads.

mod asks_back;
pub mod client;
pub mod era;
mod leader;
mod listen;
mod lists;
pub mod local;
pub mod param_headers;
pub mod remote;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use memchr::memmem::Finder;
use rmcp::RoleClient;
use rmcp::model::ServerPeerInfo;
use rmcp::service::{Peer, RunningService};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, watch};

use crate::connection::client::Client;
use crate::connection::era::Era;
use crate::connection::param_headers::ParamHeader;
use crate::connection::remote::Flavour;
use crate::process::Patience;
use crate::process::stderr::Stderr;
use crate::wire::json::Json;
use crate::wire::{CallError, FastLane, Limits, ToolCall, Watcher};
use asks_back::{INPUT_REQUIRED, MAX_ROUNDS};
pub(crate) use leader::Leader;
use listen::Subscribed;

/// How long a remote server may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(3);

/// A connection to a server. Dropping it kills a local server's process group.
#[derive(Debug)]
pub struct Connection {
    lane: FastLane,
    client: Client,
    peer: Peer<RoleClient>,
    about: About,
    era: Era,
    /// What stands in the `_meta` of every request: since 2026-07-28 there is no handshake to say it.
    meta: Option<Meta>,
    far_end: FarEnd,
    /// Of a server that must be asked to tell of changes.
    subscribed: Mutex<Subscribed>,
    /// The resources that somebody wants to hear of.
    followed: watch::Sender<BTreeSet<String>>,
    /// Until it is closed.
    rmcp: Mutex<Option<RunningService<RoleClient, Client>>>,
}

/// What a server said about itself.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The version of the protocol that was agreed upon.
    pub version: Option<String>,
    /// The program's name and version.
    pub program: Option<String>,
    /// How to use it. From outside: not for a model as it is.
    pub instructions: Option<String>,
    /// What it offers.
    pub offers: Offers,
}

/// What a server says that it offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    /// Tools.
    pub tools: bool,
    /// Resources.
    pub resources: bool,
    /// To tell when a resource changes that somebody is interested in.
    pub resource_updates: bool,
    /// Prompts.
    pub prompts: bool,
}

/// What is at the other end.
#[derive(Debug)]
pub(crate) enum FarEnd {
    /// A process of ours.
    Process {
        /// What watches it, until it is ended.
        leader: Mutex<Option<Leader>>,
        /// Its id.
        pid: u32,
        /// What reads its standard error.
        stderr: Stderr,
    },
    /// A service.
    Remote {
        /// Over which transport.
        flavour: Flavour,
    },
}

/// A connection after the handshake.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) lane: FastLane,
    pub(crate) rmcp: RunningService<RoleClient, Client>,
    pub(crate) era: Era,
}

#[derive(Debug)]
struct Meta {
    object: Map<String, Value>,
    /// The same as text, without braces: what the fast lane puts into a call.
    members: String,
    /// Finds what may be a server that asks back. Made once: making it costs more than a search.
    asks_back: Finder<'static>,
}

impl Meta {
    fn new(object: Map<String, Value>) -> Self {
        let text = Value::Object(object.clone()).to_string();
        let members = text.trim_start_matches('{').strip_suffix('}').unwrap_or_default().to_owned();
        Self { object, members, asks_back: Finder::new(INPUT_REQUIRED) }
    }
}

impl Connection {
    pub(crate) fn new(opened: Opened, client: Client, far_end: FarEnd) -> Self {
        let Opened { lane, rmcp, era } = opened;
        client.speaks_over(&lane);
        let is_modern = era == Era::Modern;
        let meta = is_modern.then(|| Meta::new(era::request_meta(client.config())));
        let about = rmcp.peer_info().map(|info| About::from(&*info)).unwrap_or_default();
        let peer = rmcp.peer().clone();
        let (subscribed, rmcp) = (Mutex::default(), Mutex::new(Some(rmcp)));
        let followed = watch::Sender::default();
        Self { lane, client, peer, about, era, meta, far_end, subscribed, followed, rmcp }
    }

    /// Calls a tool, on the fast lane. A server that asks back is answered (T11), and asked again.
    ///
    /// # Errors
    /// If the server answers with one, too late or not at all.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: &RawValue,
        headers: &[ParamHeader],
        limits: Limits,
    ) -> Result<Json, CallError> {
        self.call_tool_watched(tool, arguments, headers, limits, None).await
    }

    /// The same for somebody who wants to know how far it has got.
    ///
    /// # Errors
    /// If the server answers with one, too late or not at all.
    pub fn call_tool_watched<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a RawValue,
        headers: &'a [ParamHeader],
        limits: Limits,
        watcher: Option<&'a Watcher>,
    ) -> impl Future<Output = Result<Json, CallError>> + Send + 'a {
        let meta = self.meta.as_ref().map_or("", |meta| &meta.members);
        let call = ToolCall { tool, arguments, meta, more: "", headers };
        // Not an `async fn`, which would hold its arguments twice.
        async move {
            let result = self.lane.call_tool_watched(call, limits, watcher).await?;
            match self.missing(&result) {
                None => Ok(result),
                Some(_) => Box::pin(self.asked_back(call, result, limits, watcher)).await,
            }
        }
    }

    /// Answers a server that asks back before it answers a call.
    async fn asked_back(
        &self,
        call: ToolCall<'_>,
        mut result: Json,
        limits: Limits,
        watcher: Option<&Watcher>,
    ) -> Result<Json, CallError> {
        for _ in 0..MAX_ROUNDS {
            let Some(answers) = self.answers(&result).await? else { return Ok(result) };
            let more = answers.members();
            let call = ToolCall { more: &more, ..call };
            result = self.lane.call_tool_watched(call, limits, watcher).await?;
        }
        self.complete(result)
    }

    /// Sends any other request. A server that asks back is answered, and asked again.
    ///
    /// # Errors
    /// If the server answers with one, too late or not at all.
    pub async fn request(
        &self,
        method: &str,
        params: BTreeMap<&str, Box<RawValue>>,
        limits: Limits,
    ) -> Result<Json, CallError> {
        let mut result = self.lane.request(method, &self.with_meta(params.clone()), limits).await?;
        for _ in 0..MAX_ROUNDS {
            let Some(answers) = self.answers(&result).await? else { return Ok(result) };
            let mut params = params.clone();
            params.insert("inputResponses", answers.responses);
            if let Some(state) = answers.state {
                params.insert("requestState", state);
            }
            result = self.lane.request(method, &self.with_meta(params), limits).await?;
        }
        self.complete(result)
    }

    fn with_meta(&self, mut params: BTreeMap<&str, Box<RawValue>>) -> Box<RawValue> {
        if let Some(meta) = &self.meta {
            params.insert("_meta", to_raw_value(&meta.object).unwrap_or_default());
        }
        to_raw_value(&params).unwrap_or_default()
    }

    /// Asks for a sign of life. Since 2026-07-28 there is no ping: there a server is asked what it can,
    /// which every server must answer, which costs it nothing and changes nothing.
    ///
    /// # Errors
    /// If there is none.
    pub async fn ping(&self, limits: Limits) -> Result<(), CallError> {
        let (method, params) = match self.era {
            Era::Modern => ("server/discover", era::question(self.client.config())),
            Era::Legacy => ("ping", to_raw_value(&Map::new()).unwrap_or_default()),
        };
        match self.lane.request(method, &params, limits).await {
            // A server that does not know the question lives, too, and so does one that answers nonsense.
            Ok(_) | Err(CallError::Rpc(_) | CallError::Unreadable { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What the server said about itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Our side of the protocol.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The era that the server speaks.
    pub fn era(&self) -> Era {
        self.era
    }

    /// How many calls wait for an answer.
    pub fn in_flight(&self) -> usize {
        self.lane.in_flight()
    }

    /// How long ago the server last said anything: an answer, a question, a notification.
    pub fn last_heard(&self) -> Duration {
        self.lane.last_heard()
    }

    /// The id of the process, of a local server.
    pub fn pid(&self) -> Option<u32> {
        match &self.far_end {
            FarEnd::Process { pid, .. } => Some(*pid),
            FarEnd::Remote { .. } => None,
        }
    }

    /// The id of the session, of a remote server that has one.
    pub fn session_id(&self) -> Option<String> {
        self.lane.session_id()
    }

    /// The transport, of a remote server.
    pub fn flavour(&self) -> Option<Flavour> {
        match &self.far_end {
            FarEnd::Process { .. } => None,
            FarEnd::Remote { flavour } => Some(*flavour),
        }
    }

    /// What the server wrote to stderr last, once it is closed. Safe to cancel.
    pub async fn last_words(&self) -> Vec<String> {
        match &self.far_end {
            FarEnd::Process { stderr, .. } => {
                stderr.settled().await;
                stderr.last_lines()
            }
            FarEnd::Remote { .. } => Vec::new(),
        }
    }

    /// Waits until the connection is closed; says why. Safe to cancel.
    pub async fn until_closed(&self) -> String {
        self.lane.until_closed().await.to_string()
    }

    /// Ends the connection, and a local server with it (L5). When this returns, nothing of it is left.
    pub async fn close(&self, patience: Patience) {
        let Some(mut rmcp) = self.rmcp.lock().await.take() else { return };
        // Closing `rmcp` drops its transport, and with it a local server's input.
        let _ = tokio::time::timeout(GOODBYE, rmcp.close()).await;
        match &self.far_end {
            FarEnd::Process { leader, .. } => {
                if let Some(leader) = leader.lock().await.take() {
                    leader.shut_down(patience).await;
                }
            }
            FarEnd::Remote { .. } => {}
        }
    }
}

impl From<&ServerPeerInfo> for About {
    fn from(info: &ServerPeerInfo) -> Self {
        let program = info.server_info.as_ref();
        let capabilities = &info.capabilities;
        Self {
            version: Some(info.protocol_version.to_string()),
            program: program.map(|program| format!("{} {}", program.name, program.version)),
            instructions: info.instructions.clone(),
            offers: Offers {
                tools: capabilities.tools.is_some(),
                resources: capabilities.resources.is_some(),
                resource_updates: capabilities
                    .resources
                    .as_ref()
                    .is_some_and(|resources| resources.subscribe == Some(true)),
                prompts: capabilities.prompts.is_some(),
            },
        }
    }
}
