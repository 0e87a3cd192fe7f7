//! The sends of one call: approved before the first, under one authority in all.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plenipo_authority::{AuthorityChanged, CapturedAuthority};
use plenipo_wire::RawValue;
use tokio::time::Instant;

use super::flight::Flight;
use super::rounds::{Attempt, Retry};
use super::{CallRequest, may_call};
use crate::approval::{ApprovalDecision, Pending};
use crate::catalog::{Catalog, Tool};
use crate::connection::{Connection, EraStamp};
use crate::error::Fault;
use crate::observer::{Event, tell};
use crate::peer::RequestFault;
use crate::tasks::Called;

/// A call that can be sent again, in rounds.
pub(super) struct CallAttempt<'a> {
    pub(super) connection: &'a Connection,
    pub(super) flight: &'a Flight<'a>,
    pub(super) request: &'a CallRequest,
    /// Held to the end: what was agreed about the tool is what is called.
    pub(super) catalog: Arc<Catalog>,
    /// Where in it the tool is.
    pub(super) place: usize,
    /// Both again, of a catalog that was listed because the server found a header outdated.
    pub(super) renewed: OnceLock<(Arc<Catalog>, usize)>,
}

impl CallAttempt<'_> {
    /// What the call came to, with what is wrong with its structured content; what a task comes to is
    /// checked when it has come.
    pub(super) fn checked(&self, called: Called) -> Called {
        match called {
            Called::Outcome(outcome) if self.request.check_schemas => {
                let (catalog, place) = self.current();
                Called::Outcome(outcome.checked_at(catalog, place))
            }
            other => other,
        }
    }

    /// Sends it once more, to a server that turned out to be of another era.
    async fn send_in_another_era(
        &self,
        retry: &Retry,
        (sent, fault): (EraStamp, RequestFault),
    ) -> Result<Box<RawValue>, RequestFault> {
        self.connection.renegotiate(sent, fault).await?;
        self.flight.fly(self.tool()?, retry).await
    }

    /// Sends it once more, by the schema that the tool has now.
    async fn send_by_new_schema(&self, retry: &Retry) -> Result<Box<RawValue>, RequestFault> {
        let &Self { connection, flight, request, ref catalog, .. } = self;
        let catalog = flight.catalog_after(catalog.revision()).await?;
        let place = may_call(&catalog, request).map_err(RequestFault::Fault)?;
        connection.check_arguments(&catalog, place, request)?;
        // The first one stays: there is one such retry in a round.
        let (catalog, place) = self.renewed.get_or_init(|| (catalog, place));
        let tool = catalog.at(*place).ok_or_else(|| RequestFault::Fault(Fault::ToolChanged))?;
        flight.fly(tool, retry).await
    }

    fn tool(&self) -> Result<&Tool, RequestFault> {
        let (catalog, place) = self.current();
        catalog.at(place).ok_or_else(|| RequestFault::Fault(Fault::ToolChanged))
    }

    /// The catalog that counts, and where in it the tool is.
    fn current(&self) -> (&Catalog, usize) {
        match self.renewed.get() {
            Some((catalog, place)) => (catalog, *place),
            None => (&self.catalog, self.place),
        }
    }
}

impl Attempt for CallAttempt<'_> {
    async fn send(&self, retry: &Retry) -> Result<Box<RawValue>, RequestFault> {
        let &Self { connection, flight, request, .. } = self;
        if !retry.is_first() {
            Box::pin(connection.ensure_same_authority(&request.authority)).await?;
        }
        let sent = connection.era_stamp();
        match flight.fly(self.tool()?, retry).await {
            Err(fault) if connection.is_of_another_era(sent, &fault) => {
                Box::pin(self.send_in_another_era(retry, (sent, fault))).await
            }
            Err(RequestFault::Peer(error)) if connection.has_old_schema(&error) => {
                Box::pin(self.send_by_new_schema(retry)).await
            }
            landed => landed,
        }
    }

    async fn cancelled(&self) -> Fault {
        Fault::Cancelled { reason: Some(self.flight.cancelled().await) }
    }

    fn spent_asking(&self, time: Duration) {
        self.flight.spent_asking(time);
    }
}

impl Connection {
    /// Has the call approved where the rules want that; gives the catalog in which the tool still is
    /// what was approved.
    pub(super) async fn approved_catalog(
        &self,
        flight: &Flight<'_>,
        request: &CallRequest,
        mut catalog: Arc<Catalog>,
    ) -> Result<Arc<Catalog>, RequestFault> {
        let Some(rules) = &self.options.approvals else { return Ok(catalog) };
        if rules.trust_annotations && catalog.is_remembered() {
            // Hints count only as the server gives them now.
            catalog = flight.catalog_after(0).await?;
        }
        let place = may_call(&catalog, request).map_err(RequestFault::Fault)?;
        let Some(tool) = catalog.at(place) else {
            return Err(RequestFault::Fault(Fault::ToolChanged));
        };
        let pending = Pending {
            rules,
            approved: &self.approved,
            server: self.name(),
            tool,
            arguments: request.arguments.as_ref(),
            by_person: request.asked_by_person,
        };
        let begun = Instant::now();
        let decision = tokio::select! {
            biased;
            reason = flight.cancelled() => {
                return Err(RequestFault::Fault(Fault::Cancelled { reason: Some(reason) }));
            }
            decision = pending.decide() => decision,
        };
        flight.spent_asking(begun.elapsed());
        let (server, name) = (self.name(), tool.name());
        tell(&*self.options.observer, &Event::Approval { server, tool: name, decision });
        if !decision.allows() {
            let asked = decision == ApprovalDecision::Refused;
            return Err(RequestFault::Fault(Fault::NotApproved { asked }));
        }
        if decision != ApprovalDecision::Approver {
            return Ok(catalog);
        }
        // A person takes their time: what they approved has to be what is called.
        let now = flight.catalog().await?;
        let place = may_call(&now, request).map_err(RequestFault::Fault)?;
        match now.at(place) == Some(tool) {
            true => Ok(now),
            false => Err(RequestFault::Fault(Fault::ToolChanged)),
        }
    }

    /// What a retry would be sent under has to be what the call was accepted under, in all five.
    pub(crate) async fn ensure_same_authority(
        &self,
        captured: &CapturedAuthority,
    ) -> Result<(), RequestFault> {
        let now = self.capture(captured.state().cloned()).await;
        captured.ensure_same(&now).map_err(|changed| {
            RequestFault::Fault(Fault::AuthorityChanged {
                captured: "the first round of the call".to_owned(),
                actual: format!("another one ({})", parts(&changed)),
            })
        })
    }
}

fn parts(changed: &AuthorityChanged) -> String {
    changed.parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
