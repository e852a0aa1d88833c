//! What to look for in a log, so that a credential which stands in the config does not show there.

use crate::{SecretString, SecretTemplate, TemplatePart};

/// The length in bytes from which on a word of a literal is looked for by itself. It is more than
/// [`Redactor::MIN_LENGTH`](crate::Redactor::MIN_LENGTH), because nobody said of the single word that
/// it is secret: `correct horse battery` must not hide every horse of the log.
const MIN_WORD: usize = 8;

/// Names of authentication schemes have few letters; a first word of more is a key.
const MAX_SCHEME: usize = 24;

/// Registered or common schemes whose names are not letters only.
const SCHEMES: &[&str] = &["AWS4-HMAC-SHA256", "SCRAM-SHA-1", "SCRAM-SHA-256", "Api-Key"];

/// The words of the literals which are secret even if the rest of the template is not there.
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

/// What a credential says after its scheme: of `Bearer abc` it is `abc`.
pub(crate) fn without_scheme(
    template: &SecretTemplate,
    filled: &SecretString,
) -> Option<SecretString> {
    let rest = filled.expose().trim_start().strip_prefix(scheme(template)?)?;
    Some(SecretString::from(rest.trim()))
}

/// The authentication scheme that a header value begins with (RFC 9110, section 11.4): the first of
/// several words, if it is written out and looks like the name of one.
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
