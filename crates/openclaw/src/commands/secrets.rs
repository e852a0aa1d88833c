//! `openclaw secrets check`: does every reference resolve? Values are never shown.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use comfy_table::{Cell, Color};
use openclaw_config::Config;
use openclaw_secrets::{ResolveError, Resolver, SecretRef};
use serde_json::json;

use super::with_config;
use crate::cli::Cli;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{BAD, FAINT, Output};

/// A reference and the settings that use it.
type References = BTreeMap<SecretRef, Vec<String>>;

/// What came of one reference. The value itself is dropped at once.
struct Outcome {
    reference: SecretRef,
    used_by: Vec<String>,
    took: Duration,
    error: Option<ResolveError>,
}

pub(crate) fn check(cli: &Cli, asked: &[String], edge: &Edge, output: &mut Output) -> Exit {
    let mut references = References::new();
    for text in asked {
        match text.parse::<SecretRef>() {
            Ok(reference) => drop(references.insert(reference, Vec::new())),
            Err(error) => {
                output.problem(&error.to_string(), None);
                return Exit::Usage;
            }
        }
    }
    with_config(cli, edge, output, |config, output| {
        if asked.is_empty() {
            references = config.secret_references();
        }
        match resolve(config, references, edge) {
            Ok(outcomes) => report(&outcomes, output),
            Err(error) => {
                output.problem(&format!("cannot start: {error}"), None);
                Exit::Failed
            }
        }
    })
}

fn resolve(config: &Config, references: References, edge: &Edge) -> std::io::Result<Vec<Outcome>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let resolver = Resolver::new(config.secrets.clone(), edge.environment(), edge.redactor.clone());
    let outcomes = runtime.block_on(async {
        let checks = references.into_iter().map(|(reference, used_by)| {
            let resolver = resolver.clone();
            tokio::spawn(async move {
                let start = Instant::now();
                let error = resolver.resolve(&reference).await.err();
                Outcome { reference, used_by, took: start.elapsed(), error }
            })
        });
        let mut outcomes = Vec::new();
        for check in checks.collect::<Vec<_>>() {
            outcomes.push(check.await.map_err(std::io::Error::other)?);
        }
        Ok(outcomes)
    });
    // A keychain that does not answer must not keep the program from ending.
    runtime.shutdown_background();
    outcomes
}

fn report(outcomes: &[Outcome], output: &mut Output) -> Exit {
    let failed = outcomes.iter().filter(|outcome| outcome.error.is_some()).count();
    let exit = if failed == 0 { Exit::Ok } else { Exit::Failed };
    if output.json {
        let outcomes: Vec<_> = outcomes
            .iter()
            .map(|outcome| {
                json!({
                    "reference": outcome.reference.to_string(),
                    "ok": outcome.error.is_none(),
                    "milliseconds": outcome.took.as_millis() as u64,
                    "usedBy": outcome.used_by,
                    "error": outcome.error.as_ref().map(ToString::to_string),
                    "hint": outcome.error.as_ref().map(ResolveError::hint),
                })
            })
            .collect();
        output.value(&json!({ "ok": failed == 0, "secrets": outcomes }));
        return exit;
    }
    if outcomes.is_empty() {
        output.line("The configuration refers to no secrets.");
        return exit;
    }
    output.table(outcomes.iter().map(|outcome| {
        let (mark, colour) = match outcome.error {
            None => ("✓", Color::Green),
            Some(_) => ("✗", Color::Red),
        };
        vec![
            Cell::new(format!("{mark} {}", outcome.reference)).fg(colour),
            Cell::new(format!("{} ms", outcome.took.as_millis())),
            Cell::new(outcome.used_by.join(", ")),
        ]
    }));
    for error in outcomes.iter().filter_map(|outcome| outcome.error.as_ref()) {
        output.line(format_args!("\n{BAD}✗{BAD:#} {error}"));
        if let Some(hint) = error.hint() {
            output.line(format_args!("  {FAINT}{hint}{FAINT:#}"));
        }
    }
    let resolved = outcomes.len() - failed;
    output.line(format_args!("\n{resolved} of {} secrets resolve", outcomes.len()));
    exit
}
