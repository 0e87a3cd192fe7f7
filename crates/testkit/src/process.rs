//! Looking up and ending processes that a test started.

use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::process::Child;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A running process found in `/proc`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its arguments joined by spaces.
    pub command: String,
}

/// Every process whose environment holds `marker` (`NAME=value`) as one entry, this one excepted.
/// Zombies do not count. Give each test its own value, and the whole tree it starts can be found,
/// whatever became of parents and process groups.
#[must_use]
pub fn processes_with_marker(marker: &str) -> Vec<Process> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| *name != own)
        .filter_map(|name| process_with(&name, marker.as_bytes()))
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

fn process_with(name: &str, marker: &[u8]) -> Option<Process> {
    let pid = name.parse().ok()?;
    let environment = std::fs::read(format!("/proc/{name}/environ")).ok()?;
    environment.split(|byte| *byte == 0).find(|entry| *entry == marker)?;
    let arguments = std::fs::read(format!("/proc/{name}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&arguments).replace('\0', " ").trim_end().to_owned();
    Some(Process { pid, command })
}

/// A child that is killed and reaped on drop, so that a failed assertion leaves nothing behind.
#[derive(Debug)]
pub struct ChildGuard(Child);

impl ChildGuard {
    /// Guards a child that was just started.
    #[must_use]
    pub fn new(child: Child) -> Self {
        Self(child)
    }
}

impl Deref for ChildGuard {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for ChildGuard {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Kills a process by id on drop. It holds a descriptor of the process, so an id that was given to
/// somebody else meanwhile is never hit.
#[derive(Debug)]
pub struct PidGuard(Option<OwnedFd>);

impl PidGuard {
    /// Guards `pid`; a process that is gone already needs no guard.
    #[must_use]
    pub fn new(pid: i32) -> Self {
        let pid = Pid::from_raw(pid);
        Self(pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()))
    }
}

impl Drop for PidGuard {
    fn drop(&mut self) {
        if let Some(descriptor) = &self.0 {
            pidfd_send_signal(descriptor, Signal::KILL).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;
    use crate::Deadline;

    #[test]
    fn a_marked_tree_is_found_and_ends_with_its_guards() {
        let value = std::process::id().to_string();
        let marker = format!("PLENIPO_TESTKIT_MARKER={value}");
        let child = Command::new("/bin/sh")
            .args(["-c", "cat; cat"])
            .env("PLENIPO_TESTKIT_MARKER", &value)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let guard = ChildGuard::new(child);
        let limit = Duration::from_secs(10);
        let mut found = Vec::new();
        // Between its fork and its exec the second one still looks like the first.
        let both = Deadline::poll_until(limit, || {
            found = processes_with_marker(&marker);
            found.len() == 2 && found.iter().any(|process| process.command == "cat")
        });
        assert!(both, "{found:?}");
        let guards: Vec<_> = found.iter().map(|process| PidGuard::new(process.pid)).collect();
        drop(guards);
        drop(guard);
        assert!(Deadline::poll_until(limit, || processes_with_marker(&marker).is_empty()));
    }
}
