//! Builds the launch of a server's process from its configuration. Secrets are resolved here and
//! not earlier (K2).

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use openclaw_config::{StdioServer, is_credential_name, looks_like_credential};
use openclaw_secrets::{Environment, ResolveError, Resolver, SecretString, SecretTemplate};

use crate::process::Launch;

/// The variable that tells a server which configuration it was started from, so that this program does
/// not start itself without end as a server of its own.
pub const STARTED_FROM: &str = "OPENCLAW_SERVER_OF";

/// Resolves the secrets of a server in parallel and builds its environment: the baseline, the
/// variables in `inheritEnv`, and its own `env` on top (K5).
///
/// # Errors
/// The first secret that cannot be resolved. The server must not be started then.
pub async fn launch(
    server: &StdioServer,
    resolver: &Resolver,
    host: &Environment,
) -> Result<Launch, ResolveError> {
    let named = server.inherit_env.iter().map(String::as_str);
    let inherited = host.for_child(named.chain([STARTED_FROM]));
    let is_secret = |name: &str, value: &str| {
        let is_named = server.inherit_env.iter().any(|named| named == name);
        is_named && (is_credential_name(name) || looks_like_credential(value))
    };
    let mut env = BTreeMap::new();
    for (name, value) in inherited {
        let is_secret = is_secret(&name, &value);
        let value = SecretString::from(value);
        if is_secret {
            resolver.redactor().add_credentials([&value]);
        }
        env.insert(name, value);
    }
    let own = server.env.iter().map(|(name, template)| async move {
        Ok((name.clone(), setting(name, template, resolver).await?))
    });
    env.extend(try_join_all(own).await?);
    resolver.redactor().add_credentials(&server.args.credentials());
    Ok(Launch {
        program: server.command.as_str().to_owned(),
        args: server.args.iter().map(str::to_owned).collect(),
        env,
        cwd: server.cwd.clone(),
    })
}

/// Resolves a variable or a header of a server. Its value must not appear in a log, wherever it came from,
/// and often it is a credential.
///
/// # Errors
/// If a secret cannot be resolved.
pub(crate) async fn setting(
    name: &str,
    template: &SecretTemplate,
    resolver: &Resolver,
) -> Result<SecretString, ResolveError> {
    if is_credential_name(name) {
        return resolver.resolve_credential(template).await;
    }
    let value = resolver.resolve_hidden(template).await?;
    if looks_like_credential(value.expose()) {
        resolver.redactor().add_credentials([&value]);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use openclaw_config::{LoadEnvironment, Transport, load_text};
    use openclaw_secrets::{Redactor, SecretSettings};

    use super::*;

    fn server(entry: &str) -> StdioServer {
        let text = format!("{{ mcp: {{ servers: {{ x: {entry} }} }} }}");
        let config =
            load_text(Path::new("openclaw.json"), &text, LoadEnvironment::empty()).config.unwrap();
        match &config.agents[0].mcp.servers["x"].connection.transport {
            Transport::Stdio(stdio) => stdio.clone(),
            Transport::Http(_) => unreachable!(),
        }
    }

    fn host() -> Environment {
        let variables = [
            ("PATH", "/bin"),
            ("TOKEN", "sesame-open"),
            ("MODEL_API_KEY", "model-key"),
            ("EDITOR", "vi"),
            ("TERMINAL", "xterm"),
        ];
        variables.into_iter().collect()
    }

    async fn launched(entry: &str, redactor: &Redactor) -> Result<Launch, ResolveError> {
        let resolver = Resolver::new(SecretSettings::default(), host(), redactor.clone());
        launch(&server(entry), &resolver, &host()).await
    }

    #[tokio::test]
    async fn a_process_gets_the_baseline_what_it_inherits_and_its_own_variables() {
        let entry = "{ command: 'x', args: ['-y'], inheritEnv: ['EDITOR'], \
                     env: { A: 'secret://env/TOKEN', B: 'Bearer secret://env/TOKEN', PATH: '/own' } }";
        let launch = launched(entry, &Redactor::new()).await.unwrap();
        let env: Vec<(&str, &str)> =
            launch.env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        let expected =
            [("A", "sesame-open"), ("B", "Bearer sesame-open"), ("EDITOR", "vi"), ("PATH", "/own")];
        assert_eq!(env, expected, "never the program's own keys");
        assert_eq!(
            (launch.program.as_str(), launch.args.as_slice()),
            ("x", &["-y".to_owned()][..])
        );
        assert!(!format!("{launch:?}").contains("sesame"));
    }

    #[tokio::test]
    async fn a_secret_that_cannot_be_resolved_is_named_and_the_server_not_started() {
        let entry = "{ command: 'x', env: { A: 'secret://env/TOKEN', B: 'secret://env/NOPE' } }";
        let error = launched(entry, &Redactor::new()).await.unwrap_err();
        assert_eq!(error.reference().to_string(), "secret://env/NOPE");
    }

    #[tokio::test]
    async fn inherited_credentials_are_redacted() {
        let redactor = Redactor::new();
        let entry = "{ command: 'x', inheritEnv: ['TOKEN', 'EDITOR', 'TERMINAL'] }";
        launched(entry, &redactor).await.unwrap();
        assert_eq!(redactor.redact("sesame-open model-key xterm"), "[REDACTED] model-key xterm");
    }

    #[tokio::test]
    async fn plain_credentials_in_env_are_redacted() {
        let redactor = Redactor::new();
        launched("{ command: 'x', env: { API_KEY: 'plain-and-secret' } }", &redactor)
            .await
            .unwrap();
        assert_eq!(redactor.redact("it was plain-and-secret."), "it was [REDACTED].");
    }

    #[tokio::test]
    async fn what_is_certainly_a_credential_is_told_from_other_settings() {
        let redactor = Redactor::new();
        let entry = "{ command: 'x', env: { API_KEY: 'plain-and-secret', ROOT: '/data/documents', \
                     DB: 'ghp_0123456789', PGPASSWORD: 'postgres' } }";
        launched(entry, &redactor).await.unwrap();
        for (name, is_found) in [
            ("notes://plain-and-secret/1", true),
            ("tool_ghp_0123456789", true),
            ("file:///data/documents/a.txt", false),
            ("postgres_query", false),
        ] {
            assert_eq!(redactor.finds_credential(name), is_found, "{name}");
        }
        assert_eq!(redactor.redact("in /data/documents"), "in [REDACTED]");
    }
}
