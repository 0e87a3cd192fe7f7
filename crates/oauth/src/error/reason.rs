//! Small reasons that other errors hold.

use super::ErrorKind;

/// Why a text is no URL that OAuth may use. Reads after the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlFault {
    /// Relative, or nothing like a URL.
    #[error("is not an absolute URL with a host")]
    NotAbsolute,
    /// Another scheme than `http` and `https`.
    #[error("is not an https URL")]
    Scheme,
    /// `http` to another machine.
    #[error("is not encrypted: only a loopback host may have http")]
    Plain,
    /// A user name or password.
    #[error("holds a user name or password")]
    UserInformation,
    /// `#…`
    #[error("has a fragment")]
    Fragment,
    /// `?…` where there must be none.
    #[error("has a query, which an issuer must not have")]
    Query,
    /// An empty host.
    #[error("has no host")]
    Host,
    /// Spaces, control characters, backslashes, anything that is not ASCII.
    #[error("has characters that no URL may have")]
    Characters,
    /// Over the limit.
    #[error("is over {limit} bytes long")]
    TooLong {
        /// In bytes.
        limit: usize,
    },
}

/// Why a text is no list of scopes. Reads after "the scopes of … ".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeFault {
    /// A character that RFC 6749 §3.3 forbids.
    #[error("hold a character that no scope may have")]
    Character,
    /// Over 256 scopes or 16 KiB.
    #[error("are too many")]
    TooLong,
}

/// What has to be there and is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Missing {
    /// No protected resource metadata, and none of the older ways either.
    #[error("the server publishes nowhere who grants access to it")]
    AuthorizationServer,
    /// No metadata at any of an issuer's well-known addresses.
    #[error("issuer `{issuer}` publishes no metadata")]
    Metadata {
        /// The issuer.
        issuer: String,
    },
    /// An endpoint that the flow needs.
    #[error("issuer `{issuer}` has no `{member}`")]
    Endpoint {
        /// The issuer.
        issuer: String,
        /// The member of its metadata.
        member: &'static str,
    },
    /// No client: nothing configured, no metadata document, no registration.
    #[error("the authorization server knows no client of ours and offers no way to register one")]
    Client,
    /// The issuer does not offer a grant.
    #[error("issuer `{issuer}` does not offer the grant `{grant}`")]
    Grant {
        /// The issuer.
        issuer: String,
        /// The grant type.
        grant: String,
    },
}

impl Missing {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Client => ErrorKind::Config,
            _ => ErrorKind::Unsupported,
        }
    }
}

/// Why an authorization response cannot be accepted. Reads after "the authorization response ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallbackFault {
    /// Not a URL or query of the kind that was waited for.
    #[error("is not the address that the browser was sent back to")]
    NotCallback,
    /// The address of the sign-in page.
    #[error(
        "is the address of the sign-in page, not the one that the browser is sent to from there"
    )]
    Page,
    /// An address elsewhere.
    #[error("does not begin with `{expected}?`")]
    Elsewhere {
        /// Where the browser is sent back to.
        expected: String,
    },
    /// A parameter twice (RFC 6749 §3.1).
    #[error("has the parameter `{name}` twice")]
    Duplicate {
        /// The parameter.
        name: &'static str,
    },
    /// `state` is missing or another one.
    #[error("belongs to another sign-in: its `state` is not the one that was sent")]
    State,
    /// `iss` is another issuer (RFC 9207 §2.4).
    #[error("is from another issuer than `{expected}`")]
    Issuer {
        /// Who was asked.
        expected: String,
    },
    /// `iss` was promised and is not there (RFC 9207 §2.4).
    #[error("does not say that it is from `{expected}`, though the metadata promises that it will")]
    IssuerMissing {
        /// Who was asked.
        expected: String,
    },
    /// Neither a code nor an error.
    #[error("has neither a code nor an error")]
    Empty,
    /// An error response (RFC 6749 §4.1.2.1).
    #[error("is the error `{code}`{}", .description.as_deref().map(|text| format!(": \"{text}\"")).unwrap_or_default())]
    Refused {
        /// `error`, fit to show.
        code: String,
        /// `error_description`, fit to show.
        description: Option<String>,
    },
}

impl CallbackFault {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { code, .. } => match code.as_str() {
                "temporarily_unavailable" | "server_error" => ErrorKind::Transient,
                _ => ErrorKind::Denied,
            },
            _ => ErrorKind::PeerMisbehaved,
        }
    }
}

/// Why a key cannot be used. Reads after "the signing key ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFault {
    /// Not a PEM file with a private key.
    #[error("is not a private key in PEM form (PKCS #8, or PKCS #1 for RSA)")]
    NotPem,
    /// Of another kind, or broken.
    #[error("cannot sign with `{algorithm}`")]
    Rejected {
        /// As in JWA (RFC 7518).
        algorithm: &'static str,
    },
    /// An algorithm that is not supported.
    #[error("is for an algorithm other than `ES256`, `RS256` and `EdDSA`")]
    Algorithm,
    /// The peer accepts others only.
    #[error("signs with `{algorithm}`, but the peer accepts {accepted} only")]
    NotAccepted {
        /// As in JWA.
        algorithm: &'static str,
        /// What is accepted, fit to show.
        accepted: String,
    },
    /// The system gives no randomness, or signing failed.
    #[error("could not be used: the system has no randomness")]
    Random,
}

/// Why a JWT cannot be accepted. Reads after "the ID token " or "the identity assertion ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssertionFault {
    /// Not three parts of base64url with JSON objects in them.
    #[error("is not a signed JWT")]
    NotJwt,
    /// Five parts: encrypted for somebody else.
    #[error("is encrypted, so that its claims cannot be checked")]
    Encrypted,
    /// `alg` is `none` or another one than accepted.
    #[error("is not signed with an accepted algorithm")]
    Algorithm,
    /// No key of its issuer made the signature.
    #[error("is not signed with a key of its issuer")]
    Signature,
    /// Another `typ`.
    #[error("has another type than `{expected}`")]
    HeaderType {
        /// What it should be.
        expected: &'static str,
    },
    /// A claim that has to be there.
    #[error("lacks the claim `{name}`")]
    Missing {
        /// The claim.
        name: &'static str,
    },
    /// A claim that says something else than it should.
    #[error("has another `{name}` than expected")]
    Claim {
        /// The claim.
        name: &'static str,
    },
    /// It was to be encrypted, and is not.
    #[error("is not encrypted, as the configuration says it is")]
    NotEncrypted,
    /// `exp` has passed.
    #[error("has expired")]
    Expired,
    /// `iat` or `nbf` is in the future.
    #[error("is not valid yet: the clocks differ")]
    NotYet,
}
