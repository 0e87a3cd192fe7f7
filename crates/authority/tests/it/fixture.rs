//! A launcher that can be verified, and raw JSON read by other means than the crate's.

use std::{fmt, fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use plenipo_authority::{
    AuthorityParts, CapturedAuthority, EnvironmentId, SandboxState, ServerReach, VerifiedLauncher,
};
use serde::{
    Deserializer as _,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// An executable file in a directory of its own.
pub(crate) struct LauncherFile {
    directory: tempfile::TempDir,
}

impl LauncherFile {
    pub(crate) fn new() -> Self {
        let file = Self { directory: tempfile::tempdir().unwrap() };
        file.replace();
        file
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("launcher")
    }

    pub(crate) fn verified(&self) -> VerifiedLauncher {
        VerifiedLauncher::verify(&self.path()).unwrap()
    }

    /// Puts another file at the path, as an update of the program does.
    pub(crate) fn replace(&self) {
        let new = self.directory.path().join("new");
        fs::write(&new, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, self.path()).unwrap();
    }
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.trim().to_owned()).unwrap()
}

/// Local stdio, opted in, with this state and no launcher.
pub(crate) fn parts(state: &str) -> AuthorityParts {
    let mut parts = AuthorityParts::new(EnvironmentId::local(), ServerReach::LocalStdio);
    parts.state = Some(SandboxState::capture(state).unwrap());
    parts.opt_in = true;
    parts
}

pub(crate) fn authority(state: &str) -> CapturedAuthority {
    CapturedAuthority::capture(parts(state))
}

/// CR and LF as spaces: in valid JSON they stand outside strings only.
pub(crate) fn one_line(json: &str) -> String {
    json.replace(['\r', '\n'], " ")
}

/// The members of an object in order, keys unescaped, values as written.
pub(crate) fn members(object: &str) -> Vec<(String, String)> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, String)>;
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                members.push((key, value.get().to_owned()));
            }
            Ok(members)
        }
    }
    serde_json::Deserializer::from_str(object).deserialize_map(Members).unwrap()
}
