//! One native tool: what is checked before it runs, and where each kind is carried out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::kind::Native;
use super::reply::Reply;
use super::workspace::Workspace;
use super::{Shared, files};
use crate::approval::{Approval, Standing};
use crate::name::ToolName;
use crate::outcome::{Failure, ToolOutcome};
use crate::schema::LazyValidator;
use crate::set::{Tool, ToolCall};
use crate::spec::ToolSpec;

/// How long a disk is waited for.
const DISK: Duration = Duration::from_secs(60);

/// A tool of the program itself.
#[derive(Debug)]
pub(super) struct NativeTool {
    kind: Native,
    spec: ToolSpec,
    validator: LazyValidator,
    shared: Arc<Shared>,
}

impl NativeTool {
    pub(super) fn new(kind: Native, shared: &Arc<Shared>) -> Option<Self> {
        let schema = ToolSpec::schema(kind.schema());
        let validator = LazyValidator::new(Arc::clone(&schema));
        let spec = ToolSpec {
            name: ToolName::new(kind.name()).ok()?,
            label: kind.label().to_owned(),
            description: kind.description().to_owned(),
            input_schema: schema,
            effect: kind.effect(),
        };
        Some(Self { kind, spec, validator, shared: Arc::clone(shared) })
    }

    async fn run(&self, call: ToolCall<'_>) -> Result<Reply, Reply> {
        let arguments = self.checked(call)?;
        self.may_run(call)?;
        match self.kind {
            Native::Read => self.on_disk(arguments, files::read).await,
            Native::Write => self.on_disk(arguments, files::write).await,
            Native::Edit => self.on_disk(arguments, files::edit).await,
            Native::List => self.on_disk(arguments, files::list).await,
            Native::Exec => {
                let command = decoded(arguments)?;
                Ok(self.shared.exec.run(command, self.shared.max_chars).await)
            }
            Native::WebFetch => Ok(self.shared.web.fetch(decoded(arguments)?).await),
        }
    }

    /// The arguments, if they fit. Models send `null` for what they leave out.
    fn checked(&self, call: ToolCall<'_>) -> Result<Map<String, Value>, Reply> {
        let not_fitting = |why: &dyn std::fmt::Display| {
            let words = format!("The arguments do not fit this tool. Nothing was done.\n{why}");
            Reply::failed(Failure::InvalidArguments, words)
        };
        let validator = self.validator.get().map_err(|unusable| not_fitting(unusable))?;
        let Ok(Value::Object(mut members)) = serde_json::from_str(call.arguments.get()) else {
            let outcome = validator.check_raw(call.arguments);
            return Err(match outcome {
                Err(violations) => not_fitting(&violations),
                Ok(()) => not_fitting(&"the arguments must be an object"),
            });
        };
        members.retain(|_, value| !value.is_null());
        let value = Value::Object(members);
        validator.check(&value).map_err(|violations| not_fitting(&violations))?;
        match value {
            Value::Object(members) => Ok(members),
            _ => Err(not_fitting(&"the arguments must be an object")),
        }
    }

    fn may_run(&self, call: ToolCall<'_>) -> Result<(), Reply> {
        let Standing::Ask(why) = self.standing() else { return Ok(()) };
        match call.approval {
            None => {
                let words = "This call is not allowed: somebody must agree to it first, and nobody \
                             has. Nothing was done.";
                Err(Reply::failed(Failure::Denied, words))
            }
            Some(Approval::Always) if why.can_last() => {
                self.shared.approvals.remember(self.kind.name());
                Ok(())
            }
            Some(Approval::Once | Approval::Always) => Ok(()),
        }
    }

    /// Does something with files, off the async threads. Once begun it runs to its end, even if nobody
    /// waits for it any more: a file is written whole or not at all.
    async fn on_disk<A>(
        &self,
        arguments: Map<String, Value>,
        act: fn(&Workspace, &A, usize) -> Reply,
    ) -> Result<Reply, Reply>
    where
        A: DeserializeOwned + Send + 'static,
    {
        let arguments = decoded(arguments)?;
        let (workspace, max_chars) = (Arc::clone(&self.shared.workspace), self.shared.max_chars);
        let work = tokio::task::spawn_blocking(move || act(&workspace, &arguments, max_chars));
        match tokio::time::timeout(DISK, work).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => {
                tracing::error!(tool = self.kind.name(), %error, "a tool broke off");
                Err(Reply::error("The tool broke off by a fault of its own."))
            }
            Err(_) => {
                let words = "The disk did not answer in time; what was begun may still be done.";
                Err(Reply::failed(Failure::TimedOut, words))
            }
        }
    }
}

impl Tool for NativeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn standing(&self) -> Standing {
        self.shared.approvals.standing(self.shared.approval, &self.spec)
    }

    fn call<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let started = Instant::now();
            let (Ok(reply) | Err(reply)) = Box::pin(self.run(call)).await;
            reply.into_outcome(self.kind, started.elapsed())
        })
    }
}

fn decoded<A: DeserializeOwned>(arguments: Map<String, Value>) -> Result<A, Reply> {
    serde_json::from_value(Value::Object(arguments)).map_err(|_| {
        let words = "The arguments do not fit this tool. Nothing was done.";
        Reply::failed(Failure::InvalidArguments, words)
    })
}
