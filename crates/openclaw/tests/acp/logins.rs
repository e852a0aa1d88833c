//! Stored logins of the user, and servers of an editor.

use openclaw_testkit::oauth::{Browser, OAuthScript, OAuthTestServer};
use serde_json::{Value, json};

use crate::editor::{Editor, Place};

/// A folder in which the user has logged in to the server `box`.
fn logged_in(server: &OAuthTestServer, use_logins: bool) -> Place {
    let place = Place::with(&json!({
        "mcp": { "servers": { "box": { "url": server.url() } } },
        "acp": { "useLogins": use_logins },
    }));
    let output = place.command(&["mcp", "login", "box"]).output().unwrap();
    let url = String::from_utf8(output.stdout).unwrap();
    let callback = Browser::new().approve(url.trim());
    let output = place.command(&["mcp", "login", "box", "--code", &callback]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    place
}

fn entry(name: &str, url: &str) -> Value {
    json!({ "type": "http", "name": name, "url": url, "headers": [] })
}

fn call(editor: &mut Editor, place: &Place, name: &str, url: &str) -> String {
    let session = editor.session(place, &[entry(name, url)]);
    editor.prompt(&session, &format!("/call mcp__{name}__echo {{\"text\":\"hi\"}}")).1
}

#[test]
fn a_login_is_used_only_if_the_user_allows_it() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let place = logged_in(&server, false);
    let mut editor = Editor::start(&place, &[], &json!({}));
    let text = call(&mut editor, &place, "box", &server.url());
    assert!(text.contains("MCP server `box` requires a login"), "{text}");
    assert!(text.contains("`acp.useLogins: true`") && !text.contains("returned: hi"), "{text}");
    drop(editor);

    let place = logged_in(&server, true);
    let mut editor = Editor::start(&place, &[], &json!({}));
    let text = call(&mut editor, &place, "box", &server.url());
    assert!(text.ends_with("returned: hi"), "{text}");
    // The login is for the URL, whatever the editor calls the server.
    let text = call(&mut editor, &place, "other", &server.url());
    assert!(text.ends_with("returned: hi"), "{text}");
    let elsewhere = OAuthTestServer::start(OAuthScript::new());
    let text = call(&mut editor, &place, "other", &elsewhere.url());
    assert!(text.contains("MCP server `other` requires a login"), "{text}");
    assert!(text.contains("run `openclaw mcp login") && !text.contains("useLogins"), "{text}");
}

#[test]
fn a_login_is_not_sent_to_another_server_of_the_same_name() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let place = logged_in(&server, true);
    let stranger = OAuthTestServer::start(OAuthScript::new());
    let mut editor = Editor::start(&place, &[], &json!({}));
    let text = call(&mut editor, &place, "box", &stranger.url());
    assert!(text.contains("requires a login"), "{text}");
    let received = stranger.all_requests();
    assert!(!received.is_empty());
    assert!(received.iter().all(|it| !it.headers.contains_key("authorization")), "{received:?}");
}
