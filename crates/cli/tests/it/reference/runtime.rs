//! States made there, enforced here.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Reference;
use crate::support::{Bench, Ran, as_each_user, data, python};

/// The state of one call of the reference runtime in that mode, as it was written.
fn captured(bench: &Bench, reference: &Reference, python: &str, mode: &str) -> String {
    #[derive(Deserialize)]
    struct Request {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "codex/sandbox-state")]
        state: Box<RawValue>,
    }
    let [driver, server] = ["app_server.py", "meta_server.py"].map(|name| {
        let text = fs::read(data("tests/data/reference").join(name)).unwrap();
        bench.fixture.file(Path::new("programs").join(name), text)
    });
    let log = bench.fixture.file(format!("calls-{mode}"), "");
    let program = reference.program();
    let words = [&driver, &program, Path::new(mode), Path::new(python), &server, &log];
    let mut command = bench.command_of(python.into(), words);
    let ran = Ran::of(command.stdin(Stdio::null()).output().unwrap());
    ran.expect(0);
    let request: Request = serde_json::from_slice(&fs::read(log).unwrap()).unwrap();
    request.params.meta.state.get().to_owned()
}

#[test]
fn a_state_of_the_reference_runtime_is_enforced() {
    let (Some(reference), Some(python)) = (Reference::find(), python()) else { return };
    as_each_user(|bench| {
        for (mode, may_write) in [("read-only", false), ("workspace-write", true)] {
            let state = captured(bench, &reference, &python, mode);
            let outside = bench.fixture.directory("outside").display().to_string();
            let script = format!("echo in > file; mkdir .git; echo x > {outside}/file; echo ran");
            let words = ["sandbox", "--sandbox-state-json", &state, "--", "sh", "-c", &script];
            let ran = bench.run(words);
            assert_eq!(ran.expect(0).stdout, "ran\n");
            assert_eq!(bench.fixture.exists("workspace/file"), may_write, "{mode}: {state}");
            assert!(!bench.fixture.exists("workspace/.git"), "{mode}: {state}");
            assert!(!bench.fixture.exists("outside/file"), "{mode}: {state}");
        }
    });
}
