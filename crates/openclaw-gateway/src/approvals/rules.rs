//! The approvals for later calls: listed, revoked, added (B17).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use openclaw_config::nearest;
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::store::pins::ToolRule;
use openclaw_protocol::ErrorShape;
use openclaw_protocol::approvals::{AllowParams, RevokeParams, Rule, RulesParams, RulesResult};
use openclaw_tools::native::{ApprovalKey, Native, command_rule, prefix_applies};
use openclaw_tools::{
    ApprovalContext, ApprovalExtent, Arguments, GrantRule, Pin, Tool as _, ToolSource as _,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::agents::Agents;

/// Bytes of an id.
const ID_BYTES: usize = 4;
/// How many approvals one request may revoke.
const MAX_IDS: usize = 1_000;
/// How long to wait for servers whose tools are not known yet.
const SERVERS: Duration = Duration::from_secs(30);
/// Maximum characters of a name in an error.
const MAX_NAME: usize = 80;

/// A stored approval.
#[derive(Debug, Clone)]
enum Stored {
    Native(ApprovalKey),
    Server(ToolRule),
}

impl Stored {
    /// What clients see.
    fn rule(&self) -> Rule {
        let (agent_id, tool, grant) = match self {
            Self::Native(key) => (&key.agent, &key.tool, &key.grant),
            Self::Server(rule) => (&rule.server.agent, &rule.tool, &rule.grant),
        };
        let (server, workspace, session_key) = match self {
            Self::Native(key) => {
                let workspace = key.workspace.as_ref().map(|it| it.display().to_string());
                (None, workspace, key.session.clone())
            }
            Self::Server(rule) => (Some(rule.server.server.clone()), None, None),
        };
        Rule {
            id: self.id(),
            agent_id: agent_id.clone(),
            tool: tool.clone(),
            server,
            workspace,
            session_key,
            words: covered_calls(grant, tool),
        }
    }

    /// An id that depends on the content only, so that it stays the same in another process.
    fn id(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        let grant = match self {
            Self::Native(key) => {
                add("native");
                add(&key.agent);
                add(&key.workspace.as_ref().map(|it| it.to_string_lossy()).unwrap_or_default());
                add(key.session.as_deref().unwrap_or_default());
                add(&key.tool);
                &key.grant
            }
            Self::Server(rule) => {
                add("mcp");
                add(&rule.server.agent);
                add(&rule.server.server);
                add(&rule.server.identity.to_string());
                add(&rule.tool);
                &rule.grant
            }
        };
        add(&serde_json::to_string(grant).unwrap_or_default());
        HEXLOWER.encode(&hash.finalize()[..ID_BYTES])
    }
}

/// Describes the calls that an approval covers. In a list, the whole command is needed.
fn covered_calls(grant: &GrantRule, tool: &str) -> String {
    match grant {
        GrantRule::Tool => format!("every call of `{tool}`"),
        GrantRule::Command(command) => {
            format!("exactly the command `{}`", clean_line(Untrusted::new(command), 400))
        }
        GrantRule::CommandPrefix(words) if !prefix_applies(words) => format!(
            "nothing any more: commands that begin with `{}` are not known to be harmless",
            clean_line(Untrusted::new(&words.join(" ")), MAX_NAME),
        ),
        _ => grant.words(tool),
    }
}

/// The stored approvals of all agents.
#[derive(Debug)]
pub(crate) struct ApprovalRules {
    agents: Arc<Agents>,
}

impl ApprovalRules {
    pub(crate) fn new(agents: Arc<Agents>) -> Self {
        Self { agents }
    }

    /// All approvals, by agent and tool.
    fn stored(&self) -> Vec<Stored> {
        let native = self.agents.native_approvals().list().into_iter().map(Stored::Native);
        let of_servers = self.agents.fleet().pins().map(|pins| pins.rules()).unwrap_or_default();
        native.chain(of_servers.into_iter().map(Stored::Server)).collect()
    }

    pub(crate) fn list(&self, params: &RulesParams) -> Result<RulesResult, ErrorShape> {
        if let Some(agent) = &params.agent_id {
            self.agents.id(Some(agent))?;
        }
        let mut rules: Vec<Rule> = self.stored().iter().map(Stored::rule).collect();
        rules.retain(|rule| params.agent_id.as_ref().is_none_or(|agent| rule.agent_id == *agent));
        rules.sort_by(|a, b| {
            let key = |it: &Rule| {
                (it.agent_id.clone(), it.server.clone(), it.tool.clone(), it.words.clone())
            };
            key(a).cmp(&key(b))
        });
        Ok(RulesResult { rules })
    }

    /// Revokes all the approvals or, if an id is wrong, none.
    pub(crate) fn revoke(&self, params: &RevokeParams) -> Result<RulesResult, ErrorShape> {
        if params.ids.len() > MAX_IDS {
            let message = format!("{} ids; at most {MAX_IDS} are allowed", params.ids.len());
            return Err(ErrorShape::invalid(message));
        }
        let all = self.stored();
        let mut chosen: Vec<&Stored> = Vec::new();
        for id in &params.ids {
            let shown = clean_line(Untrusted::new(id), MAX_NAME);
            let mut meant =
                all.iter().filter(|it| !id.is_empty() && it.id().starts_with(id.as_str()));
            match (meant.next(), meant.next()) {
                (Some(one), None) => chosen.push(one),
                (None, _) => {
                    return Err(ErrorShape::invalid(format!(
                        "no approval `{shown}`; `openclaw approvals list` lists them"
                    )));
                }
                (Some(_), Some(_)) => {
                    return Err(ErrorShape::invalid(format!(
                        "several approvals begin with `{shown}`; write more of the id"
                    )));
                }
            }
        }
        let mut rules = Vec::new();
        for it in chosen {
            let revoked = match it {
                Stored::Native(key) => self.agents.native_approvals().forget(key),
                Stored::Server(rule) => {
                    self.agents.fleet().pins().map_or(Ok(false), |pins| pins.revoke(rule))
                }
            };
            match revoked {
                Ok(true) => rules.push(it.rule()),
                // It was given twice, or another process has revoked it.
                Ok(false) => {}
                Err(error) => return Err(not_saved(&error)),
            }
        }
        Ok(RulesResult { rules })
    }

    pub(crate) async fn allow(&self, params: AllowParams) -> Result<RulesResult, ErrorShape> {
        let AllowParams { agent_id, tool, command, arguments, workspace } = params;
        let runtime = self.agents.agent(agent_id.as_deref())?;
        let native = Native::ALL.into_iter().find(|native| native.name() == tool);
        let folder = match workspace {
            Some(folder) if native.is_some() => canonical(&folder)?,
            _ => runtime.workspace.clone(),
        };
        let grant = match (native, command) {
            (Some(Native::Exec), Some(command)) if arguments.is_empty() => {
                let settings = self.agents.exec_settings();
                command_rule(&command, &settings, &folder).ok_or_else(no_command)?
            }
            (Some(Native::Exec), _) => return Err(no_command()),
            (Some(Native::WebFetch), _) => {
                let message = "set `tools.web.fetch.allowHosts` to allow hosts for `web_fetch`";
                return Err(ErrorShape::invalid(message));
            }
            (_, Some(_)) => return Err(ErrorShape::invalid("only `exec` has commands")),
            (_, None) if arguments.is_empty() => GrantRule::Tool,
            (_, None) => GrantRule::for_arguments(&arguments).ok_or_else(|| {
                ErrorShape::invalid("the values must be short text, numbers, `true` or `false`")
            })?,
        };
        let agent = runtime.config.id.to_string();
        if let Some(native) = native {
            check_names(&tool, &arguments, native.schema().get("properties"))?;
            let key = ApprovalKey { agent, workspace: Some(folder), session: None, tool, grant };
            let approvals = self.agents.native_approvals();
            approvals.remember(key.clone()).map_err(|error| not_saved(&error))?;
            return Ok(RulesResult { rules: vec![Stored::Native(key).rule()] });
        }
        self.allow_of_server(&agent, &tool, &arguments, grant).await
    }

    /// Approves the current form of a server's tool, unless it has changed since it was seen: that is
    /// decided about where the change is shown.
    async fn allow_of_server(
        &self,
        agent: &str,
        name: &str,
        arguments: &Map<String, Value>,
        grant: GrantRule,
    ) -> Result<RulesResult, ErrorShape> {
        let shown = clean_line(Untrusted::new(name), MAX_NAME);
        let unknown = || {
            ErrorShape::invalid(format!(
                "unknown tool `{shown}`; `openclaw mcp tools` lists those of servers"
            ))
        };
        let (Some(servers), Some(pins)) =
            (self.agents.fleet().agent(agent), self.agents.fleet().pins())
        else {
            return Err(unknown());
        };
        if servers.find(name).is_none() {
            self.agents.fleet().learn();
            let _ = tokio::time::timeout(SERVERS, servers.tried()).await;
        }
        let catalogue = servers.catalogue();
        let tool = catalogue.get(name).ok_or_else(unknown)?;
        if tool.is_changed() {
            return Err(ErrorShape::invalid(format!(
                "`{shown}` has changed since it was first seen or approved; `openclaw mcp call {shown}` at a \
                 terminal shows the change and asks for approval"
            )));
        }
        check_names(name, arguments, tool.spec.input_schema.get("properties"))?;
        let nothing = RawValue::from_string("{}".to_owned()).map_err(|_| unknown())?;
        let arguments = &Arguments::new(&nothing);
        let about = ApprovalContext { arguments, session: None, now: Instant::now() };
        tool.keep(&ApprovalExtent::Always(grant.clone()), Pin::Same { for_good: false }, about);
        let saved = servers.approvals_saved().await;
        saved.map_err(|error| ErrorShape::unavailable(error.to_string()))?;
        let is_meant = |rule: &ToolRule| {
            rule.server.agent == agent
                && rule.server.server == tool.server().name().as_str()
                && rule.tool == tool.listed().name
                && rule.grant == grant
        };
        let rules = pins.rules().into_iter().filter(is_meant);
        Ok(RulesResult { rules: rules.map(|rule| Stored::Server(rule).rule()).collect() })
    }
}

fn no_command() -> ErrorShape {
    ErrorShape::invalid("`exec` needs the command to allow, such as `git status`")
}

/// Checks that a tool has these arguments: an approval for others would never apply.
fn check_names(
    tool: &str,
    arguments: &Map<String, Value>,
    properties: Option<&Value>,
) -> Result<(), ErrorShape> {
    let Some(properties) = properties.and_then(Value::as_object) else { return Ok(()) };
    let Some(unknown) = arguments.keys().find(|name| !properties.contains_key(*name)) else {
        return Ok(());
    };
    let line = |text: &str| clean_line(Untrusted::new(text), MAX_NAME);
    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
    let way_out = match nearest(unknown, &known) {
        Some(near) => format!("did you mean `{}`?", line(near)),
        None if known.is_empty() => "it takes no arguments".to_owned(),
        None => format!("it takes: {}", line(&known.join(", "))),
    };
    let (tool, unknown) = (line(tool), line(unknown));
    Err(ErrorShape::invalid(format!("`{tool}` has no argument `{unknown}`; {way_out}")))
}

/// The folder as tools know it.
fn canonical(folder: &str) -> Result<PathBuf, ErrorShape> {
    let shown = clean_line(Untrusted::new(folder), MAX_NAME);
    if !Path::new(folder).is_absolute() {
        return Err(ErrorShape::invalid(format!("not an absolute path: `{shown}`")));
    }
    openclaw_files::canonical(folder)
        .map_err(|error| ErrorShape::invalid(format!("cannot open the folder `{shown}`: {error}")))
}

fn not_saved(error: &std::io::Error) -> ErrorShape {
    ErrorShape::unavailable(format!("cannot store the approvals: {error}"))
}
