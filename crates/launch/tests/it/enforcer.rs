//! The sandbox cannot rewrite what enforces, configures or credentials the next launch.

use std::process::Command;

use crate::stage::{Profile, Stage, Who};

/// A stage whose launcher lies in the workspace, at `ws/bin/launcher`, with another name at `ws/other`.
fn with_own_launcher(who: Who) -> Stage {
    let mut stage = Stage::new(who);
    stage.fixture.directory("ws/bin");
    let place = stage.fixture.join("ws/bin/launcher");
    let status = Command::new("/bin/cp").arg(stage.launcher()).arg(&place).status().unwrap();
    assert!(status.success());
    std::os::unix::fs::chown(&place, Some(who.ids().uid), Some(who.ids().gid)).unwrap();
    std::fs::hard_link(&place, stage.fixture.join("ws/other")).unwrap();
    stage.use_launcher(place);
    stage
}

#[test]
fn its_own_executable_is_not_overwritten_replaced_or_moved() {
    for who in Who::everybody() {
        let stage = with_own_launcher(who);
        let before = std::fs::read(stage.launcher()).unwrap();
        let script = "exec 2>&1; cp /bin/true fake
            for attempt in 'cp fake bin/launcher' 'mv fake bin/launcher' 'rm -f bin/launcher' 'mv bin bin2' \
            'rm -rf bin' 'chmod 0 bin/launcher' 'ln -f fake bin/launcher' 'truncate -s 0 bin/launcher' \
            'mv bin/launcher bin/gone'; do $attempt >/dev/null && echo \"worked: $attempt\"; done
            sh -c ': > other' || echo busy";
        let ended = stage.sh(&stage.workspace(), script);
        assert!(!ended.stdout.contains("worked"), "{}", ended.stdout);
        assert!(ended.stdout.contains("Text file busy"), "{}", ended.stdout);
        assert!(std::fs::read(stage.launcher()).unwrap() == before, "the launcher changed");
        let rule = format!("read {}", stage.launcher().display());
        assert!(ended.rules().contains(&rule), "{:?}", ended.rules());
        stage.sh(&stage.workspace(), "echo still > enforced").assert_ok();
    }
}

#[test]
fn an_explicit_write_rule_does_not_open_the_executable() {
    for who in Who::everybody() {
        let stage = with_own_launcher(who);
        let path = stage.launcher().display().to_string();
        let profile = stage.workspace().path("write", &path);
        let ended = stage.sh(&profile, "echo x >> bin/launcher || echo refused");
        assert_eq!(ended.stdout, "refused\n", "{ended:?}");
    }
}

fn home_as_workspace(stage: &Stage) -> Profile {
    let home = stage.path("home");
    stage.profile().root("read").path("write", &home).cwd(&home)
}

#[test]
fn configuration_and_trust_are_read_only_and_credentials_denied_when_home_is_the_workspace() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.file("home/.config/plenipo/config.toml", "kept");
        stage.fixture.file("home/.config/other/file", "");
        stage.fixture.file("home/.local/share/plenipo/trust/entry", "kept");
        stage.fixture.file("home/.local/share/plenipo/credentials/token", "secret");
        let script = "exec 2>/dev/null
            for attempt in 'cp /etc/hostname .config/plenipo/config.toml' 'touch .config/plenipo/new' 'mv .config .c' \
            'mv .config/plenipo .config/p' 'touch .local/share/plenipo/trust/new' 'mv .local .l' \
            'mkdir .local/state/plenipo/x' 'mkdir .local/state' 'cat .local/share/plenipo/credentials/token' \
            'ls .local/share/plenipo/credentials'; do $attempt >/dev/null && echo \"worked: $attempt\"; done
            cat .config/plenipo/config.toml; echo x > .config/other/file && echo free";
        let home = stage.path("home");
        let profile = home_as_workspace(&stage);
        let ended = stage.run_with(&profile, &["--home", &home], &["/bin/sh", "-c", script]);
        let worked: Vec<&str> =
            ended.stdout.lines().filter(|line| line.starts_with("worked")).collect();
        // The missing directory is there as a placeholder, so making it "works" nowhere.
        assert!(worked.is_empty(), "{worked:?}");
        assert!(ended.stdout.contains("kept") && ended.stdout.contains("free"), "{ended:?}");
        assert!(!stage.fixture.exists("home/.local/state"), "a placeholder stayed");
        let rules = ended.rules();
        assert!(
            rules.contains(&format!("deny {home}/.local/share/plenipo/credentials")),
            "{rules:?}"
        );
    }
}

#[test]
fn a_rule_below_credentials_does_not_open_them() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.file("home/.local/share/plenipo/credentials/inner/token", "secret");
        let home = stage.path("home");
        let inner = format!("{home}/.local/share/plenipo/credentials/inner");
        let profile = stage.workspace().path("write", &inner);
        let argv = ["/bin/cat", &format!("{inner}/token")];
        let ended = stage.run_with(&profile, &["--home", &home], &argv);
        assert_ne!(ended.code, 0, "{ended:?}");
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn project_configuration_is_read_only_where_it_exists() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        for name in ["plenipo.toml", ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"] {
            stage.fixture.file(format!("ws/{name}"), "kept");
        }
        let script = "exec 2>/dev/null; echo x > fake
            for f in plenipo.toml .mcp.json .vscode/mcp.json .cursor/mcp.json; do
            echo x > $f && echo wrote $f; mv fake $f && echo replaced $f; rm -f $f && echo removed $f; done
            mv .vscode v && echo moved; echo x > .vscode/settings.json && echo free";
        let ended = stage.sh(&stage.workspace(), script);
        assert_eq!(ended.stdout, "free\n", "{ended:?}");
    }
}

#[test]
fn project_configuration_behind_a_link_that_can_be_replaced_is_refused() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.file("ws/settings/mcp.json", "kept");
        stage.fixture.symlink("ws/.vscode", "settings");
        stage.sh(&stage.workspace(), "echo ran").assert_refused("leads through the symbolic link");
    }
}

#[test]
fn a_protected_name_that_is_a_symlink_is_refused_with_a_sentence() {
    for who in Who::everybody() {
        for target in ["elsewhere", "nowhere", "file"] {
            let stage = Stage::new(who);
            stage.fixture.directory("ws/elsewhere");
            stage.fixture.file("ws/file", "");
            stage.fixture.symlink("ws/.codex", target);
            let ended = stage.sh(&stage.workspace(), "echo ran");
            ended.assert_refused("is a symbolic link, which a sandboxed command could replace");
            assert_eq!(stage.fixture.names("ws"), [".codex", "elsewhere", "file"]);
        }
    }
}

/// Cargo leaves a second name of what it builds in `deps/`.
#[test]
fn other_names_of_the_executable_in_its_build_directory_are_covered() {
    for who in Who::everybody() {
        let stage = with_own_launcher(who);
        stage.fixture.directory("ws/bin/deps");
        for name in ["bin/deps/launcher-0123", "bin/beside"] {
            std::fs::hard_link(stage.launcher(), stage.fixture.join("ws").join(name)).unwrap();
        }
        let script = "exec 2>/dev/null; for name in bin/deps/launcher-0123 bin/beside other; do
            chmod 0 $name && echo closed $name; rm -f $name && echo removed $name; done
            mv bin/deps away && echo moved; :";
        let ended = stage.sh(&stage.workspace(), script);
        assert_eq!(ended.assert_ok().stdout, "", "{ended:?}");
        let report = ended.report.unwrap();
        assert!(report["notes"].to_string().contains("has 4 hard links"), "{report}");
    }
}

#[test]
fn managed_configuration_and_kernel_interfaces_stay_read_only_in_a_writable_base() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let managed = serde_json::json!({"type": "unrestricted"});
        let whole =
            serde_json::json!({"type": "managed", "file_system": managed, "network": "restricted"});
        let ws = stage.path("ws");
        let before = std::fs::exists("/etc/plenipo").unwrap();
        let script = "exec 2>/dev/null; mkdir /etc/plenipo && echo made; touch /etc/plenipo/x && echo touched
            mv /etc/plenipo /etc/p && echo moved; grep -E ' /sys ' /proc/self/mounts | tail -n 1 | grep -q ' ro,' && echo sys
            echo free > free";
        for profile in [
            Profile::whole(&ws, whole),
            stage.workspace().path("write", "/etc"),
            stage.profile().root("write"),
        ] {
            let ended = stage.sh(&profile, script);
            assert_eq!(ended.assert_ok().stdout, "sys\n", "{ended:?}");
            assert_eq!(std::fs::exists("/etc/plenipo").unwrap(), before);
        }
    }
}

/// Dotfiles: the configuration is a link into a repository.
#[test]
fn a_configuration_behind_a_link_is_protected_where_it_really_is() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.file("ws/dotfiles/plenipo.toml", "kept");
        stage
            .fixture
            .symlink("home/.config/plenipo/config.toml", stage.path("ws/dotfiles/plenipo.toml"));
        let home = stage.path("home");
        let script = "exec 2>/dev/null; echo x > dotfiles/plenipo.toml && echo wrote
            rm -f dotfiles/plenipo.toml && echo removed; mv dotfiles away && echo moved; echo x > dotfiles/new";
        let argv = ["/bin/sh", "-c", script];
        let ended = stage.run_with(&stage.workspace(), &["--home", &home], &argv);
        assert_eq!(ended.assert_ok().stdout, "", "{ended:?}");
        assert_eq!(stage.fixture.read("ws/dotfiles/plenipo.toml").as_deref(), Some("kept"));
        // A link on the way that a command could replace.
        stage.fixture.file("ws/real.toml", "kept");
        std::fs::remove_file(stage.fixture.join("ws/dotfiles/plenipo.toml")).unwrap();
        stage.fixture.symlink("ws/dotfiles/plenipo.toml", "../real.toml");
        let ended = stage.run_with(&stage.workspace(), &["--home", &home], &argv);
        ended.assert_refused("leads through the symbolic link");
    }
}

#[test]
fn the_report_says_what_globs_mask_and_which_project_files_could_appear() {
    let stage = Stage::new(Who::everybody()[0]);
    stage.fixture.file("ws/a/.env", "");
    stage.fixture.file("ws/.env", "");
    stage.fixture.file("ws/plenipo.toml", "");
    let ended = stage.sh(&stage.workspace().deny_glob("**/.env"), ":");
    let notes = ended.assert_ok().report.as_ref().unwrap()["notes"].to_string();
    for text in [
        "**/.env below",
        "matches 2 at the start",
        "looked for at any depth",
        "a file that appears later is not",
        ": .mcp.json, .vscode/mcp.json, .cursor/mcp.json",
    ] {
        assert!(notes.contains(text), "{text}: {notes}");
    }
}
