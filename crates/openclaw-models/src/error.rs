//! Why there is no answer.

use std::time::Duration;

/// Why there is no answer, and the way out. No key and no part of the conversation is in it; words of a
/// provider are short, on one line, and without the secrets that were sent to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The provider wants a key, and there is none.
    #[error(
        "the model provider `{provider}` needs an API key: set `models.providers.{provider}.apiKey`{}",
        or_variable(*variable)
    )]
    NeedsKey {
        /// The provider's id.
        provider: String,
        /// The variable in which people usually keep that key.
        variable: Option<&'static str>,
    },
    /// The provider does not accept the key, or does not allow it this.
    #[error(
        "the model provider `{provider}` does not accept the API key{}; check \
         `models.providers.{provider}.apiKey`",
        quoted(message)
    )]
    Auth {
        /// The provider's id.
        provider: String,
        /// What it says; may be empty.
        message: String,
    },
    /// The account has no money or no quota left.
    #[error("the account at the model provider `{provider}` has no credit left{}", quoted(message))]
    OutOfCredit {
        /// The provider's id.
        provider: String,
        /// What it says.
        message: String,
    },
    /// Too many requests.
    #[error("the model provider `{provider}` wants fewer requests{}", try_again(*retry_after))]
    RateLimited {
        /// The provider's id.
        provider: String,
        /// When it would take another.
        retry_after: Option<Duration>,
    },
    /// The provider has trouble of its own.
    #[error(
        "the model provider `{provider}` has trouble{}{}",
        quoted(message),
        try_again(*retry_after)
    )]
    Overloaded {
        /// The provider's id.
        provider: String,
        /// What it says.
        message: String,
        /// When it would take another request.
        retry_after: Option<Duration>,
    },
    /// The provider does not know the model, or has nothing at that address.
    #[error(
        "the provider does not know the model `{model}`{}; check its name, and `baseUrl` if you set one",
        quoted(message)
    )]
    NoSuchModel {
        /// The model's name.
        model: String,
        /// What the provider says.
        message: String,
    },
    /// The provider refuses the request.
    #[error("the model provider refuses the request: {message}")]
    Rejected {
        /// What it says.
        message: String,
    },
    /// The provider refuses the request because of one tool. Without that tool it would not.
    #[error("the model provider does not take the tool `{tool}`: {message}")]
    ToolRejected {
        /// The tool's name.
        tool: String,
        /// What the provider says.
        message: String,
    },
    /// The model takes no tools at all. Without any it would answer.
    #[error("the model `{model}` cannot use tools{}", quoted(message))]
    NoTools {
        /// The model's name.
        model: String,
        /// What the provider says.
        message: String,
    },
    /// The conversation does not fit into the model's window.
    #[error("the conversation is too long for the model: shorten it, or start a new one")]
    ContextTooLong,
    /// The connection broke off before the answer was complete.
    #[error("the answer broke off before its end; try again")]
    Interrupted,
    /// The provider said nothing for too long.
    #[error("the model provider said nothing for {} seconds; try again", .0.as_secs_f32())]
    Silent(Duration),
    /// There is no connection to the provider.
    #[error(
        "the model provider `{provider}` cannot be reached: {reason}; check the network and `baseUrl`"
    )]
    Unreachable {
        /// The provider's id.
        provider: String,
        /// Why.
        reason: String,
    },
    /// A setting or an answer makes no sense.
    #[error("{message}")]
    Invalid {
        /// What makes no sense, and what would.
        message: String,
    },
}

impl ModelError {
    /// Whether the same request may well succeed a little later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Overloaded { .. }
                | Self::Unreachable { .. }
                | Self::Interrupted
        )
    }

    /// How long the provider asks to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into() }
    }
}

fn or_variable(variable: Option<&str>) -> String {
    variable
        .map(|name| format!(" (a `secret://` reference will do) or ${name}"))
        .unwrap_or_default()
}

fn quoted(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(" (it says: {message})") }
}

fn try_again(after: Option<Duration>) -> String {
    match after {
        Some(after) => format!("; try again in {} seconds", after.as_secs_f32().ceil()),
        None => "; try again later".to_owned(),
    }
}
