//! Labels with a fixed set of values.

/// A label with a fixed set of values.
pub trait Label: Copy + Sized + 'static {
    /// All values, in the order of [`Self::index`].
    const ALL: &'static [Self];

    /// Returns the position in [`Self::ALL`].
    fn index(self) -> usize;

    /// Returns the value in the exposition.
    fn name(self) -> &'static str;
}

macro_rules! labels {
    ($($(#[$about:meta])* $label:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)* })*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $label { $($(#[$doc])* $value,)* }

            impl Label for $label {
                const ALL: &'static [Self] = &[$(Self::$value,)*];

                fn index(self) -> usize {
                    self as usize
                }

                fn name(self) -> &'static str {
                    match self { $(Self::$value => $name,)* }
                }
            }
        )*
    };
}

labels! {
    /// How a call ended. The names are those of the audit log.
    CallOutcome {
        /// A result.
        Ok = "ok",
        /// An error reported by the tool.
        Error = "error",
        /// The caller cancelled the call.
        Cancelled = "cancelled",
        /// The server is unavailable.
        Unavailable = "unavailable",
        /// A login is required.
        NeedsLogin = "needs-login",
        /// The call timed out.
        TimedOut = "timed-out",
        /// The server rejected the request or violated the protocol.
        ProtocolError = "protocol-error",
        /// The response is not a valid result.
        InvalidResponse = "invalid-response",
        /// The call is not allowed.
        Denied = "denied",
        /// Too many calls.
        RateLimited = "rate-limited",
        /// The arguments do not match the schema.
        InvalidArguments = "invalid-arguments",
    }

    /// The check that refused a call. The names are those of the audit log.
    Refusal {
        /// The tool does not exist.
        UnknownTool = "unknown-tool",
        /// The policy denies the tool.
        Policy = "policy",
        /// The definition of the tool is invalid.
        Unusable = "unusable",
        /// The definition of the tool has changed.
        Changed = "changed",
        /// The user denied the call.
        Declined = "declined",
        /// No user could be asked.
        NobodyToAsk = "nobody-to-ask",
        /// The arguments do not match the schema.
        Schema = "schema",
        /// Too many calls.
        Limit = "limit",
        /// The same call was made repeatedly.
        Repeated = "repeated",
        /// It brings input that its source has not requested.
        UnaskedInput = "unasked-input",
    }

    /// How a request for approval was answered.
    ApprovalAnswer {
        /// Approved for this call.
        Once = "once",
        /// Approved for later calls as well.
        Always = "always",
        /// Denied.
        Denied = "denied",
        /// No user answered.
        Unanswered = "unanswered",
    }

    /// The state of a server. The names are those of `openclaw mcp status`.
    ServerState {
        /// Disabled in the configuration.
        Disabled = "disabled",
        /// Lazy and not used yet.
        Idle = "idle",
        /// Connecting.
        Connecting = "connecting",
        /// Connected.
        Ready = "ready",
        /// A login is required.
        NeedsAuth = "needs-auth",
        /// Lost or unreachable; will be retried.
        Restarting = "restarting",
        /// Given up.
        Failed = "failed",
        /// Stopped.
        Closed = "closed",
    }

    /// Whether something succeeded.
    Success {
        /// It did.
        Ok = "ok",
        /// It failed.
        Error = "error",
    }

    /// How a turn ended.
    TurnOutcome {
        /// With an answer.
        Ok = "ok",
        /// With an error.
        Error = "error",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It timed out.
        TimedOut = "timed-out",
    }

    /// The kind of a model's tokens.
    TokenKind {
        /// Tokens of requests, including cached ones.
        Input = "input",
        /// Tokens of requests that the provider had cached.
        Cached = "cached",
        /// Tokens of answers.
        Output = "output",
    }
}
