//! The words of a command, for approvals of commands that begin alike.

use crate::grant::GrantRule;

/// The number of words in the longest prefix that is offered.
const MOST_OFFERED: usize = 2;
/// The number of words in the longest prefix that can be approved.
const MOST_WORDS: usize = 8;

/// Programs that run the command in their arguments, and builtins of the shell that do: no prefix of
/// theirs limits what is run.
const WRAPPERS: [&str; 35] = [
    ".",
    "at",
    "batch",
    "builtin",
    "busybox",
    "chroot",
    "cmd",
    "command",
    "doas",
    "env",
    "eval",
    "exec",
    "expect",
    "find",
    "ionice",
    "nice",
    "nohup",
    "nsenter",
    "parallel",
    "runuser",
    "script",
    "setsid",
    "source",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "time",
    "timeout",
    "trap",
    "unshare",
    "watch",
    "xargs",
];
/// Programs that run the script or package in their arguments: a prefix must name it.
const INTERPRETERS: [&str; 28] = [
    "awk",
    "bash",
    "bun",
    "bunx",
    "csh",
    "dash",
    "deno",
    "fish",
    "gawk",
    "ksh",
    "lua",
    "node",
    "nodejs",
    "npx",
    "osascript",
    "perl",
    "php",
    "pipx",
    "powershell",
    "pwsh",
    "pypy",
    "python",
    "ruby",
    "sed",
    "sh",
    "tcsh",
    "uvx",
    "zsh",
];

/// Returns the approvals that cover a command, the narrowest first: the command itself, then its
/// first words if it is plain.
pub(in crate::native) fn covering(command: &str) -> Vec<GrantRule> {
    let mut grants = vec![GrantRule::Command(command.to_owned())];
    let words = plain_words(command).unwrap_or_default();
    let prefixes = (shortest_prefix(&words)..=words.len().min(MOST_WORDS)).rev();
    grants.extend(prefixes.map(|length| GrantRule::CommandPrefix(words[..length].to_vec())));
    grants
}

/// Returns the approvals to offer for a command, the narrowest first.
pub(in crate::native) fn offered(command: &str) -> Vec<GrantRule> {
    let is_offered = |grant: &GrantRule| match grant {
        GrantRule::CommandPrefix(words) => words.len() <= MOST_OFFERED,
        _ => true,
    };
    covering(command).into_iter().filter(is_offered).collect()
}

/// Returns the approval of all commands that begin with these words.
///
/// # Errors
/// Why the words do not limit what is run.
pub fn command_prefix(words: &str) -> Result<GrantRule, String> {
    let fail = |words: &str| Err(words.to_owned());
    if words.trim().is_empty() {
        return fail("`exec` needs the first words of the commands to allow, such as `git status`");
    }
    let Some(words) = plain_words(words) else {
        return fail(
            "a prefix consists of plain words: no `;`, `|`, `&`, `>`, `$`, wildcards or line breaks",
        );
    };
    if words.len() > MOST_WORDS {
        return fail("a prefix has at most eight words");
    }
    if words.len() < shortest_prefix(&words) {
        let program: String = words.iter().take(1).flat_map(|word| word.chars().take(40)).collect();
        return Err(format!(
            "`{program}` runs other commands, so it cannot be allowed by its name: add the script if it \
             runs one, or approve each call"
        ));
    }
    Ok(GrantRule::CommandPrefix(words))
}

/// Returns how many words a prefix must have at least; more than there are if none is possible.
fn shortest_prefix(words: &[String]) -> usize {
    let Some(program) = words.first() else { return 1 };
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let is_file = |word: &String| !word.is_empty() && !word.starts_with(['-', '+']);
    // Nothing is left of `.`, the builtin.
    if name.is_empty() || WRAPPERS.contains(&name) {
        return usize::MAX;
    }
    match (INTERPRETERS.contains(&name), words.get(1)) {
        (false, _) => 1,
        (true, Some(second)) if is_file(second) && !matches!(name, "awk" | "gawk" | "sed") => 2,
        (true, _) => usize::MAX,
    }
}

/// Splits a plain command: one that starts a single program with literal arguments. `None` if the
/// shell may do anything else with it, such as start a second command, write to a file, or replace
/// a variable: a prefix would allow more than its words say.
fn plain_words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = command.chars();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' => words.extend(word.take()),
            // `cmd.exe` knows no single quotes, and replaces variables in double ones.
            '\'' | '"' if cfg!(unix) => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        end if end == next => break,
                        // Other shells read a backslash in single quotes differently.
                        '\\' | '$' | '`' | '!' => return None,
                        inner if inner.is_control() => return None,
                        inner => word.push(inner),
                    }
                }
            }
            '%' if cfg!(unix) => word.get_or_insert_default().push(next),
            '-' | '_' | '.' | '/' | ':' | '@' | ',' | '+' | '=' => {
                word.get_or_insert_default().push(next);
            }
            _ if next.is_alphanumeric() => word.get_or_insert_default().push(next),
            _ => return None,
        }
    }
    words.extend(word);
    // The first word may set a variable instead of naming a program.
    let names_a_program = words.first().is_some_and(|first| !first.contains('='));
    names_a_program.then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(words: &[&str]) -> GrantRule {
        GrantRule::CommandPrefix(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn a_plain_command_is_covered_by_itself_and_by_its_first_words() {
        let command = "git  status --short";
        let expected =
            [GrantRule::Command(command.to_owned()), prefix(&["git", "status"]), prefix(&["git"])];
        assert_eq!(offered(command), expected);
        assert_eq!(covering("ls"), [GrantRule::Command("ls".to_owned()), prefix(&["ls"])]);
        assert!(covering(command).contains(&prefix(&["git", "status", "--short"])));
        assert!(!covering("git stash").contains(&prefix(&["git", "status"])));
        assert!(!covering("git statusx").contains(&prefix(&["git", "status"])));
        assert_eq!(command_prefix("git  'status'"), Ok(prefix(&["git", "status"])));
    }

    #[test]
    fn a_program_that_runs_any_command_has_no_prefix() {
        for command in [
            "env git status",
            "/usr/bin/env git status",
            "sudo git status",
            "xargs git",
            "find . -delete",
            "sh -c 'rm x'",
            "bash",
            "python3.12 -c 'import os'",
            "python -m x",
            "node -e x",
            "eval 'rm x'",
            ". ./script",
            "SH -c x",
            "awk 'BEGIN{system(1)}'",
            "sed -n 1e x",
        ] {
            let exactly = GrantRule::Command(command.to_owned());
            assert_eq!(covering(command), [exactly], "{command:?}");
            assert!(command_prefix(command).is_err(), "{command:?}");
        }
        let script = prefix(&["python3", "manage.py"]);
        assert_eq!(command_prefix("python3 manage.py"), Ok(script.clone()));
        assert_eq!(covering("python3 manage.py test").last(), Some(&script));
    }

    #[test]
    fn a_prefix_consists_of_plain_words() {
        for words in ["git status; rm x", "git status |sh", "git *", "A=b git", "git\nrm", "", "$x"]
        {
            assert!(command_prefix(words).is_err(), "{words:?}");
        }
        assert!(command_prefix("a b c d e f g h i").is_err());
        let sudo = command_prefix("sudo ls").unwrap_err();
        assert!(sudo.starts_with("`sudo` runs other commands"), "{sudo}");
    }

    #[cfg(unix)]
    #[test]
    fn quoted_words_are_literal() {
        let words = plain_words(r#"git commit -m "one; two" 'three | four'"#).unwrap();
        assert_eq!(words, ["git", "commit", "-m", "one; two", "three | four"]);
        assert_eq!(plain_words("g'i't status").unwrap(), ["git", "status"]);
        assert_eq!(plain_words("'' x").unwrap(), ["", "x"]);
    }

    #[test]
    fn a_command_that_does_more_than_its_first_words_say_has_no_prefix() {
        for command in [
            "git status; rm -rf .",
            "git status && rm x",
            "git status | sh",
            "git status & rm x",
            "git status\nrm x",
            "git status\rrm x",
            "git status > x",
            "git status >x",
            "git status >>x",
            "git status 2>x",
            "git status &>x",
            "git status < x",
            "git status <<x",
            "git status <(rm x)",
            "git status || rm x",
            "git status |& sh",
            "git status \n rm x",
            "\ngit status",
            "git status\0rm x",
            "git status \u{2028}rm x",
            "git status ${x}",
            "git status $x",
            "git status \"${x:-`rm x`}\"",
            "git status !x",
            "git status ?",
            "git status [a]",
            "! git status",
            "{ git status",
            "git\\ status",
            "git status \\\nrm x",
            "git status $(rm x)",
            "git status `rm x`",
            "git status \"$(rm x)\"",
            "git status \"`rm x`\"",
            "git status 'a\\' x 'b; rm x'",
            "git status \\; x",
            "git status (x)",
            "git status {a,b}",
            "git status *",
            "git status ~",
            "git status # x",
            "git status 'open",
            "PATH=/tmp git status",
            "\u{a0}git status",
            "",
            "  ",
        ] {
            assert_eq!(covering(command), [GrantRule::Command(command.to_owned())], "{command:?}");
        }
    }
}
