//! Local providers (environment, files, commands), and the resolver in general.

#![cfg(feature = "resolve")]
#![allow(clippy::expect_used, clippy::panic, reason = "a failing test may panic")]

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use openclaw_secrets::{
    Environment, ExecCommand, Redactor, ResolveError, ResolveErrorKind, Resolver, SecretRef,
    SecretSettings, SecretTemplate,
};

fn reference(text: &str) -> SecretRef {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn environment() -> Environment {
    let path = std::env::var("PATH").expect("PATH");
    [
        ("PATH", path.as_str()),
        ("TOKEN", "hunter22"),
        ("EMPTY", ""),
        ("GATEWAY_TOKEN", "gateway-token"),
    ]
    .into_iter()
    .collect()
}

fn in_folder(folder: &Path) -> SecretSettings {
    SecretSettings {
        base_dir: folder.to_owned(),
        home: Some(folder.join("home")),
        timeout: Duration::from_secs(60),
        ..SecretSettings::default()
    }
}

fn resolver(settings: SecretSettings) -> Resolver {
    Resolver::new(settings, environment(), Redactor::new())
}

async fn value_of(settings: SecretSettings, text: &str) -> String {
    let value = resolver(settings).resolve(&reference(text)).await;
    value.unwrap_or_else(|error| panic!("{error}")).expose().to_owned()
}

async fn error_of(settings: SecretSettings, text: &str) -> ResolveError {
    resolver(settings).resolve(&reference(text)).await.expect_err(text)
}

fn shell(script: &str) -> SecretSettings {
    let exec = ExecCommand {
        command: "sh".into(),
        args: vec!["-c".into(), script.into()],
        ..ExecCommand::default()
    };
    SecretSettings {
        exec: BTreeMap::from([("script".to_owned(), exec)]),
        timeout: Duration::from_secs(60),
        ..SecretSettings::default()
    }
}

#[tokio::test]
async fn a_variable_of_the_environment_is_a_secret() {
    assert_eq!(value_of(SecretSettings::default(), "secret://env/TOKEN").await, "hunter22");
}

#[tokio::test]
async fn an_unset_variable_is_reported_with_a_hint() {
    let error = error_of(SecretSettings::default(), "secret://env/NOPE").await;
    assert_eq!(error.kind(), ResolveErrorKind::NotFound);
    assert_eq!(
        error.to_string(),
        "`secret://env/NOPE`: the environment variable `NOPE` is not set"
    );
    assert_eq!(error.hint(), Some("set `NOPE` where OpenClaw is started"));
    let error = error_of(SecretSettings::default(), "secret://env/EMPTY").await;
    assert_eq!(error.kind(), ResolveErrorKind::Empty);
}

#[tokio::test]
async fn a_template_gets_its_values_and_reports_the_first_that_fails() {
    let resolver = resolver(SecretSettings::default());
    let parse = |text| SecretTemplate::parse(text).expect("template");
    let value = resolver.resolve_template(&parse("Bearer secret://env/TOKEN")).await;
    assert_eq!(value.expect("value").expose(), "Bearer hunter22");
    let error = resolver
        .resolve_template(&parse("secret://env/TOKEN secret://env/NOPE secret://env/EMPTY"))
        .await
        .expect_err("a missing variable");
    assert_eq!(error.reference(), &reference("secret://env/NOPE"));
}

#[tokio::test]
async fn what_was_resolved_is_redacted_from_then_on() {
    let redactor = Redactor::new();
    let resolver = Resolver::new(SecretSettings::default(), environment(), redactor.clone());
    assert_eq!(redactor.redact("hunter22"), "hunter22");
    resolver.resolve(&reference("secret://env/TOKEN")).await.expect("value");
    assert_eq!(redactor.redact("hunter22"), "[REDACTED]");
}

#[tokio::test]
async fn a_check_reports_failures_in_order_and_keeps_no_value() {
    let redactor = Redactor::new();
    let resolver = Resolver::new(SecretSettings::default(), environment(), redactor.clone());
    let references =
        ["secret://env/TOKEN", "secret://env/NOPE", "secret://env/TOKEN"].map(reference);
    let checked = resolver.check_all(&references).await;
    let kinds: Vec<_> =
        checked.iter().map(|one| one.error.as_ref().map(ResolveError::kind)).collect();
    assert_eq!(kinds, [None, Some(ResolveErrorKind::NotFound), None]);
    assert!(checked.iter().map(|one| &one.reference).eq(&references));
    assert!(!format!("{checked:?}").contains("hunter22"));
    assert_eq!(redactor.redact("hunter22"), "[REDACTED]");
}

#[tokio::test(start_paused = true)]
async fn a_check_fetches_at_most_32_at_once_and_times_each_separately() {
    let mut settings = shell("exec sleep 1000");
    settings.timeout = Duration::from_secs(7);
    let references = vec![reference("secret://exec/script"); 40];
    let start = tokio::time::Instant::now();
    let checked = resolver(settings).check_all(&references).await;
    // Only timeouts advance the clock: the last eight start after the first 32.
    assert_eq!(start.elapsed().as_secs(), 14);
    assert_eq!(checked.len(), 40);
    for one in checked {
        assert_eq!(one.took.as_secs(), 7);
        assert_eq!(one.error.expect("timeout").kind(), ResolveErrorKind::TimedOut);
    }
}

#[tokio::test]
async fn a_file_is_found_by_relative_absolute_and_home_path_and_loses_one_line_break() {
    let folder = tempfile::tempdir().expect("folder");
    fs::create_dir(folder.path().join("home")).expect("home");
    fs::write(folder.path().join("token"), "relative\n").expect("write");
    fs::write(folder.path().join("home/token"), "at home\r\n").expect("write");
    fs::write(folder.path().join("lines"), "two\n\n").expect("write");
    let settings = || in_folder(folder.path());
    let absolute = format!("secret://file/{}", folder.path().join("token").display());
    assert_eq!(value_of(settings(), "secret://file/token").await, "relative");
    assert_eq!(value_of(settings(), &absolute).await, "relative");
    assert_eq!(value_of(settings(), "secret://file/~/token").await, "at home");
    assert_eq!(value_of(settings(), "secret://file/lines").await, "two\n");
}

#[tokio::test]
async fn an_unusable_file_is_rejected_with_the_reason() {
    let folder = tempfile::tempdir().expect("folder");
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect(name);
    write("binary", b"\xff\xfe hunter22");
    write("empty", b"\n");
    write("huge", &vec![b'x'; 1024 * 1024 + 1]);
    fs::create_dir(folder.path().join("folder")).expect("folder");
    for (name, kind, words) in [
        ("missing", ResolveErrorKind::NotFound, "not found"),
        ("folder", ResolveErrorKind::Failed, "is a folder"),
        ("binary", ResolveErrorKind::NotText, "not UTF-8"),
        ("empty", ResolveErrorKind::Empty, "empty"),
        ("huge", ResolveErrorKind::Failed, "larger than 1 MiB"),
    ] {
        let error = error_of(in_folder(folder.path()), &format!("secret://file/{name}")).await;
        assert_eq!(error.kind(), kind, "{name}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(!format!("{error:?}").contains("hunter22"));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_is_rejected_instead_of_blocking() {
    let folder = tempfile::tempdir().expect("folder");
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let error = error_of(in_folder(folder.path()), "secret://file/pipe").await;
    assert!(error.to_string().contains("is not a regular file"), "{error}");
}

#[tokio::test]
async fn a_command_gives_its_output_with_a_small_environment() {
    assert_eq!(value_of(shell("printf 'hunter22\\n'"), "secret://exec/script").await, "hunter22");
    let script = "echo ${GATEWAY_TOKEN-none} ${TOKEN-none} ${PATH+path}";
    assert_eq!(value_of(shell(script), "secret://exec/script").await, "none none path");
    let mut settings = shell("echo $OWN");
    let own = BTreeMap::from([("OWN".to_owned(), "mine".into())]);
    settings.exec.get_mut("script").expect("script").env = own;
    assert_eq!(value_of(settings, "secret://exec/script").await, "mine");
}

#[tokio::test]
async fn a_command_beside_the_config_file_is_run_in_its_folder() {
    let folder = tempfile::tempdir().expect("folder");
    let script = folder.path().join("helper.sh");
    fs::write(folder.path().join("token"), "hunter22").expect("write");
    // By another process: a file that is open for writing here cannot be run, and a process that another
    // test starts meanwhile would keep it open for a moment.
    let write = r##"printf '#!/bin/sh\ncat token\n' > "$0" && chmod 700 "$0""##;
    let written = std::process::Command::new("sh").arg("-c").arg(write).arg(&script).status();
    assert!(written.expect("sh").success());
    let exec = ExecCommand { command: "./helper.sh".into(), ..ExecCommand::default() };
    let exec = BTreeMap::from([("helper".to_owned(), exec)]);
    let settings = SecretSettings { exec, ..in_folder(folder.path()) };
    assert_eq!(value_of(settings, "secret://exec/helper").await, "hunter22");
}

#[tokio::test]
async fn a_failed_command_is_reported_without_its_output() {
    let script = "echo hunter22; echo hunter22 >&2; exit 3";
    let error = error_of(shell(script), "secret://exec/script").await;
    assert_eq!(
        error.to_string(),
        "`secret://exec/script`: the command `sh` failed (exit status: 3)"
    );
    assert_eq!(error.hint(), Some("run it in a terminal to see its output"));
    assert!(!format!("{error:?}").contains("hunter22"));
}

#[tokio::test]
async fn commands_that_do_not_exist_or_print_too_much_are_rejected() {
    let error = error_of(SecretSettings::default(), "secret://exec/nope").await;
    assert_eq!(error.kind(), ResolveErrorKind::NotConfigured);
    assert_eq!(error.hint(), Some("add `secrets.exec.nope` to the configuration"));

    let exec = ExecCommand { command: "no-such-program-here".into(), ..ExecCommand::default() };
    let exec = BTreeMap::from([("gone".to_owned(), exec)]);
    let error =
        error_of(SecretSettings { exec, ..SecretSettings::default() }, "secret://exec/gone").await;
    assert_eq!(error.kind(), ResolveErrorKind::NotConfigured);
    assert!(error.to_string().contains("program `no-such-program-here` not found"), "{error}");

    let error = error_of(shell("yes hunter22"), "secret://exec/script").await;
    assert!(error.to_string().contains("larger than 1 MiB"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_command_that_hangs_is_given_up_after_its_time() {
    let mut settings = shell("exec sleep 1000");
    settings.exec.get_mut("script").expect("script").timeout = Some(Duration::from_secs(7));
    let error = error_of(settings, "secret://exec/script").await;
    assert_eq!(error.kind(), ResolveErrorKind::TimedOut);
    assert_eq!(error.to_string(), "`secret://exec/script`: timed out after 7000 ms");
    assert!(error.hint().is_some());
}

/// Commands leave no processes behind.
#[cfg(unix)]
mod processes {
    use super::*;

    /// A script whose grandchild sleeps; its process id is in the file.
    fn forking(folder: &Path, last: &str) -> SecretSettings {
        let file = folder.join("pid");
        let new = file.with_extension("new");
        shell(&format!(
            "sleep 1000 >/dev/null & echo $! > {new}; mv {new} {file}; echo hunter22; {last}",
            new = new.display(),
            file = file.display(),
        ))
    }

    async fn grandchild(folder: &Path) -> String {
        loop {
            match fs::read_to_string(folder.join("pid")) {
                Ok(pid) => return pid.trim().to_owned(),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    fn is_alive(pid: &str) -> bool {
        let output = std::process::Command::new("ps").args(["-o", "stat=", "-p", pid]).output();
        let output = String::from_utf8(output.expect("ps").stdout).expect("text");
        // A zombie is dead; reaping it is up to process 1.
        !matches!(output.trim().chars().next(), None | Some('Z'))
    }

    /// Waits until the process is gone. If it stays, the test hangs and fails.
    async fn gone(pid: &str) {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn dropping_the_request_kills_the_command_and_its_children() {
        let folder = tempfile::tempdir().expect("folder");
        let resolver = resolver(forking(folder.path(), "wait"));
        let request =
            tokio::spawn(async move { resolver.resolve(&reference("secret://exec/script")).await });
        let pid = grandchild(folder.path()).await;
        assert!(is_alive(&pid));
        request.abort();
        gone(&pid).await;
    }

    #[tokio::test]
    async fn a_timeout_kills_the_command_and_its_children() {
        let folder = tempfile::tempdir().expect("folder");
        let resolver = resolver(forking(folder.path(), "wait"));
        let request =
            tokio::spawn(async move { resolver.resolve(&reference("secret://exec/script")).await });
        let pid = grandchild(folder.path()).await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(61)).await;
        let error = request.await.expect("task").expect_err("timeout");
        assert_eq!(error.kind(), ResolveErrorKind::TimedOut);
        tokio::time::resume();
        gone(&pid).await;
    }

    #[tokio::test]
    async fn a_child_that_keeps_the_output_open_does_not_delay_the_value() {
        let settings = shell("sleep 1000 & printf hunter; printf '22\\n'");
        assert_eq!(value_of(settings, "secret://exec/script").await, "hunter22");
        let error = error_of(shell("sleep 1000 & echo hunter22; exit 3"), "secret://exec/script");
        assert!(error.await.to_string().ends_with("failed (exit status: 3)"));
    }

    #[tokio::test]
    async fn a_child_that_has_left_the_process_group_does_not_delay_the_value() {
        let folder = tempfile::tempdir().expect("folder");
        let pid = folder.path().join("pid");
        let script = format!(
            "setsid sh -c 'echo $$ > {pid}; exec sleep 60' & \
             while ! [ -s {pid} ]; do sleep 0.01; done; echo hunter22",
            pid = pid.display()
        );
        assert_eq!(value_of(shell(&script), "secret://exec/script").await, "hunter22");
        // Only the test can kill it.
        let pid = fs::read_to_string(pid).expect("pid");
        std::process::Command::new("kill").arg(pid.trim()).status().expect("kill");
    }

    #[tokio::test]
    async fn background_processes_of_a_command_are_killed() {
        let folder = tempfile::tempdir().expect("folder");
        let settings = forking(folder.path(), "exit 0");
        assert_eq!(value_of(settings, "secret://exec/script").await, "hunter22");
        gone(&grandchild(folder.path()).await).await;
    }
}

/// The errors of a build without the cloud providers.
#[cfg(not(any(feature = "aws", feature = "gcp", feature = "vault", feature = "keychain")))]
#[tokio::test]
async fn a_provider_that_is_not_in_the_build_has_a_hint() {
    for (text, words, hint) in [
        ("secret://aws/x", "this build has no AWS support", "build with `--features aws`"),
        ("secret://gcp/x", "this build has no Google Cloud support", "build with `--features gcp`"),
        ("secret://vault/x", "this build has no Vault support", "build with `--features vault`"),
        (
            "secret://keychain/x",
            "this build has no keychain support",
            "build with `--features keychain`",
        ),
    ] {
        let error = error_of(SecretSettings::default(), text).await;
        assert_eq!(error.kind(), ResolveErrorKind::NotConfigured);
        assert_eq!(error.to_string(), format!("`{text}`: {words}"));
        assert_eq!(error.hint(), Some(hint));
    }
}
