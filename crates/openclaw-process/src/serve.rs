//! The guard process: kills what a program left behind.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::children::Children;
use crate::lineage::Lineage;
use crate::snapshot::{self, Processes};

/// How long a process that was announced may take until it carries its mark.
const ABOUT_TO_START: Duration = Duration::from_millis(200);
/// How long processes may take to end after SIGTERM.
const END: Duration = Duration::from_secs(2);

/// Runs the guard process: waits until stdin closes, and kills what is left according to the record,
/// which is stdout.
pub fn run() {
    // Nothing is sent.
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    let Ok(record) = std::io::stdout().as_fd().try_clone_to_owned() else { return };
    let mut record = File::from(record);
    let mut text = Vec::new();
    // The program has left its position at the end.
    if record.rewind().and_then(|()| record.read_to_end(&mut text)).is_ok() {
        serve(&String::from_utf8_lossy(&text));
    }
}

/// Kills what is left according to a record.
pub fn serve(record: &str) {
    let Children { planned, groups } = Children::of_record(record);
    if planned.is_empty() && groups.is_empty() {
        return;
    }
    let unborn: Vec<Lineage> = planned.into_iter().map(Lineage::marked).collect();
    if !unborn.is_empty() {
        std::thread::sleep(ABOUT_TO_START);
    }
    let strays = || -> BTreeSet<_> {
        let processes = Processes::all();
        let all = groups.values().chain(&unborn);
        all.flat_map(|lineage| lineage.descendants_among(&processes)).collect()
    };
    let mut found = strays();
    for group in groups.keys() {
        signal(*group, Signal::SIGTERM);
    }
    found.iter().for_each(|stray| stray.signal(Signal::SIGTERM));
    let deadline = Instant::now() + END;
    let is_left = || {
        groups.keys().any(|group| group_lives(*group)) || found.iter().any(|stray| stray.lives())
    };
    while Instant::now() < deadline && is_left() {
        std::thread::sleep(Duration::from_millis(20));
    }
    for group in groups.keys() {
        signal(*group, Signal::SIGKILL);
    }
    found.extend(strays());
    found.iter().for_each(|stray| stray.signal(Signal::SIGKILL));
}

fn signal(group: u32, signal: Signal) {
    if let Some(group) = group_id(group) {
        let _ = nix::sys::signal::killpg(group, signal);
    }
}

/// Whether a process group has a running member. The operating system also counts zombies, which
/// may not be reaped for a while.
pub(crate) fn group_lives(group: u32) -> bool {
    let Some(id) = group_id(group) else { return false };
    let is_known = !matches!(nix::sys::signal::killpg(id, None), Err(nix::errno::Errno::ESRCH));
    is_known && snapshot::group_runs(group).unwrap_or(true)
}

/// Never 0 or 1: those would signal our own group, or every process.
fn group_id(group: u32) -> Option<nix::unistd::Pid> {
    i32::try_from(group).ok().filter(|group| *group > 1).map(nix::unistd::Pid::from_raw)
}
