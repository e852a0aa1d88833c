//! Edits that preserve the rest of the file (C10).

use std::fs;

use openclaw_config::{Document, ServerName, Transport};
use serde_json::json;

use crate::support::*;

/// Comments everywhere, trailing commas, odd spacing, tabs, single quotes.
const ODD: &str = "// head\n{\n\n  /* block */ 'gateway' : {port:18789,},   // trailing\n\tmcp:{\n\
    \t\t// about fs\n\t\tservers  :  {\n\t\t\t\"fs\":{command:'npx',args:[ '-y' , ],},// after fs\n\n\
    \t\t\t// about git\n\t\t\tgit : { command : \"git-mcp\" } ,\n\t\t}\n\t},\n  tail: [1,2 , 3,],\n}\n// foot\n";

fn edited(text: &str, edit: impl FnOnce(&Document)) -> String {
    let document = Document::parse(text).unwrap();
    edit(&document);
    document.to_string()
}

/// Returns the common prefix and suffix of two texts.
fn common<'a>(old: &'a str, new: &str) -> (&'a str, &'a str) {
    let same = |(a, b): &(u8, u8)| a == b;
    let front = old.bytes().zip(new.bytes()).take_while(same).count();
    let limit = old.len().min(new.len()) - front;
    let back = old.bytes().rev().zip(new.bytes().rev()).take(limit).take_while(same).count();
    (&old[..front], &old[old.len() - back..])
}

#[test]
fn a_document_that_is_not_edited_stays_byte_for_byte() {
    for text in [ODD, "", "\u{feff}{ a: 1 }\r\n", "{}", "// only a comment"] {
        assert_eq!(edited(text, |_| {}), text);
    }
}

#[test]
fn adding_a_server_touches_nothing_else() {
    let new = edited(ODD, |document| {
        document
            .set(&["mcp", "servers", "time"], &json!({ "command": "t", "args": ["a"] }))
            .unwrap();
    });
    let (before, after) = common(ODD, &new);
    assert_eq!(before.len() + after.len(), ODD.len(), "only an insertion:\n{new}");
    assert!(before.trim_end().ends_with("git : { command : \"git-mcp\" } ,"), "{new}");
    let servers = good(&new).agents[0].mcp.servers.len();
    assert_eq!(servers, 3);
    assert!(new.contains("\t\t\t\"time\": {\n"), "indented like its neighbours:\n{new}");
}

#[test]
fn removing_a_server_touches_nothing_else() {
    let new = edited(ODD, |document| assert!(document.remove(&["mcp", "servers", "fs"])));
    let (before, after) = common(ODD, &new);
    assert!(before.contains("// about fs"), "{new}");
    assert!(after.contains("// about git\n\t\t\tgit : { command : \"git-mcp\" } ,"), "{new}");
    assert_eq!(good(&new).agents[0].mcp.servers.len(), 1);
}

#[test]
fn changing_one_value_touches_nothing_else() {
    let new = edited(ODD, |document| {
        document.set(&["mcp", "servers", "fs", "command"], &json!("bunx")).unwrap();
    });
    assert_eq!(new, ODD.replace("'npx'", "\"bunx\""));
}

#[test]
fn adding_and_removing_again_leaves_the_same_servers() {
    let new = edited(ODD, |document| {
        document.set(&["mcp", "servers", "time"], &json!({ "command": "t" })).unwrap();
        assert!(document.contains(&["mcp", "servers", "time"]));
        assert!(document.remove(&["mcp", "servers", "time"]));
        assert!(!document.remove(&["mcp", "servers", "time"]));
    });
    assert_eq!(good(&new).agents[0].mcp.diff(&good(ODD).agents[0].mcp).len(), 2);
    for line in ODD.lines() {
        assert!(new.contains(line.trim_end_matches(['\n', ','])), "{line:?} is gone:\n{new}");
    }
}

#[test]
fn missing_objects_on_the_path_are_created() {
    for text in ["", "{}", "// mine\n{ other: 1 }"] {
        let new = edited(text, |document| {
            document.set(&["mcp", "servers", "a"], &json!({ "command": "x" })).unwrap();
        });
        assert!(good(&new).agents[0].mcp.servers.contains_key("a"), "{new}");
    }
}

#[test]
fn an_object_on_one_line_is_spread_over_lines_when_something_is_added() {
    // The exception: entries on the same line as the new one move to their own lines, unchanged.
    let new = edited("{mcp:{servers:{a:{command:'x'},},},} // tail", |document| {
        document.set(&["mcp", "servers", "b"], &json!({ "command": "y" })).unwrap();
    });
    assert_eq!(good(&new).agents[0].mcp.servers.len(), 2);
    assert!(new.contains("a:{command:'x'}") && new.ends_with("// tail"), "{new}");
}

#[test]
fn line_ends_and_the_byte_order_mark_are_kept() {
    let text = "\u{feff}{\r\n  mcp: {\r\n    servers: {\r\n      a: { command: 'a' }\r\n    }\r\n  }\r\n}\r\n";
    let new = edited(text, |document| {
        document.set(&["mcp", "servers", "b"], &json!({ "command": "b" })).unwrap();
    });
    assert!(new.starts_with("\u{feff}{\r\n"));
    assert_eq!(new.matches('\n').count(), new.matches("\r\n").count(), "{new:?}");
    assert_eq!(good(&new).agents[0].mcp.servers.len(), 2);
}

#[test]
fn what_cannot_be_edited_is_an_error() {
    assert!(Document::parse("{ a: ").is_err());
    let document = Document::parse("{ mcp: [] }").unwrap();
    let error = document.set(&["mcp", "servers", "a"], &json!({})).unwrap_err();
    assert!(error.to_string().contains("`mcp` is not an object"), "{error}");
    assert!(Document::parse("[]").unwrap().set(&["a"], &json!(1)).is_err());
}

#[test]
fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions_and_links() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep/openclaw.json");
    let document = Document::open(&file).unwrap();
    document.set(&["mcp", "debug"], &json!(true)).unwrap();
    document.save(&file).unwrap();
    assert!(read_file(&file).config.unwrap().agents[0].mcp.settings.debug);
    let names: Vec<_> = fs::read_dir(file.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "a temporary file is left");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600, "a new file is private");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Document::open(&link).unwrap().save(&link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(mode(&file), 0o640);
    }
}

#[cfg(unix)]
#[test]
fn what_is_not_a_regular_file_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let [link, dead_link] = ["link", "dead"].map(|name| folder.path().join(name));
    std::os::unix::fs::symlink("socket", &link).unwrap();
    std::os::unix::fs::symlink("missing", &dead_link).unwrap();
    let document = Document::parse("{}").unwrap();
    let kind = |path: &std::path::Path| fs::symlink_metadata(path).unwrap().file_type();
    for (path, why) in [
        (folder.path(), "a folder, not a file"),
        (socket.as_path(), "not a regular file"),
        (link.as_path(), "not a regular file"),
        (dead_link.as_path(), "a link to a missing file"),
    ] {
        let before = kind(path);
        let error = document.save(path).unwrap_err().to_string();
        assert!(error.ends_with(why), "{path:?}: {error}");
        assert_eq!(kind(path), before, "{path:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left");
}

/// One server in each layer, and one agent without servers.
const FOUR: &str = r#"{
  plugins: { entries: { "mcp-client": { config: { servers: { x: { command: "low" } } } } } },
  mcp: { servers: { x: { args: ["a"] }, "a.b": { command: "y" } } }, // mine
  agents: {
    defaults: { mcp: { servers: { x: { lazy: true } } } },
    list: [ { id: "idle" }, { id: "main", mcp: { servers: { x: { enabled: false } } } } ],
    entries: { other: { mcp: { servers: { x: { lazy: false } } } } },
  },
}
"#;

#[test]
fn servers_are_found_in_all_places() {
    let document = Document::parse(FOUR).unwrap();
    let places: Vec<String> = document.servers().into_iter().map(|(_, path)| path).collect();
    assert_eq!(
        places,
        [
            "plugins.entries.mcp-client.config.servers.x",
            "mcp.servers.x",
            "mcp.servers[\"a.b\"]",
            "agents.defaults.mcp.servers.x",
            "agents.list[1].mcp.servers.x",
            "agents.entries.other.mcp.servers.x",
        ]
    );
}

#[test]
fn a_server_is_removed_from_all_places() {
    let new = edited(FOUR, |document| {
        assert_eq!(document.remove_server("x").len(), 5);
        assert!(document.remove_server("x").is_empty());
    });
    let config = good(&new);
    assert!(config.agents.iter().all(|agent| agent.mcp.servers.len() == 1), "{new}");
    assert!(new.contains("// mine"));
}

#[test]
fn an_added_server_replaces_the_one_in_the_layer_below() {
    let new = edited(FOUR, |document| {
        let name = ServerName::new("x").unwrap();
        document.put_server(&name, &json!({ "url": "https://example.com" })).unwrap();
    });
    let config = good(&new);
    let Transport::Http(_) =
        &config.agent(Some("idle")).unwrap().mcp.servers["x"].connection.transport
    else {
        panic!("still a process: {new}");
    };
    let main = config.agent(Some("main")).unwrap();
    assert!(!main.mcp.servers["x"].enabled, "overrides by an agent are kept");
}

#[test]
fn findings_can_be_narrowed_to_one_server() {
    let report = read(
        r#"{ mcp: { servers: { a: { command: "x", env: { TOKEN: "1" } },
                               ab: { command: "x", env: { TOKEN: "2" } } } } }"#,
    )
    .report;
    assert_eq!(report.diagnostics().len(), 2);
    let about = report.about("mcp.servers.a");
    assert_eq!(about.diagnostics().len(), 1);
    assert!(about.diagnostics()[0].message().contains("'a'"));
}
