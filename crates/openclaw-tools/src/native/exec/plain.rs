//! The words of a command that a shell runs as they stand.

/// Splits a plain command: one that starts a single program with literal arguments. `None` if the
/// shell may do anything else with it, such as start a second command, write to a file, or replace
/// a variable: its words would not say what is run.
pub(super) fn plain_words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = command.chars();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
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
            '-' | '_' | '.' | '/' | ':' | '@' | ',' | '+' | '=' | '%' => {
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

    #[test]
    fn quoted_words_are_literal() {
        let words = plain_words(r#"git commit -m "one; two" 'three | four'"#).unwrap();
        assert_eq!(words, ["git", "commit", "-m", "one; two", "three | four"]);
        assert_eq!(plain_words("g'i't status").unwrap(), ["git", "status"]);
        assert_eq!(plain_words("'' x").unwrap(), ["", "x"]);
    }

    #[test]
    fn a_command_that_does_more_than_its_words_say_is_not_plain() {
        for command in [
            "ls x; rm -rf .",
            "ls x && rm x",
            "ls x | sh",
            "ls x & rm x",
            "ls x\nrm x",
            "ls x\rrm x",
            "ls x > x",
            "ls x >x",
            "ls x >>x",
            "ls x 2>x",
            "ls x &>x",
            "ls x < x",
            "ls x <<x",
            "ls x <(rm x)",
            "ls x || rm x",
            "ls x |& sh",
            "ls x \n rm x",
            "\nls x",
            "ls x\0rm x",
            "ls x \u{2028}rm x",
            "ls x ${x}",
            "ls x $x",
            "ls x \"${x:-`rm x`}\"",
            "ls x !x",
            "ls x ?",
            "ls x [a]",
            "! ls x",
            "{ ls x",
            "ls\\ x",
            "ls x \\\nrm x",
            "ls x $(rm x)",
            "ls x `rm x`",
            "ls x \"$(rm x)\"",
            "ls x \"`rm x`\"",
            "ls x 'a\\' x 'b; rm x'",
            "ls x \\; x",
            "ls x (x)",
            "ls x {a,b}",
            "ls x *",
            "ls x ~",
            "ls x # x",
            "ls x 'open",
            "PATH=/tmp ls x",
            "LD_PRELOAD=./x.so ls",
            "\u{a0}ls x",
            "",
            "  ",
        ] {
            assert_eq!(plain_words(command), None, "{command:?}");
        }
    }
}
