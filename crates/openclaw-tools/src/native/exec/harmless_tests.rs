//! The table, command by command.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::super::plain::plain_words;
use super::*;

/// At least one command per program, with most of its options.
const EXAMPLES: &str = "
ls -la sub
ls --color=never -1
ls -R .
dir -la
tree -a -L 2
du -sh .
du --max-depth=1 sub
stat -c %s a.txt
file -b a.txt
find . -maxdepth 2 -type f -name '*.txt' -print
find sub -newer a.txt -ls
cat -n a.txt sub/b.txt
tac a.txt
head -n 1 a.txt
head -5 a.txt
head -c10 a.txt
tail -n +2 a.txt
wc -lw a.txt
nl -ba a.txt
grep -rn 'o.e' sub
grep -A3 -e one --include='*.txt' -r .
diff -u a.txt sub/b.txt
cmp -s a.txt sub/b.txt
comm -12 a.txt sub/b.txt
cut -d, -f1 a.txt
paste -sd, a.txt
join a.txt sub/b.txt
sort -rnk1 a.txt
sort --key=1 a.txt
uniq -c a.txt
tr a b
rev a.txt
fold -w 20 a.txt
fmt -w 20 a.txt
expand -t4 a.txt
unexpand -a a.txt
column -t a.txt
strings -n 3 a.txt
od -An -tx1 a.txt
hexdump -C a.txt
base64 a.txt
cksum a.txt
md5sum a.txt
sha1sum a.txt
sha256sum a.txt
sha512sum a.txt
basename sub/b.txt .txt
dirname sub/b.txt
readlink -f a.txt
realpath sub
which -a sh
echo -n 'a; b'
printf '%s, %s' a b
seq 1 3
true
false
pwd -P
date -u '+%F %T'
date --iso-8601=seconds
uptime -p
whoami
id -un
groups
uname -a
arch
nproc
free -m
lscpu
df -h .
";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("work/sub")).unwrap();
        for (name, text) in [
            ("outside", "secret\n"),
            ("work/a.txt", "one 1\ntwo 2\n"),
            ("work/sub/b.txt", "one 2\n"),
            ("work/c.json", "{\"a\": {}}"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    fn covers(&self, command: &str) -> bool {
        plain_words(command).is_some_and(|words| is_harmless(&words, &self.work()))
    }

    /// What is in the folder.
    fn content(&self) -> BTreeMap<PathBuf, String> {
        let mut content = BTreeMap::new();
        let mut folders = vec![self.0.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                content.insert(path.clone(), fs::read_to_string(path).unwrap_or_default());
            }
        }
        content
    }
}

fn examples() -> impl Iterator<Item = &'static str> {
    EXAMPLES.lines().filter(|line| !line.is_empty())
}

#[test]
fn every_program_of_the_table_is_covered_and_changes_nothing() {
    let folder = Folder::new();
    let before = folder.content();
    for command in examples() {
        assert!(folder.covers(command), "{command}");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).current_dir(folder.work());
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // It may not be installed.
        shell.status().unwrap();
        assert_eq!(folder.content(), before, "{command}");
    }
    let programs = |it: &&str| it.split(' ').next().unwrap_or_default().to_owned();
    let shown: std::collections::BTreeSet<_> = examples().map(|it| programs(&it)).collect();
    let listed = HARMLESS.iter().map(|program| program.name.to_owned()).collect();
    assert_eq!(shown, listed, "every program has an example");
}

#[test]
fn no_program_has_an_option_that_writes_runs_or_reads_a_list_of_files() {
    let folder = Folder::new();
    for program in HARMLESS {
        let name = program.name;
        for option in [
            "--",
            "-",
            "---x",
            "--output=x",
            "--output",
            "--outp=x",
            "--compress-program=x",
            "--pre=x",
            "--pre",
            "--search-zip",
            "--hostname-bin=x",
            "--files0-from=x",
            "--files-from=x",
            "--file=x",
            "--set=x",
            "--follow",
            "--dereference",
            "--dereference-recursive",
            "--paginate",
            "--magic-file=x",
            "--uncompress",
            "--unknown",
            "-\u{e9}",
        ] {
            assert!(!folder.covers(&format!("{name} '{option}'")), "{name} {option}");
        }
        // Elsewhere the letter only changes what is printed.
        let prints = ["find", "grep", "hexdump", "join", "ls", "od", "strings", "uname"];
        if !prints.contains(&name) {
            assert!(!folder.covers(&format!("{name} -o x")), "{name}");
        }
    }
    for action in ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprintf"] {
        assert!(!folder.covers(&format!("find . {action} x")), "{action}");
    }
}

#[test]
fn options_that_are_combined_abbreviated_or_hidden_behind_dashes_are_not_covered() {
    let folder = Folder::new();
    for command in [
        "sort -ro x a.txt",
        "sort -uox a.txt",
        "sort --outp=x a.txt",
        "sort --key -- --output=x a.txt",
        "sort -k -- -ox a.txt",
        "sort -- -ox",
        "sort -T sub a.txt",
        "sort -S1 a.txt",
        "tree -ao x",
        "tree -Lo 1 x",
        "tree -R -L 1 -H . -o x",
        "uniq a.txt x",
        "uniq -- a.txt x",
        "uniq -c a.txt x",
        "base64 -o x",
        "date -s 2020-01-01",
        "date -us 2020-01-01",
        "date 01010000",
        "date --set=x",
        "hostname x",
        "file -C -m x",
        "file -bz a.txt",
        "find . -fprintf x a",
        "find . -type f -delete",
        "find . -exec touch x",
        "find -L .",
        "find . -follow",
        "diff -rl . sub",
        "diff -r . sub",
        "diff sub .",
        "grep -R secret .",
        "grep -f a.txt b",
        "md5sum -c a.txt",
        "wc --files0-from=a.txt",
        "arch -x86_64 touch x",
        "printf -v x y",
        "tail -f a.txt",
        "tail -5f a.txt",
        "tail -1cf a.txt",
        "tail -cf a.txt",
        "tail -qcf a.txt",
        "tail -nf a.txt",
        "tail -c5f a.txt",
        "head -c# a.txt",
        "tail -# a.txt",
        "tail +1f a.txt",
        "date --date='TZ=\"/etc/passwd\" now'",
        "strings @a.txt",
        "cat ls @a.txt",
        "ps auxe",
        "ls @a.txt --unknown",
        "ls ----all",
        "ls --=x",
    ] {
        assert!(!folder.covers(command), "{command}");
    }
}

#[test]
fn nothing_outside_of_the_workspace_is_covered() {
    let folder = Folder::new();
    let work = folder.work();
    std::os::unix::fs::symlink("../outside", work.join("link")).unwrap();
    std::os::unix::fs::symlink("..", work.join("up")).unwrap();
    std::os::unix::fs::symlink("a.txt", work.join("inner")).unwrap();
    for command in [
        "cat /etc/passwd",
        "cat ../outside",
        "cat sub/../../outside",
        "cat link",
        "cat up/outside",
        "cat ./link",
        "head -n 1 a.txt link",
        "grep -r secret up",
        "grep -r secret ..",
        "ls /",
        "find /",
        "find .. -name x",
        "find . -newer /etc/passwd",
        "du -s /",
        "cat '/etc/passwd'",
        "df /",
        "cat //etc/passwd",
        "cat /proc/self/environ",
    ] {
        assert!(!folder.covers(command), "{command}");
    }
    assert!(folder.covers("cat inner sub/b.txt ./a.txt missing"));
}

#[test]
fn no_link_leads_elsewhere_in_another_process() {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    let folder = Folder::new();
    let work = folder.work();
    // For the program, but not in this process, it is the workspace.
    let own = std::env::current_dir().unwrap();
    let mut deleted = tempfile::tempfile().unwrap();
    deleted.write_all(b"secret").unwrap();
    let magic = format!("/proc/{}/fd/{}", std::process::id(), deleted.as_raw_fd());
    fs::create_dir(work.join("real")).unwrap();
    fs::write(work.join("real/outside"), "decoy").unwrap();
    for (name, target) in [
        ("cwd", "/proc/self/cwd/../outside"),
        ("cwd-file", "/proc/self/cwd/a.txt"),
        ("root", "/proc/self/root"),
        ("descriptor", &magic),
        ("out-and-in", "../work/a.txt"),
        ("far", "sub/../../work/a.txt"),
        ("dangling", "missing"),
        ("absolute", "/missing"),
        ("chain", "cwd"),
        ("folder-chain", "sub/../root/etc/passwd"),
        ("loop", "loop"),
        ("own", own.to_str().unwrap()),
    ] {
        std::os::unix::fs::symlink(target, work.join(name)).unwrap();
        assert!(!folder.covers(&format!("cat {name}")), "{name} -> {target}");
        assert!(!folder.covers(&format!("cat {name}/missing")), "{name} -> {target}");
    }
    let real = openclaw_files::canonical(&work).unwrap();
    for (name, target) in [
        ("in", "sub/../sub/./b.txt"),
        ("in-folder", "sub"),
        ("in-absolute", real.join("sub/b.txt").to_str().unwrap()),
        ("in-chain", "in-folder/../in"),
    ] {
        std::os::unix::fs::symlink(target, work.join(name)).unwrap();
        assert!(folder.covers(&format!("cat {name}")), "{name} -> {target}");
    }
    assert!(folder.covers("cat in-folder/b.txt") && folder.covers("cat missing/file"));
    assert!(!folder.covers("cat in-folder/missing"));
}

/// The link leads to a file of the workspace for this process, and to another one for the program.
#[cfg(target_os = "linux")]
#[test]
fn a_link_that_this_process_resolves_to_a_file_of_the_workspace_is_not_covered() {
    let folder = Folder::new();
    let work = folder.work();
    fs::write(work.join("outside"), "decoy").unwrap();
    std::os::unix::fs::symlink("/proc/self/cwd/../outside", work.join("link")).unwrap();
    let resolved = Command::new("realpath")
        .arg(work.join("link"))
        .current_dir(work.join("sub"))
        .output()
        .unwrap();
    let resolved = String::from_utf8(resolved.stdout).unwrap();
    let decoy = openclaw_files::canonical(work.join("outside")).unwrap();
    assert_eq!(resolved.trim(), decoy.to_str().unwrap());
    assert!(!folder.covers("cat link"));
}

#[test]
fn what_follows_an_operand_may_be_an_operand_although_it_begins_with_a_dash() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("../outside", folder.work().join("-n")).unwrap();
    for command in ["cat a.txt -n", "head -c 1 a.txt -n", "uniq a.txt -c", "base64 a.txt -d"] {
        assert!(!folder.covers(command), "{command}");
    }
    for command in ["cat -n a.txt", "cat a.txt -b", "ls sub -l", "grep one a.txt -i"] {
        assert!(folder.covers(command), "{command}");
    }
}

#[test]
fn only_files_and_folders_are_read() {
    let folder = Folder::new();
    let _socket = std::os::unix::net::UnixListener::bind(folder.work().join("socket")).unwrap();
    let pipe = folder.work().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(!folder.covers("cat socket") && !folder.covers("cat pipe"));
}

#[test]
fn only_the_bare_name_of_an_installed_program_is_covered() {
    let folder = Folder::new();
    for command in ["./ls", "/bin/ls", "sub/ls", "LS", "ls.exe", "\u{2010}ls", "lss", "'ls '", "''"]
    {
        assert!(!folder.covers(command), "{command}");
    }
    let work = folder.work();
    let path = |folders: &[&str]| folders.join(":");
    let inside = work.join("sub");
    let inside = inside.to_str().unwrap();
    fs::write(work.join("sub/ls"), "").unwrap();
    assert!(is_installed("ls", Some("/usr/bin:/bin"), &work));
    assert!(is_installed("ls", Some(&path(&["/none", "/usr/bin", "/bin", inside])), &work));
    let link = folder.0.path().join("link");
    std::os::unix::fs::symlink(inside, &link).unwrap();
    let linked = folder.0.path().join("bin");
    fs::create_dir(&linked).unwrap();
    std::os::unix::fs::symlink(work.join("sub/ls"), linked.join("ls")).unwrap();
    for before in ["", ".", "sub", "bin", inside, link.to_str().unwrap(), linked.to_str().unwrap()]
    {
        let path = path(&[before, "/usr/bin", "/bin"]);
        assert!(!is_installed("ls", Some(&path), &work), "{path}");
    }
    let multiple = folder.0.path().join("multiple");
    fs::create_dir(&multiple).unwrap();
    fs::write(multiple.join("busybox"), "").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(multiple.join("busybox"), executable).unwrap();
    std::os::unix::fs::symlink("busybox", multiple.join("ls")).unwrap();
    assert!(!is_installed("ls", multiple.to_str(), &work));
    let skipped = folder.0.path().join("skipped");
    fs::create_dir(&skipped).unwrap();
    fs::write(skipped.join("ls"), "").unwrap();
    let later = path(&[skipped.to_str().unwrap(), inside, "/bin"]);
    assert!(!is_installed("ls", Some(&later), &work), "the shell skips what is not executable");
    for nothing in [None, Some(""), Some("/none")] {
        assert!(!is_installed("ls", nothing, &work), "{nothing:?}");
    }
}
