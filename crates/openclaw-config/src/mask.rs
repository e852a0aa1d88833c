//! Source lines are shown in messages; the credentials in them are not.
//!
//! This works on the characters alone, so that it holds for a file that does not parse, too.

use std::ops::Range;

use crate::credential::is_credential_name;
use crate::text::is_variable_name;

/// Everything below these keys is taken for a credential.
const SENSITIVE_BLOCKS: &[&str] = &["env", "headers"];
/// Sections that are called like credentials and are none.
const HARMLESS_BLOCKS: &[&str] = &["auth", "oauth", "secrets"];

/// `text` with the credentials in it replaced by asterisks, as many as they have characters, so
/// that columns stay what they are. The byte offsets may shift: use [`Masked::offset`].
pub(crate) struct Masked {
    pub(crate) text: String,
    /// For each character: its offset in the original and in the masked text.
    shifts: Vec<(usize, usize)>,
}

impl Masked {
    /// Where the character at `offset` of the original stands in the masked text.
    pub(crate) fn offset(&self, offset: usize) -> usize {
        let index = self.shifts.partition_point(|(original, _)| *original <= offset);
        match index.checked_sub(1).map(|index| self.shifts[index]) {
            Some((original, masked)) => masked + (offset - original),
            None => offset,
        }
    }
}

/// Masks the credentials of a whole file.
pub(crate) fn mask(text: &str) -> Masked {
    let mut masked = Masked { text: String::with_capacity(text.len()), shifts: Vec::new() };
    let mut copied = 0;
    for secret in credentials(text) {
        masked.text.push_str(&text[copied..secret.start]);
        for (offset, _) in text[secret.clone()].char_indices() {
            masked.shifts.push((secret.start + offset, masked.text.len()));
            masked.text.push('*');
        }
        masked.shifts.push((secret.end, masked.text.len()));
        copied = secret.end;
    }
    masked.text.push_str(&text[copied..]);
    masked
}

/// One open `{` or `[`.
struct Block {
    sensitive: bool,
    /// Whether the value that comes next stands under the name of a credential.
    value_sensitive: bool,
}

/// The ranges of the literals that are credentials, in order.
fn credentials(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    find(text, 0..text.len(), Place::Code, false, &mut found);
    found
}

/// Finds credentials in a part of the text. What is commented out is looked at by itself: a brace
/// in a comment must not be taken for one of the code.
fn find(
    text: &str,
    part: Range<usize>,
    place: Place,
    sensitive: bool,
    found: &mut Vec<Range<usize>>,
) {
    let mut blocks = vec![Block { sensitive, value_sensitive: false }];
    let mut last_word = "";
    let mut after_colon = false;
    for token in (Tokens { text: &text[..part.end], at: part.start, place }) {
        let Some(block) = blocks.last_mut() else { break };
        match token {
            Token::Comment(range) => find(text, range, Place::Comment, block.sensitive, found),
            Token::Open => {
                let named = SENSITIVE_BLOCKS.contains(&last_word)
                    || block.value_sensitive && !HARMLESS_BLOCKS.contains(&last_word);
                let sensitive = block.sensitive || after_colon && named;
                blocks.push(Block { sensitive, value_sensitive: false });
                after_colon = false;
            }
            Token::Close => {
                // A stray `}` must not empty the stack: the rest of the file counts, too.
                if blocks.len() > 1 {
                    blocks.pop();
                }
                after_colon = false;
            }
            Token::Colon => {
                after_colon = true;
                block.value_sensitive = is_credential_name(last_word);
            }
            Token::Comma => {
                after_colon = false;
                block.value_sensitive = false;
            }
            Token::Word(range) => {
                let word = &text[range.clone()];
                if after_colon || block.sensitive && !followed_by_colon(text, range.end) {
                    if block.sensitive || block.value_sensitive {
                        found.extend(secret_words(word, range.start));
                    } else {
                        found.extend(url_credentials(word, range.start));
                    }
                } else {
                    last_word = word;
                }
            }
        }
    }
}

/// The words of a literal that are not references: a reference names a credential, and is none.
fn secret_words(text: &str, start: usize) -> impl Iterator<Item = Range<usize>> {
    let is_reference = |word: &str| {
        let variable = word.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        word.starts_with("secret://") || variable.is_some_and(is_variable_name)
    };
    let is_harmless = matches!(text, "true" | "false" | "null");
    let words = if is_harmless { "" } else { text }.split(' ');
    let with_offsets = words.scan(start, |at, word| {
        let range = *at..*at + word.len();
        *at = range.end + 1;
        Some((word, range))
    });
    with_offsets
        .filter(move |(word, _)| !word.is_empty() && !is_reference(word))
        .map(|(_, range)| range)
}

/// The password and the query of a URL.
fn url_credentials(word: &str, start: usize) -> impl Iterator<Item = Range<usize>> {
    let authority = word.find("://").map(|scheme| scheme + 3);
    let password = authority.and_then(|from| {
        let to = word[from..].find(['/', '?', '#']).map_or(word.len(), |end| from + end);
        let at = word[from..to].rfind('@')? + from;
        Some(start + from..start + at)
    });
    let query = authority.and_then(|from| {
        let query = word[from..].find('?')? + from + 1;
        (query < word.len()).then(|| start + query..start + word.len())
    });
    password.into_iter().chain(query)
}

fn followed_by_colon(text: &str, end: usize) -> bool {
    text[end..].trim_start_matches(['"', '\'']).trim_start().starts_with(':')
}

enum Token {
    Open,
    Close,
    Colon,
    Comma,
    /// A comment with its slashes.
    Comment(Range<usize>),
    /// A string without its quotes, or a bare word or number.
    Word(Range<usize>),
}

struct Tokens<'a> {
    text: &'a str,
    at: usize,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Code,
    /// Here slashes are mere text.
    Comment,
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let rest = &self.text[self.at..];
            let first = rest.chars().next()?;
            let start = self.at;
            self.at += first.len_utf8();
            match first {
                '{' | '[' => return Some(Token::Open),
                '}' | ']' => return Some(Token::Close),
                ':' => return Some(Token::Colon),
                ',' => return Some(Token::Comma),
                '"' | '\'' => return Some(Token::Word(self.string(first))),
                '/' if self.place == Place::Code && rest.starts_with("//") => {
                    self.at = start + rest.find('\n').unwrap_or(rest.len());
                    return Some(Token::Comment(start..self.at));
                }
                '/' if self.place == Place::Code && rest.starts_with("/*") => {
                    self.at = start + rest.find("*/").map_or(rest.len(), |end| end + 2);
                    return Some(Token::Comment(start..self.at));
                }
                '/' | '*' if self.place == Place::Comment => {}
                _ if first.is_whitespace() => {}
                _ => {
                    let ends = |c: char| c.is_whitespace() || "{}[]:,\"'".contains(c);
                    self.at = start + rest.find(ends).unwrap_or(rest.len());
                    self.at = self.at.max(start + first.len_utf8());
                    return Some(Token::Word(start..self.at));
                }
            }
        }
    }
}

impl Tokens<'_> {
    /// Goes to the end of a string whose opening quote has been read. An unclosed one ends with its
    /// line, so that a forgotten quote does not swallow the rest of the file.
    fn string(&mut self, quote: char) -> Range<usize> {
        let start = self.at;
        let mut escaped = false;
        for (offset, c) in self.text[start..].char_indices() {
            let end = start + offset;
            self.at = end + c.len_utf8();
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '\n' => return start..end,
                c if c == quote => return start..end,
                _ => {}
            }
        }
        self.at = self.text.len();
        start..self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        mask(text).text
    }

    #[test]
    fn values_under_credential_names_are_masked_and_columns_stay() {
        assert_eq!(
            masked(r#"{ apiKey: "sk-é1", url: "https://x" }"#),
            r#"{ apiKey: "*****", url: "https://x" }"#
        );
        assert_eq!(masked("{token: 12345, n: 1}"), "{token: *****, n: 1}");
    }

    #[test]
    fn everything_in_env_and_headers_is_masked_except_references() {
        let text =
            r#"{env: {A: "one", 'B': "Bearer secret://env/B", C: "${C}", D: 7}, args: ["x"]}"#;
        let want =
            r#"{env: {A: "***", 'B': "****** secret://env/B", C: "${C}", D: *}, args: ["x"]}"#;
        assert_eq!(masked(text), want);
    }

    #[test]
    fn arrays_and_objects_under_credential_names_are_masked() {
        assert_eq!(
            masked("{apiKey: {a: 'b'}, auth: {a: 'b'}}"),
            "{apiKey: {a: '*'}, auth: {a: 'b'}}"
        );
        assert_eq!(
            masked("{tokens: ['ab', 'c'], after: 'd'}"),
            "{tokens: ['**', '*'], after: 'd'}"
        );
    }

    #[test]
    fn passwords_and_queries_in_urls_are_masked() {
        assert_eq!(masked("{url: 'https://me:pw@h/p?k=v'}"), "{url: 'https://*****@h/p?***'}");
    }

    #[test]
    fn a_file_that_does_not_parse_is_masked_all_the_same() {
        // Where it is unclear what is a key and what a value, rather too much is masked.
        assert_eq!(masked("{env: {A: 'one\n B: \"two\" oops"), "{env: {A: '***\n *: \"***\" ****");
        assert_eq!(masked("}}}{ password: \"x\""), "}}}{ password: \"*\"");
    }

    #[test]
    fn what_is_commented_out_is_masked_and_does_not_disturb_the_rest() {
        let text = "{ // apiKey: 'a', } } {\n env: { /* } A: 'b' */ B: 'c' }, d: 'e' /* token: 'f'";
        let want = "{ // apiKey: '*', } } {\n env: { /* } A: '*' */ B: '*' }, d: 'e' /* token: '*'";
        assert_eq!(masked(text), want);
        let slashes = "/".repeat(1_000_000);
        assert_eq!(masked(&slashes), slashes);
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
