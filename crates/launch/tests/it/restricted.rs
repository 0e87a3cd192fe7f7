//! Profiles without a readable root: a new root that holds just what is granted.

use plenipo_testkit::Listener;

use crate::stage::{Profile, Stage, Who};

fn minimal(stage: &Stage) -> Profile {
    stage.profile().special("read", "minimal").path("write", &stage.path("ws"))
}

#[test]
fn minimal_runs_a_shell_and_shows_nothing_else() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.file("ws/mine", "mine\n");
        stage.fixture.file("other", "secret\n");
        let script = format!(
            "pwd; cat mine; readlink /bin; echo x > new && cat new; cat {} 2>/dev/null || echo hidden; ls -d /root /home 2>/dev/null || echo none; echo x > /x 2>/dev/null || echo read-only; ls /proc/self/fd | wc -l",
            stage.path("other")
        );
        let ended = stage.sh(&minimal(&stage), &script);
        let ws = stage.path("ws");
        let link = std::fs::read_link("/bin")
            .map_or(String::new(), |link| format!("{}\n", link.display()));
        let wanted = format!("{ws}\nmine\n{link}x\nhidden\nnone\nread-only\n4\n");
        assert_eq!(ended.assert_ok().stdout, wanted, "{ended:?}");
        assert!(stage.fixture.exists("ws/new"));
    }
}

#[test]
fn minimal_hides_processes_and_devices_of_the_host() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let script = "ls /proc | grep -c '^[0-9]'; ls /dev | tr '\\n' ' '";
        let ended = stage.sh(&minimal(&stage), script);
        let wanted = "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ";
        assert_eq!(ended.assert_ok().stdout.lines().last(), Some(wanted), "{ended:?}");
    }
}

#[test]
fn minimal_with_the_network_on_reaches_it() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let listener = Listener::tcp();
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}", listener.port());
        let argv = ["/bin/bash", "-c", script.as_str()];
        stage.run(&minimal(&stage).network("enabled"), &argv).assert_ok();
        assert_eq!(listener.count(), 1);
        assert_ne!(stage.run(&minimal(&stage), &argv).code, 0);
        assert_eq!(listener.count(), 1);
    }
}

#[test]
fn a_profile_that_cannot_read_the_launcher_still_launches() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let launcher = stage.launcher().display().to_string();
        let ended = stage.sh(&minimal(&stage), &format!("test -e {launcher} || echo unseen"));
        assert_eq!(ended.assert_ok().stdout, "unseen\n");
    }
}

/// A deny rule where nothing is granted anyway, with a grant below it.
#[test]
fn a_grant_below_a_denied_place_shows_in_an_empty_root() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.file("out/deep/shown", "shown\n");
        stage.fixture.file("out/secret", "secret\n");
        let out = stage.path("out");
        let profile = minimal(&stage).path("deny", &out).path("read", &format!("{out}/deep"));
        let script = format!("cat {out}/deep/shown; cat {out}/secret 2>/dev/null || echo hidden");
        assert_eq!(stage.sh(&profile, &script).assert_ok().stdout, "shown\nhidden\n");
    }
}

/// The directories above a carve-out are pinned in the root that stays.
#[test]
fn a_carve_out_below_a_writable_root_holds_in_an_empty_root() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        for name in ["sub/protected/file", "sub/f", ".vscode/mcp.json", "a/b/closed/c/open/d/f"] {
            stage.fixture.file(format!("ws/{name}"), "kept");
        }
        let profile = minimal(&stage)
            .path("read", &stage.path("ws/sub/protected"))
            .path("deny", &stage.path("ws/a/b/closed"))
            .path("write", &stage.path("ws/a/b/closed/c/open"))
            .deny_glob("**/f");
        let script = "exec 2>/dev/null
            for place in sub sub/protected .vscode a a/b a/b/closed a/b/closed/c/open/d; do
                mv $place moved && echo moved $place; done
            for file in sub/protected/file sub/f .vscode/mcp.json a/b/closed/c/open/d/f; do
                echo x > $file && echo wrote $file; rm -f $file && echo removed $file; done
            cat sub/f a/b/closed/c/open/d/f; cat sub/protected/file
            echo new > sub/new && echo new > a/b/closed/c/open/new && ls /proc/1/comm";
        let ended = stage.sh(&profile, script);
        assert_eq!(ended.assert_ok().stdout, "kept/proc/1/comm\n", "{ended:?}");
        assert!(stage.fixture.exists("ws/a/b/closed/c/open/new"));
        assert_eq!(stage.fixture.read("ws/sub/f").as_deref(), Some("kept"));
    }
}
