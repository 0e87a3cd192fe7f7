//! Row 28: deny patterns, for what is there and for what appears later.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use plenipo_testkit::ChildGuard;

use super::{Seen, seen};
use crate::stage::{Ended, Profile, Stage, Who};

/// Reads everything that the row is about, after a line of input.
const READ: &str = "echo ready; read go; cat secrets/old secrets/new sub/late.env a.env 2>/dev/null; ls secrets 2>/dev/null; \
                    echo x 2>/dev/null > secrets/mine && echo wrote; echo done";

fn stage(who: Who) -> Stage {
    let stage = Stage::new(who);
    stage.fixture.file("ws/secrets/old", "OLD\n");
    stage.fixture.file("ws/a.env", "A\n");
    stage.fixture.directory("ws/sub");
    stage
}

/// Runs `READ`, and `outside` when the command is there.
fn while_running(mut command: Command, outside: impl FnOnce()) -> String {
    let mut child =
        ChildGuard::new(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    outside();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut said = String::new();
    output.read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    said
}

fn inside(stage: &Stage, profile: &Profile, outside: impl FnOnce()) -> String {
    while_running(stage.inside(profile, &["/bin/sh", "-c", READ]), outside)
}

fn control(stage: &Stage, outside: impl FnOnce()) -> String {
    let script = format!("cd {} && {READ}", stage.path("ws"));
    while_running(stage.outside(&["/bin/sh", "-c", &script]), outside)
}

fn notes(ended: &Ended) -> String {
    ended.report.as_ref().expect("a report")["notes"].to_string()
}

pub(super) fn present(who: Who) -> Seen {
    let stage = stage(who);
    stage.fixture.file("ws/sub/deep/b.env", "B\n");
    let script = "cat a.env sub/deep/b.env; mv a.env c; cat c; cat /proc/self/cwd/a.env; rm a.env; echo x > a.env";
    let control =
        stage.outside(&["/bin/sh", "-c", &format!("cd {} && cat a.env", stage.path("ws"))]);
    assert_eq!(Ended::of(&{ control }.output().unwrap()).stdout, "A\n");
    let ended = stage.sh(&stage.workspace().deny_glob("**/*.env"), script);
    assert_eq!(ended.stdout, "", "{ended:?}");
    assert_eq!(stage.fixture.read("ws/a.env").as_deref(), Some("A\n"));
    assert!(notes(&ended).contains("matches 2 at the start"), "{}", notes(&ended));
    seen("succeeds", "EACCES")
}

/// Who writes a file knows what is in it: nothing is lost, and the report does not pretend otherwise.
pub(super) fn made_inside(who: Who) -> Seen {
    let stage = stage(who);
    let profile = stage.workspace().deny_glob("**/*.env");
    let ended = stage.sh(&profile, "echo own > new.env && cat new.env");
    assert_eq!(ended.assert_ok().stdout, "own\n");
    assert!(notes(&ended).contains("a file that appears later is not"), "{}", notes(&ended));
    seen("n/a: the same", "its own, and the report says so")
}

pub(super) fn made_outside(who: Who) -> Seen {
    let appear = |stage: &Stage| {
        stage.fixture.file("ws/secrets/new", "NEW\n");
    };
    let outside = stage(who);
    let said = control(&outside, || appear(&outside));
    assert!(said.starts_with("OLD\nNEW\nA\n"), "the control reads neither: {said}");
    for pattern in ["secrets/**".to_owned(), format!("{}/**", outside.path("ws/secrets"))] {
        let stage = stage(who);
        let pattern = pattern.replace(&outside.path("ws"), &stage.path("ws"));
        let profile = stage.workspace().deny_glob(&pattern);
        let said = inside(&stage, &profile, || appear(&stage));
        assert_eq!(said, "A\ndone\n", "{pattern}");
        assert!(!stage.fixture.exists("ws/secrets/mine"));
        let ended = stage.sh(&profile, "echo ran");
        assert!(notes(&ended).contains("what appears in it later"), "{}", notes(&ended));
    }
    // A rule below the pattern's directory does not open what the pattern matches.
    let stage = stage(who);
    let profile =
        stage.workspace().deny_glob("secrets/**").path("read", &stage.path("ws/secrets/old"));
    assert_eq!(inside(&stage, &profile, || appear(&stage)), "A\ndone\n");
    seen("succeeds", "EACCES")
}

/// Where no pattern reaches: the documentation and the report say so, and this shows that they are right.
pub(super) fn beyond_reach(who: Who) -> Seen {
    let stage = stage(who);
    let profile = stage.workspace().deny_glob("**/*.env");
    let said = inside(&stage, &profile, || {
        stage.fixture.file("ws/sub/late.env", "LATE\n");
    });
    assert!(said.starts_with("OLD\nLATE\n") && !said.contains("A\n"), "{said}");
    let ended = stage.sh(&profile, ":");
    assert!(notes(&ended).contains("a file that appears later is not"), "{}", notes(&ended));
    seen("succeeds", "succeeds, and the report says so")
}

pub(super) fn strict(who: Who) -> Seen {
    let stage = stage(who);
    let strictly = |pattern: &str| {
        let profile = stage.workspace().deny_glob(pattern);
        stage.run_with(&profile, &["--strict-globs"], &["/bin/echo", "ran"])
    };
    for pattern in ["**/*.env", "a.env", "*/**", "gone/**", "**", "secrets/*", "{secrets,sub}/**"] {
        strictly(pattern).assert_refused("for files that appear later");
    }
    assert_eq!(strictly("secrets/**").assert_ok().stdout, "ran\n");
    assert!(stage.fixture.names("ws").iter().all(|name| name != ".git"), "a placeholder stayed");
    seen("n/a: needs a launch", "7 refused, 1 held")
}
