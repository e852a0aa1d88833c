//! Cycles of a graph: its strongly connected components with more than one node.

use std::collections::BTreeSet;

use super::Uses;

/// Returns the modules of each cycle in alphabetical order.
pub(super) fn of(uses: &Uses) -> Vec<Vec<String>> {
    let mut rest: BTreeSet<&str> = uses.keys().map(String::as_str).collect();
    let mut cycles = Vec::new();
    while let Some(module) = rest.first().copied() {
        let cycle: Vec<String> = reachable(uses, module)
            .into_iter()
            .filter(|it| *it == module || reachable(uses, it).contains(module))
            .map(str::to_owned)
            .collect();
        rest.remove(module);
        for module in &cycle {
            rest.remove(module.as_str());
        }
        if cycle.len() > 1 {
            cycles.push(cycle);
        }
    }
    cycles
}

/// Returns what a module uses, directly or through others.
fn reachable<'a>(uses: &'a Uses, module: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![module];
    while let Some(module) = waiting.pop() {
        for used in uses.get(module).into_iter().flat_map(|it| it.keys()) {
            if found.insert(used.as_str()) {
                waiting.push(used);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Uses, of};

    fn uses(edges: &[(&str, &str)]) -> Uses {
        let mut uses = Uses::new();
        for (from, to) in edges {
            uses.entry((*to).to_owned()).or_default();
            uses.entry((*from).to_owned()).or_default().insert((*to).to_owned(), PathBuf::new());
        }
        uses
    }

    #[test]
    fn a_cycle_has_all_modules_that_reach_each_other() {
        let uses = uses(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a"), ("f", "f")]);
        assert_eq!(of(&uses), [["a", "b", "c"]]);
    }

    #[test]
    fn layers_have_no_cycle() {
        assert!(of(&uses(&[("a", "b"), ("a", "c"), ("b", "c")])).is_empty());
    }
}
