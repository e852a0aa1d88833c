//! Checks the program and the folder of a local server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use openclaw_config::StdioServer;
use openclaw_mcp_client::process::missing_interpreter;
use openclaw_process::program::{ProgramLookup, check_arguments};
use openclaw_secrets::{Environment, SecretTemplate};

use crate::commands::check::Check;

/// Checks that the working folder exists and that the program can be run.
pub(super) fn checks(server: &StdioServer, environment: &Environment) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(folder) = &server.cwd {
        checks.push(match folder.is_dir() {
            true => Check::good(format!("working folder: {}", folder.display())),
            false => Check::bad(
                format!("working folder not found: {}", folder.display()),
                Some("create it, or change `cwd` in its entry".to_owned()),
            ),
        });
    }
    let command = server.command.as_str();
    let folder = server.cwd.as_deref();
    let variables = ServerVariables::of(server, environment);
    if is_path(command) {
        let path = folder.unwrap_or(Path::new("")).join(command);
        let path = on_windows(command, folder, &variables).unwrap_or(path);
        checks.push(program_at(&path, folder));
    } else if !variables.is_secret("PATH", cfg!(windows)) {
        checks.push(program_on_path(command, folder, &variables));
    }
    checks.extend(unsafe_arguments(server, &variables));
    checks
}

/// The variables that a server is started with; `None` for the value of a secret.
struct ServerVariables(BTreeMap<String, Option<String>>);

impl ServerVariables {
    fn of(server: &StdioServer, environment: &Environment) -> Self {
        let inherited = environment.for_child(server.inherit_env.iter().map(String::as_str));
        let inherited = inherited.into_iter().map(|(name, value)| (name, Some(value)));
        let value = |template: &SecretTemplate| {
            template.fill(|_| Err(())).ok().map(|value| value.expose().to_owned())
        };
        let own = server.env.iter().map(|(name, template)| (name.clone(), value(template)));
        Self(inherited.chain(own).collect())
    }

    /// The value that the process finds: Windows ignores the case of names, and keeps the last of several.
    fn find(&self, name: &str, ignores_case: bool) -> Option<&Option<String>> {
        match ignores_case {
            true => self.0.iter().rfind(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, it)| it),
            false => self.0.get(name),
        }
    }

    fn is_secret(&self, name: &str, ignores_case: bool) -> bool {
        matches!(self.find(name, ignores_case), Some(None))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.find(name, cfg!(windows))?.as_deref()
    }
}

/// Reports arguments that cannot be passed to a batch file, which `npx` is on Windows.
fn unsafe_arguments(server: &StdioServer, variables: &ServerVariables) -> Option<Check> {
    let arguments: Vec<&str> = server.args.iter().collect();
    let program = on_windows(server.command.as_str(), server.cwd.as_deref(), variables)?;
    let error = check_arguments(&program.to_string_lossy(), &arguments).err()?;
    let advice = "pass it in `env`, or set `command` to the program that the batch file runs";
    Some(Check::bad(error.to_string(), Some(advice.to_owned())))
}

/// Returns the file that a name means on Windows; `None` on other systems.
fn on_windows(command: &str, cwd: Option<&Path>, variables: &ServerVariables) -> Option<PathBuf> {
    if !cfg!(windows) {
        return None;
    }
    let (path, extensions) = (variables.get("PATH"), variables.get("PATHEXT"));
    ProgramLookup { path, extensions, folder: cwd }.find(command).ok()
}

/// Formats the command line for a shell. Arguments that may be secret are omitted.
pub(super) fn command_line(server: &StdioServer) -> String {
    let program = std::iter::once(server.command.written().to_owned());
    let words: Vec<String> = program.chain(server.args.shown()).map(quoted).collect();
    words.join(" ")
}

fn quoted(word: String) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,${}[]".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn is_path(command: &str) -> bool {
    command.contains('/') || cfg!(windows) && command.contains('\\')
}

fn program_at(path: &Path, cwd: Option<&Path>) -> Check {
    let shown = path.display();
    if path.is_dir() {
        let advice = "set `command` to the program in it".to_owned();
        return Check::bad(format!("{shown} is a folder, not a program"), Some(advice));
    }
    if !path.is_file() {
        let advice = "install it, or change `command` in its entry".to_owned();
        return Check::bad(format!("program {shown} not found"), Some(advice));
    }
    if !is_executable(path) {
        let advice = format!("run `chmod +x {shown}`");
        return Check::bad(format!("{shown} is not executable"), Some(advice));
    }
    found(path, cwd)
}

/// Checks the interpreter of a program that exists, if it is a script.
fn found(path: &Path, cwd: Option<&Path>) -> Check {
    let shown = path.display();
    let Some(interpreter) = missing_interpreter(path, cwd).filter(|_| cfg!(unix)) else {
        return Check::good(format!("program: {shown}"));
    };
    let advice = match interpreter.ends_with('\r') {
        true => "the script has Windows line endings; save it with Unix line endings",
        false => "install the interpreter, or correct the first line of the script",
    };
    let interpreter = interpreter.escape_debug();
    let what = format!("interpreter `{interpreter}` of {shown} not found");
    Check::bad(what, Some(advice.to_owned()))
}

/// Searches the PATH.
fn program_on_path(command: &str, cwd: Option<&Path>, variables: &ServerVariables) -> Check {
    let program = match cfg!(windows) {
        true => on_windows(command, cwd, variables),
        false => std::env::split_paths(variables.get("PATH").unwrap_or_default())
            .map(|folder: PathBuf| folder.join(command))
            .find(|path| path.is_file() && is_executable(path)),
    };
    match program {
        Some(path) => found(&path, cwd),
        None => Check::bad(
            format!("program `{command}` not found on the PATH"),
            Some(installer(command)),
        ),
    }
}

fn installer(command: &str) -> String {
    if openclaw_config::split_command(command).is_some() {
        return "put only the program into `command`, and its arguments into `args`".to_owned();
    }
    match command {
        "npx" | "npm" | "node" => "install Node.js, or set `command` to the full path".to_owned(),
        "uvx" | "uv" => "install uv, or set `command` to the full path".to_owned(),
        "docker" => "install Docker, or set `command` to the full path".to_owned(),
        _ => "install it, or set `command` to its full path".to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_looked_up_with_the_variables_that_it_gets() {
        let variables = |list: &[(&str, Option<&str>)]| {
            let all = list.iter().map(|(name, it)| ((*name).to_owned(), it.map(str::to_owned)));
            ServerVariables(all.collect())
        };
        let found = |list: &[(&str, Option<&str>)], ignores_case: bool| {
            variables(list).find("PATH", ignores_case).cloned()
        };
        let both = [("PATH", Some("the baseline")), ("Path", Some("its own"))];
        assert_eq!(found(&both, true), Some(Some("its own".to_owned())), "as Windows does");
        assert_eq!(found(&both, false), Some(Some("the baseline".to_owned())));
        assert_eq!(found(&[("path", Some("x"))], true), Some(Some("x".to_owned())));
        assert_eq!(found(&[("path", Some("x"))], false), None);
        let secret = variables(&[("PATH", Some("x")), ("Path", None)]);
        assert!(secret.is_secret("PATH", true) && !secret.is_secret("PATH", false));
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, shown) in [
            ("--port=80", "--port=80"),
            ("@scope/server", "@scope/server"),
            ("", "''"),
            ("echo hi", "'echo hi'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(word.to_owned()), shown);
        }
    }
}
