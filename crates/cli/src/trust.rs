//! `plenipo trust`: a person looks at what a project's file would do, and consents to exactly that.

mod digest;
mod store;
mod summary;
mod text;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use crate::arguments::{Global, TrustArguments};
use crate::authority;
use crate::failure::{Code, Failure};
use crate::settings::{Consent, FILE_NAME, Project, ProjectFile, Settings};
use crate::terminal;

pub(crate) use digest::Digest;
pub(crate) use store::TrustStore;
use summary::Summary;
pub(crate) use text::{quoted, visible};

/// Runs the command.
pub(crate) fn run(global: &Global, arguments: &TrustArguments) -> Result<ExitCode, Failure> {
    let store = TrustStore::usual().ok_or_else(|| {
        Failure::usage("there is no home directory to remember trust in")
            .with_hint("set HOME or XDG_DATA_HOME")
    })?;
    if arguments.list {
        return list(global, &store);
    }
    let path = named(arguments.file.as_deref())?;
    if arguments.remove {
        return remove(global, &store, &path);
    }
    consent(global, arguments.yes, &store, &path)
}

/// The file that was meant: itself, or the one in a directory.
fn named(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = match given {
        Some(path) => path.to_path_buf(),
        None => authority::current_directory()?,
    };
    let path = if path.is_dir() { path.join(FILE_NAME) } else { path };
    if path.file_name().is_none_or(|name| name != FILE_NAME) {
        let message = format!("{} is not called {FILE_NAME}", path.display());
        return Err(Failure::usage(message).with_hint(format!(
            "a project's configuration is {FILE_NAME} in its directory; another program's file is \
             read when it is named with --config"
        )));
    }
    let directory = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => parent.to_path_buf(),
        None => authority::current_directory()?,
    };
    let directory = std::fs::canonicalize(&directory).map_err(|error| {
        Failure::usage(format!("failed to find {}: {error}", directory.display()))
    })?;
    Ok(directory.join(FILE_NAME))
}

fn consent(
    global: &Global,
    yes: bool,
    store: &TrustStore,
    path: &Path,
) -> Result<ExitCode, Failure> {
    let settings = Settings::of_user(global.config.as_deref())?;
    let directory = path.parent().unwrap_or(path);
    let file = ProjectFile::find(directory, |_| false).map_err(Failure::usage)?;
    let file = file.ok_or_else(|| Failure::usage(format!("there is no {}", path.display())))?;
    let project = Project::judge(file, &settings.taken(), &settings.permissions()?)?;
    project.check()?;
    let summary = Summary::of(&project);
    if !global.json {
        show(&summary.text())?;
    }
    if !yes {
        ask(global, &project)?;
    }
    store.add(path, &project.digest)?;
    if global.json {
        let mut answer = summary.json();
        if let Some(members) = answer.as_object_mut() {
            members.insert("trusted".to_owned(), json!(true));
        }
        return show(&format!("{answer}\n"));
    }
    show(&format!("trusted {}\n", visible(&path.to_string_lossy())))
}

/// Only a person at a terminal can say yes; whatever else comes out of a pipe is no consent.
fn ask(global: &Global, project: &Project) -> Result<(), Failure> {
    let person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if global.json || !person {
        return Err(Failure::usage("nobody is there to be asked, so nothing was trusted")
            .with_hint("look at it yourself, then say so with --yes"));
    }
    if project.consent == Consent::Changed {
        terminal::tell("It changed since you trusted it.");
    }
    terminal::ask(&format!("{} [y/N] ", terminal::stderr().bold("Trust it?")));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| {
        Failure::new(Code::Transport, format!("failed to read the answer: {error}"))
    })?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(Code::Refused, "not trusted")),
    }
}

fn remove(global: &Global, store: &TrustStore, path: &Path) -> Result<ExitCode, Failure> {
    if !store.remove(path)? {
        return Err(Failure::usage(format!("{} was not trusted", path.display())));
    }
    match global.json {
        true => show(&format!("{}\n", json!({"file": path.to_string_lossy(), "trusted": false}))),
        false => show(&format!("no longer trusted: {}\n", visible(&path.to_string_lossy()))),
    }
}

fn list(global: &Global, store: &TrustStore) -> Result<ExitCode, Failure> {
    let entries = store.list()?;
    let state = |file: &str| {
        let found = Path::new(file).parent().map(|folder| ProjectFile::find(folder, |_| false));
        match found {
            Some(Ok(Some(found))) => match store.consent(&found.path, &found.digest()) {
                Consent::Given => "current",
                _ => "changed",
            },
            _ => "gone",
        }
    };
    if global.json {
        let entries: Vec<_> = entries
            .iter()
            .map(|(file, digest)| json!({"file": file, "digest": digest, "state": state(file)}))
            .collect();
        return show(&format!("{}\n", json!(entries)));
    }
    let lines = entries.iter().map(|(file, _)| format!("{:<8} {}\n", state(file), visible(file)));
    show(&lines.collect::<String>())
}

fn show(text: &str) -> Result<ExitCode, Failure> {
    terminal::print(text).map(|()| ExitCode::SUCCESS)
}
