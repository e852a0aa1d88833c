//! Variables that a local server usually reads, and that are set here but not passed on to it. A
//! server gets a small environment: everything else is named in `env` or `inheritEnv`.

use openclaw_config::StdioServer;
use openclaw_secrets::Environment;

use crate::commands::check::Check;

/// Words in the command line of a server, and the variables that such programs read.
const USUAL: &[(&[&str], &[&str])] = &[
    (&["kube", "k8s", "helm", "argocd"], &["KUBECONFIG"]),
    (
        &["aws", "bedrock", "dynamodb", "amazon"],
        &["AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID"],
    ),
    (&["docker", "podman", "compose", "testcontainers"], &["DOCKER_HOST", "DOCKER_CONTEXT"]),
    (&["github", "ghcr"], &["GITHUB_TOKEN", "GITHUB_PERSONAL_ACCESS_TOKEN", "GH_TOKEN"]),
    (&["gitlab"], &["GITLAB_TOKEN", "GITLAB_PERSONAL_ACCESS_TOKEN"]),
    (&["gcloud", "gcp", "google", "bigquery"], &["GOOGLE_APPLICATION_CREDENTIALS"]),
    (&["azure"], &["AZURE_CONFIG_DIR", "AZURE_TENANT_ID", "AZURE_SUBSCRIPTION_ID"]),
    (&["postgres"], &["DATABASE_URL", "PGHOST", "PGPASSWORD"]),
    (&["redis"], &["REDIS_URL"]),
    (&["mongo"], &["MONGODB_URI", "MDB_MCP_CONNECTION_STRING"]),
    (&["terraform"], &["TFE_TOKEN", "TF_TOKEN"]),
    (&["slack"], &["SLACK_BOT_TOKEN", "SLACK_TEAM_ID"]),
    (&["sentry"], &["SENTRY_AUTH_TOKEN"]),
    (&["cloudflare"], &["CLOUDFLARE_API_TOKEN"]),
    (&["openai"], &["OPENAI_API_KEY"]),
    (&["brave"], &["BRAVE_API_KEY"]),
    (&["notion"], &["NOTION_TOKEN"]),
    (&["ssh"], &["SSH_AUTH_SOCK"]),
];

/// Returns the variables that are set here, that a program like this server reads, and that it does
/// not get.
pub(super) fn not_passed_on(server: &StdioServer, environment: &Environment) -> Vec<&'static str> {
    let words = std::iter::once(server.command.as_str()).chain(server.args.iter());
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    let is_like = |kind: &&str| words.iter().any(|word| word.contains(*kind));
    let usual = USUAL.iter().filter(|(kinds, _)| kinds.iter().any(is_like));
    let inherited = server.inherit_env.iter().map(String::as_str);
    let passed = environment.for_child(inherited);
    let is_missing = |name: &&&str| {
        let is_set = environment.get(name).is_some_and(|value| !value.is_empty());
        is_set && !passed.contains_key(**name) && !server.env.contains_key(**name)
    };
    usual.flat_map(|(_, names)| *names).filter(is_missing).copied().collect()
}

/// Says which variables are missing, and how to pass them on.
pub(super) fn note(name: &str, server: &StdioServer, missing: &[&str]) -> Check {
    let (are, them) = if missing.len() == 1 { ("is", "it") } else { ("are", "them") };
    let what =
        format!("{} {are} set in this shell, but not passed on to the server", missing.join(", "));
    // The command replaces the whole list.
    let all = server.inherit_env.iter().map(String::as_str).chain(missing.iter().copied());
    let all = all.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(",");
    // A name with dots needs quotes, which the shell must keep.
    let key = match name.contains('.') {
        true => format!("'mcp.servers.\"{name}\".inheritEnv'"),
        false => format!("mcp.servers.{name}.inheritEnv"),
    };
    let advice = format!("run `openclaw config set {key} '[{all}]'` to pass {them} on");
    Check { advice: Some(advice), ..Check::note(what) }
}
