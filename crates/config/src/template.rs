//! Text with placeholders: checked when a file is read, filled in when a server is started.
//!
//! | in | placeholder | means |
//! |---|---|---|
//! | `plenipo.toml`, `mcpServers` | `${NAME}` | the variable; an error when it is not set |
//! | the same | `${NAME:-text}` | the variable, or `text` when it is not set or empty |
//! | `plenipo.toml` | `$${` | the two characters `${` |
//! | `mcpServers`, VS Code | `${env:NAME}` | the variable; an error when it is not set |
//! | the same | `${userHome}`, `${workspaceFolder}`, `${workspaceFolderBasename}`, `${/}`, `${pathSeparator}` | what the editors mean by them |
//!
//! Values are put in once: what a variable holds is never read again. Every other `$` stays.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use plenipo_redact::{REDACTED, Secret};

use crate::error::ConfigError;
use crate::format::{Format, workspace_of};
use crate::node::Place;
use plenipo_connect::environment::Lookup;

/// What a server's start may look at.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct StartContext<'a> {
    /// The host's environment variables.
    pub lookup: Lookup<'a>,
    /// The user's home directory.
    pub home: Option<&'a Path>,
    /// The directory that the host works in; absolute. Servers start there, and relative `cwd`s and
    /// commands are taken from there. Absent: the host's own.
    pub directory: Option<&'a Path>,
}

impl<'a> StartContext<'a> {
    /// Variables only.
    #[must_use]
    pub fn new(lookup: Lookup<'a>) -> Self {
        Self { lookup, home: None, directory: None }
    }
}

impl fmt::Debug for StartContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { home, directory, .. } = self;
        f.debug_struct("StartContext")
            .field("home", home)
            .field("directory", directory)
            .finish_non_exhaustive()
    }
}

/// One value of a configuration file, which may be a secret and may have placeholders.
#[derive(Clone)]
pub struct Template {
    written: Secret<String>,
    parts: Vec<Part>,
    file: Arc<str>,
    line: usize,
    key: String,
}

#[derive(Clone)]
enum Part {
    Literal(Secret<String>),
    Variable { name: String, default: Option<Secret<String>> },
    Home,
    Directory,
    DirectoryName,
}

/// Why a text is no template.
pub(crate) enum TemplateFault {
    /// It is wrong.
    Malformed(ConfigError),
    /// It is right for its program, and means nothing here: `${input:token}`.
    Unsupported(String),
}

impl Template {
    /// Reads `text` as a file of this format means it.
    pub(crate) fn parse(
        format: Format,
        place: &Place<'_>,
        text: String,
    ) -> Result<Self, TemplateFault> {
        match format {
            Format::Codex | Format::ClaudeDesktop => Ok(Self::literal(place, text)),
            _ => {
                let parts = parts(format, place, &text)?;
                Ok(Self::of(place, text, parts))
            }
        }
    }

    /// Text that is taken as it stands.
    pub(crate) fn literal(place: &Place<'_>, text: String) -> Self {
        let parts = vec![Part::Literal(Secret::new(text.clone()))];
        Self::of(place, text, parts)
    }

    /// `${NAME}`.
    pub(crate) fn variable_named(place: &Place<'_>, name: String) -> Self {
        let written = format!("${{{name}}}");
        Self::of(place, written, vec![Part::Variable { name, default: None }])
    }

    fn of(place: &Place<'_>, written: String, parts: Vec<Part>) -> Self {
        Self {
            written: Secret::new(written),
            parts,
            file: place.file.into(),
            line: place.line(),
            key: place.key().to_owned(),
        }
    }

    /// As it stands in the file, for a person who has to judge it. It may be a secret.
    #[must_use]
    pub fn written(&self) -> &Secret<String> {
        &self.written
    }

    /// For display: placeholders as they are, everything else masked.
    #[must_use]
    pub fn redacted(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) if literal.expose().is_empty() => {}
                Part::Literal(_) => text.push_str(REDACTED),
                Part::Variable { name, default } => {
                    text.push_str("${");
                    text.push_str(name);
                    if default.is_some() {
                        text.push_str(":-");
                        text.push_str(REDACTED);
                    }
                    text.push('}');
                }
                Part::Home => text.push_str("${userHome}"),
                Part::Directory => text.push_str("${workspaceFolder}"),
                Part::DirectoryName => text.push_str("${workspaceFolderBasename}"),
            }
        }
        text
    }

    /// Names of the variables it takes, in the order written.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }

    /// Whether there is nothing to fill in.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Literal(_)))
    }

    /// What it says whatever is filled in: the text around the variables, and their defaults.
    pub(crate) fn own_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Literal(text) | Part::Variable { default: Some(text), .. } => Some(text),
            _ => None,
        });
        texts.map(|text| text.expose().as_str()).collect()
    }

    /// The text with its placeholders filled in, once.
    ///
    /// # Errors
    /// A variable without a default is not set or not UTF-8; the home directory or the directory
    /// that the host works in is needed and not known; the value has a NUL.
    pub fn expand(&self, context: &StartContext<'_>) -> Result<String, ConfigError> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal.expose()),
                Part::Variable { name, default } => {
                    text.push_str(&self.variable(name, default.as_ref(), context)?);
                }
                Part::Home => text.push_str(self.path("the home directory", context.home)?),
                Part::Directory => {
                    text.push_str(self.path("the working directory", context.directory)?);
                }
                Part::DirectoryName => {
                    let name = context.directory.and_then(Path::file_name).map(Path::new);
                    text.push_str(self.path("the name of the working directory", name)?);
                }
            }
        }
        if text.contains('\0') {
            return Err(self.fault("holds a NUL character once its variables are filled in"));
        }
        Ok(text)
    }

    fn variable(
        &self,
        name: &str,
        default: Option<&Secret<String>>,
        context: &StartContext<'_>,
    ) -> Result<String, ConfigError> {
        let value = (context.lookup)(name);
        if let Some(default) = default
            && value.as_ref().is_none_or(|value| value.is_empty())
        {
            return Ok(default.expose().clone());
        }
        let Some(value) = value else {
            let mut fault = self.fault(format!("needs the variable `{name}`, which is not set"));
            fault.hint = Some(format!("set `{name}`, or write a default: ${{{name}:-text}}"));
            return Err(fault);
        };
        value.into_string().map_err(|_| {
            self.fault(format!("needs the variable `{name}`, whose value is not UTF-8"))
        })
    }

    fn path<'p>(&self, what: &str, path: Option<&'p Path>) -> Result<&'p str, ConfigError> {
        path.and_then(Path::to_str)
            .ok_or_else(|| self.fault(format!("needs {what}, which is not known or not UTF-8")))
    }

    /// A fault at the place where the text is written.
    #[must_use]
    pub fn fault(&self, reason: impl Into<String>) -> ConfigError {
        ConfigError {
            file: self.file.to_string(),
            line: self.line,
            key: self.key.clone(),
            reason: reason.into(),
            hint: None,
        }
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

fn parts(format: Format, place: &Place<'_>, text: &str) -> Result<Vec<Part>, TemplateFault> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if format == Format::Plenipo
            && let Some(escaped) = before.strip_suffix('$')
        {
            literal.push_str(escaped);
            literal.push_str("${");
            rest = after;
            continue;
        }
        literal.push_str(before);
        let Some((inner, after)) = after.split_once('}') else {
            return Err(malformed(place, "has a `${` without its `}`"));
        };
        rest = after;
        match placeholder(format, place, inner)? {
            Part::Literal(text) => literal.push_str(text.expose()),
            part => {
                flush(&mut parts, &mut literal);
                parts.push(part);
            }
        }
    }
    literal.push_str(rest);
    flush(&mut parts, &mut literal);
    Ok(parts)
}

fn flush(parts: &mut Vec<Part>, literal: &mut String) {
    if !literal.is_empty() {
        parts.push(Part::Literal(Secret::new(std::mem::take(literal))));
    }
}

fn placeholder(format: Format, place: &Place<'_>, inner: &str) -> Result<Part, TemplateFault> {
    let variable = |name: &str, default: Option<&str>| {
        let default = default.map(|text| Secret::new(text.to_owned()));
        Part::Variable { name: name.to_owned(), default }
    };
    if format != Format::Plenipo {
        let known = match inner {
            "userHome" => Some(Part::Home),
            "workspaceFolder" => Some(directory(place.file)),
            "workspaceFolderBasename" => Some(directory_name(place.file)),
            "/" | "pathSeparator" => Some(Part::Literal(Secret::new("/".to_owned()))),
            _ => None,
        };
        if let Some(part) = known {
            return Ok(part);
        }
        if let Some(name) = inner.strip_prefix("env:").filter(|name| is_variable(name)) {
            return Ok(variable(name, None));
        }
        if inner.contains(':') && !inner.contains(":-") || format == Format::VsCode {
            let name = plenipo_connect::text::shown(inner.split(':').next().unwrap_or_default());
            let what = format!("`${{{}}}`", plenipo_connect::text::shown(inner));
            return Err(TemplateFault::Unsupported(match name.as_str() {
                "input" => format!("{what} asks a person each time, which is not honoured yet"),
                _ => format!("{what} has no meaning outside its editor"),
            }));
        }
    }
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if default.is_some_and(|text| text.contains("${")) {
        return Err(malformed(place, "has a placeholder inside a default"));
    }
    if !is_variable(name) {
        let shown = plenipo_connect::text::shown(inner);
        let mut fault = place.fault(format!("has `${{{shown}}}`, which names no variable"));
        if format == Format::Plenipo {
            fault.hint = Some("write $${ for the two characters ${".to_owned());
        }
        return Err(TemplateFault::Malformed(fault));
    }
    Ok(variable(name, default))
}

fn directory(file: &str) -> Part {
    match workspace_of(file).as_deref().and_then(Path::to_str) {
        Some(path) => Part::Literal(Secret::new(path.to_owned())),
        None => Part::Directory,
    }
}

fn directory_name(file: &str) -> Part {
    let folder = workspace_of(file);
    match folder.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()) {
        Some(name) => Part::Literal(Secret::new(name.to_owned())),
        None => Part::DirectoryName,
    }
}

/// Letters, digits and `_`, no digit first.
pub(crate) fn is_variable(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn malformed(place: &Place<'_>, reason: &str) -> TemplateFault {
    TemplateFault::Malformed(place.fault(reason))
}
