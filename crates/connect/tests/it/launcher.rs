use std::sync::Arc;

use plenipo_authority::{SandboxState, VerifiedLauncher};
use plenipo_connect::{CallRequest, LauncherProvider, LauncherSource};
use plenipo_testkit::Fixture;

use crate::support::{Fake, text};

const STATE: &str = r#"{"permissionProfile":{"type":"disabled"}}"#;
const OPTED_IN: (&str, &str) =
    ("F_CAPS", r#"{"tools":{},"experimental":{"codex/sandbox-state":{}}}"#);

fn launcher(fixture: &Fixture, said: &str) -> std::path::PathBuf {
    let script = format!("#!/bin/sh\necho run >> {}\n{said}\n", fixture.join("runs").display());
    fixture.executable("launcher", script)
}

fn runs(fixture: &Fixture) -> usize {
    fixture.read("runs").unwrap_or_default().lines().count()
}

async fn line(fake: &Fake, calls: usize) -> String {
    let connection = fake.start().await.unwrap();
    let mut line = String::new();
    for _ in 0..calls {
        let state = SandboxState::capture(STATE).unwrap();
        let authority = connection.capture(Some(state)).await;
        line = text(&connection.call(CallRequest::new("line", None, authority)).await.unwrap());
    }
    connection.shut_down().await;
    line
}

#[tokio::test]
async fn a_configured_launcher_is_probed_once_and_only_for_opted_in_servers() {
    let fixture = Fixture::new();
    let path = launcher(&fixture, "echo '  --sandbox-state-json STATE'");
    let provider = Arc::new(LauncherProvider::new(LauncherSource::Path(path.clone())));

    let mut plain = Fake::new("peer", &[]);
    plain.options.launcher = Arc::clone(&provider);
    assert!(!line(&plain, 1).await.contains("launcher"));
    assert_eq!(runs(&fixture), 0);

    let mut opted_in = Fake::new("peer", &[OPTED_IN]);
    opted_in.options.launcher = Arc::clone(&provider);
    let wanted = format!(r#""codex/sandbox-launcher":{{"codexExecutable":"{}"}}"#, path.display());
    let sent = line(&opted_in, 3).await;
    assert!(sent.contains(&wanted), "{sent}");
    assert_eq!(runs(&fixture), 1, "kept by file identity");

    fixture.executable("launcher", "#!/bin/sh\nexit 0\n# another file\n");
    let sent = line(&opted_in, 2).await;
    assert!(!sent.contains("launcher"), "{sent}");
    let warnings = opted_in.seen.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("does not name --sandbox-state-json"), "{warnings:?}");
}

#[tokio::test]
async fn a_launcher_that_cannot_be_used_is_left_out() {
    for (said, expected) in [
        ("exit 1", "it fails `sandbox --help`"),
        ("echo hello", "does not name --sandbox-state-json: hello"),
        ("exec sleep 60", "did not answer `sandbox --help` within 2 s"),
    ] {
        let fixture = Fixture::new();
        let path = launcher(&fixture, &format!("PATH=/usr/bin:/bin; {said}"));
        let provider = LauncherProvider::new(LauncherSource::Path(path));
        let error = provider.provide().await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        let again = provider.provide().await.unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
        assert_eq!(runs(&fixture), 1);
    }
    let fixture = Fixture::new();
    launcher(&fixture, "echo --sandbox-state-json");
    fixture.set_mode("launcher", 0o777);
    let provider = LauncherProvider::new(LauncherSource::Path(fixture.join("launcher")));
    assert!(provider.provide().await.is_err(), "somebody else could have replaced it");
    assert_eq!(runs(&fixture), 0, "and it is not run");
    let missing = LauncherProvider::new(LauncherSource::Path("/no/such/launcher".into()));
    assert!(missing.provide().await.is_err());
}

#[tokio::test]
async fn the_hosts_own_executable_needs_no_probe() {
    let fixture = Fixture::new();
    let path = launcher(&fixture, "exit 1");
    let own = VerifiedLauncher::verify(&path).unwrap();
    let mut fake = Fake::new("peer", &[OPTED_IN]);
    fake.options.launcher = Arc::new(LauncherProvider::new(LauncherSource::Verified(own)));
    let sent = line(&fake, 1).await;
    assert!(sent.contains(&format!("{}", path.display())), "{sent}");
    assert_eq!(runs(&fixture), 0);
}

/// Whoever can write the file can put another launcher in its place, which answers the probe as well: what was captured
/// is the file, not its name.
#[tokio::test]
async fn a_launcher_that_is_replaced_between_probe_and_use_ends_the_call_unsent() {
    let fixture = Fixture::new();
    let path = launcher(&fixture, "echo --sandbox-state-json");
    let mut fake = Fake::new("peer", &[OPTED_IN]);
    fake.options.launcher = Arc::new(LauncherProvider::new(LauncherSource::Path(path.clone())));
    let connection = fake.start().await.unwrap();
    let state = || Some(SandboxState::capture(STATE).unwrap());
    let call = |authority| connection.call(CallRequest::new("line", None, authority));
    let by_rename = || {
        let other = fixture.executable("other", "#!/bin/sh\necho --sandbox-state-json\n: other\n");
        std::fs::rename(other, &path).unwrap();
    };
    let in_place =
        || std::fs::write(&path, "#!/bin/sh\necho --sandbox-state-json\n: same\n").unwrap();
    let removed = || std::fs::remove_file(&path).unwrap();
    let ways: [(&str, &dyn Fn()); 3] =
        [("renamed over", &by_rename), ("written", &in_place), ("removed", &removed)];
    for (way, replace) in ways {
        let before = fake.params("tools/call").len();
        let authority = connection.capture(state()).await;
        assert!(authority.launcher().is_some(), "{way}: it was probed");
        let sent = text(&call(authority.clone()).await.unwrap());
        assert!(sent.contains("codex/sandbox-launcher"), "the control: {sent}");
        replace();
        let refused = call(authority).await.unwrap_err();
        assert!(format!("{refused:?}").contains("auncher"), "{way}: {refused}");
        assert_eq!(fake.params("tools/call").len(), before + 1, "{way}: nothing was sent");
    }
    // What is captured anew is probed anew; it is gone now.
    let sent = text(&call(connection.capture(state()).await).await.unwrap());
    assert!(!sent.contains("codex/sandbox-launcher"), "{sent}");
    connection.shut_down().await;
}
