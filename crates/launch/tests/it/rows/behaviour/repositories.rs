//! Row 25: repositories whose parts lie elsewhere.

use super::{Seen, seen};
use crate::rows::ground::describe;
use crate::stage::{Ended, Profile, Stage, Who};

const GIT: [&str; 8] = [
    "git",
    "-c",
    "user.name=a",
    "-c",
    "user.email=a@example.invalid",
    "-c",
    "protocol.file.allow=always",
    "-C",
];

fn git(stage: &Stage, directory: &str, arguments: &[&str]) {
    let place = stage.path(directory);
    let words = ["/usr/bin/env"].into_iter().chain(GIT).chain([place.as_str()]);
    let words = words.chain(arguments.iter().copied()).map(Into::into).collect();
    Ended::of(&stage.command(words).output().unwrap()).assert_ok();
}

fn fingerprint(stage: &Stage, watched: &[&str]) -> String {
    let mut text = String::new();
    watched.iter().for_each(|place| describe(&stage.fixture.join(place), &mut text));
    text
}

/// Runs each attack sandboxed (nothing watched may change), then all unsandboxed, last to first (each must change
/// something): what moves a directory away comes first in the list.
fn attack(stage: &Stage, profile: &Profile, attacks: &[&str], watched: &[&str]) -> Seen {
    let before = fingerprint(stage, watched);
    for attack in attacks {
        let ended = stage.sh(profile, attack);
        assert_eq!(ended.report.as_ref().unwrap()["status"], "enforced", "{attack}: {ended:?}");
        assert_ne!(ended.code, 0, "{attack}: {ended:?}");
        let after = fingerprint(stage, watched);
        assert!(before == after, "{attack} as {}\n{before}\n{after}", stage.who.name());
    }
    let mut before = before;
    for attack in attacks.iter().rev() {
        let script = format!("cd {} && {attack}", stage.path("ws"));
        Ended::of(&stage.outside(&["/bin/sh", "-c", &script]).output().unwrap()).assert_ok();
        let after = fingerprint(stage, watched);
        assert!(before != after, "the control of {attack} changed nothing");
        before = after;
    }
    let count = attacks.len();
    seen(format!("{count} succeed"), format!("{count} denied"))
}

/// The git directory and the common directory lie in another writable root.
pub(super) fn worktree(who: Who) -> Seen {
    let stage = Stage::new(who);
    let ws = stage.path("ws");
    std::fs::remove_dir(&ws).unwrap();
    stage.fixture.directory("store");
    git(&stage, "store", &["init", "-q", "--bare", "deep/repo"]);
    git(&stage, "store/deep/repo", &["worktree", "add", "-q", "--orphan", "-b", "main", &ws]);
    stage.fixture.file("ws/tracked", "one");
    git(&stage, "ws", &["add", "."]);
    git(&stage, "ws", &["commit", "-qm", "First"]);
    let profile = stage.workspace().path("write", &stage.path("store"));
    let ended =
        stage.sh(&profile, "git log --format=%s; git status --short; echo x > ../store/free");
    assert_eq!(ended.assert_ok().stdout, "First\n", "{ended:?}");
    attack(
        &stage,
        &profile,
        &[
            "mv ../store/deep ../store/elsewhere && mkdir -p ../store/deep/repo",
            "mv ../store/deep/repo ../store/other",
            "mv .git .g",
            "rm -r ../store/deep/repo/hooks",
            "rm .git && echo 'gitdir: /' > .git",
            "echo '[core]' > ../store/deep/repo/worktrees/ws/config.worktree",
            "echo /tmp > ../store/deep/repo/worktrees/ws/commondir",
            "echo x >> ../store/deep/repo/worktrees/ws/HEAD",
            "echo evil > ../store/deep/repo/hooks/post-checkout",
            "echo '[core] fsmonitor = evil' >> ../store/deep/repo/config",
            "chmod 777 ../store/deep/repo/config",
            "echo 'gitdir: /' >> .git",
        ],
        &["ws/.git", "store/deep"],
    )
}

/// Hooks and included configuration in the working tree run and configure outside.
pub(super) fn hooks(who: Who) -> Seen {
    let stage = Stage::new(who);
    git(&stage, "ws", &["init", "-q"]);
    git(&stage, "ws", &["config", "core.hooksPath", "tools/hooks"]);
    git(&stage, "ws", &["config", "include.path", "../shared.config"]);
    stage.fixture.file("ws/shared.config", "[core]\n\thooksPath = \"other hooks\"\n");
    stage.fixture.executable("ws/tools/hooks/pre-commit", "#!/bin/sh\n");
    let profile = stage.workspace();
    stage
        .sh(&profile, "echo x > tools/free && git status >&2 && ! mkdir 'other hooks'")
        .assert_ok();
    assert!(!stage.fixture.exists("ws/other hooks"), "the placeholder stayed");
    attack(
        &stage,
        &profile,
        &[
            "mv tools tols && mkdir -p tools/hooks",
            "mv tools/hooks tools/h",
            "mkdir 'other hooks' && echo x > 'other hooks/pre-commit'",
            "rm tools/hooks/pre-commit",
            "echo evil >> tools/hooks/pre-commit",
            "echo evil > tools/hooks/post-checkout",
            "echo '[alias] st = !evil' >> shared.config",
            "rm shared.config && echo evil > shared.config",
        ],
        &["ws/.git", "ws/tools/hooks", "ws/shared.config", "ws/other hooks"],
    )
}

pub(super) fn submodules(who: Who) -> Seen {
    let stage = Stage::new(who);
    for name in ["library", "absent"] {
        stage.fixture.directory(name);
        git(&stage, name, &["init", "-q"]);
        git(&stage, name, &["commit", "-q", "--allow-empty", "-m", "First"]);
    }
    git(&stage, "ws", &["init", "-q"]);
    for name in ["library", "absent"] {
        let from = stage.path(name);
        git(&stage, "ws", &["submodule", "--quiet", "add", &from, &format!("parts/{name}")]);
    }
    git(&stage, "ws", &["commit", "-qm", "First"]);
    git(&stage, "ws", &["submodule", "--quiet", "deinit", "parts/absent"]);
    let profile = stage.workspace();
    stage
        .sh(
            &profile,
            "echo x > parts/library/free && git status --short && git -C parts/library log",
        )
        .assert_ok();
    attack(
        &stage,
        &profile,
        &[
            "mv parts part && mkdir -p parts/library",
            "echo 'gitdir: /tmp' > parts/absent/.git",
            "mv parts/library/.git parts/library/.g",
            "echo evil >> .git/modules/parts/library/config",
            "rm parts/library/.git && echo 'gitdir: ../../x' > parts/library/.git",
            "echo 'gitdir: ../../x' >> parts/library/.git",
            "echo '[submodule \"x\"] path = x' >> .gitmodules",
        ],
        &["ws/.git", "ws/.gitmodules", "ws/parts/library/.git", "ws/parts/absent"],
    )
}

/// A linked worktree below the workspace, as agents make them.
pub(super) fn inner_worktree(who: Who) -> Seen {
    let stage = Stage::new(who);
    git(&stage, "ws", &["init", "-q"]);
    git(&stage, "ws", &["commit", "-q", "--allow-empty", "-m", "First"]);
    git(&stage, "ws", &["worktree", "add", "-q", "trees/one"]);
    git(&stage, "ws", &["worktree", "add", "-q", "trees/two"]);
    std::fs::remove_dir_all(stage.path("ws/trees/two")).unwrap();
    let profile = stage.workspace();
    stage.sh(&profile, "mkdir trees/two && rmdir trees/two && git -C trees/one log").assert_ok();
    attack(
        &stage,
        &profile,
        &[
            "mv trees/one trees/other && mkdir trees/one",
            "rm trees/one/.git",
            "echo 'gitdir: ../evil' > trees/one/.git",
        ],
        &["ws/trees"],
    )
}

/// What a pointer says never makes a place readable or writable, and what it could become is kept from becoming it.
pub(super) fn hostile_pointers(who: Who) -> Seen {
    let stage = Stage::new(who);
    stage.fixture.file("out/secret", "secret");
    stage.fixture.directory("out/repo/objects");
    stage.fixture.directory("out/repo/refs");
    stage.fixture.file("out/repo/HEAD", "ref: refs/heads/main\n");
    stage.fixture.directory("ws2/plain");
    let out = stage.path("out");
    let profile = stage.workspace().path("deny", &out).path("write", &stage.path("ws2"));
    let point = |target: &str| {
        stage.fixture.file("ws/.git", format!("gitdir: {target}\n"));
    };
    let denied = format!("cat {out}/secret || cat {out}/repo/HEAD || echo x > {out}/repo/x");
    for target in
        ["/", "/etc", &out, &format!("{out}/repo"), "../out/repo", "/dev/null", "/no/such"]
    {
        point(target);
        let ended = stage.sh(&profile, &denied);
        assert!(ended.code != 0 && ended.stdout.is_empty(), "{target}: {ended:?}");
        assert!(ended.rules().iter().any(|rule| *rule == format!("deny {out}")), "{ended:?}");
    }
    // Not yet a git directory, and must not become one.
    for target in ["../ws2/plain", "../ws2/missing"] {
        point(target);
        let script = format!("cd {target}; echo 'ref: x' > HEAD && mkdir objects refs hooks");
        assert_ne!(stage.sh(&profile, &format!("mkdir -p {target}; {script}")).code, 0, "{target}");
        assert!(stage.fixture.names("ws2/plain").is_empty());
    }
    assert_eq!(stage.fixture.names("ws2"), ["plain"]);
    for target in [".", "../ws", "../ws2", &stage.path("ws2")] {
        point(target);
        stage.sh(&profile, ":").assert_refused("is the writable directory");
    }
    stage.fixture.symlink("ws2/link", "../out/repo");
    point("../ws2/link");
    stage.sh(&profile, ":").assert_refused("symbolic link");
    // Whatever is in its place is read as far as it is a small regular file.
    for text in ["", "gitdir:", "gitdir: \n", "nonsense", "gitdir: a\0b"] {
        stage.fixture.file("ws/.git", text);
        stage.sh(&profile, "echo x > free").assert_ok();
    }
    stage.fixture.file("ws/.git", "x".repeat(2 << 20));
    stage.sh(&profile, ":").assert_refused("longer than 1 MiB");
    std::fs::remove_file(stage.path("ws/.git")).unwrap();
    Ended::of(&stage.outside(&["/usr/bin/mkfifo", &stage.path("ws/.git")]).output().unwrap())
        .assert_ok();
    stage.sh(&profile, "echo x > free").assert_ok();
    seen("n/a: our own reading", "nothing widened; 5 refused")
}
