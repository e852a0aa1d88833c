//! Opens the user's browser.
//!
//! The usual crates for this decide by reading the environment, and bring Android, iOS and WebAssembly
//! along. What is needed here is one command per platform.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use openclaw_process::program::ProgramLookup;
use tokio::time::timeout;
use url::Url;

/// A command that has not failed by then has opened the browser, or is the browser.
const SETTLED: Duration = Duration::from_secs(2);

/// What is known about the user's session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrowserEnvironment {
    /// Whether there is a display (`DISPLAY` or `WAYLAND_DISPLAY`). Ignored on macOS and Windows.
    pub display: bool,
    /// Whether the program runs in an SSH session: a browser would open on the wrong machine.
    pub ssh: bool,
    /// The user's command (`BROWSER`): several are separated as in `PATH`, and `%s` stands for the URL. It
    /// is used also without display and over SSH, where it may open a browser at the user's end.
    pub browser_variable: Option<String>,
    /// `PATH`. Used on Windows only, where browsers are found as a shell finds them.
    pub path: Option<String>,
    /// `PATHEXT`. Used on Windows only.
    pub extensions: Option<String>,
}

/// Why no browser was opened. The user has to open the URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoBrowser {
    /// A browser would open on a remote machine.
    #[error("no browser in an SSH session")]
    Ssh,
    /// There is no display.
    #[error("no display")]
    NoDisplay,
    /// The URL is not `http` or `https`.
    #[error("not a web address")]
    NotWeb,
    /// No command started, or each failed.
    #[error("cannot open a browser: {0}")]
    Failed(String),
}

/// Opens a URL in the user's browser. Returns when that has worked, as far as it is known: after at
/// most 2 s per command.
///
/// # Errors
/// If no browser can be opened.
pub async fn open(url: &Url, environment: &BrowserEnvironment) -> Result<(), NoBrowser> {
    let mut causes = Vec::new();
    for command in commands(url, environment)? {
        match run(&command, environment).await {
            Ok(()) => return Ok(()),
            Err(error) => causes.push(error),
        }
    }
    if causes.is_empty() {
        causes.push("no program to open a URL was found".to_owned());
    }
    Err(NoBrowser::Failed(causes.join(", ")))
}

/// Returns the commands to try, each with its arguments.
fn commands(url: &Url, environment: &BrowserEnvironment) -> Result<Vec<Vec<String>>, NoBrowser> {
    // Other schemes start other programs.
    if !matches!(url.scheme(), "http" | "https") {
        return Err(NoBrowser::NotWeb);
    }
    let BrowserEnvironment { display, ssh, browser_variable, .. } = environment;
    if let Some(list) = browser_variable.as_deref().filter(|list| !list.trim().is_empty()) {
        let separator = if cfg!(windows) { ';' } else { ':' };
        return Ok(list.split(separator).filter_map(|command| parse(command, url)).collect());
    }
    if *ssh {
        return Err(NoBrowser::Ssh);
    }
    if !*display && !cfg!(any(target_os = "macos", windows)) {
        return Err(NoBrowser::NoDisplay);
    }
    let words: &[&[&str]] = if cfg!(target_os = "macos") {
        &[&["/usr/bin/open"]]
    } else if cfg!(windows) {
        // Without a shell: `start` would interpret `&` in the URL.
        &[&["rundll32.exe", "url.dll,FileProtocolHandler"]]
    } else {
        &[&["xdg-open"], &["gio", "open"], &["x-www-browser"]]
    };
    let with_url =
        |words: &&[&str]| words.iter().copied().chain([url.as_str()]).map(str::to_owned).collect();
    Ok(words.iter().map(with_url).collect())
}

/// Splits a command of `BROWSER` at spaces. Without `%s`, the URL is its last argument.
fn parse(command: &str, url: &Url) -> Option<Vec<String>> {
    let mut words: Vec<_> = command.split_ascii_whitespace().map(str::to_owned).collect();
    let has_place = words.iter().skip(1).any(|word| word.contains("%s"));
    let program = words.first()?.clone();
    for word in &mut words {
        *word = word.replace("%s", url.as_str());
    }
    // The URL is never the program.
    words[0] = program;
    if !has_place {
        words.push(url.as_str().to_owned());
    }
    Some(words)
}

/// Starts a command without shell, input and output, outside of the terminal's process group: Ctrl-C
/// must not close the browser.
async fn run(words: &[String], environment: &BrowserEnvironment) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else {
        return Err("empty command".to_owned());
    };
    let path = environment.path.as_deref();
    let lookup =
        ProgramLookup { path, extensions: environment.extensions.as_deref(), folder: None };
    let command = lookup.command(program, arguments.iter().map(String::as_str));
    let mut command = command.map_err(|error| failed(program, &error))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| failed(program, &error))?;
    match timeout(SETTLED, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("`{program}` failed ({status})")),
        Ok(Err(error)) => Err(format!("`{program}`: {error}")),
        Err(_) => {
            // Reaped when the browser ends. The task is not joined: it holds nothing else, and the
            // browser may outlive the program.
            tokio::spawn(async move { child.wait().await });
            Ok(())
        }
    }
}

fn failed(program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("`{program}` not found"),
        _ => format!("`{program}`: {error}"),
    }
}

#[cfg(test)]
#[path = "browser_tests.rs"]
mod tests;
