//! A result for a person, or as JSON for a program.

use std::io::Write;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plenipo_authority::SandboxState;
use plenipo_connect::CallOutcome;
use plenipo_wire::RawValue;
use plenipo_wire::views::ContentBlock;
use serde::Serialize;

use crate::failure::{Code, Failure};
use crate::terminal::{print, print_json};

/// What a JSON answer says about the call besides its result.
pub(super) struct Shown<'a> {
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    pub(super) profile: &'a str,
    pub(super) state: &'a SandboxState,
}

#[derive(Serialize)]
struct JsonAnswer<'a> {
    server: &'a str,
    tool: &'a str,
    profile: &'a str,
    sandbox_state: &'a RawValue,
    is_error: bool,
    result: &'a RawValue,
}

/// One JSON object on stdout; `result` is the server's own text.
pub(super) fn json(shown: &Shown<'_>, outcome: &CallOutcome) -> Result<(), Failure> {
    let answer = JsonAnswer {
        server: shown.server,
        tool: shown.tool,
        profile: shown.profile,
        sandbox_state: shown.state.as_raw(),
        is_error: outcome.is_error(),
        result: outcome.result(),
    };
    print_json(&answer)
}

/// Text to stdout; the rest into files of `directory`, or a note each on stderr.
pub(super) fn text(outcome: &CallOutcome, directory: Option<&Path>) -> Result<(), Failure> {
    let result = outcome.view().map_err(|error| {
        Failure::new(Code::Protocol, format!("failed to read the result: {error}"))
    })?;
    if let (true, Some(structured)) = (result.content.is_empty(), result.structured_content) {
        print(&format!("{}\n", structured.get()))?;
    }
    for (index, block) in result.content.iter().enumerate() {
        show(block, index + 1, directory)?;
    }
    Ok(())
}

fn show(block: &ContentBlock<'_>, number: usize, directory: Option<&Path>) -> Result<(), Failure> {
    match block {
        ContentBlock::Text(text) => print_line(text),
        ContentBlock::Resource { text: Some(text), .. } => print_line(text),
        ContentBlock::Image { data, mime_type } => {
            keep("image", data, mime_type, (number, directory))
        }
        ContentBlock::Audio { data, mime_type } => {
            keep("audio", data, mime_type, (number, directory))
        }
        ContentBlock::Resource { blob: Some(blob), mime_type, .. } => {
            keep("resource", blob, mime_type, (number, directory))
        }
        ContentBlock::ResourceLink { uri, name } => {
            note(&format!("[resource {name} at {uri}]"));
            Ok(())
        }
        _ => {
            note("[content of an unknown kind; --json shows it]");
            Ok(())
        }
    }
}

fn keep(
    kind: &str,
    data: &str,
    mime_type: &str,
    (number, directory): (usize, Option<&Path>),
) -> Result<(), Failure> {
    let shown_type = if mime_type.is_empty() { "no type given" } else { mime_type };
    let bytes = match STANDARD.decode(data.trim()) {
        Ok(bytes) => bytes,
        Err(error) => {
            note(&format!("[{kind}, {shown_type}: its base64 is broken: {error}]"));
            return Ok(());
        }
    };
    let Some(directory) = directory else {
        note(&format!("[{kind}, {shown_type}, {} bytes; keep it with --output DIR]", bytes.len()));
        return Ok(());
    };
    let path = directory.join(file_name(kind, number, mime_type));
    write_new(directory, &path, &bytes).map_err(|error| {
        Failure::new(Code::Usage, format!("failed to write {}: {error}", path.display()))
    })?;
    note(&format!("[{kind}, {shown_type}, {} bytes: {}]", bytes.len(), path.display()));
    Ok(())
}

/// A name made by us: nothing that a server says becomes part of a path but the letters of a media type's second half.
fn file_name(kind: &str, number: usize, mime_type: &str) -> PathBuf {
    let subtype = mime_type.rsplit('/').next().unwrap_or_default();
    let extension: String =
        subtype.chars().take_while(char::is_ascii_alphanumeric).take(8).collect();
    let extension = if extension.is_empty() { "bin".to_owned() } else { extension };
    PathBuf::from(format!("{kind}-{number}.{extension}"))
}

fn write_new(directory: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    std::fs::OpenOptions::new().write(true).create_new(true).open(path)?.write_all(bytes)
}

fn print_line(text: &str) -> Result<(), Failure> {
    print(text)?;
    if text.ends_with('\n') || text.is_empty() { Ok(()) } else { print("\n") }
}

fn note(text: &str) {
    eprintln!("{text}");
}
