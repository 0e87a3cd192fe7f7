//! `plenipo config`: what is wrong with the configuration, what is in force, and where it is.

mod check;
mod show;

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use crate::arguments::{ConfigCommand, Global};
use crate::failure::Failure;
use crate::settings::{FILE_NAME, MANAGED, Settings};
use crate::{env, terminal};

/// Runs the command.
pub(crate) fn run(global: &Global, command: &ConfigCommand) -> Result<ExitCode, Failure> {
    match command {
        ConfigCommand::Check { file } => check::run(global, file.as_deref()),
        ConfigCommand::Show => show::run(global),
        ConfigCommand::Path => path(global),
    }
}

fn path(global: &Global) -> Result<ExitCode, Failure> {
    let user = Settings::user_file(global.config.as_deref())?.map(|(path, _)| path);
    let project = env::current_directory().ok().map(|directory| directory.join(FILE_NAME));
    let places = [("managed", Some(MANAGED.into())), ("user", user), ("project", project)];
    let places: Vec<_> = places
        .into_iter()
        .filter_map(|(layer, path)| Some((layer, path?)))
        .map(|(layer, path)| (layer, path.exists(), path))
        .collect();
    if global.json {
        let places: Vec<_> = places
            .iter()
            .map(|(layer, exists, path)| {
                json!({"layer": layer, "file": path.to_string_lossy(), "exists": exists})
            })
            .collect();
        return print(&format!("{}\n", json!(places)));
    }
    let line = |(layer, exists, path): &(&str, bool, std::path::PathBuf)| {
        let there = if *exists { "" } else { " (not there)" };
        format!("{layer:<8} {}{there}\n", path.display())
    };
    print(&places.iter().map(line).collect::<String>())
}

fn print(text: &str) -> Result<ExitCode, Failure> {
    terminal::print(text).map(|()| ExitCode::SUCCESS)
}

fn layer_of(path: &Path, config: &plenipo_config::Config) -> &'static str {
    match config.origin {
        _ if path == Path::new(MANAGED) => "managed",
        plenipo_config::Origin::Project => "project",
        _ => "user",
    }
}
