//! Signing in to servers behind URLs: [`plenipo_oauth`]'s flows and [`plenipo_credentials`]' stores
//! behind the seam that the HTTP transport has for credentials.
//!
//! ```text
//!   HttpEndpoint::authorizer ◄── OAuthAuthorizer ──► Vault, TokenSource    stored, refreshed once
//!                                  │        │
//!                                  │        └──► Grantor    a person, a client's own credentials,
//!                                  ▼                        a workload's identity
//!                            OAuthNetwork    one exchange at a time, addresses checked
//! ```

mod authorizer;
mod failure;
mod grantor;
mod held;
mod network;

pub use authorizer::{OAuthAuthorizer, OAuthSettings};
pub use grantor::{
    AssertionSource, GrantError, Granting, Grantor, PersonGrantor, SignInPrompt, UnattendedGrantor,
    Wish,
};
pub use held::stored;
pub use network::OAuthNetwork;
