//! Checks that a type's name means one thing in the whole workspace.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::requirements::{ROOT, sources};

/// Names that are always read with their module or crate in front.
const QUALIFIED: [&str; 1] = ["Error"];

/// The gateway protocol's types are named after its methods, as in `sessions::ListParams`.
const QUALIFIED_CRATE: &str = "openclaw-protocol";

#[test]
fn no_two_types_that_other_files_can_use_have_the_same_name() {
    let crates = Path::new(ROOT).join("crates");
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in sources(&crates) {
        let name = file.strip_prefix(&crates).unwrap().display().to_string();
        if is_for_tests(&name) || name.starts_with(QUALIFIED_CRATE) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for (line, number) in text.lines().zip(1..) {
            if line.trim_start().starts_with("mod tests {") {
                break;
            }
            if let Some(type_name) = visible_type(line) {
                let places = places.entry(type_name.to_owned()).or_default();
                // A file may define a type once per platform.
                if !places.iter().any(|place| place.starts_with(&format!("{name}:"))) {
                    places.push(format!("{name}:{number}"));
                }
            }
        }
    }
    assert!(
        places.len() > 1000,
        "only {} types were found: is the rule still right?",
        places.len()
    );
    let shared: Vec<String> = places
        .iter()
        .filter(|(name, places)| places.len() > 1 && !QUALIFIED.contains(&name.as_str()))
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    assert!(shared.is_empty(), "rename all but one of each:\n{}", shared.join("\n"));
}

#[test]
fn types_that_only_their_file_can_use_are_not_compared() {
    assert_eq!(visible_type("pub(super) struct Row<'a> {"), Some("Row"));
    assert_eq!(visible_type("    pub enum Kind {"), Some("Kind"));
    assert_eq!(visible_type("struct State {"), None);
    assert_eq!(visible_type("pub fn new() -> Self {"), None);
    assert_eq!(visible_type("    type Value = String;"), None);
}

fn is_for_tests(file: &str) -> bool {
    let parts = ["/tests/", "/benches/", "testkit/", "conformance-client/", "test_server"];
    parts.iter().any(|part| file.contains(part))
        || file.ends_with("_tests.rs")
        || file.ends_with("/tests.rs")
}

/// Returns the name of the type that a line defines, if other files can use it.
fn visible_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')')?.1,
        None => rest,
    };
    let (keyword, rest) = rest.trim_start().split_once(' ')?;
    if !["struct", "enum", "trait", "type", "union"].contains(&keyword) {
        return None;
    }
    // Macros define types, too, as `$name`.
    rest.split(|it: char| !it.is_alphanumeric() && it != '_').next().filter(|it| !it.is_empty())
}
