//! What the tool's schemas say about a call's arguments and its result.

use plenipo_schema::SchemaFault;
use plenipo_wire::views::CallResult;

use super::{CallOutcome, CallRequest};
use crate::catalog::Catalog;
use crate::connection::Connection;
use crate::error::Fault;
use crate::peer::{RequestFault, WarningKind};
use crate::text::shown;

impl Connection {
    /// A schema that is broken in itself is the server's own affair: it has the last word then.
    pub(super) fn check_arguments(
        &self,
        catalog: &Catalog,
        place: usize,
        request: &CallRequest,
    ) -> Result<(), RequestFault> {
        if !request.check_schemas {
            return Ok(());
        }
        let fault = match catalog.check_arguments_at(place, request.arguments.as_ref()) {
            Ok(()) => return Ok(()),
            Err(SchemaFault::Mismatch(mismatch)) => Fault::Arguments(mismatch),
            Err(fault @ SchemaFault::Invalid { .. }) => {
                self.peer.warn_once(WarningKind::Schema, || {
                    format!("arguments of `{}` are not checked: {fault}", shown(&request.tool))
                });
                return Ok(());
            }
            Err(fault) => Fault::InputSchema(fault),
        };
        Err(RequestFault::Fault(fault))
    }
}

impl CallOutcome {
    /// The same, with what is wrong with its structured content.
    pub(crate) fn checked(mut self, catalog: &Catalog, tool: &str) -> Self {
        if let Ok(view) = CallResult::head(&self.result) {
            self.output_fault = catalog.check_result(tool, &view).err();
        }
        self
    }

    /// [`checked`](Self::checked) by the tool at a place.
    pub(super) fn checked_at(mut self, catalog: &Catalog, place: usize) -> Self {
        if catalog.has_output_schema(place)
            && let Ok(view) = CallResult::head(&self.result)
        {
            self.output_fault = catalog.check_result_at(place, &view).err();
        }
        self
    }
}
