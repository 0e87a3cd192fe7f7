//! The descendants of a process, found in `/proc` and signalled without ever hitting a stranger.
//!
//! Found are those whose chain of parents leads to the root: a daemon whose parent ended belongs to
//! the nearest child subreaper (`PR_SET_CHILD_SUBREAPER`), else to nobody here.

use std::collections::HashSet;
use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Descendants looked at in one walk.
const MOST: usize = 65_536;

/// Processes held by descriptor, so that a number given to somebody else meanwhile is not hit.
#[derive(Debug, Default)]
pub struct Descendants(Vec<OwnedFd>);

impl Descendants {
    /// Everything that `root` started and that is still below it; not `root` itself.
    #[must_use]
    pub fn of(root: Pid) -> Self {
        Self::beside(root, &[])
    }

    /// [`of`](Self::of) without `others` and what is below those.
    #[must_use]
    pub fn beside(root: Pid, others: &[Pid]) -> Self {
        let mut seen: HashSet<Pid> = others.iter().copied().chain([root]).collect();
        let mut above = vec![root];
        let mut held = Vec::new();
        while let Some(parent) = above.pop() {
            for child in children(parent) {
                if seen.len() > MOST || seen.contains(&child) {
                    continue;
                }
                let Ok(descriptor) = pidfd_open(child, PidfdFlags::empty()) else { continue };
                // Its number may have been another's when the list was read; now it is held.
                if parent_of(child) != Some(parent) {
                    continue;
                }
                seen.insert(child);
                above.push(child);
                held.push(descriptor);
            }
        }
        Self(held)
    }

    /// Sends `signal` to each.
    pub fn signal(&self, signal: Signal) {
        for process in &self.0 {
            // ESRCH: it is gone, which is what was wanted.
            pidfd_send_signal(process, signal).unwrap_or_default();
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Of all its threads; see proc_pid_task_children(5). Kernels without that list are asked for the
/// parent of everybody.
fn children(parent: Pid) -> Vec<Pid> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for task in tasks.flatten() {
        let Ok(list) = fs::read_to_string(task.path().join("children")) else {
            if task.path().join("children").exists() {
                continue;
            }
            return children_by_parent(parent);
        };
        found.extend(list.split_whitespace().filter_map(number));
    }
    found
}

fn children_by_parent(parent: Pid) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.flatten().filter_map(|entry| number(entry.file_name().to_str()?));
    numbers.filter(|process| parent_of(*process) == Some(parent)).collect()
}

/// The fourth field of proc_pid_stat(5); the second is a name in parentheses that may hold some.
fn parent_of(process: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    number(fields.split_whitespace().nth(1)?)
}

fn number(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use plenipo_testkit::{ChildGuard, Deadline};

    use super::*;

    #[test]
    fn a_child_in_another_session_is_found_by_its_parents() {
        #[expect(clippy::disallowed_methods, reason = "a process of the test")]
        let shell = Command::new("/bin/sh")
            .args(["-c", "setsid sleep 600 & wait"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut shell = ChildGuard::new(shell);
        let root = Pid::from_raw(shell.id().try_into().unwrap()).unwrap();
        let limit = Duration::from_secs(10);
        assert!(Deadline::poll_until(limit, || !Descendants::of(root).is_empty()));
        // The shell waits for it: its end is the proof that the right process was hit.
        assert!(Deadline::poll_until(limit, || {
            Descendants::of(root).signal(Signal::KILL);
            shell.try_wait().unwrap().is_some()
        }));
        assert_eq!(children_by_parent(root), []);
    }

    #[test]
    fn both_ways_of_asking_agree() {
        let own = rustix::process::getpid();
        #[expect(clippy::disallowed_methods, reason = "a process of the test")]
        let child = Command::new("/bin/sleep").arg("600").spawn().unwrap();
        let child = ChildGuard::new(child);
        let id = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        assert!(children(own).contains(&id) && children_by_parent(own).contains(&id));
        assert_eq!(parent_of(id), Some(own));
    }
}
