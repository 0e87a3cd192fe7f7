use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
};

use super::*;

struct Fixture {
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(fixture.path("bin")).unwrap();
        fixture.set_mode("bin", 0o755);
        fixture.write("bin/launcher", "#!/bin/sh\n");
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        self.set_mode(name, 0o755);
    }

    fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).unwrap();
    }

    fn verify(&self, name: &str) -> Result<VerifiedLauncher, LauncherFault> {
        VerifiedLauncher::verify(&self.path(name))
    }
}

#[test]
fn launcher_path_is_absolute_utf8_and_present() {
    use std::os::unix::ffi::OsStrExt as _;
    let fault = |path: &[u8]| {
        SandboxLauncher::new(Path::new(std::ffi::OsStr::from_bytes(path))).unwrap_err()
    };
    assert!(matches!(fault(b""), LauncherFault::NotAbsolute { .. }));
    assert!(matches!(fault(b"plenipo"), LauncherFault::NotAbsolute { .. }));
    assert!(matches!(fault(b"C:\\plenipo.exe"), LauncherFault::NotAbsolute { .. }));
    assert!(matches!(fault(b"/a\xff"), LauncherFault::NotUtf8 { .. }));
    assert!(matches!(fault(b"/a\0"), LauncherFault::Nul { .. }));
    assert!(matches!(fault(b"/a (deleted)"), LauncherFault::Deleted { .. }));
    assert_eq!(SandboxLauncher::new(Path::new("/a/../b")).unwrap().as_str(), "/a/../b");
}

#[test]
fn launcher_value_is_exactly_one_member() {
    let launcher = SandboxLauncher::new(Path::new("/opt/a \"b\"\n/c")).unwrap();
    assert_eq!(launcher.to_json().unwrap().get(), r#"{"codexExecutable":"/opt/a \"b\"\n/c"}"#);
}

#[test]
fn a_file_that_only_its_owner_can_replace_is_verified() {
    let fixture = Fixture::new();
    let verified = fixture.verify("bin/launcher").unwrap();
    assert_eq!(verified.launcher().as_path(), fixture.path("bin/launcher"));
    verified.still_same().unwrap();
}

#[test]
fn a_launcher_in_a_directory_writable_by_others_is_refused_unless_sticky() {
    let fixture = Fixture::new();
    for mode in [0o775, 0o757, 0o777] {
        fixture.set_mode("bin", mode);
        let fault = fixture.verify("bin/launcher").unwrap_err();
        let LauncherFault::WritableByOthers { at, mode: found, .. } = fault else {
            panic!("{fault:?}")
        };
        assert_eq!((at, found), (fixture.path("bin"), mode));
        fixture.set_mode("bin", 0o1000 | mode);
        fixture.verify("bin/launcher").unwrap();
    }
}

#[test]
fn a_launcher_file_writable_by_others_is_refused_even_with_the_sticky_bit() {
    let fixture = Fixture::new();
    for mode in [0o775, 0o757, 0o1777] {
        fixture.set_mode("bin/launcher", mode);
        let fault = fixture.verify("bin/launcher").unwrap_err();
        assert!(matches!(fault, LauncherFault::WritableByOthers { .. }), "{fault:?}");
    }
}

#[test]
fn what_is_no_executable_file_is_refused() {
    let fixture = Fixture::new();
    assert!(matches!(fixture.verify("bin"), Err(LauncherFault::NotAFile { .. })));
    assert!(matches!(fixture.verify("bin/none"), Err(LauncherFault::Unreadable { .. })));
    assert!(matches!(fixture.verify("bin/launcher/x"), Err(LauncherFault::Unreadable { .. })));
    fixture.set_mode("bin/launcher", 0o644);
    assert!(matches!(fixture.verify("bin/launcher"), Err(LauncherFault::NotExecutable { .. })));
}

#[test]
fn links_are_followed_and_the_way_they_lead_is_checked_too() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("links")).unwrap();
    symlink("../bin", fixture.path("links/relative")).unwrap();
    symlink(fixture.path("links/relative/launcher"), fixture.path("links/launcher")).unwrap();
    let verified = fixture.verify("links/launcher").unwrap();
    assert_eq!(verified.launcher().as_path(), fixture.path("links/launcher"));

    fixture.set_mode("bin", 0o777);
    let fault = fixture.verify("links/launcher").unwrap_err();
    assert!(matches!(fault, LauncherFault::WritableByOthers { .. }), "{fault:?}");
    fixture.set_mode("bin", 0o755);

    symlink("loop", fixture.path("loop")).unwrap();
    assert!(matches!(fixture.verify("loop"), Err(LauncherFault::TooManyLinks { .. })));
}

#[test]
fn a_foreign_owner_anywhere_on_the_way_is_refused() {
    let fixture = Fixture::new();
    for name in ["bin", "bin/launcher"] {
        if std::os::unix::fs::chown(fixture.path(name), Some(4242), None).is_err() {
            // Only root gives files away; an ordinary user cannot make this fixture.
            assert_ne!(effective_user(), 0);
            return;
        }
        let fault = fixture.verify("bin/launcher").unwrap_err();
        assert!(
            matches!(&fault, LauncherFault::ForeignOwner { at, owner: 4242, .. } if *at == fixture.path(name)),
            "{fault:?}"
        );
        std::os::unix::fs::chown(fixture.path(name), Some(0), None).unwrap();
    }
}

fn effective_user() -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").unwrap().uid()
}

#[test]
fn another_file_at_the_same_path_is_no_longer_the_same() {
    let fixture = Fixture::new();
    let verified = fixture.verify("bin/launcher").unwrap();
    fixture.write("bin/fake", "#!/bin/sh\n");
    fs::rename(fixture.path("bin/fake"), fixture.path("bin/launcher")).unwrap();
    assert!(matches!(verified.still_same(), Err(LauncherFault::Changed { .. })));
    assert_ne!(fixture.verify("bin/launcher").unwrap(), verified);

    fs::remove_file(fixture.path("bin/launcher")).unwrap();
    assert!(matches!(verified.still_same(), Err(LauncherFault::Unreadable { .. })));
}

#[test]
fn the_same_file_with_other_content_or_mode_is_no_longer_the_same() {
    let fixture = Fixture::new();
    let verified = fixture.verify("bin/launcher").unwrap();
    fixture.write("bin/launcher", "#!/bin/sh\nexit\n");
    assert!(matches!(verified.still_same(), Err(LauncherFault::Changed { .. })));
}
