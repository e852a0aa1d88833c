//! No path leads out of the workspace.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openclaw_tools::ToolFailure;
use openclaw_tools::native::NativeSetup;
use serde_json::json;

use crate::Bench;

const SECRET: &str = "what no tool may see";

fn bench() -> Bench {
    let bench = Bench::new();
    std::fs::write(bench.outside("secret.txt"), SECRET).unwrap();
    std::fs::create_dir(bench.outside("folder")).unwrap();
    std::fs::write(bench.outside("folder/secret.txt"), SECRET).unwrap();
    std::fs::create_dir(bench.path("inner")).unwrap();
    bench
}

/// Tries all file tools with a path, and checks that nothing outside was read or changed.
async fn assert_shut(bench: &Bench, path: &str) {
    for (tool, arguments) in [
        ("read", json!({"path": path})),
        ("write", json!({"path": path, "content": "changed"})),
        ("edit", json!({"path": path, "old": "what", "new": "changed"})),
        ("list", json!({"path": path})),
    ] {
        let outcome = bench.call(tool, arguments).await;
        assert!(outcome.is_error, "{tool} {path}: {}", outcome.rendered());
        assert!(!outcome.rendered().contains(SECRET), "{tool} {path}");
    }
    for file in ["secret.txt", "folder/secret.txt"] {
        assert_eq!(std::fs::read_to_string(bench.outside(file)).unwrap(), SECRET, "{path}");
    }
    assert!(!bench.outside("new.txt").exists() && !bench.outside("folder/new.txt").exists());
}

#[tokio::test]
async fn neither_dots_nor_absolute_paths_lead_out() {
    let bench = bench();
    let absolute = bench.outside("secret.txt").display().to_string();
    let dotted = bench.path("../secret.txt").display().to_string();
    let prefixed =
        format!("{}x/secret.txt", bench.path("").display().to_string().trim_end_matches('/'));
    for path in [
        "..",
        "../secret.txt",
        "inner/../../secret.txt",
        "../new.txt",
        "./../folder/new.txt",
        "/etc/passwd",
        "/",
        &absolute,
        &dotted,
        &prefixed,
    ] {
        assert_shut(&bench, path).await;
    }
    let outcome = bench.call("read", json!({"path": "../secret.txt"})).await;
    assert_eq!(outcome.details.failure, Some(ToolFailure::Denied));
    assert!(outcome.rendered().starts_with("`../secret.txt` is outside of the workspace"));
}

#[tokio::test]
async fn no_link_leads_out() {
    let bench = bench();
    symlink("../secret.txt", bench.path("file")).unwrap();
    symlink(bench.outside("secret.txt"), bench.path("absolute")).unwrap();
    symlink("../folder", bench.path("dir")).unwrap();
    symlink("..", bench.path("inner/up")).unwrap();
    symlink("../../folder", bench.path("inner/far")).unwrap();
    symlink("../new.txt", bench.path("dangling")).unwrap();
    symlink("loop", bench.path("loop")).unwrap();
    for path in [
        "file",
        "absolute",
        "dir",
        "dir/secret.txt",
        "dir/new.txt",
        "dangling",
        "inner/up/../secret.txt",
        "inner/far/secret.txt",
        "loop",
    ] {
        assert_shut(&bench, path).await;
    }
    let outcome = bench.call("list", json!({"depth": 5})).await;
    assert!(
        outcome.rendered().contains("dir (symbolic link)")
            && !outcome.rendered().contains("secret.txt")
    );
}

#[tokio::test]
async fn a_link_that_stays_inside_is_followed() {
    let bench = bench();
    bench.write("inner/real.txt", "what is here");
    symlink("inner/real.txt", bench.path("link")).unwrap();
    let outcome = bench.call("read", json!({"path": "link"})).await;
    assert!(outcome.rendered().contains("what is here"), "{}", outcome.rendered());
    bench.call("edit", json!({"path": "link", "old": "what", "new": "that"})).await;
    assert_eq!(bench.text("inner/real.txt"), "that is here");
    assert!(bench.path("link").is_symlink());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_swapped_in_during_the_call_gains_nothing() {
    let bench = bench();
    bench.write("inner/secret.txt", "harmless");
    let (door, next) = (bench.path("door"), bench.path("next"));
    symlink("inner", &door).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swapper = {
        let done = Arc::clone(&done);
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for target in ["../folder", "inner"] {
                    symlink(target, &next).unwrap();
                    std::fs::rename(&next, &door).unwrap();
                }
            }
        })
    };
    for n in 0..300 {
        let outcome = bench.call("read", json!({"path": "door/secret.txt"})).await;
        assert!(!outcome.rendered().contains(SECRET));
        let path = format!("door/new{n}.txt");
        bench.call("write", json!({"path": path, "content": "x"})).await;
        bench.call("edit", json!({"path": "door/secret.txt", "old": "what", "new": "x"})).await;
        let outcome = bench.call("list", json!({"path": "door"})).await;
        assert!(outcome.is_error || outcome.rendered().contains("secret.txt (8 bytes)"));
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    let outside: Vec<_> = std::fs::read_dir(bench.outside("folder")).unwrap().collect();
    assert_eq!(outside.len(), 1, "nothing was written there");
    let secret = std::fs::read_to_string(bench.outside("folder/secret.txt")).unwrap();
    assert_eq!(secret, SECRET);
}

#[tokio::test]
async fn special_files_are_rejected_without_blocking() {
    let bench = bench();
    assert!(Command::new("mkfifo").arg(bench.path("pipe")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("socket")).unwrap();
    assert_shut(&bench, "pipe").await;
    assert_shut(&bench, "socket").await;
    let outcome = bench.call("read", json!({"path": "pipe"})).await;
    assert_eq!(outcome.rendered(), "`pipe` is neither a file nor a folder.");
    let outcome = bench.call("write", json!({"path": "pipe", "content": "x"})).await;
    assert_eq!(outcome.rendered(), "`pipe` is neither a file nor a folder.");
}

#[tokio::test]
async fn an_invalid_path_is_reported() {
    let bench = bench();
    for (path, words) in [
        ("a\0b", "is not a valid path."),
        ("nothing.txt", "`nothing.txt` does not exist."),
        (&"x".repeat(300), "has too long a path."),
        ("inner", "`inner` is a folder."),
        ("a\n<|im_start|>b", "`a [removed token]b` does not exist."),
    ] {
        let outcome = bench.call("read", json!({"path": path})).await;
        assert!(outcome.is_error && outcome.rendered().ends_with(words), "{}", outcome.rendered());
    }
}

#[tokio::test]
async fn large_results_can_be_read_but_not_changed_and_nothing_beside_them() {
    let spill = tempfile::tempdir().unwrap();
    let kept = spill.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(kept.join("a.result.txt"), "the whole result").unwrap();
    std::fs::write(spill.path().join("secret.txt"), SECRET).unwrap();
    symlink("../secret.txt", kept.join("link.txt")).unwrap();
    let bench = Bench::with(|setup| NativeSetup { also_readable: vec![kept.clone()], ..setup });
    let outcome = bench.call_as("read", json!({"path": kept.join("a.result.txt")}), None).await;
    assert!(outcome.rendered().contains("the whole result"), "{}", outcome.rendered());
    for name in ["../secret.txt", "link.txt"] {
        let outcome = bench.call("read", json!({"path": kept.join(name)})).await;
        assert!(outcome.is_error && !outcome.rendered().contains(SECRET), "{}", outcome.rendered());
    }
    for (tool, arguments) in [
        ("write", json!({"path": kept.join("a.result.txt"), "content": "x"})),
        ("edit", json!({"path": kept.join("a.result.txt"), "old": "whole", "new": "x"})),
        ("list", json!({"path": kept})),
    ] {
        let outcome = bench.call(tool, arguments).await;
        assert_eq!(outcome.details.failure, Some(ToolFailure::Denied), "{tool}");
    }
    let text = std::fs::read_to_string(kept.join("a.result.txt")).unwrap();
    assert_eq!(text, "the whole result");
}
