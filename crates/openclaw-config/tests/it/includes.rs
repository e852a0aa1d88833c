//! `$include`.

use std::fs;
use std::path::PathBuf;

use openclaw_config::{Loaded, Severity};
use tempfile::TempDir;

use crate::support::*;

struct Folder(TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Self(folder)
    }

    fn main(&self) -> PathBuf {
        self.0.path().join("openclaw.json")
    }

    fn load(&self) -> Loaded {
        read_file(&self.main())
    }

    fn refused(&self) -> String {
        let loaded = self.load();
        assert!(loaded.config.is_none());
        loaded.report.render(Default::default())
    }
}

#[test]
fn files_are_merged_and_keys_next_to_the_include_win() {
    let folder = Folder::with(&[
        ("openclaw.json", "{ mcp: { $include: ['one.json', 'sub/two.json'], debug: true } }"),
        ("one.json", "{ debug: false, maxConcurrentServers: 1, servers: { a: { command: 'a' } } }"),
        ("sub/two.json", "{ maxConcurrentServers: 2, servers: { $include: './three.json' } }"),
        ("sub/three.json", "// deeper\n{ b: { command: 'b' } }"),
    ]);
    let config = folder.load().config.unwrap();
    let mcp = &config.agents[0].mcp;
    assert!(mcp.settings.debug);
    assert_eq!(mcp.settings.max_concurrent_servers, 2);
    assert_eq!(mcp.servers.len(), 2);
}

#[test]
fn problems_in_an_included_file_are_shown_there() {
    let folder = Folder::with(&[
        ("openclaw.json", "{ mcp: { servers: { $include: 'servers.json' } } }"),
        ("servers.json", "{\n  fs: { comand: 'npx' },\n}"),
    ]);
    assert_says(
        &folder.refused(),
        &["servers.json:2:9", "did you mean `command`?", "mcp.servers.fs.comand"],
    );
    fs::write(folder.0.path().join("servers.json"), "{ fs: ").unwrap();
    assert_says(&folder.refused(), &["servers.json:1"]);
}

#[test]
fn a_missing_include_is_an_error_at_its_place() {
    let folder = Folder::with(&[("openclaw.json", "{\n mcp: { $include: 'nope.json' } }")]);
    let said = folder.refused();
    assert_says(&said, &["cannot include `nope.json`: no such file", "openclaw.json:2:19"]);
}

#[test]
fn circular_includes_are_an_error_that_shows_the_circle() {
    let folder = Folder::with(&[
        ("openclaw.json", "{ $include: 'a.json' }"),
        ("a.json", "{ $include: 'b.json' }"),
        ("b.json", "{ $include: './a.json' }"),
    ]);
    assert_says(
        &folder.refused(),
        &["it includes itself", "openclaw.json → a.json → b.json → a.json"],
    );
}

#[test]
fn nothing_outside_the_folder_is_included() {
    let outside = Folder::with(&[("secret.json", "{}")]);
    let path = outside.0.path().join("secret.json");
    let folder = Folder::with(&[]);
    let include = |name: &str| {
        fs::write(folder.main(), format!("{{ $include: {name:?} }}")).unwrap();
        folder.refused()
    };
    assert_says(&include(path.to_str().unwrap()), &["outside the folder of the configuration"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&path, folder.0.path().join("link.json")).unwrap();
        assert_says(&include("link.json"), &["outside the folder of the configuration"]);
    }
}

#[test]
fn the_depth_of_includes_is_limited() {
    let names: Vec<String> = (0..20).map(|number| format!("{number}.json")).collect();
    let mut files: Vec<(&str, String)> = names
        .iter()
        .enumerate()
        .map(|(number, name)| (name.as_str(), format!("{{ $include: '{}.json' }}", number + 1)))
        .collect();
    files.push(("openclaw.json", "{ $include: '0.json' }".to_owned()));
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    assert_says(&Folder::with(&files).refused(), &["too many includes"]);
}

#[test]
fn an_included_file_that_is_not_an_object_is_an_error() {
    let folder = Folder::with(&[
        ("openclaw.json", "{ mcp: { $include: 'list.json' } }"),
        ("list.json", "[1]"),
    ]);
    assert_says(
        &folder.refused(),
        &["cannot include `list.json`: it contains an array", "openclaw.json:1:20"],
    );
}

#[test]
fn large_files_are_merged_in_reasonable_time() {
    let keys: String = (0..60_000).map(|number| format!("k{number}: {{ a: 1 }},")).collect();
    let large = format!("{{ other: {{ {keys} }} }}");
    let folder = Folder::with(&[
        ("openclaw.json", "{ $include: ['a.json', 'b.json'] }"),
        ("a.json", &large),
        ("b.json", &large),
    ]);
    assert!(folder.load().config.is_some());
}

#[test]
fn an_include_that_is_not_a_string_is_an_error() {
    let folder = Folder::with(&[("openclaw.json", "{ $include: 5 }")]);
    assert_says(&folder.refused(), &["expected the name of a file to include, found a number"]);
    assert_eq!(folder.load().report.count(Severity::Error), 1);
}
