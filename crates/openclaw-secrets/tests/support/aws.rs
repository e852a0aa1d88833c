//! `moto_server`, an emulator of AWS, and administrative requests to it.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

/// A running emulator.
pub struct Moto {
    process: Child,
    pub url: String,
}

impl Moto {
    /// Starts the emulator; it is killed on drop.
    pub fn start(variables: &[(&str, &str)]) -> Self {
        let program = program();
        assert!(program.exists(), "{} not found: run `cargo xtask test`", program.display());
        let mut process = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", "0"])
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("moto_server starts");
        let stderr = process.stderr.take().expect("stderr");
        let mut moto = Self { process, url: String::new() };
        // It prints its port when it listens; if it exits before, the test fails.
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        moto.url = lines
            .find_map(|line| Some(line.split_once("Running on ")?.1.trim().to_owned()))
            .expect("moto_server listens");
        // Drain the pipe so that the server never blocks on it. The thread ends with the server.
        std::thread::spawn(move || lines.for_each(drop));
        moto
    }

    /// Calls Secrets Manager in a region as administrator.
    pub async fn secrets(&self, region: &str, action: &str, arguments: &Value) -> Value {
        let request = reqwest::Client::new()
            .post(&self.url)
            .header("Authorization", authorization(region, "secretsmanager"))
            .header("Content-Type", "application/x-amz-json-1.1")
            .header("X-Amz-Target", format!("secretsmanager.{action}"))
            .body(arguments.to_string());
        let response = request.send().await.expect("response");
        assert_eq!(response.status(), 200, "{action} {arguments}");
        response.json().await.expect("JSON")
    }

    /// Calls IAM as administrator. The response is XML.
    pub async fn iam(&self, arguments: &[(&str, &str)]) -> String {
        let form: Vec<_> = arguments
            .iter()
            .map(|(name, value)| {
                let set = percent_encoding::NON_ALPHANUMERIC;
                format!("{name}={}", percent_encoding::utf8_percent_encode(value, set))
            })
            .collect();
        let request = reqwest::Client::new()
            .post(&self.url)
            .header("Authorization", authorization("us-east-1", "iam"))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(form.join("&"));
        let response = request.send().await.expect("response");
        assert_eq!(response.status(), 200, "{arguments:?}");
        response.text().await.expect("text")
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Tells the emulator the region and the service. It checks signatures only if configured to.
fn authorization(region: &str, service: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=admin/20260101/{region}/{service}/aws4_request, \
         SignedHeaders=host, Signature=0"
    )
}

/// The path where `cargo xtask test` installs the emulator.
fn program() -> PathBuf {
    let peers = std::env::var_os("OPENCLAW_PEERS")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"));
    peers.join("python/bin/moto_server")
}
