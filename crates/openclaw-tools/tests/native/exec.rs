//! Running commands.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Command;
use std::time::Duration;

use openclaw_tools::native::{ExecSettings, NativeSetup};
use openclaw_tools::{ToolFailure, ToolOutcome};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{Bench, in_time};

/// A bench with only the usual `PATH` in the environment of commands.
fn bench() -> Bench {
    Bench::with(|setup| {
        let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        let exec = ExecSettings { environment: vec![path], ..setup.exec };
        NativeSetup { exec, ..setup }
    })
}

/// A pipe in the workspace: its end is reached when the last process that holds it has exited.
fn pipe(bench: &Bench) -> (JoinHandle<()>, JoinHandle<()>) {
    let path = bench.path("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let ended = tokio::task::spawn_blocking(move || {
        let mut reader = BufReader::new(std::fs::File::open(path).unwrap());
        reader.read_line(&mut String::new()).unwrap();
        let _ = tell.send(());
        reader.read_to_end(&mut Vec::new()).unwrap();
    });
    (tokio::task::spawn_blocking(move || told.recv().unwrap_or_default()), ended)
}

/// Holds the pipe open, for commands that may be killed before they open it.
async fn hold(bench: &Bench) -> std::fs::File {
    let path = bench.path("pipe");
    let open = move || std::fs::File::options().write(true).open(path).unwrap();
    in_time(tokio::task::spawn_blocking(open)).await.unwrap()
}

/// Returns the outcome of a command, after all that writes to the pipe has exited.
async fn ended(arguments: Value) -> ToolOutcome {
    let bench = bench();
    let (_, ended) = pipe(&bench);
    let held = hold(&bench).await;
    let outcome = bench.call("exec", arguments).await;
    drop(held);
    in_time(ended).await.unwrap();
    outcome
}

/// Drops the call of a command that has written to the pipe.
async fn assert_ended_when_dropped(command: &str) {
    let bench = bench();
    let (started, ended) = pipe(&bench);
    tokio::select! {
        outcome = bench.call("exec", json!({"command": command})) => panic!("{}", outcome.text()),
        started = in_time(started) => started.unwrap(),
    }
    in_time(ended).await.unwrap();
}

#[tokio::test]
async fn output_and_exit_code_are_returned() {
    let bench = bench();
    let outcome = bench.call("exec", json!({"command": "echo out; pwd; echo err >&2"})).await;
    let text = outcome.rendered();
    let here = openclaw_files::canonical(bench.path("")).unwrap();
    let expected = format!("\n---\n[stdout]\nout\n{}\n[stderr]\nerr\n<<<END", here.display());
    assert!(text.starts_with("This is output of a command.") && text.contains(&expected), "{text}");
    assert!(!outcome.is_error && outcome.details.untrusted);
    let outcome = bench.call("exec", json!({"command": "exit 3"})).await;
    assert_eq!(outcome.rendered(), "The command exited with status 3.\nNo output.");
    assert!(outcome.is_error && outcome.details.failure.is_none());
    let outcome = bench.call("exec", json!({"command": "kill -9 $$"})).await;
    assert!(outcome.rendered().starts_with("The command was killed by a signal."));
    let outcome = bench.call("exec", json!({"command": "echo a\0b"})).await;
    assert!(outcome.rendered().starts_with("Cannot start the command"), "{}", outcome.rendered());
}

#[tokio::test]
async fn a_configured_shell_runs_the_commands() {
    let with = |shell: &str| {
        let shell = Some(shell.to_owned());
        Bench::with(|setup| NativeSetup { exec: ExecSettings { shell, ..setup.exec }, ..setup })
    };
    // As `sh -c`, it gets the command as its second argument.
    let outcome = with("/bin/echo").call("exec", json!({"command": "a b"})).await;
    assert!(outcome.rendered().contains("[stdout]\n-c a b\n"), "{}", outcome.rendered());
    let outcome = with("/nonexistent/sh").call("exec", json!({"command": "true"})).await;
    let words = "Cannot start the command: the configured shell `/nonexistent/sh` was not found.";
    assert!(outcome.rendered().starts_with(words), "{}", outcome.rendered());
}

#[tokio::test]
async fn the_environment_is_the_baseline_and_there_is_no_input() {
    let bench = bench();
    let outcome = bench.call("exec", json!({"command": "env; cat"})).await;
    let text = outcome.rendered();
    assert!(text.contains("PATH=/usr/local/bin:/usr/bin:/bin"), "{text}");
    let inner = text.split_once("[stdout]\n").unwrap().1.split_once("\n<<<END").unwrap().0;
    for line in inner.lines() {
        let name = line.split('=').next().unwrap();
        // One identifies the descendants, the others are set by the shell.
        let expected = ["PATH", "PWD", "OLDPWD", "SHLVL", "_", "OPENCLAW_PROCESS_RUN"];
        assert!(expected.contains(&name), "{line}");
    }
}

#[tokio::test]
async fn a_flood_of_output_is_cut_in_the_middle() {
    let bench = Bench::with(|setup| NativeSetup { max_chars: 1_000, ..setup });
    let command =
        "echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last; echo e >&2";
    let outcome = bench.call("exec", json!({"command": command})).await;
    let text = outcome.rendered();
    assert!(text.contains("[stdout]\nfirst\nxxx") && text.contains("xxx\nlast\n"), "{text}");
    assert!(text.contains("[stderr]\ne\n") && text.contains("omitted"), "{text}");
    assert!(outcome.details.is_cut && outcome.content_chars() < 1_600);
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
    let command = "echo before; sh -c '(echo started; exec sleep 1000) > pipe & wait' & wait";
    let outcome = ended(json!({"command": command, "timeout_ms": 10_000})).await;
    assert_eq!(outcome.details.failure, Some(ToolFailure::TimedOut));
    let text = outcome.rendered();
    assert!(text.starts_with("The command timed out after 10000 ms."), "{text}");
    assert!(text.contains("[stdout]\nbefore\n"), "{text}");
}

#[tokio::test]
async fn a_call_may_not_ask_for_more_time_than_is_configured() {
    let bench = Bench::with(|setup| {
        let max_timeout = Duration::from_millis(100);
        NativeSetup { exec: ExecSettings { max_timeout, ..setup.exec }, ..setup }
    });
    let asked = json!({"command": "sleep 1000", "timeout_ms": 3_600_000});
    assert_eq!(bench.call("exec", asked).await.details.failure, Some(ToolFailure::TimedOut));
}

#[tokio::test]
async fn what_a_command_leaves_running_is_ended_with_it() {
    let command = "(echo started; exec sleep 1000) > pipe & echo done";
    let outcome = ended(json!({"command": command})).await;
    assert!(!outcome.is_error && outcome.rendered().contains("done"), "{}", outcome.rendered());
}

#[tokio::test]
async fn dropping_the_call_ends_the_command() {
    assert_ended_when_dropped("sh -c '(echo started; exec sleep 1000) > pipe & wait'").await;
}

/// Commands that start a process in its own session, whose parent has exited or has another
/// environment.
#[cfg(target_os = "linux")]
const ESCAPES: [&str; 2] = [
    "setsid sh -c '(echo started; exec sleep 1000) > pipe &'",
    "setsid env -i sh -c '(echo started; exec sleep 1000) > pipe'",
];

#[tokio::test]
#[cfg(target_os = "linux")]
async fn what_has_left_the_process_group_is_ended_too() {
    for escape in ESCAPES {
        // After the end of the command, after a time-out, and when the call is dropped. The first
        // command waits until its descendant runs, with the same environment.
        let command = format!("{escape} & sleep 1000");
        let outcome = ended(json!({"command": command, "timeout_ms": 5_000})).await;
        assert_eq!(outcome.details.failure, Some(ToolFailure::TimedOut));
        assert!(outcome.rendered().contains("with all processes that it had started"));
        assert_ended_when_dropped(&format!("{escape} & wait; sleep 1000")).await;
    }
    let command = "mkfifo ready; setsid sh -c '(echo started; echo > ready; exec sleep 1000) > pipe &'; \
                   cat ready";
    let outcome = ended(json!({"command": command})).await;
    assert!(!outcome.is_error, "{}", outcome.rendered());
}
