//! `config get | set | unset | edit`, `secrets set`, `approvals` and the gateway in the background.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod common;

use std::fs;

use common::ended;
use common::place::Place;

impl Place {
    fn new(config: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::write(place.path("openclaw.json"), config).unwrap();
        place
    }

    /// Runs a command, and returns the exit code, stdout and stderr.
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = self.command(args);
        ended(command.env("XDG_CONFIG_HOME", self.path("config")).output().unwrap())
    }

    fn config(&self) -> String {
        fs::read_to_string(self.path("openclaw.json")).unwrap()
    }
}

#[test]
fn a_setting_is_changed_and_comments_stay() {
    let text = "{\n  // the port\n  gateway: { port: 18800 }, // mine\n}\n";
    let place = Place::new(text);
    assert_eq!(place.run(&["config", "get", "gateway.port"]).1, "18800\n");
    let (code, said, _) = place.run(&["config", "set", "gateway.port", "18801"]);
    assert!(code == 0 && said.contains("set gateway.port in "), "{said}");
    assert_eq!(place.config(), text.replace("18800", "18801"));
    let (code, _, said) = place.run(&["config", "set", "gateway.port", "many"]);
    assert_eq!(code, 78, "{said}");
    assert!(said.contains("was not changed"), "{said}");
    assert_eq!(place.config(), text.replace("18800", "18801"));
    let (code, ..) = place.run(&["config", "set", "agents.defaults.model", "offline"]);
    assert_eq!(code, 0);
    assert_eq!(place.run(&["config", "get", "agents.defaults.model"]).1, "offline\n");
    let (code, _, said) = place.run(&["config", "set", "agents.defaults.model", "nope/x"]);
    assert!(code == 2 && said.contains("add `models.providers.nope`"), "{said}");
    assert_eq!(place.run(&["config", "get", "agents.defaults.model"]).1, "offline\n");
    assert_eq!(place.run(&["config", "unset", "gateway.port"]).0, 0);
    assert_eq!(place.run(&["config", "unset", "gateway.port"]).0, 1);
    let after = place.config();
    assert!(!after.contains("port:") && after.contains("// mine"), "{after}");
    // Sections that other programs use, too, may have unknown keys.
    let (code, _, said) = place.run(&["config", "set", "gateway.prot", "1"]);
    assert!(code == 0 && said.contains("did you mean `port`?"), "{said}");
    assert_eq!(place.run(&["config", "get", "nothing"]).0, 1);
    assert_eq!(place.run(&["config", "set", "a..b", "1"]).0, 2);
}

#[test]
fn a_secret_is_not_printed_by_get() {
    let place = Place::new(
        "{ mcp: { servers: { x: { command: \"true\", env: { TOKEN: \"ghp_0123456789abcdef\" } } } } }",
    );
    let (_, said, errors) = place.run(&["config", "get", "mcp.servers.x"]);
    assert!(said.contains("mcp.servers.x.command"), "{said}{errors}");
    assert!(!said.contains("ghp_0123456789"), "{said}");
}

#[test]
fn without_a_keychain_a_secret_is_not_stored() {
    let place = Place::new("{}");
    let (code, _, said) = place.run(&["secrets", "set", "github"]);
    assert!(code == 1 && said.contains("keychain"), "{said}");
}

#[test]
fn approvals_are_added_listed_and_revoked() {
    let place = Place::new("{}");
    let (_, said, errors) = place.run(&["approvals", "list"]);
    assert!(said.starts_with("No approvals."), "{said}{errors}");
    for (words, allowed) in [
        (&["ls"][..], "every harmless `ls` command, in "),
        (&["git", "status"], "exactly the command `git status`, in "),
        (&["sudo", "ls"], "exactly the command `sudo ls`, in "),
    ] {
        let args = [&["approvals", "allow", "exec"], words].concat();
        let (code, said, errors) = place.run(&args);
        assert!(code == 0 && said.contains(&format!("allowed: {allowed}")), "{said}{errors}");
    }
    assert_eq!(place.run(&["approvals", "allow", "write", "notes.md"]).0, 2);
    assert_eq!(place.run(&["approvals", "allow", "write", "path=notes.md"]).0, 0);
    let (_, listed, _) = place.run(&["approvals", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["rules"].as_array().unwrap().len(), 4, "{listed}");
    let id = listed["rules"][0]["id"].as_str().unwrap();
    assert_eq!(place.run(&["approvals", "revoke", id]).0, 0);
    assert_ne!(place.run(&["approvals", "revoke", id]).0, 0);
    assert_eq!(place.run(&["approvals", "revoke", "--all"]).0, 0);
    assert!(place.run(&["approvals", "list"]).1.starts_with("No approvals."));
}

#[test]
fn the_gateway_is_started_in_the_background_and_stopped() {
    let place =
        Place::new("{ mcp: { servers: {} }, agents: { defaults: { model: \"offline\" } } }");
    let (code, said, errors) = place.run(&["gateway", "start", "--port", "0"]);
    assert!(code == 0 && said.contains("gateway started at ws://"), "{said}{errors}");
    let (code, said, _) = place.run(&["gateway", "start"]);
    assert!(code == 0 && said.contains("already running"), "{said}");
    assert_eq!(place.run(&["gateway", "status"]).0, 0);
    let (code, said, errors) = place.run(&["gateway", "logs"]);
    assert!(code == 0 && said.contains("gateway listening on"), "{said}{errors}");
    let (code, said, errors) = place.run(&["gateway", "restart", "--port", "0"]);
    assert!(code == 0 && said.contains("gateway started at"), "{said}{errors}");
    // Without an option it is at the configured address, and it says that this is another one.
    fs::write(place.path("openclaw.json"), "{ gateway: { port: 0 } }").unwrap();
    let (code, said, errors) = place.run(&["gateway", "restart"]);
    assert!(code == 0 && said.contains("gateway started at"), "{said}{errors}");
    assert!(errors.contains("It was at ws://127.0.0.1:") && errors.contains("--port"), "{errors}");
    assert_eq!(place.run(&["gateway", "stop"]).0, 0);
    assert_eq!(place.run(&["gateway", "status"]).0, 3);
    // A gateway that does not start says why.
    fs::write(place.path("openclaw.json"), "{ gateway: { port: \"x\" } }").unwrap();
    let (code, _, errors) = place.run(&["gateway", "start"]);
    assert!(code == 1 && errors.contains("did not start"), "{errors}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_unit_is_shown_before_it_is_written() {
    let place = Place::new("{}");
    let (code, said, errors) = place.run(&["gateway", "install", "--dry-run"]);
    assert_eq!(code, 0, "{errors}");
    assert!(said.contains("[Service]\nExecStart=\""), "{said}");
    assert!(said.contains("\"gateway\" \"run\""), "{said}");
    let (code, said, errors) = place.run(&["gateway", "install"]);
    assert!(code == 2 && said.contains("[Service]") && errors.contains("--yes"), "{said}{errors}");
    assert!(!place.path("config/systemd").exists());
    let (code, said, _) = place.run(&["gateway", "uninstall"]);
    assert!(code == 0 && said.contains("not installed"), "{said}");
}
