//! [`SecretTemplate`]: a config string that may contain secret references.

use std::fmt;

use crate::{REDACTED, SCHEME, SecretRef, SecretRefError, SecretRefProblem, SecretString};

/// A config string: plain text, a reference, or text with references in it.
///
/// A reference begins at the string's start or after white space and ends at white space or the
/// string's end, as in `"Bearer secret://vault/kv/github#token"`. A `secret://` inside a word is an
/// error: it would be sent unresolved.
///
/// ```
/// use openclaw_secrets::SecretTemplate;
///
/// let header = SecretTemplate::parse("Bearer secret://env/GITHUB_TOKEN")?;
/// assert!(!header.is_plain());
/// assert_eq!(header.to_string(), "[REDACTED] secret://env/GITHUB_TOKEN");
/// # Ok::<(), openclaw_secrets::SecretRefError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SecretTemplate {
    parts: Vec<TemplatePart>,
}

/// A part of a [`SecretTemplate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text as written. It may be a credential, so it is treated as one.
    Literal(SecretString),
    /// A secret that is inserted when the template is resolved.
    Reference(SecretRef),
}

impl SecretTemplate {
    /// Parses a config string. The error's range is that of the invalid reference within `text`.
    ///
    /// # Errors
    /// If a `secret://` does not begin a valid reference.
    pub fn parse(text: &str) -> Result<Self, SecretRefError> {
        let mut parts = Vec::new();
        let mut done = 0;
        while let Some(start) = find(text, done)? {
            let end = word_end(text, start);
            push_literal(&mut parts, &text[done..start]);
            let reference: SecretRef =
                text[start..end].parse().map_err(|error: SecretRefError| error.at(start))?;
            parts.push(TemplatePart::Reference(reference));
            done = end;
        }
        push_literal(&mut parts, &text[done..]);
        Ok(Self { parts })
    }

    /// Creates a template without references, whatever the text looks like.
    #[must_use]
    pub fn literal(text: &str) -> Self {
        let mut parts = Vec::new();
        push_literal(&mut parts, text);
        Self { parts }
    }

    /// Whether the string contains no references, so that the text in the configuration is the value.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.references().next().is_none()
    }

    /// Returns the references in order.
    pub fn references(&self) -> impl Iterator<Item = &SecretRef> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Reference(reference) => Some(reference),
            TemplatePart::Literal(_) => None,
        })
    }

    /// Returns the parts in order. An empty string has none.
    #[must_use]
    pub fn parts(&self) -> &[TemplatePart] {
        &self.parts
    }

    /// Replaces every reference with the result of `value_of`.
    ///
    /// # Errors
    /// Returns the first error of `value_of`.
    pub fn fill<E>(
        &self,
        mut value_of: impl FnMut(&SecretRef) -> Result<SecretString, E>,
    ) -> Result<SecretString, E> {
        let values: Vec<SecretString> = self
            .parts
            .iter()
            .map(|part| match part {
                TemplatePart::Literal(text) => Ok(text.clone()),
                TemplatePart::Reference(reference) => value_of(reference),
            })
            .collect::<Result<_, E>>()?;
        let values: Vec<&str> = values.iter().map(SecretString::expose).collect();
        // `concat` allocates once: a growing string would leave copies behind in memory.
        Ok(SecretString::from(values.concat()))
    }
}

/// Finds the next `secret://` at or after `from`.
fn find(text: &str, from: usize) -> Result<Option<usize>, SecretRefError> {
    let Some(start) = text[from..].find(SCHEME).map(|at| from + at) else { return Ok(None) };
    let inside_a_word = text[..start].chars().next_back().is_some_and(|c| !c.is_whitespace());
    if inside_a_word {
        let end = word_end(text, start);
        let problem = SecretRefProblem::InsideAWord;
        return Err(SecretRefError::new(&text[start..end], start..end, problem));
    }
    Ok(Some(start))
}

fn word_end(text: &str, start: usize) -> usize {
    text[start..].find(char::is_whitespace).map_or(text.len(), |length| start + length)
}

fn push_literal(parts: &mut Vec<TemplatePart>, text: &str) {
    if !text.is_empty() {
        parts.push(TemplatePart::Literal(SecretString::from(text)));
    }
}

/// Shows references as written; literals are redacted, except for surrounding white space.
impl fmt::Display for SecretTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            TemplatePart::Reference(reference) => write!(f, "{reference}"),
            TemplatePart::Literal(text) => {
                let text = text.expose();
                let start = text.len() - text.trim_start().len();
                let end = text.trim_end().len();
                if end <= start {
                    return f.write_str(text);
                }
                write!(f, "{}{REDACTED}{}", &text[..start], &text[end..])
            }
        })
    }
}

impl fmt::Debug for SecretTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretTemplate({self})")
    }
}
