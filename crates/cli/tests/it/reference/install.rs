//! Where the reference CLI is.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use plenipo_authority::VerifiedLauncher;
use plenipo_testkit::{Fixture, peers, requires};
use rustix::fs::{FlockOperation, flock};

/// The installed reference CLI, in a place that every user can reach and nobody else can change.
///
/// One test at a time has it: launchers that share a writable directory such as `/tmp` stand on each other's mount
/// points there.
#[derive(Debug)]
pub(super) struct Reference {
    directory: PathBuf,
    _turn: File,
    _copy: Option<Fixture>,
}

impl Reference {
    /// The one that `cargo xtask test --peers` brought, or a counted skip.
    pub(super) fn find() -> Option<Self> {
        let root = peers().map(|peers| peers.join("reference"));
        let installed = root.as_ref().and_then(|root| {
            let packages = root.join("node_modules/@openai");
            let vendors = children(&packages).into_iter().map(|package| package.join("vendor"));
            let mut platforms = vendors.flat_map(|vendor| children(&vendor));
            platforms.find(|platform| platform.join(PROGRAM).is_file())
        });
        let what = "the reference CLI (cargo xtask test --peers)";
        let directory = requires(what, installed.is_some()).then_some(installed)??;
        let directory = directory.canonicalize().unwrap();
        let turn = File::open(root?).unwrap();
        flock(&turn, FlockOperation::LockExclusive).unwrap();
        if is_reachable(&directory) && VerifiedLauncher::verify(&directory.join(PROGRAM)).is_ok() {
            return Some(Self { directory, _turn: turn, _copy: None });
        }
        Some(Self::copy(&directory, turn))
    }

    fn copy(from: &Path, turn: File) -> Self {
        let fixture = Fixture::new();
        let directory = fixture.join("reference");
        let copied = Command::new("/bin/cp").arg("-r").arg(from).arg(&directory).status().unwrap();
        assert!(copied.success(), "copy {}", from.display());
        Self { directory, _turn: turn, _copy: Some(fixture) }
    }

    pub(super) fn program(&self) -> PathBuf {
        self.directory.join(PROGRAM)
    }

    /// The program with everything that it needs.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

const PROGRAM: &str = "bin/codex";

fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Whether an ordinary user gets there.
fn is_reachable(directory: &Path) -> bool {
    const OTHERS_MAY_ENTER: u32 = 0o001;
    directory.ancestors().all(|place| {
        place.metadata().is_ok_and(|metadata| metadata.permissions().mode() & OTHERS_MAY_ENTER != 0)
    })
}
