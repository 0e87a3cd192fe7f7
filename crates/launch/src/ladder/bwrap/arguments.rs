//! A launch plan in bwrap's words.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::enter::proc_read_only;
use crate::error::LaunchError;
use crate::plan::{Action, Base, Cover, LaunchPlan, Opening};
use crate::tree::Kind;

/// Options, and the descriptors that they name.
pub(super) struct Arguments {
    words: Vec<OsString>,
    descriptors: Vec<OwnedFd>,
}

impl Arguments {
    /// The mounts come in the order of the other rungs: base, own `/dev` and `/proc`, pins, covers.
    pub(super) fn new(plan: &LaunchPlan, network: bool) -> Result<Self, LaunchError> {
        let mut arguments = Self { words: Vec::new(), descriptors: Vec::new() };
        arguments.push(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
        if !network {
            arguments.push(["--unshare-net"]);
        }
        arguments.push(["--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--clearenv"]);
        #[expect(clippy::disallowed_methods, reason = "the command is looked up like this")]
        if let Some(path) = std::env::var_os("PATH") {
            arguments.push(["--setenv", "PATH"]);
            arguments.words.push(path);
        }
        match plan.base {
            Base::Readable => arguments.push(["--ro-bind", "/", "/"]),
            Base::Writable => arguments.push(["--bind", "/", "/"]),
            Base::Empty => arguments.links(&plan.root_openings),
        }
        arguments.push(["--dev", "/dev", "--proc", "/proc"]);
        for place in proc_read_only().filter(|place| place.exists()) {
            arguments.show("--ro-bind", &place);
        }
        plan.pin_holders().for_each(|holder| arguments.show("--bind", &holder.path));
        plan.pins.iter().for_each(|pin| arguments.show("--bind", pin));
        for cover in &plan.covers {
            arguments.cover(cover)?;
        }
        arguments.close(plan);
        arguments.push(["--chdir", "/"]);
        Ok(arguments)
    }

    pub(super) fn push_descriptor(&mut self, option: &str, descriptor: BorrowedFd<'_>) {
        self.words.push(option.into());
        self.words.push(descriptor.as_raw_fd().to_string().into());
    }

    /// As `--args` reads them.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in &self.words {
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(0);
        }
        bytes
    }

    /// To be passed on, and kept open until bwrap runs.
    pub(super) fn into_descriptors(self) -> Vec<OwnedFd> {
        self.descriptors
    }

    fn push<const N: usize>(&mut self, words: [&str; N]) {
        self.words.extend(words.map(OsString::from));
    }

    fn show(&mut self, option: &str, place: &Path) {
        self.words.push(option.into());
        self.words.extend([place.into(), place.into()]);
    }

    fn links(&mut self, openings: &[Opening]) {
        for opening in openings {
            let Opening::Link { relative, text } = opening else { continue };
            self.push(["--symlink"]);
            self.words.extend([text.into(), Path::new("/").join(relative).into()]);
        }
    }

    fn cover(&mut self, cover: &Cover) -> Result<(), LaunchError> {
        match (&cover.action, cover.kind) {
            (Action::Show { read_only: true }, _) => self.show("--ro-bind", &cover.path),
            (Action::Show { read_only: false }, _) => self.show("--bind", &cover.path),
            (Action::Mask { openings }, Kind::Directory) => {
                let passage = if openings.is_empty() { "0000" } else { "0111" };
                self.push(["--perms", passage, "--tmpfs"]);
                self.words.push(cover.path.clone().into());
            }
            (Action::Mask { .. }, Kind::File) => {
                let empty =
                    rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                        .map_err(|error| LaunchError::step("open /dev/null", error))?;
                self.push(["--perms", "0000", "--ro-bind-data"]);
                self.words.push(empty.as_raw_fd().to_string().into());
                self.words.push(cover.path.clone().into());
                self.descriptors.push(empty);
            }
        }
        Ok(())
    }

    /// What had to be writable until everything in it was mounted.
    fn close(&mut self, plan: &LaunchPlan) {
        let masks = plan.covers.iter().filter(|cover| {
            matches!(cover.action, Action::Mask { .. }) && cover.kind == Kind::Directory
        });
        let empty = (plan.base == Base::Empty).then(|| PathBuf::from("/"));
        for place in masks.map(|cover| cover.path.clone()).chain(empty) {
            self.push(["--remount-ro"]);
            self.words.push(place.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use plenipo_policy::Access::{self, Deny, Read, Write};

    use super::*;
    use crate::plan::tests::planned;

    /// From the base on, one option a line; what depends on this kernel's `/proc` is left out.
    fn shown<const N: usize>(rules: [(&str, Access); N]) -> String {
        let bytes = Arguments::new(&planned(rules), false).unwrap().to_bytes();
        let text = String::from_utf8(bytes).unwrap();
        let words = text.split('\0').skip_while(|word| !word.contains("PATH")).skip(2);
        let mut lines = String::new();
        let mut before = "";
        for word in words {
            let separator = if word.starts_with("--") { "\n" } else { " " };
            // A descriptor's number is what it happens to be.
            let shown = if before == "--ro-bind-data" { "DESCRIPTOR" } else { word };
            lines.extend([separator, shown]);
            before = word;
        }
        let own = |line: &&str| !line.starts_with("--ro-bind /proc/");
        lines.trim().lines().filter(own).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_workspace_with_a_deep_carve_out_and_masks() {
        insta::assert_snapshot!(shown([
            ("/", Read),
            ("/ws", Write),
            ("/ws/a/b", Read),
            ("/ws/secret", Deny),
            ("/ws/secret/open", Read),
            ("/ws/file.txt", Deny),
        ]));
    }

    #[test]
    fn nothing_readable_but_a_workspace() {
        insta::assert_snapshot!(shown([("/ws", Write), ("/usr", Read)]));
    }

    #[test]
    fn everything_writable() {
        insta::assert_snapshot!(shown([("/", Write), ("/etc", Read)]));
    }
}
