//! `list`: the contents of a folder. Links are shown, not followed.

use std::io;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, DirEntry};
use openclaw_content::Source;
use serde::Deserialize;

use super::super::reply::{OutcomeBuilder, named};
use super::super::workspace::Workspace;
use super::refused;

/// Maximum number of entries shown.
const MAX_ENTRIES: usize = 1_000;
/// Maximum number of entries read per folder.
const MAX_READ: usize = 20_000;

#[derive(Debug, Deserialize)]
pub(in super::super) struct ListArguments {
    path: Option<String>,
    depth: Option<usize>,
}

pub(in super::super) fn list(
    workspace: &Workspace,
    asked: &ListArguments,
    max_chars: usize,
) -> OutcomeBuilder {
    let path = asked.path.as_deref().unwrap_or(".");
    let mut walk = Walk { text: String::new(), entries: 0, max_chars, is_cut: false };
    let walked = workspace.open_folder(path).and_then(|dir| {
        walk.folder(&dir, "", asked.depth.unwrap_or(1))?;
        Ok(())
    });
    if let Err(why) = walked {
        return refused(path, &why);
    }
    let Walk { text, entries, is_cut, .. } = walk;
    if entries == 0 && !is_cut {
        return OutcomeBuilder::default().say(format!("The folder {} is empty.", named(path)));
    }
    let reply = OutcomeBuilder::default().show(text.trim_end(), Source::file(path));
    if !is_cut {
        return reply;
    }
    reply.cut().say(format!("There is more: only {entries} entries are shown. List a part of it."))
}

struct Walk {
    text: String,
    entries: usize,
    max_chars: usize,
    is_cut: bool,
}

impl Walk {
    /// Lists a folder. The recursion is bounded: the schema limits `depth`.
    fn folder(&mut self, dir: &Dir, prefix: &str, depth: usize) -> io::Result<()> {
        let mut entries = Vec::new();
        let mut all = dir.entries()?;
        for entry in all.by_ref().take(MAX_READ) {
            let entry = entry?;
            entries.push((entry.file_name(), entry));
        }
        self.is_cut |= all.next().is_some();
        entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        for (name, entry) in entries {
            let shown = format!("{prefix}{}", one_line(&name.to_string_lossy()));
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !self.line(&format!("{shown}{}", described(&entry))) {
                return Ok(());
            }
            if is_folder && depth > 1 {
                // It may have been replaced, or be inaccessible: then no entries are shown.
                if let Ok(inner) = dir.open_dir_nofollow(&name) {
                    let _ = self.folder(&inner, &format!("{shown}/"), depth - 1);
                }
            }
        }
        Ok(())
    }

    /// Adds a line if it is within the limits.
    fn line(&mut self, line: &str) -> bool {
        let has_room = self.entries < MAX_ENTRIES && self.text.len() + line.len() < self.max_chars;
        if has_room {
            self.entries += 1;
            self.text.push_str(line);
            self.text.push('\n');
        } else {
            self.is_cut = true;
        }
        has_room
    }
}

/// A name may contain line breaks, and would look like several entries.
fn one_line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn described(entry: &DirEntry) -> String {
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => "/".to_owned(),
        Ok(kind) if kind.is_file() => match entry.metadata() {
            Ok(metadata) => format!(" ({} bytes)", metadata.len()),
            Err(_) => String::new(),
        },
        Ok(kind) if kind.is_symlink() => " (symbolic link)".to_owned(),
        _ => " (special file)".to_owned(),
    }
}
