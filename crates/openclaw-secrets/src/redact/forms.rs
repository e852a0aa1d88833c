//! The encodings in which a value may appear in a log.

use std::{collections::BTreeSet, fmt::Write as _, ops::Range, sync::Arc};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Redactor, is_worth_hiding};

/// An encoding of a value.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EncodedForm {
    text: String,
    /// Base64 only: the character before the form contains bits of the value, too.
    takes_one_before: bool,
    /// Base64 only: the character after the form contains bits of the value, too.
    takes_one_after: bool,
}

/// The length of the prefix that is searched for. The rest is compared with the text, so that a key
/// file costs no more than a token, and a form that is truncated in the log is still found. It is
/// longer than the fixed prefix that keys of one kind share.
const HEAD: usize = 64;

impl EncodedForm {
    /// Returns the prefix that is searched for.
    pub(super) fn head(&self) -> &str {
        &self.text[..self.text.floor_char_boundary(HEAD)]
    }

    /// Returns the maximum number of bytes that it covers in a text.
    pub(super) fn max_extent(&self) -> usize {
        self.text.len() + usize::from(self.takes_one_before) + usize::from(self.takes_one_after)
    }

    pub(super) fn has_lines(&self) -> bool {
        self.text.contains('\n')
    }

    /// Returns how many bytes at the end of a text may be the form's first lines.
    pub(super) fn begun_at_end(&self, text: &[u8]) -> Option<usize> {
        let line_ends = self.text.match_indices('\n').map(|(at, _)| at + 1);
        // A log line is short, and a value may have thousands of lines.
        let line_ends = line_ends.take_while(|end| *end <= text.len());
        line_ends.filter(|end| text.ends_with(&self.text.as_bytes()[..*end])).max()
    }

    /// Returns the extent of the form in a text that contains its head at `start`.
    pub(super) fn extent(&self, text: &[u8], start: usize) -> Range<usize> {
        let pairs = text[start..].iter().zip(self.text.as_bytes());
        let agreeing = pairs.take_while(|(theirs, ours)| theirs == ours).count();
        // If they diverge within a character, that character does not belong to the form.
        let agreeing = self.text.floor_char_boundary(agreeing);
        let end = start + agreeing;
        let is_whole = agreeing == self.text.len();
        let before = self.takes_one_before && start > 0 && is_base64(text[start - 1]);
        let after =
            self.takes_one_after && is_whole && text.get(end).copied().is_some_and(is_base64);
        start - usize::from(before)..end + usize::from(after)
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

/// RFC 3986 and `encodeURIComponent`: only what must be encoded is.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const JAVASCRIPT: &AsciiSet =
    &COMPONENT.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
/// `application/x-www-form-urlencoded`; a space, which is encoded here, may also be a `+`.
const FORM: &AsciiSet = &COMPONENT.remove(b'*').add(b'~');
/// The parts of a URL as browsers and the `url` crate write them (URL standard, §1.3).
const QUERY: &AsciiSet =
    &percent_encoding::CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'\'');
const PATH: &AsciiSet = &QUERY.remove(b'\'').add(b'?').add(b'^').add(b'`').add(b'{').add(b'}');
const USERINFO: &AsciiSet = &PATH
    .add(b'/')
    .add(b':')
    .add(b';')
    .add(b'=')
    .add(b'@')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'|');

/// Returns every form of a value, and of each of its first lines without surrounding white space.
pub(super) fn forms_of(value: &str) -> Vec<Arc<EncodedForm>> {
    let mut forms = BTreeSet::new();
    add_forms(value, &mut forms);
    let lines = value.split(['\n', '\r']).map(str::trim).filter(|line| *line != value);
    // The PEM header and footer are the same for every key.
    let lines = lines.filter(|line| is_worth_hiding(line) && !line.starts_with("-----"));
    for line in lines.take(Redactor::MAX_LINES) {
        add_forms(line, &mut forms);
    }
    forms.into_iter().map(Arc::new).collect()
}

fn add_forms(value: &str, forms: &mut BTreeSet<EncodedForm>) {
    let mut add = |text: String| {
        forms.insert(EncodedForm { text, takes_one_before: false, takes_one_after: false });
    };
    add(value.to_owned());
    // Twice, because a JSON log may contain the `Debug` output of JSON text.
    for once in escapes(value) {
        escapes(&once).into_iter().for_each(&mut add);
        add(once);
    }
    for set in [NON_ALPHANUMERIC, COMPONENT, JAVASCRIPT, FORM, QUERY, PATH, USERINFO] {
        let upper = utf8_percent_encode(value, set).to_string();
        for encoded in [lower_case_escapes(&upper), upper] {
            add(encoded.replace("%20", "+"));
            add(encoded);
        }
    }
    let bytes = value.as_bytes();
    add(join(bytes, "", |text, byte| write!(text, "{byte:02x}")));
    add(join(bytes, "", |text, byte| write!(text, "{byte:02X}")));
    add(join(bytes, ", ", |text, byte| write!(text, "{byte}")));
    for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
        add(engine.encode(value));
    }
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        forms.extend((0..3).map(|before| embedded_base64(&engine, bytes, before)));
    }
}

/// Returns the characters of a value within a longer base64 text, if `before` bytes (modulo three)
/// precede it. The characters at both ends that it shares with its neighbours are omitted.
fn embedded_base64(engine: &impl base64::Engine, value: &[u8], before: usize) -> EncodedForm {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value);
    let encoded = engine.encode(&bytes);
    // A character is six bits: from the first without preceding bits to the last complete one.
    let start = (before * 8).div_ceil(6);
    let end = bytes.len() * 8 / 6;
    EncodedForm {
        text: encoded[start..end].to_owned(),
        takes_one_before: !(before * 8).is_multiple_of(6),
        takes_one_after: !(bytes.len() * 8).is_multiple_of(6),
    }
}

/// Returns the value as it is escaped inside quotes by JSON encoders and Rust's `Debug`.
fn escapes(value: &str) -> [String; 5] {
    let json = serde_json::Value::from(value).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let debug = format!("{value:?}");
    let debug = debug[1..debug.len() - 1].to_owned();
    let slashes = json.replace('/', "\\/");
    let ascii = ascii_only(&json);
    [json, slashes, ascii, debug, value.as_bytes().escape_ascii().to_string()]
}

/// Escapes JSON to ASCII, as Python's encoder does.
fn ascii_only(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

/// Converts `%2F` to `%2f`; the rest is unchanged.
fn lower_case_escapes(encoded: &str) -> String {
    let mut digits = 0_u8;
    let lower = |c: char| {
        let is_digit = digits > 0;
        digits = if c == '%' { 2 } else { digits.saturating_sub(1) };
        if is_digit { c.to_ascii_lowercase() } else { c }
    };
    encoded.chars().map(lower).collect()
}

fn join(
    bytes: &[u8],
    separator: &str,
    mut write: impl FnMut(&mut String, u8) -> std::fmt::Result,
) -> String {
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            text.push_str(separator);
        }
        let _ = write(&mut text, *byte);
    }
    text
}
