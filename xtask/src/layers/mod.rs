//! Finds cycles among the top-level modules of each crate.
//!
//! A module uses another one if a path in its source starts there, as in `crate::wire::Frame`. What the root
//! of a crate exports (`crate::Frame`) counts as its module. Tests do not count.

mod cycles;
mod known;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{Failure, failed, root};

/// Which modules a module uses, and one file of it that does so.
type Uses = BTreeMap<String, BTreeMap<String, PathBuf>>;

/// The top-level modules of a crate.
struct Crate {
    name: String,
    uses: Uses,
}

/// Prints every cycle, and fails if one is not known, or is known and gone.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let show_paths = match arguments {
        [] => false,
        ["--paths"] => true,
        _ => return Err(Failure::new("usage: cargo xtask layers [--paths]")),
    };
    let mut modules = 0;
    let mut in_cycles = 0;
    let mut found = BTreeSet::new();
    for Crate { name, uses } in crates()? {
        modules += uses.len();
        for cycle in cycles::of(&uses) {
            println!("{name}: {}", cycle.join(", "));
            if show_paths {
                print_paths(&uses, &cycle);
            }
            in_cycles += cycle.len();
            found.insert((name.clone(), cycle));
        }
    }
    println!("{in_cycles} of {modules} top-level modules stand in {} cycles", found.len());
    compare(&found)
}

/// Prints what makes a cycle: which of its modules uses which, and where.
fn print_paths(uses: &Uses, cycle: &[String]) {
    for module in cycle {
        for (used, file) in uses.get(module).into_iter().flatten() {
            if cycle.contains(used) && used != module {
                println!("  {module} -> {used}  {}", file.display());
            }
        }
    }
}

/// Compares the cycles with the list of those that are known.
fn compare(found: &BTreeSet<(String, Vec<String>)>) -> Result<(), Failure> {
    let known: BTreeSet<(String, Vec<String>)> = known::CYCLES
        .iter()
        .map(|(name, cycle)| ((*name).to_owned(), cycle.iter().map(|&it| it.to_owned()).collect()))
        .collect();
    let list = |cycles: &mut dyn Iterator<Item = &(String, Vec<String>)>| {
        cycles.map(|(name, cycle)| format!("\n  {name}: {}", cycle.join(", "))).collect::<String>()
    };
    let new = list(&mut found.difference(&known));
    if !new.is_empty() {
        return Err(Failure::new(format!(
            "new cycles; `cargo xtask layers --paths` shows their edges:{new}"
        )));
    }
    let gone = list(&mut known.difference(found));
    if !gone.is_empty() {
        return Err(Failure::new(format!("remove from xtask/src/layers/known.rs:{gone}")));
    }
    Ok(())
}

/// Reads the modules of all crates of the workspace.
fn crates() -> Result<Vec<Crate>, Failure> {
    let folder = root().join("crates");
    let mut folders = entries(&folder)?;
    folders.push(root().join("xtask"));
    folders.iter().map(|folder| read_crate(folder)).collect()
}

fn read_crate(folder: &Path) -> Result<Crate, Failure> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let source = folder.join("src");
    let root_file =
        ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|it| it.exists());
    let Some(root_file) = root_file else {
        return Err(Failure::new(format!("{}: no lib.rs or main.rs", source.display())));
    };
    let root = source::Root::read(&read(&root_file)?);
    let mut uses = Uses::new();
    for path in entries(&source)? {
        let module = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !root.modules.contains(&module) {
            continue;
        }
        let used = uses.entry(module).or_default();
        for (file, depth) in files(&path, 1)? {
            for name in source::used(&read(&file)?, depth) {
                if let Some(module) = root.module_of(&name) {
                    let shown = file.strip_prefix(folder).unwrap_or(&file).to_owned();
                    used.entry(module.to_owned()).or_insert(shown);
                }
            }
        }
    }
    Ok(Crate { name, uses })
}

/// Lists the source files of a module that are not tests, with how deep in the crate they stand.
fn files(path: &Path, depth: usize) -> Result<Vec<(PathBuf, usize)>, Failure> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if stem.ends_with("tests") {
        return Ok(Vec::new());
    }
    if path.is_file() {
        let is_rust = path.extension().is_some_and(|it| it == "rs");
        let depth = if stem == "mod" { depth - 1 } else { depth };
        return Ok(if is_rust { vec![(path.to_owned(), depth)] } else { Vec::new() });
    }
    let mut all = Vec::new();
    for entry in entries(path)? {
        all.extend(files(&entry, depth + 1)?);
    }
    Ok(all)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error| failed(folder, &error);
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|it| it.path()))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| failed(path, &error))
}
