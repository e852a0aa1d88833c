//! Runs the official MCP conformance suite against our client and through our hub, and compares it with
//! the reference.

mod catalogue;
mod outcome;
mod reach;
mod reference;
mod server;
mod suite;

use reference::{NO_REFERENCE, REFUSING, SCENARIOS};
use server::ServerOptions;
use suite::Suite;

use crate::peers;
use crate::shell::{Failure, Run as _, cargo, hold, root};

/// The package and the binary of the client under test.
const CLIENT: &str = "openclaw-conformance-client";

/// The command-line options.
#[derive(Debug, Default, PartialEq)]
struct Options<'a> {
    /// Run only scenarios whose names contain this.
    filter: Option<&'a str>,
    /// The command line of another client, to which the suite appends a URL.
    client: Option<&'a str>,
}

impl<'a> Options<'a> {
    fn read(mut args: &[&'a str]) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let Some((first, rest)) = args.split_first() {
            args = rest;
            if *first == "--client" {
                let (client, rest) = rest
                    .split_first()
                    .ok_or_else(|| Failure::new("--client needs a command line"))?;
                options.client = Some(client);
                args = rest;
            } else if first.starts_with('-') || options.filter.is_some() {
                return Err(Failure::new(format!(
                    "unexpected argument `{first}`; see `cargo xtask help`"
                )));
            } else {
                options.filter = Some(first);
            }
        }
        Ok(options)
    }
}

/// Runs each scenario alone, one after the other, and prints a table.
pub(crate) fn run(args: &[&str]) -> Result<(), Failure> {
    if let ["--server", rest @ ..] = args {
        return server::run(&ServerOptions::read(rest)?);
    }
    let options = Options::read(args)?;
    let suite = Suite::of(&peers::install()?);
    let mut problems = catalogue::differences(&suite.list("--client")?);
    let client = match options.client {
        Some(client) => client.to_owned(),
        None => build()?,
    };
    let (results, _lock) = hold("conformance")?;
    println!("{:<43}{:<12}{:>6}{:>11}  verdict", "scenario", "version", "passed", "reference");
    let mut runs = 0_usize;
    for (scenario, references) in SCENARIOS {
        if options.filter.is_some_and(|filter| !scenario.contains(filter)) {
            continue;
        }
        for (version, reference) in *references {
            runs += 1;
            let folder = results.join(version).join(scenario);
            let side = ["client", "--command", &client];
            let mut outcome = suite.run(&side, scenario, version, &folder)?;
            outcome.client_failed &= !REFUSING.contains(scenario);
            let verdict = outcome.verdict(*reference);
            let word = verdict.err().unwrap_or("ok");
            let note = if NO_REFERENCE.contains(scenario) { " (no reference)" } else { "" };
            let passed = outcome.passed;
            println!("{scenario:<43}{version:<12}{passed:>6}{reference:>11}  {word}{note}");
            for reason in &outcome.failed {
                println!("    {reason}");
            }
            if verdict.is_err() {
                problems.push(format!("{scenario} {version}: {word}; see {}", folder.display()));
            }
        }
    }
    if runs == 0 {
        problems.push("no scenario matches the filter".into());
    }
    verdict(&problems)
}

fn verdict(problems: &[String]) -> Result<(), Failure> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("conformance:\n  {}", problems.join("\n  "))))
}

/// Builds our client and returns its command line.
fn build() -> Result<String, Failure> {
    cargo("build").args(["--quiet", "--release", "--package", CLIENT]).run()?;
    let name = format!("{CLIENT}{}", std::env::consts::EXE_SUFFIX);
    // The suite passes the line to a shell.
    Ok(format!("\"{}\"", root().join("target").join("release").join(name).display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "these are tests")]

    use super::*;

    #[test]
    fn a_filter_and_another_client_are_parsed() {
        let options = Options::read(&["--client", "node client.mjs", "tools"]).unwrap();
        let expected = Options { filter: Some("tools"), client: Some("node client.mjs") };
        assert_eq!(options, expected);
        assert_eq!(Options::read(&[]).unwrap(), Options::default());
    }

    #[test]
    fn unknown_arguments_are_rejected() {
        for args in [&["--client"][..], &["--verbose"], &["one", "two"]] {
            assert!(Options::read(args).is_err(), "{args:?}");
        }
    }
}
