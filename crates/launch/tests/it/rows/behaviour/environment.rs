//! Rows 31 and 32: what a caller's environment could make the launcher run.

use plenipo_testkit::{find_tool, requires};

use super::{Seen, seen};
use crate::stage::{Ended, Profile, Stage, Who};

fn run(stage: &Stage, profile: &Profile, argv: &[&str], environment: &[(&str, &str)]) -> Ended {
    stage.run_words(stage.launch_words(profile, &["--report-fd", "9"], argv), environment)
}

/// The launcher starts no shell; the command's shell reads the file inside.
pub(super) fn shell_start_file(who: Who) -> Seen {
    let stage = Stage::new(who);
    stage.fixture.directory("out");
    let marker = stage.path("out/marker");
    let script = stage.fixture.file("start.sh", format!("echo evil > {marker}\n"));
    let variables = [("BASH_ENV", script.to_str().unwrap()), ("ENV", script.to_str().unwrap())];
    let argv = ["/bin/bash", "-c", ":"];
    assert!(stage.outside(&argv).envs(variables).status().unwrap().success());
    assert!(stage.fixture.exists("out/marker"), "the control did not write");
    std::fs::remove_file(&marker).unwrap();
    run(&stage, &stage.workspace(), &argv, &variables).assert_ok();
    assert!(!stage.fixture.exists("out/marker"));
    seen("succeeds", "EROFS")
}

/// The library writes only in a process that has the variable which the command's environment gets: what a caller's
/// LD_PRELOAD does to a dynamically linked launcher is the caller's own doing.
pub(super) fn preloaded_library(who: Who) -> Seen {
    let Some(compiler) = find_tool("cc") else {
        requires("cc on PATH", false);
        return seen("not run", "not run");
    };
    let stage = Stage::new(who);
    stage.fixture.directory("out");
    let marker = stage.path("out/marker");
    let source = format!(
        "#include <fcntl.h>\n#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static void start(void) \
         {{ if (getenv(\"CODEX_SANDBOX_NETWORK_DISABLED\")) close(open(\"{marker}\", O_CREAT | O_WRONLY, 0644)); }}\n"
    );
    let source = stage.fixture.file("start.c", source);
    let library = stage.path("start.so");
    let mut compile = std::process::Command::new(compiler);
    compile.args(["-shared", "-fPIC", "-o", &library]).arg(source);
    assert!(compile.status().unwrap().success());
    std::fs::set_permissions(&library, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let mut control = stage.outside(&["/bin/true"]);
    control.env("LD_PRELOAD", &library).env("CODEX_SANDBOX_NETWORK_DISABLED", "1");
    assert!(control.status().unwrap().success());
    assert!(stage.fixture.exists("out/marker"), "the control did not write");
    std::fs::remove_file(&marker).unwrap();
    run(&stage, &stage.workspace(), &["/bin/true"], &[("LD_PRELOAD", &library)]).assert_ok();
    assert!(!stage.fixture.exists("out/marker"));
    seen("succeeds", "EROFS")
}

pub(super) fn fake_helpers(who: Who) -> Seen {
    let stage = Stage::new(who);
    stage.fixture.directory("out");
    let script = format!("#!/bin/sh\necho ran > {}\n", stage.path("out/marker"));
    for name in ["bwrap", "rg", "socat", "newuidmap", "newgidmap", "unshare", "mount", "sh", "git"]
    {
        stage.fixture.executable(format!("fake/{name}"), &script);
    }
    let path = format!("{}:/usr/bin:/bin", stage.path("fake"));
    let mut control = stage.outside(&["/usr/bin/env", "bwrap"]);
    assert!(control.env("PATH", &path).status().unwrap().success());
    assert!(stage.fixture.exists("out/marker"), "the control did not run the fake");
    std::fs::remove_file(stage.path("out/marker")).unwrap();
    // Everything is writable outside protected places here, so that a fake that ran would leave its mark.
    let profile = stage.profile().root("read").path("write", &stage.path("out"));
    let profile = profile.path("read", &stage.path("ws")).deny_glob("**/*.env");
    run(&stage, &profile, &["/bin/true"], &[("PATH", &path)]).assert_ok();
    assert!(!stage.fixture.exists("out/marker"));
    seen("succeeds", "not run")
}
