//! `moto_server`, an emulator of AWS, and tests that run in a process of their own.
//!
//! The SDK reads the environment of the process, which a test must not change under the feet of the
//! others: so each test starts itself again, as a child with exactly the variables that it wants.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// Tells the child where the emulator is.
const ENDPOINT: &str = "OPENCLAW_TEST_ENDPOINT";

/// A running emulator.
pub struct Moto {
    process: Child,
    pub url: String,
}

impl Moto {
    /// Starts one; it is killed on drop.
    pub fn start(variables: &[(&str, &str)]) -> Self {
        let program = program();
        assert!(program.exists(), "there is no {}: run `cargo xtask test`", program.display());
        let mut process = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", "0"])
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("moto_server starts");
        let stderr = process.stderr.take().expect("stderr");
        let mut moto = Self { process, url: String::new() };
        // It says which port it got when it listens; without a word it has ended, and so do we.
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        moto.url = lines
            .find_map(|line| Some(line.split_once("Running on ")?.1.trim().to_owned()))
            .expect("moto_server listens");
        // The pipe is emptied so that the server never waits for us. The thread ends with it.
        std::thread::spawn(move || lines.for_each(drop));
        moto
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where `cargo xtask test` installs the peers of tests.
fn program() -> PathBuf {
    let peers = std::env::var_os("OPENCLAW_PEERS")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"));
    peers.join("python/bin/moto_server")
}

/// Runs the body of the test named `test` in a process that has these variables, those that lead the
/// SDK to the emulator instead of Amazon, and no others. It is given the emulator's address.
pub fn in_own_process(
    test: &str,
    moto: &[(&str, &str)],
    variables: &[(&str, &str)],
    body: impl AsyncFnOnce(String),
) {
    if let Ok(url) = std::env::var(ENDPOINT) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        return runtime.expect("runtime").block_on(body(url));
    }
    let moto = Moto::start(moto);
    let output = Command::new(std::env::current_exe().expect("test binary"))
        .args([test, "--exact", "--nocapture"])
        .env_clear()
        .envs(variables.iter().copied())
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env(ENDPOINT, &moto.url)
        .env("AWS_ENDPOINT_URL_SECRETS_MANAGER", &moto.url)
        .output()
        .expect("the test starts itself");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("1 passed"), "no test is called `{test}`");
}
