//! Determines the parts of a plaintext credential in the configuration that must be redacted in logs.

use crate::{SecretString, SecretTemplate, TemplatePart};

/// The minimum length in bytes of a literal word that is redacted on its own. It is more than
/// [`Redactor::MIN_LENGTH`](crate::Redactor::MIN_LENGTH), because a single word is not necessarily
/// secret: `correct horse battery` must not hide every `horse` in the log.
const MIN_WORD: usize = 8;

/// The maximum length of an authentication scheme; a longer first word is a key.
const MAX_SCHEME: usize = 24;

/// Registered or common schemes whose names contain more than letters.
const SCHEMES: &[&str] = &["AWS4-HMAC-SHA256", "SCRAM-SHA-1", "SCRAM-SHA-256", "Api-Key"];

/// Returns the literal words that are secret even if the references cannot be resolved.
pub(crate) fn secret_words(template: &SecretTemplate) -> Vec<SecretString> {
    let scheme = scheme(template);
    let literals = template.parts().iter().filter_map(|part| match part {
        TemplatePart::Literal(text) => Some(text.expose()),
        TemplatePart::Reference(_) => None,
    });
    literals
        .flat_map(str::split_whitespace)
        .filter(|word| word.len() >= MIN_WORD && scheme != Some(*word))
        .map(SecretString::from)
        .collect()
}

/// Returns a credential without its scheme: `abc` for `Bearer abc`.
pub(crate) fn without_scheme(
    template: &SecretTemplate,
    filled: &SecretString,
) -> Option<SecretString> {
    let rest = filled.expose().trim_start().strip_prefix(scheme(template)?)?;
    Some(SecretString::from(rest.trim()))
}

/// Returns the authentication scheme of a header value (RFC 9110, section 11.4): the first of
/// several words, if it is a literal and looks like the name of a scheme.
fn scheme(template: &SecretTemplate) -> Option<&str> {
    let TemplatePart::Literal(first) = template.parts().first()? else { return None };
    let first = first.expose();
    let mut words = first.split_whitespace();
    let word = words.next()?;
    let is_followed = words.next().is_some() || template.parts().len() > 1;
    let is_name = word.len() <= MAX_SCHEME && word.chars().all(|c| c.is_ascii_alphabetic());
    let is_known = SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(word));
    (is_followed && (is_name || is_known)).then_some(word)
}
