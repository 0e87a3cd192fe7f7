//! What the suite tells the client.

use std::env;

use plenipo_wire::{Fragment, RawValue, object};

use crate::Outcome;

/// One run of the client.
#[derive(Debug)]
pub(crate) struct Situation {
    pub(crate) scenario: String,
    pub(crate) url: String,
    context: Option<Fragment>,
}

impl Situation {
    /// From the environment and the last argument.
    #[expect(clippy::disallowed_methods, reason = "the suite speaks through the environment")]
    pub(crate) fn read() -> Outcome<Self> {
        let scenario = env::var("MCP_CONFORMANCE_SCENARIO")
            .map_err(|_| "read MCP_CONFORMANCE_SCENARIO: it is not set")?;
        let url = env::args().skip(1).last().ok_or("find the server's URL: no argument")?;
        let context = match env::var("MCP_CONFORMANCE_CONTEXT") {
            Ok(text) => Some(Fragment::parse_object(&text)?),
            Err(_) => None,
        };
        Ok(Self { scenario, url, context })
    }

    /// A member of the scenario's context.
    pub(crate) fn context(&self, name: &str) -> Option<&RawValue> {
        object::member(self.context.as_ref()?.as_raw(), name)
    }
}
