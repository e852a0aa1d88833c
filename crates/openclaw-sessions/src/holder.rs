//! Identifies the process that holds a lock, so that other processes can detect when it is gone.

use std::fmt;
use std::str::FromStr;

/// Identity of a process, unique across hosts, containers and reused process ids. Its text form can
/// be stored with what the process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Scope in which the process id is unique.
    place: String,
    pid: u32,
    /// Start time, in clock ticks since boot.
    born: u64,
}

impl ProcessIdentity {
    /// Returns the identity of this process; `None` on unsupported systems.
    #[must_use]
    pub fn this() -> Option<Self> {
        let pid = std::process::id();
        match system::look(pid) {
            ProcessState::Running { born } => Some(Self { place: system::place()?, pid, born }),
            ProcessState::Gone | ProcessState::Unknown => None,
        }
    }

    /// Returns whether the process is known to be gone. For other hosts and containers nothing is
    /// known.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        if system::place().as_ref() != Some(&self.place) {
            return false;
        }
        match system::look(self.pid) {
            ProcessState::Gone => true,
            ProcessState::Running { born } => born != self.born,
            ProcessState::Unknown => false,
        }
    }
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, pid, born } = self;
        write!(f, "{place} {pid} {born}")
    }
}

/// The text is not a valid [`ProcessIdentity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid process identity")]
pub struct InvalidProcessIdentity;

impl FromStr for ProcessIdentity {
    type Err = InvalidProcessIdentity;

    fn from_str(text: &str) -> Result<Self, InvalidProcessIdentity> {
        let words: Vec<&str> = text.split(' ').collect();
        let [place, pid, born] = words[..] else { return Err(InvalidProcessIdentity) };
        Ok(Self {
            place: place.to_owned(),
            pid: pid.parse().map_err(|_| InvalidProcessIdentity)?,
            born: born.parse().map_err(|_| InvalidProcessIdentity)?,
        })
    }
}

/// State of the process with a given id.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "it is unknown elsewhere"))]
enum ProcessState {
    Gone,
    Running { born: u64 },
    Unknown,
}

#[cfg(target_os = "linux")]
mod system {
    use nix::errno::Errno;
    use nix::sys::signal::kill;
    use nix::unistd::Pid;

    use super::ProcessState;

    /// The boot id of the host and the PID namespace: each container has its own process ids.
    pub(super) fn place() -> Option<String> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let family = std::fs::read_link("/proc/self/ns/pid").ok()?;
        let place = format!("{}/{}", boot.trim(), family.to_str()?);
        (!place.contains(char::is_whitespace)).then_some(place)
    }

    pub(super) fn look(pid: u32) -> ProcessState {
        let Some(number) = i32::try_from(pid).ok().filter(|pid| *pid > 0) else {
            return ProcessState::Unknown;
        };
        // Not by `/proc` alone, which may hide processes of other users.
        if kill(Pid::from_raw(number), None) == Err(Errno::ESRCH) {
            return ProcessState::Gone;
        }
        let line = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        line.ok().and_then(|line| read(&line)).unwrap_or(ProcessState::Unknown)
    }

    /// Parses `PID (NAME) STATE …`; the 22nd field is the start time. The name may contain
    /// anything, so parsing starts after its closing parenthesis.
    fn read(line: &str) -> Option<ProcessState> {
        let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
        // A zombie holds nothing.
        if matches!(fields.next()?, "Z" | "X") {
            return Some(ProcessState::Gone);
        }
        let born = fields.nth(18)?.parse().ok()?;
        Some(ProcessState::Running { born })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::ProcessState;

    pub(super) fn place() -> Option<String> {
        None
    }

    pub(super) fn look(_pid: u32) -> ProcessState {
        ProcessState::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_kept_as_text() {
        let holder = ProcessIdentity { place: "here/pid:[1]".to_owned(), pid: 12, born: 345 };
        assert_eq!(holder.to_string().parse(), Ok(holder));
        for bad in ["", "here 1", "here x 1", "here 1 x", "here 1 2 3"] {
            assert_eq!(bad.parse::<ProcessIdentity>(), Err(InvalidProcessIdentity), "{bad}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_gone_when_it_has_ended_or_its_number_is_another_s() {
        let us = ProcessIdentity::this().unwrap();
        assert!(!us.is_gone());
        assert!(ProcessIdentity { born: us.born - 1, ..us.clone() }.is_gone());
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let ProcessState::Running { born } = system::look(child.id()) else { unreachable!() };
        let other = ProcessIdentity { pid: child.id(), born, ..us };
        assert!(!other.is_gone());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(other.is_gone());
        // Elsewhere, the same id is another process.
        assert!(!ProcessIdentity { place: "elsewhere".to_owned(), ..other }.is_gone());
    }
}
