//! `plenipo add` and `plenipo remove`: one server in the user's file, everything else in it as it was.

pub(crate) mod atomic;
mod document;
mod lock;

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plenipo_config::{Format, Origin, parse};
use plenipo_connect::ServerName;
use serde_json::json;

use crate::arguments::{AddArguments, Global};
use crate::failure::{Code, Failure};
use crate::settings::{Settings, read};
use document::{Added, with_server, without_server};
use lock::Lock;

/// Adds a server, or replaces it with `--force`.
pub(crate) fn add(global: &Global, arguments: &AddArguments) -> Result<ExitCode, Failure> {
    let name = ServerName::new(&arguments.name).ok_or_else(|| {
        Failure::usage(format!("`{}` is no name for a server", arguments.name))
            .with_hint("use letters, digits and _ : @ / . -")
    })?;
    if name.as_str() == ServerName::WORKSPACE {
        return Err(Failure::usage("`workspace` is the built-in server's name"));
    }
    if Settings::managed()?.server(name.as_str()).is_some() {
        let message = format!("the managed configuration has a server `{name}`, which would win");
        return Err(Failure::usage(message).with_hint("choose another name"));
    }
    let file = UserFile::open(global)?;
    let table = document::table(arguments)?;
    let added = with_server(&file.text, name.as_str(), table, arguments.force)
        .map_err(|fault| file.fault(&fault))?;
    let (text, replaced) = match added {
        Added::New(text) => (text, false),
        Added::Replaced(text) => (text, true),
        Added::Present => {
            let message = format!("{} has a server `{name}` already", file.path.display());
            return Err(Failure::usage(message).with_hint("replace it with --force"));
        }
    };
    let config = parse(&text, &file.path.display().to_string(), Origin::User)?;
    let server = config.servers.get(&name).cloned().transpose()?;
    for warning in server.iter().flat_map(|server| &server.warnings) {
        crate::terminal::warn(&warning.to_string());
    }
    file.write(&text)?;
    let path = file.path.display();
    let verb = if replaced { "replaced" } else { "added" };
    say(global, &json!({verb: name.as_str(), "file": path.to_string()}), || {
        format!("{verb} server `{name}` in {path}")
    })
}

/// Removes a server.
pub(crate) fn remove(global: &Global, name: &str) -> Result<ExitCode, Failure> {
    let file = UserFile::open(global)?;
    let removed = without_server(&file.text, name).map_err(|fault| file.fault(&fault))?;
    let Some(text) = removed else {
        let message = format!("{} has no server `{name}`", file.path.display());
        let settings = Settings::load(global.config.as_deref())?;
        let elsewhere = settings
            .layers()
            .find(|(_, config)| config.server_names().any(|present| present.as_str() == name));
        return Err(Failure::usage(message).with_optional_hint(
            elsewhere.map(|(path, _)| format!("it is defined in {}", path.display())),
        ));
    };
    parse(&text, &file.path.display().to_string(), Origin::User)?;
    file.write(&text)?;
    let path = file.path.display();
    say(global, &json!({"removed": name, "file": path.to_string()}), || {
        format!("removed server `{name}` from {path}")
    })
}

fn say(
    global: &Global,
    answer: &serde_json::Value,
    text: impl FnOnce() -> String,
) -> Result<ExitCode, Failure> {
    let line = if global.json { answer.to_string() } else { text() };
    crate::terminal::print(&format!("{line}\n")).map(|()| ExitCode::SUCCESS)
}

/// The user's file, locked from reading it to writing it.
struct UserFile {
    /// What a link points to: links stay.
    path: PathBuf,
    text: String,
    /// Of the file as it is; a new one is its owner's only.
    mode: u32,
    _lock: Lock,
}

impl UserFile {
    fn open(global: &Global) -> Result<Self, Failure> {
        let Some((path, _)) = Settings::user_file(global.config.as_deref())? else {
            return Err(Failure::usage("there is no home directory to keep a configuration in")
                .with_hint("set HOME or XDG_CONFIG_HOME, or name a file with --config"));
        };
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        let failed = |error: std::io::Error| {
            Failure::usage(format!("failed to edit {}: {error}", path.display()))
        };
        let directory = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(failed)?;
        let lock = Lock::take(&directory)?;
        let (text, mode) = match read(&path) {
            Ok(text) => (text, std::fs::metadata(&path).map_err(failed)?.permissions().mode()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (String::new(), 0o600),
            Err(error) => return Err(failed(error)),
        };
        let config = parse(&text, &path.display().to_string(), Origin::User)?;
        if config.format != Format::Plenipo {
            let message = format!(
                "{} is {}, which is not edited here",
                path.display(),
                config.format.description()
            );
            return Err(Failure::usage(message)
                .with_hint("edit it with its own program, or name a plenipo.toml with --config"));
        }
        Ok(Self { path, text, mode: mode & 0o7777, _lock: lock })
    }

    fn fault(&self, fault: &str) -> Failure {
        Failure::usage(format!("failed to edit {}: {fault}", self.path.display()))
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        atomic::write(&self.path, text.as_bytes(), self.mode).map_err(|error| {
            Failure::new(Code::Transport, self.fault(&error.to_string()).message())
        })
    }
}
