//! Suggests tool names for a name that does not exist.

use openclaw_tools::ToolSource;

/// Maximum number of suggestions.
const MOST: usize = 3;
/// Minimum similarity of a suggestion; 1 is equal.
const ALIKE: f64 = 0.6;
/// A suggestion may be this much less similar than the best one.
const LESS: f64 = 0.1;
/// A longer name is not a typo, and is expensive to compare.
const MAX_NAME: usize = 64;

/// Returns the most similar tools, best first.
fn near_tools(set: &dyn ToolSource, name: &str) -> Vec<String> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Vec::new();
    }
    let name = name.to_ascii_lowercase();
    let mut near: Vec<(f64, String)> = set
        .tools()
        .iter()
        .map(|tool| tool.spec().name.to_string())
        .map(|known| (likeness(&name, &known.to_ascii_lowercase()), known))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    // Names of one server are all somewhat similar.
    let least = near.first().map_or(ALIKE, |(best, _)| best - LESS);
    let near = near.into_iter().filter(|(likeness, _)| *likeness >= least);
    near.take(MOST).map(|(_, known)| known).collect()
}

fn likeness(name: &str, known: &str) -> f64 {
    let alike = strsim::normalized_damerau_levenshtein(name, known);
    // `add` probably means `mcp_demo_add`.
    let is_part = name.len() >= 3 && known.split(['_', '-']).any(|part| part == name);
    if is_part || known.ends_with(&format!("_{name}")) { alike.max(0.9) } else { alike }
}

/// Returns a sentence that suggests tools for an unknown name, to append to an error; empty if none
/// is similar.
pub fn did_you_mean(set: &dyn ToolSource, name: &str) -> String {
    let near = near_tools(set, name);
    let near: Vec<String> = near.iter().map(|name| format!("'{name}'")).collect();
    match near.as_slice() {
        [] => String::new(),
        near => format!(" Did you mean {}?", one_of(near)),
    }
}

/// Lists alternatives: `'a', 'b' or 'c'`.
fn one_of(names: &[String]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        names => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_listed_with_commas() {
        let names = ["'a'", "'b'", "'c'"].map(ToOwned::to_owned);
        assert_eq!(one_of(&names[..1]), "'a'");
        assert_eq!(one_of(&names[..2]), "'a' or 'b'");
        assert_eq!(one_of(&names), "'a', 'b' or 'c'");
    }

    #[test]
    fn a_typo_and_the_last_part_of_a_name_are_recognised() {
        assert!(likeness("mcp_demo_ad", "mcp_demo_add") >= ALIKE);
        assert!(likeness("add", "mcp_demo_add") >= ALIKE);
        assert!(likeness("nosuch", "mcp_demo_add") < ALIKE);
        assert!(likeness("nosuch", "read") < ALIKE);
    }
}
