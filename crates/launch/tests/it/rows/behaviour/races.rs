//! Row 29: components replaced by symbolic links between the policy's resolution and the mounts.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{RenameFlags, renameat_with};

use super::{Seen, seen};
use crate::stage::{Ended, Profile, Stage, Who};

/// Launches that are raced at least.
const LAUNCHES: usize = 100;
/// Swaps that the racer has to make at least.
const SWAPS: usize = 1000;

/// The command tries what a mount on the wrong file would allow. It says so if it was let run at all.
const SCRIPT: &str = "exec 2>/dev/null; for place in root root/sub root/sub/kept root/sub/kept/deep ../kept ../sub/kept \
                      ../outside ../outside/sub/kept ../other/sub/kept; do echo x > $place/new; done; \
                      cat root/secret/inner; echo ran";

/// Directories that the racer moves, held open: their names change.
struct Held {
    stage: File,
    parents: [(&'static str, File); 4],
    kept: File,
    root: File,
}

impl Held {
    fn of(stage: &Stage) -> Self {
        let open = |relative: &str| File::open(stage.fixture.join(relative)).unwrap();
        Self {
            stage: open(""),
            parents: [
                ("kept", open("ws/root/sub")),
                ("secret", open("ws/root")),
                ("sub", open("ws/root")),
                ("root", open("ws")),
            ],
            kept: open("ws/root/sub/kept"),
            root: open("ws/root"),
        }
    }

    /// Exchanges each directory with the link of the same name until told to stop. One of the two always stands there.
    fn race(&self, stop: &AtomicBool, swaps: &AtomicUsize) {
        while !stop.load(Ordering::Relaxed) {
            for (name, parent) in &self.parents {
                let (one, other) = (parent, &self.stage);
                renameat_with(one, *name, other, *name, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
            }
        }
    }
}

fn names(directory: &File) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd())).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn prepare(stage: &Stage) -> Profile {
    let fixture = &stage.fixture;
    for directory in ["ws/root/sub/kept/deep", "outside/sub/kept/deep", "other/sub/kept/deep"] {
        fixture.directory(directory);
    }
    fixture.file("ws/root/secret/inner", "secret of root");
    fixture.file("other/secret/inner", "secret of other");
    fixture.file("outside/secret/inner", "");
    // Where `root` itself is a link when the policy is read, the policy is about its target.
    let links = [("root", "other"), ("sub", "outside/sub"), ("secret", "outside/secret")];
    for (link, target) in links.into_iter().chain([("kept", "outside/sub/kept")]) {
        fixture.symlink(link, stage.path(target));
    }
    let path = |relative| stage.path(relative);
    stage
        .profile()
        .root("read")
        .path("write", &path("ws/root"))
        .path("read", &path("ws/root/sub/kept"))
        .path("deny", &path("ws/root/secret"))
}

pub(super) fn swapped_components(who: Who) -> Seen {
    let stage = Stage::new(who);
    let profile = prepare(&stage);
    let held = Held::of(&stage);
    let (stop, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut outcomes = [0usize; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| held.race(&stop, &swaps));
        while outcomes.iter().sum::<usize>() < LAUNCHES || swaps.load(Ordering::Relaxed) < SWAPS {
            let ended = stage.sh(&profile, SCRIPT);
            let fault = fault(&stage, &held, &ended);
            if fault.is_some() {
                stop.store(true, Ordering::Relaxed);
            }
            assert_eq!(fault, None, "{ended:?}");
            outcomes[usize::from(ended.code != 0)] += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    for root in [&held.root, &File::open(stage.fixture.join("other")).unwrap()] {
        assert!(names(root).iter().all(|name| !name.starts_with('.')), "{:?}", names(root));
    }
    let [enforced, refused] = outcomes;
    let swaps = swaps.into_inner();
    seen("n/a: needs a launch", format!("{enforced} enforced, {refused} refused, {swaps} swaps"))
}

/// What is wrong after one launch, seen on the host. Where `root` was a link when the policy was read, all of the policy has
/// to be about its target.
fn fault(stage: &Stage, held: &Held, ended: &Ended) -> Option<String> {
    let enforced = match ended.code {
        0 if ended.stdout.ends_with("ran\n") => true,
        125 if ended.stdout.is_empty() => false,
        _ => return Some("neither enforced nor refused".to_owned()),
    };
    for place in ["outside/new", "outside/sub/new", "outside/sub/kept/new", "other/sub/kept/new"] {
        if stage.fixture.exists(place) {
            return Some(format!("{place} was written"));
        }
    }
    if names(&held.kept) != ["deep"] {
        return Some("the protected directory was written".to_owned());
    }
    let other = File::open(stage.fixture.join("other")).unwrap();
    let mut granted = 0;
    for (name, place, directory) in [("root", "ws/root", &held.root), ("other", "other", &other)] {
        let rules = ["write ", "read /sub/kept", "deny /secret"].map(|rule| {
            let (access, below) = rule.split_once(' ').unwrap();
            format!("{access} {}{below}", stage.path(place))
        });
        let is_granted = enforced && ended.rules().contains(&rules[0]);
        granted += usize::from(is_granted);
        if is_granted && !rules.iter().all(|rule| ended.rules().contains(rule)) {
            return Some("the rules are about different places".to_owned());
        }
        if is_granted && ended.stdout.contains(&format!("secret of {name}")) {
            return Some("a denied file was read".to_owned());
        }
        let written = names(directory).contains(&"new".to_owned());
        if written && !is_granted {
            return Some(format!("{name} was written without a grant"));
        }
        std::fs::remove_file(format!("/proc/self/fd/{}/new", directory.as_raw_fd())).ok();
    }
    (granted != usize::from(enforced)).then(|| "not one root was granted".to_owned())
}
