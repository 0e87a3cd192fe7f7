//! Arguments that a modern server behind a URL wants as headers, too, and what becomes of a call
//! whose headers it finds wrong.

use http::{HeaderName, HeaderValue};
use plenipo_wire::Fragment;
use plenipo_wire::param_headers::ParamHeaders;
use plenipo_wire::protocol::error_code;

use crate::catalog::{DroppedTool, Listed, Tool};
use crate::connection::Connection;
use crate::error::{Fault, PeerError};
use crate::transport::http::encoded;

/// `Mcp-Param-…` headers of one call.
pub(crate) type Mirrored = Vec<(HeaderName, HeaderValue)>;

impl Connection {
    /// The headers of a call of `tool`; none unless the server is a modern one behind a URL.
    pub(super) fn mirrored(
        &self,
        tool: &Tool,
        arguments: Option<&Fragment>,
    ) -> Result<Mirrored, Fault> {
        if !self.mirrors() {
            return Ok(Mirrored::new());
        }
        // A tool whose annotations are bad was dropped from the list.
        let Ok(headers) = param_headers(tool) else { return Ok(Mirrored::new()) };
        let values = headers.values(arguments.map(Fragment::as_raw));
        let values = values.map_err(Fault::ArgumentHeader)?;
        let header = |(name, value): (&str, String)| {
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, encoded(&value)))
        };
        Ok(values.into_iter().filter_map(header).collect())
    }

    /// Whether a server says that a header does not fit the body: the schema at hand is an old one.
    /// Such a request was not processed.
    pub(super) fn has_old_schema(&self, error: &PeerError) -> bool {
        error.code == error_code::HEADER_MISMATCH && self.mirrors()
    }
}

/// Drops tools that annotate parameters in a way the revision forbids, and them alone.
pub(crate) fn drop_badly_annotated(listed: &mut Listed) {
    let Listed { tools, dropped, .. } = listed;
    tools.retain(|tool| match param_headers(tool) {
        Ok(_) => true,
        Err(reason) => {
            let name = Some(tool.name().to_owned());
            dropped.push(DroppedTool { name, reason });
            false
        }
    });
}

fn param_headers(tool: &Tool) -> Result<ParamHeaders, String> {
    let schema = plenipo_wire::object::member(tool.raw().as_raw(), "inputSchema");
    let headers = schema.map(ParamHeaders::of_schema).transpose();
    headers.map(Option::unwrap_or_default).map_err(|fault| fault.to_string())
}
