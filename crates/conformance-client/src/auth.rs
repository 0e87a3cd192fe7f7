//! Signing in, for the scenarios below `auth/`.

use plenipo_connect::HttpEndpoint;

use crate::Outcome;
use crate::situation::Situation;

/// The endpoint with whatever signing in adds to it.
pub(crate) fn endpoint(situation: &Situation) -> Outcome<HttpEndpoint> {
    if situation.scenario.starts_with("auth/") {
        return Err("sign in: the client does not sign in yet".into());
    }
    Ok(HttpEndpoint::new(&situation.url)?)
}
