//! The folder that a chat works in, and approvals at the terminal.

use serde_json::json;

use crate::support::{Place, chat, on_a_terminal};
use crate::with_gateway::gateway;

fn place() -> Place {
    let config =
        json!({ "agents": { "defaults": { "model": "offline" } }, "mcp": { "servers": {} } });
    let place = Place::configured(&config);
    std::fs::write(place.path("here.txt"), "found it").unwrap();
    place
}

const READ: &str = "/call read {\"path\":\"here.txt\"}\r";

#[test]
fn a_chat_works_in_the_current_folder_once_it_is_trusted() {
    let place = place();
    let folder = openclaw_files::canonical(place.folder.path()).unwrap();
    let no_colour = ("NO_COLOR", "1");
    let refused = [
        ("Trust this folder?", "perhaps\r"),
        ("Answer y or n.", ""),
        ("Trust this folder? [Y/n] ", "n\r"),
        ("› ", READ),
        ("✗", ""),
        ("› ", "/exit\r"),
    ];
    let (exit, shown) = on_a_terminal(&place, &refused, &["chat"], &[no_colour]);
    assert!(exit == 0 && !shown.contains("found it"), "{shown}");
    assert!(shown.contains("the agent's own workspace"), "{shown}");
    let (exit, shown) = on_a_terminal(&place, &refused[3..], &["chat"], &[no_colour]);
    assert!(exit == 0 && shown.contains("use `--workspace .` to work here anyway"), "{shown}");
    assert!(!shown.contains("Trust this folder?"), "the answer is remembered: {shown}");
    std::fs::remove_file(place.path("trusted-folders.json")).unwrap();
    let trusted =
        [("Trust this folder?", "y\r"), ("› ", READ), ("found it", ""), ("› ", "/exit\r")];
    let (exit, shown) = on_a_terminal(&place, &trusted, &["chat"], &[no_colour]);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains(&format!("Work in {}", folder.display())), "{shown}");
    let again = [("› ", READ), ("found it", ""), ("› ", "/exit\r")];
    for is_beside in [false, true] {
        let running = is_beside.then(|| gateway(&place));
        let (exit, shown) = on_a_terminal(&place, &again, &["chat"], &[no_colour]);
        assert!(exit == 0 && !shown.contains("Trust this folder"), "{shown}");
        drop(running);
    }
    place.assert_nothing_left();
}

#[test]
fn a_script_works_in_the_folder_that_it_names() {
    let place = place();
    let message = "--message=/call read {\"path\":\"here.txt\"}";
    let (_, said, _) = place.said(&["agent", message]);
    assert!(!said.contains("found it"), "{said}");
    let (exit, said, errors) = place.said(&["agent", message, "--workspace", "."]);
    assert!(exit == 0 && said.contains("found it"), "{said}{errors}");
    assert_eq!(place.said(&["agent", message, "--workspace", "here.txt"]).0, 2);
}

#[test]
fn at_the_terminal_a_denial_has_words_and_always_is_listed_and_revoked() {
    let place = place();
    let call = "/call exec {\"command\":\"echo one two\"}\r";
    let steps = [
        ("› ", call),
        ("do … instead)", "no, say three instead\r"),
        ("say three instead", ""),
        ("› ", call),
        ("do … instead)", "b\r"),
        ("/approvals to list", ""),
        ("› ", "/approvals\r"),
        ("every", ""),
        ("› ", call),
        ("one two", ""),
        ("› ", "/exit\r"),
    ];
    let shown = chat(&place, &steps);
    assert!(
        shown.contains("[b] always allow every harmless command that begins with `echo one`"),
        "{shown}"
    );
    let (_, listed, _) = place.said(&["approvals", "list"]);
    assert!(listed.contains("echo one"), "{listed}");
    let id = listed.split_whitespace().next().unwrap();
    assert_eq!(place.said(&["approvals", "revoke", id]).0, 0);
    let steps = [("› ", call), ("do … instead)", "n\r"), ("denied", ""), ("› ", "/exit\r")];
    chat(&place, &steps);
    place.assert_nothing_left();
}

#[test]
fn approvals_are_added_in_a_chat_as_in_a_shell() {
    let place = place();
    let steps = [
        ("› ", "/approvals allow exec echo one\r"),
        ("allowed: every harmless command that begins with `echo one`", ""),
        ("› ", "/call exec {\"command\":\"echo one two\"}\r"),
        ("returned:", ""),
        ("› ", "/approvals allow exec\r"),
        ("› ", "/approvals perhaps\r"),
        ("/approvals --help", ""),
        ("› ", "/approvals revoke --all\r"),
        ("revoked", ""),
        ("› ", "/exit\r"),
    ];
    let shown = chat(&place, &steps);
    assert!(!shown.contains("instead)"), "nothing is asked: {shown}");
}
