//! Names from outside as labels.

use openclaw_secrets::Redactor;

use crate::limits::LABEL_CHARS;

/// Returns a name as a label: without secrets, on one line, and not too long. Secrets are removed
/// first: half of one would not be found.
pub(crate) fn label(name: &str, redactor: &Redactor) -> Box<str> {
    let clean = redactor.redact(name);
    let printable = clean.chars().map(|c| if c.is_control() { '?' } else { c });
    printable.take(LABEL_CHARS).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_no_secrets_and_a_bounded_length() {
        let redactor = Redactor::new();
        redactor.add(&"hunter2-hunter2".into());
        assert_eq!(&*label("a\nb", &redactor), "a?b");
        assert_eq!(&*label("x-hunter2-hunter2", &redactor), "x-[REDACTED]");
        assert_eq!(label(&"é".repeat(1_000), &redactor).chars().count(), LABEL_CHARS);
    }
}
