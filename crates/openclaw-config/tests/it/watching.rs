//! A saved file is detected, however it is saved (C9).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_config::{Loaded, ReadFile, Watcher};
use tempfile::TempDir;

use crate::support::*;

/// Far longer than anything here takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(60);

struct Folder(TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, text)| folder.write(name, text));
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        openclaw_files::canonical(self.0.path()).unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn load(&self) -> Loaded {
        read_file(&self.path("openclaw.json"))
    }
}

async fn next(watcher: &mut Watcher) -> Vec<PathBuf> {
    tokio::time::timeout(LONG, watcher.changed()).await.expect("no change was detected").unwrap()
}

fn port(loaded: &Loaded) -> u16 {
    loaded.config.as_ref().unwrap().gateway.port
}

const ONE: &str = "{ gateway: { port: 1 } }";
const TWO: &str = "{ gateway: { port: 2 } }";

#[tokio::test]
async fn every_overwrite_of_a_file_is_detected() {
    let folder = Folder::with(&[("openclaw.json", ONE)]);
    let mut watcher = Watcher::new(folder.load().files).unwrap();
    for text in [TWO, ONE, TWO] {
        folder.write("openclaw.json", text);
        assert_eq!(next(&mut watcher).await, [folder.path("openclaw.json")]);
    }
}

#[tokio::test]
async fn every_rename_over_a_file_is_detected() {
    let folder = Folder::with(&[("openclaw.json", ONE)]);
    let mut watcher = Watcher::new(folder.load().files).unwrap();
    for (text, expected) in [(TWO, 2), (ONE, 1)] {
        folder.write("openclaw.json.tmp", text);
        fs::rename(folder.path("openclaw.json.tmp"), folder.path("openclaw.json")).unwrap();
        next(&mut watcher).await;
        assert_eq!(port(&folder.load()), expected);
    }
}

#[tokio::test]
async fn a_file_written_in_steps_is_reported_when_it_is_complete() {
    let folder = Folder::with(&[("openclaw.json", ONE)]);
    let mut watcher = Watcher::new(folder.load().files).unwrap();
    folder.write("openclaw.json", "");
    folder.write("openclaw.json", "{ gateway:");
    folder.write("openclaw.json", TWO);
    next(&mut watcher).await;
    assert_eq!(port(&folder.load()), 2);
}

#[tokio::test]
async fn a_file_that_is_created_later_is_detected_and_so_is_its_folder() {
    let folder = Folder::with(&[]);
    let file = folder.path("a/b/openclaw.json");
    let loaded = read_file(&file);
    assert!(loaded.config.is_some(), "without a file, the default is used");
    let mut watcher = Watcher::new(loaded.files).unwrap();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, ONE).unwrap();
    assert_eq!(next(&mut watcher).await, std::slice::from_ref(&file));
    // From now on the folder itself is watched.
    fs::write(&file, TWO).unwrap();
    assert_eq!(next(&mut watcher).await, std::slice::from_ref(&file));
    fs::remove_dir_all(folder.path("a")).unwrap();
    assert_eq!(next(&mut watcher).await, std::slice::from_ref(&file), "removal is a change");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, TWO).unwrap();
    assert_eq!(next(&mut watcher).await, [file]);
}

#[tokio::test]
async fn included_files_are_watched_even_if_missing_or_broken() {
    let main = "{ gateway: { $include: ['one.json', 'two.json'] } }";
    let folder = Folder::with(&[("openclaw.json", main), ("one.json", "{ port: ")]);
    let loaded = folder.load();
    assert!(loaded.config.is_none());
    let names: Vec<_> = loaded.files.iter().map(|file| file.path.file_name().unwrap()).collect();
    assert_eq!(names, ["openclaw.json", "one.json", "two.json"]);
    let mut watcher = Watcher::new(loaded.files).unwrap();
    folder.write("one.json", "{ port: 1 }");
    assert_eq!(next(&mut watcher).await, [folder.path("one.json")]);
    folder.write("two.json", "{ port: 2 }");
    assert_eq!(next(&mut watcher).await, [folder.path("two.json")]);
    assert_eq!(port(&folder.load()), 2);
}

#[tokio::test]
async fn newly_included_files_are_watched_after_a_reload() {
    let folder = Folder::with(&[("openclaw.json", ONE)]);
    let mut watcher = Watcher::new(folder.load().files).unwrap();
    fs::create_dir(folder.path("sub")).unwrap();
    folder.write("sub/gateway.json", "{ port: 3 }");
    folder.write("openclaw.json", "{ gateway: { $include: 'sub/gateway.json' } }");
    next(&mut watcher).await;
    watcher.watch(folder.load().files).unwrap();
    folder.write("sub/gateway.json", "{ port: 4 }");
    assert_eq!(next(&mut watcher).await, [folder.path("sub/gateway.json")]);
}

#[tokio::test]
async fn a_change_between_reading_and_watching_is_not_missed() {
    let folder = Folder::with(&[("openclaw.json", ONE)]);
    let loaded = folder.load();
    folder.write("openclaw.json", TWO);
    let mut watcher = Watcher::new(loaded.files).unwrap();
    assert_eq!(next(&mut watcher).await, [folder.path("openclaw.json")]);
}

#[tokio::test]
async fn a_cancelled_wait_loses_no_change() {
    let folder = Folder::with(&[("openclaw.json", ONE)]);
    let mut watcher = Watcher::new(folder.load().files).unwrap();
    folder.write("openclaw.json", TWO);
    let told = async {
        let mut waits = (0..).step_by(30).map(Duration::from_millis);
        loop {
            let wait = waits.next().unwrap();
            if let Ok(changed) = tokio::time::timeout(wait, watcher.changed()).await {
                return changed.unwrap();
            }
        }
    };
    let told = tokio::time::timeout(LONG, told).await.expect("the change was lost");
    assert_eq!(told, [folder.path("openclaw.json")]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_behind_symlinks_is_detected_when_it_or_a_symlink_changes() {
    use std::os::unix::fs::symlink;
    let folder = Folder::with(&[]);
    for (version, text) in [("v1", ONE), ("v2", TWO)] {
        fs::create_dir(folder.path(version)).unwrap();
        folder.write(&format!("{version}/openclaw.json"), text);
    }
    // As container platforms mount a configuration: a folder on the way to the file is a symlink.
    symlink("v1", folder.path("data")).unwrap();
    fs::create_dir(folder.path("etc")).unwrap();
    symlink("../data/openclaw.json", folder.path("etc/openclaw.json")).unwrap();
    let file = folder.path("etc/openclaw.json");
    let mut watcher = Watcher::new(vec![ReadFile::now(&*file)]).unwrap();
    symlink("v2", folder.path("data.new")).unwrap();
    fs::rename(folder.path("data.new"), folder.path("data")).unwrap();
    assert_eq!(next(&mut watcher).await, std::slice::from_ref(&file));
    assert_eq!(port(&read_file(&file)), 2);
    folder.write("v2/openclaw.json", ONE);
    assert_eq!(next(&mut watcher).await, [file]);
}

#[test]
fn a_configuration_lists_the_files_it_was_read_from() {
    let folder = Folder::with(&[
        ("openclaw.json", "{ mcp: { $include: 'mcp.json' } }"),
        ("mcp.json", "{ servers: { $include: './servers.json' } }"),
        ("servers.json", "{}"),
    ]);
    let files: Vec<PathBuf> = folder.load().files.into_iter().map(|file| file.path).collect();
    assert_eq!(files, ["openclaw.json", "mcp.json", "servers.json"].map(|name| folder.path(name)));
    let missing = read_file(Path::new("/nonexistent/openclaw.json"));
    assert_eq!(missing.files[0].path, Path::new("/nonexistent/openclaw.json"));
}
