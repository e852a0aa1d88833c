//! Checks that `docs/requirements.md` matches the source: every id cited in a comment has a row, and
//! every test named in `docs/requirement-tests.md`, or in `SECURITY.md`, exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const DOCUMENT: &str = "docs/requirements.md";
const TESTS: &str = "docs/requirement-tests.md";

#[test]
fn every_row_has_a_known_status_and_names_tests_that_exist() {
    let document = fs::read_to_string(Path::new(ROOT).join(DOCUMENT)).unwrap();
    let tests = fs::read_to_string(Path::new(ROOT).join(TESTS)).unwrap();
    let mut tests_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for [id, test] in rows(&tests) {
        tests_of.entry(id).or_default().push(test.trim_matches('`'));
    }
    let mut problems = Vec::new();
    let mut ids = BTreeSet::new();
    for [id, _, status] in rows(&document) {
        if !ids.insert(id) {
            problems.push(format!("{id}: duplicate row"));
        }
        match status {
            "done" if !tests_of.contains_key(id) => {
                problems.push(format!("{id}: name a test, or set the status to `partial`"));
            }
            "done" | "partial" | "planned" => {}
            other => problems.push(format!("{id}: unknown status `{other}`")),
        }
    }
    for (id, tests) in tests_of {
        if !ids.contains(id) {
            problems.push(format!("{id}: not in {DOCUMENT}"));
        }
        for test in tests {
            if let Some(problem) = problem_with(test) {
                problems.push(format!("{id}: `{test}`: {problem}"));
            }
        }
    }
    assert!(!ids.is_empty(), "{DOCUMENT} has no rows");
    assert!(problems.is_empty(), "correct {DOCUMENT} and {TESTS}:\n{}", problems.join("\n"));
}

#[test]
fn every_cited_id_has_a_row() {
    let root = Path::new(ROOT);
    let document = fs::read_to_string(root.join(DOCUMENT)).unwrap();
    let known: BTreeSet<String> =
        rows::<3>(&document).iter().map(|[id, ..]| (*id).to_owned()).collect();
    let mut unknown = Vec::new();
    let mut count = 0;
    for file in ["crates", "xtask"].iter().flat_map(|folder| sources(&root.join(folder))) {
        let text = fs::read_to_string(&file).unwrap();
        let file = file.strip_prefix(root).unwrap().display();
        for (line, number) in text.lines().zip(1..) {
            for id in cited(line) {
                count += 1;
                if !known.contains(&id) {
                    unknown.push(format!("{file}:{number}: {id}"));
                }
            }
        }
    }
    assert!(count > 100, "only {count} citations were found: is the rule still right?");
    let unknown = unknown.join("\n");
    assert!(unknown.is_empty(), "add rows to {DOCUMENT}, or correct the ids:\n{unknown}");
}

/// `SECURITY.md` names a test by its crate and the end of its path, as in "mcp `fleet/calls.rs:
/// function`", or only its file.
#[test]
fn every_test_in_the_threat_model_exists() {
    let root = Path::new(ROOT);
    let document = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let files = sources(&root.join("crates"));
    let mut missing = Vec::new();
    let mut count = 0;
    for line in document.lines().filter(|line| line.starts_with("| ")) {
        let Some((_, tests)) = line.trim_end_matches(" |").rsplit_once(" | ") else { continue };
        for test in tests.split(", ").filter(|test| test.contains(".rs")) {
            count += 1;
            let (of, test) = test.split_once(" `").unwrap();
            let (file, function) =
                test.trim_end_matches('`').split_once(": ").unwrap_or((test, ""));
            let file = Path::new(file.trim_end_matches('`'));
            let folder = if of == "openclaw" { of.to_owned() } else { format!("openclaw-{of}") };
            let folder = root.join("crates").join(folder);
            let mut candidates =
                files.iter().filter(|path| path.starts_with(&folder) && path.ends_with(file));
            let function = format!("fn {function}");
            if !candidates.any(|path| fs::read_to_string(path).unwrap().contains(&function)) {
                missing.push(format!("{of} `{test}"));
            }
        }
    }
    assert!(count > 40, "only {count} tests were found: is the rule still right?");
    assert!(missing.is_empty(), "correct these tests in SECURITY.md:\n{}", missing.join("\n"));
}

#[test]
fn citations_are_distinguished_from_other_parentheses() {
    assert_eq!(cited("let x = 1; // Why (T11)."), ["T11"]);
    assert_eq!(cited("//! Calls (B5–B7, B10), and more (L4)."), ["B5", "B6", "B7", "B10", "L4"]);
    assert!(
        cited("f(T11); // Neither (A), (U+1F600), (RFC 9110) nor (P500), (T11 and more), (T)")
            .is_empty()
    );
    assert!(cited("f(T11, x)").is_empty());
}

/// Returns the cells of the rows of all tables whose first cell is an id.
fn rows<const CELLS: usize>(document: &str) -> Vec<[&str; CELLS]> {
    document.lines().filter_map(row).collect()
}

fn row<const CELLS: usize>(line: &str) -> Option<[&str; CELLS]> {
    let cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
    let cells: Vec<&str> = cells.map(str::trim).collect();
    if !is_id(cells.first()?) {
        return None;
    }
    Some(cells.try_into().unwrap_or_else(|cells| panic!("not {CELLS} cells: {cells:?}")))
}

/// Returns what is wrong with a named test, if anything.
fn problem_with(test: &str) -> Option<&'static str> {
    let Some((file, function)) = test.split_once(": ") else {
        return Some("write it as `path/to/file.rs: function`");
    };
    let Ok(text) = fs::read_to_string(Path::new(ROOT).join(file)) else {
        return Some("file not found");
    };
    let is_there = text.contains(&format!("fn {function}("));
    (!is_there).then_some("the file has no such function")
}

/// Returns the Rust files in a folder and its subfolders.
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            found.append(&mut sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Returns the ids that the comment of a line cites. A citation is a pair of parentheses that
/// contains only ids and ranges of ids; other parentheses are ignored.
fn cited(line: &str) -> Vec<String> {
    let Some((_, comment)) = line.split_once("//") else { return Vec::new() };
    let inside = comment.split('(').skip(1).filter_map(|rest| rest.split_once(')'));
    let lists = inside.filter_map(|(list, _)| list.split(',').map(expand).collect::<Option<_>>());
    lists.flat_map(|ids: Vec<Vec<String>>| ids.into_iter().flatten()).collect()
}

/// Returns the ids of `B10` or of a range such as `B5–B7`; `None` if it is neither.
fn expand(item: &str) -> Option<Vec<String>> {
    let item = item.trim();
    let (first, last) = item.split_once('–').unwrap_or((item, item));
    if !is_id(first) || !is_id(last) || first[..1] != last[..1] {
        return None;
    }
    let range = first[1..].parse::<u8>().ok()?..=last[1..].parse().ok()?;
    Some(range.map(|number| format!("{}{number}", &first[..1])).collect())
}

/// Whether a text is a capital letter and one or two digits.
fn is_id(text: &str) -> bool {
    let (letter, digits) = text.split_at_checked(1).unwrap_or_default();
    letter.chars().all(|it| it.is_ascii_uppercase())
        && (1..=2).contains(&digits.len())
        && digits.chars().all(|it| it.is_ascii_digit())
}
