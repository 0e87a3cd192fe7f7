//! What is around the executable, and the archive of it all: the same sources give the same bytes, whoever packs them, where
//! and when.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::{Doing, Failure, Outcome, output, succeed};
use crate::workspace::Workspace;

use super::{PROGRAM, Release, SUMS, licences};

/// What a release is called, and the time that its files have.
#[derive(Debug)]
pub(super) struct Stamp {
    version: String,
    /// Seconds since 1970: `SOURCE_DATE_EPOCH`, else the commit's.
    time: String,
}

impl Stamp {
    pub(super) fn of(workspace: &Workspace) -> Outcome<Self> {
        let package = workspace.packages.iter().find(|package| package.name == PROGRAM);
        let package = package.ok_or_else(|| Failure::new(format!("no package `{PROGRAM}`")))?;
        let time = match env::var("SOURCE_DATE_EPOCH") {
            Ok(time) => time,
            Err(_) => {
                let mut log = Command::new("git");
                log.current_dir(&workspace.root).args(["log", "-1", "--format=%ct"]);
                output(&mut log).map_err(|failure| {
                    let else_say = "SOURCE_DATE_EPOCH says the time where there is no repository";
                    Failure::new(format!("the time of the release: {failure}; {else_say}"))
                })?
            }
        };
        let time = time.trim().to_owned();
        if time.is_empty() || !time.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Failure::new(format!("`{time}` is no time in seconds since 1970")));
        }
        Ok(Self { version: package.version.clone(), time })
    }

    /// The folder in the archive; the archive's own name is this with its ending.
    pub(super) fn folder(&self, release: &Release) -> String {
        format!("{PROGRAM}-{}-{}", self.version, release.triple)
    }
}

/// Makes `place` anew: the executable, a folder of everything, its archive, checksums.
pub(super) fn assemble(
    workspace: &Workspace,
    release: &Release,
    place: &Path,
    stamp: &Stamp,
) -> Outcome {
    if place.exists() {
        fs::remove_dir_all(place).doing("remove the last release")?;
    }
    let name = stamp.folder(release);
    let folder = place.join(&name);
    fs::create_dir_all(folder.join("man")).doing("make the release's folder")?;
    copy(&release.program, &folder.join(PROGRAM))?;
    copy(&release.program, &place.join(PROGRAM))?;
    for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
        copy(&workspace.root.join(file), &folder.join(file))?;
    }
    succeed(Command::new(&release.program).arg("man").arg(folder.join("man")))?;
    let text = licences::of(workspace, PROGRAM, &release.triple)?;
    fs::write(folder.join("THIRD-PARTY-LICENSES.txt"), text).doing("write the licences")?;
    let archive = format!("{name}.tar.gz");
    archive_of(place, &name, &archive, &stamp.time)?;
    let mut sum = Command::new("sha256sum");
    let sums = output(sum.current_dir(place).args([PROGRAM, archive.as_str()]))?;
    fs::write(place.join(SUMS), sums).doing("write the checksums")
}

fn copy(from: &Path, to: &Path) -> Outcome {
    fs::copy(from, to).map(drop).doing(&format!("copy {}", from.display()))
}

/// Same names, same bytes: sorted, with one time, nobody's, readable by everybody, whatever the umask and the directory
/// that it was made in.
fn archive_of(place: &Path, name: &str, archive: &str, time: &str) -> Outcome {
    let mut tar = Command::new("tar");
    tar.current_dir(place).arg("--use-compress-program=gzip -n -9");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"]);
    tar.arg(format!("--mtime=@{time}")).args(["--mode=u=rwX,go=rX,ug-s,-t", "-cf", archive, name]);
    // Options that a person has set for their own archives.
    tar.env_remove("TAR_OPTIONS").env_remove("GZIP").env("LC_ALL", "C");
    succeed(&mut tar)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    use super::*;

    struct Place(PathBuf);

    impl Drop for Place {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    /// An archive of `files` (name, text, mode), made in this order `age` seconds ago in a folder of `mode`.
    fn packed(label: &str, files: &[(&str, &str, u32)], mode: u32, age: u64) -> Vec<u8> {
        let place = env::temp_dir().join(format!("plenipo-pack-{}-{label}", std::process::id()));
        let place = Place(place);
        let folder = place.0.join("release");
        fs::create_dir_all(folder.join("man")).unwrap();
        for (name, text, mode) in files {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            let time = SystemTime::now() - Duration::from_secs(age);
            fs::File::open(&path).unwrap().set_modified(time).unwrap();
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        archive_of(&place.0, "release", "release.tar.gz", "1700000000").unwrap();
        fs::read(place.0.join("release.tar.gz")).unwrap()
    }

    #[test]
    fn the_same_files_make_the_same_archive() {
        let one = [("b", "text", 0o644), ("plenipo", "program", 0o755), ("man/a", "page", 0o644)];
        let same = [("man/a", "page", 0o600), ("plenipo", "program", 0o700), ("b", "text", 0o664)];
        let first = packed("first", &one, 0o755, 0);
        assert_eq!(first, packed("same", &same, 0o2770, 100_000));
        let other = [("b", "test", 0o644), ("plenipo", "program", 0o755), ("man/a", "page", 0o644)];
        assert_ne!(first, packed("other", &other, 0o755, 0));
        let locked =
            [("b", "text", 0o755), ("plenipo", "program", 0o755), ("man/a", "page", 0o644)];
        assert_ne!(first, packed("executable", &locked, 0o755, 0), "a program stays one");
    }
}
