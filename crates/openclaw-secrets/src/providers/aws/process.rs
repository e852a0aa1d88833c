//! `credential_process`: a command of a profile that prints credentials as JSON.

use process_wrap::tokio::CommandWrap;
use reqsign_aws_v4::Credential;
use reqsign_core::Result;
use serde_json::Value;
use std::process::Stdio;
use tokio::process::Command;

use super::failure::unusable_source;
use crate::providers::exec::ProcessGroup;

/// Runs the command. Its standard error is discarded.
pub(super) async fn credential(command: &str) -> Result<Credential> {
    let failed = || unusable_source("the `credential_process` of the AWS profile failed");
    // It inherits the environment, as in the AWS SDKs: it is the user's command, and may read
    // variables that we cannot know.
    let mut command = in_shell(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut group = ProcessGroup::spawn(CommandWrap::from(command)).map_err(|_| failed())?;
    let (status, output) = group.finish().await.map_err(|_| failed())?;
    if !status.success() {
        return Err(failed());
    }
    parse(&output)
}

/// AWS defines the value as a shell command line.
#[cfg(not(windows))]
fn in_shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

/// `cmd.exe` strips one pair of quotes and does not support escaped ones.
#[cfg(windows)]
fn in_shell(line: &str) -> Command {
    let mut command = Command::new("cmd.exe");
    command.arg("/C").raw_arg(format!("\"{line}\""));
    command
}

fn parse(output: &[u8]) -> Result<Credential> {
    let bad = || unusable_source("invalid output of the `credential_process` of the AWS profile");
    let output: Value = serde_json::from_slice(output).map_err(|_| bad())?;
    let field = |name: &str| output[name].as_str().map(str::to_owned);
    if output["Version"] != 1 {
        return Err(bad());
    }
    let expires_in = match field("Expiration") {
        Some(time) => Some(time.parse().map_err(|_| bad())?),
        None => None,
    };
    Ok(Credential {
        access_key_id: field("AccessKeyId").ok_or_else(bad)?,
        secret_access_key: field("SecretAccessKey").ok_or_else(bad)?,
        session_token: field("SessionToken"),
        expires_in,
    })
}
