//! What a tool's schemas say about arguments and results, read when first asked.

use std::sync::OnceLock;

use plenipo_schema::{Mismatch, Schema, SchemaFault};
use plenipo_wire::Fragment;
use plenipo_wire::views::CallResult;

use super::Tool;

/// The schemas of one tool.
#[derive(Debug, Default)]
pub(super) struct ToolSchemas {
    input: OnceLock<Result<Schema, SchemaFault>>,
    output: OnceLock<Option<Result<Schema, SchemaFault>>>,
}

impl ToolSchemas {
    /// No arguments are an empty object.
    pub(super) fn check_arguments(
        &self,
        tool: &Tool,
        arguments: Option<&Fragment>,
    ) -> Result<(), SchemaFault> {
        let schema = self.input.get_or_init(|| match tool.view() {
            Ok(view) => Schema::read(view.input_schema),
            Err(error) => Err(unreadable(&error)),
        });
        let schema = schema.as_ref().map_err(SchemaFault::clone)?;
        match arguments {
            Some(arguments) => schema.check_arguments(arguments),
            None => schema.check_arguments(&Fragment::object_empty()),
        }
    }

    /// A tool that failed is not held to its output schema.
    pub(super) fn check_result(
        &self,
        tool: &Tool,
        result: &CallResult<'_>,
    ) -> Result<(), SchemaFault> {
        if result.is_error {
            return Ok(());
        }
        let Some(schema) = self.output(tool) else { return Ok(()) };
        let schema = schema.as_ref().map_err(SchemaFault::clone)?;
        match result.structured_content {
            Some(content) => schema.check(content),
            None => Err(SchemaFault::Mismatch(Mismatch::missing())),
        }
    }
}

impl ToolSchemas {
    pub(super) fn has_output(&self, tool: &Tool) -> bool {
        self.output(tool).is_some()
    }

    fn output(&self, tool: &Tool) -> Option<&Result<Schema, SchemaFault>> {
        let schema = self.output.get_or_init(|| match tool.view() {
            Ok(view) => view.output_schema.map(Schema::read),
            Err(error) => Some(Err(unreadable(&error))),
        });
        schema.as_ref()
    }
}

fn unreadable(error: &dyn std::error::Error) -> SchemaFault {
    SchemaFault::Invalid { place: String::new(), reason: error.to_string() }
}
