//! Which rule holds where: the most specific path wins.

use plenipo_testkit::Listener;

use crate::stage::{Stage, Who};

/// Runs `attempts` (what to try, whether it should work) in one shell, which says how each ended.
#[track_caller]
fn try_all(stage: &Stage, profile: &crate::stage::Profile, attempts: &[(&str, bool)]) {
    let script: String = attempts
        .iter()
        .map(|(what, _)| format!("if {{ {what}; }} >/dev/null; then echo yes; else echo no; fi\n"))
        .collect();
    let ended = stage.sh(profile, &format!("exec 2>/dev/null\n{script}"));
    let seen: Vec<bool> = ended.assert_ok().stdout.lines().map(|line| line == "yes").collect();
    assert_eq!(seen.len(), attempts.len(), "{ended:?}");
    for ((what, wanted), seen) in attempts.iter().zip(seen) {
        assert_eq!(seen, *wanted, "`{what}` as {}", stage.who.name());
    }
}

fn for_everybody(check: impl Fn(Stage)) {
    Who::everybody().into_iter().map(Stage::new).for_each(check);
}

#[test]
fn a_read_child_of_a_write_root_and_a_write_grandchild_hold() {
    for_everybody(|stage| {
        stage.fixture.directory("ws/a/b");
        let profile = stage
            .workspace()
            .path("read", &stage.path("ws/a"))
            .path("write", &stage.path("ws/a/b"));
        try_all(
            &stage,
            &profile,
            &[
                ("echo x > new", true),
                ("echo x > a/new", false),
                ("echo x > a/b/new", true),
                ("mv a c", false),
                ("mv a/b a/c", false),
            ],
        );
        assert!(stage.fixture.exists("ws/new") && stage.fixture.exists("ws/a/b/new"));
        assert!(!stage.fixture.exists("ws/a/new"));
    });
}

#[test]
fn a_write_child_directory_of_a_denied_parent_is_writable_and_nothing_else_shows() {
    for_everybody(|stage| {
        stage.fixture.file("out/secret", "secret");
        stage.fixture.directory("out/deep/dir");
        let profile = stage
            .workspace()
            .path("deny", &stage.path("out"))
            .path("write", &stage.path("out/deep/dir"));
        let out = stage.path("out");
        let attempts = [
            (format!("echo x > {out}/deep/dir/new"), true),
            (format!("cat {out}/secret"), false),
            (format!("ls {out}"), false),
            (format!("ls {out}/deep"), false),
            (format!("echo x > {out}/new"), false),
            (format!("echo x > {out}/deep/new"), false),
        ];
        let attempts: Vec<(&str, bool)> =
            attempts.iter().map(|(what, wanted)| (what.as_str(), *wanted)).collect();
        try_all(&stage, &profile, &attempts);
        assert!(stage.fixture.exists("out/deep/dir/new"));
    });
}

#[test]
fn a_write_child_file_of_a_denied_parent_is_writable() {
    for_everybody(|stage| {
        stage.fixture.file("out/secret", "secret");
        stage.fixture.file("out/log", "");
        let profile = stage
            .workspace()
            .path("deny", &stage.path("out"))
            .path("write", &stage.path("out/log"));
        let out = stage.path("out");
        let write = format!("echo x >> {out}/log");
        let read = format!("cat {out}/secret");
        try_all(&stage, &profile, &[(&write, true), (&read, false)]);
        assert_eq!(stage.fixture.read("out/log").as_deref(), Some("x\n"));
    });
}

#[test]
fn a_read_place_under_a_writable_root_directory_holds_with_its_ancestors() {
    for_everybody(|stage| {
        stage.fixture.file("out/kept/file", "kept");
        let profile = stage.profile().root("write").path("read", &stage.path("out/kept"));
        let base = stage.path("");
        let attempts = [
            (format!("echo x > {base}new"), true),
            (format!("echo x > {base}out/new"), true),
            (format!("echo x > {base}out/kept/new"), false),
            (format!("mv {base}out {base}out2"), false),
            ("echo x > /dev/null".to_owned(), true),
        ];
        let attempts: Vec<(&str, bool)> =
            attempts.iter().map(|(what, wanted)| (what.as_str(), *wanted)).collect();
        try_all(&stage, &profile, &attempts);
        assert!(stage.fixture.exists("new") && stage.fixture.exists("out/new"));
        assert_eq!(stage.fixture.names("out/kept"), ["file"]);
    });
}

#[test]
fn denied_places_nest_under_writable_ones() {
    for_everybody(|stage| {
        stage.fixture.file("ws/a/b/c/secret", "secret");
        stage.fixture.file("ws/a/hidden", "secret");
        let profile = stage
            .workspace()
            .path("deny", &stage.path("ws/a"))
            .path("write", &stage.path("ws/a/b"))
            .path("deny", &stage.path("ws/a/b/c"));
        try_all(
            &stage,
            &profile,
            &[
                ("cat a/hidden", false),
                ("echo x > a/b/new", true),
                ("cat a/b/c/secret", false),
                ("ls a/b/c", false),
                ("mv a/b/c a/b/d", false),
                ("mv a z", false),
            ],
        );
    });
}

#[test]
fn rules_in_dev_and_proc_never_bring_back_those_of_the_host() {
    for_everybody(|stage| {
        let profile = stage
            .workspace()
            .path("write", "/proc")
            .path("write", "/proc/sys")
            .path("write", "/dev")
            .path("read", "/dev/null")
            .path("deny", "/dev/kmsg")
            .path("deny", "/proc/version");
        let outside = std::process::id();
        let host = format!("test -d /proc/{outside}/task");
        let pattern = "echo core > /proc/sys/kernel/core_pattern";
        let attempts = [
            (host.as_str(), false),
            (pattern, false),
            ("test -e /dev/kmsg", false),
            ("cat /proc/version", false),
            ("echo x > /dev/null", true),
            ("cat /proc/self/status", true),
        ];
        try_all(&stage, &profile, &attempts);
        let notes = stage.sh(&profile, ":").report.expect("a report")["notes"].to_string();
        assert!(notes.contains("/proc/sys"), "{notes}");
    });
}

#[test]
fn shared_memory_is_the_hosts_where_it_is_granted() {
    for_everybody(|stage| {
        let name = stage.fixture.path().file_name().unwrap().to_str().unwrap().to_owned();
        let place = format!("/dev/shm/{name}");
        let profile = stage.workspace().path("write", "/dev/shm");
        stage.sh(&profile, &format!("echo x > {place}")).assert_ok();
        let written = std::fs::read_to_string(&place);
        std::fs::remove_file(&place).ok();
        assert_eq!(written.unwrap(), "x\n");
    });
}

#[test]
fn a_missing_read_place_in_a_writable_root_does_not_come_into_being() {
    for_everybody(|stage| {
        let profile = stage
            .workspace()
            .path("read", &stage.path("ws/later"))
            .path_if_present("read", &stage.path("ws/maybe"));
        try_all(
            &stage,
            &profile,
            &[("echo x > later", false), ("mkdir later/x", false), ("echo x > maybe", true)],
        );
        assert!(!stage.fixture.exists("ws/later"), "the placeholder stayed");
        assert!(stage.fixture.exists("ws/maybe"));
    });
}

#[test]
fn a_missing_writable_root_is_reported_and_not_made() {
    for_everybody(|stage| {
        let ended = stage.sh(&stage.workspace().path("write", &stage.path("gone")), "echo ran");
        assert!(ended.assert_ok().report.as_ref().unwrap()["notes"].to_string().contains("gone"));
        assert!(!stage.fixture.exists("gone"));
    });
}

#[test]
fn a_rule_through_a_symlink_in_a_writable_place_is_refused() {
    for_everybody(|stage| {
        stage.fixture.file("out/secret", "secret");
        stage.fixture.symlink("ws/link", stage.path("out"));
        for access in ["deny", "read", "write"] {
            let profile = stage.workspace().path(access, &stage.path("ws/link"));
            stage.sh(&profile, "echo ran").assert_refused("leads through the symbolic link");
        }
        let glob = format!("{}/**/*.key", stage.path("ws/link"));
        stage
            .sh(&stage.workspace().deny_glob(&glob), "echo ran")
            .assert_refused("leads through the symbolic link");
        assert_eq!(stage.fixture.names("ws"), ["link"], "a placeholder was left");
    });
}

#[test]
fn a_root_under_a_symlinked_ancestor_is_enforced_at_its_real_place() {
    for_everybody(|stage| {
        stage.fixture.directory("real/ws/kept");
        stage.fixture.symlink("alias", stage.path("real"));
        let profile = stage
            .profile()
            .root("read")
            .cwd(&stage.path("alias/ws"))
            .path("write", &stage.path("alias/ws"))
            .path("read", &stage.path("alias/ws/kept"));
        try_all(&stage, &profile, &[("echo x > new", true), ("echo x > kept/new", false)]);
        assert!(stage.fixture.exists("real/ws/new"));
    });
}

#[test]
fn present_matches_of_a_deny_glob_are_masked() {
    for_everybody(|stage| {
        stage.fixture.file("ws/.env", "secret");
        stage.fixture.file("ws/deep/er/a.env", "secret");
        stage.fixture.file("ws/deep/er/plain", "plain");
        stage.fixture.file("ws/keys.env/inner", "secret");
        stage.fixture.file("ws/closed/b.env", "secret");
        stage.fixture.set_mode("ws/closed", 0o311);
        let profile = stage.workspace().deny_glob("**/*.env");
        try_all(
            &stage,
            &profile,
            &[
                ("cat .env", false),
                ("cat deep/er/a.env", false),
                ("cat deep/er/plain", true),
                ("ls keys.env", false),
                ("mv deep/er/a.env b", false),
                ("cat closed/b.env", false),
                ("chmod 755 closed && cat closed/b.env", false),
            ],
        );
    });
}

#[test]
fn a_deny_glob_with_more_than_8192_matches_is_refused_by_name() {
    let stage = Stage::new(Who::everybody().pop().unwrap());
    let directory = stage.fixture.directory("ws/many");
    for index in 0..8192 {
        std::fs::write(directory.join(format!("{index}.env")), "").unwrap();
    }
    let profile = stage.profile().root("read").deny_glob("**/*.env");
    std::fs::write(directory.join("one-more.env"), "").unwrap();
    stage.sh(&profile, "echo ran").assert_refused("more than 8192 matches");
    assert!(stage.sh(&profile, "echo ran").stderr.contains("*.env"));
}

#[test]
fn ten_thousand_descriptors_are_not_needed_for_many_rules() {
    for_everybody(|stage| {
        let mut profile = stage.workspace();
        for index in 0..150 {
            let name = format!("ws/place-{index}");
            stage.fixture.directory(&name);
            profile = profile.path("read", &stage.path(&name));
        }
        let mut words: Vec<std::ffi::OsString> =
            ["/bin/sh", "-c", "ulimit -Sn 64; exec \"$0\" \"$@\""].map(Into::into).to_vec();
        words.extend(stage.launch_words(
            &profile,
            &[],
            &["/bin/sh", "-c", "ulimit -Sn; echo x > place-149/x"],
        ));
        let output = stage.command(words).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "64\n", "{output:?}");
        assert!(!stage.fixture.exists("ws/place-149/x"));
    });
}

#[test]
fn a_file_moves_across_a_pinned_directory_within_the_root() {
    for_everybody(|stage| {
        stage.fixture.file("ws/sub/protected/f", "kept");
        stage.fixture.file("ws/sub/new", "moved");
        stage.fixture.file("ws/sub/linked", "linked");
        let profile = stage.workspace().path("read", &stage.path("ws/sub/protected"));
        let script = "import os; os.rename('sub/new', 'new2'); os.link('sub/linked', 'linked2')";
        stage.run(&profile, &["/usr/bin/python3", "-I", "-S", "-c", script]).assert_ok();
        assert_eq!(stage.fixture.read("ws/new2").as_deref(), Some("moved"));
    });
}

#[test]
fn the_report_lists_the_rules_that_were_enforced() {
    for_everybody(|stage| {
        stage.fixture.directory("ws/.git");
        stage.fixture.directory("ws/kept");
        stage.fixture.file("ws/a.env", "");
        let ended = stage.sh(
            &stage.workspace().path("read", &stage.path("ws/kept")).deny_glob("*.env"),
            "echo ran; ls -a",
        );
        let mut wanted = vec!["read /".to_owned(), format!("write {}", stage.path("ws"))];
        let name = |access: &str, name: &str| format!("{access} {}", stage.path(name));
        wanted.extend([
            name("read", "ws/.agents"),
            name("read", "ws/.aws"),
            name("read", "ws/.codex"),
            name("read", "ws/.git"),
            name("deny", "ws/a.env"),
            name("read", "ws/kept"),
        ]);
        assert_eq!(ended.assert_ok().rules(), wanted);
        let placeholders = ended.report.as_ref().unwrap()["placeholders"].clone();
        let made: Vec<String> =
            [".agents", ".aws", ".codex"].map(|n| stage.path(&format!("ws/{n}"))).to_vec();
        let mut said: Vec<String> = serde_json::from_value(placeholders).unwrap();
        said.sort();
        assert_eq!(said, made);
    });
}

#[test]
fn with_the_network_on_the_host_is_reached_over_tcp() {
    for_everybody(|stage| {
        let listener = Listener::tcp();
        let script = format!(
            "import socket; socket.create_connection(('127.0.0.1', {}), 5)",
            listener.port()
        );
        let argv = ["/usr/bin/python3", "-I", "-S", "-c", script.as_str()];
        stage.run(&stage.workspace().network("enabled"), &argv).assert_ok();
        assert_eq!(listener.count(), 1);
        assert_ne!(stage.run(&stage.workspace(), &argv).code, 0);
        assert_eq!(listener.count(), 1);
    });
}

/// Otherwise one command could stop the next by making a link.
#[test]
fn a_link_that_matches_a_deny_glob_hides_its_target_and_is_no_reason_to_refuse() {
    for_everybody(|stage| {
        stage.fixture.file("out/target", "secret");
        stage.fixture.symlink("ws/a.env", stage.path("out/target"));
        let read = format!("cat {}", stage.path("out/target"));
        let profile = stage.workspace().deny_glob("**/*.env");
        try_all(&stage, &profile, &[("cat a.env", false), (&read, false), ("rm a.env", true)]);
    });
}
