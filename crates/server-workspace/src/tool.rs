//! What the server says about its tools.

use plenipo_wire::Fragment;

/// The tool's name.
pub(crate) const NAME: &str = "run";
/// That exactly one of `command` and `argv` is given stands in the descriptions: model providers refuse
/// tools whose schema has `oneOf` at its top.
const RUN: &str = include_str!("tool/run.json");

/// All of them.
pub(crate) const NAMES: [&str; 4] = [NAME, START, SEND, CLOSE];
/// Starts a shell that stays.
pub(crate) const START: &str = "session_start";
/// Runs a line in it.
pub(crate) const SEND: &str = "session_send";
/// Ends it.
pub(crate) const CLOSE: &str = "session_close";

/// The tools as `tools/list` shows them, in the order of [`NAMES`].
pub(crate) fn definitions() -> [Fragment; 4] {
    let texts = [
        RUN,
        include_str!("tool/session_start.json"),
        include_str!("tool/session_send.json"),
        include_str!("tool/session_close.json"),
    ];
    // The texts are part of this crate, and a test reads them.
    texts.map(|text| Fragment::parse_object(text).unwrap_or_else(|_| Fragment::object_empty()))
}

#[cfg(test)]
mod tests {
    use plenipo_wire::views::ToolView;

    use super::*;

    #[test]
    fn the_definitions_are_tools_that_claim_no_more_than_they_do() {
        for (definition, name) in definitions().iter().zip(NAMES) {
            let tool = ToolView::from_raw(definition.as_raw()).unwrap();
            assert_eq!(tool.name, name);
            let hints = tool.annotations.unwrap().get();
            for hint in
                ["\"destructiveHint\": true", "\"openWorldHint\": false", "\"readOnlyHint\": false"]
            {
                assert!(hints.contains(hint), "{hint}");
            }
        }
    }
}
