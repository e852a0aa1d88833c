//! Finds the program that a configured name means, and checks the arguments for it.
//!
//! On Unix, the operating system does that. On Windows it only finds `.exe` files, while most programs
//! that are installed with `npm` are `.cmd` files: a name without an extension is looked up as a shell
//! does it, with the extensions in `PATHEXT`. A `.cmd` or `.bat` file is run by `cmd.exe`, for which the
//! standard library quotes the arguments; those that cannot be quoted are refused here.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use tokio::process::Command;

/// Extensions of what can be started, in the usual order. Others in `PATHEXT` belong to scripts that
/// Windows opens with another program.
const STARTABLE: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];

/// The variables and the folder that a program is started with.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProgramLookup<'a> {
    /// `PATH`.
    pub path: Option<&'a str>,
    /// `PATHEXT`; the usual extensions if it is not set.
    pub extensions: Option<&'a str>,
    /// The working folder. Paths are relative to it; a bare name is not looked up there.
    pub folder: Option<&'a Path>,
}

/// Arguments that cannot be passed to a batch file: `cmd.exe` would run a part of them as a command, or
/// lose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an argument has a line break or a NUL, which cannot be passed to a batch file (.cmd, .bat) safely"
)]
pub struct UnsafeArgument;

impl ProgramLookup<'_> {
    /// Returns the file of a program, or on Unix its name, which the operating system looks up.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn find(&self, name: impl AsRef<OsStr>) -> io::Result<PathBuf> {
        if cfg!(unix) {
            return Ok(PathBuf::from(name.as_ref()));
        }
        let found = self.find_on_windows(&name.as_ref().to_string_lossy());
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns a command for a program with these arguments.
    ///
    /// # Errors
    /// If there is no such program, or it is a batch file and an [argument is unsafe](UnsafeArgument).
    pub fn command<'a>(
        &self,
        name: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> io::Result<Command> {
        let program = self.find(name)?;
        let arguments: Vec<&str> = arguments.into_iter().collect();
        check_arguments(&program.to_string_lossy(), &arguments)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(command)
    }

    fn find_on_windows(&self, name: &str) -> Option<PathBuf> {
        let folders = std::env::split_paths(self.path.unwrap_or_default());
        // Others would be relative to the current folder, which may belong to somebody else.
        let folders = folders.filter(|folder| folder.is_absolute());
        let folders: Vec<String> =
            folders.map(|folder| folder.to_string_lossy().into_owned()).collect();
        let folder = self.folder.map(|folder| folder.to_string_lossy().into_owned());
        let files = candidates(name, folder.as_deref(), &folders, self.extensions);
        files.map(PathBuf::from).find(|file| file.is_file())
    }
}

/// Returns the files that a name may mean on Windows, the first one that exists is the program.
fn candidates<'a>(
    name: &'a str,
    folder: Option<&'a str>,
    path: &'a [String],
    extensions: Option<&'a str>,
) -> impl Iterator<Item = String> + 'a {
    let is_path = name.contains(['\\', '/', ':']);
    let is_absolute = name.starts_with(['\\', '/']) || name.contains(':');
    let folders: Vec<&str> = match (is_path, folder) {
        (true, Some(folder)) if !is_absolute => vec![folder],
        (true, _) => vec![""],
        (false, _) => path.iter().map(String::as_str).collect(),
    };
    let extensions = startable(extensions);
    let has_extension = extensions.iter().any(|extension| ends_with(name, extension));
    let mut names = Vec::new();
    if !has_extension {
        names.extend(extensions.iter().map(|extension| format!("{name}{extension}")));
    }
    // A file without any extension is a script for another system.
    let file_name = name.rsplit(['\\', '/']).next().unwrap_or(name);
    if has_extension || file_name.contains('.') {
        names.push(name.to_owned());
    }
    folders.into_iter().flat_map(move |folder| {
        let names = names.clone();
        names.into_iter().map(move |name| match folder.trim_end_matches(['\\', '/']) {
            "" => name,
            folder => format!("{folder}\\{name}"),
        })
    })
}

/// The extensions in `PATHEXT` that can be started, in its order.
fn startable(extensions: Option<&str>) -> Vec<String> {
    let usual = || STARTABLE.map(str::to_owned).to_vec();
    let Some(extensions) = extensions else { return usual() };
    let extensions = extensions.split(';').map(|it| it.trim().to_ascii_lowercase());
    let extensions: Vec<String> =
        extensions.filter(|it| STARTABLE.contains(&it.as_str())).collect();
    if extensions.is_empty() { usual() } else { extensions }
}

fn ends_with(name: &str, extension: &str) -> bool {
    let start = name.len().checked_sub(extension.len());
    start.and_then(|at| name.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(extension))
}

/// Checks that arguments can be passed to a program: any can, except to a batch file.
///
/// # Errors
/// If one of them would be split or cut off by `cmd.exe`.
pub fn check_arguments(program: &str, arguments: &[&str]) -> Result<(), UnsafeArgument> {
    let is_batch = [".bat", ".cmd"].iter().any(|extension| ends_with(program, extension));
    let is_unsafe = |argument: &&str| argument.contains(['\r', '\n', '\0']);
    match is_batch && arguments.iter().any(is_unsafe) {
        true => Err(UnsafeArgument),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: [&str; 2] = [r"C:\Windows", r"C:\nodejs\"];

    fn found(name: &str, folder: Option<&str>, pathext: Option<&str>, files: &[&str]) -> String {
        let path = PATH.map(str::to_owned);
        // As on Windows: either separator, in any case.
        let same = |a: &str, b: &str| a.replace('/', r"\").eq_ignore_ascii_case(b);
        let exists = |file: &String| files.iter().any(|it| same(file, it));
        candidates(name, folder, &path, pathext).find(exists).unwrap_or_default()
    }

    #[test]
    fn a_bare_name_is_found_with_the_extensions_in_pathext() {
        // What `npm` installs: the first is a script for a Unix shell.
        let files = [r"C:\nodejs\npx", r"C:\nodejs\npx.cmd", r"C:\nodejs\npx.ps1"];
        for pathext in [None, Some(""), Some(".COM;.EXE;.BAT;.CMD;.VBS"), Some(".PS1; .Cmd")] {
            assert_eq!(found("npx", None, pathext, &files), r"C:\nodejs\npx.cmd", "{pathext:?}");
        }
        assert_eq!(found("npx", None, Some(".EXE"), &files), "");
        assert_eq!(found("npx.CMD", None, None, &files), r"C:\nodejs\npx.CMD");
        assert_eq!(found("npx.cmd", None, None, &["npx.cmd"]), "", "not in the current folder");
    }

    #[test]
    fn the_first_folder_counts_before_the_first_extension() {
        let files = [r"C:\Windows\tool.bat", r"C:\nodejs\tool.exe", r"C:\Windows\tool.exe"];
        assert_eq!(found("tool", None, Some(".EXE;.BAT"), &files), r"C:\Windows\tool.exe");
        assert_eq!(found("tool", None, Some(".BAT;.EXE"), &files), r"C:\Windows\tool.bat");
        assert_eq!(found("tool", None, None, &files[..2]), r"C:\Windows\tool.bat");
        let dotted = [r"C:\nodejs\python3.12.exe"];
        assert_eq!(found("python3.12", None, None, &dotted), dotted[0]);
    }

    #[test]
    fn a_path_is_relative_to_the_working_folder_and_not_looked_up() {
        let files = [r"D:\work\bin\serve.cmd", r"C:\tools\serve.exe", r"\\host\share\serve.exe"];
        assert_eq!(found(r"bin\serve", Some(r"D:\work"), None, &files), files[0]);
        assert_eq!(found("bin/serve", Some(r"D:\work\"), None, &files), r"D:\work\bin/serve.cmd");
        assert_eq!(found(r"C:\tools\serve", Some(r"D:\work"), None, &files), files[1]);
        assert_eq!(found(r"\\host\share\serve.exe", None, None, &files), files[2]);
        assert_eq!(found(r".\npx", None, None, &[r"C:\nodejs\npx.cmd"]), "");
    }

    #[test]
    fn only_batch_files_refuse_arguments() {
        let odd = ["a b", "\"&|<>^%PATH%!", "é"];
        assert_eq!(check_arguments(r"C:\nodejs\npx.cmd", &odd), Ok(()), "they can be quoted");
        for unsafe_one in ["a\nb", "a\r", "\0"] {
            assert_eq!(check_arguments(r"C:\npx.CMD", &["a", unsafe_one]), Err(UnsafeArgument));
            assert_eq!(check_arguments("x.bat", &[unsafe_one]), Err(UnsafeArgument));
            assert_eq!(check_arguments(r"C:\node.exe", &[unsafe_one]), Ok(()));
        }
    }
}
