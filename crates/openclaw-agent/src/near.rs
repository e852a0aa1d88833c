//! Names of tools that are near a name that no tool has.

use openclaw_tools::ToolSource;

/// So many are named.
const MOST: usize = 3;
/// How alike two names must be, where one is equal to the other.
const ALIKE: f64 = 0.6;
/// So much less alike than the nearest others may be.
const LESS: f64 = 0.1;
/// A longer name is nobody's slip, and costly to compare.
const MAX_NAME: usize = 64;

/// The tools that are most likely meant, the nearest first.
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
    // Names of one server are all a little alike.
    let least = near.first().map_or(ALIKE, |(best, _)| best - LESS);
    let near = near.into_iter().filter(|(likeness, _)| *likeness >= least);
    near.take(MOST).map(|(_, known)| known).collect()
}

fn likeness(name: &str, known: &str) -> f64 {
    let alike = strsim::normalized_damerau_levenshtein(name, known);
    // `add` is meant for `mcp_demo_add`.
    let is_part = name.len() >= 3 && known.split(['_', '-']).any(|part| part == name);
    if is_part || known.ends_with(&format!("_{name}")) { alike.max(0.9) } else { alike }
}

/// Which tools are most likely meant by a name that no tool has, to be said behind that; nothing if none is near.
pub fn did_you_mean(set: &dyn ToolSource, name: &str) -> String {
    let near = near_tools(set, name);
    let near: Vec<String> = near.iter().map(|name| format!("'{name}'")).collect();
    match near.as_slice() {
        [] => String::new(),
        near => format!(" Did you mean {}?", near.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_and_the_last_part_of_a_name_are_recognised() {
        assert!(likeness("mcp_demo_ad", "mcp_demo_add") >= ALIKE);
        assert!(likeness("add", "mcp_demo_add") >= ALIKE);
        assert!(likeness("nosuch", "mcp_demo_add") < ALIKE);
        assert!(likeness("nosuch", "read") < ALIKE);
    }
}
