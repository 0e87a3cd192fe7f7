//! Real servers from npm and PyPI; `cargo xtask test --peers` brings them.

use plenipo_testkit::{peers, requires};

use crate::support::Bench;

#[test]
fn a_server_from_npm_lists_and_echoes() {
    let Some(peers) = peers() else {
        requires("real servers (cargo xtask test --peers)", false);
        return;
    };
    let bench = Bench::new();
    let script =
        peers.join("node/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let config = bench.configuration(&format!(
        "[mcp_servers.everything]\ncommand = \"node\"\nargs = [{:?}, \"stdio\"]\n",
        script.display().to_string()
    ));
    let ran = bench.run(["call", "--config", &config, "everything.echo", "message=hello"]);
    ran.expect(0);
    assert_eq!(ran.stdout, "Echo: hello\n");
    let sum = bench.run(["call", "--config", &config, "everything.get-sum", "a=2", "b=40"]);
    sum.expect(0);
    assert!(sum.stdout.contains("42"), "{}", sum.stdout);
}

#[test]
fn a_server_from_pypi_tells_the_time() {
    let Some(peers) = peers() else {
        requires("real servers (cargo xtask test --peers)", false);
        return;
    };
    let bench = Bench::new();
    let python = peers.join("python/bin/python3").display().to_string();
    let config = bench.configuration(&format!(
        "[mcp_servers.time]\ncommand = {python:?}\nargs = [\"-m\", \"mcp_server_time\"]\n"
    ));
    let ran =
        bench.run(["call", "--config", &config, "time.get_current_time", "timezone=Europe/Berlin"]);
    ran.expect(0);
    assert!(ran.stdout.contains("Europe/Berlin"), "{}", ran.stdout);
    let wrong = bench.run(["call", "--config", &config, "time.get_current_time"]);
    wrong.expect(2);
    assert!(wrong.stderr.contains("needs the argument `timezone`"), "{}", wrong.stderr);
}
