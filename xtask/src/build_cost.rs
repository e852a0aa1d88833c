//! Measures what a build of `openclaw` costs from an empty folder: the processor time of every compiler.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use crate::shell::{Failure, Run as _, cargo, empty_folder, failed, hold};

/// How many packages are listed.
const LISTED: usize = 10;
/// Names the file to which each compiler's time is appended.
const FILE: &str = "OPENCLAW_BUILD_COST_FILE";

/// Builds `openclaw` in the profile that these arguments of cargo select, and prints what it costs.
pub(crate) fn run(args: &[&str]) -> Result<(), Failure> {
    let (folder, _lock) = hold("build-cost")?;
    let (target, file) = (folder.join("target"), folder.join("times"));
    empty_folder(&target)?;
    fs::write(&file, "").map_err(|error| failed(&file, &error))?;
    let this = std::env::current_exe().map_err(|error| failed(&folder, &error))?;
    let started = Instant::now();
    cargo("build")
        .args(["--quiet", "--locked", "--package", "openclaw"])
        .args(args)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_INCREMENTAL", "0")
        .env("RUSTC_WRAPPER", wrapper(&folder, &this, "rustc", "")?)
        .env("CC", wrapper(&folder, &this, "cc", "cc")?)
        .env(FILE, &file)
        .run()?;
    let wall = started.elapsed();
    let packages = read(&file)?;
    let total = time_of_children()?;
    print(&packages, total, wall);
    Ok(())
}

/// Writes a script that measures a compiler. Cargo and build scripts name the program or a script, not
/// arguments.
fn wrapper(folder: &Path, this: &Path, name: &str, program: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(name);
    let script = format!("#!/bin/sh\nexec '{}' measure {program} \"$@\"\n", this.display());
    let written = fs::write(&path, script)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| failed(&path, &error))?;
    Ok(path)
}

/// Runs a compiler, and appends its package and time to the file of the build.
pub(crate) fn measure(command: &[&str]) -> ExitCode {
    let [program, args @ ..] = command else { return ExitCode::from(2) };
    let status = match Command::new(program).args(args).status() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("xtask: cannot run `{program}`: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Err(failure) = record() {
        eprintln!("xtask: {failure}");
        return ExitCode::FAILURE;
    }
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn record() -> Result<(), Failure> {
    // Cargo asks the compiler for its version outside of any package.
    let (Some(file), Ok(package)) = (std::env::var_os(FILE), std::env::var("CARGO_PKG_NAME"))
    else {
        return Ok(());
    };
    let line = format!("{package} {}\n", time_of_children()?.as_millis());
    let path = Path::new(&file);
    let appended = OpenOptions::new()
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    appended.map_err(|error| failed(path, &error))
}

/// Returns the processor time, with the kernel's, of all processes that this one has waited for.
fn time_of_children() -> Result<Duration, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_err(|error| Failure::new(format!("cannot read the time of processes: {error}")))?;
    let microseconds =
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(u64::try_from(microseconds).unwrap_or_default()))
}

/// Reads the time of each package.
fn read(file: &Path) -> Result<BTreeMap<String, Duration>, Failure> {
    let text = fs::read_to_string(file).map_err(|error| failed(file, &error))?;
    let mut packages = BTreeMap::new();
    for line in text.lines() {
        let Some((package, milliseconds)) = line.split_once(' ') else { continue };
        let time = Duration::from_millis(milliseconds.parse().unwrap_or_default());
        *packages.entry(package.to_owned()).or_default() += time;
    }
    Ok(packages)
}

fn print(packages: &BTreeMap<String, Duration>, total: Duration, wall: Duration) {
    let mut sorted: Vec<_> = packages.iter().collect();
    sorted.sort_by_key(|(_, time)| std::cmp::Reverse(**time));
    println!("{:>6}  package", "CPU s");
    for (package, time) in sorted.iter().take(LISTED) {
        println!("{:>6.1}  {package}", time.as_secs_f64());
    }
    let others: Duration = sorted.iter().skip(LISTED).map(|(_, time)| **time).sum();
    let count = sorted.len().saturating_sub(LISTED);
    println!("{:>6.1}  {count} others", others.as_secs_f64());
    let rest = total.saturating_sub(packages.values().sum());
    println!("{:>6.1}  cargo and build scripts", rest.as_secs_f64());
    println!(
        "{:.1} CPU-minutes, {} min {} s with {} cores",
        total.as_secs_f64() / 60.0,
        wall.as_secs() / 60,
        wall.as_secs() % 60,
        std::thread::available_parallelism().map_or(1, usize::from),
    );
}
