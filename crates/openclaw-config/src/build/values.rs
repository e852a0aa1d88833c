//! Validates single raw values and records where each comes from.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use openclaw_secrets::{SCHEME, SecretTemplate};
use serde_json::{Value as Json, json};
use url::{Host, ParseError, Url};

use crate::credential::REDACTED;
use crate::decode::{Field, Spanned};
use crate::diagnostic::Diagnostic;
use crate::raw::Words;
use crate::safe_url::SafeUrl;
use crate::setting::{Setting, SettingOrigin};
use crate::source::Sources;
use crate::text::{ConfigText, Expanded, VariableLookup, expand, is_reference_word};
use crate::tool_policy::ToolPolicy;

/// The schemes of an `Authorization` header, which are not secret.
const SCHEMES: [&str; 3] = ["Bearer", "Basic", "Token"];

/// The context of a build, and its findings so far.
pub(crate) struct Builder<'a> {
    pub(crate) lookup: VariableLookup<'a>,
    /// What `~/` expands to.
    pub(crate) home: Option<&'a Path>,
    /// The base folder of relative paths.
    pub(crate) base: &'a Path,
    pub(crate) sources: &'a Sources,
    pub(crate) found: Vec<Diagnostic>,
    /// The servers whose plaintext credentials have been reported (K4).
    pub(crate) warned: BTreeSet<String>,
}

/// How unset variables are handled.
pub(crate) enum Unset<'a> {
    /// In a server's entry: collected, because they keep the server from starting.
    HoldsBack(&'a mut Vec<Spanned<String>>),
    /// Elsewhere: reported as errors.
    Refused,
}

/// A value that may be a credential.
pub(crate) struct MaybeCredential {
    pub(crate) value: SecretTemplate,
    /// Whether it is written in the file in plaintext.
    pub(crate) is_written_out: bool,
    /// Whether it is blank.
    pub(crate) is_empty: bool,
}

impl Builder<'_> {
    pub(crate) fn origin<T>(&self, field: &Spanned<T>) -> SettingOrigin {
        SettingOrigin::File { location: self.sources.locate(field.at), path: field.path.clone() }
    }

    /// Records the value of a field for display.
    pub(crate) fn note<T>(
        &self,
        noted: &mut Vec<Setting>,
        key: &str,
        field: &Spanned<T>,
        value: Json,
    ) {
        noted.push(Setting { key: key.to_owned(), value, origin: self.origin(field) });
    }

    /// Expands the variables of a string. `None` if one is unset or malformed; that is recorded.
    pub(crate) fn text(
        &mut self,
        text: &Spanned<ConfigText>,
        unset: &mut Unset<'_>,
    ) -> Option<Expanded> {
        let mut expansion = expand(&text.value.0, self.lookup);
        if let Some(problem) = expansion.malformed.take() {
            let help = "write `${NAME}` for a variable, `$$` for a dollar sign";
            self.found.push(text.error(problem, "in this text").help(help));
            return None;
        }
        if expansion.unset.is_empty() {
            return Some(Expanded::new(expansion, &text.value.0));
        }
        for name in expansion.unset {
            match unset {
                Unset::HoldsBack(names) => {
                    names.push(Spanned { value: name, at: text.at, path: text.path.clone() });
                }
                Unset::Refused => {
                    let message = format!("the environment variable `{name}` is not set");
                    let help = format!("set it, or write `${{{name}:-default}}`");
                    self.found.push(text.error(message, "used here").help(help));
                }
            }
        }
        None
    }

    /// Expands a string that must not contain secret references.
    pub(crate) fn plain(
        &mut self,
        text: &Spanned<ConfigText>,
        unset: &mut Unset<'_>,
    ) -> Option<Expanded> {
        if text.value.0.contains(SCHEME) {
            let message = "secret references are not supported here";
            let help = "they are supported in `env`, `headers`, `apiKey` and `auth` of a server, in \
                        `apiKey` and `headers` of a model provider, and as tokens";
            self.found.push(text.error(message, "would be passed on unchanged").help(help));
            return None;
        }
        self.text(text, unset)
    }

    /// Expands a list of strings.
    pub(crate) fn words(&mut self, words: &Spanned<Words>, unset: &mut Unset<'_>) -> Vec<Expanded> {
        words.value.iter().filter_map(|word| self.plain(word, unset)).collect()
    }

    /// Expands a string that must not be blank.
    pub(crate) fn filled(
        &mut self,
        text: &Spanned<ConfigText>,
        unset: &mut Unset<'_>,
    ) -> Option<Expanded> {
        let expanded = self.plain(text, unset)?;
        if expanded.as_str().trim().is_empty() {
            self.found.push(text.error("this must not be empty", "empty"));
            return None;
        }
        Some(expanded)
    }

    /// Parses a value that may be a credential or contain secret references.
    pub(crate) fn credential(
        &mut self,
        text: &Spanned<ConfigText>,
        expanded: &Expanded,
    ) -> Option<SecretTemplate> {
        // Only references written in the file count: the value of a variable is data.
        if !text.value.0.contains(SCHEME) {
            return Some(SecretTemplate::literal(expanded.as_str()));
        }
        SecretTemplate::parse(expanded.as_str())
            .map_err(|error| {
                let message = if expanded.has_variables() {
                    "not a secret reference after variable expansion".to_owned()
                } else {
                    format!("invalid secret reference: {}", error.problem())
                };
                self.found.push(text.error(message, "here"));
            })
            .ok()
    }

    /// Resolves a path relative to the folder of the configuration.
    pub(crate) fn path(
        &mut self,
        text: &Spanned<ConfigText>,
        unset: &mut Unset<'_>,
    ) -> Option<PathBuf> {
        let path = self.filled(text, unset)?;
        let path = path.as_str();
        let below_home = if path == "~" { Some("") } else { path.strip_prefix("~/") };
        match (below_home, self.home) {
            (Some(rest), Some(home)) => Some(home.join(rest)),
            (Some(_), None) => {
                self.found.push(no_home(text));
                None
            }
            (None, _) => Some(self.base.join(path)),
        }
    }

    /// Parses a URL of any scheme. What is not one is reported with this example.
    pub(crate) fn any_url(
        &mut self,
        text: &Spanned<ConfigText>,
        unset: &mut Unset<'_>,
        example: &str,
    ) -> Option<Url> {
        let expanded = self.filled(text, unset)?;
        match Url::parse(expanded.as_str().trim()) {
            Ok(url) => Some(url),
            Err(problem) => {
                let help = format!("write it in full: `{example}`");
                let message = match problem {
                    ParseError::RelativeUrlWithoutBase => "not a URL: it has no scheme".to_owned(),
                    problem => format!("not a URL: {problem}"),
                };
                self.found.push(text.error(message, "not a URL").help(help));
                None
            }
        }
    }

    /// Parses a URL that may be contacted: https, or http on this machine (T8).
    pub(crate) fn url(
        &mut self,
        text: &Spanned<ConfigText>,
        unset: &mut Unset<'_>,
    ) -> Option<SafeUrl> {
        let url = self.any_url(text, unset, "https://example.com/mcp")?;
        let refused = match url.scheme() {
            "https" => None,
            "http" if is_loopback(&url) => None,
            "http" => Some((
                "only https is allowed: http would expose credentials on the network",
                "use https; plain http is for this machine only (localhost, 127.0.0.1, [::1])",
            )),
            _ => Some((
                "only https URLs are allowed (http on this machine)",
                "for a local program use `command`",
            )),
        };
        if let Some((message, help)) = refused {
            self.found.push(text.error(message, "not allowed").help(help));
            return None;
        }
        Some(SafeUrl::new(url, text.value.0.trim()))
    }

    /// Builds a tool policy from allow and deny lists, recorded under `key`.
    pub(crate) fn policy(
        &mut self,
        key: &str,
        allow: &Field<Words>,
        deny: &Field<Words>,
        unset: &mut Unset<'_>,
        noted: &mut Vec<Setting>,
    ) -> ToolPolicy {
        let mut list = |name: &str, field: &Field<Words>| {
            let field = field.as_ref()?;
            self.note_words(&format!("{key}.{name}"), field, noted);
            let words = field.value.iter().filter_map(|word| self.pattern(word, unset)).collect();
            Some(words)
        };
        ToolPolicy { allow: list("allow", allow), deny: list("deny", deny).unwrap_or_default() }
    }

    /// Validates a glob pattern on tool names.
    fn pattern(&mut self, text: &Spanned<ConfigText>, unset: &mut Unset<'_>) -> Option<String> {
        let pattern = self.plain(text, unset)?;
        if let Err(error) = globset::Glob::new(pattern.as_str()) {
            let help = "`*` matches any characters, `?` matches one, `[ab]` matches one of these";
            let message = format!("invalid pattern: {}", error.kind());
            self.found.push(text.error(message, "cannot be used").help(help));
            return None;
        }
        Some(pattern.as_str().to_owned())
    }

    /// Records a text as written and parses it with `read`.
    pub(crate) fn noted_text<T>(
        &mut self,
        key: &str,
        field: Field<ConfigText>,
        noted: &mut Vec<Setting>,
        read: impl FnOnce(&mut Self, &Spanned<ConfigText>) -> Option<T>,
    ) -> Option<T> {
        let text = field?;
        self.note(noted, key, &text, json!(text.value.0));
        read(self, &text)
    }

    /// Records a list as written.
    pub(crate) fn note_words(&self, key: &str, words: &Spanned<Words>, noted: &mut Vec<Setting>) {
        let written: Vec<&str> = words.value.iter().map(|word| word.value.0.as_str()).collect();
        self.note(noted, key, words, json!(written));
    }

    /// Records a list and parses each of its texts as [`parsed`](Self::parsed) does.
    pub(crate) fn noted_words<T>(
        &mut self,
        key: &str,
        words: Field<Words>,
        noted: &mut Vec<Setting>,
        read: impl Fn(&str) -> Option<T>,
        rejection: [&str; 3],
    ) -> Vec<T> {
        let Some(words) = words else { return Vec::new() };
        self.note_words(key, &words, noted);
        words.value.iter().filter_map(|text| self.parsed(text, &read, rejection)).collect()
    }

    /// Parses a string with `read`. What it rejects is reported with this message, label and help.
    pub(crate) fn parsed<T>(
        &mut self,
        text: &Spanned<ConfigText>,
        read: impl Fn(&str) -> Option<T>,
        [message, label, help]: [&str; 3],
    ) -> Option<T> {
        let word = self.filled(text, &mut Unset::Refused)?;
        let value = read(word.as_str());
        if value.is_none() {
            self.found.push(text.error(message, label).help(help));
        }
        value
    }

    /// Records and parses a value outside servers that may be a credential.
    pub(crate) fn noted_credential(
        &mut self,
        key: &str,
        text: &Spanned<ConfigText>,
        noted: &mut Vec<Setting>,
    ) -> Option<MaybeCredential> {
        self.note(noted, key, text, json!(references_only(&text.value.0)));
        let expanded = self.text(text, &mut Unset::Refused)?;
        if expanded.as_str().contains(['\r', '\n', '\0']) {
            self.found.push(text.error("a credential must be a single line", "has a line break"));
            return None;
        }
        let value = self.credential(text, &expanded)?;
        let is_empty = value.is_plain() && expanded.as_str().trim().is_empty();
        let is_written_out = value.is_plain() && !expanded.has_variables() && !is_empty;
        Some(MaybeCredential { value, is_written_out, is_empty })
    }

    /// Returns the value of a field or its default, and records which.
    pub(crate) fn take<T: Clone>(
        &self,
        noted: &mut Vec<Setting>,
        key: &str,
        field: Field<T>,
        default: T,
        show: impl Fn(&T) -> Json,
    ) -> T {
        let (value, origin) = match field {
            Some(field) => (field.value.clone(), self.origin(&field)),
            None => (default, SettingOrigin::Default),
        };
        noted.push(Setting { key: key.to_owned(), value: show(&value), origin });
        value
    }
}

/// The error for `~/` without a home folder.
pub(crate) fn no_home(text: &Spanned<ConfigText>) -> Diagnostic {
    text.error("`~` cannot be used here: this user has no home folder", "uses `~`")
}

/// Whether a URL can only refer to this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Shows `Bearer hunter2 ${TOKEN}` as `Bearer [REDACTED] ${TOKEN}`: the scheme and references as
/// written, nothing else. The defaults of references may be credentials and are hidden.
pub(crate) fn references_only(written: &str) -> String {
    let shown = |word: &str| match default_hidden(word) {
        Some(reference) => reference,
        None if is_reference_word(word) || word.is_empty() => word.to_owned(),
        None => REDACTED.to_owned(),
    };
    let scheme = written.split_once(' ').filter(|(first, _)| SCHEMES.contains(first));
    let (scheme, rest) = scheme.map_or((None, written), |(first, rest)| (Some(first), rest));
    let words = scheme.map(ToOwned::to_owned).into_iter().chain(rest.split(' ').map(shown));
    words.collect::<Vec<_>>().join(" ")
}

/// Shows `${TOKEN:-hunter2}` as `${TOKEN:-…}`.
fn default_hidden(word: &str) -> Option<String> {
    let (name, default) = word.strip_prefix("${")?.strip_suffix('}')?.split_once(":-")?;
    let reference = format!("${{{name}}}");
    let is_hidden = !default.is_empty() && is_reference_word(&reference);
    is_hidden.then(|| format!("${{{name}:-…}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_shown_without_its_default() {
        for (written, shown) in [
            ("Bearer ${TOKEN}", "Bearer ${TOKEN}"),
            ("Bearer ${TOKEN:-hunter2}", "Bearer ${TOKEN:-…}"),
            ("Bearer hunter2", "Bearer [REDACTED]"),
            ("Basic", "[REDACTED]"),
            ("hunter2 Bearer", "[REDACTED] [REDACTED]"),
            ("${TOKEN:-}", "${TOKEN:-}"),
            ("${A:-x}${B:-hunter2}", "${A:-…}"),
            ("${to ken:-hunter2}", "[REDACTED] [REDACTED]"),
            ("x${TOKEN:-hunter2}", "[REDACTED]"),
        ] {
            assert_eq!(references_only(written), shown, "{written}");
        }
    }
}
