//! Checks single fields of a server and records where each comes from.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use openclaw_secrets::SecretTemplate;
use serde_json::{Value as Json, json};

use crate::credential::{
    ArgFilter, address_credentials, is_credential_name, looks_like_credential, safe_address,
    safe_args,
};
use crate::decode::{Field, Spanned, Table, Whole};
use crate::raw::{
    ApprovalPolicy, LogLevel, ProtocolVersion, RawSampling, RawServerTools, SamplingRule, Words,
};
use crate::safe_url::SafeUrl;
use crate::server::{Args, SamplingSettings};
use crate::text::{ConfigText, Expanded, is_variable_name};
use crate::tool_policy::ToolPolicy;

use super::server::ServerBuilder;
use super::values::{Unset, no_home, references_only};

/// The maximum length of a completion for a server that uses the agent's model, in tokens.
pub(super) const DEFAULT_MAX_TOKENS: u64 = 4_096;
/// How often a server may use the agent's model per minute.
const DEFAULT_REQUESTS: u64 = 10;

impl ServerBuilder<'_, '_> {
    /// Builds a table of values that may be credentials: `env`, `headers`.
    pub(super) fn credentials(
        &mut self,
        key: &str,
        table: Field<Table<ConfigText>>,
        problem: impl Fn(&str) -> Option<&'static str>,
    ) -> BTreeMap<String, SecretTemplate> {
        let mut out: BTreeMap<String, SecretTemplate> = BTreeMap::new();
        for (name, text) in table.map(|table| table.value.0).unwrap_or_default() {
            if let Some(problem) = problem(&name) {
                self.cx.found.push(text.error(problem, "its value"));
                continue;
            }
            let twin =
                out.keys().find(|other| key == "headers" && other.eq_ignore_ascii_case(&name));
            if let Some(twin) = twin {
                let message = format!("the headers `{twin}` and `{name}` are the same");
                self.cx.found.push(text.error(message, "given again here"));
                continue;
            }
            if let Some(value) = self.one_credential(&format!("{key}.{name}"), &name, &text) {
                out.insert(name, value);
            }
        }
        out
    }

    pub(super) fn one_credential(
        &mut self,
        key: &str,
        name: &str,
        text: &Spanned<ConfigText>,
    ) -> Option<SecretTemplate> {
        let written = &text.value.0;
        self.note(key, text, json!(references_only(written)));
        let expanded = self.cx.text(text, &mut Unset::HoldsBack(&mut self.unset))?;
        if key.starts_with("headers.") && expanded.as_str().contains(['\r', '\n', '\0']) {
            self.cx.found.push(text.error("a header must be a single line", "has a line break"));
            return None;
        }
        let value = self.cx.credential(text, &expanded)?;
        self.references.extend(value.references().map(|it| (it.clone(), key.to_owned())));
        let is_written_out = value.is_plain() && !expanded.has_variables();
        let is_credential = is_credential_name(name) || looks_like_credential(written);
        if is_written_out && !written.is_empty() && is_credential {
            self.warn_of_plaintext(text);
        }
        Some(value)
    }

    /// Records the warning about a plaintext credential; reported once per server (K4).
    fn warn_of_plaintext(&mut self, text: &Spanned<ConfigText>) {
        let server = self.name;
        let message = format!(
            "MCP server '{server}' has plaintext credentials in config — consider using secret:// references"
        );
        let help =
            "for example `secret://keychain/NAME`, `secret://env/NAME`, `secret://file/PATH`";
        let warning =
            text.warning(message, "readable by everyone who can read this file").help(help);
        self.plaintext.get_or_insert(warning);
    }

    pub(super) fn variable_names(&mut self, names: &Spanned<Words>) -> Vec<String> {
        let mut out = Vec::new();
        for name in &names.value {
            if is_variable_name(&name.value.0) {
                out.push(name.value.0.clone());
            } else {
                let help = "write only the name, for example `HOME`";
                self.cx.found.push(name.error("invalid variable name", "here").help(help));
            }
        }
        self.note("inheritEnv", names, json!(out));
        out
    }

    pub(super) fn home_relative(&mut self, command: &Spanned<ConfigText>) -> Option<Expanded> {
        let text = self.cx.filled(command, &mut Unset::HoldsBack(&mut self.unset))?;
        match (text.as_str().strip_prefix("~/"), self.cx.home) {
            (Some(rest), Some(home)) => {
                let path = home.join(rest).to_string_lossy().into_owned();
                Some(text.with_value(path))
            }
            (Some(_), None) => {
                self.cx.found.push(no_home(command));
                None
            }
            (None, _) => Some(text),
        }
    }

    pub(super) fn list(&mut self, key: &str, words: Field<Words>) -> Args {
        let Some(words) = words else { return Args::default() };
        let written = words.value.iter().map(|word| word.value.0.as_str());
        self.note(key, &words, json!(safe_args(written)));
        let mut filter = ArgFilter::default();
        let hidden = |word: &&Spanned<ConfigText>| filter.hidden_from(&word.value.0).is_some();
        if let Some(credential) = words.value.iter().find(hidden) {
            self.warn_of_plaintext(credential);
        }
        Args::from(self.cx.words(&words, &mut Unset::HoldsBack(&mut self.unset)))
    }

    pub(super) fn path(&mut self, key: &str, text: Field<ConfigText>) -> Option<PathBuf> {
        let text = text?;
        self.note(key, &text, json!(text.value.0));
        self.cx.path(&text, &mut Unset::HoldsBack(&mut self.unset))
    }

    pub(super) fn word(&mut self, key: &str, text: Field<ConfigText>) -> Option<String> {
        let text = text?;
        self.note(key, &text, json!(text.value.0));
        let word = self.cx.filled(&text, &mut Unset::HoldsBack(&mut self.unset))?;
        Some(word.as_str().to_owned())
    }

    pub(super) fn address(&mut self, key: &str, text: &Spanned<ConfigText>) -> Option<SafeUrl> {
        let url = self.cx.url(text, &mut Unset::HoldsBack(&mut self.unset));
        self.note(key, text, json!(safe_address(&text.value.0)));
        if address_credentials(&text.value.0).next().is_some() {
            self.warn_of_plaintext(text);
        }
        url
    }

    pub(super) fn tool_prefix(&mut self, prefix: Field<ConfigText>) -> Option<String> {
        let place = prefix.clone()?;
        let prefix = self.word("toolPrefix", prefix)?;
        if prefix.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
            return Some(prefix);
        }
        let message = "a prefix may only contain letters, digits, `_` and `-`";
        self.cx.found.push(place.error(message, "has other characters"));
        None
    }

    /// Checks the URIs of resources, unchanged: they are compared with those of the server.
    pub(super) fn resources(&mut self, uris: Field<Words>) -> Vec<Expanded> {
        let Some(uris) = uris else { return Vec::new() };
        let written = uris.value.iter().map(|uri| safe_address(&uri.value.0));
        self.note("resources", &uris, json!(written.collect::<Vec<_>>()));
        let mut out = Vec::new();
        for text in &uris.value {
            let unset = &mut Unset::HoldsBack(&mut self.unset);
            let Some(uri) = self.cx.filled(text, unset) else { continue };
            if is_uri(uri.as_str()) {
                out.push(uri);
            } else {
                let help = "run `openclaw mcp resources` to list them";
                let message = "invalid resource URI";
                self.cx.found.push(text.error(message, "not a URI").help(help));
            }
        }
        out
    }

    pub(super) fn tools(&mut self, tools: Field<RawServerTools>) -> ToolPolicy {
        let RawServerTools { allow, deny } = tools.map(|tools| tools.value).unwrap_or_default();
        let unset = &mut Unset::HoldsBack(&mut self.unset);
        self.cx.policy("tools", &allow, &deny, unset, &mut self.settings)
    }

    pub(super) fn approval(&mut self, field: Field<ApprovalPolicy>) -> ApprovalPolicy {
        self.cx.take(&mut self.settings, "approval", field, ApprovalPolicy::Auto, |it| {
            json!(it.as_str())
        })
    }

    pub(super) fn log_level(&mut self, field: Field<LogLevel>) -> Option<LogLevel> {
        let field = field?;
        self.note("logLevel", &field, json!(field.value.as_str()));
        Some(field.value)
    }

    pub(super) fn protocol_version(
        &mut self,
        field: Field<ProtocolVersion>,
    ) -> Option<ProtocolVersion> {
        let field = field?;
        self.note("protocolVersion", &field, json!(field.value.as_str()));
        Some(field.value)
    }

    /// Limits are recorded only if sampling is allowed.
    pub(super) fn sampling(&mut self, field: Field<RawSampling>) -> SamplingSettings {
        let RawSampling { allow, max_tokens, requests_per_minute } =
            field.map(|field| field.value).unwrap_or_default();
        let never = SamplingRule::Never;
        let settings = &mut self.settings;
        let allow = self.cx.take(settings, "sampling", allow, never, |it| json!(it.as_str()));
        let noted = settings.len();
        let max_tokens = self.number("sampling.maxTokens", max_tokens, DEFAULT_MAX_TOKENS);
        let (key, default) = ("sampling.requestsPerMinute", DEFAULT_REQUESTS);
        let requests = self.number(key, requests_per_minute, default);
        if allow == SamplingRule::Never {
            self.settings.truncate(noted);
        }
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        SamplingSettings {
            allow,
            max_tokens: small(max_tokens),
            requests_per_minute: NonZeroU32::new(small(requests)).unwrap_or(NonZeroU32::MIN),
        }
    }

    pub(super) fn flag(&mut self, key: &str, field: Field<bool>, default: bool) -> bool {
        self.cx.take(&mut self.settings, key, field, default, |value| json!(value))
    }

    pub(super) fn number<const MIN: u64, const MAX: u64>(
        &mut self,
        key: &str,
        field: Field<Whole<MIN, MAX>>,
        default: u64,
    ) -> u64 {
        self.cx.take(&mut self.settings, key, field, Whole(default), |value| json!(value.0)).0
    }

    pub(super) fn millis<const MIN: u64, const MAX: u64>(
        &mut self,
        key: &str,
        field: Field<Whole<MIN, MAX>>,
        default: u64,
    ) -> Duration {
        Duration::from_millis(self.number(key, field, default))
    }

    /// Records the value of a field for display.
    pub(super) fn note<T>(&mut self, key: &str, field: &Spanned<T>, value: Json) {
        self.cx.note(&mut self.settings, key, field, value);
    }
}

/// Whether a text has a scheme followed by something; its meaning is up to the server.
fn is_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    };
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    text.split_once(':').is_some_and(|(scheme, rest)| {
        is_scheme(scheme) && !rest.is_empty() && rest.chars().all(is_plain)
    })
}
