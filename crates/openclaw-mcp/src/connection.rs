//! A connection to a server, local or remote: calls, lists, reads.

mod listen;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use memchr::memmem::Finder;
use rmcp::RoleClient;
use rmcp::model::ServerPeerInfo;
use rmcp::service::{Peer, RunningService};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::client::Client;
use crate::era::{self, Era};
use crate::listing::{
    self, Dropped, ListedPrompt, ListedResource, ListedTemplate, ListedTool, Listing,
};
use crate::param_headers::{self, ParamHeader};
use crate::process::{Patience, Process};
use crate::remote::Flavour;
use crate::stderr::Stderr;
use crate::wire::{CallError, FastLane, Limits, ToolCall, Watcher};

/// How often a server may ask back before it answers a request.
const MAX_ROUNDS: usize = 10;
/// The type of a result that asks back.
const INPUT_REQUIRED: &str = "input_required";
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
    /// Prompts.
    pub prompts: bool,
}

/// What is at the other end.
#[derive(Debug)]
pub(crate) enum FarEnd {
    /// A process of ours.
    Process {
        /// The process, until it is ended.
        process: Mutex<Option<Process>>,
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

/// What a server answers when it wants to know something first (2026-07-28).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired<'a> {
    #[serde(borrow)]
    result_type: Cow<'a, str>,
    #[serde(default)]
    input_requests: BTreeMap<String, Value>,
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

/// What we answer to a server that asked back.
struct Answers {
    responses: Box<RawValue>,
    /// What it wants back, exactly as it gave it.
    state: Option<Box<RawValue>>,
}

impl Answers {
    /// As members of an object.
    fn members(&self) -> String {
        let mut members = format!(r#""inputResponses":{}"#, self.responses.get());
        if let Some(state) = &self.state {
            members.push_str(r#","requestState":"#);
            members.push_str(state.get());
        }
        members
    }
}

impl Connection {
    pub(crate) fn new(opened: Opened, client: Client, far_end: FarEnd) -> Self {
        let Opened { lane, rmcp, era } = opened;
        let is_modern = era == Era::Modern;
        let meta = is_modern.then(|| Meta::new(era::request_meta(client.config())));
        let about = rmcp.peer_info().map(|info| About::from(&*info)).unwrap_or_default();
        let peer = rmcp.peer().clone();
        Self { lane, client, peer, about, era, meta, far_end, rmcp: Mutex::new(Some(rmcp)) }
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
    ) -> Result<Box<RawValue>, CallError> {
        self.call_tool_watched(tool, arguments, headers, limits, None).await
    }

    /// The same for somebody who wants to know how far it has got.
    ///
    /// # Errors
    /// If the server answers with one, too late or not at all.
    pub async fn call_tool_watched(
        &self,
        tool: &str,
        arguments: &RawValue,
        headers: &[ParamHeader],
        limits: Limits,
        watcher: Option<&Watcher>,
    ) -> Result<Box<RawValue>, CallError> {
        let meta = self.meta.as_ref().map_or("", |meta| &meta.members);
        let call = ToolCall { tool, arguments, meta, more: "", headers };
        let result = self.lane.call_tool_watched(call, limits, watcher).await?;
        self.go_on(result, async |answers| {
            let more = answers.members();
            let call = ToolCall { more: &more, ..call };
            self.lane.call_tool_watched(call, limits, watcher).await
        })
        .await
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
    ) -> Result<Box<RawValue>, CallError> {
        let result = self.lane.request(method, &self.with_meta(params.clone()), limits).await?;
        self.go_on(result, async |answers| {
            let mut params = params.clone();
            params.insert("inputResponses", answers.responses);
            if let Some(state) = answers.state {
                params.insert("requestState", state);
            }
            self.lane.request(method, &self.with_meta(params), limits).await
        })
        .await
    }

    /// A result that says that something is missing is answered with what is asked for, until it is
    /// complete.
    async fn go_on(
        &self,
        mut result: Box<RawValue>,
        again: impl AsyncFn(Answers) -> Result<Box<RawValue>, CallError>,
    ) -> Result<Box<RawValue>, CallError> {
        for _ in 0..MAX_ROUNDS {
            let Some(missing) = self.missing(&result) else { return Ok(result) };
            let state = missing.request_state.map(ToOwned::to_owned);
            let responses = self.client.fulfil(missing.input_requests).await;
            let responses = responses.map_err(CallError::AskedFor)?;
            let responses = to_raw_value(&responses).unwrap_or_default();
            result = again(Answers { responses, state }).await?;
        }
        match self.missing(&result) {
            Some(_) => Err(CallError::AskedFor("more and more, without an answer".to_owned())),
            None => Ok(result),
        }
    }

    /// Cheap for what is complete: nothing is parsed then.
    fn missing<'a>(&self, result: &'a RawValue) -> Option<InputRequired<'a>> {
        self.meta.as_ref()?.asks_back.find(result.get().as_bytes())?;
        let parsed: InputRequired<'a> = serde_json::from_str(result.get()).ok()?;
        (*parsed.result_type == *INPUT_REQUIRED).then_some(parsed)
    }

    fn with_meta(&self, mut params: BTreeMap<&str, Box<RawValue>>) -> Box<RawValue> {
        if let Some(meta) = &self.meta {
            params.insert("_meta", to_raw_value(&meta.object).unwrap_or_default());
        }
        to_raw_value(&params).unwrap_or_default()
    }

    /// Lists the server's tools.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn list_tools(&self, limits: Limits) -> Result<Listing<ListedTool>, CallError> {
        let mut listing = match listing::tools(&self.lane, self.meta_object(), limits).await {
            // It never said that it has any.
            Err(CallError::Rpc(_)) if !self.about.offers.tools => return Ok(Listing::default()),
            listed => listed?,
        };
        let tells_headers = matches!(self.far_end, FarEnd::Remote { .. }) && self.meta.is_some();
        if tells_headers {
            listing.keep(|tool| match param_headers::of_schema(&tool.input_schema) {
                Ok(_) => Ok(()),
                Err(reason) => Err(Dropped::new(&tool.name, reason)),
            });
        }
        Ok(listing)
    }

    /// Lists the server's resources.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn list_resources(
        &self,
        limits: Limits,
    ) -> Result<Listing<ListedResource>, CallError> {
        listing::resources(&self.lane, self.meta_object(), limits).await
    }

    /// Lists the templates of the server's resources; many servers know none of that.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn list_templates(
        &self,
        limits: Limits,
    ) -> Result<Listing<ListedTemplate>, CallError> {
        match listing::templates(&self.lane, self.meta_object(), limits).await {
            Err(CallError::Rpc(_)) => Ok(Listing::default()),
            listed => listed,
        }
    }

    /// Lists the server's prompts.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn list_prompts(&self, limits: Limits) -> Result<Listing<ListedPrompt>, CallError> {
        listing::prompts(&self.lane, self.meta_object(), limits).await
    }

    /// Asks for a sign of life; there is nothing to ask since 2026-07-28.
    ///
    /// # Errors
    /// If there is none.
    pub async fn ping(&self, limits: Limits) -> Result<(), CallError> {
        if self.era == Era::Modern {
            return Ok(());
        }
        let params = to_raw_value(&Map::new()).unwrap_or_default();
        match self.lane.request("ping", &params, limits).await {
            // A server that does not know what a ping is lives, too.
            Ok(_) | Err(CallError::Rpc(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn meta_object(&self) -> Option<&Map<String, Value>> {
        self.meta.as_ref().map(|meta| &meta.object)
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

    /// What the server wrote to stderr last.
    pub fn last_lines(&self) -> Vec<String> {
        match &self.far_end {
            FarEnd::Process { stderr, .. } => stderr.last_lines(),
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
            FarEnd::Process { process, .. } => {
                if let Some(process) = process.lock().await.take() {
                    process.shut_down(None, patience).await;
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
                prompts: capabilities.prompts.is_some(),
            },
        }
    }
}
