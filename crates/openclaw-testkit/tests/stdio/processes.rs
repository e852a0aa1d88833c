//! Processes that fail to start, do not exit, or leave children behind.

use std::time::Duration;

use openclaw_testkit::{Grandchild, Script, StdioClient, processes};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);

#[test]
fn a_server_exits_when_stdin_is_closed() {
    let mut client = StdioClient::connect(&Script::new());
    client.close();
    assert_eq!(client.wait().and_then(|status| status.code()), Some(0));
}

#[test]
fn a_server_can_exit_at_the_start() {
    let mut client = StdioClient::start(&Script::new().stderr_line("no key").exit_at_start(9));
    assert_eq!(client.wait().and_then(|status| status.code()), Some(9));
}

#[test]
fn a_server_can_fail_to_start_a_few_times() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new().failing_starts(2, folder.path().join("starts"));
    for _ in 0..2 {
        assert_eq!(StdioClient::start(&script).wait().and_then(|status| status.code()), Some(1));
    }
    assert_eq!(StdioClient::connect(&script).call_text("count", &json!({})), "1");
}

#[test]
fn a_server_crashes_right_after_the_last_answer() {
    let mut client = StdioClient::connect(&Script::new().crash_after_calls(2));
    assert_eq!(client.call_text("count", &json!({})), "1");
    assert_eq!(client.call_text("count", &json!({})), "2");
    assert!(client.call("count", &json!({})).is_null());
    assert_eq!(client.wait().and_then(|status| status.code()), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn a_stubborn_server_survives_closed_stdin_and_sigterm_until_the_guard_kills_it() {
    use std::process::Command;
    let script = Script::new().ignore_sigterm().ignore_stdin_close().ping_every_ms(1);
    let mut client = StdioClient::connect(&script);
    let pid = client.pid();
    client.close();
    let killed = Command::new("kill").args(["-TERM", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
    // It pings every millisecond: of a hundred pings, most were sent after the signal.
    for _ in 0..100 {
        assert_eq!(client.message()["method"], "ping");
    }
    assert!(processes::is_alive(pid));
    drop(client);
    assert!(!processes::is_alive(pid));
}

#[cfg(target_os = "linux")]
#[test]
fn a_grandchild_stays_in_the_group_or_leaves_it_and_is_reported() {
    let mut client = StdioClient::connect(&Script::new().grandchild());
    let pids: Value = serde_json::from_str(&client.call_text("pids", &json!({}))).unwrap();
    let grandchild = u32::try_from(pids["grandchild"].as_u64().unwrap()).unwrap();
    let group = client.pid();
    assert_eq!(processes::in_group(group), [group, grandchild]);
    assert_eq!(processes::children_of(group), [grandchild]);
    drop(client);
    let left = processes::wait_until_none(SOON, || processes::in_group(group));
    assert!(left.is_empty(), "left behind: {left:?}");

    let own_group = Grandchild { own_group: true, ..Grandchild::default() };
    let mut client = StdioClient::connect(&Script::new().grandchild_like(own_group));
    let pids: Value = serde_json::from_str(&client.call_text("pids", &json!({}))).unwrap();
    let grandchild = u32::try_from(pids["grandchild"].as_u64().unwrap()).unwrap();
    assert_eq!(processes::group_of(grandchild), Some(grandchild));
    drop(openclaw_testkit::KillGroup(grandchild));
    let left = processes::wait_until_none(SOON, || processes::in_group(grandchild));
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_is_found_by_its_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let client = StdioClient::connect(&Script::new().record(&path));
    assert_eq!(processes::mentioning(path.to_str().unwrap()), [client.pid()]);
}
