//! What the server says about its one tool.

use plenipo_wire::Fragment;

/// The tool's name.
pub(crate) const NAME: &str = "run";
/// That exactly one of `command` and `argv` is given stands in the descriptions: model providers refuse
/// tools whose schema has `oneOf` at its top.
const DEFINITION: &str = include_str!("tool/run.json");

/// The tool as `tools/list` shows it.
pub(crate) fn definition() -> Fragment {
    // The text is part of this crate, and a test reads it.
    Fragment::parse_object(DEFINITION).unwrap_or_else(|_| Fragment::object_empty())
}

#[cfg(test)]
mod tests {
    use plenipo_wire::views::ToolView;

    use super::*;

    #[test]
    fn the_definition_is_a_tool_that_claims_no_more_than_it_does() {
        let definition = definition();
        let tool = ToolView::from_raw(definition.as_raw()).unwrap();
        assert_eq!(tool.name, NAME);
        let hints = tool.annotations.unwrap().get();
        for hint in
            ["\"destructiveHint\": true", "\"openWorldHint\": false", "\"readOnlyHint\": false"]
        {
            assert!(hints.contains(hint), "{hint}");
        }
    }
}
