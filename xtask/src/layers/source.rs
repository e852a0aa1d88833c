//! Which top-level modules a source file names.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree, token_stream};

type Tokens = Peekable<token_stream::IntoIter>;

/// The root of a crate: its modules, and which of them has what it exports.
pub(super) struct Root {
    pub(super) modules: BTreeSet<String>,
    /// The module of each name that is imported or exported.
    exports: BTreeMap<String, String>,
}

impl Root {
    /// Reads `lib.rs` or `main.rs`.
    pub(super) fn read(text: &str) -> Self {
        let mut root = Self { modules: BTreeSet::new(), exports: BTreeMap::new() };
        let mut tokens = parsed(text);
        while let Some(token) = tokens.next() {
            if is_test_attribute(&token, &mut tokens) {
                skip_item(&mut tokens);
            } else if is_word(&token, "mod") {
                root.modules.extend(tokens.next().map(|name| name.to_string()));
            } else if is_word(&token, "use") {
                root.add_imports(&mut tokens);
            }
        }
        root
    }

    fn add_imports(&mut self, tokens: &mut Tokens) {
        let mut module = None;
        for token in tokens.by_ref() {
            match token {
                TokenTree::Punct(it) if it.as_char() == ';' => return,
                TokenTree::Ident(it) if it == "crate" || it == "self" => {}
                TokenTree::Ident(it) => match &module {
                    None => module = Some(it.to_string()),
                    Some(module) => drop(self.exports.insert(it.to_string(), module.clone())),
                },
                TokenTree::Group(group) => {
                    let Some(module) = &module else { continue };
                    for name in words(&group) {
                        self.exports.insert(name, module.clone());
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the module that `crate::name` belongs to.
    pub(super) fn module_of(&self, name: &str) -> Option<&str> {
        // A function may have the name of a module.
        let exported = || self.modules.get(self.exports.get(name)?);
        self.modules.get(name).or_else(exported).map(String::as_str)
    }
}

/// Returns the names that stand behind `crate::`, or behind as many `super::` as lead to the root from a
/// module that is this deep in the crate.
pub(super) fn used(text: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect(&mut parsed(text), depth, &mut names);
    names
}

fn collect(tokens: &mut Tokens, depth: usize, names: &mut BTreeSet<String>) {
    while let Some(token) = tokens.next() {
        if is_test_attribute(&token, tokens) {
            skip_item(tokens);
        } else if is_word(&token, "crate") {
            add_names(tokens, names);
        } else if is_word(&token, "super") {
            add_names_above(tokens, depth, names);
        } else if is_word(&token, "mod") {
            tokens.next();
            if let Some(TokenTree::Group(body)) =
                tokens.next_if(|it| matches!(it, TokenTree::Group(_)))
            {
                collect(&mut body.stream().into_iter().peekable(), depth + 1, names);
            }
        } else if let TokenTree::Group(group) = token {
            collect(&mut group.stream().into_iter().peekable(), depth, names);
        }
    }
}

/// Follows `super::super::…` behind the first `super`.
fn add_names_above(tokens: &mut Tokens, depth: usize, names: &mut BTreeSet<String>) {
    let mut left = depth - 1;
    while left > 0 {
        let mut ahead = tokens.clone();
        if !(skip_colons(&mut ahead) && ahead.next().is_some_and(|it| is_word(&it, "super"))) {
            return;
        }
        *tokens = ahead;
        left -= 1;
    }
    add_names(tokens, names);
}

/// Adds `a` of `::a`, or `a` and `b` of `::{a::x, b}`.
fn add_names(tokens: &mut Tokens, names: &mut BTreeSet<String>) {
    if !skip_colons(tokens) {
        return;
    }
    match tokens.next() {
        Some(TokenTree::Ident(name)) => drop(names.insert(name.to_string())),
        Some(TokenTree::Group(group)) => names.extend(first_words(&group)),
        _ => {}
    }
}

fn skip_colons(tokens: &mut Tokens) -> bool {
    let is_colon = |it: &TokenTree| matches!(it, TokenTree::Punct(it) if it.as_char() == ':');
    tokens.next_if(is_colon).is_some() && tokens.next_if(is_colon).is_some()
}

/// Returns the first word of each part between commas.
fn first_words(group: &Group) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_first = true;
    for token in group.stream() {
        match token {
            TokenTree::Punct(it) if it.as_char() == ',' => is_first = true,
            TokenTree::Ident(it) if is_first => {
                found.push(it.to_string());
                is_first = false;
            }
            _ => {}
        }
    }
    found
}

/// Returns all words of a group and the groups in it.
fn words(group: &Group) -> Vec<String> {
    let all = group.stream().into_iter().flat_map(|token| match token {
        TokenTree::Ident(it) => vec![it.to_string()],
        TokenTree::Group(group) => words(&group),
        _ => Vec::new(),
    });
    all.collect()
}

/// Consumes `[cfg(test)]`, or another condition that needs tests, behind a `#`.
fn is_test_attribute(token: &TokenTree, tokens: &mut Tokens) -> bool {
    let TokenTree::Punct(mark) = token else { return false };
    if mark.as_char() != '#' {
        return false;
    }
    let text = match tokens.peek() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
            group.stream().to_string().replace(' ', "")
        }
        _ => return false,
    };
    let is_test = text == "cfg(test)" || text.starts_with("cfg(all(test,");
    if is_test {
        tokens.next();
    }
    is_test
}

/// Skips what an attribute belongs to.
fn skip_item(tokens: &mut Tokens) {
    for token in tokens.by_ref() {
        match token {
            TokenTree::Punct(it) if it.as_char() == ';' => return,
            TokenTree::Group(it) if it.delimiter() == Delimiter::Brace => return,
            _ => {}
        }
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(it) if it == word)
}

/// Splits a source file into tokens. One that is not Rust has none: the compiler reports it.
fn parsed(text: &str) -> Tokens {
    let tokens: TokenStream = text.parse().unwrap_or_default();
    tokens.into_iter().peekable()
}

#[cfg(test)]
mod tests {
    use super::{Root, used};

    fn names(text: &str, depth: usize) -> Vec<String> {
        used(text, depth).into_iter().collect()
    }

    #[test]
    fn paths_from_the_root_are_found_wherever_they_stand() {
        let text = "use crate::a::X; use crate::{b::{Y, z}, c}; fn f() { m!(crate::d::g()); }";
        assert_eq!(names(text, 1), ["a", "b", "c", "d"]);
    }

    #[test]
    fn comments_texts_and_tests_do_not_count() {
        let text = "//! [`crate::a`]\nconst T: &str = \"crate::b\"; #[cfg(test)] mod tests { use crate::c; }";
        assert!(names(text, 1).is_empty());
    }

    #[test]
    fn super_counts_where_it_leads_to_the_root() {
        let text = "use super::x; use super::super::y; mod inner { use super::super::super::z; }";
        assert_eq!(names(text, 1), ["super", "x"]);
        assert_eq!(names(text, 2), ["y", "z"]);
    }

    #[test]
    fn what_the_root_exports_belongs_to_its_module() {
        let root = Root::read(
            "mod a; mod b; #[cfg(test)] mod t; pub use a::{X, y::Z as W}; pub use b::V;",
        );
        assert_eq!(root.module_of("X"), Some("a"));
        assert_eq!(root.module_of("W"), Some("a"));
        assert_eq!(root.module_of("V"), Some("b"));
        assert_eq!(root.module_of("b"), Some("b"));
        assert_eq!(root.module_of("t"), None);
    }
}
