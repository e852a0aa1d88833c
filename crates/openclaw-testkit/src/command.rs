//! The command line of `openclaw-test-server`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::script::Script;
use crate::{http, process, stdio};

const USAGE: &str = "\
usage: openclaw-test-server stdio [--script FILE_OR_JSON] [--record FILE]
       openclaw-test-server http  [--script FILE_OR_JSON] [--record FILE]
                                  [--port PORT] [--url-file FILE] [--exit-with-stdin]

A script is JSON; `{}` behaves well. Its members are those of `openclaw_testkit::Script`.
In http mode the first line on stdout is the URL of the Streamable HTTP endpoint.";

/// Runs the program with these arguments (without its name) until it exits.
pub fn run(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    match start(arguments.into_iter()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "openclaw-test-server: {problem}");
            ExitCode::from(2)
        }
    }
}

fn start(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let mode = arguments.next().unwrap_or_default();
    let mut script = Script::new();
    let mut record = None;
    let mut options = http::HttpOptions::default();
    let mut ignores_sigterm = false;
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
        match option.as_str() {
            "--script" => script = read(&value()?)?,
            "--record" => record = Some(PathBuf::from(value()?)),
            "--port" => options.port = value()?.parse().map_err(|_| "--port takes a number")?,
            "--url-file" => options.url_file = Some(value()?.into()),
            "--exit-with-stdin" => options.exit_with_stdin = true,
            "--ignore-sigterm" => ignores_sigterm = true,
            // Lets a test find its own processes (`processes::mentioning`).
            "--tag" => drop(value()?),
            _ => return Err(format!("unknown option {option}\n\n{USAGE}")),
        }
    }
    script.record = record.or(script.record);
    match mode.as_str() {
        "stdio" => stdio::serve(script),
        "http" => http::serve(script, &options),
        "linger" => process::linger(ignores_sigterm),
        _ => return Err(USAGE.into()),
    }
    .map_err(|error| error.to_string())
}

fn read(script: &str) -> Result<Script, String> {
    let text = if script.trim_start().starts_with('{') {
        script.to_owned()
    } else {
        std::fs::read_to_string(script).map_err(|error| format!("{script}: {error}"))?
    };
    serde_json::from_str(&text).map_err(|error| {
        format!("bad script: {error}\nhint: is the binary up to date? run `cargo build -p openclaw-testkit`")
    })
}
