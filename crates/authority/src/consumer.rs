//! What a server does with the authority that came with a call.

pub(crate) mod call;
pub(crate) mod command;
pub(crate) mod guard;
pub(crate) mod policy;
