//! Approvals of commands by their first words: only for commands that are known to be harmless.

use std::collections::BTreeSet;

use openclaw_tools::native::{ApprovalKey, Approvals, ExecSettings, NativeSetup};
use openclaw_tools::{ApprovalExtent, GrantRule, RefusedBy, ToolSource as _};
use serde_json::json;

use crate::Bench;

/// Commands that write a file named `marker`, or would with a program that may not be installed.
const ATTACKS: &str = "
flock a.txt touch marker
taskset 1 touch marker
setpriv touch marker
prlimit touch marker
chrt -o 0 touch marker
/lib64/ld-linux-x86-64.so.2 /usr/bin/touch marker
mawk 'BEGIN{print 1 > \"marker\"}'
awk 'BEGIN{print 1 > \"marker\"}'
gdb -batch -ex 'shell touch marker'
vim -es -c 'call writefile([], \"marker\")' -c qa
deno eval 'Deno.writeTextFileSync(\"marker\", 1)'
docker run -v .:/w alpine touch /w/marker
npm exec -c 'touch marker'
tar -cf x.tar a.txt --checkpoint=1 --checkpoint-action=exec='touch marker'
split --filter='touch marker' a.txt
curl -so marker file:a.txt
sort -o marker a.txt
sort --outp=marker a.txt
git log --output=marker
git diff --no-index --output=marker a.txt b.txt
git grep --no-index -Otouch x
git fetch --upload-pack='touch marker' .
git -c core.fsmonitor='touch marker; false' status
find . -maxdepth 0 -exec touch marker ;
find . -maxdepth 0 -exec touch marker '{}' +
find a.txt -fprintf marker x
find a.txt -fprint marker
xargs -a a.txt touch marker
sed -n 'w marker' a.txt
sed -n '1e touch marker' a.txt
env touch marker
nice touch marker
nohup touch marker
timeout 5 touch marker
stdbuf -o0 touch marker
setsid touch marker
watch -g touch marker
script -qc 'touch marker' x
busybox touch marker
uniq a.txt marker
tree -o marker
rg --pre ./run.sh one
node -e 'fs.writeFileSync(\"marker\", 1)'
python3 -c 'open(\"marker\", \"w\")'
perl -e 'open F, \">marker\"'
sh run.sh
./run.sh
/bin/sh run.sh
make
cp a.txt marker
tee marker
dd if=a.txt of=marker
date > marker
ls | tee marker
ls; touch marker
ls && touch marker
ls $(touch marker)
ls \"`touch marker`\"
LD_PRELOAD=./x.so ls
GIT_PAGER='touch marker' git log
ls NEWLINE touch marker
";

fn attacks() -> impl Iterator<Item = String> {
    let lines = ATTACKS.lines().filter(|line| !line.is_empty());
    lines.map(|line| line.replace(" NEWLINE ", "\n"))
}

/// A workspace in which every prefix of a command is approved, as older versions allowed.
fn trusting(command: &str) -> Bench {
    let approvals = Approvals::default();
    let path = std::env::var("PATH").unwrap();
    let exec =
        ExecSettings { environment: vec![("PATH".to_owned(), path)], ..ExecSettings::default() };
    let bench = Bench::with(|setup| NativeSetup { approvals: approvals.clone(), exec, ..setup });
    let words: Vec<String> = command.split(' ').map(ToOwned::to_owned).collect();
    for length in 1..=words.len().min(4) {
        let key = ApprovalKey {
            agent: "main".to_owned(),
            workspace: Some(bench.folder.path().join("workspace")),
            session: None,
            tool: "exec".to_owned(),
            grant: GrantRule::CommandPrefix(words[..length].to_vec()),
        };
        approvals.remember(key).unwrap();
    }
    bench.write("a.txt", "one\n");
    bench.write("b.txt", "two\n");
    bench.write("run.sh", "#!/bin/sh\ntouch marker\ncat\n");
    bench.write("Makefile", "all:\n\ttouch marker\n");
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bench.path("run.sh"), mode).unwrap();
    if command.contains("git") {
        let commit = "git init -q && git add . && git -c user.name=a -c user.email=a commit -qm x";
        let mut shell = std::process::Command::new("/bin/sh");
        // It may not be installed.
        let _ = shell.args(["-c", commit]).current_dir(bench.path("")).status();
    }
    bench
}

#[tokio::test]
async fn no_approved_prefix_lets_a_command_write_a_file_or_run_a_program() {
    let mut worked = BTreeSet::new();
    for command in attacks() {
        let bench = trusting(&command);
        let files = || {
            let names = std::fs::read_dir(bench.path("")).unwrap();
            names.map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>()
        };
        let before = files();
        let asked = || json!({ "command": command, "timeout_ms": 10_000 });
        let outcome = bench.call_as("exec", asked(), None).await;
        assert_eq!(outcome.details.refused, Some(RefusedBy::NobodyToAsk), "{command:?}");
        assert_eq!(files(), before, "{command:?}");
        let offered = offered(&bench, &command);
        assert_eq!(offered, [GrantRule::Command(command.clone())], "{command:?}");
        // That it is an attack at all, where its program is installed.
        let is_local = !["docker", "npm", "deno"].iter().any(|it| command.starts_with(it));
        if is_local {
            bench.call_as("exec", asked(), Some(ApprovalExtent::Once)).await;
        }
        if bench.path("marker").exists() {
            worked.insert(command);
        }
    }
    println!("attacks that work here: {worked:#?}");
    for everywhere in
        ["env touch marker", "nice touch marker", "sort -o marker a.txt", "tee marker"]
    {
        assert!(worked.contains(everywhere), "{worked:?}");
    }
}

fn offered(bench: &Bench, command: &str) -> Vec<GrantRule> {
    let arguments = serde_json::value::to_raw_value(&json!({ "command": command })).unwrap();
    let arguments = &openclaw_tools::Arguments::new(&arguments);
    let now = tokio::time::Instant::now();
    let about = openclaw_tools::ApprovalContext { arguments, session: None, now };
    let offered = bench.tools.find("exec").unwrap().always(about);
    offered.into_iter().map(|option| option.grant).collect()
}

#[tokio::test]
async fn an_approved_prefix_allows_harmless_commands_of_the_folder_only() {
    let bench = trusting("cat");
    bench.write("c.txt", "three");
    std::fs::write(bench.outside("secret"), "four").unwrap();
    std::os::unix::fs::symlink("../secret", bench.path("link")).unwrap();
    let outcome = bench.call_as("exec", json!({ "command": "cat -n c.txt" }), None).await;
    assert!(outcome.text().contains("three"), "{}", outcome.text());
    for other in ["cat ../secret", "cat link", "cat c.txt --unknown", "cat c.txt > d.txt", "ls"] {
        let outcome = bench.call_as("exec", json!({ "command": other }), None).await;
        assert_eq!(outcome.details.refused, Some(RefusedBy::NobodyToAsk), "{other}");
    }
    assert!(!bench.path("d.txt").exists());
}
