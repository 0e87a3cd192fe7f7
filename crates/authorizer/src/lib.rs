//! Who may speak to a server behind a URL: the credentials of each request, and what a refusal leads to.
//!
//! ```text
//!   a connection ──> Authorizer ◄── oauth::OAuthAuthorizer            a person's or program's own tokens
//!                        ▲
//!                        └───────── enterprise::EnterpriseAuthorizer  an identity that a company manages
//! ```
//!
//! The [`Authorizer`] is all that a connection knows: it asks for headers before each HTTP request and tells of each
//! refusal. [`oauth`] and [`enterprise`] are the two that exist; a host may write another. The flows themselves are
//! [`plenipo_oauth`]'s, what is stored [`plenipo_credentials`]', whose identity it is [`plenipo_enterprise`]'s.
//!
//! Nothing is printed, no person is asked but through what the host hands in, and no error or `Debug` has a token.
#![forbid(unsafe_code)]

mod authorizer;
pub mod enterprise;
mod error;
pub mod oauth;

pub use authorizer::{
    Authorization, AuthorizeRequest, Authorizer, Authorizing, Challenge, Operation, Verdict,
    Withdrawal,
};
pub use error::{AuthorizeError, ErrorKind};
