//! Against the reference CLI, on either side of the sandbox-state contract; `cargo xtask test --peers` brings it.

mod install;
mod launcher;
mod probes;
mod runtime;
mod scene;

use serde::Deserialize;
use serde_json::value::RawValue;

use self::install::Reference;
use crate::support::Bench;

/// The profiles that states are made of: two built in, four from [`configuration`].
const PROFILES: [&str; 6] = [":read-only", ":workspace", "docs", "deny", "minimal", "extra"];

/// The profiles of the test. A program that starts itself again inside the sandbox, by its path, has to be readable
/// there, and so has its home.
fn configuration(bench: &Bench, reference: &Reference) -> String {
    let extra = bench.fixture.directory("extra").display().to_string();
    let home = bench.fixture.directory("home/.codex").display().to_string();
    let sockets = bench.fixture.directory("sockets").display().to_string();
    let installed = reference.directory().display().to_string();
    bench.configuration(&format!(
        r#"
[permissions.docs.filesystem]
":root" = "read"
":slash_tmp" = "write"
[permissions.docs.filesystem.":workspace_roots"]
"." = "write"
"docs" = "read"
"sub/protected" = "read"

[permissions.deny.filesystem]
":root" = "read"
[permissions.deny.filesystem.":workspace_roots"]
"." = "write"
"secret" = "deny"
"**/*.env" = "deny"

[permissions.minimal.filesystem]
":minimal" = "read"
{home:?} = "read"
{installed:?} = "read"
{sockets:?} = "read"
[permissions.minimal.filesystem.":workspace_roots"]
"." = "write"
[permissions.minimal.network]
enabled = true

[permissions.extra.filesystem]
":root" = "read"
{extra:?} = "write"
[permissions.extra.filesystem.":workspace_roots"]
"." = "write"
"#
    ))
}

/// The state that the program puts on the wire for a profile, as it was written.
fn state(bench: &Bench, configuration: &str, profile: &str) -> String {
    #[derive(Deserialize)]
    struct Answer {
        sandbox_state: Box<RawValue>,
    }
    let words = ["call", "--config", configuration, "--profile", profile, "--json"];
    let ran = bench.run(words.into_iter().chain(["workspace.run", "command=true"]));
    let answer: Answer = serde_json::from_str(&ran.expect(0).stdout).unwrap();
    answer.sandbox_state.get().to_owned()
}
