//! Methods for things that this gateway does not have. Clients of the Node gateway call them when they
//! open a page; the answer says in their shape that there are none.

use openclaw_protocol::{ErrorShape, Scope};
use serde_json::value::RawValue;

use super::{Reply, RequestContext, has_scope};

/// A method with a constant answer.
#[derive(Debug)]
pub(crate) struct Absent {
    pub(crate) name: &'static str,
    scope: Scope,
    answer: &'static str,
}

const fn none(name: &'static str, scope: Scope, answer: &'static str) -> Absent {
    Absent { name, scope, answer }
}

const NO_THEMES: &str = r#"{"themes":[],"current":{"id":"claw","mode":"system","scope":"gateway","overrides":{}},"theme":{"id":"claw","name":"Claw","modes":["light","dark"],"builtin":true}}"#;
const NO_GITHUB: &str = r#"{"agentId":"main","selectedScope":"system","selected":{"scope":"system","configured":false,"identity":null},"effective":{"source":"system-detected","credentialKind":"native","credentialState":"unavailable","account":null,"gitAuthor":{"name":null,"email":null},"evidence":"none","accessExpiresAtMs":null,"refreshState":"not_applicable","oauthScopes":[],"repositoryGrants":"unknown"}}"#;
const NO_WEB_SEARCH: &str = r#"{"enabled":false,"provider":null,"agentId":"main","model":{"provider":"none","id":"none","runtime":"unknown","runtimeLabel":"Not resolved"},"providers":[],"route":{"kind":"disabled","label":"Search disabled","testable":false,"reason":"This gateway has no web search."}}"#;
const EMPTY_PAIRING: &str = r#"{"pending":[],"paired":[]}"#;
const NO_SPEECH: &str = r#"{"modes":[],"transports":[],"brains":[],"speech":{"ready":false,"providers":[]},"transcription":{"ready":false,"providers":[]},"realtime":{"ready":false,"providers":[]}}"#;
const NO_USAGE: &str = r#"{"updatedAt":0,"startDate":"1970-01-01","endDate":"1970-01-01","sessions":[],"totals":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"totalCost":0,"inputCost":0,"outputCost":0,"cacheReadCost":0,"cacheWriteCost":0,"missingCostEntries":0},"aggregates":{"sessionCount":0,"messages":{"total":0,"user":0,"assistant":0,"toolCalls":0,"toolResults":0,"errors":0},"tools":{"totalCalls":0,"uniqueTools":0,"tools":[]},"byModel":[],"byProvider":[],"byAgent":[],"byChannel":[],"daily":[]}}"#;
const NO_CHANNELS: &str = r#"{"ts":0,"channelOrder":[],"channelLabels":{},"channelDetailLabels":{},"channelSystemImages":{},"channelMeta":[],"channels":{},"channelAccounts":{},"channelDefaultAccountId":{}}"#;

/// All of them, by name. `docs/compatibility.md` has the same list.
pub(crate) const ABSENT: &[Absent] = &[
    none("approval.history", Scope::Approvals, r#"{"items":[]}"#),
    none("artifacts.list", Scope::Read, r#"{"artifacts":[]}"#),
    none(
        "channels.pairing.list",
        Scope::Read,
        r#"{"accounts":[],"requests":[],"commandOwnerConfigured":false,"limits":{"pendingPerAccount":0,"ttlMs":0}}"#,
    ),
    none("channels.status", Scope::Read, NO_CHANNELS),
    none(
        "cron.list",
        Scope::Read,
        r#"{"jobs":[],"snapshotRevision":"none","total":0,"offset":0,"limit":1,"hasMore":false,"nextOffset":null}"#,
    ),
    none(
        "cron.runs",
        Scope::Read,
        r#"{"entries":[],"total":0,"offset":0,"limit":50,"hasMore":false,"nextOffset":null}"#,
    ),
    none("cron.status", Scope::Read, r#"{"enabled":false,"jobs":0}"#),
    none("device.pair.list", Scope::Admin, EMPTY_PAIRING),
    none("diagnostics.lanes", Scope::Read, r#"{"ts":0,"lanes":[],"dynamic":null}"#),
    none(
        "doctor.memory.status",
        Scope::Read,
        r#"{"agentId":"main","searchRuntimeRegistered":false,"embedding":{"ok":false,"error":"there is no memory search"}}"#,
    ),
    none("environments.list", Scope::Read, r#"{"environments":[]}"#),
    none("exec.approval.grants.list", Scope::Approvals, r#"{"grants":[]}"#),
    none(
        "exec.approvals.get",
        Scope::Admin,
        r#"{"path":"none","exists":false,"hash":"none","file":{"version":1}}"#,
    ),
    none("last-heartbeat", Scope::Read, "null"),
    none(
        "migrations.memory.plan",
        Scope::Admin,
        r#"{"agentId":"main","workspace":"none","providers":[]}"#,
    ),
    none("models.authStatus", Scope::Read, r#"{"ts":0,"providers":[],"providerCapabilities":[]}"#),
    none("node.list", Scope::Read, r#"{"ts":0,"nodes":[]}"#),
    none("node.pair.list", Scope::Admin, EMPTY_PAIRING),
    none("openclaw.approval.list", Scope::Approvals, "[]"),
    none("plugins.catalog.browse", Scope::Read, r#"{"items":[]}"#),
    none("plugins.list", Scope::Read, r#"{"plugins":[],"diagnostics":[],"mutationAllowed":false}"#),
    none("plugins.uiDescriptors", Scope::Read, r#"{"ok":true,"descriptors":[]}"#),
    none("progressCard.get", Scope::Read, r#"{"card":null}"#),
    none("projects.list", Scope::Read, r#"{"projects":[]}"#),
    none("sessions.branches.list", Scope::Read, r#"{"branches":[]}"#),
    none("sessions.catalog.list", Scope::Read, r#"{"catalogs":[]}"#),
    none("sessions.companion.state", Scope::Read, r#"{"exchanges":[]}"#),
    none("sessions.groups.list", Scope::Read, r#"{"groups":[],"sectionOrder":[]}"#),
    none("sessions.observer.visibility", Scope::Read, r#"{"ok":true}"#),
    none("sessions.usage", Scope::Read, NO_USAGE),
    none(
        "skills.library.list",
        Scope::Read,
        r#"{"entries":[],"profileId":null,"multipleProfiles":false,"defaultTarget":"unavailable","canManageWorkspace":false,"defaultSelectionLimit":0}"#,
    ),
    none(
        "skills.proposals.list",
        Scope::Read,
        r#"{"schema":"openclaw.skill-workshop.proposals-manifest.v1","updatedAt":"1970-01-01T00:00:00Z","proposals":[],"installedSkills":[]}"#,
    ),
    none("skills.search", Scope::Read, r#"{"results":[]}"#),
    none("skills.status", Scope::Read, r#"{"workspaceDir":"","managedSkillsDir":"","skills":[]}"#),
    none("talk.catalog", Scope::Read, NO_SPEECH),
    none("talk.config", Scope::Read, r#"{"config":{}}"#),
    none("taskSuggestions.list", Scope::Read, r#"{"suggestions":[]}"#),
    none("tasks.list", Scope::Read, r#"{"tasks":[]}"#),
    none("terminal.list", Scope::Admin, r#"{"sessions":[]}"#),
    none("themes.list", Scope::Read, NO_THEMES),
    none("tools.github.status", Scope::Read, NO_GITHUB),
    none("transcripts.list", Scope::Read, r#"{"sessions":[],"nextCursor":null}"#),
    none(
        "tts.status",
        Scope::Read,
        r#"{"enabled":false,"auto":"off","provider":"","persona":null,"personas":[],"fallbackProvider":null,"fallbackProviders":[],"prefsPath":"","providerStates":[]}"#,
    ),
    none("update.status", Scope::Admin, r#"{"sentinel":null,"updateAvailable":null}"#),
    none("usage.status", Scope::Read, r#"{"updatedAt":0,"providers":[]}"#),
    none("users.list", Scope::Read, r#"{"profiles":[]}"#),
    none("users.prefs.get", Scope::Read, r#"{"status":"no_durable_identity"}"#),
    none("voicewake.get", Scope::Read, r#"{"triggers":[]}"#),
    none("webSearch.status", Scope::Read, NO_WEB_SEARCH),
    none("worktrees.list", Scope::Read, r#"{"worktrees":[]}"#),
];

/// Answers a method that is not in the table of methods: with "none", or with the error for an unknown
/// one.
pub(super) fn answer(context: &RequestContext<'_>, name: &str) -> Reply<Box<RawValue>> {
    let Some(absent) = ABSENT.iter().find(|it| it.name == name) else {
        return Err(ErrorShape::unknown_method(name));
    };
    has_scope(context, name, absent.scope)?;
    RawValue::from_string(absent.answer.to_owned())
        .map_err(|_| ErrorShape::unavailable("cannot serialize the response"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use openclaw_protocol::Method;

    use super::ABSENT;

    const TABLE: &str = include_str!("../../../../docs/compatibility.md");

    /// The words in backticks of a part of the page.
    fn names(part: &str) -> BTreeSet<&str> {
        part.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn the_page_lists_every_method_in_its_table() {
        let (_, rest) = TABLE.split_once("## Methods with a real answer").unwrap();
        let (real, rest) = rest.split_once("## Methods that answer").unwrap();
        let (absent, rest) = rest.split_once("## Methods that are refused").unwrap();
        let (_, rest) = rest.split_once("|---|---|").unwrap();
        let (refused, _) = rest.split_once("## Events").unwrap();
        for row in refused.lines().filter(|row| row.starts_with('|')) {
            let name = row.split('`').nth(1).unwrap();
            assert!(super::super::names().all(|known| known != name), "{name} is answered");
        }
        let (real, _) = real.split_once("`exec.approval.list` is always").unwrap();
        assert_eq!(names(real), Method::ALL.iter().map(|it| it.name()).collect());
        assert_eq!(names(absent), ABSENT.iter().map(|it| it.name).collect());
    }

    #[test]
    fn a_constant_answer_is_json_and_no_method_has_two() {
        for absent in ABSENT {
            assert!(serde_json::from_str::<serde_json::Value>(absent.answer).is_ok(), "{absent:?}");
            assert!(Method::from_name(absent.name).is_none(), "{absent:?}");
        }
    }
}
