//! A native tool, and the dispatch to its implementation.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::Url;

use super::approvals::ApprovalKey;
use super::kind::Native;
use super::reply::OutcomeBuilder;
use super::workspace::Workspace;
use super::{Shared, files, plan, web};
use crate::approval::{ApprovalContext, ApprovalExtent, ApprovalRule, Pin};
use crate::arguments::Arguments;
use crate::grant::{AlwaysOption, GrantRule};
use crate::name::ToolName;
use crate::outcome::ToolFailure;
use crate::policy::{Decision, Policy};
use crate::schema::LazyValidator;
use crate::source::{AuditName, Executed, Tool, ToolCall};
use crate::spec::ToolSpec;

/// Timeout of disk operations.
const DISK: Duration = Duration::from_secs(60);
/// The argument of the file tools that an approval can depend on.
const PATH: &str = "path";

/// A native tool.
#[derive(Debug)]
pub(super) struct NativeTool {
    kind: Native,
    spec: ToolSpec,
    decision: Decision,
    validator: LazyValidator,
    shared: Arc<Shared>,
}

impl NativeTool {
    pub(super) fn new(kind: Native, policy: &Policy, shared: &Arc<Shared>) -> Option<Self> {
        let schema = ToolSpec::schema(kind.schema());
        let validator = LazyValidator::new(Arc::clone(&schema));
        let spec = ToolSpec {
            name: ToolName::new(kind.name()).ok()?,
            label: kind.label().to_owned(),
            description: kind.description().to_owned(),
            input_schema: schema,
            effect: kind.effect(),
        };
        let decision = policy.decide(&spec.name);
        Some(Self { kind, spec, decision, validator, shared: Arc::clone(shared) })
    }

    /// Returns the approvals to offer for a call, the default first.
    fn offered(&self, arguments: &Arguments<'_>) -> Vec<GrantRule> {
        match self.kind {
            Native::Exec => {
                let command = text(arguments, "command");
                command.map(|it| self.shared.exec.offered(it)).unwrap_or_default()
            }
            Native::Read | Native::Write | Native::Edit | Native::List => {
                let path = text(arguments, "path").map(|path| Value::String(path.to_owned()));
                let by_path =
                    path.and_then(|path| GrantRule::for_arguments([(&PATH.to_owned(), &path)]));
                [GrantRule::Tool].into_iter().chain(by_path).collect()
            }
            Native::WebFetch => self.covering(arguments),
            Native::UpdatePlan => Vec::new(),
        }
    }

    /// Returns the approvals of a command or a host that cover a call.
    fn covering(&self, arguments: &Arguments<'_>) -> Vec<GrantRule> {
        match self.kind {
            Native::Exec => {
                let command = text(arguments, "command");
                command.map(|it| self.shared.exec.covering(it)).unwrap_or_default()
            }
            Native::WebFetch => {
                let url = text(arguments, "url").and_then(|url| Url::parse(url.trim()).ok());
                url.and_then(|url| web::host(&url)).map(GrantRule::Host).into_iter().collect()
            }
            Native::Read | Native::Write | Native::Edit | Native::List | Native::UpdatePlan => {
                Vec::new()
            }
        }
    }

    /// Whether an earlier approval covers a call by its arguments.
    fn is_covered(&self, arguments: &Arguments<'_>) -> bool {
        if matches!(self.kind, Native::Exec | Native::WebFetch) {
            return false;
        }
        let Shared { agent, folder, approvals, .. } = &*self.shared;
        approvals.any(|key| {
            key.tool == self.kind.name()
                && key.agent == *agent
                && key.workspace.as_ref() == Some(folder)
                && key.grant.covers(arguments)
        })
    }

    /// The key of an approval. That of a host is limited to the session, and independent of the
    /// workspace.
    fn key(&self, grant: GrantRule, session: Option<&str>) -> ApprovalKey {
        let is_host = matches!(grant, GrantRule::Host(_));
        ApprovalKey {
            agent: self.shared.agent.clone(),
            workspace: (!is_host).then(|| self.shared.folder.clone()),
            session: session.filter(|_| is_host).map(ToOwned::to_owned),
            tool: self.kind.name().to_owned(),
            grant,
        }
    }

    /// Whether a redirect to this URL is covered by an earlier approval.
    fn is_approved(&self, url: &Url, session: Option<&str>) -> bool {
        let grant = web::host(url).map(GrantRule::Host);
        grant.is_some_and(|grant| self.shared.approvals.contains(&self.key(grant, session)))
    }

    /// Says what an approval allows.
    fn words(&self, grant: &GrantRule) -> String {
        let (what, agent) = (grant.words(self.kind.name()), &self.shared.agent);
        if matches!(grant, GrantRule::Host(_)) {
            return format!("allow {what} in this session for agent {agent}");
        }
        let folder = self.shared.folder.display();
        let end = if self.shared.approvals.are_stored() { "" } else { ", until openclaw exits" };
        format!("always allow {what} in {folder} for agent {agent}{end}")
    }

    async fn run(&self, call: ToolCall<'_>) -> Result<OutcomeBuilder, OutcomeBuilder> {
        let arguments = call.arguments.members();
        match self.kind {
            Native::Read => self.on_disk(arguments, files::read).await,
            Native::Write => self.on_disk(arguments, files::write).await,
            Native::Edit => self.on_disk(arguments, files::edit).await,
            Native::List => self.on_disk(arguments, files::list).await,
            Native::Exec => {
                let command = decoded(arguments)?;
                Ok(self.shared.exec.run(command, self.shared.max_chars).await)
            }
            Native::WebFetch => {
                let is_approved = |url: &Url| self.is_approved(url, call.session);
                Ok(self.shared.web.fetch(decoded(arguments)?, &is_approved).await)
            }
            Native::UpdatePlan => Ok(plan::show(&decoded(arguments)?)),
        }
    }

    /// Runs a file operation on a blocking thread. Once started it runs to completion, even if the
    /// caller is gone: a file is written completely or not at all.
    async fn on_disk<A>(
        &self,
        arguments: Map<String, Value>,
        act: fn(&Workspace, &A, usize) -> OutcomeBuilder,
    ) -> Result<OutcomeBuilder, OutcomeBuilder>
    where
        A: DeserializeOwned + Send + 'static,
    {
        let arguments = decoded(arguments)?;
        let (workspace, max_chars) = (Arc::clone(&self.shared.workspace), self.shared.max_chars);
        let work = tokio::task::spawn_blocking(move || act(&workspace, &arguments, max_chars));
        match tokio::time::timeout(DISK, work).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => {
                tracing::error!(tool = self.kind.name(), %error, "a native tool task failed");
                Err(OutcomeBuilder::error("The tool failed with an internal error."))
            }
            Err(_) => {
                let words = "The disk operation timed out; it may still complete.";
                Err(OutcomeBuilder::failed(ToolFailure::TimedOut, words))
            }
        }
    }
}

impl Tool for NativeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn origin(&self) -> AuditName<'_> {
        AuditName { name: self.spec.name.as_str(), source: "native", ..AuditName::default() }
    }

    fn decision(&self) -> &Decision {
        &self.decision
    }

    fn pin(&self, about: ApprovalContext<'_>) -> Pin {
        let approvals = &self.shared.approvals;
        let is_covered = |grant| approvals.contains(&self.key(grant, about.session));
        let is_allowed = self.covering(about.arguments).into_iter().any(is_covered);
        match is_allowed || self.is_covered(about.arguments) {
            true => Pin::Same { for_good: true },
            false => Pin::New,
        }
    }

    fn rule(&self, arguments: &Arguments<'_>) -> ApprovalRule {
        match (self.kind, self.shared.approval) {
            (Native::WebFetch, ApprovalRule::Auto) => {
                text(arguments, "url").map_or(ApprovalRule::Auto, |url| self.shared.web.rule(url))
            }
            // It changes nothing.
            (Native::UpdatePlan, _) => ApprovalRule::Never,
            // It fails anyway, so there is nothing to approve.
            (Native::Write | Native::Edit, _)
                if text(arguments, PATH).is_some_and(|it| self.shared.workspace.refuses(it)) =>
            {
                ApprovalRule::Never
            }
            (_, rule) => rule,
        }
    }

    fn always(&self, about: ApprovalContext<'_>) -> Vec<AlwaysOption> {
        let option = |grant| AlwaysOption { words: self.words(&grant), grant };
        self.offered(about.arguments).into_iter().map(option).collect()
    }

    fn keep(&self, approval: &ApprovalExtent, _: Pin, about: ApprovalContext<'_>) {
        if let ApprovalExtent::Always(grant) = approval {
            let key = self.key(grant.clone(), about.session);
            if let Err(error) = self.shared.approvals.remember(key) {
                let tool = self.kind.name();
                tracing::warn!(tool, %error, "cannot store the approval; it is valid until exit");
            }
        }
    }

    fn validator(&self) -> &LazyValidator {
        &self.validator
    }

    fn execute<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, Executed> {
        Box::pin(async move {
            let (Ok(reply) | Err(reply)) = Box::pin(self.run(call)).await;
            Executed::Done(reply.into_outcome(self.kind))
        })
    }
}

/// Returns an argument that is text.
fn text<'a>(arguments: &'a Arguments<'_>, name: &str) -> Option<&'a str> {
    arguments.value()?.get(name)?.as_str()
}

fn decoded<A: DeserializeOwned>(arguments: Map<String, Value>) -> Result<A, OutcomeBuilder> {
    serde_json::from_value(Value::Object(arguments)).map_err(|_| {
        let words = "Invalid arguments; nothing was done.";
        OutcomeBuilder::failed(ToolFailure::InvalidArguments, words)
    })
}
