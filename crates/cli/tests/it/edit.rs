//! `plenipo add` and `remove`: what is written, what stays, and what is refused.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::Bench;

const USUAL: &str = "home/.config/plenipo/plenipo.toml";

#[test]
fn add_makes_the_users_file_in_the_references_words() {
    let bench = Bench::new();
    let words = ["add", "s1", "--env", "A=1", "--env", "B=two=2", "--", "/bin/echo", "a b", "-c"];
    assert_eq!(
        bench.run(words).shown(&bench),
        "exit 0\nadded server `s1` in FIXTURE/home/.config/plenipo/plenipo.toml\n"
    );
    let words = ["add", "h1", "--url", "http://127.0.0.1:9/mcp", "--bearer-token-env-var", "TOK"];
    let json = bench.run(words.iter().chain(&["--json"]));
    let answer: Value = serde_json::from_str(&json.expect(0).stdout).unwrap();
    assert_eq!(answer["added"], "h1");
    bench.run(["add", "dot.name", "--", "/bin/true"]).expect(0);
    assert_snapshot!(bench.fixture.read(USUAL).unwrap(), @r#"
    [mcp_servers.s1]
    command = "/bin/echo"
    args = ["a b", "-c"]
    env = { A = "1", B = "two=2" }

    [mcp_servers.h1]
    url = "http://127.0.0.1:9/mcp"
    bearer_token_env_var = "TOK"

    [mcp_servers."dot.name"]
    command = "/bin/true"
    "#);
    let mode = bench.fixture.join(USUAL).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    bench.run(["config", "check"]).expect(0);
    bench.run(["remove", "s1"]).expect(0);
    assert!(!bench.fixture.read(USUAL).unwrap().contains("s1"));
}

#[test]
fn edits_keep_comments_order_mode_and_links() {
    let bench = Bench::new();
    let text = "# mine\n\nlauncher = \"/x\" # why\n\n# about b\n[mcp_servers.b]\ncommand = \"b\"\n";
    let real = bench.fixture.file("dotfiles/plenipo.toml", text);
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
    bench.fixture.directory("home/.config/plenipo");
    symlink(&real, bench.fixture.join(USUAL)).unwrap();
    bench.run(["add", "a", "--", "a"]).expect(0);
    let after = format!("{text}\n[mcp_servers.a]\ncommand = \"a\"\n");
    assert_eq!(bench.fixture.read("dotfiles/plenipo.toml").unwrap(), after);
    bench.run(["remove", "a"]).expect(0);
    assert_eq!(bench.fixture.read("dotfiles/plenipo.toml").unwrap(), text);
    assert!(bench.fixture.join(USUAL).symlink_metadata().unwrap().is_symlink());
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(bench.fixture.names("dotfiles"), ["plenipo.toml"], "nothing is left behind");
}

#[test]
fn what_would_be_wrong_is_not_written() {
    let bench = Bench::new();
    bench.run(["add", "a", "--", "a"]).expect(0);
    let before = bench.fixture.read(USUAL).unwrap();
    let said = |words: &[&str]| {
        let ran = bench.run(words);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        format!("{}: {}", words.join(" "), ran.stderr.lines().next().unwrap())
            .replace(&bench.fixture.path().display().to_string(), "FIXTURE")
    };
    let told = [
        said(&["add", "a", "--", "b"]),
        said(&["add", "bad name", "--", "b"]),
        said(&["add", "workspace", "--", "b"]),
        said(&["add", "x", "--url", "ftp://x"]),
        said(&["add", "x", "--url", "https://me:secret@x"]),
        said(&["add", "x", "--env", "A", "--", "b"]),
        said(&["add", "x", "--env", "A=${B", "--", "b"]),
        said(&["add", "x", "--", ""]),
        said(&["add", "x", "--url", "http://x", "--", "b"]),
        said(&["add", "x"]),
        said(&["remove", "nope"]),
    ];
    assert_snapshot!(told.join("\n"), @r#"
    add a -- b: error: FIXTURE/home/.config/plenipo/plenipo.toml has a server `a` already
    add bad name -- b: error: `bad name` is no name for a server
    add workspace -- b: error: `workspace` is the built-in server's name
    add x --url ftp://x: error: failed to read FIXTURE/home/.config/plenipo/plenipo.toml:5: `mcp_servers.x.url` should begin with `http://` or `https://`
    add x --url https://me:secret@x: error: failed to read FIXTURE/home/.config/plenipo/plenipo.toml:5: `mcp_servers.x.url` holds a user name or password: put credentials into a header
    add x --env A -- b: error: invalid value 'A' for '--env <KEY=VALUE>': expected KEY=VALUE, found "A"
    add x --env A=${B -- b: error: failed to read FIXTURE/home/.config/plenipo/plenipo.toml:6: `mcp_servers.x.env.A` has a `${` without its `}`
    add x -- : error: failed to read FIXTURE/home/.config/plenipo/plenipo.toml:4: `mcp_servers.x` has an empty `command`
    add x --url http://x -- b: error: the argument '--url <URL>' cannot be used with '[COMMAND]...'
    add x: error: the following required arguments were not provided:
    remove nope: error: FIXTURE/home/.config/plenipo/plenipo.toml has no server `nope`
    "#);
    assert_eq!(bench.fixture.read(USUAL).unwrap(), before);
    bench.run(["add", "a", "--force", "--", "b"]).expect(0);
    assert_eq!(bench.fixture.read(USUAL).unwrap(), before.replace("\"a\"", "\"b\""));
}

#[test]
fn a_file_with_a_fault_or_of_another_program_is_not_edited() {
    let bench = Bench::new();
    for (name, text) in [
        ("broken.toml", "[mcp_servers.a\n"),
        ("config.toml", "model = \"x\"\n"),
        ("mcp.json", "{\"mcpServers\": {}}"),
    ] {
        let file = bench.fixture.file(name, text).display().to_string();
        bench.run(["add", "x", "--config", &file, "--", "y"]).expect(2);
        bench.run(["remove", "x", "--config", &file]).expect(2);
        assert_eq!(bench.fixture.read(name).unwrap(), text);
    }
}

#[test]
fn two_editors_lose_nothing() {
    const EDITORS: usize = 12;
    let bench = Bench::new();
    let mut running: Vec<_> = (0..EDITORS)
        .map(|number| {
            let mut command = bench.command(["add", &format!("s{number}"), "--", "x"]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for child in &mut running {
        assert!(child.wait().unwrap().success());
    }
    let text = bench.fixture.read(USUAL).unwrap();
    assert_eq!(text.matches("[mcp_servers.").count(), EDITORS, "{text}");
    assert_eq!(bench.fixture.names("home/.config/plenipo"), ["plenipo.toml"]);
}
