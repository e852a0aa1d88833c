//! Several writers at a full file.

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

fn opened(folder: &Path, max_bytes: u64, patience: Duration) -> Appended {
    Appended::open(folder.join("log"), folder.join("log.1"), max_bytes, patience).unwrap()
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default()
}

#[test]
fn only_a_full_file_is_put_aside_and_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("log"), "old\n").unwrap();
    let mut all: Vec<Appended> = (0..5).map(|_| opened(folder, 10, PATIENCE)).collect();
    all[0].add(b"first\n").unwrap();
    for (at, one) in all.iter_mut().enumerate().skip(1) {
        one.add(format!("{at}\n").as_bytes()).unwrap();
    }
    assert_eq!(read(folder, "log.1"), "old\nfirst\n");
    assert_eq!(read(folder, "log"), "1\n2\n3\n4\n");
}

#[test]
fn nothing_is_added_to_a_file_that_was_put_aside_twice() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (mut idle, mut busy) = (opened(folder, 8, PATIENCE), opened(folder, 8, PATIENCE));
    for line in ["1234567\n", "2234567\n", "3234567\n", "4\n"] {
        busy.add(line.as_bytes()).unwrap();
    }
    idle.add(b"5\n").unwrap();
    assert_eq!((&*read(folder, "log.1"), &*read(folder, "log")), ("3234567\n", "4\n5\n"));
}

#[test]
fn writers_that_meet_keep_their_last_lines_and_leave_none_out() {
    const WRITERS: usize = 6;
    const LINES: usize = 300;

    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let add_all = |writer: usize| {
        let mut log = opened(folder, 2_000, PATIENCE);
        for line in 0..LINES {
            log.add(format!("{writer} {line:04}\n").as_bytes()).unwrap();
        }
    };
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || add_all(writer));
        }
    });
    let (older, newer) = (read(folder, "log.1"), read(folder, "log"));
    assert!(older.len() > 1_990 && older.len() <= 2_000 && newer.len() <= 2_000);
    for writer in 0..WRITERS {
        let ours = format!("{writer} ");
        let both = older.lines().chain(newer.lines());
        let numbers: Vec<usize> = both
            .filter_map(|line| line.strip_prefix(&ours))
            .map(|number| number.parse().unwrap())
            .collect();
        let last: Vec<usize> = (LINES - numbers.len()..LINES).collect();
        assert_eq!(numbers, last, "writer {writer}");
    }
}

#[test]
fn a_lock_that_is_never_released_does_not_block_writers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut log = opened(folder, 4, Duration::from_millis(20));
    let holder = File::open(folder.join("log")).unwrap();
    holder.lock().unwrap();
    for line in ["1\n", "2\n", "3\n"] {
        log.add(line.as_bytes()).unwrap();
    }
    assert_eq!((&*read(folder, "log"), &*read(folder, "log.1")), ("1\n2\n3\n", ""));
    drop(holder);
    log.add(b"4\n").unwrap();
    assert_eq!((&*read(folder, "log"), &*read(folder, "log.1")), ("4\n", "1\n2\n3\n"));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let older = folder.path().join("log.1");
    let error = Appended::open(path, older, 10, PATIENCE).unwrap_err().to_string();
    assert_eq!(error, "not a regular file");
}
