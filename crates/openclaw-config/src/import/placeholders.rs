//! Placeholders in the texts of other programs, and how they are written here.

use std::path::Path;

use crate::text::is_variable_name;

/// What a program replaces in the texts of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Nothing.
    None,
    /// `${NAME}` and `${NAME:-default}`.
    Shell,
    /// `${env:NAME}`, `${input:id}`, `${workspaceFolder}` and the like.
    Editor,
}

/// What placeholders may refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) home: Option<&'a Path>,
    /// The folder of the project that the file is for.
    pub(super) project: Option<&'a Path>,
}

/// What editors replace, and this program cannot.
const UNKNOWN_HERE: &[&str] =
    &["command", "config", "file", "workspaceFolder", "workspaceFolderBasename", "userHome"];

/// Writes a text in our form: it means here what it meant there.
pub(super) fn translate(
    text: &str,
    dialect: Dialect,
    context: Context<'_>,
    notes: &mut Vec<String>,
) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        rest = &rest[dollar + 1..];
        let braced = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        if let Some((inner, after)) = braced.filter(|_| dialect != Dialect::None)
            && let Some(ours) = placeholder(inner, dialect, context, notes)
        {
            out.push_str(&ours);
            rest = after;
            continue;
        }
        // Plain text there; here, some dollar signs would begin a variable.
        let is_special = |c: char| c.is_ascii_uppercase() || matches!(c, '_' | '{' | '$');
        out.push_str(if rest.starts_with(is_special) { "$$" } else { "$" });
    }
    out.push_str(rest);
    out
}

/// What stands between `${` and `}`, in our form. None: it is no placeholder there.
fn placeholder(
    inner: &str,
    dialect: Dialect,
    context: Context<'_>,
    notes: &mut Vec<String>,
) -> Option<String> {
    let project = || context.project.map(literal);
    if dialect == Dialect::Shell {
        let name = inner.split_once(":-").map_or(inner, |(name, _)| name);
        return match name {
            "CLAUDE_PROJECT_DIR" if context.project.is_some() => project(),
            _ => is_variable_name(name).then(|| format!("${{{inner}}}")),
        };
    }
    let (kind, what) = inner.split_once(':').unwrap_or((inner, ""));
    match kind {
        "env" if is_variable_name(what) => Some(format!("${{{what}}}")),
        "input" => {
            let name = variable_for(what);
            notes.push(format!(
                "it asks for `{what}`: set the variable `{name}`, or put a `secret://` reference there"
            ));
            Some(format!("${{{name}}}"))
        }
        "userHome" => context.home.map(literal),
        "workspaceFolder" if context.project.is_some() => project(),
        "workspaceFolderBasename" if context.project.is_some() => {
            context.project.and_then(Path::file_name).map(|name| literal(Path::new(name)))
        }
        "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR.to_string()),
        // Anything else may as well be part of a password: it is not repeated.
        _ if UNKNOWN_HERE.contains(&kind) => {
            notes.push(format!("`${{{kind}}}` is not supported here: write its value"));
            None
        }
        _ => None,
    }
}

/// A path as text in which nothing is replaced.
fn literal(path: &Path) -> String {
    path.to_string_lossy().replace('$', "$$")
}

/// The name of a variable that stands for something a person is asked for.
fn variable_for(id: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = id.chars().map(upper).collect();
    if is_variable_name(&name) { name } else { format!("INPUT_{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(text: &str, dialect: Dialect) -> (String, Vec<String>) {
        let context =
            Context { home: Some(Path::new("/home/u")), project: Some(Path::new("/p$X/app")) };
        let mut notes = Vec::new();
        (translate(text, dialect, context, &mut notes), notes)
    }

    #[test]
    fn what_is_plain_text_there_is_plain_text_here() {
        for (text, ours) in [
            ("pa$$WORD", "pa$$$$WORD"),
            ("${HOME}", "$${HOME}"),
            ("$HOME $ref 5$", "$$HOME $ref 5$"),
        ] {
            assert_eq!(translated(text, Dialect::None).0, ours);
        }
        // And is read back as it was.
        let lookup = |_: &str| Some("replaced".to_owned());
        for text in ["pa$$WORD", "${HOME}", "$$$", "$_a", "a$b$$C${", "${a b}"] {
            for dialect in [Dialect::None, Dialect::Editor] {
                let ours = translated(text, dialect).0;
                assert_eq!(crate::text::expand(&ours, &lookup).value, text, "{ours}");
            }
        }
    }

    #[test]
    fn variables_keep_their_meaning() {
        assert_eq!(translated("${A}/${B:-x} $C", Dialect::Shell).0, "${A}/${B:-x} $$C");
        assert_eq!(translated("Bearer ${env:TOKEN}", Dialect::Editor).0, "Bearer ${TOKEN}");
        assert_eq!(translated("${userHome}/x", Dialect::Editor).0, "/home/u/x");
        assert_eq!(translated("${workspaceFolder}/x", Dialect::Editor).0, "/p$$X/app/x");
        assert_eq!(translated("${workspaceFolderBasename}", Dialect::Editor).0, "app");
    }

    #[test]
    fn what_a_person_is_asked_for_becomes_a_variable_and_is_told() {
        let (ours, notes) = translated("${input:api-key}", Dialect::Editor);
        assert_eq!(ours, "${API_KEY}");
        assert!(notes[0].contains("`API_KEY`"), "{notes:?}");
        assert_eq!(translated("${input:1}", Dialect::Editor).0, "${INPUT_1}");
        let (ours, notes) = translated("${command:x}", Dialect::Editor);
        assert_eq!(ours, "$${command:x}");
        assert_eq!(notes.len(), 1);
    }
}
