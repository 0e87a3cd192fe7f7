//! What a command prepares for the next launch: marked directories, a `TMPDIR` that is somebody's workspace.

use crate::stage::{Ended, Profile, Stage, Who};

/// Makes a directory look like a placeholder.
const MARK: &str = "mark() { chmod 555 \"$1\"; touch -d @1000000000 \"$1\"; };";

#[test]
fn a_rule_below_a_directory_that_looks_like_a_placeholder_holds() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        for name in ["sub/.env", "sub/deep/.env", "sub/denied/file", "sub/kept", "denied/file"] {
            stage.fixture.file(format!("ws/{name}"), "secret");
        }
        let profile = stage
            .workspace()
            .deny_glob("**/.env")
            .path_if_present("deny", &stage.path("ws/denied"))
            .path_if_present("deny", &stage.path("ws/sub/denied"))
            .path_if_present("read", &stage.path("ws/sub/kept"));
        let script = format!("{MARK} mark sub/deep; mark sub; mark .");
        stage.sh(&stage.workspace(), &script).assert_ok();
        let script =
            "chmod 755 . sub sub/deep; cat sub/.env sub/deep/.env sub/denied/file denied/file
            echo x > sub/kept && echo written; mv sub away && echo moved; ls sub";
        let ended = stage.sh(&profile, script);
        assert_eq!(ended.assert_ok().stdout, "deep\ndenied\nkept\n", "{ended:?}");
        assert_eq!(stage.fixture.read("ws/sub/kept").as_deref(), Some("secret"));
    }
}

#[test]
fn an_empty_directory_that_looks_like_a_placeholder_lowers_nothing() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let all = "mkdir -p empty .git .codex inner .vscode";
        let script = format!("{all} 2>/dev/null; {MARK} mark empty; mark inner; mark .vscode");
        stage.sh(&stage.workspace(), &script).assert_ok();
        let profile = stage
            .workspace()
            .path_if_present("deny", &stage.path("ws/empty"))
            .path("deny", &stage.path("ws/inner/a/b"));
        let script = "exec 2>/dev/null
            for place in empty inner inner/a inner/a/b .git .codex; do
                chmod 755 $place && echo opened $place; mkdir -p $place/x && echo made $place/x
                mv $place moved && echo moved $place; done; :";
        let ended = stage.sh(&profile, script);
        assert_eq!(ended.assert_ok().stdout, "", "{ended:?}");
    }
}

#[test]
fn a_workspace_that_looks_like_a_placeholder_can_be_worked_in() {
    let stage = Stage::new(Who::everybody()[0]);
    stage.sh(&stage.workspace(), &format!("{MARK} mark .")).assert_ok();
    let profile = stage.profile().root("read").cwd(&stage.path("ws"));
    stage.sh(&profile, "ls").assert_ok();
}

fn with_tmpdir(stage: &Stage, profile: &Profile, tmpdir: &str, script: &str) -> Ended {
    let options = ["--report-fd", "9"];
    let words = stage.launch_words(profile, &options, &["/bin/sh", "-c", script]);
    let tmpdir = format!("TMPDIR={tmpdir}").into();
    stage.run_words(["/usr/bin/env".into(), tmpdir].into_iter().chain(words).collect(), &[])
}

#[test]
fn a_tmpdir_that_is_the_workspace_is_refused() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.directory("other/below");
        stage.fixture.symlink("link", "other");
        let profile = stage.workspace().special("write", "tmpdir");
        let script = "mkdir .git && echo made";
        for tmpdir in [stage.path("ws"), stage.path(".")] {
            let ended = with_tmpdir(&stage, &profile, &tmpdir, script);
            assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
            assert!(ended.stderr.contains("TMPDIR"), "{ended:?}");
        }
        // By another name, the launcher sees it.
        let linked = profile.clone().path("write", &stage.path("link/below"));
        let ended = with_tmpdir(&stage, &linked, &stage.path("other"), script);
        ended.assert_refused("equals or contains");
        // And a directory of its own is fine, without placeholders in it.
        stage.fixture.directory("tmp");
        let ended = with_tmpdir(&stage, &profile, &stage.path("tmp"), "ls -A $TMPDIR; mkdir .git");
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
    }
}

#[test]
fn protected_names_are_kept_from_a_temporary_directory_that_the_command_works_in() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.directory("tmp/inner");
        let tmpdir = stage.path("tmp");
        let base = stage.profile().root("read").special("write", "tmpdir");
        let script = format!("mkdir {tmpdir}/.git && echo made; rmdir {tmpdir}/.git");
        let inside = base.clone().cwd(&stage.path("tmp/inner"));
        // The state's cwd is inside TMPDIR, which only the temporary-directory rule grants.
        let ended = with_tmpdir(&stage, &inside, &tmpdir, &script);
        assert_eq!(ended.stdout, "", "{ended:?}");
        let elsewhere = with_tmpdir(&stage, &base.cwd(&stage.path("ws")), &tmpdir, &script);
        assert_eq!(elsewhere.stdout, "made\n", "{elsewhere:?}");
    }
}
