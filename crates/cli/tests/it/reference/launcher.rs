//! States made here, enforced there.

use serde_json::{Value, json};

use plenipo_testkit::Listener;

use super::{PROFILES, Reference, configuration, state};
use crate::support::{Ran, as_each_user};

#[test]
fn the_reference_launcher_accepts_our_states() {
    let Some(reference) = Reference::find() else { return };
    as_each_user(|bench| {
        let configuration = configuration(bench, &reference);
        for profile in PROFILES {
            let state = state(bench, &configuration, profile);
            let words = ["sandbox", "--sandbox-state-json", &state, "--", "echo", "ran"];
            let mut command = bench.command_of(reference.program().into(), words);
            let ran = Ran::of(command.output().unwrap());
            assert_eq!(ran.expect(0).stdout, "ran\n", "{profile}: {state}");
        }
    });
}

#[test]
fn both_launchers_pass_on_how_a_command_ended() {
    let Some(reference) = Reference::find() else { return };
    as_each_user(|bench| {
        let workspace = bench.workspace.display();
        let state = format!(
            r#"{{"permissionProfile":{{"type":"managed","file_system":{{"type":"restricted","entries":[{{"path":{{"type":"special","value":{{"kind":"root"}}}},"access":"read"}}]}},"network":"restricted"}},"sandboxCwd":"file://{workspace}"}}"#
        );
        let ends = ["exit 0", "exit 7", "exit 125", "exit 255", "kill -TERM $$", "kill -KILL $$"];
        for program in [bench.program(), &reference.program()] {
            for (end, code) in ends.into_iter().zip([0, 7, 125, 255, 143, 137]) {
                let words = ["sandbox", "--sandbox-state-json", &state, "--", "sh", "-c", end];
                let mut command = bench.command_of(program.into(), words);
                Ran::of(command.output().unwrap()).expect(code);
            }
        }
    });
}

#[test]
fn the_built_in_server_runs_commands_by_a_configured_launcher() {
    let Some(reference) = Reference::find() else { return };
    as_each_user(|bench| {
        let config = bench.configuration(&format!("launcher = {:?}\n", reference.program()));
        let outside = bench.fixture.directory("outside");
        let command =
            format!("command=echo in > file; cat file; echo x > {}/file", outside.display());
        let ran = bench.run(["call", "--config", &config, "--json", "workspace.run", &command]);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let result = &answer["result"]["structuredContent"];
        assert_eq!(result["enforcement"], json!({"reported": false}), "{ran:?}");
        assert_eq!(result["stdout"], "in\n", "{ran:?}");
        assert_eq!(bench.fixture.read("workspace/file").as_deref(), Some("in\n"));
        assert!(!bench.fixture.exists("outside/file"));
    });
}

/// It does not know the member that says which hosts are reached, so it reaches none; ours serves it.
#[test]
fn the_reference_launcher_restricts_a_network_that_is_limited_here() {
    let Some(reference) = Reference::find() else { return };
    as_each_user(|bench| {
        let outside = Listener::tcp();
        let port = outside.socket_address().port();
        let configuration = bench.configuration(&format!(
            "[permissions.web]\nextends = \":workspace\"\n[permissions.web.network]\nmode = \"limited\"\ndomains = [\"127.0.0.1:{port}\"]\n"
        ));
        let state = state(bench, &configuration, "web");
        let script = format!(
            "(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached; \
             (exec 3<>/dev/tcp/127.0.0.1/3128 && echo CONNECT 127.0.0.1:{port} HTTP/1.1 >&3 && echo >&3 && head -1 <&3) 2>/dev/null; \
             echo done"
        );
        let run = |program: std::path::PathBuf| {
            let words = ["sandbox", "--sandbox-state-json", &state, "--", "bash", "-c", &script];
            Ran::of(bench.command_of(program.into(), words).output().unwrap())
        };
        assert_eq!(run(reference.program()).expect(0).stdout, "done\n");
        assert_eq!(outside.count(), 0, "by the reference launcher");
        let ours = run(bench.program().to_path_buf());
        assert_eq!(ours.expect(0).stdout, "HTTP/1.1 200 Connection established\r\ndone\n");
        assert_eq!(outside.count(), 1, "the control: by ours, through the proxy");
    });
}
