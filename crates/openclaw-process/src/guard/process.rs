//! The guard as a process: what it is started with, and the record that it reads.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::GuardCommand;
use crate::children::Children;

/// Waits until the pipe closes, and then becomes the guard (`$0`), unless the record is known to be
/// empty. Uses built-in commands only.
const WAIT: &str = r#"read -r line
[ -e /dev/fd/1 ] && [ ! -s /dev/fd/1 ] || exec "$0" "$@""#;
/// A longer record is replaced by one of the children that are left. Some thousands of children.
const MAX_RECORD: usize = 256 * 1024;

/// A guard process that waits for the end of this program.
#[derive(Debug)]
pub(crate) struct GuardProcess {
    process: Child,
    /// Closes when this program ends. Nothing is written to it.
    pipe: Option<ChildStdin>,
    /// The changes of the children since there were none.
    record: File,
    length: usize,
}

impl GuardProcess {
    /// Starts a guard, with a record of all children.
    pub(crate) fn start(command: &GuardCommand, children: &Children) -> io::Result<Self> {
        let mut record = new_record()?;
        let all = children.record();
        record.write_all(all.as_bytes())?;
        let spawn = |mut process: Command| {
            process
                .args(&command.args)
                .env_clear()
                .stdin(Stdio::piped())
                .stdout(record.try_clone()?)
                .stderr(Stdio::null())
                // Ctrl-C in a terminal is sent to the whole foreground group, which the guard must
                // survive.
                .process_group(0)
                .spawn()
        };
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", WAIT]).arg(&command.program);
        // A system without a shell starts the guard at once.
        let mut process = spawn(shell).or_else(|_| spawn(Command::new(&command.program)))?;
        let pipe = process.stdin.take();
        Ok(Self { process, pipe, record, length: all.len() })
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Adds a change to the record.
    ///
    /// # Errors
    /// If the guard is gone, or the record cannot be written.
    pub(crate) fn add(&mut self, change: &str) -> io::Result<()> {
        if let Some(status) = self.process.try_wait()? {
            return Err(io::Error::other(format!("the guard has ended ({status})")));
        }
        // In one write, although a partial line would be ignored.
        self.record.write_all(format!("{change}\n").as_bytes())?;
        self.length += change.len() + 1;
        Ok(())
    }

    /// Whether the record should be replaced by a shorter one.
    pub(crate) fn is_long(&self) -> bool {
        self.length > MAX_RECORD
    }

    /// Empties the record: no children are left.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.length = 0;
        self.record.set_len(0)?;
        self.record.rewind()
    }

    /// Ends the guard without running it: another one has its children.
    pub(crate) fn retire(mut self) {
        // An error means that it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Closes the pipe, as the end of this program does, and waits until the guard is done.
    pub(crate) fn close(mut self) -> bool {
        drop(self.pipe.take());
        self.process.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for GuardProcess {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // Reaps a guard that has exited; one that is still cleaning up is not waited for.
        let _ = self.process.try_wait();
    }
}

/// A file without a name, which only this program and its guard can read.
#[cfg(target_os = "linux")]
fn new_record() -> io::Result<File> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    Ok(memfd_create("openclaw-guard", MFdFlags::MFD_CLOEXEC)?.into())
}

/// A file whose name is removed at once, which only this user can read.
#[cfg(not(target_os = "linux"))]
fn new_record() -> io::Result<File> {
    let (file, path) = nix::unistd::mkstemp("/tmp/openclaw-guard-XXXXXX")?;
    std::fs::remove_file(path)?;
    Ok(file.into())
}
