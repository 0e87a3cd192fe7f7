//! Identity assertions (ID-JAG, `draft-ietf-oauth-identity-assertion-authz-grant`): what a client
//! checks before it redeems one. The resource's authorization server verifies it; this is a second
//! look, which finds a wrong mapping at the identity provider before anything is sent.

use std::time::SystemTime;

use plenipo_redact::Secret;

use crate::error::{AssertionFault, OAuthError};
use crate::id_token::expiry;
use crate::issuer::{Issuer, ResourceId};
use crate::jose::{Decoded, PublicKeys, decode};
use crate::scope::Scopes;
use crate::token::{TokenResponse, TokenType, token_type};

/// Clocks may differ by so much, in seconds.
const SKEW: u64 = 60;
const TYPE: &str = "oauth-id-jag+jwt";

/// What an assertion has to say.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ExpectedAssertion<'a> {
    /// `iss`: the identity provider.
    pub issuer: &'a Issuer,
    /// `aud`: the resource's authorization server, and nobody else.
    pub audience: &'a Issuer,
    /// `client_id`: the client as that one knows it.
    pub client_id: &'a str,
    /// `resource`, when it is there.
    pub resource: &'a ResourceId,
    /// What was asked for; the assertion may not hold more.
    pub scopes: Option<&'a Scopes>,
    /// `tenant`, at a provider of several companies.
    pub tenant: Option<&'a str>,
    /// The thumbprint of the key that it has to be bound to (`cnf.jkt`).
    pub thumbprint: Option<&'a str>,
    /// `alg`; `None`: any that is not symmetric.
    pub algorithms: Option<&'a [String]>,
    /// Keys of the identity provider, for a look at the signature.
    pub keys: Option<&'a PublicKeys>,
    /// It is encrypted for the resource's authorization server: its claims cannot be looked at.
    pub encrypted: bool,
}

impl<'a> ExpectedAssertion<'a> {
    /// Without scopes.
    #[must_use]
    pub fn new(
        issuer: &'a Issuer,
        audience: &'a Issuer,
        client_id: &'a str,
        resource: &'a ResourceId,
    ) -> Self {
        Self {
            issuer,
            audience,
            client_id,
            resource,
            scopes: None,
            tenant: None,
            thumbprint: None,
            algorithms: None,
            keys: None,
            encrypted: false,
        }
    }
}

/// An assertion that was checked: to be redeemed once, soon.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IdentityAssertion {
    /// For [`Grant::JwtBearer`](crate::Grant::JwtBearer).
    pub assertion: Secret<String>,
    /// `scope`: what may come of it.
    pub scopes: Option<Scopes>,
    /// When it ends; `None` for one that is encrypted.
    pub expires_at: Option<SystemTime>,
}

impl IdentityAssertion {
    /// Checks the answer of a token exchange, claim by claim.
    ///
    /// # Errors
    /// [`OAuthError::Assertion`], with the claim.
    pub fn of(
        response: TokenResponse,
        expected: ExpectedAssertion<'_>,
        now: SystemTime,
    ) -> Result<Self, OAuthError> {
        let fault = |fault| OAuthError::Assertion { what: "identity assertion", fault };
        if response.issued_token_type.as_deref() != Some(token_type::ID_JAG) {
            return Err(fault(AssertionFault::Claim { name: "issued_token_type" }));
        }
        if response.token_type != TokenType::NotApplicable {
            return Err(fault(AssertionFault::Claim { name: "token_type" }));
        }
        let token = response.access_token.expose();
        if expected.encrypted {
            return match decode(token) {
                // What the answer says beside it is all there is to see.
                Err(AssertionFault::Encrypted) => Self::sealed(response, expected).map_err(fault),
                Err(other) => Err(fault(other)),
                Ok(_) => Err(fault(AssertionFault::NotEncrypted)),
            };
        }
        let decoded = match expected.keys {
            Some(keys) => keys.verify(token),
            None => decode(token),
        };
        let decoded = decoded.map_err(fault)?;
        let scopes = check(&decoded, expected, now).map_err(fault)?;
        let expires_at = expiry(&decoded).map_err(fault)?;
        // What the answer says beside the assertion has to agree with it.
        if let (Some(beside), Some(inside)) = (&response.scopes, &scopes)
            && beside != inside
        {
            return Err(fault(AssertionFault::Claim { name: "scope" }));
        }
        Ok(Self {
            assertion: response.access_token,
            scopes: scopes.or(response.scopes),
            expires_at: Some(expires_at),
        })
    }

    fn sealed(
        response: TokenResponse,
        expected: ExpectedAssertion<'_>,
    ) -> Result<Self, AssertionFault> {
        match (&response.scopes, expected.scopes) {
            (Some(granted), Some(asked)) if !asked.covers(granted) => {
                Err(AssertionFault::Claim { name: "scope" })
            }
            _ => Ok(Self {
                assertion: response.access_token,
                scopes: response.scopes,
                expires_at: None,
            }),
        }
    }
}

fn check(
    decoded: &Decoded,
    expected: ExpectedAssertion<'_>,
    now: SystemTime,
) -> Result<Option<Scopes>, AssertionFault> {
    let other = |name| Err(AssertionFault::Claim { name });
    let kind = decoded.header.get("typ").and_then(serde_json::Value::as_str).unwrap_or_default();
    if !kind.eq_ignore_ascii_case(TYPE) {
        return Err(AssertionFault::HeaderType { expected: TYPE });
    }
    if decoded.required("iss")? != expected.issuer.as_str() {
        return other("iss");
    }
    if decoded.texts("aud").as_deref() != Some(&[expected.audience.as_str()]) {
        return other("aud");
    }
    if decoded.required("client_id")? != expected.client_id {
        return other("client_id");
    }
    if decoded.claims.contains_key("resource")
        && decoded.texts("resource").as_deref() != Some(&[expected.resource.as_str()])
    {
        return other("resource");
    }
    let algorithm = decoded.header.get("alg").and_then(serde_json::Value::as_str);
    if let (Some(accepted), algorithm) = (expected.algorithms, algorithm.unwrap_or_default())
        && !accepted.iter().any(|accepted| accepted == algorithm)
    {
        return Err(AssertionFault::Algorithm);
    }
    if let Some(tenant) = expected.tenant
        && decoded.required("tenant")? != tenant
    {
        return other("tenant");
    }
    let bound = decoded.claims.get("cnf").and_then(|cnf| cnf.get("jkt"));
    let bound = bound.and_then(serde_json::Value::as_str);
    // A key that is not ours, or none although a proof was sent.
    if bound != expected.thumbprint {
        return other("cnf.jkt");
    }
    decoded.required("sub")?;
    decoded.required("jti")?;
    decoded.check_time(now, SKEW)?;
    if decoded.claims.get("iat").and_then(serde_json::Value::as_f64).is_none() {
        return Err(AssertionFault::Missing { name: "iat" });
    }
    let scopes = match decoded.claims.get("scope") {
        None => None,
        Some(serde_json::Value::String(text)) => {
            Some(Scopes::parse(text).map_err(|_| AssertionFault::Claim { name: "scope" })?)
        }
        Some(_) => return other("scope"),
    };
    match (&scopes, expected.scopes) {
        (Some(granted), Some(asked)) if !asked.covers(granted) => other("scope"),
        _ => Ok(scopes),
    }
}
