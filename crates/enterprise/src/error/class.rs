//! The classes of errors: what a person or an administrator has to do. `docs/enterprise.md` has the
//! same table.

use super::{EnterpriseError, KnownCode, Party};
use crate::identity::Source;
use crate::select::{Condition, Unselected};

/// Who has to do something, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// Sign in for the enterprise.
    EnterpriseSignIn,
    /// Sign in to the account.
    AccountSignIn,
    /// Say who.
    WhichPerson,
    /// The identity provider does not know our client.
    IdentityClientRejected,
    /// The identity provider wants to see the person again.
    MoreAuthentication,
    /// The identity provider rejected the grant of the enterprise sign-in.
    EnterpriseGrantRejected,
    /// The identity provider rejected the grant of the account.
    AccountGrantRejected,
    /// The resource's authorization server rejected the assertion.
    ResourceGrantRejected,
    /// Two spellings of an issuer, or two issuers.
    IssuerMismatch,
    /// What somebody publishes or answers cannot be used.
    MetadataUnusable,
    /// A claim is wrong.
    AssertionUnusable,
    /// Connect again.
    CredentialsChanged,
    /// Signed out, or closed.
    Withdrawn,
    /// The company says no.
    PolicyRefused,
    /// The server does not take the token.
    BearerRefused,
    /// The token is not for that URL.
    OutsideEndpoint,
    /// A setting is wrong.
    Misconfigured,
    /// The store of credentials does not work.
    StoreUnusable,
    /// Not reachable, or not able now.
    Unreachable,
    /// Too slow.
    Timeout,
}

impl ErrorClass {
    /// In the order of the table.
    pub const ALL: [Self; 20] = [
        Self::EnterpriseSignIn,
        Self::AccountSignIn,
        Self::WhichPerson,
        Self::IdentityClientRejected,
        Self::MoreAuthentication,
        Self::EnterpriseGrantRejected,
        Self::AccountGrantRejected,
        Self::ResourceGrantRejected,
        Self::IssuerMismatch,
        Self::MetadataUnusable,
        Self::AssertionUnusable,
        Self::CredentialsChanged,
        Self::Withdrawn,
        Self::PolicyRefused,
        Self::BearerRefused,
        Self::OutsideEndpoint,
        Self::Misconfigured,
        Self::StoreUnusable,
        Self::Unreachable,
        Self::Timeout,
    ];

    /// As in output and documentation.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EnterpriseSignIn => "enterprise sign-in needed",
            Self::AccountSignIn => "account sign-in needed",
            Self::WhichPerson => "person not clear",
            Self::IdentityClientRejected => "identity client rejected",
            Self::MoreAuthentication => "more authentication wanted",
            Self::EnterpriseGrantRejected => "enterprise grant rejected",
            Self::AccountGrantRejected => "account grant rejected",
            Self::ResourceGrantRejected => "assertion rejected",
            Self::IssuerMismatch => "issuer mismatch",
            Self::MetadataUnusable => "metadata unusable",
            Self::AssertionUnusable => "assertion unusable",
            Self::CredentialsChanged => "credentials changed",
            Self::Withdrawn => "authorization withdrawn",
            Self::PolicyRefused => "policy refused",
            Self::BearerRefused => "token refused",
            Self::OutsideEndpoint => "outside the endpoint",
            Self::Misconfigured => "configuration",
            Self::StoreUnusable => "store unusable",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
        }
    }

    /// Why it happens, as a sentence.
    #[must_use]
    pub fn cause(self) -> &'static str {
        match self {
            Self::EnterpriseSignIn => {
                "Nobody is signed in to the company's identity provider, or the sign-in has expired. Nothing was sent."
            }
            Self::AccountSignIn => {
                "The account was signed out, or its sign-in has expired. Nothing was sent."
            }
            Self::WhichPerson => {
                "Several people are signed in, or none of that name. Nothing was sent."
            }
            Self::IdentityClientRejected => {
                "The identity provider does not accept the configured client (`invalid_client`)."
            }
            Self::MoreAuthentication => {
                "The identity provider wants a fresher or stronger sign-in (`insufficient_user_authentication`)."
            }
            Self::EnterpriseGrantRejected => {
                "The identity provider no longer accepts the enterprise sign-in (`invalid_grant`)."
            }
            Self::AccountGrantRejected => {
                "The identity provider no longer accepts the account's sign-in (`invalid_grant`)."
            }
            Self::ResourceGrantRejected => {
                "The server's authorization server refused two assertions in a row (`invalid_grant`): it does not trust the identity provider, knows another client, or its clock differs."
            }
            Self::IssuerMismatch => {
                "Somebody is called by another issuer than the configured one. Issuers are compared to the letter, a slash at the end included."
            }
            Self::MetadataUnusable => {
                "What the server, its authorization server or the identity provider publishes or answers cannot be used, or does not offer this way of signing in."
            }
            Self::AssertionUnusable => {
                "The identity provider's assertion or ID token is for something else than what was asked for. It was not sent on."
            }
            Self::CredentialsChanged => "Somebody signed in or out since the connection was made.",
            Self::Withdrawn => {
                "The identity was signed out, or the host closed the connection: requests under way were cancelled."
            }
            Self::PolicyRefused => {
                "The company's rules do not allow it (`access_denied`, `invalid_target`, `invalid_scope`, `unauthorized_client`)."
            }
            Self::BearerRefused => {
                "The server answered 401 to a token that its own authorization server issued. The request was not repeated."
            }
            Self::OutsideEndpoint => {
                "The server redirected, or a request was about to go to another URL than the configured one."
            }
            Self::Misconfigured => "A setting is missing, or contradicts another one.",
            Self::StoreUnusable => "The stored credentials cannot be read or written.",
            Self::Unreachable => "A party cannot be reached, or says that it cannot answer now.",
            Self::Timeout => {
                "A party did not answer within 30 seconds, or another process kept the identity for too long."
            }
        }
    }

    /// What to do, as a sentence.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::EnterpriseSignIn | Self::EnterpriseGrantRejected => {
                "run `plenipo enterprise login`"
            }
            Self::AccountSignIn | Self::AccountGrantRejected => "run `plenipo account login`",
            Self::WhichPerson => "say who with `--as`, as `plenipo enterprise status` shows them",
            Self::IdentityClientRejected => {
                "ask the administrator: the client of `mcp_enterprise_managed_auth.idp` has to be registered at the identity provider"
            }
            Self::MoreAuthentication => "sign in again, and confirm who you are once more",
            Self::ResourceGrantRejected => {
                "ask the administrator whether the server's authorization server trusts the identity provider, and whether the clocks agree"
            }
            Self::IssuerMismatch => "spell both issuers in the same way, to the letter",
            Self::MetadataUnusable => {
                "ask the administrator of the named party; `plenipo doctor` shows what is missing"
            }
            Self::AssertionUnusable => {
                "ask the administrator: the server's entry at the identity provider is wrong, or the clocks differ"
            }
            Self::CredentialsChanged => "connect again",
            Self::Withdrawn => "sign in and connect again",
            Self::PolicyRefused => "ask the administrator for access",
            Self::BearerRefused => "connect again; if it stays, ask the server's operator",
            Self::OutsideEndpoint => "configure the URL that the server really has",
            Self::Misconfigured => "correct the configuration; `plenipo config check` shows where",
            Self::StoreUnusable => "see `plenipo doctor`",
            Self::Unreachable | Self::Timeout => "try again later",
        }
    }

    pub(crate) fn is_sign_in(self) -> bool {
        matches!(
            self,
            Self::EnterpriseSignIn
                | Self::AccountSignIn
                | Self::MoreAuthentication
                | Self::EnterpriseGrantRejected
                | Self::AccountGrantRejected
        )
    }
}

impl EnterpriseError {
    /// The class of this error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Unselected(unselected) => of_selection(unselected),
            Self::Refused { party, whose, code } | Self::Clock { party, whose, code, .. } => {
                of_refusal(*party, *whose, *code)
            }
            Self::Issuer { .. } => ErrorClass::IssuerMismatch,
            Self::Metadata { .. } | Self::Answer { .. } => ErrorClass::MetadataUnusable,
            Self::Assertion { .. } => ErrorClass::AssertionUnusable,
            Self::Policy(_) => ErrorClass::PolicyRefused,
            Self::Changed => ErrorClass::CredentialsChanged,
            Self::Withdrawn => ErrorClass::Withdrawn,
            Self::BearerRefused => ErrorClass::BearerRefused,
            Self::Outside => ErrorClass::OutsideEndpoint,
            Self::Unreachable { .. } => ErrorClass::Unreachable,
            Self::TimedOut { .. } => ErrorClass::Timeout,
            Self::Store(error) => match error.fault {
                plenipo_credentials::StoreFault::Busy { .. } => ErrorClass::Timeout,
                _ => ErrorClass::StoreUnusable,
            },
            Self::Config(_) => ErrorClass::Misconfigured,
        }
    }
}

fn of_selection(unselected: &Unselected) -> ErrorClass {
    match unselected {
        Unselected::Unusable { source, condition: Condition::Rejected } => rejected(*source),
        Unselected::Nobody { source } | Unselected::Unusable { source, .. } => match source {
            Source::Enterprise => ErrorClass::EnterpriseSignIn,
            Source::Account => ErrorClass::AccountSignIn,
        },
        Unselected::Slash { .. } => ErrorClass::IssuerMismatch,
        Unselected::Several { .. } | Unselected::NotThere { .. } => ErrorClass::WhichPerson,
    }
}

fn of_refusal(party: Party, source: Source, code: KnownCode) -> ErrorClass {
    let at_identity_provider = party == Party::IdentityProvider;
    match code {
        KnownCode::InvalidClient if at_identity_provider => ErrorClass::IdentityClientRejected,
        KnownCode::InvalidClient => ErrorClass::Misconfigured,
        KnownCode::InsufficientUserAuthentication if at_identity_provider => {
            ErrorClass::MoreAuthentication
        }
        KnownCode::InvalidGrant if at_identity_provider => rejected(source),
        KnownCode::AccessDenied
        | KnownCode::InvalidTarget
        | KnownCode::InvalidScope
        | KnownCode::UnauthorizedClient => ErrorClass::PolicyRefused,
        KnownCode::TemporarilyUnavailable | KnownCode::ServerError => ErrorClass::Unreachable,
        KnownCode::UnsupportedGrantType => ErrorClass::MetadataUnusable,
        _ if at_identity_provider => rejected(source),
        _ => ErrorClass::ResourceGrantRejected,
    }
}

fn rejected(source: Source) -> ErrorClass {
    match source {
        Source::Enterprise => ErrorClass::EnterpriseGrantRejected,
        Source::Account => ErrorClass::AccountGrantRejected,
    }
}
