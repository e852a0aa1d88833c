//! Approvals of commands: exactly as they stand, or all harmless ones that begin alike.

use std::path::Path;

use super::ExecSettings;
use super::harmless::{is_harmless, is_installed, is_listed};
use super::plain::plain_words;
use crate::grant::GrantRule;

/// The number of words in the longest prefix that is offered.
const MOST_OFFERED: usize = 2;
/// The number of words in the longest prefix that can be approved.
const MOST_WORDS: usize = 8;

/// Returns the approvals that cover a command, the narrowest first: the command itself, then its
/// first words if it is harmless.
pub(super) fn covering(command: &str, settings: &ExecSettings, folder: &Path) -> Vec<GrantRule> {
    let mut grants = vec![GrantRule::Command(command.to_owned())];
    let words = harmless_words(command, settings, folder).unwrap_or_default();
    let prefixes = (1..=words.len().min(MOST_WORDS)).rev();
    grants.extend(prefixes.map(|length| GrantRule::CommandPrefix(words[..length].to_vec())));
    grants
}

/// Returns the approvals to offer for a command, the narrowest first.
pub(super) fn offered(command: &str, settings: &ExecSettings, folder: &Path) -> Vec<GrantRule> {
    let is_offered = |grant: &GrantRule| match grant {
        GrantRule::CommandPrefix(words) => words.len() <= MOST_OFFERED,
        _ => true,
    };
    covering(command, settings, folder).into_iter().filter(is_offered).collect()
}

/// Returns the approval of a command in advance: of all harmless commands that begin with it, or of
/// exactly this one if it is not known to be harmless in this folder. `None` if there is no command.
///
/// ```
/// # #[cfg(unix)] {
/// use openclaw_tools::GrantRule;
/// use openclaw_tools::native::{ExecSettings, command_rule};
///
/// let folder = std::env::temp_dir();
/// let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
/// let settings = ExecSettings { environment: vec![path], ..ExecSettings::default() };
/// let exactly = GrantRule::Command("git status".to_owned());
/// assert_eq!(command_rule("git status", &settings, &folder), Some(exactly));
/// let prefix = GrantRule::CommandPrefix(vec!["ls".to_owned()]);
/// assert_eq!(command_rule("ls", &settings, &folder), Some(prefix));
/// # }
/// ```
pub fn command_rule(command: &str, settings: &ExecSettings, folder: &Path) -> Option<GrantRule> {
    if command.trim().is_empty() {
        return None;
    }
    let words = harmless_words(command, settings, folder);
    Some(match words.filter(|words| words.len() <= MOST_WORDS) {
        Some(words) => GrantRule::CommandPrefix(words),
        None => GrantRule::Command(command.to_owned()),
    })
}

/// Whether an approval of commands that begin with these words can cover any: not if the program is
/// not known to be harmless, as in approvals of older versions.
pub fn prefix_applies(words: &[String]) -> bool {
    // `cmd.exe` looks for programs in the current folder first, where the agent can write them.
    cfg!(unix) && words.first().is_some_and(|program| is_listed(program))
}

/// The words of a harmless command. There are none with a configured shell, which may read words
/// differently, and start with a file that the agent can write, such as `.zshenv`.
fn harmless_words(command: &str, settings: &ExecSettings, folder: &Path) -> Option<Vec<String>> {
    if settings.shell.is_some() {
        return None;
    }
    let words = plain_words(command).filter(|words| prefix_applies(words))?;
    let search_path = settings.environment.iter().find(|(name, _)| name == "PATH");
    let search_path = search_path.map(|(_, value)| value.as_str());
    let is_installed = is_installed(words.first()?, search_path, folder);
    (is_installed && is_harmless(&words, folder)).then_some(words)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn prefix(words: &[&str]) -> GrantRule {
        GrantRule::CommandPrefix(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn exactly(command: &str) -> GrantRule {
        GrantRule::Command(command.to_owned())
    }

    fn settings() -> ExecSettings {
        let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        ExecSettings { environment: vec![path], ..ExecSettings::default() }
    }

    #[test]
    fn a_harmless_command_is_covered_by_itself_and_by_its_first_words() {
        let folder = tempfile::tempdir().unwrap();
        let covering = |command: &str| covering(command, &settings(), folder.path());
        let command = "ls  -l sub";
        assert_eq!(
            covering(command),
            [
                exactly(command),
                prefix(&["ls", "-l", "sub"]),
                prefix(&["ls", "-l"]),
                prefix(&["ls"])
            ]
        );
        let offered = offered(command, &settings(), folder.path());
        assert_eq!(offered, [exactly(command), prefix(&["ls", "-l"]), prefix(&["ls"])]);
        for other in ["git status", "ls; rm x", "ls --unknown", "ls /", "/bin/ls", "npm ls", ""] {
            assert_eq!(covering(other), [exactly(other)], "{other}");
        }
        let with_shell = ExecSettings { shell: Some("/bin/zsh".to_owned()), ..settings() };
        for settings in [ExecSettings::default(), with_shell] {
            assert_eq!(super::covering("ls", &settings, folder.path()), [exactly("ls")]);
        }
    }

    #[test]
    fn a_command_that_is_not_known_to_be_harmless_is_allowed_exactly() {
        let folder = tempfile::tempdir().unwrap();
        let rule = |command: &str| command_rule(command, &settings(), folder.path());
        assert_eq!(rule("ls  '-l'"), Some(prefix(&["ls", "-l"])));
        for command in [
            "git status",
            "sudo ls",
            "echo a; id",
            "ls *",
            "A=b ls",
            "sh -c",
            "./ls",
            "cat /etc/hostname",
            "sort -o x y",
            "ls a b c d e f g h",
        ] {
            assert_eq!(rule(command), Some(exactly(command)));
        }
        let no_path = ExecSettings::default();
        assert_eq!(command_rule("ls", &no_path, folder.path()), Some(exactly("ls")));
        assert_eq!(rule("  "), None);
        assert!(prefix_applies(&["ls".to_owned()]) && !prefix_applies(&["git".to_owned()]));
        assert!(!prefix_applies(&[]));
    }
}
