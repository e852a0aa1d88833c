//! Masks credentials in the source lines that messages show.
//!
//! A value is shown only where it is known to be harmless: under keys such as `command` or `url`,
//! or when it is a reference. Everything else, comments included, is masked. This works on tokens,
//! not on the parsed tree, so that it also applies to files that do not parse.

mod tokens;

use std::ops::Range;

use crate::credential::{
    ArgFilter, address_credentials, is_credential_name, looks_like_credential,
};
use crate::text::is_reference_word;
use tokens::{ConfigToken, Tokens};

/// Keys whose values are not credentials.
const HARMLESS: &[&str] = &[
    "command",
    "transport",
    "type",
    "approval",
    "toolPrefix",
    "toolNaming",
    "id",
    "cwd",
    "workingDirectory",
    "$include",
    "inheritEnv",
    "allow",
    "deny",
    "include",
    "exclude",
    "scopes",
    "scope",
    "caFile",
    "clientCert",
    "clientId",
    "grantType",
    "signingAlgorithm",
    "project",
    "region",
    "profile",
    "namespace",
    "name",
    "model",
    "primary",
    "fallbacks",
    "workspace",
    "contextTokens",
    "fallback",
    "api",
    "bind",
    "mode",
    "allowPrivate",
    "shell",
];
/// Keys whose values are URLs.
const ADDRESSES: &[&str] = &[
    "url",
    "proxy",
    "endpoint",
    "address",
    "authorizationServerUrl",
    "clientMetadataUrl",
    "tokenEndpoint",
    "redirectUrl",
    "baseUrl",
    "publicUrl",
    "allowedOrigins",
    "resources",
];
/// Everything below these keys may be a credential, numbers included.
const SENSITIVE: &[&str] = &["env", "headers"];

/// A text in which each character of a credential is replaced by an asterisk, so that columns are
/// unchanged. Byte offsets may shift: use [`Masked::offset`].
pub(crate) struct Masked {
    pub(crate) text: String,
    /// For each masked character: its offset in the original and in the masked text.
    shifts: Vec<(usize, usize)>,
}

impl Masked {
    /// Maps a byte offset in the original to the masked text.
    pub(crate) fn offset(&self, offset: usize) -> usize {
        let index = self.shifts.partition_point(|(original, _)| *original <= offset);
        match index.checked_sub(1).map(|index| self.shifts[index]) {
            Some((original, masked)) => masked + (offset - original),
            None => offset,
        }
    }
}

/// Masks everything in a file that is not known to be harmless.
pub(crate) fn mask(text: &str) -> Masked {
    let mut masked = Masked { text: String::with_capacity(text.len()), shifts: Vec::new() };
    let mut copied = 0;
    for hidden in hidden(text) {
        masked.text.push_str(&text[copied..hidden.start]);
        for (offset, c) in text[hidden.clone()].char_indices() {
            masked.shifts.push((hidden.start + offset, masked.text.len()));
            // Line breaks are kept: lines are counted.
            masked.text.push(if matches!(c, '\n' | '\r' | ' ' | '\t') { c } else { '*' });
        }
        masked.shifts.push((hidden.end, masked.text.len()));
        copied = hidden.end;
    }
    masked.text.push_str(&text[copied..]);
    masked
}

/// What may be shown of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    /// All of it.
    All,
    /// A URL without user info and query values.
    Address,
    /// Arguments of a command, without credentials.
    Args,
    /// Numbers, booleans and `null`, but no text.
    NoText,
    /// Nothing.
    Nothing,
}

/// One open `{` or `[`.
struct Block {
    /// What may be shown of the values in it, unless their key overrides it.
    show: Show,
    /// What may be shown of the next value.
    next: Show,
    args: ArgFilter,
}

impl Block {
    fn new(show: Show) -> Self {
        Self { show, next: show, args: ArgFilter::default() }
    }
}

/// Returns what may be shown of the value of a key.
fn show_for(key: &str, inherited: Show) -> Show {
    match key {
        _ if inherited == Show::Nothing || SENSITIVE.contains(&key) => Show::Nothing,
        "args" => Show::Args,
        _ if HARMLESS.contains(&key) => Show::All,
        _ if ADDRESSES.contains(&key) => Show::Address,
        // Sections that are named like credentials and are not.
        "auth" | "oauth" | "secrets" => Show::NoText,
        _ if is_credential_name(key) => Show::Nothing,
        _ => Show::NoText,
    }
}

/// Returns the ranges that must be masked, in order.
fn hidden(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut blocks = vec![Block::new(Show::NoText)];
    let mut after_colon = false;
    for token in Tokens::of(text) {
        let depth = blocks.len();
        let Some(block) = blocks.last_mut() else { break };
        match token {
            ConfigToken::Open => {
                let show = block.next;
                blocks.push(Block::new(show));
                after_colon = false;
            }
            ConfigToken::Close => {
                // A stray `}` must not empty the stack: the rest of the file is masked, too.
                if depth > 1 {
                    blocks.pop();
                }
                after_colon = false;
            }
            ConfigToken::Colon => after_colon = true,
            ConfigToken::Comma => {
                after_colon = false;
                block.next = block.show;
            }
            ConfigToken::Comment(range) => found.push(range),
            ConfigToken::Word { range, quoted } => {
                let word = &text[range.clone()];
                if !after_colon && followed_by_colon(text, range.end, quoted) {
                    block.next = show_for(word, block.show);
                } else {
                    hide(word, range.start, quoted, block, &mut found);
                }
            }
        }
    }
    found
}

/// Adds the ranges of a value that must be masked.
fn hide(word: &str, start: usize, quoted: bool, block: &mut Block, found: &mut Vec<Range<usize>>) {
    let is_literal = !quoted && is_plain_literal(word);
    let moved = |range: Range<usize>| start + range.start..start + range.end;
    match block.next {
        Show::Args => {
            found.extend(block.args.hidden_from(word).map(|from| moved(from..word.len())));
        }
        Show::All if looks_like_credential(word) => found.push(moved(0..word.len())),
        Show::All => {}
        Show::Address => found.extend(address_credentials(word).map(moved)),
        Show::NoText if is_literal => {}
        Show::Nothing if is_literal && matches!(word, "true" | "false" | "null") => {}
        Show::NoText | Show::Nothing => {
            let mut at = 0;
            for part in word.split(' ') {
                if !part.is_empty() && !is_reference_word(part) {
                    found.push(moved(at..at + part.len()));
                }
                at += part.len() + 1;
            }
        }
    }
}

/// Whether an unquoted word is a number, `true`, `null` or similar, not a string without quotes.
fn is_plain_literal(word: &str) -> bool {
    let number = word.trim_start_matches(['+', '-']);
    let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && number.len() <= 24
        && number
            .chars()
            .all(|c| c.is_ascii_hexdigit() || matches!(c, '.' | 'x' | 'X' | '+' | '-'));
    is_number || matches!(word, "true" | "false" | "null" | "Infinity" | "NaN")
}

fn followed_by_colon(text: &str, end: usize, quoted: bool) -> bool {
    let rest = &text[end..];
    let rest = if quoted { rest.get(1..).unwrap_or_default() } else { rest };
    rest.trim_start().starts_with(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        mask(text).text
    }

    #[test]
    fn what_is_known_to_be_harmless_is_shown() {
        let text =
            "{ command: \"npx\", args: ['-y', '@scope/pkg'], url: 'https://x/mcp', timeout: -5 }";
        assert_eq!(masked(text), text);
    }

    #[test]
    fn everything_else_is_masked_and_columns_stay() {
        assert_eq!(
            masked(r#"{ apiKey: "sk-é1", note: "a b" }"#),
            r#"{ apiKey: "*****", note: "* *" }"#
        );
        assert_eq!(masked("{token: 12345, n: 1}"), "{token: *****, n: 1}");
        assert_eq!(
            masked("{apiKey: {a: 'b'}, auth: {clientId: 'b'}}"),
            "{apiKey: {a: '*'}, auth: {clientId: 'b'}}"
        );
        assert_eq!(
            masked("{'api\\u004bey': 'b', headers: 'c: d'}"),
            "{'api\\u004bey': '*', headers: '** *'}"
        );
    }

    #[test]
    fn everything_in_env_and_headers_is_masked_except_references() {
        let text =
            r#"{env: {A: "one", 'B': "Bearer secret://env/B", C: "${C}", D: 7}, timeout: 7}"#;
        let want =
            r#"{env: {A: "***", 'B': "****** secret://env/B", C: "${C}", D: *}, timeout: 7}"#;
        assert_eq!(masked(text), want);
    }

    #[test]
    fn credentials_in_arguments_and_addresses_are_masked() {
        let text = "{args: ['--token', 'abc', 'pg://u:p@h'], url: 'https://me:pw@h/p?k=v'}";
        let want = "{args: ['--token', '***', 'pg://*****'], url: 'https://*****@h/p?k=*'}";
        assert_eq!(masked(text), want);
    }

    #[test]
    fn line_breaks_in_strings_do_not_expose_what_follows() {
        let text =
            "{note: \"a\nb\", apiKey: \"MLSECRET\", cwd: 'a\\\r\nb', env: {T: 'CRLF'}, foo: 1}";
        let shown = masked(text);
        assert!(!shown.contains("MLSECRET") && !shown.contains("CRLF"), "{shown}");
        assert!(shown.ends_with("foo: 1}"), "{shown}");
    }

    #[test]
    fn a_file_that_does_not_parse_is_masked_too() {
        let shown = masked("{env: {A: 'one\n B: \"two\" oops }, token: \"three\"");
        for secret in ["one", "two", "three"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!(masked("}}}{ password: \"x\" stray"), "}}}{ password: \"*\" *****");
    }

    #[test]
    fn comments_are_masked() {
        assert_eq!(
            masked("{ // apiKey: 'a' }\n b: /* c */ 1 }"),
            "{ // ******* *** *\n b: /* * */ 1 }"
        );
        assert_eq!(masked("{ a: 1 /* token"), "{ a: 1 /* *****");
    }

    #[test]
    fn hostile_text_is_masked_in_linear_time() {
        // Inputs that a careless implementation handles in quadratic time.
        for piece in ["\"", "'", "//", "/*", "{env:{", "a ", ": ", "\\"] {
            let text = piece.repeat(1_000_000 / piece.len());
            assert_eq!(masked(&text).chars().count(), text.chars().count());
        }
    }

    #[test]
    fn offsets_are_carried_over() {
        let text = "{key: 'éé', b: 1}";
        let masked = mask(text);
        let b = text.find('b').unwrap();
        assert_eq!(&masked.text[masked.offset(b)..=masked.offset(b)], "b");
        assert_eq!(masked.offset(0), 0);
    }
}
