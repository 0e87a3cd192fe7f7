//! Where a limited network is asked for, and what is told of it.

use plenipo_testkit::{find_tool, requires};
use serde_json::Value;

use super::{BODY, Web, configured, curl};
use crate::support::{Bench, Ran, as_each_user};

#[test]
fn the_command_finds_the_proxy_in_its_environment_and_no_exceptions() {
    as_each_user(|bench| {
        let file = configured(bench, "domains = [\"example.org\"]");
        let words = [
            "--config",
            &file,
            "sandbox",
            "-P",
            "web",
            "--",
            "sh",
            "-c",
            "env | grep -i -e proxy -e NETWORK_DISABLED | sort",
        ];
        let mut command = bench.command(words);
        command
            .env("NO_PROXY", "*")
            .env("no_proxy", "localhost")
            .env("https_proxy", "http://elsewhere:1");
        let ran = Ran::of(command.output().unwrap());
        let mut found: Vec<&str> = ran.expect(0).stdout.lines().collect();
        found.sort_unstable();
        let expected = ["ALL", "HTTPS", "HTTP", "all", "https", "http"].map(|name| {
            let proxy = if name.starts_with(char::is_uppercase) { "_PROXY" } else { "_proxy" };
            format!("{name}{proxy}=http://127.0.0.1:3128")
        });
        let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
    });
}

#[test]
fn a_state_carries_the_list_and_the_report_shows_it() {
    as_each_user(|bench| {
        let state = r#"{"permissionProfile":{"type":"managed","file_system":{"type":"restricted","entries":[{"path":{"type":"special","value":{"kind":"root"}},"access":"read"}]},"network":"restricted"},"sandboxCwd":"file:///","plenipoNetwork":{"mode":"limited","domains":{"Example.org.":"allow","ads.example.org":"deny"}}}"#;
        let words = [
            "sandbox",
            "--report-fd",
            "1",
            "--sandbox-state-json",
            state,
            "--",
            "sh",
            "-c",
            "echo $https_proxy",
        ];
        let ran = bench.run(words);
        let (report, rest) = ran.expect(0).stdout.split_once('\n').unwrap();
        assert_eq!(rest, "http://127.0.0.1:3128\n");
        let report: Value = serde_json::from_str(report).unwrap();
        assert_eq!(
            report["network"],
            serde_json::json!({
                "mode": "limited", "proxy": "127.0.0.1:3128",
                "domains": { "ads.example.org": "deny", "example.org": "allow" },
            })
        );
        assert_eq!(report["layers"]["network"], "enforced");
        assert_eq!(report["unknown_members"], serde_json::json!([]));
        let off = [
            "sandbox",
            "--sandbox-state-disable-network",
            "--sandbox-state-json",
            state,
            "--",
            "sh",
            "-c",
            "echo $https_proxy$CODEX_SANDBOX_NETWORK_DISABLED",
        ];
        assert_eq!(bench.run(off).expect(0).stdout, "1\n");
        let explained = bench.run(["sandbox", "--explain", "--sandbox-state-json", state]);
        for line in [
            "network            enforced: hosts by the proxy at 127.0.0.1:3128",
            "allow host         example.org",
            "deny host          ads.example.org",
        ] {
            assert!(
                explained.expect(0).stdout.lines().any(|found| found == line),
                "{line}: {explained:?}"
            );
        }
    });
}

/// As an ordinary user where no user namespace can be made, so that Landlock alone is left.
#[test]
fn a_rung_that_cannot_limit_the_network_refuses_by_name() {
    let bench = Bench::ordinary();
    let profile = "[permissions.web]\nextends = \":read-only\"\n[permissions.web.network]\nmode = \"limited\"\n";
    let file = bench.configuration(&format!("[sandbox]\nminimum_rung = \"landlock\"\n{profile}"));
    let program = bench.program().display().to_string();
    let off = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin -- \"$0\" \"$@\"";
    let run = |profile: &str| {
        let words = [
            "-Ur", "/bin/sh", "-c", off, &program, "--config", &file, "sandbox", "-P", profile,
            "--", "echo", "ran",
        ];
        Ran::of(bench.command_of("/usr/bin/unshare".into(), words).output().unwrap())
    };
    let refused = run("web");
    assert!(
        refused.expect(125).stderr.contains("landlock: it cannot limit the network to hosts"),
        "{refused:?}"
    );
    assert_eq!(refused.stdout, "");
    assert_eq!(
        run(":read-only").expect(0).stdout,
        "ran\n",
        "the control: without a limited network it runs"
    );
}

#[test]
fn a_tool_call_is_limited_like_a_command() {
    if !curl() {
        return;
    }
    as_each_user(|bench| {
        let port = Web::start().port;
        let file = configured(bench, &format!("domains = [\"localhost:{port}\"]"));
        let command =
            format!("command=curl -sS http://localhost:{port}/; curl -sS http://evil.example/");
        let ran = bench.run([
            "call",
            "--config",
            &file,
            "--profile",
            "web",
            "--json",
            "workspace.run",
            &command,
        ]);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let result = &answer["result"]["structuredContent"];
        let stdout = result["stdout"].as_str().unwrap();
        assert!(
            stdout.contains(BODY) && stdout.contains("refused evil.example:80: not listed"),
            "{ran:?}"
        );
        assert_eq!(result["enforcement"]["network"]["mode"], "limited", "{ran:?}");
        let stderr = result["stderr"].as_str().unwrap();
        assert!(
            stderr.contains("the network is limited; refused: evil.example:80 (not listed)"),
            "{stderr}"
        );
    });
}

#[test]
fn a_project_may_narrow_the_list_and_never_widen_it() {
    let bench = Bench::new();
    let yours = "default_permissions = \"web\"\n[permissions.web]\nextends = \":workspace\"\n[permissions.web.network]\nmode = \"limited\"\ndomains = [\"*.example.org\"]\n";
    let file = bench.configuration(yours);
    let check = |domains: &str| {
        let project = format!(
            "default_permissions = \"project\"\n[permissions.project]\nextends = \":workspace\"\n[permissions.project.network]\nmode = \"limited\"\ndomains = [{domains}]\n"
        );
        bench.fixture.file("workspace/plenipo.toml", project);
        bench.run(["trust", "--yes"]).expect(0);
        bench.run(["--config", &file, "sandbox", "--", "sh", "-c", "echo $https_proxy"])
    };
    assert_eq!(check("\"a.example.org\"").expect(0).stdout, "http://127.0.0.1:3128\n");
    let refused = check("\"example.net\"");
    assert!(
        refused
            .expect(125)
            .stderr
            .contains("it allows the host example.net, which the limit does not allow"),
        "{refused:?}"
    );
}

#[test]
fn a_terminal_goes_with_a_limited_network() {
    if !curl() || !requires("script(1)", find_tool("script").is_some()) {
        return;
    }
    as_each_user(|bench| {
        let port = Web::start().port;
        let file = configured(bench, &format!("domains = [\"localhost:{port}\"]"));
        let program = bench.program().display().to_string();
        let inside = format!("test -t 0 && curl -sS http://localhost:{port}/");
        let line = format!("{program} --config {file} sandbox -P web --tty -- sh -c '{inside}'");
        let words = ["-qec", &line, "/dev/null"];
        let ran = Ran::of(bench.command_of("/usr/bin/script".into(), words).output().unwrap());
        assert!(ran.expect(0).stdout.replace('\r', "").ends_with(BODY), "{ran:?}");
    });
}
