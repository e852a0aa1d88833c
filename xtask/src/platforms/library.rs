//! The source of the standard library, for targets that are not installed: from Debian's package
//! `rust-src`, for the nightly compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{Failure, Run as _, empty_folder, failed};

/// What to do if the source cannot be had.
const ADVICE: &str = "install the targets with `rustup target add`";

/// Downloads the source that fits the nightly compiler; returns its folder.
pub(super) fn install(folder: &Path) -> Result<PathBuf, Failure> {
    let version = nightly()?;
    let source = folder.join("rust-src");
    if let Some(library) = unpacked(&source, &version) {
        return Ok(library);
    }
    println!("Downloading the source of the standard library {version}");
    empty_folder(&source)?;
    let options = private_lists(&source)?;
    let apt = |task: &str| {
        let mut apt = Command::new("apt-get");
        apt.args(&options).arg("-qq").arg(task).current_dir(&source);
        apt
    };
    apt("update").run()?;
    apt("download").arg(format!("rust-src={version}.*")).run()?;
    let package =
        entries(&source)?.into_iter().find(|it| it.extension().is_some_and(|it| it == "deb"));
    let package = package.ok_or_else(|| missing(&version))?;
    Command::new("dpkg-deb").arg("--extract").arg(package).arg(&source).run()?;
    unpacked(&source, &version).ok_or_else(|| missing(&version))
}

fn missing(version: &str) -> Failure {
    Failure::new(format!("no source of the standard library {version}; {ADVICE}"))
}

/// Returns the version of the nightly compiler, such as `1.97`.
fn nightly() -> Result<String, Failure> {
    let printed = Command::new("rustc").args(["+nightly", "--version"]).output();
    let printed = printed.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    let version = printed.ok().and_then(|text| {
        let mut parts = text.split_whitespace().nth(1)?.split('.');
        Some(format!("{}.{}", parts.next()?, parts.next()?))
    });
    version.ok_or_else(|| Failure::new(format!("no nightly compiler; {ADVICE}")))
}

fn unpacked(source: &Path, version: &str) -> Option<PathBuf> {
    let versions = entries(&source.join("usr/src")).ok()?;
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(&format!("rustc-{version}."))
    };
    let library = versions.into_iter().find(is_wanted)?.join("library");
    library.join("Cargo.lock").exists().then_some(library)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let read = fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    Ok(read.flatten().map(|entry| entry.path()).collect())
}

/// Returns the options for lists of packages of our own, so that the system's stay as they are: those of
/// Debian's unstable distribution, from the mirror that the system uses.
fn private_lists(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let printed = targets
        .output()
        .map_err(|error| Failure::new(format!("cannot run `apt-get` ({error}); {ADVICE}")))?;
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let mirror = printed.lines().find(|line| line.trim_end_matches('/').ends_with("/debian"));
    let mirror = mirror.ok_or_else(|| Failure::new(format!("no mirror of Debian; {ADVICE}")))?;
    let folders = ["sources", "lists/partial", "archives/partial"].map(|name| folder.join(name));
    for folder in &folders {
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    let list = folder.join("sources/sid.sources");
    let entry = format!(
        "Types: deb\nURIs: {mirror}\nSuites: sid\nComponents: main\n\
         Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    );
    fs::write(&list, entry).map_err(|error| failed(&list, &error))?;
    let folder = folder.display();
    let settings = [
        "Dir::Etc::SourceList=/dev/null".to_owned(),
        format!("Dir::Etc::SourceParts={folder}/sources"),
        format!("Dir::State::Lists={folder}/lists"),
        format!("Dir::Cache={folder}"),
        // A mirror may be behind.
        "Acquire::Check-Valid-Until=false".to_owned(),
        // The folder may be closed to the user that apt downloads as.
        "APT::Sandbox::User=root".to_owned(),
    ];
    Ok(settings.into_iter().map(|it| format!("--option={it}")).collect())
}
