//! Checks that the table of crates in `ARCHITECTURE.md` says what the manifests say.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn every_crate_uses_what_the_table_says() {
    let root = Path::new(ROOT);
    let document = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let mut problems = Vec::new();
    let mut above = BTreeSet::new();
    for line in document.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", name, _, uses, ""] = cells[..] else { continue };
        let name = name.trim_matches('`');
        let manifest = root.join("crates").join(name).join("Cargo.toml");
        let Ok(manifest) = fs::read_to_string(manifest) else { continue };
        let used = dependencies(&manifest);
        let stated: BTreeSet<&str> = match uses {
            "–" => BTreeSet::new(),
            "any above" => used.intersection(&above).copied().collect(),
            uses => uses.split(", ").map(|it| it.trim_end_matches('¹')).collect(),
        };
        if used != stated {
            let used = used.into_iter().collect::<Vec<_>>().join(", ");
            problems.push(format!("{name}: {used}"));
        }
        above.insert(name.strip_prefix("openclaw-").unwrap_or(name));
    }
    let crates = fs::read_dir(root.join("crates")).unwrap();
    for folder in crates.map(|it| it.unwrap().file_name().into_string().unwrap()) {
        if !above.contains(folder.strip_prefix("openclaw-").unwrap_or(&folder)) {
            problems.push(format!("{folder}: not in the table"));
        }
    }
    assert!(problems.is_empty(), "correct ARCHITECTURE.md:\n{}", problems.join("\n"));
}

/// Returns our crates among the dependencies of a manifest.
fn dependencies(manifest: &str) -> BTreeSet<&str> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.strip_prefix("openclaw-")?.split(['.', ' ', '=']).next()).collect()
}
