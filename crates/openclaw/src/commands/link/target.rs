//! Which gateway a command uses: one that the user has named, by option or in the configuration, or the
//! one of this machine. A named one may be foreign, such as a Node OpenClaw gateway.

use std::path::PathBuf;
use std::time::Duration;

use openclaw_config::{Config, RemoteGateway};
use openclaw_protocol::client::{Address, Client, ConnectError, ConnectOptions, Fingerprint};
use openclaw_secrets::{SecretString, SecretTemplate};

use super::devices::{Devices, OPERATOR};
use super::{Need, options, running};
use crate::cli::GatewayChoice;
use crate::edge::Edge;
use crate::error::{CommandError, Context as _};

/// The timeout for connecting to a gateway that may be far away, or still starting.
const CONNECT: Duration = Duration::from_secs(20);
/// The maximum size of a file with a token, in bytes.
const MAX_TOKEN: u64 = 64 * 1024;

/// The gateway of a command.
pub(crate) enum GatewayTarget {
    /// The one that runs with the same state folder, or one in this process.
    Own,
    /// One that the user has named.
    Named(Box<NamedGateway>),
}

/// A gateway that the user has named.
#[derive(Debug, Clone)]
pub(crate) struct NamedGateway {
    pub(crate) url: String,
    token: Token,
    fingerprint: Option<Fingerprint>,
    allow_plaintext: bool,
    /// Whether it was named by `--gateway`.
    pub(crate) is_option: bool,
    state: PathBuf,
}

/// Where the token of a gateway comes from.
#[derive(Debug, Clone)]
enum Token {
    Known(Option<SecretString>),
    /// It must be resolved with the secrets of this configuration.
    Template(Box<(SecretTemplate, Config)>),
}

impl GatewayTarget {
    /// Finds the gateway of a command. Nothing is connected. An invalid configuration names none: what
    /// is wrong with it is reported by the command.
    ///
    /// # Errors
    /// If the options are invalid.
    pub(crate) fn find(choice: &GatewayChoice, edge: &Edge) -> Result<Self, CommandError> {
        let paths = edge.paths()?;
        let given = given_token(choice, edge)?;
        let config = edge.load(&paths.config).config;
        let configured = config.as_ref().and_then(|config| config.gateway.remote.clone());
        if let Some(url) = &choice.gateway {
            Address::parse(url).map_err(|error| CommandError::usage(error.to_string()))?;
            // A token is not sent to another gateway than its own.
            let configured = configured.filter(|it| it.url.is(url)).zip(config);
            let running = running(&paths.state, edge).filter(|running| running.url == *url);
            let pin = configured.as_ref().and_then(|(it, _)| pin(it));
            let allowed = configured.as_ref().is_some_and(|(it, _)| it.allow_plaintext);
            let token = match (given, configured) {
                (Some(given), _) => Token::Known(Some(given)),
                (None, Some((it, config))) => configured_token(it, config, edge),
                (None, None) => {
                    let running = running.as_ref().and_then(|running| running.token.clone());
                    Token::Known(edge.gateway_token().or(running))
                }
            };
            return Ok(Self::Named(Box::new(NamedGateway {
                url: url.clone(),
                token,
                fingerprint: choice.tls_fingerprint.or(pin),
                // A gateway of this machine, wherever it is bound.
                allow_plaintext: choice.allow_plaintext || allowed || running.is_some(),
                is_option: true,
                state: paths.state,
            })));
        }
        let (Some(remote), Some(config)) = (configured, config) else { return Ok(Self::Own) };
        Ok(Self::Named(Box::new(NamedGateway {
            url: remote.url.expose().to_string(),
            fingerprint: pin(&remote),
            allow_plaintext: remote.allow_plaintext,
            token: match given {
                Some(given) => Token::Known(Some(given)),
                None => configured_token(remote, config, edge),
            },
            is_option: false,
            state: paths.state,
        })))
    }

    pub(crate) fn named(&self) -> Option<&NamedGateway> {
        match self {
            Self::Own => None,
            Self::Named(named) => Some(named),
        }
    }
}

fn pin(remote: &RemoteGateway) -> Option<Fingerprint> {
    remote.tls_fingerprint.as_ref().and_then(|digits| digits.parse().ok())
}

/// The token of the configuration, or that of the environment.
fn configured_token(remote: RemoteGateway, config: Config, edge: &Edge) -> Token {
    match remote.token {
        Some(template) => Token::Template(Box::new((template, config))),
        None => Token::Known(edge.gateway_token()),
    }
}

/// Reads the token of the options.
fn given_token(choice: &GatewayChoice, edge: &Edge) -> Result<Option<SecretString>, CommandError> {
    let given = match (&choice.token, &choice.token_file) {
        (Some(token), _) => Some(SecretString::from(token.as_str())),
        (None, Some(file)) => {
            let text = openclaw_files::read_text(file, MAX_TOKEN)
                .context(format!("cannot read the token from {}", file.display()))?;
            Some(SecretString::from(text.trim()))
        }
        (None, None) => None,
    };
    edge.redactor.add_all(&given);
    Ok(given)
}

impl NamedGateway {
    /// Returns the options of a connection for this need.
    ///
    /// # Errors
    /// If the token cannot be resolved, or the key of this device cannot be read.
    pub(crate) async fn options(
        &self,
        need: &Need,
        edge: &Edge,
    ) -> Result<ConnectOptions, CommandError> {
        let token = match &self.token {
            Token::Known(token) => token.clone(),
            Token::Template(template) => {
                let (template, config) = &**template;
                let resolved = edge.resolver(config).resolve_credential(template).await;
                let resolved = resolved.context("cannot resolve `gateway.remote.token`");
                Some(resolved.map_err(|it| it.hint("run `openclaw secrets check`"))?)
            }
        };
        edge.redactor.add_all(&token);
        let is_near = Address::parse(&self.url).is_ok_and(|address| address.is_loopback());
        // Elsewhere, a Node gateway gives no rights to a client without a device.
        let device = match is_near {
            true => None,
            false => {
                Some(Devices::new(&self.state).key(OPERATOR).context("cannot use the device key")?)
            }
        };
        Ok(ConnectOptions {
            fingerprint: self.fingerprint,
            allow_plaintext: self.allow_plaintext,
            device,
            connect_timeout: CONNECT,
            ..options(self.url.clone(), token, need)
        })
    }

    /// Connects to the gateway.
    ///
    /// # Errors
    /// If it is not reachable, or rejects the connection.
    pub(crate) async fn connect(&self, need: &Need, edge: &Edge) -> Result<Client, CommandError> {
        let options = self.options(need, edge).await?;
        Client::connect(&options).await.map_err(|error| self.explain(&error))
    }

    /// Explains why there is no connection, with a way out.
    pub(crate) fn explain(&self, error: &ConnectError) -> CommandError {
        let hint = match error {
            ConnectError::Plaintext(_) => {
                "use wss://, or a tunnel (`ssh -N -L 18789:127.0.0.1:18789 HOST`) and \
                 ws://127.0.0.1:18789; in a network that you trust, use --allow-plaintext or \
                 `gateway.remote.allowPlaintext`"
            }
            ConnectError::Tls { .. } => {
                "for a self-signed certificate, use --tls-fingerprint or \
                 `gateway.remote.tlsFingerprint`; for a gateway without TLS, use ws://"
            }
            ConnectError::OtherCertificate { .. } => {
                "the connection may be intercepted; if the gateway has a new certificate, change \
                 `gateway.remote.tlsFingerprint` or --tls-fingerprint"
            }
            ConnectError::TokenMissing
            | ConnectError::TokenMismatch
            | ConnectError::RateLimited { .. } => {
                "use --token-file FILE, OPENCLAW_GATEWAY_TOKEN or `gateway.remote.token`"
            }
            ConnectError::ProtocolMismatch(_) => "update this program, or the gateway",
            ConnectError::Refused(_) => "it may be starting: try again, or check its log",
            ConnectError::NotPaired { request } => &format!(
                "on the machine of the gateway, run `openclaw devices approve {}`, then try again",
                request.as_deref().unwrap_or("ID")
            ),
            ConnectError::Unreachable { .. } | ConnectError::TimedOut => {
                "check that the gateway is running, and `gateway.remote.url` or --gateway"
            }
            _ => "check `gateway.remote.url` or --gateway",
        };
        CommandError::unavailable(format!("cannot use the gateway at {}", self.url))
            .cause(error.to_string())
            .hint(hint)
    }
}
