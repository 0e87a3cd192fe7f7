//! `plenipo config check`: the faults of every file at once, whether or not the rest can be used.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;

use plenipo_config::ConfigError;
use plenipo_config::{Config, Defined, Format, Origin, ServerState};
use plenipo_policy::{ConfigErrorKind as ErrorKind, PermissionTables, parse_permissions};
use serde_json::{Value, json};

use super::print;
use crate::arguments::Global;
use crate::env;
use crate::failure::{Code, Failure};
use crate::settings::{MANAGED, Project, ProjectFile, Settings, defined, read};
use crate::terminal::line;

#[derive(Default)]
struct Findings {
    files: Vec<String>,
    faults: Vec<Finding>,
    /// What keeps nothing from working.
    notes: Vec<Finding>,
    /// Profiles of the files so far, those of the stronger ones first.
    tables: PermissionTables,
    /// The files so far whose faults are told when all are read.
    configs: Vec<(Config, Vec<ConfigError>, String)>,
}

struct Finding {
    text: String,
    hint: Option<String>,
    place: Value,
}

impl From<&ConfigError> for Finding {
    fn from(error: &ConfigError) -> Self {
        let key = if error.key.is_empty() { String::new() } else { format!("`{}` ", error.key) };
        Self {
            text: format!("{}:{}: {key}{}", error.file, error.line, error.reason),
            hint: error.hint().map(str::to_owned),
            place: json!({
                "file": error.file, "line": error.line, "key": error.key, "reason": error.reason,
                "hint": error.hint(),
            }),
        }
    }
}

impl Finding {
    fn of_profile(file: &str, fault: &plenipo_policy::ConfigError) -> Self {
        Self {
            text: fault.to_string(),
            hint: fault.hint().map(str::to_owned),
            place: json!({
                "file": file, "line": null, "key": "permissions",
                "reason": fault.to_string(), "hint": fault.hint(),
            }),
        }
    }

    fn new(file: &str, reason: &str) -> Self {
        Self {
            text: format!("{file}: {reason}"),
            hint: None,
            place: json!({"file": file, "line": null, "key": "", "reason": reason, "hint": null}),
        }
    }
}

pub(super) fn run(global: &Global, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let mut findings = Findings::default();
    match file {
        Some(file) => {
            let file = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
            findings.file(&file, Origin::User, true);
            findings.judge(Settings::managed().iter().flat_map(Settings::layers));
        }
        None => findings.layers(global)?,
    }
    findings.show(global)?;
    Ok(if findings.faults.is_empty() { ExitCode::SUCCESS } else { Code::Usage.into() })
}

/// A credential in a file that every user of the machine can read.
fn open_to_others(path: &Path, config: &Config) -> Option<Finding> {
    const OTHERS: u32 = 0o077;
    let value = config.written_credential()?;
    let mode = std::fs::metadata(path).ok()?.mode() & 0o7777;
    let mut note = value.fault(format!("looks like a credential, in a file of mode {mode:04o}"));
    note.hint = Some(format!(
        "run `chmod go= {}`, or name an environment variable instead",
        path.display()
    ));
    (mode & OTHERS != 0).then(|| Finding::from(&note))
}

impl Findings {
    fn layers(&mut self, global: &Global) -> Result<(), Failure> {
        self.file(Path::new(MANAGED), Origin::Managed, false);
        if let Some((path, named)) = Settings::user_file(global.config.as_deref())? {
            self.file(&path, Origin::User, named);
        }
        self.judge([]);
        match Settings::of_user(global.config.as_deref()) {
            Ok(settings) => self.project(&settings),
            // Its fault is in the list already, unless it is one of the file itself.
            Err(failure) if self.faults.is_empty() => {
                self.faults.push(Finding::new(MANAGED, failure.message()));
            }
            Err(_) => self.project_alone(),
        }
        Ok(())
    }

    /// What is wrong with it by itself, where the stronger files do not say what it may name and widen.
    fn project_alone(&mut self) {
        let Ok(directory) = env::current_directory() else { return };
        let is_stronger = |file: &Path| self.files.contains(&file.display().to_string());
        match ProjectFile::find(&directory, is_stronger) {
            Ok(Some(file)) => {
                let name = file.path.display().to_string();
                let text = String::from_utf8_lossy(&file.content);
                let (_, faults) = plenipo_config::check(&text, &name, Origin::Project);
                self.faults.extend(faults.iter().map(Finding::from));
                self.files.push(name);
            }
            Ok(None) => {}
            Err(notice) => self.faults.push(Finding::new("project", &notice)),
        }
    }

    fn file(&mut self, path: &Path, origin: Origin, required: bool) {
        let name = path.display().to_string();
        let text = match read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !required => return,
            Err(error) => {
                self.faults.push(Finding::new(&name, &error.to_string()));
                return self.files.push(name);
            }
        };
        self.files.push(name.clone());
        let (config, faults) = plenipo_config::check(&text, &name, origin);
        self.notes.extend(open_to_others(path, &config));
        self.configs.push((config, faults, name));
    }

    /// The files that were read, now that everything is known that they may name; `others` are files beside them.
    fn judge<'a>(&mut self, others: impl IntoIterator<Item = (&'a Path, &'a Config)>) {
        let configs = std::mem::take(&mut self.configs);
        let others = others.into_iter().map(|(_, config)| config);
        let all: Vec<&Config> = configs.iter().map(|(config, ..)| config).chain(others).collect();
        let named = |config: &&Config| parse_permissions(config.permissions_source()?, "").ok();
        let tables =
            all.iter().filter_map(named).fold(PermissionTables::default(), PermissionTables::or);
        let defined = defined(&tables, all);
        for (config, faults, name) in configs {
            self.config(config.clone(), faults, &defined);
            self.permissions(&config, &name);
        }
    }

    /// `faults` are those that can be seen in the file alone; here are those of the names in it.
    fn config(&mut self, mut config: Config, mut faults: Vec<ConfigError>, defined: &Defined) {
        faults.extend(config.check_names(defined));
        let servers = config.servers.values().filter_map(|server| server.as_ref().err());
        let environments = config.environments.values().filter_map(|it| it.as_ref().err());
        for fault in servers.chain(environments) {
            if !faults.contains(fault) {
                faults.push(fault.clone());
            }
        }
        faults.sort_by_key(|fault| fault.line);
        self.faults.extend(faults.iter().map(Finding::from));
        self.notes.extend(config.warnings.iter().map(Finding::from));
        for (name, server) in &config.servers {
            let Ok(server) = server else { continue };
            self.notes.extend(server.warnings.iter().map(Finding::from));
            if let ServerState::Disabled { reason } = &server.state {
                let reason = format!("is disabled: {reason}");
                let note = ConfigError::new(&server.file, server.line, name.as_str(), reason);
                self.notes.push((&note).into());
            }
        }
    }

    fn permissions(&mut self, config: &Config, file: &str) {
        if config.format != Format::Plenipo {
            return;
        }
        match config.permissions_source().map(|text| parse_permissions(text, file)) {
            None => {}
            Some(Ok(tables)) if config.origin != Origin::Project => {
                self.tables = std::mem::take(&mut self.tables).or(tables);
                self.profiles(file);
            }
            Some(Ok(_)) => {} // judged beside what it may extend
            Some(Err(fault)) => self.faults.push(Finding::of_profile(file, &fault)),
        }
    }

    /// The profiles of the files so far; each fault is told once.
    fn profiles(&mut self, file: &str) {
        for fault in self.tables.faults() {
            let finding = Finding::of_profile(file, &fault);
            let list = match fault.kind() {
                ErrorKind::NotSupported => &mut self.notes,
                _ => &mut self.faults,
            };
            if list.iter().all(|told| told.text != finding.text) {
                list.push(finding);
            }
        }
    }

    /// Its entries that are refused, and its profiles that widen. It is read, not used, whoever trusts it.
    fn project(&mut self, settings: &Settings) {
        let Ok(directory) = env::current_directory() else { return };
        let file = match ProjectFile::find(&directory, |file| settings.reads(file)) {
            Ok(Some(file)) => file,
            Ok(None) => return,
            Err(notice) => return self.faults.push(Finding::new("project", &notice)),
        };
        let name = file.path.display().to_string();
        self.files.push(name.clone());
        let tables = settings.permissions().unwrap_or_else(|_| PermissionTables::default());
        let text = String::from_utf8_lossy(&file.content).into_owned();
        let faults = plenipo_config::check(&text, &name, Origin::Project).1;
        let project = match Project::judge(file, &settings.taken(), &tables) {
            Ok(project) => project,
            Err(failure) if faults.is_empty() => {
                return self.faults.push(Finding::new(&name, failure.message()));
            }
            Err(_) => return self.faults.extend(faults.iter().map(Finding::from)),
        };
        match project.as_written() {
            Ok(config) => {
                self.permissions(config, &name);
                let tables =
                    settings.permissions().unwrap_or_default().or(project.permissions.clone());
                let stronger = settings.layers().map(|(_, config)| config);
                self.config(config.clone(), faults, &defined(&tables, stronger));
                self.permissions(config, &name);
            }
            Err(fault) if faults.is_empty() => return self.faults.push((&fault).into()),
            Err(_) => return self.faults.extend(faults.iter().map(Finding::from)),
        }
        self.faults.extend(project.refused.iter().map(|(_, fault)| Finding::from(fault)));
        // Where the limit itself has a fault, that one is in the list.
        if settings.permissions().is_ok() {
            let widening = settings.widening(&project, &directory);
            self.faults.extend(widening.iter().map(|it| Finding::new(&name, it.message())));
        }
        if !project.is_trusted() {
            self.notes.push(Finding::new(&name, "is not used: it is not trusted"));
        }
    }

    fn show(&self, global: &Global) -> Result<ExitCode, Failure> {
        if global.json {
            let of = |findings: &[Finding]| -> Vec<Value> {
                findings.iter().map(|finding| finding.place.clone()).collect()
            };
            let answer = json!({
                "files": self.files, "faults": of(&self.faults), "notes": of(&self.notes),
            });
            return print(&format!("{answer}\n"));
        }
        let mut text = String::new();
        for (label, findings) in [("fault", &self.faults), ("note ", &self.notes)] {
            for finding in findings {
                text.extend([format!("{label} {}\n", line(&finding.text))]);
                if let Some(hint) = &finding.hint {
                    text.extend([format!("      hint: {}\n", line(hint))]);
                }
            }
        }
        let files = match self.files.is_empty() {
            // A fault is in a file, so there is none either.
            true => {
                return print("no configuration file; `plenipo config path` says where one goes\n");
            }
            false => self.files.join(", "),
        };
        let count = match self.faults.len() {
            0 => "no faults".to_owned(),
            1 => "1 fault".to_owned(),
            many => format!("{many} faults"),
        };
        print(&format!("{text}{count} in {}\n", line(&files)))
    }
}
