//! A result for a person, or as JSON for a program.

use std::io::Write;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plenipo_authority::SandboxState;
use plenipo_connect::{CallOutcome, SchemaFault};
use plenipo_wire::RawValue;
use plenipo_wire::views::ContentBlock;
use serde::Serialize;

use crate::failure::{Code, Failure};
use crate::terminal::{self, print};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    output_fault: Option<String>,
    result: &'a RawValue,
}

/// What is to be shown: made at once, printed where it may block.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    stdout: String,
    notes: Vec<String>,
}

impl Rendered {
    /// Prints it; the reader of stdout may take its time.
    pub(super) fn print(self) -> Result<(), Failure> {
        let printed = print(&self.stdout);
        self.notes.iter().for_each(|note| terminal::tell(note));
        printed
    }

    fn note(&mut self, text: &str) {
        self.notes.push(terminal::harmless(text).replace('\n', " "));
    }

    /// Text of a server: raw for a program, harmless for a terminal.
    fn text(&mut self, text: &str) {
        if terminal::stdout_is_terminal() {
            self.stdout.push_str(&terminal::harmless(text));
        } else {
            self.stdout.push_str(text);
        }
        if !text.is_empty() && !text.ends_with('\n') {
            self.stdout.push('\n');
        }
    }
}

/// One JSON object; `result` is the server's own text.
pub(super) fn json(shown: &Shown<'_>, outcome: &CallOutcome) -> Result<Rendered, Failure> {
    let answer = JsonAnswer {
        server: shown.server,
        tool: shown.tool,
        profile: shown.profile,
        sandbox_state: shown.state.as_raw(),
        is_error: outcome.is_error(),
        output_fault: outcome.output_fault().map(SchemaFault::to_string),
        result: outcome.result(),
    };
    let mut stdout = serde_json::to_string(&answer)
        .map_err(|error| Failure::new(Code::Protocol, format!("failed to write JSON: {error}")))?;
    stdout.push('\n');
    Ok(Rendered { stdout, notes: Vec::new() })
}

/// Text for stdout; the rest into files of `directory`, or a note each for stderr.
pub(super) fn text(outcome: &CallOutcome, directory: Option<&Path>) -> Result<Rendered, Failure> {
    let result = outcome.view().map_err(|error| {
        Failure::new(Code::Protocol, format!("failed to read the result: {error}"))
    })?;
    let mut rendered = Rendered::default();
    if let (true, Some(structured)) = (result.content.is_empty(), result.structured_content) {
        rendered.text(structured.get());
    }
    for (index, block) in result.content.iter().enumerate() {
        show(&mut rendered, block, (index + 1, directory))?;
    }
    if let Some(fault) = outcome.output_fault() {
        rendered
            .note(&format!("warning: the structured content is not what its schema says: {fault}"));
    }
    Ok(rendered)
}

type Place<'a> = (usize, Option<&'a Path>);

fn show(
    rendered: &mut Rendered,
    block: &ContentBlock<'_>,
    place: Place<'_>,
) -> Result<(), Failure> {
    match block {
        ContentBlock::Text(text) => rendered.text(text),
        ContentBlock::Resource { text: Some(text), .. } => rendered.text(text),
        ContentBlock::Image { data, mime_type } => {
            keep(rendered, ("image", data, mime_type), place)?;
        }
        ContentBlock::Audio { data, mime_type } => {
            keep(rendered, ("audio", data, mime_type), place)?;
        }
        ContentBlock::Resource { blob: Some(blob), mime_type, .. } => {
            keep(rendered, ("resource", blob, mime_type), place)?;
        }
        ContentBlock::ResourceLink { uri, name } => {
            rendered.note(&format!("[resource {name} at {uri}]"));
        }
        _ => rendered.note("[content of an unknown kind; --json shows it]"),
    }
    Ok(())
}

fn keep(
    rendered: &mut Rendered,
    (kind, data, mime_type): (&str, &str, &str),
    (number, directory): Place<'_>,
) -> Result<(), Failure> {
    let shown_type = if mime_type.is_empty() { "no type given" } else { mime_type };
    let bytes = match STANDARD.decode(data.trim()) {
        Ok(bytes) => bytes,
        Err(error) => {
            rendered.note(&format!("[{kind}, {shown_type}: its base64 is broken: {error}]"));
            return Ok(());
        }
    };
    let length = bytes.len();
    let Some(directory) = directory else {
        rendered
            .note(&format!("[{kind}, {shown_type}, {length} bytes; keep it with --output DIR]"));
        return Ok(());
    };
    let path = write_new(directory, (kind, number, mime_type), &bytes).map_err(|error| {
        let message = format!("failed to write into {}: {error}", directory.display());
        Failure::new(Code::Usage, message)
    })?;
    rendered.note(&format!("[{kind}, {shown_type}, {length} bytes: {}]", path.display()));
    Ok(())
}

/// Writes under the first free name: nothing is overwritten, and no link is followed.
///
/// The names are made by us: nothing that a server says becomes part of a path but the letters of a media type's second
/// half.
fn write_new(
    directory: &Path,
    (kind, number, mime_type): (&str, usize, &str),
    bytes: &[u8],
) -> std::io::Result<PathBuf> {
    const NAMES: usize = 10_000;
    let subtype = mime_type.rsplit('/').next().unwrap_or_default();
    let extension: String =
        subtype.chars().take_while(char::is_ascii_alphanumeric).take(8).collect();
    let extension = if extension.is_empty() { "bin" } else { &extension };
    std::fs::create_dir_all(directory)?;
    for attempt in 0..NAMES {
        let again = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let path = directory.join(format!("{kind}-{number}{again}.{extension}"));
        match std::fs::OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => return file.write_all(bytes).map(|()| path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}
