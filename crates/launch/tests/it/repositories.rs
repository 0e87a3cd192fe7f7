//! A git repository in the workspace: usable, and its hooks and configuration out of reach.

use plenipo_testkit::{find_tool, requires};

use crate::stage::{Ended, Stage, Who};

fn git(stage: &Stage, arguments: &[&str]) {
    let ws = stage.path("ws");
    let words: Vec<std::ffi::OsString> = ["/usr/bin/env", "git", "-C", ws.as_str()]
        .into_iter()
        .chain(["-c", "user.name=a", "-c", "user.email=a@example.invalid"])
        .chain(arguments.iter().copied())
        .map(Into::into)
        .collect();
    let ended = Ended::of(&stage.command(words).output().unwrap());
    ended.assert_ok();
}

#[test]
fn a_repository_is_readable_and_its_git_directory_stays_as_it_is() {
    if !requires("git on PATH", find_tool("git").is_some()) {
        return;
    }
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.file("ws/tracked", "one\n");
        stage.fixture.directory("ws/sub");
        git(&stage, &["init", "-q"]);
        git(&stage, &["add", "tracked"]);
        git(&stage, &["commit", "-qm", "First"]);
        let script = "echo two > tracked; git status --short; git log --format=%s; git diff --stat | tail -1; \
                      git commit -qam Second 2>/dev/null || echo refused; git -C sub init -q && echo nested; \
                      git -C sub status >/dev/null && echo usable";
        let ended = stage.sh(&stage.workspace(), script);
        let wanted = " M tracked\nFirst\n 1 file changed, 1 insertion(+), 1 deletion(-)\nrefused\nnested\nusable\n";
        assert_eq!(ended.stdout, wanted, "{ended:?}");
        assert!(stage.fixture.exists("ws/sub/.git/HEAD"));
    }
}

/// An empty directory where `.git` is missing keeps git looking in the directories above.
#[test]
fn a_placeholder_does_not_hide_the_repository_above() {
    if !requires("git on PATH", find_tool("git").is_some()) {
        return;
    }
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.directory("ws/package");
        git(&stage, &["init", "-q"]);
        let package = stage.path("ws/package");
        let profile = stage.profile().root("read").path("write", &package).cwd(&package);
        let ended = stage.sh(&profile, "git rev-parse --show-toplevel; ls -a");
        assert_eq!(ended.assert_ok().stdout.lines().next(), Some(stage.path("ws").as_str()));
        assert!(ended.stdout.lines().any(|line| line == ".git"));
        assert!(!stage.fixture.exists("ws/package/.git"));
    }
}
