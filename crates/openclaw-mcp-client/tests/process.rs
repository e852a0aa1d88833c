//! Real processes: whatever they do, none of them is left behind.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use openclaw_mcp_client::process::{Launch, Pipes, ServerProcess, ShutdownTimeouts, SpawnError};
use openclaw_process::guard::{self, Guard, GuardCommand};
use openclaw_testkit::processes::write_program;
use tokio::io::{AsyncBufReadExt as _, BufReader};

const IMPATIENT: ShutdownTimeouts = ShutdownTimeouts {
    after_close: Duration::from_millis(100),
    after_term: Duration::from_millis(300),
};

fn shell(script: &str) -> Launch {
    let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap().into())]);
    Launch {
        program: "sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        env,
        cwd: None,
    }
}

fn start(script: &str) -> (ServerProcess, Pipes) {
    ServerProcess::spawn(&shell(script), &Guard::none()).unwrap()
}

/// Parses the first line that a process prints as a pid.
async fn printed_pid(pipes: &mut Pipes) -> i32 {
    let mut line = String::new();
    BufReader::new(&mut pipes.stdout).read_line(&mut line).await.unwrap();
    line.trim().parse().unwrap()
}

/// Waits until a process is gone; an orphan is reaped by its new parent, which takes a moment.
async fn assert_gone(pid: i32) {
    for _ in 0..6_000 {
        if !is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {pid} is still running");
}

fn is_alive(pid: i32) -> bool {
    let is_zombie = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z')));
    kill(Pid::from_raw(pid), None).is_ok() && !is_zombie
}

#[tokio::test]
async fn a_process_that_exits_when_its_stdin_closes_is_shut_down() {
    let (mut process, pipes) = start("cat; exit 7");
    drop(pipes.stdin);
    assert_eq!(process.ended().await.unwrap().code(), Some(7));
    process.shut_down(None, IMPATIENT).await;
}

#[tokio::test]
async fn a_process_that_ignores_everything_is_killed_with_its_descendants() {
    let (process, mut pipes) =
        start("trap '' TERM; (trap '' TERM; sleep 1000) & echo $!; wait; sleep 1000");
    let grandchild = printed_pid(&mut pipes).await;
    let leader = i32::try_from(process.pid()).unwrap();
    assert!(is_alive(grandchild));
    process.shut_down(Some(pipes.stdin), IMPATIENT).await;
    assert_gone(leader).await;
    assert_gone(grandchild).await;
}

#[tokio::test]
async fn descendants_that_outlive_their_leader_are_killed_too() {
    let (mut process, mut pipes) = start("sleep 1000 >/dev/null 2>&1 & echo $!");
    let grandchild = printed_pid(&mut pipes).await;
    assert!(process.ended().await.unwrap().success());
    assert!(is_alive(grandchild));
    process.shut_down(Some(pipes.stdin), IMPATIENT).await;
    assert_gone(grandchild).await;
}

#[tokio::test]
async fn dropping_a_process_kills_its_group() {
    let (process, mut pipes) = start("sleep 1000 & echo $!; wait");
    let grandchild = printed_pid(&mut pipes).await;
    drop(process);
    assert_gone(grandchild).await;
}

/// Prints the pid of a process in its own session, whose parent has exited.
const LEAVES_EVERYTHING: &str = "setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!' & wait; cat";
/// Prints the pid of a process in its own session and with an empty environment, whose parent lives
/// on.
const LEAVES_ITS_GROUP: &str = "setsid env -i sh -c 'echo $$; exec sleep 1000' 2>/dev/null & wait";

#[tokio::test]
#[cfg(target_os = "linux")]
async fn descendants_that_have_left_the_group_are_killed_too() {
    for script in [LEAVES_EVERYTHING, LEAVES_ITS_GROUP] {
        let (process, mut pipes) = start(script);
        let stray = printed_pid(&mut pipes).await;
        assert!(is_alive(stray));
        process.shut_down(Some(pipes.stdin), IMPATIENT).await;
        assert_gone(stray).await;
        let (process, mut pipes) = start(script);
        let stray = printed_pid(&mut pipes).await;
        drop(process);
        assert_gone(stray).await;
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn descendants_started_during_shutdown_are_killed_too() {
    let script = "cat; echo $(setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!')";
    let (process, mut pipes) = start(script);
    let stdin = Some(pipes.stdin);
    process
        .shut_down(stdin, ShutdownTimeouts { after_close: Duration::from_secs(60), ..IMPATIENT })
        .await;
    let mut line = String::new();
    BufReader::new(&mut pipes.stdout).read_line(&mut line).await.unwrap();
    assert_gone(line.trim().parse().unwrap()).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_guard_finds_descendants_that_have_left_their_group() {
    let folder = tempfile::tempdir().unwrap();
    let heard = folder.path().join("heard");
    let guard = noting_guard(&heard);
    let launch = shell(LEAVES_EVERYTHING);
    let (process, mut pipes) = ServerProcess::spawn(&launch, &guard).unwrap();
    let stray = printed_pid(&mut pipes).await;
    // That a process will be started, and that it was.
    let told = record(&guard, &heard);
    tokio::task::spawn_blocking(move || guard::serve(&told)).await.unwrap();
    assert_gone(stray).await;
    process.shut_down(None, IMPATIENT).await;
}

#[tokio::test]
async fn a_killed_guard_is_replaced_by_one_that_is_sent_all_groups() {
    let folder = tempfile::tempdir().unwrap();
    let heard = folder.path().join("heard");
    let guard = noting_guard(&heard);
    let (first, first_pipes) = ServerProcess::spawn(&shell("cat"), &guard).unwrap();
    let pid = guard.process_id().unwrap().try_into().unwrap();
    kill(Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    assert_gone(pid).await;
    let (second, second_pipes) = ServerProcess::spawn(&shell("cat"), &guard).unwrap();
    assert_ne!(guard.process_id().unwrap().try_into(), Ok(pid));
    let told = record(&guard, &heard);
    for process in [&first, &second] {
        assert!(told.contains(&format!("+{} ", process.pid())), "{told}");
    }
    first.shut_down(Some(first_pipes.stdin), IMPATIENT).await;
    second.shut_down(Some(second_pipes.stdin), IMPATIENT).await;
}

/// A guard that copies its record to a file.
fn noting_guard(file: &std::path::Path) -> Guard {
    let note = r#"exec 3<&1; exec cat /dev/fd/3 > "$0""#;
    let args = ["-c".to_owned(), note.to_owned(), file.display().to_string()];
    Guard::new(GuardCommand { program: "/bin/sh".into(), args: args.into() })
}

/// Runs the guard, and returns its record.
fn record(guard: &Guard, file: &std::path::Path) -> String {
    assert!(guard.run_now());
    std::fs::read_to_string(file).unwrap()
}

#[tokio::test]
async fn the_guard_ends_what_a_killed_program_left_behind() {
    let (process, mut pipes) = start("sleep 1000 & echo $!; wait");
    let (other, mut other_pipes) = start("sleep 1000 & echo $!; wait");
    let (watched, spared) = (printed_pid(&mut pipes).await, printed_pid(&mut other_pipes).await);
    // The input of the guard: two groups, one of which is removed again; then the program is gone.
    let heard =
        format!("+{}\n+{}\n-{}\nnonsense\n+0\n+1\n", process.pid(), other.pid(), other.pid());
    tokio::task::spawn_blocking(move || guard::serve(&heard)).await.unwrap();
    assert_gone(watched).await;
    assert!(is_alive(spared));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_guard_ends_a_process_that_was_announced_but_not_registered() {
    let folder = tempfile::tempdir().unwrap();
    let heard = folder.path().join("heard");
    let guard = noting_guard(&heard);
    let (process, mut pipes) =
        ServerProcess::spawn(&shell("echo $$; exec sleep 1000"), &guard).unwrap();
    let pid = printed_pid(&mut pipes).await;
    // As if the program had been killed just after it started the process.
    let told = record(&guard, &heard);
    let announced = format!("{}\n", told.lines().next().unwrap());
    assert!(announced.starts_with('?'), "{told}");
    tokio::task::spawn_blocking(move || guard::serve(&announced)).await.unwrap();
    assert_gone(pid).await;
    process.shut_down(None, IMPATIENT).await;
}

#[tokio::test]
async fn a_process_gets_the_environment_that_it_is_given_and_no_more() {
    let mut launch = shell("env");
    launch.env.insert("GIVEN".to_owned(), "1".to_owned().into());
    let (mut process, pipes) = ServerProcess::spawn(&launch, &Guard::none()).unwrap();
    let mut lines = BufReader::new(pipes.stdout).lines();
    let mut names = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        names.push(line.split('=').next().unwrap().to_owned());
    }
    process.ended().await.unwrap();
    assert!(names.contains(&"GIVEN".to_owned()));
    assert!(
        !names.contains(&"HOME".to_owned()) && !names.contains(&"CARGO".to_owned()),
        "{names:?}"
    );
}

#[test]
fn spawn_errors_name_the_cause() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let spawn = |launch: &Launch| ServerProcess::spawn(launch, &Guard::none()).unwrap_err();
    let mut launch = shell("true");
    launch.cwd = Some("/nonexistent".into());
    assert!(matches!(spawn(&launch), SpawnError::NoFolder(_)));
    launch.cwd = None;
    launch.program = "no-such-program".to_owned();
    assert!(spawn(&launch).to_string().contains("is it installed and on the PATH?"));
    launch.program = "/nonexistent/program".to_owned();
    let wanted = "program `/nonexistent/program` not found; is it installed?";
    assert_eq!(spawn(&launch).to_string(), wanted);
    launch.program = "/etc/passwd".to_owned();
    assert!(matches!(spawn(&launch), SpawnError::Denied(_)));
    launch.program = "/etc".to_owned();
    assert_eq!(spawn(&launch).to_string(), "`/etc` is a folder, not a program");
}

#[test]
fn a_missing_interpreter_is_not_reported_as_a_missing_program() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let folder = tempfile::tempdir().unwrap();
    let said = |first_line: &str, program: &str| {
        let file = folder.path().join("tool");
        write_program(&file, first_line);
        let mut launch = shell("");
        launch.program = program.to_owned();
        launch.env.insert("PATH".to_owned(), folder.path().to_str().unwrap().to_owned().into());
        launch.cwd = Some(folder.path().to_owned());
        ServerProcess::spawn(&launch, &Guard::none()).unwrap_err().to_string()
    };
    let wanted = "interpreter `/nonexistent/python` of `tool` not found";
    assert_eq!(said("#! /nonexistent/python -u\nprint()\n", "tool"), wanted);
    let wanted = "interpreter `/bin/sh\\r` of `./tool` not found";
    assert_eq!(said("#!/bin/sh\r\ntrue\r\n", "./tool"), wanted);
    // Its interpreter exists, but is itself a script whose interpreter does not.
    let inner = folder.path().join("inner");
    std::fs::copy(folder.path().join("tool"), &inner).unwrap();
    let outer = said(&format!("#!{}\n", inner.display()), "tool");
    assert!(outer.starts_with("cannot load `tool`"), "{outer}");
}
