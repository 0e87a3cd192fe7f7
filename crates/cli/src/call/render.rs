//! A result for a person, or as JSON for a program.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plenipo_authority::SandboxState;
use plenipo_connect::{CallOutcome, SchemaFault};
use plenipo_wire::views::ContentBlock;
use plenipo_wire::{RawValue, object};
use serde::Serialize;

use crate::failure::{Code, Failure};
use crate::terminal;

/// What a JSON answer says about the call besides its result.
pub(super) struct Shown<'a> {
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    /// Absent when no policy was sent.
    pub(super) profile: Option<&'a str>,
    /// Likewise.
    pub(super) state: Option<&'a SandboxState>,
}

#[derive(Serialize)]
struct JsonHead<'a> {
    server: &'a str,
    tool: &'a str,
    profile: Option<&'a str>,
    sandbox_state: Option<&'a RawValue>,
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_fault: Option<String>,
}

/// What is to be shown: made at once, printed where it may block. A long result is there once, as it came.
#[derive(Debug)]
pub(super) struct Rendered {
    outcome: CallOutcome,
    pieces: Vec<Piece>,
    notes: Vec<String>,
    /// Why some of it could not be kept in a file. The rest is shown all the same: the call was made.
    lost: Option<Failure>,
}

/// A part of standard output.
#[derive(Debug)]
enum Piece {
    /// Text of our own.
    Own(String),
    /// The result itself, as JSON.
    Result,
    /// Some JSON in the result, by its place.
    Json(Range<usize>),
    /// A JSON string in the result, by its place, as text and with a line's end.
    Text(Range<usize>),
}

impl Rendered {
    /// Whether all of it fits into a page of a pipe.
    pub(super) fn is_short(&self) -> bool {
        let own = self.pieces.iter().map(|piece| match piece {
            Piece::Own(text) => text.len(),
            _ => 1,
        });
        let length = self.outcome.result().get().len().saturating_add(own.sum());
        length <= terminal::PAGE && self.notes.is_empty()
    }

    /// Prints it; the reader of stdout may take its time.
    pub(super) fn print(self) -> Result<(), Failure> {
        let mut stdout = terminal::Output::begin();
        let result = self.outcome.result().get();
        let printed = self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Own(text) => stdout.write(text),
            Piece::Result => stdout.write_json(result),
            Piece::Json(place) => {
                stdout.write_json(result.get(place.clone()).unwrap_or_default())?;
                stdout.end_line()
            }
            Piece::Text(place) => {
                let raw =
                    result.get(place.clone()).and_then(|text| serde_json::from_str(text).ok());
                if let Some(raw) = raw {
                    object::text_in_pieces(raw, |text| stdout.write_peers(text))
                        .unwrap_or(Ok(()))?;
                }
                stdout.end_line()
            }
        });
        let printed = printed.and_then(|()| stdout.finish());
        self.notes.iter().for_each(|note| terminal::tell(note));
        printed.and(self.lost.map_or(Ok(()), Err))
    }
}

/// One JSON object; `result` is the server's own text.
pub(super) fn json(shown: &Shown<'_>, outcome: CallOutcome) -> Result<Rendered, Failure> {
    let head = JsonHead {
        server: shown.server,
        tool: shown.tool,
        profile: shown.profile,
        sandbox_state: shown.state.map(SandboxState::as_raw),
        is_error: outcome.is_error(),
        output_fault: outcome.output_fault().map(SchemaFault::to_string),
    };
    let mut text = serde_json::to_string(&head)
        .map_err(|error| Failure::new(Code::Protocol, format!("failed to write JSON: {error}")))?;
    // `result` comes behind it, without a copy.
    text.pop();
    let (before, after) = (text + ",\"result\":", "}\n".to_owned());
    let pieces = vec![Piece::Own(before), Piece::Result, Piece::Own(after)];
    Ok(Rendered { outcome, pieces, notes: Vec::new(), lost: None })
}

/// Text for stdout; the rest into files of `directory`, or a note each for stderr.
pub(super) fn text(outcome: CallOutcome, directory: Option<&Path>) -> Rendered {
    let (mut pieces, mut notes, mut lost) = (Vec::new(), Vec::new(), None);
    let whole = outcome.result();
    let blocks = object::member(whole, "content").and_then(object::items).unwrap_or_default();
    let mut show =
        Show { whole, pieces: &mut pieces, notes: &mut notes, lost: &mut lost, directory };
    if blocks.is_empty()
        && let Some(structured) = object::member(whole, "structuredContent")
    {
        show.pieces.push(Piece::Json(place_in(whole, structured)));
    }
    for (index, block) in blocks.into_iter().enumerate() {
        show.block(index + 1, block);
    }
    if let Some(fault) = outcome.output_fault() {
        notes.push(terminal::harmless(&format!(
            "warning: the structured content is not what its schema says: {fault}"
        )));
    }
    Rendered { outcome, pieces, notes, lost }
}

/// Blocks of a result on their way into pieces and notes.
struct Show<'a> {
    whole: &'a RawValue,
    pieces: &'a mut Vec<Piece>,
    notes: &'a mut Vec<String>,
    lost: &'a mut Option<Failure>,
    directory: Option<&'a Path>,
}

impl Show<'_> {
    fn block(&mut self, number: usize, raw: &RawValue) {
        if let Some(text) = text_of(raw) {
            self.pieces.push(Piece::Text(place_in(self.whole, text)));
            return;
        }
        match ContentBlock::from_raw(raw) {
            ContentBlock::Image { data, mime_type } => {
                self.keep(number, ("image", &data, &mime_type))
            }
            ContentBlock::Audio { data, mime_type } => {
                self.keep(number, ("audio", &data, &mime_type))
            }
            ContentBlock::Resource { blob: Some(blob), mime_type, .. } => {
                self.keep(number, ("resource", &blob, &mime_type))
            }
            ContentBlock::ResourceLink { uri, name } => {
                self.note(&format!("[resource {name} at {uri}]"));
            }
            _ => self.note("[content of an unknown kind; --json shows it]"),
        }
    }

    fn keep(&mut self, number: usize, (kind, data, mime_type): (&str, &str, &str)) {
        let shown_type = if mime_type.is_empty() { "no type given" } else { mime_type };
        let bytes = match STANDARD.decode(data.trim()) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.note(&format!("[{kind}, {shown_type}: its base64 is broken: {error}]"));
                return;
            }
        };
        let length = bytes.len();
        let Some(directory) = self.directory else {
            let how = "keep it with --output DIR";
            self.note(&format!("[{kind}, {shown_type}, {length} bytes; {how}]"));
            return;
        };
        match write_new(directory, (kind, number, mime_type), &bytes) {
            Ok(path) => {
                self.note(&format!("[{kind}, {shown_type}, {length} bytes: {}]", path.display()));
            }
            Err(error) => {
                self.note(&format!("[{kind}, {shown_type}, {length} bytes: not kept]"));
                let message = format!("failed to write into {}: {error}", directory.display());
                self.lost.get_or_insert_with(|| Failure::new(Code::Transport, message));
            }
        }
    }

    fn note(&mut self, text: &str) {
        self.notes.push(terminal::harmless(text).replace('\n', " "));
    }
}

/// The string that a block of text, or an embedded resource of text, is about; not decoded, it may be long.
fn text_of(block: &RawValue) -> Option<&RawValue> {
    let kind = object::member(block, "type").and_then(object::text)?;
    let holder = match &*kind {
        "text" => block,
        "resource" => object::member(block, "resource")?,
        _ => return None,
    };
    object::member(holder, "text").filter(|text| text.get().starts_with('"'))
}

/// Where `part`, which is a part of `whole`, is in it.
fn place_in(whole: &RawValue, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr().addr().saturating_sub(whole.get().as_ptr().addr());
    start..start.saturating_add(part.get().len())
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
            Ok(mut file) => {
                return match file.write_all(bytes) {
                    Ok(()) => Ok(path),
                    // Half of it would be taken for all of it.
                    Err(error) => Err(std::fs::remove_file(&path).err().unwrap_or(error)),
                };
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}
