//! Checks that the program compiles, without warnings, for the systems that this one is not.
//!
//! A check needs no linker and no C library: the C compiler is a script that writes empty files. The
//! targets that `rustup` has installed are used as they are; the standard library of the others is
//! compiled from its [source](library).

mod library;
mod wine;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{Failure, Run as _, failed, hold, root};

/// The targets that are checked.
const TARGETS: [&str; 4] = [
    "x86_64-pc-windows-msvc",
    "aarch64-apple-darwin",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
];
/// What stands in for a C compiler and an archiver.
const C_COMPILER: &str = r#"#!/bin/sh
for last; do
  case "$last" in
    -Fo* | /Fo*) : >"${last#?Fo}" ;;
    -[oO][uU][tT]:* | /[oO][uU][tT]:*) : >"${last#?????}" ;;
    *.a | *.lib) [ "$previous" = -o ] || : >"$last" ;;
  esac
  [ "$previous" = -o ] && : >"$last"
  previous=$last
done
exit 0
"#;
/// The compiler of our crates: a warning is an error.
const STRICT: &str = "#!/bin/sh\nexec \"$@\" --deny warnings\n";

/// Checks the targets, or those named; with `--run`, runs the Windows program under Wine instead.
pub(crate) fn run(args: &[&str]) -> Result<(), Failure> {
    let (folder, _lock) = hold("platforms")?;
    let scripts = Scripts::write(&folder)?;
    if args.first() == Some(&"--run") {
        return wine::run(&folder, &scripts);
    }
    let targets = if args.is_empty() { &TARGETS } else { args };
    let (installed, missing): (Vec<&str>, Vec<&str>) =
        targets.iter().copied().partition(|target| is_installed(target));
    let mut checks = Vec::new();
    if !installed.is_empty() {
        checks.push((installed, None));
    }
    if !missing.is_empty() {
        checks.push((missing, Some(library::install(&folder)?)));
    }
    for (targets, library) in &checks {
        println!("Checking {}", targets.join(", "));
        // What is shipped, and then the unit tests of all crates.
        for what in [
            &["--package", "openclaw"][..],
            &["--workspace", "--lib", "--bins", "--profile", "test"],
        ] {
            let mut cargo = cargo(&folder, &scripts, "check", targets, library.as_deref());
            cargo.arg("--keep-going").args(what).run()?;
        }
    }
    println!("No problems found: {}", targets.join(", "));
    Ok(())
}

/// Whether the standard library of a target is installed.
fn is_installed(target: &str) -> bool {
    let printed =
        Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let path = printed.map(|printed| String::from_utf8_lossy(&printed.stdout).trim().to_owned());
    path.is_ok_and(|path| !path.is_empty() && Path::new(&path).exists())
}

/// Scripts that cargo runs.
struct Scripts {
    c_compiler: PathBuf,
    strict: PathBuf,
}

impl Scripts {
    fn write(folder: &Path) -> Result<Self, Failure> {
        let script = |name: &str, text: &str| {
            let path = folder.join(name);
            let written = fs::write(&path, text)
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
            written.map_err(|error| failed(&path, &error)).map(|()| path)
        };
        Ok(Self { c_compiler: script("cc", C_COMPILER)?, strict: script("strict", STRICT)? })
    }
}

/// Returns a command of cargo for these targets, whose standard library is compiled if it is given.
fn cargo(
    folder: &Path,
    scripts: &Scripts,
    task: &str,
    targets: &[&str],
    library: Option<&Path>,
) -> Command {
    // Through `rustup`, which chooses the compiler; the variables name the one that runs this task.
    let mut cargo = Command::new("cargo");
    cargo.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    cargo.current_dir(root()).env("CARGO_TARGET_DIR", folder.join("target"));
    if let Some(library) = library {
        // Meant for cargo's own tests; without it, only the source that `rustup` installs is found.
        cargo.arg("+nightly").env("__CARGO_TESTS_ONLY_SRC_ROOT", library);
    }
    cargo.arg(task).arg("--locked");
    if library.is_some() {
        cargo.arg("-Zbuild-std=std,panic_abort,test");
    }
    cargo.env("RUSTC_WORKSPACE_WRAPPER", &scripts.strict);
    cargo.env("AWS_LC_SYS_PREBUILT_NASM", "1").env("SDKROOT", "/");
    for target in targets {
        let name = target.replace('-', "_");
        for tool in ["CC", "CXX", "AR"] {
            cargo.env(format!("{tool}_{name}"), &scripts.c_compiler);
        }
        cargo.arg("--target").arg(target);
    }
    cargo
}
