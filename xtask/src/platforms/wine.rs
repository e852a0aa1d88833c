//! Runs the Windows program under Wine, which is not Windows: its console, keys and credential manager are
//! untested.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Scripts, cargo, is_installed, library};
use crate::shell::{Failure, Run as _, empty_folder, failed};

const TARGET: &str = "x86_64-pc-windows-gnu";
/// The seconds that a command may take.
const PATIENCE: &str = "120";

/// A command, with its input, its exit code, and a part of its output.
struct Step {
    args: &'static str,
    input: &'static str,
    code: i32,
    shown: &'static str,
}

const fn step(args: &'static str, shown: &'static str) -> Step {
    Step { args, input: "", code: 0, shown }
}

/// Arguments are separated by spaces; `PROGRAM` is the program, `_` a space.
const STEPS: [Step; 24] = [
    step("--version", "openclaw "),
    step("--help", "Usage:"),
    step("config path", "openclaw.json"),
    step("config set tools.exec.timeout 5000", "set"),
    step("config get tools.exec.timeout", "5000"),
    step("config validate", "openclaw.json"),
    step("config show", "5000"),
    step("mcp add clock -- PROGRAM demo-server", "clock"),
    step("mcp list", "clock"),
    step("mcp get clock", "demo-server"),
    step("mcp servers", "clock"),
    step("mcp tools clock", "add"),
    step("mcp call clock add a=5 b=7", "12"),
    Step { args: "mcp call clock nothing", input: "", code: 1, shown: "nothing" },
    step("mcp doctor clock", "clock"),
    step("doctor", "openclaw"),
    step("status", "gateway"),
    step("agent --message what_time_is_it", ":"),
    Step { args: "chat", input: "what is 2 plus 3?\n", code: 0, shown: "5" },
    step("sessions list", "main"),
    step("gateway start", "gateway"),
    step("gateway status", "running"),
    step("gateway stop", "stopped"),
    step("mcp remove clock", "clock"),
];

/// Builds the program, runs the steps in an empty home folder, and checks that no process is left.
pub(super) fn run(folder: &Path, scripts: &Scripts) -> Result<(), Failure> {
    for tool in ["wine", "x86_64-w64-mingw32-gcc"] {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).status();
        found.map_err(|error| {
            let advice = "install Debian's packages `wine64` and `gcc-mingw-w64-x86-64`";
            Failure::new(format!("cannot run `{tool}` ({error}); {advice}"))
        })?;
    }
    let program = build(folder, scripts)?;
    let home = folder.join("wine");
    empty_folder(&home)?;
    // Wine refuses a folder that is not its user's own.
    let prefix = home.join("prefix");
    fs::create_dir(&prefix).map_err(|error| failed(&prefix, &error))?;
    let wine = |command: &str| {
        let mut wine = Command::new("timeout");
        wine.args([PATIENCE, command]).env("WINEPREFIX", &prefix).env("WINEDEBUG", "-all");
        wine.env("OPENCLAW_HOME", home.join("home")).env("TERM", "dumb").current_dir(&home);
        wine
    };
    wine("wineboot").arg("--init").stdout(Stdio::null()).stderr(Stdio::null()).run()?;
    let mut failures = 0;
    for step in &STEPS {
        let outcome = try_step(step, &program, wine("wine"));
        failures += usize::from(outcome.is_err());
        println!("{} openclaw {}", if outcome.is_ok() { "ok    " } else { "FAILED" }, step.args);
        if let Err(failure) = outcome {
            println!("{failure}");
        }
    }
    let left = Command::new("pgrep").args(["--full", &program.to_string_lossy()]).output();
    let left = left.map(|left| String::from_utf8_lossy(&left.stdout).trim().to_owned());
    wine("wineserver").arg("--kill").run()?;
    match (failures, left.as_deref()) {
        (0, Ok("")) => Ok(()),
        (0, Ok(left)) => Err(Failure::new(format!("processes are left: {left}"))),
        (0, Err(error)) => Err(Failure::new(format!("cannot run `pgrep`: {error}"))),
        _ => Err(Failure::new(format!("{failures} of {} commands failed under Wine", STEPS.len()))),
    }
}

fn try_step(step: &Step, program: &Path, mut wine: Command) -> Result<(), Failure> {
    wine.arg(program);
    let path = format!("Z:{}", program.display().to_string().replace('/', "\\"));
    wine.args(step.args.split(' ').map(|arg| match arg {
        "PROGRAM" => path.clone(),
        arg => arg.replace('_', " "),
    }));
    let unusable = |error: std::io::Error| Failure::new(format!("cannot run `wine`: {error}"));
    let pipes = wine.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().map_err(unusable)?;
    if let Some(mut input) = child.stdin.take() {
        // It may not read it.
        let _ = input.write_all(step.input.as_bytes());
    }
    let output = child.wait_with_output().map_err(unusable)?;
    let shown = [output.stdout, output.stderr].concat();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    let problem = if output.status.code() != Some(step.code) {
        format!("{}, expected {}", output.status, step.code)
    } else if !shown.contains(step.shown) {
        format!("`{}` is not in its output", step.shown)
    } else if shown.contains(r"\\?\") {
        "its output has a verbatim path".to_owned()
    } else {
        return Ok(());
    };
    Err(Failure::new(format!("{problem}:\n{shown}")))
}

/// Builds the program with the system's cross compiler.
fn build(folder: &Path, scripts: &Scripts) -> Result<PathBuf, Failure> {
    let library = match is_installed(TARGET) {
        true => None,
        false => Some(library::install(folder)?),
    };
    let mut cargo = cargo(folder, scripts, "build", &[TARGET], library.as_deref());
    for tool in ["CC", "CXX", "AR"] {
        cargo.env_remove(format!("{tool}_{}", TARGET.replace('-', "_")));
    }
    if let Some(library) = &library {
        let objects = startup_objects(folder, library)?;
        cargo.env(
            "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUSTFLAGS",
            format!("-Lnative={}", objects.display()),
        );
    }
    cargo.args(["--package", "openclaw"]).run()?;
    Ok(folder.join("target").join(TARGET).join("debug/openclaw.exe"))
}

/// Compiles the objects that a program of this target begins and ends with.
fn startup_objects(folder: &Path, library: &Path) -> Result<PathBuf, Failure> {
    let objects = folder.join("startup");
    empty_folder(&objects)?;
    for name in ["rsbegin", "rsend"] {
        let mut rustc = Command::new("rustc");
        rustc.env_remove("RUSTUP_TOOLCHAIN").args(["+nightly", "--target", TARGET, "-O"]);
        rustc.args(["--crate-type", "lib", "--emit", "obj", "-o"]);
        rustc.arg(objects.join(format!("{name}.o")));
        rustc.arg(library.join(format!("rtstartup/{name}.rs"))).run()?;
    }
    Ok(objects)
}
