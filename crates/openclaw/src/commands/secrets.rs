//! `openclaw secrets check | set`: checks that references resolve, and stores secrets. Values are
//! never shown.

use std::collections::{BTreeMap, BTreeSet};

use comfy_table::{Cell, Color};
use openclaw_config::Config;
use openclaw_secrets::{Checked, SecretRef};
use serde_json::json;

use super::{block_on, load_config};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Output, printable};
use openclaw_terminal::style::{BAD, FAINT};

/// References and the settings that use them.
type References = BTreeMap<SecretRef, BTreeSet<String>>;

pub(crate) fn check(asked: &[String], edge: &Edge, output: &mut Output) -> CommandResult {
    let mut references = References::new();
    for text in asked {
        let reference = text.parse::<SecretRef>();
        let reference = reference.map_err(|error| CommandError::usage(error.to_string()))?;
        references.insert(reference, BTreeSet::new());
    }
    let config = load_config(edge, output)?.config;
    if asked.is_empty() {
        references = config.secret_references();
    }
    let resolver = edge.resolver(&config);
    let checked = block_on(async { Ok(resolver.check_all(references.keys()).await) })?;
    Ok(report(&config, &references, &checked, output))
}

/// Stores a secret in the keychain.
#[cfg(feature = "keychain")]
pub(crate) fn set(name: &str, edge: &Edge, output: &mut Output) -> CommandResult {
    use openclaw_secrets::keychain::{self, KeychainError};

    use crate::error::Context as _;
    use openclaw_terminal::style::GOOD;

    let reference = format!("secret://keychain/{name}");
    let parsed = reference.parse::<SecretRef>();
    parsed.map_err(|error| CommandError::usage(error.to_string()))?;
    if !edge.key_options().use_keychain {
        return Err(CommandError::failed("the keychain is turned off (OPENCLAW_KEYCHAIN)")
            .hint("use `secret://file/…` or `secret://env/…` instead"));
    }
    let unusable = |error: KeychainError| {
        let failed = CommandError::failed("cannot store the secret").cause(error.to_string());
        match error {
            KeychainError::NoKeychain => {
                failed.hint("without a desktop session, use `secret://file/…` or `secret://env/…`")
            }
            KeychainError::Locked => failed.hint("unlock the keychain and try again"),
            KeychainError::Silent => failed.hint("look for a window that asks to unlock it"),
            KeychainError::Ambiguous => failed.hint("delete all but one of them"),
            _ => failed,
        }
    };
    // Before the user types it. A keychain that is silent would be waited for twice.
    if let Err(error @ (KeychainError::NoKeychain | KeychainError::Silent)) = keychain::get(name) {
        return Err(unusable(error));
    }
    let value = match edge.has_user() {
        true => crate::hidden::ask(&format!("Value of {name} (not shown): "))
            .context("cannot read from the terminal")?
            .ok_or(CommandError::Interrupted)?,
        false => edge.piped_secret().context("cannot read stdin")?,
    };
    if value.expose().is_empty() {
        return Err(CommandError::usage("the value is empty"));
    }
    edge.redactor.add(&value);
    keychain::set(name, &value).map_err(unusable)?;
    match output.json {
        true => output.value(&json!({ "ok": true, "reference": reference })),
        false => output.line(format_args!(
            "{GOOD}✓{GOOD:#} stored; refer to it as `{reference}` in the configuration"
        )),
    }
    Ok(Exit::Ok)
}

/// Explains that this build has no keychain.
#[cfg(not(feature = "keychain"))]
pub(crate) fn set(_: &str, _: &Edge, _: &mut Output) -> CommandResult {
    Err(CommandError::failed("this build has no keychain support")
        .hint("use `secret://file/…` or `secret://env/…` instead"))
}

fn report(
    config: &Config,
    references: &References,
    checked: &[Checked],
    output: &mut Output,
) -> Exit {
    let failed = checked.iter().filter(|checked| checked.error.is_some()).count();
    let exit = if failed == 0 { Exit::Ok } else { Exit::Failed };
    let users = |reference: &SecretRef| {
        let users = references.get(reference).into_iter().flatten();
        users.map(String::as_str).collect::<Vec<_>>()
    };
    if output.json {
        let checked = checked.iter().map(|checked| {
            let error = checked.error.as_ref();
            json!({
                "reference": checked.reference.to_string(),
                "ok": error.is_none(),
                "milliseconds": u64::try_from(checked.took.as_millis()).unwrap_or(u64::MAX),
                "usedBy": users(&checked.reference),
                "error": error.map(ToString::to_string),
                "hint": error.and_then(|error| error.hint()),
            })
        });
        output.value(&json!({ "ok": failed == 0, "secrets": checked.collect::<Vec<_>>() }));
        return exit;
    }
    if checked.is_empty() {
        let disabled = disabled_servers(config);
        let remark = if disabled > 0 { " (disabled servers are not checked)" } else { "" };
        output.line(format_args!("No secrets in the configuration{remark}."));
        return exit;
    }
    output.table(checked.iter().map(|checked| {
        let (mark, colour) = match checked.error {
            None => ("✓", Color::Green),
            Some(_) => ("✗", Color::Red),
        };
        vec![
            Cell::new(format!("{mark} {}", checked.reference)).fg(colour),
            Cell::new(format!("{} ms", checked.took.as_millis())),
            Cell::new(users(&checked.reference).join(", ")),
        ]
    }));
    for error in checked.iter().filter_map(|checked| checked.error.as_ref()) {
        output.line(format_args!("\n{BAD}✗{BAD:#} {}", printable(&error.to_string())));
        if let Some(hint) = error.hint() {
            output.line(format_args!("  {FAINT}{}{FAINT:#}", printable(hint)));
        }
    }
    let resolved = checked.len() - failed;
    output.line(format_args!("\n{resolved} of {} secrets resolved", checked.len()));
    exit
}

fn disabled_servers(config: &Config) -> usize {
    let servers = config.agents.iter().flat_map(|agent| agent.mcp.servers.values());
    servers.filter(|server| !server.enabled).count()
}
