//! Why a request to a model failed.

use std::time::Duration;

use crate::settings::ProviderSettings;

/// Why a request to a model failed, and what to do about it. It contains no key and no part of the
/// conversation; messages of a provider are truncated, on one line, and redacted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The provider needs a key, and none is set.
    #[error(
        "the model provider `{provider}` needs an API key: set `models.providers.{provider}.apiKey`{}",
        or_variable(*variable)
    )]
    NeedsKey {
        /// The provider's id.
        provider: String,
        /// The environment variable that usually holds the key.
        variable: Option<&'static str>,
    },
    /// The provider rejects the key, or the key lacks permission.
    #[error(
        "the model provider `{provider}` rejected the API key{}; check \
         `models.providers.{provider}.apiKey`{}",
        quoted(message),
        or_usual_variable(provider)
    )]
    Auth {
        /// The provider's id.
        provider: String,
        /// The provider's message; may be empty.
        message: String,
    },
    /// The account has no credit or quota left.
    #[error(
        "the account at the model provider `{provider}` has no credit or quota left{}",
        quoted(message)
    )]
    OutOfCredit {
        /// The provider's id.
        provider: String,
        /// The provider's message.
        message: String,
    },
    /// Too many requests.
    #[error(
        "rate limited by the model provider `{provider}`{}{}",
        quoted(message),
        try_again(*retry_after)
    )]
    RateLimited {
        /// The provider's id.
        provider: String,
        /// The provider's message; may be empty.
        message: String,
        /// How long to wait before the next request.
        retry_after: Option<Duration>,
    },
    /// The provider failed or is overloaded.
    #[error(
        "the model provider `{provider}` failed{}{}",
        quoted(message),
        try_again(*retry_after)
    )]
    Overloaded {
        /// The provider's id.
        provider: String,
        /// The provider's message.
        message: String,
        /// How long to wait before the next request.
        retry_after: Option<Duration>,
    },
    /// The provider does not have the model, or has no API at that address.
    #[error(
        "model `{model}` not found{}; check its name, and `baseUrl` if you set one",
        quoted(message)
    )]
    NoSuchModel {
        /// The model's name.
        model: String,
        /// The provider's message.
        message: String,
    },
    /// The provider rejected the request.
    #[error("the model provider `{provider}` rejected the request: {message}")]
    Rejected {
        /// The provider's id.
        provider: String,
        /// The provider's message.
        message: String,
    },
    /// The provider rejected the request because of one tool. A request without it may succeed.
    #[error("the model provider rejected the tool `{tool}`: {message}")]
    ToolRejected {
        /// The tool's name.
        tool: String,
        /// The provider's message.
        message: String,
    },
    /// The model does not support tools. A request without tools may succeed.
    #[error("the model `{model}` does not support tools{}", quoted(message))]
    NoTools {
        /// The model's name.
        model: String,
        /// The provider's message.
        message: String,
    },
    /// The conversation exceeds the model's context window.
    #[error(
        "the conversation is too long for the model: shorten your message, or start a new conversation"
    )]
    ContextTooLong,
    /// The connection was closed before the answer was complete.
    #[error("the answer was interrupted; try again")]
    Interrupted,
    /// The provider sent nothing for too long.
    #[error("timed out: the model provider sent nothing for {} s; try again", .0.as_secs_f32())]
    Silent(Duration),
    /// The connection to the provider failed.
    #[error(
        "the model provider `{provider}` cannot be reached: {reason}; check the network and `baseUrl`"
    )]
    Unreachable {
        /// The provider's id.
        provider: String,
        /// The cause.
        reason: String,
    },
    /// A setting or an answer is invalid.
    #[error("{message}")]
    Invalid {
        /// What is invalid, and what is expected.
        message: String,
    },
}

impl ModelError {
    /// Returns whether the error is transient: a retry may succeed.
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

    /// Returns the minimum wait that the provider requested.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    /// Returns the message without the advice to retry, for a request that is retried anyway.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            Self::RateLimited { provider, message, .. } => {
                format!("rate limited by the model provider `{provider}`{}", quoted(message))
            }
            Self::Overloaded { provider, message, .. } => {
                format!("the model provider `{provider}` failed{}", quoted(message))
            }
            Self::Unreachable { provider, .. } => {
                format!("the model provider `{provider}` cannot be reached")
            }
            Self::Interrupted => "the answer was interrupted".to_owned(),
            other => other.to_string(),
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into() }
    }
}

fn or_usual_variable(provider: &str) -> String {
    let variable = ProviderSettings::usual_variable(provider);
    variable.map(|name| format!(" or ${name}")).unwrap_or_default()
}

fn or_variable(variable: Option<&str>) -> String {
    variable
        .map(|name| format!(" (`secret://` references are allowed) or ${name}"))
        .unwrap_or_default()
}

/// Quotes the provider's message. More may follow it, so that its full stop is omitted.
fn quoted(message: &str) -> String {
    let message = message.strip_suffix('.').unwrap_or(message);
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn try_again(after: Option<Duration>) -> String {
    match after {
        Some(after) => format!("; retry in {} s", after.as_secs_f32().ceil()),
        None => "; retry later".to_owned(),
    }
}
