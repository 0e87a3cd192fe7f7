//! Where a client and its server run.
//!
//! Rows with a bar are of both on one CPU, where a call costs what the programs do. Across CPUs most of it is the machine
//! waking an idle one, twice a call and the same for everybody; on a virtual machine that is more than all the rest. Those
//! rows are for information.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::output;

/// Where a client and its server may run.
pub(super) enum Cpus {
    Any,
    One(String),
    /// There is no `taskset`, or the kernel does not say which CPUs are ours.
    Unknown,
}

impl Cpus {
    /// The last CPU that this process may use.
    pub(super) fn one() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let last = list.and_then(|list| list.trim().rsplit([',', '-']).next());
        let usable = |cpu: &&str| output(Command::new("taskset").args(["-c", cpu, "true"])).is_ok();
        last.filter(usable).map_or(Self::Unknown, |cpu| Self::One(cpu.to_owned()))
    }

    pub(super) fn command(&self, program: &Path) -> Command {
        let Self::One(cpu) = self else { return Command::new(program) };
        let mut command = Command::new("taskset");
        command.args(["-c", cpu]).arg(program);
        command
    }
}
