//! Logins at servers that require one, with an authorization server and a browser of the testkit.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use openclaw_testkit::oauth::{Browser, Endpoint, Fake, OAuthScript, OAuthTestServer, Parameter};
use openclaw_testkit::processes::{self, write_program};
use serde_json::{Value, json};

use crate::support::{LONG, Place, at_a_terminal, conversation, terminal};
use crate::with_gateway::gateway;

/// A server that requires a login, and a folder with a configuration that has it as `box`.
fn protected(script: OAuthScript) -> (OAuthTestServer, Place) {
    let server = OAuthTestServer::start(script);
    let place = place_of(&json!({ "url": server.url(), "timeout": 60_000 }));
    (server, place)
}

fn place_of(entry: &Value) -> Place {
    Place::configured(&json!({ "mcp": { "servers": { "box": entry } } }))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Begins a login without a terminal, and returns its URL.
fn begin(place: &Place) -> String {
    let (code, stdout, stderr) = place.said(&["mcp", "login", "box"]);
    assert_eq!(code, 77, "{stdout}{stderr}");
    stdout.trim().to_owned()
}

/// Logs in with a code, in two processes.
fn log_in(place: &Place) {
    let callback = Browser::new().approve(&begin(place));
    place.ok(&["mcp", "login", "box", "--code", &callback]);
}

#[test]
fn a_call_that_needs_a_login_fails_at_once_with_the_command_to_run() {
    let (server, place) = protected(OAuthScript::new());
    for command in [
        &["mcp", "call", "box", "echo", "text=hi"][..],
        &["mcp", "tools", "box"],
        &["mcp", "tools"],
        &["mcp", "refresh", "box"],
        &["mcp", "refresh"],
        &["mcp", "resources", "box"],
    ] {
        let (code, stdout, stderr) = place.said(command);
        assert_eq!((code, stdout.as_str()), (77, ""), "{command:?}: {stderr}");
        assert!(stderr.contains("the server requires authorization"), "{stderr}");
        assert!(stderr.contains("hint: run `openclaw mcp login "), "{stderr}");
    }
    let (code, stdout, _) = place.said(&["mcp", "call", "box", "echo", "text=hi", "--json"]);
    assert_eq!((code, &json(&stdout)["code"]), (77, &json!("needsLogin")));
    let (code, stdout, _) = place.said(&["mcp", "status", "box"]);
    assert_eq!(code, 77, "{stdout}");
    assert!(stdout.contains("Login required"), "{stdout}");
    // Attended or not.
    let (code, shown) = at_a_terminal(&place, "?", "", &["mcp", "tools", "box"]);
    assert_eq!(code, 77, "{shown}");
    assert!(!place.path("mcp/tokens").exists(), "nothing is stored without a login");
    assert_eq!(server.count(Endpoint::Register), 0, "nothing is registered without a login");
}

#[test]
fn without_a_terminal_the_url_is_printed_and_a_code_finishes_the_login_in_another_process() {
    let (server, place) = protected(OAuthScript::new());
    let (code, stdout, stderr) = place.said(&["mcp", "login", "box"]);
    assert_eq!(code, 77);
    assert!(stdout.starts_with(&server.issuer()) && stdout.lines().count() == 1, "{stdout}");
    assert!(stderr.contains("openclaw mcp login box --code"), "{stderr}");
    let callback = Browser::new().approve(stdout.trim());
    let stdout = place.ok(&["mcp", "login", "box", "--code", &callback]);
    let first = stdout.lines().next().unwrap();
    assert!(first.starts_with("✓ logged in to `box` until "), "{stdout}");
    assert!(first.ends_with("UTC (renewed automatically)"), "{stdout}");
    for words in
        [&server.issuer(), "scopes: mcp", "key file (the keychain is turned off", "15 tools"]
    {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    let (code, stdout, _) = place.said(&["mcp", "call", "box", "echo", "text=hi"]);
    assert_eq!((code, stdout.as_str()), (0, "hi\n"));
}

#[test]
fn the_synonym_auth_prints_json_and_the_code_can_come_from_stdin() {
    let (server, place) = protected(OAuthScript::new());
    let (code, stdout, _) = place.said(&["mcp", "auth", "box", "--json"]);
    let begun = json(&stdout);
    assert_eq!((code, &begun["state"]), (77, &json!("pending")));
    let callback = Browser::new().approve(begun["url"].as_str().unwrap());
    let file = place.path("code");
    fs::write(&file, format!("{callback}\n")).unwrap();
    let mut command = place.command(&["mcp", "login", "box", "--code", "-", "--json"]);
    let output = command.stdin(fs::File::open(&file).unwrap()).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let result = json(&stdout);
    assert_eq!((output.status.code(), &result["state"]), (Some(0), &json!("authorized")));
    assert_eq!(result["grant"]["issuer"], server.issuer());
    assert_eq!(result["grant"]["registration"], "dynamic");
}

#[test]
fn a_wrong_code_is_rejected_with_77_and_a_later_login_works() {
    let (server, place) = protected(OAuthScript::new());
    let (code, _, stderr) = place.said(&["mcp", "login", "box", "--code", "x"]);
    assert_eq!(code, 77);
    assert!(stderr.contains("no login to `box` is in progress"), "{stderr}");
    let url = begin(&place);
    // It belongs to another login, which leaves this one as it is.
    let foreign = "http://127.0.0.1:9/callback?code=x&state=another";
    let (code, _, stderr) = place.said(&["mcp", "login", "box", "--code", foreign]);
    assert_eq!(code, 77);
    assert!(stderr.contains("does not match the request"), "{stderr}");
    let callback = Browser::new().approve(&url);
    let (code, ..) = place.said(&["mcp", "login", "box", "--code", &callback]);
    assert_eq!(code, 0);
    assert_eq!(place.said(&["mcp", "logout", "box"]).0, 0);
    begin(&place);
    // It does not say whose it is, where responses do.
    let (code, _, stderr) = place.said(&["mcp", "login", "box", "--code", "made-up"]);
    assert_eq!(code, 77);
    assert!(stderr.contains("the issuer is missing"), "{stderr}");
    assert!(stderr.contains("hint: paste the whole URL"), "{stderr}");
    assert_eq!(server.count(Endpoint::Token), 1);
    server.change(|script| {
        script.iss = Parameter::Missing;
        script.server_metadata = json!({ "authorization_response_iss_parameter_supported": null });
    });
    begin(&place);
    let (code, _, stderr) = place.said(&["mcp", "login", "box", "--code", "made-up"]);
    assert_eq!(code, 77);
    assert!(stderr.contains("invalid_grant") && stderr.contains("hint: run"), "{stderr}");
    let (code, _, stderr) = place.said(&["mcp", "login", "box", "--code", " "]);
    assert_eq!(code, 2, "{stderr}");
    log_in(&place);
}

#[test]
fn on_a_terminal_the_browser_is_opened_and_its_callback_ends_the_login() {
    let (_server, place) = protected(OAuthScript::new());
    let mut login = on_a_terminal(&place, true, &["mcp", "login", "box"]);
    let (url, before) = login.url();
    assert!(before.contains("Opening your browser to log in to `box` at http://127"), "{before}");
    // The program that stands for the browser got it, too.
    let page = Browser::new().approve_and_return(&url);
    assert!(page.text().contains("close this window"), "{}", page.text());
    let (code, shown) = login.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("Waiting for up to 15 minutes; Ctrl-C to cancel."), "{shown}");
    assert!(shown.contains("Paste the URL"), "{shown}");
    assert!(shown.contains("✓ logged in to `box` until "), "{shown}");
    assert_eq!(fs::read_to_string(place.path("opened")).unwrap().trim(), url);
}

#[test]
fn a_denied_login_ends_with_the_reason_and_77() {
    let denied = Some("access_denied".to_owned());
    let (_server, place) = protected(OAuthScript { authorize_error: denied, ..OAuthScript::new() });
    let mut login = on_a_terminal(&place, false, &["mcp", "login", "box"]);
    let (url, before) = login.url();
    assert!(before.contains("No display. Open this URL to log in to `box`"), "{before}");
    Browser::new().approve_and_return(&url);
    let (code, shown) = login.end();
    assert_eq!(code, 77, "{shown}");
    assert!(shown.contains("cannot log in to `box`") && shown.contains("access_denied"), "{shown}");
}

#[test]
fn a_login_on_a_terminal_ends_when_another_process_finishes_it() {
    let (_server, place) = protected(OAuthScript::new());
    let mut login = on_a_terminal(&place, false, &["mcp", "login", "box", "--no-browser"]);
    let (url, before) = login.url();
    assert!(before.contains("Open this URL to log in to `box`"), "{before}");
    let callback = Browser::new().approve(&url);
    place.ok(&["mcp", "login", "box", "--code", &callback]);
    let (code, shown) = login.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("✓ logged in to `box`"), "{shown}");
}

#[test]
fn ctrl_c_ends_a_login_with_130_and_says_how_to_finish_it() {
    let (_server, place) = protected(OAuthScript::new());
    let steps = [("or wait: ", "\u{3}")];
    let (code, shown) = conversation(&place, &steps, &["mcp", "login", "box", "--no-browser"]);
    assert_eq!(code, 130, "{shown}");
    assert!(shown.contains("openclaw mcp login box --code"), "{shown}");
    let url = shown.lines().find(|line| line.starts_with("http://")).unwrap().trim().to_owned();
    let callback = Browser::new().approve(&url);
    let (code, ..) = place.said(&["mcp", "login", "box", "--code", &callback]);
    assert_eq!(code, 0);
}

#[test]
fn a_logout_revokes_the_tokens_and_deletes_them() {
    let (server, place) = protected(OAuthScript::new());
    let (code, _, stderr) = place.said(&["mcp", "logout", "box"]);
    assert_eq!((code, stderr.as_str()), (1, "error: not logged in to `box`\n"));
    log_in(&place);
    let (code, stdout, stderr) = place.said(&["mcp", "logout", "box"]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "✓ logged out of `box`\n", ""));
    assert_eq!(server.count(Endpoint::Revoke), 1);
    let (code, ..) = place.said(&["mcp", "call", "box", "echo", "text=hi"]);
    assert_eq!(code, 77);
    // If the tokens cannot be revoked, they are still deleted.
    log_in(&place);
    server.change(|script| script.faults.push((Endpoint::Revoke, Fake::Status(503), 0)));
    let (code, stdout, stderr) = place.said(&["mcp", "logout", "box"]);
    assert_eq!((code, stdout.as_str()), (0, "✓ logged out of `box`\n"));
    assert!(stderr.contains("the login was not revoked"), "{stderr}");
    assert_eq!(place.said(&["mcp", "logout", "box"]).0, 1);
}

#[test]
fn the_status_shows_the_login_without_its_tokens() {
    let (server, place) = protected(OAuthScript::new());
    log_in(&place);
    // Another login can begin, and leaves the first as it is until it is finished.
    begin(&place);
    let stdout = place.ok(&["mcp", "status", "box"]);
    let row = |key: &str| {
        let line = stdout.lines().find(|line| line.trim_start().starts_with(key));
        line.unwrap_or_else(|| panic!("no {key}: {stdout}")).to_owned()
    };
    assert!(row("Auth").contains("OAuth"), "{stdout}");
    assert!(row("Issuer").contains(&server.issuer()), "{stdout}");
    assert!(row("Expires").contains("renewed automatically"), "{stdout}");
    assert!(row("Client").contains("registered automatically"), "{stdout}");
    assert!(row("Scopes").contains("mcp"), "{stdout}");
    let servers = place.json(&["mcp", "servers", "--json"]);
    assert_eq!(servers["servers"][0]["auth"], "oauth", "{servers}");
    assert_eq!(servers["servers"][0]["login"]["scopes"], json!(["mcp"]), "{servers}");
    let status = place.json(&["mcp", "status", "box", "--json"]);
    assert_eq!(status["login"]["issuer"], server.issuer());
    let (_, stdout, _) = place.said(&["doctor"]);
    assert!(stdout.contains("1 login readable"), "{stdout}");
    assert!(
        stdout.contains("encrypted with a key in a file: the keychain is turned off"),
        "{stdout}"
    );
}

#[test]
fn no_token_appears_in_the_output_or_in_a_file() {
    let (server, place) = protected(OAuthScript::new());
    let mut shown = String::new();
    let mut said = |args: &[&str]| {
        let (code, stdout, stderr) = place.said(&[&["--log-level", "trace"], args].concat());
        shown.push_str(&stdout);
        shown.push_str(&stderr);
        (code, stdout)
    };
    let callback = Browser::new().approve(said(&["mcp", "login", "box"]).1.trim());
    assert_eq!(said(&["mcp", "login", "box", "--code", &callback]).0, 0);
    server.expire_access_tokens();
    assert_eq!(said(&["mcp", "call", "box", "echo", "text=hi"]).0, 0);
    said(&["--json", "mcp", "status", "box"]);
    said(&["doctor"]);
    said(&["mcp", "logout", "box"]);
    let sent = server.all_requests();
    let mut secrets: Vec<&str> = sent
        .iter()
        .filter_map(|request| request.headers.get("authorization")?.strip_prefix("Bearer "))
        .collect();
    let names = ["code", "refresh_token", "token", "code_verifier"];
    secrets.extend(
        sent.iter()
            .flat_map(|it| names.iter().filter_map(|name| it.form.get(*name)))
            .map(|it| it.as_str()),
    );
    secrets.sort_unstable();
    secrets.dedup();
    assert!(secrets.len() >= 5, "{secrets:?}");
    let mut folders = vec![place.folder.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => shown.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap())),
            }
        }
    }
    for secret in secrets {
        let at = shown.find(secret);
        assert!(at.is_none(), "{secret}: {}", &shown[at.unwrap().saturating_sub(200)..][..300]);
    }
}

#[test]
fn a_server_that_is_added_on_a_terminal_can_be_logged_in_to_right_away() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let place = Place::new(&[]);
    let args = ["mcp", "add", "box", "--url", &server.url()];
    let stdout = place.ok(&args);
    assert!(stdout.contains("run `openclaw mcp login box`"), "{stdout}");
    let args = ["mcp", "add", "other", "--url", &server.url()];
    let (code, shown) = at_a_terminal(&place, "Log in now? [Y/n]", "n", &args);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("run `openclaw mcp login other`"), "{shown}");
    let args = ["mcp", "add", "third", "--url", &server.url()];
    let mut login = attended(&place, false, &[("Log in now? [Y/n]", "\n")], &args);
    let (url, _) = login.url();
    Browser::new().approve_and_return(&url);
    let (code, shown) = login.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("✓ logged in to `third`"), "{shown}");
}

#[test]
fn through_a_gateway_the_url_reaches_the_client_and_the_callback_the_gateway() {
    let (_server, place) = protected(OAuthScript::new());
    let _running = gateway(&place);
    assert_eq!(place.said(&["mcp", "call", "box", "echo", "text=hi"]).0, 77);
    // This process ends at once; the gateway waits for the browser.
    let page = Browser::new().approve_and_return(&begin(&place));
    assert!(page.text().contains("You are logged in to box"), "{}", page.text());
    let (code, stdout, stderr) = place.said(&["mcp", "call", "box", "echo", "text=hi"]);
    assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
    assert_eq!(place.said(&["mcp", "logout", "box"]).0, 0);
    let mut login = on_a_terminal(&place, false, &["mcp", "login", "box"]);
    let (url, _) = login.url();
    Browser::new().approve_and_return(&url);
    let (code, shown) = login.end();
    assert_eq!(code, 0, "{shown}");
    // A login in this process is adopted by the gateway.
    assert_eq!(place.said(&["mcp", "logout", "box"]).0, 0);
    let (code, stdout, _) = place.said(&["mcp", "login", "box", "--no-gateway"]);
    assert_eq!(code, 77);
    let callback = Browser::new().approve(stdout.trim());
    let finish = ["mcp", "login", "box", "--no-gateway", "--code", &callback];
    assert_eq!(place.said(&finish).0, 0);
    let is_used = || place.said(&["mcp", "call", "box", "echo", "text=hi"]).0 == 0;
    assert!(processes::wait_until(LONG, is_used));
}

#[test]
fn a_gateway_with_a_public_url_serves_the_document_by_which_it_is_known() {
    let (server, place) =
        protected(OAuthScript { client_id_documents: true, ..OAuthScript::new() });
    place.change(|config| config["gateway"] = json!({ "publicUrl": "https://claw.example" }));
    let running = gateway(&place);
    // The authorization server fetches the document where a reverse proxy would.
    let address = running.url.replacen("ws://", "http://", 1);
    server.change(|script| script.documents_at = Some(address.trim_end_matches('/').to_owned()));
    let page = Browser::new().approve_and_return(&begin(&place));
    assert!(page.text().contains("You are logged in to box"), "{}", page.text());
    let (code, stdout, stderr) = place.said(&["mcp", "call", "box", "echo", "text=hi"]);
    assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
    let (_, stdout, _) = place.said(&["mcp", "status", "box"]);
    assert!(stdout.contains("by its metadata document"), "{stdout}");
    assert_eq!(server.count(Endpoint::Register), 0);
    let id = "https://claw.example/oauth/client-metadata.json";
    assert_eq!(server.requests(Endpoint::Token)[0].form["client_id"], id);
}

/// A server for a machine that authenticates as itself, and names its authorization server.
fn machine() -> (OAuthTestServer, Place) {
    let clients = vec![("known".to_owned(), Some("machine-secret".to_owned()))];
    let server = OAuthTestServer::start(OAuthScript { clients, ..OAuthScript::new() });
    let auth = json!({
        "grantType": "client_credentials", "clientId": "known", "clientSecret": "machine-secret",
    });
    let place = place_of(&json!({ "url": server.url(), "timeout": 60_000, "auth": auth }));
    (server, place)
}

#[test]
fn credentials_of_a_machine_are_sent_after_the_user_has_confirmed_where() {
    let (server, place) = machine();
    let (issuer, call) = (server.issuer(), ["mcp", "call", "box", "echo", "text=hi"]);
    let hint = format!("openclaw mcp login box --issuer {issuer}");
    for command in [&call[..], &["mcp", "login", "box"], &["mcp", "tools", "box"]] {
        let (code, stdout, stderr) = place.said(command);
        assert_eq!((code, stdout.as_str()), (77, ""), "{stderr}");
        assert!(stderr.contains(&hint) && stderr.contains("which is not confirmed"), "{stderr}");
    }
    let (code, stdout, _) = place.said(&["mcp", "login", "box", "--json"]);
    assert_eq!((code, &json(&stdout)["code"]), (77, &json!("needsLogin")), "{stdout}");
    let question = "Do you trust it? [y/N]";
    let (code, shown) = at_a_terminal(&place, question, "n", &["mcp", "login", "box"]);
    assert_eq!(code, 77, "{shown}");
    assert_eq!(server.count(Endpoint::Token), 0);
    let (code, shown) = at_a_terminal(&place, question, "y", &["mcp", "login", "box"]);
    assert_eq!(code, 0, "{shown}");
    assert_eq!(place.ok(&call), "hi\n");

    // Another one is refused, also after a logout; the command accepts it.
    let (other, _) = machine();
    other.change(|script| script.resource = Some(server.url()));
    server.change(|script| {
        script.resource_metadata = json!({ "authorization_servers": [other.issuer()] });
    });
    place.ok(&["mcp", "logout", "box"]);
    let (code, _, stderr) = place.said(&call);
    assert_eq!(code, 77, "{stderr}");
    assert!(stderr.contains(&format!("--issuer {}", other.issuer())), "{stderr}");
    assert!(stderr.contains(&format!("belong to {issuer}")), "{stderr}");
    assert_eq!(other.count(Endpoint::Token), 0);
    place.said(&["mcp", "login", "box", "--issuer", &other.issuer()]);
    assert_eq!(other.count(Endpoint::Token), 1);
}

#[test]
fn through_a_gateway_credentials_of_a_machine_are_confirmed_too() {
    let (server, place) = machine();
    let _running = gateway(&place);
    let (code, _, stderr) = place.said(&["mcp", "login", "box"]);
    assert!(code == 77 && stderr.contains("which is not confirmed"), "{stderr}");
    let (code, _, stderr) = place.said(&["mcp", "login", "box", "--issuer", "https://as.example"]);
    let named = format!("names the authorization server {}, not https://as.exa", server.issuer());
    assert!(code == 77 && stderr.contains(&named), "{stderr}");
    place.ok(&["mcp", "login", "box", "--issuer", &server.issuer()]);
    assert_eq!(place.ok(&["mcp", "call", "box", "echo", "text=hi"]), "hi\n");
}

#[test]
fn a_login_that_could_be_passed_on_to_another_server_is_confirmed_first() {
    let (server, place) = protected(OAuthScript::new());
    let token = server.issuer().replace("127.0.0.1", "localhost") + "/token";
    server.change(|script| {
        script.iss = Parameter::Missing;
        script.server_metadata = json!({
            "authorization_response_iss_parameter_supported": null, "token_endpoint": token,
        });
    });
    let (code, stdout, stderr) = place.said(&["mcp", "login", "box"]);
    assert_eq!((code, stdout.as_str()), (77, ""), "{stderr}");
    assert!(stderr.contains(&server.issuer()) && stderr.contains("http://localhost:"), "{stderr}");
    assert!(stderr.contains("could pass on the login of another one"), "{stderr}");
    let steps = [("Do you trust it? [y/N]", "y\n")];
    let mut login = attended(&place, false, &steps, &["mcp", "login", "box"]);
    let (url, _) = login.url();
    Browser::new().approve_and_return(&url);
    let (code, shown) = login.end();
    assert_eq!(code, 0, "{shown}");
    // Once.
    place.ok(&["mcp", "logout", "box"]);
    log_in(&place);
}

#[test]
fn each_doubt_about_an_authorization_server_is_asked_about() {
    let clients = vec![("known".to_owned(), Some("secret".to_owned()))];
    let server = OAuthTestServer::start(OAuthScript { clients, ..OAuthScript::new() });
    let token = server.issuer().replace("127.0.0.1", "localhost") + "/token";
    server.change(|script| {
        script.iss = Parameter::Missing;
        script.server_metadata = json!({
            "authorization_response_iss_parameter_supported": null, "token_endpoint": token,
        });
    });
    let auth = json!({ "clientId": "known", "clientSecret": "secret" });
    let place = place_of(&json!({ "url": server.url(), "timeout": 60_000, "auth": auth }));
    let issuer = server.issuer();
    let confirm = ["mcp", "login", "box", "--issuer", &issuer];
    // First the secret, then the place that gets the code: what was not shown is not confirmed.
    let (code, _, stderr) = place.said(&["mcp", "login", "box"]);
    assert!(code == 77 && stderr.contains("which is not confirmed"), "{stderr}");
    let (code, _, stderr) = place.said(&confirm);
    assert!(code == 77 && stderr.contains("http://localhost:"), "{stderr}");
    assert_eq!(server.count(Endpoint::Authorize), 0);
    let steps = [("Do you trust it? [y/N]", "y\n")];
    let mut login = attended(&place, false, &steps, &["mcp", "login", "box"]);
    let (url, _) = login.url();
    Browser::new().approve_and_return(&url);
    let (code, shown) = login.end();
    assert_eq!(code, 0, "{shown}");
}

#[test]
fn where_the_setting_for_bound_tokens_is_the_remedy_the_hint_says_so() {
    let server_metadata = json!({ "dpop_signing_alg_values_supported": ["ES256"] });
    let script = OAuthScript { binds_tokens: true, server_metadata, ..OAuthScript::new() };
    let server = OAuthTestServer::start(script);
    let auth = json!({ "dpop": "always" });
    let place = place_of(&json!({ "url": server.url(), "timeout": 60_000, "auth": auth }));
    let callback = Browser::new().approve(&begin(&place));
    for command in [&["mcp", "login", "box", "--code", &callback][..], &["mcp", "tools", "box"]] {
        let (code, _, stderr) = place.said(command);
        assert_eq!(code, 77, "{stderr}");
        assert!(stderr.contains("rejects tokens that are bound to a key"), "{stderr}");
        assert!(stderr.contains("hint: set `auth.dpop` to `auto`"), "{stderr}");
    }
    // The issuer may insist on the key instead.
    let place = place_of(&json!({ "url": server.url(), "timeout": 60_000 }));
    server
        .change(|script| script.faults = vec![(Endpoint::Token, Fake::error("invalid_grant"), 0)]);
    let callback = Browser::new().approve(&begin(&place));
    let (code, _, stderr) = place.said(&["mcp", "login", "box", "--code", &callback]);
    assert!(code == 77 && stderr.contains("invalid_grant"), "{stderr}");
    assert!(stderr.contains("set `auth.dpop` to `always`"), "{stderr}");
}

#[test]
fn a_server_without_logins_says_so() {
    let place = place_of(&json!({ "url": "https://example.com/mcp", "apiKey": "k" }));
    let (code, _, stderr) = place.said(&["mcp", "login", "box"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("uses the key in its entry"), "{stderr}");
    let (code, _, stderr) = place.said(&["mcp", "login", "nix"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("unknown server `nix`"), "{stderr}");
}

#[test]
fn the_client_metadata_document_is_printed_for_hosting() {
    let place = Place::new(&[]);
    let url = "https://example.com/openclaw.json";
    let (code, stdout, _) = place.said(&["mcp", "client-metadata", "--url", url]);
    let document = json(&stdout);
    assert_eq!((code, &document["client_id"]), (0, &json!(url)));
    let both = json!(["http://127.0.0.1/callback", "http://localhost/callback"]);
    assert_eq!(document["redirect_uris"], both);
    for wrong in ["http://example.com/x", "https://example.com", "x"] {
        let (code, _, stderr) = place.said(&["mcp", "client-metadata", "--url", wrong]);
        assert_eq!(code, 2, "{stderr}");
    }
    let (code, _, stderr) = place.said(&["mcp", "client-metadata"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("gateway.publicUrl"), "{stderr}");
    let url = "https://example.com/claw";
    place.change(|config| config["gateway"] = json!({ "publicUrl": url }));
    let (code, stdout, _) = place.said(&["mcp", "client-metadata"]);
    let id = "https://example.com/claw/oauth/client-metadata.json";
    assert_eq!((code, &json(&stdout)["client_id"]), (0, &json!(id)));
}

/// A command on a pseudo-terminal, whose output can be read while it runs.
struct Attended {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    shown: String,
}

fn on_a_terminal(place: &Place, has_browser: bool, args: &[&str]) -> Attended {
    attended(place, has_browser, &[], args)
}

fn attended(place: &Place, has_browser: bool, steps: &[(&str, &str)], args: &[&str]) -> Attended {
    let mut command = terminal(place, steps, &[&[env!("CARGO_BIN_EXE_openclaw")], args].concat());
    command
        .env("NO_COLOR", "1")
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("SSH_CONNECTION")
        .env_remove("BROWSER")
        .stdout(Stdio::piped());
    if has_browser {
        let browser = place.path("browser");
        let opened = place.path("opened");
        write_program(&browser, &format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display()));
        command.env("BROWSER", browser);
    }
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    Attended { child, output, shown: String::new() }
}

impl Attended {
    /// Waits for the line with the URL. Returns it, and what was shown before.
    fn url(&mut self) -> (String, String) {
        loop {
            let before = self.shown.len();
            let length = self.output.read_line(&mut self.shown).unwrap();
            assert!(length > 0, "no URL: {}", self.shown);
            let line = self.shown[before..].trim();
            if line.starts_with("http://") && line.contains("/authorize?") {
                return (line.to_owned(), self.shown[..before].to_owned());
            }
        }
    }

    /// Waits until the command ends. Returns its exit code and all output.
    fn end(mut self) -> (i32, String) {
        self.output.read_to_string(&mut self.shown).unwrap();
        (self.child.wait().unwrap().code().unwrap(), self.shown)
    }
}
