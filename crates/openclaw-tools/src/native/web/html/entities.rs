//! Character references in HTML.

/// Maximum length of a reference.
const MAX_NAME: usize = 10;

/// Appends a text with its references decoded, so that none hides anything.
pub(super) fn push_decoded(into: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, reference) = rest.split_at(at);
        into.push_str(before);
        let decoded = decode(reference.get(1..).unwrap_or_default());
        let (character, length) = decoded.unwrap_or(('&', 0));
        into.push(character);
        rest = reference.get(1 + length..).unwrap_or_default();
    }
    into.push_str(rest);
}

/// Decodes the reference at the beginning of a text; returns the character and the length of the
/// reference.
fn decode(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(MAX_NAME + 1).position(|byte| byte == b';')?;
    let name = text.get(..end)?;
    let character = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            let character = char::from_u32(code.ok()?).filter(|c| *c != '\0');
            character.unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        None => named(name)?,
    };
    Some((character, end + 1))
}

fn named(name: &str) -> Option<char> {
    Some(match name {
        "amp" | "AMP" => '&',
        "lt" | "LT" => '<',
        "gt" | "GT" => '>',
        "quot" | "QUOT" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "shy" => '\u{ad}',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "deg" => '°',
        "middot" => '·',
        "bull" => '•',
        "hellip" => '…',
        "ndash" => '–',
        "mdash" => '—',
        "lsquo" => '‘',
        "rsquo" => '’',
        "sbquo" => '‚',
        "ldquo" => '“',
        "rdquo" => '”',
        "bdquo" => '„',
        "laquo" => '«',
        "raquo" => '»',
        "times" => '×',
        "divide" => '÷',
        "minus" => '−',
        "plusmn" => '±',
        "euro" => '€',
        "pound" => '£',
        "cent" => '¢',
        "sect" => '§',
        "para" => '¶',
        "larr" => '←',
        "rarr" => '→',
        "uarr" => '↑',
        "darr" => '↓',
        "vert" | "verbar" => '|',
        "lbrack" => '[',
        "rbrack" => ']',
        "lbrace" => '{',
        "rbrace" => '}',
        "sol" => '/',
        "bsol" => '\\',
        "lowbar" => '_',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        "ecirc" => 'ê',
        "agrave" => 'à',
        "aacute" => 'á',
        "ccedil" => 'ç',
        "ntilde" => 'ñ',
        "oacute" => 'ó',
        "iacute" => 'í',
        "uacute" => 'ú',
        _ => return None,
    })
}
