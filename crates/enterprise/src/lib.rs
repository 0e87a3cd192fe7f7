//! Enterprise-managed authorization of MCP servers: one sign-in at the company's identity provider
//! gives tokens for every server that the company allows.
//!
//! ```text
//!   Identities ── kept ──► select ──► Pin      whose identity, and which sign-in of theirs
//!                                      │
//!   BearerClient::token ◄──────────────┘
//!      │ good: from memory, without a lock
//!      └ else, once for all who ask:
//!          1  the server, its authorization server, the identity provider: what they publish
//!          2  lease ► read: as pinned? ► identity provider: identity assertion ► write ► release
//!          3  the server's authorization server: token
//!          4  read: still as pinned?
//! ```
//!
//! What always holds: the identity is pinned, and another sign-in is never swapped in; the lease is
//! held while the identity provider is asked, and not a step longer; an assertion is redeemed once;
//! nothing falls back to a sign-in at the server; no error repeats a peer's text.
//!
//! The protocol is [`plenipo_oauth`]'s, the stores are [`plenipo_credentials`]'. Texts: the MCP
//! profile of enterprise-managed authorization (stable),
//! `draft-ietf-oauth-identity-assertion-authz-grant-04`, RFC 8693, RFC 7523.
#![forbid(unsafe_code)]

mod bearer;
mod clock;
mod error;
mod exchange;
mod grant;
mod identity;
mod provider;
mod resource;
mod select;
mod steps;
mod store;

pub use bearer::{Bearer, BearerClient, BearerOptions};
pub use error::{EnterpriseError, ErrorClass, KnownCode, Party};
pub use grant::IdentityGrant;
pub use identity::{Generation, Identity, Pin, Source};
pub use provider::{IdentityProvider, IdentitySignIn, Network};
pub use resource::ManagedServer;
pub use select::{Condition, Kept, Unselected, Wanted, select};
pub use store::{Begun, Identities};
