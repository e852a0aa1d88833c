//! Commands that are known to be harmless: the only ones that can be approved by their first words.
//!
//! Whatever its arguments, such a command only reads and prints: it writes no file (but `sort`
//! temporary ones), runs no other program, connects to nothing, and opens only files below the
//! workspace. Absent, although often harmless: programs that obey a configuration that the agent can
//! write, such as `git` (fsmonitor, filters, textconv, hooks), `cargo`, `npm`, `make`, `docker` and
//! `kubectl`; programs with a language of their own that reaches files or processes, such as `awk`,
//! `sed` and `jq` (modules, environment); `ps`, which can show the environments of other processes; and
//! `rg`, which reads the ignore files of all folders above.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path};

use Operands::{Files, Format, Nothing, OneFile, RegularFiles, Text};

/// A program, and what may follow its name. Whatever is not listed needs an approval.
struct Program {
    name: &'static str,
    options: Options,
    operands: Operands,
}

/// Options of a program. None of them names a file: a value may be anything.
enum Options {
    /// As `getopt` reads them. Long ones must be written in full.
    Getopt {
        /// Letters without a value; `#` is a word of digits alone.
        flags: &'static str,
        /// Letters with a value, in the same word or the next. With `#`, one in the same word must be a
        /// number: `tail` reads `-cf` as in the old days, and follows the file.
        values: &'static str,
        /// Long options without `--`, separated by spaces.
        long: &'static str,
    },
    /// Whole words, separated by spaces.
    Words(&'static str),
}

/// Arguments that do not begin with a dash, and values of options in words of their own.
#[derive(Clone, Copy)]
enum Operands {
    Nothing,
    /// Anything: the program opens no file.
    Text,
    /// Files and folders of the workspace; text that could be one, such as a pattern, counts.
    Files,
    /// Files, but no folders: links in them would be followed.
    RegularFiles,
    /// At most one file. A second one would be written.
    OneFile,
    /// A format after `+`. Anything else would set the clock.
    Format,
}

const fn program(
    name: &'static str,
    flags: &'static str,
    values: &'static str,
    long: &'static str,
    operands: Operands,
) -> Program {
    Program { name, options: Options::Getopt { flags, values, long }, operands }
}

/// The table. Options are listed if they are harmless in GNU and BSD programs alike.
#[rustfmt::skip]
const HARMLESS: &[Program] = &[
    // What is in a folder.
    program("ls", "1aAbBcCdFgGhiklmnNopqQrRsStuUvxXZ", "", "all almost-all classify color directory file-type full-time group-directories-first human-readable inode no-group numeric-uid-gid recursive reverse si size sort time time-style", Files),
    program("dir", "1aAlhrRtS", "", "all almost-all color human-readable recursive", Files),
    // After `-L`, further letters of the word are options, too.
    Program { name: "tree", options: Options::Words("-a -d -f -h -i -p -s -u -I -L -P --dirsfirst --noreport"), operands: Files },
    program("du", "achkmsx", "d", "all apparent-size bytes human-readable max-depth one-file-system si summarize time total", Files),
    program("stat", "", "c", "format printf terse", Files),
    program("file", "bhikN", "", "brief mime mime-encoding mime-type", Files),
    Program {
        name: "find",
        options: Options::Words("-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -maxdepth -mindepth -depth -size -empty -mtime -mmin -ctime -cmin -atime -amin -newer -user -group -perm -prune -not -and -or -a -o -true -false -print -print0 -ls -quit -xdev -mount"),
        operands: Files,
    },
    // What is in a file.
    program("cat", "AbeEnstTuv", "", "number number-nonblank show-all show-ends show-nonprinting show-tabs squeeze-blank", Files),
    program("tac", "b", "", "before", Files),
    program("head", "#qv", "#cn", "bytes lines quiet silent verbose", Files),
    program("tail", "#qv", "#cn", "bytes lines quiet silent verbose", Files),
    program("wc", "clLmw", "", "bytes chars lines max-line-length words", Files),
    program("nl", "p", "bfhnsvw", "", Files),
    program("grep", "abcEFGhHiIlLnoPqrsvVwxyzZ0123456789", "ABCem", "after-context basic-regexp before-context byte-offset color context count exclude exclude-dir extended-regexp files-with-matches files-without-match fixed-strings ignore-case include initial-tab invert-match line-number line-regexp max-count no-filename no-messages null only-matching perl-regexp quiet recursive regexp silent text with-filename word-regexp", Files),
    program("diff", "abBcdeiNpqsuwy0123456789", "U", "brief color ignore-all-space ignore-blank-lines ignore-case ignore-space-change side-by-side text unified", RegularFiles),
    program("cmp", "bls", "", "print-bytes quiet silent verbose", Files),
    program("comm", "123i", "", "check-order nocheck-order total", Files),
    program("cut", "ns", "bcdf", "bytes characters complement delimiter fields only-delimited output-delimiter", Files),
    program("paste", "s", "d", "delimiters serial", Files),
    program("join", "i", "12ajotv", "check-order header ignore-case", Files),
    program("sort", "bcCdfghiMnrRsuVz", "kt", "check debug dictionary-order field-separator general-numeric-sort human-numeric-sort ignore-case ignore-leading-blanks ignore-nonprinting key month-sort numeric-sort reverse sort stable unique version-sort zero-terminated", Files),
    program("uniq", "cdDiu", "fsw", "all-repeated count ignore-case repeated skip-chars skip-fields unique", OneFile),
    program("tr", "cCdst", "", "complement delete squeeze-repeats truncate-set1", Text),
    program("rev", "", "", "", Files),
    program("fold", "bs", "w", "bytes spaces width", Files),
    program("fmt", "csu", "w", "", Files),
    program("expand", "i", "t", "initial tabs", Files),
    program("unexpand", "a", "t", "all first-only tabs", Files),
    program("column", "tx", "cs", "separator table", Files),
    program("strings", "afo", "nt", "all bytes print-file-name radix", Files),
    program("od", "bcdosvx", "AjNtw", "address-radix format read-bytes skip-bytes", Files),
    program("hexdump", "bcCdovx", "ns", "canonical length skip", Files),
    program("base64", "dD", "w", "decode ignore-garbage wrap", OneFile),
    program("cksum", "", "", "", Files),
    program("md5sum", "bt", "", "binary text", Files),
    program("sha1sum", "bt", "", "binary text", Files),
    program("sha256sum", "bt", "", "binary text", Files),
    program("sha512sum", "bt", "", "binary text", Files),
    // Names.
    program("basename", "az", "s", "multiple suffix zero", Text),
    program("dirname", "z", "", "zero", Text),
    program("readlink", "efmnz", "", "canonicalize canonicalize-existing canonicalize-missing no-newline", Files),
    program("realpath", "emqsz", "", "canonicalize-existing canonicalize-missing no-symlinks quiet strip", Files),
    program("which", "as", "", "all", Text),
    // Text and numbers.
    program("echo", "eEn", "", "", Text),
    program("printf", "", "", "", Text),
    program("seq", "w", "fst", "equal-width format separator", Text),
    program("true", "", "", "", Text),
    program("false", "", "", "", Text),
    // The system.
    program("pwd", "LP", "", "", Nothing),
    program("date", "Ru", "I", "iso-8601 rfc-3339 rfc-email universal utc", Format),
    program("uptime", "ps", "", "pretty since", Nothing),
    program("whoami", "", "", "", Nothing),
    program("id", "gGnru", "", "group groups name real user", Nothing),
    program("groups", "", "", "", Nothing),
    program("uname", "amnoprsv", "", "all kernel-name kernel-release kernel-version machine nodename operating-system", Nothing),
    program("arch", "", "", "", Nothing),
    program("nproc", "", "", "all", Nothing),
    program("free", "bghkmtw", "", "bytes giga human kibi mebi total wide", Nothing),
    program("lscpu", "", "", "json", Nothing),
    program("df", "ahiHkmPT", "", "all human-readable inodes local print-type total", Files),
];

/// Whether a command is known to be harmless in this folder. Reads the folder: a link in it may lead
/// outside.
pub(super) fn is_harmless(words: &[String], folder: &Path) -> bool {
    let Some((program, arguments)) = find(words) else { return false };
    let is_option = |word: &&String| word.starts_with('-');
    // Programs of BSD take everything after the first operand for one, too.
    let first = arguments.iter().position(|word| !is_option(&word)).unwrap_or(arguments.len());
    let operands: Vec<&str> = arguments[first..].iter().map(String::as_str).collect();
    // Wherever it stands: `--` may be the value of an option, and then what follows it is one.
    arguments.iter().filter(is_option).all(|word| program.options.contain(word))
        && program.operands.allow(&operands, folder)
}

/// Whether a program is in the table.
pub(super) fn is_listed(program: &str) -> bool {
    HARMLESS.iter().any(|it| it.name == program)
}

fn find(words: &[String]) -> Option<(&'static Program, &[String])> {
    let (name, arguments) = words.split_first()?;
    Some((HARMLESS.iter().find(|program| program.name == name)?, arguments))
}

impl Options {
    /// Whether a word that begins with a dash consists of listed options.
    fn contain(&self, word: &str) -> bool {
        match self {
            Self::Words(words) => words.split(' ').any(|it| it == word),
            Self::Getopt { long, .. } if word.starts_with("--") => {
                let name = word.split('=').next().unwrap_or(word);
                long.split(' ').any(|it| !it.is_empty() && name.strip_prefix("--") == Some(it))
            }
            Self::Getopt { flags, .. } if flags.contains('#') && is_number(&word[1..]) => true,
            Self::Getopt { flags, values, .. } => {
                let rest = word[1..].trim_start_matches(|it| flags.contains(it));
                let mut letters = rest.chars();
                let Some(letter) = letters.next() else { return word.len() > 1 };
                // What follows a letter with a value is the value.
                let value = letters.as_str();
                let value = value.strip_prefix(['+', '-']).unwrap_or(value);
                let is_value = value.is_empty() || is_number(value) || !values.contains('#');
                letter != '#' && values.contains(letter) && is_value
            }
        }
    }
}

impl Operands {
    fn allow(self, words: &[&str], folder: &Path) -> bool {
        let is_file = |word: &&str| is_below(word, folder);
        match self {
            Nothing => words.is_empty(),
            Text => true,
            Files => words.iter().all(is_file),
            RegularFiles => {
                words.iter().all(|word| is_below(word, folder) && !folder.join(word).is_dir())
            }
            OneFile => words.len() <= 1 && words.iter().all(is_file),
            Format => words.iter().all(|word| word.starts_with('+')),
        }
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word names no file outside of a folder, even by links, and no device, pipe or socket.
fn is_below(word: &str, folder: &Path) -> bool {
    // `strings` reads arguments from `@FILE`, and `tail` reads `+1f` as options.
    let is_option =
        word.starts_with('@') || word.strip_prefix('+').is_some_and(|it| !is_number(it));
    let is_name = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if is_option || !Path::new(word).components().all(is_name) {
        return false;
    }
    openclaw_files::canonical(folder).is_ok_and(|folder| stays_below(Path::new(word), &folder))
}

/// How many links a path may lead through, as in Linux.
const MAX_LINKS: usize = 40;

/// Whether a path leads to a file or folder below a folder, or to nothing. Its links are followed
/// here, not by the system: links through `/proc` lead elsewhere in the process of the program than in
/// this one (`/proc/self/cwd`), or to what has no name (`/proc/PID/fd/3`). So no step may leave the
/// folder, and what is at the end of a link must exist.
fn stays_below(path: &Path, folder: &Path) -> bool {
    let mut file = folder.to_owned();
    let mut ahead: VecDeque<OsString> = path.iter().map(OsString::from).collect();
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        match Path::new(&name).components().next() {
            Some(Component::Normal(_)) => {}
            Some(Component::CurDir) | None => continue,
            Some(Component::ParentDir) if file != folder => {
                // Without links up to here, so this is its parent.
                file.pop();
                continue;
            }
            Some(_) => return false,
        }
        file.push(&name);
        match file.symlink_metadata() {
            Ok(about) if about.is_symlink() => {
                links += 1;
                let Ok(target) = file.read_link() else { return false };
                file.pop();
                let target = if target.is_absolute() {
                    let Ok(below) = target.strip_prefix(folder) else { return false };
                    folder.clone_into(&mut file);
                    below.to_owned()
                } else {
                    target
                };
                if links > MAX_LINKS {
                    return false;
                }
                for name in target.iter().rev() {
                    ahead.push_front(name.to_owned());
                }
            }
            Ok(about) if about.is_file() || about.is_dir() => {}
            Ok(_) => return false,
            Err(error) => {
                let is_missing =
                    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
                return is_missing && links == 0;
            }
        }
    }
    true
}

/// Programs that are many in one file, and differ: their `grep -r` follows links.
const MANY_IN_ONE: [&str; 2] = ["busybox", "toybox"];

/// Whether a shell with this search path starts a program that the agent cannot have written: it
/// and all folders that are searched before it are outside of the workspace.
pub(super) fn is_installed(program: &str, search_path: Option<&str>, folder: &Path) -> bool {
    let (Some(search_path), Ok(folder)) = (search_path, openclaw_files::canonical(folder)) else {
        return false;
    };
    for searched in std::env::split_paths(search_path) {
        let is_inside = match openclaw_files::canonical(&searched) {
            Ok(real) => real.starts_with(&folder),
            Err(_) => searched.starts_with(&folder),
        };
        if is_inside || !searched.is_absolute() {
            return false;
        }
        let file = searched.join(program);
        if !file.is_file() {
            continue;
        }
        let Ok(real) = openclaw_files::canonical(&file) else { return false };
        if real.starts_with(&folder) || MANY_IN_ONE.iter().any(|it| real.ends_with(it)) {
            return false;
        }
        // The shell skips another one.
        if is_executable(&real) {
            return true;
        }
    }
    false
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

#[cfg(all(test, unix))]
#[path = "harmless_tests.rs"]
mod tests;
