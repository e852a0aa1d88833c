//! Parses simple commands of a message into calls.

use std::sync::Arc;

use super::{PlannedCall, pick, resources};
use crate::model::ToolOffer;

/// The maximum number of commands in one message; further ones are ignored.
const MAX_WISHES: usize = 16;

/// Returns the requested calls, and the parts that were not understood.
pub(super) fn read(asked: &str, tools: &[Arc<ToolOffer>]) -> (Vec<PlannedCall>, Vec<String>) {
    if let Some(wanted) = exact_call(asked, tools) {
        return (vec![wanted], Vec::new());
    }
    let (mut wanted, mut not_understood) = (Vec::new(), Vec::new());
    for wish in wishes(asked) {
        match one(wish, tools) {
            Some(call) => wanted.push(call),
            None => not_understood.push(wish.to_owned()),
        }
    }
    (wanted, not_understood)
}

/// `/call TOOL {json}`: exactly that call.
fn exact_call(asked: &str, tools: &[Arc<ToolOffer>]) -> Option<PlannedCall> {
    let rest = asked.trim().strip_prefix("/call")?;
    let rest = rest.strip_prefix(char::is_whitespace)?.trim();
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
    if name.is_empty() {
        return None;
    }
    // The last word of a tool's name suffices. An unknown name is called as it is.
    let is_offered = tools.iter().any(|tool| tool.name == name);
    let meant = if is_offered { None } else { pick::ending_in(tools, &[name]) };
    let tool = meant.map_or(name, |tool| &tool.name).to_owned();
    Some(PlannedCall { tool, arguments: arguments.trim().to_owned() })
}

/// Splits a message into commands.
fn wishes(asked: &str) -> impl Iterator<Item = &str> {
    let parts = asked.split([';', '\n']).flat_map(|part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            // Only ASCII is lowercased, so that byte offsets stay the same.
            let border = rest.to_ascii_lowercase().find("and then ");
            let (first, then) = match border {
                Some(at) => (rest.get(..at)?, rest.get(at + "and then ".len()..)?),
                None => (rest, ""),
            };
            rest = then;
            Some(first)
        })
    });
    let is_filler = |c: char| c.is_whitespace() || matches!(c, ',' | '?' | '!');
    parts
        .map(move |part| part.trim_matches(is_filler))
        .filter(|part| !part.is_empty())
        .take(MAX_WISHES)
}

fn one(wish: &str, tools: &[Arc<ToolOffer>]) -> Option<PlannedCall> {
    let lower = wish.to_ascii_lowercase();
    let lower = lower.strip_prefix("please ").unwrap_or(&lower);
    let own = wish.get(wish.len() - lower.len()..)?;
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |any: &[&str]| words.iter().any(|word| any.contains(word));
    let after = |word: &str| {
        let rest = lower.strip_prefix(word)?.strip_prefix(char::is_whitespace)?;
        own.get(own.len() - rest.len()..).map(str::trim)
    };
    if let Some(text) = after("echo") {
        let tool = pick::ending_in(tools, &["echo"])?;
        let text = text.trim_matches(['"', '“', '”']);
        return wanted(tool, pick::with_text(tool, &["text", "message"], text)?);
    }
    let numbers = numbers(lower);
    if let [first, second, ..] = numbers[..]
        && (has(&["add", "plus", "sum"]) || lower.contains('+'))
    {
        let tool = pick::ending_in(tools, &["add", "sum", "plus"])?;
        return wanted(tool, pick::with_numbers(tool, &[first, second])?);
    }
    if has(&["time", "clock"]) && has(&["what", "tell", "which", "current", "now", "the"]) {
        let tool = pick::ending_in(tools, &["now", "time", "clock"])?;
        return wanted(tool, "{}".to_owned());
    }
    if resources::is_wanted(lower) {
        return resources::list(tools);
    }
    if lower == "ls" || (has(&["list", "show"]) && has(&["files", "file", "folder", "directory"])) {
        let tool = pick::ending_in(tools, &["list", "ls"])?;
        let folder = own.rsplit_once(" in ").map(|(_, folder)| folder.trim());
        let folder = folder.or_else(|| pick::requires(tool, "path").then_some("."));
        let arguments = folder.and_then(|folder| pick::with_text(tool, &["path"], folder));
        return wanted(tool, arguments.unwrap_or_else(|| "{}".to_owned()));
    }
    let file = after("read file").or_else(|| after("read the file")).or_else(|| after("read"))?;
    let tool = pick::ending_in(tools, &["read", "read_file"])?;
    wanted(tool, pick::with_text(tool, &["path", "file"], file)?)
}

fn wanted(tool: &ToolOffer, arguments: String) -> Option<PlannedCall> {
    Some(PlannedCall { tool: tool.name.clone(), arguments })
}

/// Returns the numbers in a text. A minus sign is part of a number if no letter or digit precedes it.
fn numbers(text: &str) -> Vec<f64> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let is_sign = first == '-' && !before.is_alphanumeric();
        let digits = if is_sign { rest.get(1..).unwrap_or("") } else { rest };
        let length = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
        let number = digits.get(..length).unwrap_or("").trim_end_matches('.');
        let starts_well =
            number.starts_with(|c: char| c.is_ascii_digit()) && !before.is_alphabetic();
        match number.parse::<f64>() {
            Ok(number) if starts_well => {
                found.push(if is_sign { -number } else { number });
                before = '0';
                rest = digits.get(length..).unwrap_or("");
            }
            _ => {
                before = first;
                rest = rest.get(first.len_utf8()..).unwrap_or("");
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_anywhere_in_a_text() {
        assert_eq!(numbers("2+3"), [2.0, 3.0]);
        assert_eq!(numbers("what is -1.5 plus 20?"), [-1.5, 20.0]);
        assert_eq!(numbers("add 2 and 3."), [2.0, 3.0]);
        assert_eq!(numbers("a1 b2 ünd 7 …"), [7.0]);
        assert!(numbers("nothing - here . at all").is_empty());
    }

    #[test]
    fn a_message_is_split_into_commands() {
        let parts: Vec<&str> =
            wishes("Add 1 and 2, And then echo ä; what time is it?\n;").collect();
        assert_eq!(parts, ["Add 1 and 2", "echo ä", "what time is it"]);
    }
}
