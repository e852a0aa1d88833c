//! Selects the servers to add.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use openclaw_config::import::ImportStatus;

use super::Candidate;
use crate::error::{CommandError, Context as _};
use crate::output::Output;
use crate::typed_ahead;

/// The maximum length of an answer.
const MAX_ANSWER_BYTES: u64 = 4096;
/// The maximum number of prompts.
const MAX_QUESTIONS: usize = 5;

/// Returns all that can be added, the first of each name.
pub(super) fn all(candidates: &[Candidate], force: bool) -> Vec<&Candidate> {
    let mut picked: Vec<&Candidate> = Vec::new();
    for candidate in candidates {
        let wanted = candidate.is_new() || force && candidate.is_addable() && differs(candidate);
        let is_taken = picked.iter().any(|other| other.found.name == candidate.found.name);
        if wanted && !is_taken {
            picked.push(candidate);
        }
    }
    picked
}

/// Returns the servers with these names.
pub(super) fn by_name<'c>(
    names: &[String],
    candidates: &'c [Candidate],
    force: bool,
    output: &mut Output,
) -> Result<Vec<&'c Candidate>, CommandError> {
    let mut picked: Vec<&Candidate> = Vec::new();
    for name in names {
        let is_called = |it: &&Candidate| {
            it.found.written_name == *name
                || it.found.name.as_ref().is_some_and(|known| known.as_str() == name)
        };
        let mut called = candidates.iter().filter(is_called);
        let Some(first) = called.next() else {
            let known: Vec<&str> =
                candidates.iter().map(|it| it.found.written_name.as_str()).collect();
            let hint = match openclaw_config::nearest(name, &known) {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => "run `openclaw mcp import --dry-run` to list the servers".to_owned(),
            };
            return Err(CommandError::failed(format!("server `{name}` not found in any program"))
                .hint(hint));
        };
        if let Some(other) = called.find(|other| !other.equals(first)) {
            let (one, two) = (first.found.app.title(), other.found.app.title());
            // `--from` cannot tell those of one program apart.
            let (message, hint) = match one == two {
                true => (
                    format!("{one} has different servers called `{name}`"),
                    "run `openclaw mcp import` at a terminal, and choose one by its number",
                ),
                false => (
                    format!("{one} and {two} have different servers called `{name}`"),
                    "choose one with `--from APP`",
                ),
            };
            return Err(CommandError::failed(message).hint(hint));
        }
        let namesake = picked.iter().find(|other| other.found.name == first.found.name);
        match namesake {
            // A server may be named twice, also by each of its names.
            Some(other) if other.equals(first) => {}
            Some(_) => return Err(same_name(first)),
            None if is_wanted(first, force, output)? => picked.push(first),
            None => {}
        }
    }
    Ok(picked)
}

/// Prompts the user for the servers to add.
pub(super) fn ask<'c>(
    candidates: &'c [Candidate],
    force: bool,
    output: &mut Output,
) -> Result<Vec<&'c Candidate>, CommandError> {
    if !candidates.iter().any(|it| it.is_new() || force && it.is_addable()) {
        output.line("\nNo new servers.");
        return Ok(Vec::new());
    }
    if !io::stdin().is_terminal() {
        output.line(
            "\nRun `openclaw mcp import NAME…` to add some, or `openclaw mcp import --all` \
                     to add all.",
        );
        return Ok(Vec::new());
    }
    typed_ahead::forget();
    match answer(candidates.len(), output)? {
        Selection::All => Ok(all(candidates, force)),
        Selection::These(numbers) => {
            let mut picked: Vec<&Candidate> = Vec::new();
            for candidate in numbers.iter().map(|number| &candidates[number - 1]) {
                if picked.iter().any(|other| other.found.name == candidate.found.name) {
                    return Err(same_name(candidate));
                }
                match is_wanted(candidate, force, output) {
                    Ok(true) => picked.push(candidate),
                    Ok(false) => {}
                    // The others are added nevertheless.
                    Err(error) => output.error(&error),
                }
            }
            Ok(picked)
        }
    }
}

/// Prompts until the answer is valid, at most [`MAX_QUESTIONS`] times.
fn answer(count: usize, output: &mut Output) -> Result<Selection, CommandError> {
    for _ in 0..MAX_QUESTIONS {
        output.prompt("\nServers to add (such as `1 3-5`, `all`, or Enter for none): ");
        let mut answer = String::new();
        let read = io::stdin().lock().take(MAX_ANSWER_BYTES).read_line(&mut answer);
        read.context("cannot read the answer")?;
        match numbers(&answer, count) {
            Ok(answer) => return Ok(answer),
            Err(word) => output.note(&format!(
                "`{word}` is not in the list; type numbers from 1 to {count}, or `all`"
            )),
        }
    }
    Err(CommandError::usage("no server chosen")
        .hint("run `openclaw mcp import NAME…`, or `openclaw mcp import --all`"))
}

/// The error for two servers that would get the same name.
fn same_name(candidate: &Candidate) -> CommandError {
    let name = candidate.found.name.as_ref().map_or_else(Default::default, ToString::to_string);
    CommandError::failed(format!("two of the chosen servers would be named `{name}`"))
        .hint("choose one")
}

/// Whether a chosen server must be added: not if it already exists. Fails if it cannot be added.
fn is_wanted(
    candidate: &Candidate,
    force: bool,
    output: &mut Output,
) -> Result<bool, CommandError> {
    let name = &candidate.found.written_name;
    if let Some(problem) = candidate.judgement.problems.first() {
        return Err(CommandError::failed(format!("cannot add `{name}`")).cause(problem));
    }
    if differs(candidate) && !force {
        return Err(CommandError::failed(format!("another server `{name}` already exists"))
            .hint("use `--force` to replace it"));
    }
    let is_there = candidate.judgement.standing == ImportStatus::Same;
    if is_there && !output.json {
        output.line(format_args!("{name} already exists"));
    }
    Ok(!is_there)
}

fn differs(candidate: &Candidate) -> bool {
    candidate.judgement.standing == ImportStatus::Differs
}

#[derive(Debug, PartialEq, Eq)]
enum Selection {
    All,
    These(Vec<usize>),
}

/// Parses an answer: `all`, or numbers and ranges (`2-4`), separated by spaces or commas, without
/// duplicates. The error is the invalid word.
fn numbers(answer: &str, count: usize) -> Result<Selection, String> {
    let words = answer.split(|c: char| c == ',' || c.is_whitespace());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if let ["all"] = words[..] {
        return Ok(Selection::All);
    }
    let mut numbers = Vec::new();
    for word in words {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let number = |word: &str| word.parse().ok().filter(|number| (1..=count).contains(number));
        let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
        let (first, last) = range.ok_or_else(|| word.to_owned())?;
        for number in first..=last {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
    }
    Ok(Selection::These(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_parsed() {
        assert_eq!(numbers(" all\n", 3), Ok(Selection::All));
        assert_eq!(numbers("\n", 3), Ok(Selection::These(vec![])));
        assert_eq!(numbers("1, 3 3,2", 3), Ok(Selection::These(vec![1, 3, 2])));
        assert_eq!(numbers("2-3,1", 3), Ok(Selection::These(vec![2, 3, 1])));
        for bad in ["3-2", "1-4", "-1", "1-", "1-2-3"] {
            assert_eq!(numbers(bad, 3), Err(bad.to_owned()));
        }
        assert_eq!(numbers("1 4", 3), Err("4".to_owned()));
        assert_eq!(numbers("0", 3), Err("0".to_owned()));
        assert_eq!(numbers("all 1", 3), Err("all".to_owned()));
    }
}
