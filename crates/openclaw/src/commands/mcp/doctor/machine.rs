//! What a local server needs of this machine: its program, and its folder.

use std::path::{Path, PathBuf};

use openclaw_config::StdioServer;
use openclaw_secrets::Environment;

use crate::commands::check::Check;

/// Looks for the program and the folder that it runs in.
pub(super) fn checks(server: &StdioServer, environment: &Environment) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(folder) = &server.cwd {
        checks.push(match folder.is_dir() {
            true => Check::good(format!("its folder {} is there", folder.display())),
            false => Check::bad(
                format!("there is no folder {} to run it in", folder.display()),
                Some("make it, or change `cwd` in its entry".to_owned()),
            ),
        });
    }
    let command = server.command.as_str();
    let folder = server.cwd.as_deref();
    if is_path(command) {
        checks.push(program_at(&folder.unwrap_or(Path::new("")).join(command)));
    } else if !server.env.contains_key("PATH") {
        checks.extend(program_on_path(command, environment));
    }
    checks
}

fn is_path(command: &str) -> bool {
    command.contains('/') || cfg!(windows) && command.contains('\\')
}

fn program_at(path: &Path) -> Check {
    let shown = path.display();
    if path.is_dir() {
        let advice = "write the program in it as `command`".to_owned();
        return Check::bad(format!("{shown} is a folder, and no program"), Some(advice));
    }
    if !path.is_file() {
        let advice = "install it, or change `command` in its entry".to_owned();
        return Check::bad(format!("there is no program {shown}"), Some(advice));
    }
    if !is_executable(path) {
        let advice = format!("`chmod +x {shown}` makes it so");
        return Check::bad(format!("{shown} is not executable"), Some(advice));
    }
    Check::good(format!("its program is {shown}"))
}

/// On Windows names have endings, which only starting it finds.
fn program_on_path(command: &str, environment: &Environment) -> Option<Check> {
    if cfg!(windows) {
        return None;
    }
    let path = environment.for_child([]).remove("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder: PathBuf| folder.join(command))
        .find(|path| path.is_file() && is_executable(path));
    Some(match found {
        Some(path) => Check::good(format!("its program is {}", path.display())),
        None => Check::bad(
            format!("there is no program `{command}` on the PATH"),
            Some(installer(command)),
        ),
    })
}

fn installer(command: &str) -> String {
    match command {
        "npx" | "npm" | "node" => "install Node.js, or write the program's whole path".to_owned(),
        "uvx" | "uv" => "install uv, or write the program's whole path".to_owned(),
        "docker" => "install Docker, or write the program's whole path".to_owned(),
        _ => "install it, or write its whole path as `command`".to_owned(),
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}
