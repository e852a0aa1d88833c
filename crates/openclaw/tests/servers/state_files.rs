//! A pipe in place of a state file: every command rejects or ignores it, and none waits for its
//! other end.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use openclaw_testkit::{Script, processes};
use serde_json::json;

use crate::common::signal;
use crate::support::{LONG, Place, chat};

const CALL: [&str; 5] = ["mcp", "call", "x", "echo", "text=hi"];

/// A place with a server, which has been called.
fn place() -> Place {
    let place = Place::new(&[("x", &Script::new())]);
    place.change(|config| config["agents"] = json!({ "defaults": { "model": "offline" } }));
    assert_eq!(place.said(&CALL).0, 0);
    assert_eq!(place.said(&["agent", "--message", "hi"]).0, 0);
    place
}

/// Replaces a file with a pipe.
fn put_pipe(path: &Path) {
    let _ = std::fs::remove_file(path);
    mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
}

/// Runs a command, which must end by itself.
fn ended(place: &Place, args: &[&str]) -> Output {
    let mut command = place.command(args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let output = std::thread::spawn(move || child.wait_with_output().unwrap());
    let left = || if output.is_finished() { Vec::new() } else { vec![pid] };
    let is_stuck = !processes::wait_until_none(LONG, left).is_empty();
    if is_stuck {
        signal(pid, Signal::SIGKILL);
    }
    let output = output.join().unwrap();
    assert!(!is_stuck, "{args:?} did not end");
    output
}

/// Runs a command, and returns its exit code and stderr.
fn said(place: &Place, args: &[&str]) -> (i32, String) {
    let output = ended(place, args);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn cached_listing(place: &Place) -> PathBuf {
    let entries = std::fs::read_dir(place.path("mcp/catalogue")).unwrap();
    entries.map(|entry| entry.unwrap().path()).next().unwrap()
}

#[test]
fn required_state_files_that_are_pipes_are_errors() {
    let place = place();
    for (file, args) in [
        ("mcp/pins.json", &CALL[..]),
        ("mcp/pins.json", &["agent", "--message", "hi"]),
        ("mcp/pins.json", &["gateway", "run", "--port", "0"]),
        ("sessions.db", &["sessions", "list"]),
        ("sessions.db", &["agent", "--message", "hi"]),
        ("sessions.db-wal", &["sessions", "list"]),
        ("sessions.db-shm", &["sessions", "list"]),
        ("gateway.lock", &["gateway", "run", "--port", "0"]),
        ("gateway-token", &["gateway", "run", "--port", "0"]),
        ("logs/mcp-x.log", &["mcp", "logs", "x"]),
        ("logs/mcp-x.log.1", &["mcp", "logs", "x"]),
    ] {
        let path = place.path(file);
        let before = std::fs::read(&path).ok();
        put_pipe(&path);
        let (exit, stderr) = said(&place, args);
        assert_ne!(exit, 0, "{file}: {args:?}");
        assert!(stderr.contains("not a regular file"), "{file}: {args:?}: {stderr}");
        std::fs::remove_file(&path).unwrap();
        if let Some(bytes) = before {
            std::fs::write(&path, bytes).unwrap();
        }
    }
}

#[test]
fn optional_state_files_that_are_pipes_are_ignored() {
    let place = place();
    let listing = cached_listing(&place);
    let listing = listing.strip_prefix(place.folder.path()).unwrap().to_str().unwrap();
    for (file, args) in [
        (listing, &CALL[..]),
        (listing, &["mcp", "tools"]),
        ("logs/mcp-x.log", &CALL),
        ("logs/audit.jsonl", &CALL),
        ("gateway.json", &CALL),
        ("gateway.json", &["status"]),
    ] {
        put_pipe(&place.path(file));
        let (exit, stderr) = said(&place, args);
        assert_eq!(exit, 0, "{file}: {args:?}: {stderr}");
        std::fs::remove_file(place.path(file)).unwrap();
    }
    // The address of a gateway is read before its lock.
    let card = json!({ "version": 1, "url": "ws://127.0.0.1:1", "token": null, "pid": 1,
        "startedAtMs": 0, "programVersion": "0" });
    std::fs::write(place.path("gateway.json"), card.to_string()).unwrap();
    put_pipe(&place.path("gateway.lock"));
    assert_eq!(said(&place, &CALL).0, 0);
    // An approval is valid even if it cannot be saved.
    std::fs::remove_file(place.path("mcp/pins.json")).unwrap();
    put_pipe(&place.path("mcp/pins.lock"));
    assert_eq!(said(&place, &CALL).0, 0);
    put_pipe(&place.path("config.lock"));
    assert_eq!(said(&place, &["mcp", "remove", "x"]).0, 0);
}

#[test]
fn a_pipe_or_a_socket_in_place_of_a_configuration_is_never_replaced() {
    let place = place();
    let [pipe, socket, link] = ["pipe", "socket", "link"].map(|name| place.path(name));
    put_pipe(&pipe);
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::os::unix::fs::symlink(&pipe, &link).unwrap();
    let kind = |path: &Path| std::fs::symlink_metadata(path).unwrap().file_type();
    for path in [&pipe, &socket, &link] {
        let (name, before) = (path.to_str().unwrap(), kind(path));
        for args in [
            &["--config", name, "config", "set", "mcp.debug", "true"][..],
            &["--config", name, "mcp", "add", "y", "--", "true"],
            &["mcp", "install", "cursor", "--yes", "--file", name],
        ] {
            let (exit, stderr) = said(&place, args);
            assert_ne!(exit, 0, "{args:?}");
            assert!(stderr.contains(name), "{args:?}: {stderr}");
            assert_eq!(kind(path), before, "{args:?}");
        }
    }
}

#[test]
fn tokens_and_keys_that_are_links_are_refused() {
    let place = place();
    for (file, content, args) in [
        ("gateway-token", "0123456789abcdef", &["gateway", "run", "--port", "0"][..]),
        ("gateway-tokens.json", r#"{"version":1,"tokens":[]}"#, &["gateway", "token", "list"]),
        (
            "gateway-tokens.json",
            r#"{"version":1,"tokens":[]}"#,
            &["gateway", "token", "create", "--name=x", "--scope=read"],
        ),
    ] {
        let (path, target) = (place.path(file), place.path("target"));
        let _ = std::fs::remove_file(&path);
        std::fs::write(&target, content).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let (exit, stderr) = said(&place, args);
        assert_ne!(exit, 0, "{args:?}");
        assert!(stderr.contains(file) && stderr.contains("a symbolic link"), "{args:?}: {stderr}");
        assert!(path.is_symlink());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), content);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_chat_works_without_its_history_if_that_is_a_pipe() {
    let place = place();
    put_pipe(&place.path("chat-history"));
    chat(&place, &[("› ", "/exit\r")]);
}
