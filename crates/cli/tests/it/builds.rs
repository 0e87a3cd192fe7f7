//! Real work under `:workspace`, as root and as an ordinary user: cloning, compiling, testing. Each is first done without a
//! sandbox, in a workspace of its own.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use plenipo_testkit::{find_tool, peers, requires};

use crate::support::{Bench, Ran, as_each_user};

/// Runs `script` in the workspace, in a sandbox or without one.
fn run(bench: &Bench, sandboxed: bool, script: &str, variables: &[(&str, OsString)]) -> Ran {
    let shell = ["/bin/sh", "-ec", script];
    let mut command = if sandboxed {
        bench.command(["sandbox", "-P", ":workspace", "--"].iter().chain(&shell))
    } else {
        bench.command_of(shell[0].into(), &shell[1..])
    };
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    if !sandboxed {
        command.env("CONTROL", "1");
    }
    Ran::of(command.output().unwrap())
}

/// Does it both ways, each in an empty workspace that `prepare` fills, and returns what the sandboxed run said.
#[track_caller]
fn both_ways(
    bench: &Bench,
    prepare: impl Fn(&Bench),
    script: &str,
    variables: &[(&str, OsString)],
) -> String {
    let mut said = Vec::new();
    for sandboxed in [false, true] {
        std::fs::remove_dir_all(&bench.workspace).unwrap();
        bench.fixture.directory("workspace");
        prepare(bench);
        let ran = run(bench, sandboxed, script, variables);
        assert_eq!(ran.code, Some(0), "sandboxed: {sandboxed}: {ran:?}");
        said.push(ran.stdout);
    }
    // The sandbox was one: the same script could not have written beside the workspace.
    let outside = format!("echo x > {}/outside", bench.home.display());
    assert_eq!(run(bench, false, &outside, &[]).code, Some(0));
    std::fs::remove_file(bench.home.join("outside")).unwrap();
    assert_ne!(run(bench, true, &outside, &[]).code, Some(0));
    said.pop().unwrap()
}

/// `PATH` with the directory of `program` in front.
fn path_to(program: &Path) -> OsString {
    let mut path = OsString::from(program.parent().unwrap());
    path.push(":/usr/local/bin:/usr/bin:/bin");
    path
}

#[test]
fn a_local_repository_is_cloned_changed_and_committed_to() {
    let git = find_tool("git").is_some();
    if !requires("git on PATH", git) {
        return;
    }
    as_each_user(|bench| {
        let origin = bench.fixture.directory("origin");
        let make = "git init -q . && echo one > file && git add file && git commit -qm First";
        let settings: Vec<(&str, OsString)> = vec![
            ("GIT_CONFIG_COUNT", "3".into()),
            ("GIT_CONFIG_KEY_0", "user.name".into()),
            ("GIT_CONFIG_VALUE_0", "x".into()),
            ("GIT_CONFIG_KEY_1", "user.email".into()),
            ("GIT_CONFIG_VALUE_1", "x@x".into()),
            ("GIT_CONFIG_KEY_2", "init.defaultBranch".into()),
            ("GIT_CONFIG_VALUE_2", "main".into()),
        ];
        run(bench, false, &format!("cd {} && {make}", origin.display()), &settings).expect(0);
        let script = format!(
            "git clone -q {} clone && cd clone && cat file && echo two >> file && git commit -qam Second && \
             git log --format=%s && git status --short && git fsck --strict 2>&1",
            origin.display()
        );
        let said = both_ways(bench, |_| {}, &script, &settings);
        assert!(said.starts_with("one\nSecond\nFirst\n"), "{said}");
    });
}

#[test]
fn a_small_crate_is_compiled_offline_and_its_tests_run() {
    // The toolchain's own cargo: rustup's would look for its settings in a home that the command does not have.
    let cargo = std::env::var_os("CARGO").map(PathBuf::from).or_else(|| find_tool("cargo"));
    let Some(cargo) = cargo else {
        requires("cargo on PATH", false);
        return;
    };
    let built = Cell::new(0);
    as_each_user(|bench| {
        let version = format!("{} --version", cargo.display());
        if run(bench, false, &version, &[]).code != Some(0) {
            return; // a toolchain in somebody else's home; root's half is always there
        }
        let variables = [
            ("PATH", path_to(&cargo)),
            ("CARGO_HOME", bench.workspace.join(".cargo-home").into()),
            ("CARGO_NET_OFFLINE", "true".into()),
        ];
        let prepare = |bench: &Bench| {
            let manifest = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
            bench.fixture.file("workspace/Cargo.toml", manifest);
            bench.fixture.file(
                "workspace/build.rs",
                "fn main() { println!(\"cargo::rustc-env=MADE=by a build script\"); }\n",
            );
            bench.fixture.file(
                "workspace/src/main.rs",
                "fn main() { println!(\"{}\", env!(\"MADE\")); }\n#[test]\nfn adds() { assert_eq!(1 + 1, 2); }\n",
            );
        };
        let script =
            "cargo build -q && ./target/debug/small && cargo test -q 2>&1 | grep 'test result'";
        let said = both_ways(bench, prepare, script, &variables);
        assert!(said.starts_with("by a build script\ntest result: ok. 1 passed"), "{said}");
        built.set(built.get() + 1);
    });
    assert!(built.get() > 0, "{} ran for nobody", cargo.display());
}

#[test]
fn a_small_package_is_tested_by_npm() {
    let Some(npm) = find_tool("npm").filter(|_| find_tool("node").is_some()) else {
        requires("npm and node on PATH", false);
        return;
    };
    as_each_user(|bench| {
        let prepare = |bench: &Bench| {
            let package = r#"{"name":"small","version":"1.0.0","scripts":{"test":"node --test"}}"#;
            bench.fixture.file("workspace/package.json", package);
            bench.fixture.file(
                "workspace/small.test.js",
                "const test = require('node:test');\nconst assert = require('node:assert');\nconst { execFileSync } = \
                 require('node:child_process');\ntest('a child process', () => {\n  \
                 assert.equal(String(execFileSync('echo', ['hi'])), 'hi\\n');\n});\n",
            );
        };
        let variables = [("PATH", path_to(&npm))];
        let said = both_ways(bench, prepare, "npm test", &variables);
        assert!(said.contains("pass 1") && said.contains("fail 0"), "{said}");
    });
}

#[test]
fn a_virtual_environment_is_made_and_pytest_runs_in_it() {
    let place = peers().map(|peers| peers.join("pytest"));
    let installed = place.as_deref().and_then(site_packages);
    let Some(installed) = installed else {
        requires("pytest (cargo xtask test --peers)", false);
        return;
    };
    as_each_user(|bench| {
        let packages = bench.fixture.join("packages");
        if !packages.exists() {
            let copied = Command::new("/bin/cp").arg("-r").arg(&installed).arg(&packages).status();
            assert!(copied.unwrap().success());
            let opened = Command::new("/bin/chmod").args(["-R", "a+rX"]).arg(&packages).status();
            assert!(opened.unwrap().success());
        }
        let own = place.as_deref().unwrap().join("bin/python3").canonicalize().unwrap();
        let python = [own, "/usr/bin/python3".into()].into_iter().find(|python| {
            let probe = format!("{} -c 'import venv, ensurepip'", python.display());
            run(bench, false, &probe, &[]).code == Some(0)
        });
        let Some(python) = python else {
            requires("python3 with venv, for every user", false);
            return;
        };
        let prepare = |bench: &Bench| {
            let test = "import tempfile\n\ndef test_adds(tmp_path):\n    (tmp_path / 'x').write_text('y')\n    \
                        assert tempfile.gettempdir() and 1 + 1 == 2\n";
            bench.fixture.file("workspace/test_small.py", test);
        };
        let script = format!(
            "{} -m venv ${{CONTROL:+--without-pip}} venv; test -n \"$CONTROL\" || venv/bin/python -m pip --version > /dev/null
             echo {} > $(echo venv/lib/python3*/site-packages)/peers.pth; venv/bin/python -m pytest -q --basetemp=tmp",
            python.display(),
            packages.display()
        );
        let said = both_ways(bench, prepare, &script, &[]);
        assert!(said.contains("1 passed"), "{said}");
    });
}

fn site_packages(environment: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(environment.join("lib")).ok()?.flatten();
    let mut places = versions.map(|version| version.path().join("site-packages"));
    places.find(|place| place.join("pytest").is_dir())
}
