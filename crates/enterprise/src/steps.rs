//! Signing in, signing out and exchanging as sequences of steps, without I/O: what is leased, read,
//! asked and written, in which order. The store's driver carries the steps out; a model in the tests
//! walks every way in which the steps of several processes can fall together, with a kill at each.
//!
//! ```text
//!   sign in    read slot … the person signs in … lease slot, read: as before? write slot
//!              lease entry, write entry with a new generation
//!   sign out   lease slot, write slot, lease entry, read, write entry: no grant, new generation
//!   exchange   lease entry, read: as pinned? ask, write what was renewed, release
//!              redeem, read: still as pinned? publish
//! ```
//!
//! A sign-in that was begun before another sign-in or a sign-out came through finds another value in
//! the slot and gives up. One write replaces one record whole, so that a kill leaves the old or the
//! new one; a lease ends with its process.

#[cfg(test)]
mod model;

use crate::identity::{Generation, Identity, Pin};

/// One of the two records of a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// Changes whenever somebody signs in or out; a sign-in is begun on it.
    Slot,
    /// Whose sign-in it is, and its tokens.
    Entry,
}

/// A sign-in as it is kept, or the trace of one that was signed out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Entry<G> {
    pub(crate) identity: Identity,
    pub(crate) generation: Generation,
    pub(crate) grant: Option<G>,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Step<G> {
    Lease(Place),
    ReadSlot,
    WriteSlot(Generation),
    ReadEntry,
    WriteEntry(Entry<G>),
    /// The identity provider is asked; the lease of the entry is held.
    Ask(G),
    Release,
    /// The resource's side is asked; no lease is held.
    Redeem,
    Done(End<G>),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Came<G> {
    /// Nothing to tell; at the start too.
    Done,
    Slot(Option<Generation>),
    Entry(Option<Entry<G>>),
    /// `renewed`: the grant as it has to be kept from now on. `granted`: there is something to
    /// redeem.
    Answer {
        renewed: Option<G>,
        granted: bool,
    },
    /// What was redeemed is good, or not.
    Redeemed(bool),
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum End<G> {
    SignedIn(Pin),
    /// Somebody signed in or out since this was begun.
    Overtaken,
    /// What was there before.
    SignedOut(Option<Entry<G>>),
    /// The new token may be used.
    Published,
    /// Not the sign-in that the connection was made with.
    Changed,
    /// The identity provider or the resource's side said no.
    Refused,
}

/// The end of a sign-in: what the person did is put into the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SignIn<G> {
    /// What the slot said when it was begun.
    pub(crate) begun: Option<Generation>,
    pub(crate) entry: Entry<G>,
    pub(crate) next_slot: Generation,
    pub(crate) at: u8,
}

/// A sign-out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SignOut<G> {
    pub(crate) next_slot: Generation,
    pub(crate) next_entry: Generation,
    pub(crate) found: Option<Entry<G>>,
    pub(crate) at: u8,
}

/// One exchange of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Exchange<G> {
    pub(crate) pin: Pin,
    pub(crate) granted: bool,
    pub(crate) entry: Option<Entry<G>>,
    pub(crate) at: u8,
}

/// A sequence of steps. Fed with what came of the last step, it says the next.
pub(crate) trait Sequence<G> {
    fn next(&mut self, came: Came<G>) -> Step<G>;
}

impl<G: Clone> Sequence<G> for SignIn<G> {
    fn next(&mut self, came: Came<G>) -> Step<G> {
        let at = self.at;
        self.at += 1;
        match (at, came) {
            (0, _) => Step::Lease(Place::Slot),
            (1, _) => Step::ReadSlot,
            (2, Came::Slot(found)) if found == self.begun => {
                Step::WriteSlot(self.next_slot.clone())
            }
            (3, _) => Step::Lease(Place::Entry),
            (4, _) => Step::WriteEntry(self.entry.clone()),
            (5, _) => {
                let Entry { identity, generation, .. } = self.entry.clone();
                Step::Done(End::SignedIn(Pin { identity, generation }))
            }
            _ => Step::Done(End::Overtaken),
        }
    }
}

impl<G> SignOut<G> {
    pub(crate) fn new(next_slot: Generation, next_entry: Generation) -> Self {
        Self { next_slot, next_entry, found: None, at: 0 }
    }
}

impl<G: Clone> Sequence<G> for SignOut<G> {
    fn next(&mut self, came: Came<G>) -> Step<G> {
        let at = self.at;
        self.at += 1;
        match (at, came) {
            (0, _) => Step::Lease(Place::Slot),
            (1, _) => Step::WriteSlot(self.next_slot.clone()),
            (2, _) => Step::Lease(Place::Entry),
            (3, _) => Step::ReadEntry,
            (4, Came::Entry(Some(entry))) if entry.grant.is_some() => {
                let left =
                    Entry { generation: self.next_entry.clone(), grant: None, ..entry.clone() };
                self.found = Some(entry);
                Step::WriteEntry(left)
            }
            _ => Step::Done(End::SignedOut(self.found.take())),
        }
    }
}

impl<G> Exchange<G> {
    pub(crate) fn new(pin: Pin) -> Self {
        Self { pin, granted: false, entry: None, at: 0 }
    }

    fn is_pinned(&self, entry: &Entry<G>) -> bool {
        entry.grant.is_some()
            && entry.identity == self.pin.identity
            && entry.generation == self.pin.generation
    }
}

impl<G: Clone> Sequence<G> for Exchange<G> {
    fn next(&mut self, came: Came<G>) -> Step<G> {
        let at = self.at;
        self.at += 1;
        match (at, came) {
            (0, _) => Step::Lease(Place::Entry),
            (1, _) => Step::ReadEntry,
            (2, Came::Entry(Some(entry))) if self.is_pinned(&entry) => {
                let Some(grant) = entry.grant.clone() else { return Step::Done(End::Changed) };
                self.entry = Some(entry);
                Step::Ask(grant)
            }
            (3, Came::Answer { renewed, granted }) => {
                self.granted = granted;
                match (renewed, self.entry.take()) {
                    (Some(grant), Some(entry)) => {
                        Step::WriteEntry(Entry { grant: Some(grant), ..entry })
                    }
                    _ => {
                        self.at += 1;
                        Step::Release
                    }
                }
            }
            (4, _) => Step::Release,
            (5, _) if self.granted => Step::Redeem,
            (6, Came::Redeemed(true)) => Step::ReadEntry,
            (7, Came::Entry(Some(entry))) if self.is_pinned(&entry) => Step::Done(End::Published),
            (5 | 6, _) => Step::Done(End::Refused),
            _ => Step::Done(End::Changed),
        }
    }
}
