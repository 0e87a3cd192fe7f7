//! A sign-in on another device.

use std::time::SystemTime;

use plenipo_connect::oauth::Wish;
use plenipo_oauth::{ErrorKind, Polled, Prepared, SignedIn};

use super::{Target, from_now};
use crate::failure::Failure;
use crate::terminal;

/// For the registration only: nothing is sent back here.
const REDIRECT_URI: &str = "http://127.0.0.1/callback";

pub(super) async fn sign_in(target: &Target, wish: Wish<'_>) -> Result<SignedIn, Failure> {
    let failed = |error| target.oauth_failed(error);
    let options = wish.options(REDIRECT_URI).map_err(failed)?;
    let http = target.network.http();
    let prepared = Prepared::for_device(&http, &options).await.map_err(failed)?;
    let mut device = prepared.authorize_device(&http).await.map_err(failed)?;
    terminal::tell(&format!("enter the code {} on this page:", device.user_code.expose()));
    terminal::tell(&device.verification_uri);
    if let Some(complete) = &device.verification_uri_complete {
        terminal::tell(&format!("or open {}", complete.expose()));
    }
    terminal::tell(&format!("the code ends {}", from_now(device.expires_at)));
    loop {
        let left = device.expires_at.duration_since(SystemTime::now()).unwrap_or_default();
        tokio::time::sleep(device.interval.min(left)).await;
        match device.poll(&http, &prepared.endpoint).await {
            Ok(Polled::Done(token)) => return Ok(prepared.signed_in(token)),
            Ok(_) => {}
            // A poll that did not get through; the code's end ends this.
            Err(error) if error.kind() == ErrorKind::Transient => {}
            Err(error) => return Err(failed(error)),
        }
    }
}
