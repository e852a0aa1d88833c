//! "Did you mean …?"

/// Returns the known word that `word` is most likely a typo of, if one is close enough.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // No known key is longer, and the distance of a long word is expensive to compute.
    if word.len() > 64 {
        return None;
    }
    let fold = |text: &str| text.to_ascii_lowercase().replace(['_', '-', ' '], "");
    let word = fold(word);
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &fold(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typo_is_recognised_and_a_different_word_is_not() {
        let known = ["command", "args", "env", "url", "toolTimeout"];
        assert_eq!(nearest("comand", &known), Some("command"));
        assert_eq!(nearest("tool_timeout", &known), Some("toolTimeout"));
        assert_eq!(nearest("URL", &known), Some("url"));
        assert_eq!(nearest("banana", &known), None);
        assert_eq!(nearest("", &known), None);
        assert_eq!(nearest(&"x".repeat(1_000_000), &known), None);
    }
}
