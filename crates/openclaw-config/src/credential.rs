//! Detects likely credentials, and redacts them in text for display.
//!
//! They are detected by name (`GITHUB_TOKEN`), by shape (`ghp_…`) and by position (the user info of
//! a URL, the value after `--token`). When in doubt, text is hidden: it can be looked up in the file.

use crate::text::is_reference_word;

/// Replaces a credential in displayed text.
pub(crate) use openclaw_secrets::REDACTED;
use openclaw_secrets::SecretString;
use percent_encoding::percent_decode_str;
use url::Url;

/// Words in the names of credentials.
const TELLING_WORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "secret",
    "secrets",
    "token",
    "tokens",
    "key",
    "keys",
    "apikey",
    "credential",
    "credentials",
    "auth",
    "authorization",
    "authentication",
    "bearer",
    "cookie",
    "signature",
    "private",
    "dsn",
    "pat",
    "jwt",
    "accesskey",
    "secretkey",
    "authtoken",
    "accesstoken",
    "privatekey",
];

/// Prefixes of well-known tokens.
const TELLING_PREFIXES: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "xox",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
    "hf_",
    "tvly-",
    "dop_v1_",
    "shpat_",
];

/// The minimum length in bytes of a value that is redacted in logs, if only its place suggests that
/// it is a credential.
const MIN_WORD: usize = 8;

/// Options whose value is an assignment or a header, as in `-e NAME=value`.
const CARRIERS: &[&str] = &["-e", "--env", "-H", "--header"];

/// Whether a setting of this name (`GITHUB_TOKEN`, `X-Api-Key`, `clientSecret`) holds a credential.
pub fn is_credential_name(name: &str) -> bool {
    let mut word = String::new();
    let mut previous_lower = false;
    for c in name.chars().chain(['_']) {
        let begins = c.is_uppercase() && previous_lower;
        if begins || !c.is_alphanumeric() {
            if TELLING_WORDS.contains(&word.as_str()) {
                return true;
            }
            word.clear();
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        previous_lower = c.is_lowercase();
    }
    false
}

/// Whether a value has the shape of a credential, regardless of its name.
pub fn looks_like_credential(value: &str) -> bool {
    let value = value.trim();
    if TELLING_PREFIXES.iter().any(|prefix| value.starts_with(prefix)) {
        return true;
    }
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '=');
    let has = |test: fn(&char) -> bool| value.chars().any(|c| test(&c));
    let is_long = value.len() >= 24 && value.chars().all(is_token);
    is_long && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
        || address_credentials(value).next().is_some()
}

/// Returns the parts of a URL that may be credentials: everything before the last `@` of the
/// authority, and the values of the query. The URL need not be valid.
pub(crate) fn address_credentials(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    let authority = text.find("://").map(|scheme| scheme + 3);
    let query = text.find('?').filter(|at| authority.is_some() || text[*at..].contains('='));
    let end = query.unwrap_or(text.len());
    let from = authority.unwrap_or(0);
    let user = text[from..end].rfind('@').map(|at| from..from + at);
    // Without a scheme, an `@` may be part of a name: `@scope/package`, `me@example.com`.
    let user = user.filter(|user| authority.is_some() || text[user.clone()].contains(':'));
    let user = user.filter(|user| !user.is_empty() && !is_reference_word(&text[user.clone()]));
    let values = query.into_iter().flat_map(move |query| {
        let mut at = query + 1;
        text[query + 1..].split('&').map(move |pair| {
            let value = pair.find('=').map_or(0, |equals| equals + 1);
            let range = at + value..at + pair.len();
            at += pair.len() + 1;
            range
        })
    });
    let hidden = |range: &std::ops::Range<usize>| !range.is_empty();
    let values: Vec<_> =
        values.filter(hidden).filter(|range| !is_reference_word(&text[range.clone()])).collect();
    user.into_iter().chain(values)
}

/// Returns the credentials in a URL, as written and decoded, to be registered with a redactor: the
/// password, or the user name without one, and the values of the query. Values of fewer than eight
/// bytes are left out if their names are harmless, as in `?mode=fast`.
pub fn url_credentials(url: &str) -> Vec<SecretString> {
    values_of_url(url, |name, value| value.len() >= MIN_WORD || is_credential_name(name))
}

/// Like [`url_credentials`], with only those values of the query that are certainly credentials, by name
/// or shape.
pub(crate) fn named_url_credentials(url: &str) -> Vec<SecretString> {
    values_of_url(url, |name, value| is_credential_name(name) || looks_like_credential(value))
}

fn values_of_url(url: &str, counts: fn(&str, &str) -> bool) -> Vec<SecretString> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let password = url.password().filter(|password| !password.is_empty());
    let mut found = vec![password.unwrap_or(url.username()).to_owned()];
    for pair in url.query().unwrap_or_default().split('&') {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        if counts(name, value) {
            found.push(value.to_owned());
        }
    }
    // In a query, a plus is a space.
    let plain = |text: &String| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let decoded: Vec<String> = found.iter().map(plain).collect();
    let spaced = decoded.iter().map(|text| text.replace('+', " "));
    let all = found.iter().cloned().chain(spaced).chain(decoded.iter().cloned());
    all.filter(|text| !text.is_empty()).map(SecretString::from).collect()
}

/// Returns the credentials in the arguments of a command, to be registered with a redactor. Short
/// ones are left out: `-e LEVEL=debug` must not hide every `debug`.
pub(crate) fn arg_credentials<'a>(args: impl IntoIterator<Item = &'a str>) -> Vec<SecretString> {
    let mut filter = ArgFilter::default();
    let mut found = Vec::new();
    for arg in args {
        let Some(from) = filter.hidden_from(arg) else { continue };
        let in_urls = [arg, arg.split_once('=').map_or("", |(_, value)| value)];
        found.extend(in_urls.into_iter().flat_map(url_credentials));
        let words = arg[from..].split_whitespace().chain([arg[from..].trim()]);
        found.extend(words.filter(|word| word.len() >= MIN_WORD).map(SecretString::from));
    }
    found
}

/// Redacts the credentials in a URL.
pub(crate) fn safe_address(text: &str) -> String {
    redact(text, address_credentials(text))
}

fn redact(text: &str, hidden: impl IntoIterator<Item = std::ops::Range<usize>>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut shown = 0;
    for range in hidden {
        out.push_str(&text[shown..range.start]);
        out.push_str(REDACTED);
        shown = range.end;
    }
    out.push_str(&text[shown..]);
    out
}

/// Finds credentials in the arguments of a command, one argument at a time.
#[derive(Default)]
pub(crate) struct ArgFilter {
    /// How to treat the next argument, given the previous one.
    next: Next,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Next {
    #[default]
    Plain,
    Credential,
    Assignment,
}

impl ArgFilter {
    /// Returns the offset from which on the argument must be hidden, if any.
    pub(crate) fn hidden_from(&mut self, arg: &str) -> Option<usize> {
        let role = std::mem::take(&mut self.next);
        // A credential may begin with a dash; with two it is more likely the next option.
        let is_option = arg.starts_with("--") || role != Next::Credential && arg.starts_with('-');
        if is_option {
            return self.option(arg);
        }
        if is_reference_word(arg) {
            return None;
        }
        match role {
            Next::Credential => Some(0),
            // `-e NAME` passes on a variable of that name: there is no value.
            Next::Assignment if is_name_of_variable(arg) => None,
            Next::Assignment => Some(arg.find(['=', ':']).map_or(0, |at| at + 1)),
            Next::Plain => hidden_in_value(arg, 0),
        }
    }

    fn option(&mut self, arg: &str) -> Option<usize> {
        let Some((name, value)) = arg.split_once('=') else {
            if CARRIERS.contains(&arg) {
                self.next = Next::Assignment;
            } else if is_credential_name(arg) {
                self.next = Next::Credential;
            }
            return None;
        };
        let start = name.len() + 1;
        if CARRIERS.contains(&name) {
            return Some(value.find(['=', ':']).map_or(start, |at| start + at + 1));
        }
        let hides = is_credential_name(name) && !is_reference_word(value);
        if hides { Some(start) } else { hidden_in_value(value, start) }
    }
}

/// Whether a word is the name of an environment variable, and cannot be a token.
fn is_name_of_variable(word: &str) -> bool {
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    word.contains('_')
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(fits)
}

/// Returns the offset of a credential in `NAME=value`, `Name: value`, a URL or a bare token.
fn hidden_in_value(value: &str, start: usize) -> Option<usize> {
    let assigned = value.find(['=', ':']).filter(|at| is_credential_name(&value[..*at]));
    if let Some(at) = assigned.filter(|at| !is_reference_word(value[at + 1..].trim())) {
        return Some(start + at + 1);
    }
    let address = address_credentials(value).next().map(|range| start + range.start);
    address.or_else(|| looks_like_credential(value).then_some(start))
}

/// Returns the arguments of a command with credentials redacted.
pub(crate) fn safe_args<'a>(args: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut filter = ArgFilter::default();
    let shown = |arg: &str| match filter.hidden_from(arg) {
        Some(from) => format!("{}{REDACTED}", &arg[..from]),
        None => arg.to_owned(),
    };
    args.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_recognised_by_their_words() {
        for name in [
            "GITHUB_TOKEN",
            "X-Api-Key",
            "Authorization",
            "clientSecret",
            "db_password",
            "--api-key",
            "APIKEY",
        ] {
            assert!(is_credential_name(name), "{name}");
        }
        for name in ["LOG_LEVEL", "Accept", "PORT", "command", "MONKEY", "AUTHOR", "keyboard", ""] {
            assert!(!is_credential_name(name), "{name}");
        }
    }

    #[test]
    fn credentials_of_urls_and_arguments_are_found_as_written_and_decoded() {
        let exposed = |found: Vec<SecretString>| -> Vec<String> {
            found.iter().map(|it| it.expose().to_owned()).collect()
        };
        let found = exposed(url_credentials("https://me:p%40ss@h/x?key=k1&mode=fast&x=12345678"));
        for expected in ["p%40ss", "p@ss", "k1", "12345678"] {
            assert!(found.iter().any(|it| it == expected), "{expected}: {found:?}");
        }
        assert!(!found.iter().any(|it| it == "me" || it == "fast"), "{found:?}");
        assert_eq!(exposed(url_credentials("https://ghp_token@h/"))[0], "ghp_token");
        assert!(url_credentials("https://h/x").is_empty());
        let found = exposed(arg_credentials([
            "--token",
            "sesame-open",
            "-e",
            "LEVEL=debug",
            "--header=Authorization: Bearer abcdefgh",
            "postgres://u:db-password@h/db",
        ]));
        for expected in ["sesame-open", "abcdefgh", "db-password"] {
            assert!(found.iter().any(|it| it == expected), "{expected}: {found:?}");
        }
        assert!(!found.iter().any(|it| it == "debug"), "{found:?}");
    }

    #[test]
    fn the_name_of_a_variable_that_is_passed_on_is_not_a_credential() {
        let shown = |args: &[&str]| safe_args(args.iter().copied()).join(" ");
        assert_eq!(shown(&["run", "-e", "GITHUB_TOKEN", "image"]), "run -e GITHUB_TOKEN image");
        assert_eq!(shown(&["-e", "TOKEN=abc"]), format!("-e TOKEN={REDACTED}"));
        assert_eq!(shown(&["-e", "abc"]), format!("-e {REDACTED}"));
    }

    #[test]
    fn credentials_are_recognised_by_their_shape() {
        for value in
            ["ghp_x", "sk-1", "eyJhbGciOi", "a1b2c3d4e5f6a7b8c9d0e1f2", "postgres://u:p@h/db"]
        {
            assert!(looks_like_credential(value), "{value}");
        }
        for value in ["debug", "@scope/package", "/home/user/docs", "https://example.com/x", "8080"]
        {
            assert!(!looks_like_credential(value), "{value}");
        }
    }

    #[test]
    fn an_address_is_shown_without_user_and_query_values() {
        for (written, shown) in [
            (
                "https://me:hunter2@h/mcp?k=v&x=2#top",
                "https://[REDACTED]@h/mcp?k=[REDACTED]&x=[REDACTED]",
            ),
            ("https://ghp_token@h/", "https://[REDACTED]@h/"),
            ("https://me:hun/ter2@h/", "https://[REDACTED]@h/"),
            ("me:hunter2@h/x", "[REDACTED]@h/x"),
            ("https://${USER}@h/?key=${KEY}", "https://${USER}@h/?key=${KEY}"),
            ("https://h/mcp", "https://h/mcp"),
        ] {
            assert_eq!(safe_address(written), shown);
        }
    }

    #[test]
    fn credentials_in_arguments_are_hidden() {
        for (args, shown) in [
            (&["--api-key", "sk1", "x"][..], &["--api-key", REDACTED, "x"][..]),
            (&["--token=abc"], &["--token=[REDACTED]"]),
            (&["-e", "GITHUB_TOKEN=x", "img"], &["-e", "GITHUB_TOKEN=[REDACTED]", "img"]),
            (&["--env=K=v"], &["--env=K=[REDACTED]"]),
            (&["--header", "Authorization: Bearer x"], &["--header", "Authorization:[REDACTED]"]),
            (&["pg://u:p@h/db", "--db=pg://u:p@h"], &["pg://[REDACTED]", "--db=pg://[REDACTED]"]),
            (&["-y", "@scope/pkg", "/home/u"], &["-y", "@scope/pkg", "/home/u"]),
            (&["--token", "${TOKEN}", "--key=${KEY}"], &["--token", "${TOKEN}", "--key=${KEY}"]),
        ] {
            assert_eq!(safe_args(args.iter().copied()), shown);
        }
    }
}
