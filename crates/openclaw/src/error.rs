//! The error that every command returns. Only `main` prints it and turns it into the exit code.

use std::error::Error;
use std::fmt;

use openclaw_config::{NoHome, Report};
use openclaw_gateway::mcp::Problem;
use openclaw_protocol::{ErrorCode, ErrorShape, RequestError, detail};
use serde_json::{Map, Value, json};

use crate::exit::Exit;

/// The result of a command. `Ok` with another code than [`Exit::Ok`] means that the printed result
/// itself reports a failure: an error of a tool, or problems that `doctor` found.
pub(crate) type CommandResult = Result<Exit, CommandError>;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum CommandError {
    Failed(Box<CommandFailure>),
    /// Ctrl-C or a signal: the user knows, so nothing is printed.
    Interrupted,
}

/// What failed, for users and for programs.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    pub(crate) exit: Exit,
    /// What failed, with the values: one line.
    pub(crate) message: String,
    /// The error text of the other side: the system, a server, the gateway.
    pub(crate) cause: Option<String>,
    /// What to do, with a command to run.
    pub(crate) hint: Option<String>,
    /// The last lines that the server wrote to stderr.
    pub(crate) last_lines: Vec<String>,
    /// Findings in the configuration. They are printed instead of the message.
    pub(crate) report: Option<Report>,
    /// More values for `--json`.
    details: Map<String, Value>,
}

impl CommandError {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self::Failed(Box::new(CommandFailure {
            exit,
            message: message.into(),
            cause: None,
            hint: None,
            last_lines: Vec::new(),
            report: None,
            details: Map::new(),
        }))
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Exit::Unavailable, message)
    }

    /// The configuration has errors.
    pub(crate) fn config(report: Report) -> Self {
        let error = Self::new(Exit::Config, "the configuration has errors");
        error.with(|failure| failure.report = Some(report))
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Failed(failure) => failure.exit,
            Self::Interrupted => Exit::Interrupted,
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        self.with(|failure| failure.hint = Some(hint.into()))
    }

    pub(crate) fn cause(self, cause: impl Into<String>) -> Self {
        self.with(|failure| failure.cause = Some(cause.into()))
    }

    /// Adds a value under `details` in the JSON.
    pub(crate) fn detail(self, key: &str, value: impl Into<Value>) -> Self {
        self.with(|failure| drop(failure.details.insert(key.to_owned(), value.into())))
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut CommandFailure)) -> Self {
        if let Self::Failed(failure) = &mut self {
            change(failure);
        }
        self
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => f.write_str(&failure.line()),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl CommandFailure {
    /// The message and its cause, in one line.
    pub(crate) fn line(&self) -> String {
        match &self.cause {
            Some(cause) => format!("{}: {cause}", self.message),
            None => self.message.clone(),
        }
    }

    /// The format is documented in `docs/troubleshooting.md`. Fields may be added, but not removed.
    pub(crate) fn to_json(&self) -> Value {
        let mut value = json!({
            "ok": false,
            "code": self.exit.name(),
            "error": self.line(),
            "hint": self.hint,
        });
        if let Some(cause) = &self.cause {
            value["cause"] = json!(cause);
        }
        if !self.last_lines.is_empty() {
            value["lastLines"] = json!(self.last_lines);
        }
        if let Some(report) = &self.report {
            value["diagnostics"] = json!(report.to_json());
        }
        if !self.details.is_empty() {
            value["details"] = Value::Object(self.details.clone());
        }
        value
    }
}

/// Turns any error into a [`CommandError`] with a cause.
pub(crate) trait Context<T> {
    /// Adds a message that says what failed; the error becomes the cause.
    fn context(self, message: impl Into<String>) -> Result<T, CommandError>;
}

impl<T, E: Error> Context<T> for Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T, CommandError> {
        self.map_err(|error| CommandError::failed(message).cause(chain(&error)))
    }
}

/// Formats an error and its sources in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |error| Error::source(*error));
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl From<NoHome> for CommandError {
    fn from(error: NoHome) -> Self {
        Self::new(Exit::Config, error.to_string())
            .hint("set `OPENCLAW_STATE_DIR`, or name a file with `--config`")
    }
}

impl From<RequestError> for CommandError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Refused(shape) => shape.into(),
            RequestError::Params { .. }
            | RequestError::Answer { .. }
            | RequestError::OtherMethod { .. } => Self::failed(error.to_string())
                .hint("run `openclaw gateway status` to check the version of the gateway"),
        }
    }
}

impl From<ErrorShape> for CommandError {
    fn from(shape: ErrorShape) -> Self {
        let detail = shape.detail();
        let exit = match (&shape.code, detail.as_deref()) {
            (_, Some(detail::CONNECTION_LOST | detail::SERVER_UNAVAILABLE)) => Exit::Unavailable,
            (_, Some(detail::TIMED_OUT)) => Exit::TimedOut,
            (_, Some(detail::UNKNOWN_AGENT_ID)) => Exit::Usage,
            (_, Some(detail::TOOL_UNUSABLE)) => Exit::Failed,
            (_, Some(detail::NEEDS_LOGIN)) => Exit::NeedsLogin,
            (ErrorCode::Forbidden, _) => Exit::Denied,
            (ErrorCode::InvalidRequest, _) => Exit::Usage,
            _ => Exit::Failed,
        };
        let Problem { message, hint, last_lines, .. } = Problem::from(&shape);
        let usual_hint = match detail.as_deref() {
            Some(detail::CONNECTION_LOST) => {
                Some("run `openclaw gateway status` to check whether the gateway is running")
            }
            Some(detail::UNKNOWN_AGENT_ID) => Some("run `openclaw config show` to list the agents"),
            Some(detail::MISSING_SCOPE) => Some(
                "use a token with this scope; `openclaw gateway token create` creates one there",
            ),
            _ => None,
        };
        let error = Self::new(exit, message).with(|failure| {
            failure.hint = hint.or(usual_hint.map(ToOwned::to_owned));
            failure.last_lines = last_lines;
        });
        match detail {
            Some(detail) => error.detail("gatewayCode", detail),
            None => error,
        }
    }
}

/// Uses the same exit codes for a gateway in this process as for another one.
impl From<Problem> for CommandError {
    fn from(problem: Problem) -> Self {
        ErrorShape::from(problem).into()
    }
}

#[cfg(test)]
mod tests {
    use openclaw_gateway::mcp::ProblemKind;

    use super::*;

    fn failure(error: impl Into<CommandError>) -> CommandFailure {
        match error.into() {
            CommandError::Failed(failure) => *failure,
            CommandError::Interrupted => panic!("interrupted"),
        }
    }

    #[test]
    fn a_kind_of_problem_has_one_exit_code_with_a_gateway_and_without() {
        for (kind, exit) in [
            (ProblemKind::UnknownServer, Exit::Usage),
            (ProblemKind::UnknownTool, Exit::Usage),
            (ProblemKind::Invalid, Exit::Usage),
            (ProblemKind::Unavailable, Exit::Unavailable),
            (ProblemKind::Changed, Exit::Denied),
            (ProblemKind::Forbidden, Exit::Denied),
            (ProblemKind::TimedOut, Exit::TimedOut),
            (ProblemKind::Unusable, Exit::Failed),
            (ProblemKind::NeedsLogin, Exit::NeedsLogin),
        ] {
            let mut problem = Problem::new(kind, "it is broken").hint("mend it");
            problem.last_lines = vec!["bye".to_owned()];
            let shape = ErrorShape::from(problem.clone());
            for failure in [failure(problem), failure(RequestError::from(shape))] {
                assert_eq!(failure.exit, exit, "{kind:?}");
                assert_eq!(failure.line(), "it is broken");
                assert_eq!(failure.hint.as_deref(), Some("mend it"));
                assert_eq!(failure.last_lines, ["bye"]);
            }
        }
    }

    #[test]
    fn errors_of_the_gateway_map_to_exit_codes() {
        let lost = ErrorShape::unavailable("lost").with_detail(detail::CONNECTION_LOST);
        let late = ErrorShape::unavailable("late").with_detail(detail::TIMED_OUT);
        let agent = ErrorShape::invalid("who?").with_detail(detail::UNKNOWN_AGENT_ID);
        for (shape, exit, hint) in [
            (lost, Exit::Unavailable, Some("gateway status")),
            (late, Exit::TimedOut, None),
            (agent, Exit::Usage, Some("config show")),
            (ErrorShape::missing_scope("x", "y"), Exit::Denied, Some("token create")),
            (ErrorShape::invalid("wrong"), Exit::Usage, None),
            (ErrorShape::new(ErrorCode::Forbidden, "no"), Exit::Denied, None),
            (ErrorShape::unavailable("busy"), Exit::Failed, None),
            (ErrorShape::new(ErrorCode::Other("NEW".to_owned()), "new"), Exit::Failed, None),
        ] {
            let failure = failure(shape);
            assert_eq!(failure.exit, exit, "{failure:?}");
            let given = failure.hint.as_deref();
            assert_eq!(given.is_some(), hint.is_some(), "{failure:?}");
            assert!(given.unwrap_or_default().contains(hint.unwrap_or_default()), "{failure:?}");
        }
    }

    #[test]
    fn the_json_has_the_message_and_the_cause_as_separate_fields() {
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let error = Err::<(), _>(denied).context("cannot read `x`").unwrap_err();
        let told = failure(error.hint("run `ls -l x`").detail("file", "x"));
        assert_eq!(
            told.to_json(),
            json!({
                "ok": false,
                "code": "failed",
                "error": "cannot read `x`: permission denied",
                "hint": "run `ls -l x`",
                "cause": "permission denied",
                "details": { "file": "x" },
            })
        );
        let plain = failure(CommandError::usage("no")).to_json();
        assert_eq!(plain, json!({ "ok": false, "code": "usage", "error": "no", "hint": null }));
    }
}
