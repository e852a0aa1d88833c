//! Methods for the agents' tools and for client tools.

use openclaw_agent::{SEARCH_TOOL, did_you_mean};
use openclaw_mcp::catalogue::naming::RESOURCE_TOOL;
use openclaw_protocol::sessions::{SetExtraToolsParams, SetExtraToolsResult};
use openclaw_protocol::tools::{
    CatalogParams, CatalogResult, EffectiveGroup, EffectiveParams, EffectiveResult, EffectiveTool,
    Entry, Group, InvokeError, InvokeParams, InvokeProgressParams, InvokeResult,
    InvokeResultParams, InvokeResultReceived, Profile, ProfileId, Risk, Source,
};
use openclaw_protocol::{ErrorShape, Scope, keys};
use openclaw_sessions::SessionKey;
use openclaw_tools::native::Native;
use openclaw_tools::{
    Call, CallContext, CallOptions, Consent, Content, Fallback, NoApprover, ProgressWatcher,
    RefusedBy, ToolEffect, ToolSource,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::{Reply, RequestContext};
use crate::lent::ToolRecipient;
use crate::mcp::{MANAGE_TOOL, MAX_TOKEN, with_progress};
use crate::sessions::text_part;

/// Names of built-in tools that may not always be present.
const OWN: [&str; 3] = [SEARCH_TOOL, MANAGE_TOOL, RESOURCE_TOOL];

pub(super) async fn set_extra(
    context: &RequestContext<'_>,
    params: SetExtraToolsParams,
) -> Reply<SetExtraToolsResult> {
    let key = context.session(&params.session_key, None)?;
    let agent = context.services.sessions.agent_of(&key, None).await?;
    let session = key.as_str();
    context.caller.follow(session);
    let servers = context.services.servers.agent(&agent.config.id);
    let catalogue = servers.map(|tools| tools.catalogue());
    // Including tools that the agent may not use: a tool with the same name would be taken for
    // them.
    let is_taken = |name: &str| {
        OWN.contains(&name)
            || Native::ALL.iter().any(|native| native.name() == name)
            || catalogue.as_ref().is_some_and(|catalogue| catalogue.get(name).is_some())
            || agent.tools.find(name).is_some()
    };
    let recipient = ToolRecipient { policy: &agent.policy, is_taken: &is_taken };
    let lent = &context.services.lent;
    let tools = lent.lend(session, context.caller.id(), &params.tools, &recipient)?;
    Ok(SetExtraToolsResult { ok: true, tools })
}

pub(super) fn invoke_result(
    context: &RequestContext<'_>,
    params: InvokeResultParams,
) -> Reply<InvokeResultReceived> {
    context.services.lent.answered(context.caller.id(), params)?;
    Ok(InvokeResultReceived { ok: true })
}

pub(super) fn invoke_progress(
    context: &RequestContext<'_>,
    params: &InvokeProgressParams,
) -> Reply<InvokeResultReceived> {
    context.services.lent.progressed(context.caller.id(), params)?;
    Ok(InvokeResultReceived { ok: true })
}

pub(super) fn catalog(
    context: &RequestContext<'_>,
    params: &CatalogParams,
) -> Reply<CatalogResult> {
    let agent = context.services.agents.agent(params.agent_id.as_deref())?;
    let agent_id = agent.config.id.to_string();
    let servers = context.services.servers.agent(&agent.config.id);
    let catalogue = servers.map(|tools| tools.catalogue());
    let server_of = |name: &str| {
        let tool = catalogue.as_ref()?.get(name)?;
        Some(tool.server().name().to_string())
    };
    let mut groups: Vec<Group> = Vec::new();
    for tool in agent.tools.tools() {
        let spec = tool.spec();
        let server = server_of(spec.name.as_str());
        let source = if server.is_some() { Source::Plugin } else { Source::Core };
        if source == Source::Plugin && params.include_plugins == Some(false) {
            continue;
        }
        let entry = Entry {
            id: spec.name.to_string(),
            label: spec.label.clone(),
            description: spec.description.clone(),
            source,
            plugin_id: server.clone(),
            optional: None,
            risk: Some(risk(spec.effect)),
            tags: None,
            default_profiles: vec![ProfileId::Full],
        };
        let id = server.clone().unwrap_or_else(|| "openclaw".to_owned());
        match groups.iter_mut().find(|group| group.id == id) {
            Some(group) => group.tools.push(entry),
            None => groups.push(Group {
                label: server.as_ref().map_or("OpenClaw".to_owned(), |name| format!("MCP: {name}")),
                id,
                source,
                plugin_id: server,
                tools: vec![entry],
            }),
        }
    }
    let profiles = vec![Profile { id: ProfileId::Full, label: "All".to_owned() }];
    Ok(CatalogResult { agent_id, profiles, groups })
}

/// The tools of a session's agent, in the groups of built-in tools and of MCP servers.
pub(super) fn effective(
    context: &RequestContext<'_>,
    params: &EffectiveParams,
) -> Reply<EffectiveResult> {
    let agent_id = params.agent_id.as_deref().or(keys::agent_of(&params.session_key));
    let agent_id = agent_id.map(ToOwned::to_owned);
    let catalog = catalog(context, &CatalogParams { agent_id, include_plugins: None })?;
    let group = |id: &str, label: &str, source: Source| EffectiveGroup {
        id: id.to_owned(),
        label: label.to_owned(),
        source: id.to_owned(),
        tools: catalog
            .groups
            .iter()
            .flat_map(|group| &group.tools)
            .filter(|tool| tool.source == source)
            .map(|tool| EffectiveTool {
                id: tool.id.clone(),
                label: tool.label.clone(),
                description: tool.description.clone(),
                raw_description: tool.description.clone(),
                source: id.to_owned(),
            })
            .collect(),
    };
    let groups = vec![
        group("core", "Built-in tools", Source::Core),
        group("mcp", "MCP servers", Source::Plugin),
    ];
    Ok(EffectiveResult { agent_id: catalog.agent_id.clone(), profile: "full".to_owned(), groups })
}

fn risk(effect: ToolEffect) -> Risk {
    match effect {
        ToolEffect::ReadOnly => Risk::Low,
        ToolEffect::Unknown => Risk::Medium,
        ToolEffect::Destructive => Risk::High,
    }
}

/// A caller that may approve calls and confirms has approved this one; any other call must not need
/// approval, or is not made.
pub(super) async fn invoke(
    context: &RequestContext<'_>,
    params: InvokeParams,
) -> Reply<InvokeResult> {
    if params.confirm == Some(true) && !context.caller.decides() {
        let scope = Scope::Approvals.name().unwrap_or_default();
        return Err(ErrorShape::missing_scope("confirm", scope));
    }
    let agents = &context.services.agents;
    let agent = agents.agent(params.agent_id.as_deref())?;
    let scopes = &context.caller.caller().scopes;
    let agent = agents.in_folder(agent, params.workspace.as_deref(), scopes)?;
    let session = params.session_key.as_deref();
    let session =
        session.map(|key| context.session(key, params.agent_id.as_deref())).transpose()?;
    let is_confirmed = params.confirm == Some(true);
    let arguments =
        params.args.unwrap_or_else(|| RawValue::from_string("{}".to_owned()).unwrap_or_default());
    let who = context.caller.name();
    let session = session.as_ref().map(SessionKey::as_str);
    if let Some(session) = session {
        // So that the caller can answer elicitations of the server.
        context.caller.follow(session);
    }
    let consent = match is_confirmed {
        true => Consent::Caller { seen: None, approves_change: false },
        false => Consent::Ask { approver: &NoApprover, fallback: Fallback::Deny },
    };
    // The progress of the call is sent to the caller with the key of its request.
    let token = params.idempotency_key.as_deref().filter(|key| key.len() <= MAX_TOKEN);
    let (watcher, progress) = ProgressWatcher::channel();
    let call_context = CallContext {
        agent: Some(agent.config.id.as_str()),
        session,
        who: &who,
        consent,
        options: CallOptions {
            unlimited: is_confirmed,
            watcher: token.map(|_| &watcher),
            ..CallOptions::default()
        },
        begun: None,
        trace: context.trace.as_ref(),
    };
    let call = Call::new(&params.name, &*arguments);
    let pipeline = agents.fleet().pipeline();
    let calling = Box::pin(pipeline.call(&*agent.tools, call, &call_context));
    let outcome = match token {
        Some(token) => with_progress(context.caller, token, progress, calling).await,
        None => calling.await,
    };
    let refused = outcome.details.refused;
    if refused == Some(RefusedBy::UnknownTool) {
        let name: String = params.name.chars().take(64).collect();
        let near = did_you_mean(&*agent.tools, &params.name);
        return Err(ErrorShape::invalid(format!("unknown tool `{name}`.{near}")));
    }
    let requires_approval = matches!(refused, Some(RefusedBy::NobodyToAsk | RefusedBy::Changed));
    let text = outcome.text();
    let failure = outcome.details.failure;
    let content: Vec<Value> = outcome.content.iter().map(part).collect();
    let output = json!({ "content": content, "isError": outcome.is_error });
    Ok(InvokeResult {
        ok: !outcome.is_error,
        tool_name: params.name,
        output: to_raw_value(&output).ok(),
        requires_approval: requires_approval.then_some(true),
        approval_id: None,
        source: None,
        error: outcome.is_error.then(|| InvokeError {
            code: failure.map_or("tool-error", openclaw_tools::ToolFailure::name).to_owned(),
            message: text.clone(),
            details: None,
        }),
    })
}

/// A part of a result, as in the history.
fn part(content: &Content) -> Value {
    match content {
        Content::Text(text) | Content::Placeholder(text) | Content::ForModel(text) => {
            text_part(text, text.expose())
        }
        Content::Image { mime_type, data } => {
            json!({ "type": "image", "mimeType": mime_type, "data": data })
        }
        Content::Audio { mime_type, data } => {
            json!({ "type": "audio", "mimeType": mime_type, "data": data })
        }
    }
}
