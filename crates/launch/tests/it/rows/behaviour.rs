//! Rows that are not one attack: what has to work, or be refused, around a launch. Each check returns what the control
//! and the sandboxed run showed, and panics if either is not as it should be.

mod environment;
mod globs;
mod limits;
mod processes;
mod races;
mod repositories;
mod rights;
mod states;
mod streams;

use crate::stage::Who;

/// What the control and the sandboxed run showed.
pub(crate) type Seen = (String, String);

/// One row, checked by a function.
pub(crate) struct Behaviour {
    pub(crate) row: u8,
    pub(crate) name: &'static str,
    pub(crate) check: fn(Who) -> Seen,
}

const fn row(row: u8, name: &'static str, check: fn(Who) -> Seen) -> Behaviour {
    Behaviour { row, name, check }
}

fn seen(control: impl Into<String>, sandboxed: impl Into<String>) -> Seen {
    (control.into(), sandboxed.into())
}

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    row(4, "existing hard link is reported", rights::existing_hard_link),
    row(19, "set-user-ID file", rights::set_user_id),
    row(19, "file capability", rights::file_capability),
    row(25, "worktree: pointer, git and common directory", repositories::worktree),
    row(25, "core.hooksPath and included files", repositories::hooks),
    row(25, "submodules and .gitmodules", repositories::submodules),
    row(25, "worktree inside the workspace", repositories::inner_worktree),
    row(25, "pointers that must not widen", repositories::hostile_pointers),
    row(28, "pattern: what matches at the start", globs::present),
    row(28, "pattern: made by the command", globs::made_inside),
    row(28, "pattern: made outside, in a directory denied whole", globs::made_outside),
    row(28, "pattern: made or replaced outside, elsewhere", globs::beyond_reach),
    row(28, "pattern: strict refuses what cannot be held", globs::strict),
    row(29, "components swapped while launching", races::swapped_components),
    row(31, "BASH_ENV", environment::shell_start_file),
    row(31, "LD_PRELOAD in the command", environment::preloaded_library),
    row(32, "fake helpers on PATH", environment::fake_helpers),
    row(33, "cwd missing, a file, out of reach", states::working_directory),
    row(34, "state of 200 KB", states::long_state),
    row(35, "malformed states", states::malformed),
    row(35, "external is read-only", states::external),
    row(35, "disabled runs as is", states::disabled),
    row(36, "core files", limits::core_files),
    row(36, "limits are reported as they are", limits::honest_report),
    row(37, "KILL to the launcher", processes::killed_launcher),
    row(38, "background child", processes::background_child),
    row(39, "signals and traps", processes::signals),
    row(40, "kill -TERM $$", processes::own_signal),
    row(41, "exit codes", processes::exit_codes),
    row(42, "8 MiB through stdin, stdout, stderr", streams::byte_exact),
    row(43, "echo > /dev/stdout on a file", streams::reopened_stdout),
    row(44, "sandbox in a sandbox", processes::nested_sandbox),
    row(45, "parallel launches, some killed", crate::placeholders::forty_parallel_launches),
];
