//! The shell that runs commands.

use std::path::{Path, PathBuf};

use openclaw_process::program::ProgramLookup;
use tokio::process::Command;

/// A shell, by the way in which it takes a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandShell {
    /// A shell that takes a command after `-c`.
    Posix(PathBuf),
    /// `PowerShell`.
    PowerShell(PathBuf),
    /// `cmd.exe`.
    Cmd(PathBuf),
}

impl CommandShell {
    /// Returns the configured shell, or that of the system.
    ///
    /// # Errors
    /// If the configured one does not exist.
    pub(super) fn of(
        configured: Option<&str>,
        environment: &[(String, String)],
    ) -> std::io::Result<Self> {
        let variable = |name: &str| {
            let mut variables = environment.iter();
            variables.find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
        };
        match configured {
            Some(shell) => {
                let (path, extensions) = (variable("PATH"), variable("PATHEXT"));
                let lookup = ProgramLookup { path, extensions, folder: None };
                Ok(Self::at(lookup.find(shell)?))
            }
            // By absolute path, so that an `sh` in the workspace is not run.
            None if cfg!(not(windows)) => Ok(Self::Posix("/bin/sh".into())),
            None => Ok(Self::of_windows(variable("SystemRoot"), Path::is_file)),
        }
    }

    /// The shell of Windows: the `PowerShell` that is a part of it, or else `cmd.exe`.
    fn of_windows(root: Option<&str>, exists: impl Fn(&Path) -> bool) -> Self {
        let root = root.unwrap_or(r"C:\Windows");
        let in_system = |file: &str| PathBuf::from(format!(r"{root}\System32\{file}"));
        let powershell = in_system(r"WindowsPowerShell\v1.0\powershell.exe");
        match exists(&powershell) {
            true => Self::PowerShell(powershell),
            false => Self::Cmd(in_system("cmd.exe")),
        }
    }

    fn at(program: PathBuf) -> Self {
        let shown = program.to_string_lossy();
        let name = shown.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
        match name.trim_end_matches(".exe") {
            "powershell" | "pwsh" => Self::PowerShell(program),
            "cmd" if name == "cmd.exe" => Self::Cmd(program),
            _ => Self::Posix(program),
        }
    }

    /// Returns the process that runs a command.
    pub(super) fn running(&self, command: &str) -> Command {
        match self {
            Self::Posix(program) => with_args(program, &["-c", command]),
            Self::PowerShell(program) => {
                let args = ["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", command];
                with_args(program, &args)
            }
            Self::Cmd(program) => with_cmd(program, command),
        }
    }
}

fn with_args(program: &Path, args: &[&str]) -> Command {
    let mut shell = Command::new(program);
    shell.args(args);
    shell
}

#[cfg(windows)]
fn with_cmd(program: &Path, command: &str) -> Command {
    let mut shell = Command::new(program);
    // The shell takes the line verbatim; the usual quoting would change it.
    shell.raw_arg("/D /S /C \"").raw_arg(command).raw_arg("\"");
    shell
}

#[cfg(not(windows))]
fn with_cmd(program: &Path, command: &str) -> Command {
    with_args(program, &["/D", "/S", "/C", command])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_of_windows_is_the_powershell_that_is_a_part_of_it() {
        let powershell = r"D:\Win\System32\WindowsPowerShell\v1.0\powershell.exe";
        let root = Some(r"D:\Win");
        let found = CommandShell::of_windows(root, |file| file == Path::new(powershell));
        assert_eq!(found, CommandShell::PowerShell(powershell.into()));
        let none = CommandShell::of_windows(None, |_| false);
        assert_eq!(none, CommandShell::Cmd(r"C:\Windows\System32\cmd.exe".into()));
    }

    #[test]
    fn a_configured_shell_gets_the_command_as_it_takes_it() {
        let args = |shell: &str| {
            let command = CommandShell::at(shell.into()).running("a \"b\"");
            let args = command.as_std().get_args().map(|it| it.to_str().unwrap().to_owned());
            args.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(args("/usr/bin/bash"), "-c a \"b\"");
        assert_eq!(args(r"C:\Program Files\Git\bin\bash.exe"), "-c a \"b\"");
        for shell in ["pwsh", r"C:\Program Files\PowerShell\7\pwsh.exe", "PowerShell.EXE"] {
            assert_eq!(args(shell), "-NoLogo -NoProfile -NonInteractive -Command a \"b\"");
        }
        #[cfg(not(windows))]
        assert_eq!(args(r"C:\Windows\System32\cmd.exe"), "/D /S /C a \"b\"");
    }
}
