//! An oracle that shares no code with the crate: simple, slow, and with its own short list of
//! look-alikes.
#![allow(dead_code, reason = "every test binary uses its own part of this")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken corpus should stop the test")]

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Look-alikes that compatibility decomposition does not resolve.
const LOOK_ALIKES: &[(&str, &str)] = &[
    ("АаΑα", "a"),
    ("ВвΒ", "b"),
    ("СсϹ", "c"),
    ("ЕеΕε", "e"),
    ("НнΗ", "h"),
    ("ІіΙι", "i"),
    ("КкΚκ", "k"),
    ("МмΜ", "m"),
    ("Νη", "n"),
    ("ОоΟο", "o"),
    ("РрΡρ", "p"),
    ("Ѕѕ", "s"),
    ("ТтΤτ", "t"),
    ("υ", "u"),
    ("УуΥ", "y"),
    ("ХхΧχ", "x"),
    ("‹〈⟨❬❮❰⦑˂〈", "<"),
    ("›〉⟩❭❯❱⦒˃〉", ">"),
    ("«《⟪≪", "<<"),
    ("»》⟫≫", ">>"),
    ("⋘", "<<<"),
    ("⋙", ">>>"),
    ("ǀ∣│❘¦", "|"),
    ("ᴀ", "a"),
    ("ᴄ", "c"),
    ("ᴅ", "d"),
    ("ᴇ", "e"),
    ("ʟ", "l"),
    ("ɴ", "n"),
    ("ᴏ", "o"),
    ("ʀ", "r"),
    ("ꜱ", "s"),
    ("ᴛ", "t"),
    ("ᴜ", "u"),
    ("▁ˍ‗‿⁀⎽⎯─━—―一ーㅡ‾¯ˉ", "_"),
    ("◁◀", "<"),
    ("▷▶", ">"),
];

const ENTITIES: &[(&str, &str)] = &[
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&#60;", "<"),
    ("&#62;", ">"),
    ("&#x3c;", "<"),
    ("&#124;", "|"),
    ("&vert;", "|"),
    ("&#060;", "<"),
    ("&#062;", ">"),
    ("&#x03c;", "<"),
    ("&#x003e;", ">"),
    ("&#0124;", "|"),
    ("&lsqb;", "["),
    ("&rsqb;", "]"),
    ("&#95;", "_"),
    ("&#095;", "_"),
    ("&#x5f;", "_"),
    ("&lowbar;", "_"),
    ("&#78;", "n"),
];

fn is_unseen(c: char) -> bool {
    c.is_control()
        || is_combining_mark(c)
        || matches!(u32::from(c),
            0xAD | 0x34F | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F
            | 0x3164 | 0x1160 | 0xFE00..=0xFE0F | 0xFEFF | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}

/// The text as a careless reader sees it: in lower case, without blanks.
pub(crate) fn as_seen(text: &str) -> String {
    let mut seen = String::new();
    for c in text.nfd().filter(|c| !is_unseen(*c)) {
        let twin = LOOK_ALIKES.iter().find(|(from, _)| from.contains(c)).map(|(_, to)| *to);
        match twin {
            Some(twin) => seen.push_str(twin),
            None => seen.extend(c.nfkd().filter(|c| !is_unseen(*c)).flat_map(char::to_lowercase)),
        }
    }
    for (entity, stands_for) in ENTITIES {
        seen = seen.replace(entity, stands_for);
    }
    let mut seen = without_escapes(&seen);
    seen.retain(|c| !c.is_whitespace() && !matches!(c, '_' | '-' | '*'));
    seen
}

/// The text as Markdown renders it: a backslash before punctuation is not shown.
fn without_escapes(text: &str) -> String {
    let next = text.chars().skip(1).map(Some).chain([None]);
    text.chars()
        .zip(next)
        .filter(|(c, next)| *c != '\\' || next.is_some_and(|next| next.is_ascii_alphanumeric()))
        .map(|(c, _)| c)
        .collect()
}

/// The starts and ends of boundaries that such a reader sees, in order.
pub(crate) fn markers_seen(text: &str) -> Vec<&'static str> {
    let seen = as_seen(text);
    let starts = seen.match_indices("<externaluntrustedcontent").map(|(at, _)| (at, "start"));
    let ends = seen.match_indices("<endexternaluntrustedcontent").map(|(at, _)| (at, "end"));
    let mut all: Vec<_> = starts.chain(ends).collect();
    all.sort_unstable();
    all.into_iter().map(|(_, kind)| kind).collect()
}

/// The control tokens that such a reader sees.
pub(crate) fn tokens_seen(text: &str) -> Vec<String> {
    let seen = as_seen(text);
    let mut found: Vec<String> = [
        "<<sys>>",
        "<</sys>>",
        "<startofturn>",
        "<endofturn>",
        "<bos>",
        "<eos>",
        "<startofimage>",
        "<endofimage>",
        "<fimprefix>",
        "<fimmiddle>",
        "<fimsuffix>",
        "<fimpad>",
        "[gmask]",
        "[smask]",
        "[inst]",
        "[/inst]",
        "[systemprompt]",
        "[/systemprompt]",
        "[availabletools]",
        "[/availabletools]",
        "[toolcalls]",
        "[toolresults]",
        "[/toolresults]",
        "[think]",
        "[/think]",
        "[toolcontent]",
        "[|system|]",
        "[|user|]",
        "[|assistant|]",
        "[|endofturn|]",
        "<s>",
        "</s>",
        "<bostoken>",
        "<eostoken>",
        "<sop>",
        "<eop>",
        "<seed:bos>",
        "<seed:eos>",
        "<seed:think>",
        "</seed:think>",
        "<think>",
        "</think>",
        "toolcall>",
        "<tool_calls>",
        "<functioncalls>",
        "</functioncalls>",
        "<startfunctioncall>",
        "<argkey>",
        "<argvalue>",
        "</argvalue>",
        "toolresponse>",
        "<startfunctionresponse>",
        "<|turn>",
        "<turn|>",
        "<|channel>",
        "<channel|>",
        "<|tool>",
        "<tool|>",
        "<|toolcall>",
        "<toolcall|>",
        "<|toolresponse>",
        "<toolresponse|>",
        "<|\"|>",
        "<|dsml|",
        "</|dsml|",
    ]
    .iter()
    .filter(|token| seen.contains(**token))
    .map(ToString::to_string)
    .collect();
    for (at, _) in seen.match_indices("<unused") {
        let rest = seen[at + "<unused".len()..].trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.starts_with('>') {
            found.push(String::from("unused"));
        }
    }
    for (at, _) in seen.match_indices("<|") {
        let rest = &seen[at + 2..];
        if let Some(end) = rest.find("|>")
            && end > 0
            && rest[..end].chars().all(|c| c.is_ascii_alphanumeric())
        {
            found.push(rest[..end].to_owned());
        }
    }
    found
}

/// The entries of a corpus file, one per line.
pub(crate) fn lines(corpus: &str) -> Vec<String> {
    corpus.lines().filter(|line| !line.starts_with('#')).map(unescape).collect()
}

fn unescape(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        if let Some(code) = after.strip_prefix("u{") {
            let (code, after) = code.split_once('}').unwrap();
            text.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
            rest = after;
        } else {
            text.push(match after.as_bytes()[0] {
                b'n' => '\n',
                b't' => '\t',
                b'r' => '\r',
                b'\\' => '\\',
                other => panic!("unknown escape \\{}", char::from(other)),
            });
            rest = &after[1..];
        }
    }
    text + rest
}
