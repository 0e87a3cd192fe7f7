//! What a machine or a caller may have set up: mounts, limits, closed directories, a container.

use std::ffi::OsString;
use std::process::Stdio;

use crate::stage::{Ended, Profile, Stage, Who};

/// `before` in a mount namespace of one's own, then a launch in it. An ordinary user is root of a user namespace there,
/// like in a container.
fn after_mounts(stage: &Stage, before: &str, profile: &Profile, script: &str) -> Ended {
    let flags = if stage.who == Who::Root { "-m" } else { "-Urm" };
    let exec = format!("set -e; {before}; exec \"$0\" \"$@\"");
    let mut words: Vec<OsString> =
        ["/usr/bin/unshare", flags, "/bin/sh", "-c", &exec].map(Into::into).to_vec();
    words.extend(stage.launch_words(profile, &[], &["/bin/sh", "-c", script]));
    Ended::of(&stage.command(words).output().unwrap())
}

#[test]
fn a_mount_that_is_read_only_on_the_host_stays_so_in_a_writable_root() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.directory("ws/mounted");
        stage.fixture.file("out/file", "kept");
        let (out, mounted) = (stage.path("out"), stage.path("ws/mounted"));
        let before = format!(
            "mount --bind {out} {mounted}; mount -o remount,bind,ro,noexec {mounted}; grep -q kept {mounted}/file"
        );
        let script =
            "cat mounted/file; echo x > mounted/new || echo refused; echo y > free && echo written";
        let ended = after_mounts(&stage, &before, &stage.workspace(), script);
        assert_eq!(ended.stdout, "keptrefused\nwritten\n", "{ended:?}");
        assert_eq!(stage.fixture.names("out"), ["file"]);
        // A rule that grants it does not lift the host's flag either.
        let granted = stage.workspace().path("write", &mounted);
        let ended = after_mounts(&stage, &before, &granted, script);
        assert_eq!(ended.stdout, "keptrefused\nwritten\n", "{ended:?}");
    }
}

#[test]
fn a_mount_below_a_denied_place_is_hidden_with_it() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.directory("ws/secret/mounted");
        let mounted = stage.path("ws/secret/mounted");
        let before = format!("mount -t tmpfs none {mounted}; echo secret > {mounted}/file");
        let profile = stage.workspace().path("deny", &stage.path("ws/secret"));
        let script = "cat secret/mounted/file || echo hidden";
        let ended = after_mounts(&stage, &before, &profile, script);
        assert_eq!(ended.stdout, "hidden\n", "{ended:?}");
    }
}

#[test]
fn a_mount_outside_the_roots_becomes_read_only() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let out = stage.fixture.directory("out").display().to_string();
        let before = format!("mount -t tmpfs none {out}");
        let script = format!("echo x > {out}/new || echo refused");
        let ended = after_mounts(&stage, &before, &stage.workspace(), &script);
        assert_eq!(ended.stdout, "refused\n", "{ended:?}");
    }
}

#[test]
fn a_rule_inside_a_closed_directory_of_ones_own_is_refused() {
    let stage = Stage::new(Who::User);
    stage.fixture.file("closed/secret", "secret");
    stage.fixture.set_mode("closed", 0);
    let secret = stage.path("closed/secret");
    let ended = stage.sh(&stage.workspace().path("deny", &secret), "echo ran");
    ended.assert_refused("closed/secret");
    assert!(stage.fixture.names("ws").is_empty());
}

#[test]
fn more_rules_than_descriptors_are_refused_and_leave_nothing() {
    let stage = Stage::new(Who::User);
    let mut profile = stage.workspace();
    for index in 0..150 {
        let name = format!("out/place-{index}");
        stage.fixture.directory(&name);
        profile = profile
            .path("write", &stage.path(&name))
            .path("read", &format!("{}/.git", stage.path(&name)));
    }
    let mut words: Vec<OsString> =
        ["/bin/sh", "-c", "ulimit -n 100; exec \"$0\" \"$@\""].map(Into::into).to_vec();
    words.extend(stage.launch_words(&profile, &[], &["/bin/echo", "ran"]));
    let ended = Ended::of(&stage.command(words).output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
    assert!(ended.stderr.contains("Too many open files"), "{ended:?}");
    assert!(stage.fixture.names("out/place-0").is_empty());
    assert!(stage.fixture.names("ws").is_empty());
}

#[test]
fn a_file_given_for_reading_is_not_written_through_stdin() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let file = stage.fixture.file("out/input", "kept\n");
        let script =
            "cat; echo x > /dev/stdin || echo refused; echo x > /proc/self/fd/0 || echo refused";
        let mut command = stage.inside(&stage.workspace(), &["/bin/sh", "-c", script]);
        let stdin = Stdio::from(std::fs::File::open(&file).unwrap());
        let output = command.stdin(stdin).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "kept\nrefused\nrefused\n");
        assert_eq!(stage.fixture.read("out/input").as_deref(), Some("kept\n"));
    }
}

/// A user's other groups stay with the command, and give nothing where nothing is granted.
#[test]
fn supplementary_groups_open_nothing() {
    if !plenipo_testkit::requires(
        "root, to give a process other groups",
        plenipo_testkit::is_root(),
    ) {
        return;
    }
    let stage = Stage::new(Who::User);
    let out = stage.fixture.directory("out");
    std::os::unix::fs::chown(&out, Some(0), Some(0)).unwrap();
    stage.fixture.set_mode("out", 0o775);
    let ids = stage.who.ids();
    let identity = [format!("--reuid={}", ids.uid), format!("--regid={}", ids.gid)];
    let script = format!("echo x > {}/new || echo refused", out.display());
    let run = |command: Vec<OsString>| {
        let mut words = std::process::Command::new("/usr/bin/setpriv");
        words.args(&identity).args(["--groups=0", "--inh-caps=-all", "--"]).args(command);
        Ended::of(&words.current_dir("/").output().unwrap())
    };
    let argv = ["/bin/sh", "-c", script.as_str()];
    assert_eq!(run(argv.map(Into::into).to_vec()).code, 0, "the control could not write");
    assert!(stage.fixture.exists("out/new"));
    std::fs::remove_file(out.join("new")).unwrap();
    let ended = run(stage.launch_words(&stage.workspace(), &[], &argv));
    assert_eq!(ended.stdout, "refused\n", "{ended:?}");
    assert!(!stage.fixture.exists("out/new"));
}

#[test]
fn a_limit_of_processes_is_named_as_such() {
    let stage = Stage::new(Who::User);
    let exec = "ulimit -u 1; exec \"$0\" \"$@\"";
    let mut words: Vec<OsString> = ["/bin/bash", "-c", exec].map(Into::into).to_vec();
    words.extend(stage.launch_words(&stage.workspace(), &[], &["/bin/echo", "ran"]));
    let ended = Ended::of(&stage.command(words).output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
    assert!(ended.stderr.contains("Resource temporarily unavailable"), "{ended:?}");
}
