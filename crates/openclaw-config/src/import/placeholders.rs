//! Translates placeholders in the strings of other programs to our syntax.

use std::path::Path;

use crate::text::is_variable_name;

/// The placeholders that a program expands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceholderDialect {
    /// None.
    None,
    /// `${NAME}` and `${NAME:-default}`.
    Shell,
    /// `$NAME`, `${NAME}` and `${NAME:-default}`.
    Variables,
    /// `{env:NAME}`.
    Braces,
    /// Ours: nothing is translated.
    Ours,
    /// `${env:NAME}`, `${input:id}`, `${workspaceFolder}` and similar.
    Editor,
}

/// The values that placeholders may refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceholderValues<'a> {
    pub(super) home: Option<&'a Path>,
    /// The folder of the project that the file belongs to.
    pub(super) project: Option<&'a Path>,
}

/// Placeholders that editors expand and this program does not support.
const UNKNOWN_HERE: &[&str] =
    &["command", "config", "file", "workspaceFolder", "workspaceFolderBasename", "userHome"];

/// Translates a text to our syntax, preserving its meaning.
pub(super) fn translate(
    text: &str,
    dialect: PlaceholderDialect,
    context: PlaceholderValues<'_>,
    notes: &mut Vec<String>,
) -> String {
    match dialect {
        PlaceholderDialect::Ours => return text.to_owned(),
        PlaceholderDialect::Braces => return braces(text, notes),
        _ => {}
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        rest = &rest[dollar + 1..];
        let braced = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        if let Some((inner, after)) = braced.filter(|_| dialect != PlaceholderDialect::None)
            && let Some(ours) = placeholder(inner, dialect, context, notes)
        {
            out.push_str(&ours);
            rest = after;
            continue;
        }
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
        if let Some(name) =
            name.filter(|it| dialect == PlaceholderDialect::Variables && is_variable_name(it))
        {
            out.push_str(&format!("${{{name}}}"));
            rest = &rest[name.len()..];
            continue;
        }
        // Plain text there; in our syntax, some dollar signs would begin a variable.
        let is_special = |c: char| c.is_ascii_uppercase() || matches!(c, '_' | '{' | '$');
        out.push_str(if rest.starts_with(is_special) { "$$" } else { "$" });
    }
    out.push_str(rest);
    out
}

/// Translates `{env:NAME}`. A dollar sign is plain text.
fn braces(text: &str, notes: &mut Vec<String>) -> String {
    let plain = |text: &str| {
        let context = PlaceholderValues { home: None, project: None };
        translate(text, PlaceholderDialect::None, context, &mut Vec::new())
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(&plain(before));
        let inner = after.split_once('}');
        let variable = inner.and_then(|(inner, rest)| Some((inner.strip_prefix("env:")?, rest)));
        if let Some((name, after)) = variable.filter(|(name, _)| is_variable_name(name)) {
            out.push_str(&format!("${{{name}}}"));
            rest = after;
            continue;
        }
        if after.starts_with("file:") {
            notes.push("`{file:…}` is not supported here: use a `secret://file/` reference".into());
        }
        out.push('{');
        rest = after;
    }
    out.push_str(&plain(rest));
    out
}

/// Translates the text between `${` and `}`. `None` if it is not a placeholder in this dialect.
fn placeholder(
    inner: &str,
    dialect: PlaceholderDialect,
    context: PlaceholderValues<'_>,
    notes: &mut Vec<String>,
) -> Option<String> {
    let project = || context.project.map(literal);
    if matches!(dialect, PlaceholderDialect::Shell | PlaceholderDialect::Variables) {
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
                "it prompts for `{what}`: set the variable `{name}`, or use a `secret://` reference"
            ));
            Some(format!("${{{name}}}"))
        }
        "userHome" => context.home.map(literal),
        "workspaceFolder" if context.project.is_some() => project(),
        "workspaceFolderBasename" if context.project.is_some() => {
            context.project.and_then(Path::file_name).map(|name| literal(Path::new(name)))
        }
        "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR.to_string()),
        // Anything else may be part of a password, so it is not quoted.
        _ if UNKNOWN_HERE.contains(&kind) => {
            notes.push(format!("`${{{kind}}}` is not supported here: write its value"));
            None
        }
        _ => None,
    }
}

/// Escapes a path so that nothing in it is expanded.
fn literal(path: &Path) -> String {
    path.to_string_lossy().replace('$', "$$")
}

/// Returns the name of the variable that replaces a prompt for user input.
fn variable_for(id: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = id.chars().map(upper).collect();
    if is_variable_name(&name) { name } else { format!("INPUT_{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(text: &str, dialect: PlaceholderDialect) -> (String, Vec<String>) {
        let context = PlaceholderValues {
            home: Some(Path::new("/home/u")),
            project: Some(Path::new("/p$X/app")),
        };
        let mut notes = Vec::new();
        (translate(text, dialect, context, &mut notes), notes)
    }

    #[test]
    fn plain_text_stays_plain_text() {
        for (text, ours) in [
            ("pa$$WORD", "pa$$$$WORD"),
            ("${HOME}", "$${HOME}"),
            ("$HOME $ref 5$", "$$HOME $ref 5$"),
        ] {
            assert_eq!(translated(text, PlaceholderDialect::None).0, ours);
        }
        // And expands to the original text.
        let lookup = |_: &str| Some("replaced".to_owned());
        for text in ["pa$$WORD", "${HOME}", "$$$", "$_a", "a$b$$C${", "${a b}"] {
            for dialect in [PlaceholderDialect::None, PlaceholderDialect::Editor] {
                let ours = translated(text, dialect).0;
                assert_eq!(crate::text::expand(&ours, &lookup).value, text, "{ours}");
            }
        }
    }

    #[test]
    fn variables_keep_their_meaning() {
        assert_eq!(translated("${A}/${B:-x} $C", PlaceholderDialect::Shell).0, "${A}/${B:-x} $$C");
        assert_eq!(
            translated("Bearer ${env:TOKEN}", PlaceholderDialect::Editor).0,
            "Bearer ${TOKEN}"
        );
        assert_eq!(translated("${userHome}/x", PlaceholderDialect::Editor).0, "/home/u/x");
        assert_eq!(translated("${workspaceFolder}/x", PlaceholderDialect::Editor).0, "/p$$X/app/x");
        assert_eq!(translated("${workspaceFolderBasename}", PlaceholderDialect::Editor).0, "app");
    }

    #[test]
    fn a_prompt_for_input_becomes_a_variable_with_a_note() {
        let (ours, notes) = translated("${input:api-key}", PlaceholderDialect::Editor);
        assert_eq!(ours, "${API_KEY}");
        assert!(notes[0].contains("`API_KEY`"), "{notes:?}");
        assert_eq!(translated("${input:1}", PlaceholderDialect::Editor).0, "${INPUT_1}");
        let (ours, notes) = translated("${command:x}", PlaceholderDialect::Editor);
        assert_eq!(ours, "$${command:x}");
        assert_eq!(notes.len(), 1);
    }
}
