//! OAuth as MCP clients need it, sans I/O.
//!
//! Discovery (RFC 9728, RFC 8414, OpenID Connect), registration, the grants, challenges, DPoP. The
//! crate connects to nothing, keeps nothing, opens nothing and never retries on its own account:
//! requests and responses are plain [`http`] values, and an [`HttpClient`] carries them. The same
//! flows serve asynchronous and blocking programs (see [`run_blocking`]).
//!
//! ```text
//!   401 ──► Demand ──► discover ──► Strategy ──► authorize / device ──► TokenEndpoint ──► token
//!          challenge   RFC 9728     registered,   PKCE, state, iss       client
//!                      RFC 8414     document,     resource               authentication,
//!                      issuer echo  registration                         DPoP
//! ```
//!
//! What always holds: an issuer is compared as text, byte for byte; nothing is registered, opened
//! or sent before the documents it depends on were checked; every document is bounded; endpoints
//! are `https`, or `http` on loopback; requests with secrets follow no redirection; no secret is in
//! an error or in `Debug`.
#![forbid(unsafe_code)]

mod address;
mod authorization;
mod challenge;
mod client_authentication;
mod device;
mod discovery;
mod dpop;
pub mod error;
mod form;
mod http_client;
mod id_token;
mod identity_assertion;
mod issuer;
pub mod jose;
mod json;
pub mod protected_resource;
mod registration;
mod response;
mod revocation;
mod scope;
pub mod server_metadata;
mod sign_in;
mod step_up;
mod text;
mod token;
mod url;

pub use address::{AddressPolicy, Reach};
pub use authorization::{Authorization, AuthorizationOptions, PendingAuthorization};
pub use challenge::{Asked, Challenge, Demand, dpop_nonce};
pub use client_authentication::{AuthenticationMethod, ClientCredential};
pub use device::{DeviceAuthorization, Polled};
pub use discovery::{Discovered, DiscoveryOptions, discover};
pub use dpop::{DPOP, DpopKey};
pub use error::{ErrorKind, Missing, OAuthError, TransportFault, UrlFault};
pub use http_client::{
    Answer, Http, HttpClient, IncomingResponse, MAX_BODY_BYTES, OutgoingRequest, run_blocking,
};
pub use id_token::{Subject, check_id_token, verify_id_token};
pub use identity_assertion::{ExpectedAssertion, IdentityAssertion};
pub use issuer::{Issuer, ResourceId};
pub use protected_resource::ProtectedResource;
pub use registration::{
    ClientRegistration, RegistrationOptions, RegistrationRequest, RegistrationSource, Strategy,
    register,
};
pub use revocation::{Revoked, revoke};
pub use scope::{OFFLINE_ACCESS, ScopeSources, Scopes};
pub use server_metadata::ServerMetadata;
pub use sign_in::{Prepared, SignIn, SignInOptions, SignedIn};
pub use step_up::StepUps;
pub use token::{
    Grant, TokenEndpoint, TokenExchange, TokenRequest, TokenResponse, TokenType, token_type,
};
pub use url::EndpointUrl;
