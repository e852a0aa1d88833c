//! Identifies the process that holds a lock, so that other processes can detect when it is gone.

use std::fmt;
use std::str::FromStr;

/// Identity of a process, unique across hosts, containers and reused process ids. Its text form can
/// be stored with what the process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Scope in which the process id is unique.
    place: String,
    pid: u32,
    /// Start time, in clock ticks since boot.
    born: u64,
}

impl Holder {
    /// Returns the identity of this process; `None` on unsupported systems.
    #[must_use]
    pub fn this() -> Option<Self> {
        let pid = std::process::id();
        match system::look(pid) {
            Seen::Running { born } => Some(Self { place: system::place()?, pid, born }),
            Seen::Gone | Seen::Unknown => None,
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
            Seen::Gone => true,
            Seen::Running { born } => born != self.born,
            Seen::Unknown => false,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, pid, born } = self;
        write!(f, "{place} {pid} {born}")
    }
}

/// The text is not a valid [`Holder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid process identity")]
pub struct BadHolder;

impl FromStr for Holder {
    type Err = BadHolder;

    fn from_str(text: &str) -> Result<Self, BadHolder> {
        let words: Vec<&str> = text.split(' ').collect();
        let [place, pid, born] = words[..] else { return Err(BadHolder) };
        Ok(Self {
            place: place.to_owned(),
            pid: pid.parse().map_err(|_| BadHolder)?,
            born: born.parse().map_err(|_| BadHolder)?,
        })
    }
}

/// State of the process with a given id.
enum Seen {
    Gone,
    Running { born: u64 },
    Unknown,
}

#[cfg(target_os = "linux")]
mod system {
    use nix::errno::Errno;
    use nix::sys::signal::kill;
    use nix::unistd::Pid;

    use super::Seen;

    /// The boot id of the host and the PID namespace: each container has its own process ids.
    pub(super) fn place() -> Option<String> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let family = std::fs::read_link("/proc/self/ns/pid").ok()?;
        let place = format!("{}/{}", boot.trim(), family.to_str()?);
        (!place.contains(char::is_whitespace)).then_some(place)
    }

    pub(super) fn look(pid: u32) -> Seen {
        let Some(number) = i32::try_from(pid).ok().filter(|pid| *pid > 0) else {
            return Seen::Unknown;
        };
        // Not by `/proc` alone, which may hide processes of other users.
        if kill(Pid::from_raw(number), None) == Err(Errno::ESRCH) {
            return Seen::Gone;
        }
        let line = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        line.ok().and_then(|line| read(&line)).unwrap_or(Seen::Unknown)
    }

    /// Parses `PID (NAME) STATE …`; the 22nd field is the start time. The name may contain
    /// anything, so parsing starts after its closing parenthesis.
    fn read(line: &str) -> Option<Seen> {
        let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
        // A zombie holds nothing.
        if matches!(fields.next()?, "Z" | "X") {
            return Some(Seen::Gone);
        }
        let born = fields.nth(18)?.parse().ok()?;
        Some(Seen::Running { born })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::Seen;

    pub(super) fn place() -> Option<String> {
        None
    }

    pub(super) fn look(_pid: u32) -> Seen {
        Seen::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_kept_as_text() {
        let holder = Holder { place: "here/pid:[1]".to_owned(), pid: 12, born: 345 };
        assert_eq!(holder.to_string().parse(), Ok(holder));
        for bad in ["", "here 1", "here x 1", "here 1 x", "here 1 2 3"] {
            assert_eq!(bad.parse::<Holder>(), Err(BadHolder), "{bad}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_gone_when_it_has_ended_or_its_number_is_another_s() {
        let us = Holder::this().unwrap();
        assert!(!us.is_gone());
        assert!(Holder { born: us.born - 1, ..us.clone() }.is_gone());
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let Seen::Running { born } = system::look(child.id()) else { unreachable!() };
        let other = Holder { pid: child.id(), born, ..us };
        assert!(!other.is_gone());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(other.is_gone());
        // Elsewhere, the same id is another process.
        assert!(!Holder { place: "elsewhere".to_owned(), ..other }.is_gone());
    }
}
