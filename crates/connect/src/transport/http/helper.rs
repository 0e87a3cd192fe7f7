//! A program that makes headers: run when they are first needed, and once more when the server
//! refuses them.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use plenipo_http::Secrets;
use plenipo_process::{Brief, StdioCommand, run_briefly};
use plenipo_wire::{Fragment, object};
use tokio::sync::Mutex;

use super::headers::checked;
use crate::error::HttpFault;

const LIMIT: Duration = Duration::from_secs(10);
const MOST: usize = 64 * 1024;

/// The helper and what it made last.
#[derive(Debug)]
pub(super) struct Helper {
    command: StdioCommand,
    made: Mutex<Option<Made>>,
}

/// Headers of one run.
#[derive(Debug, Clone)]
pub(super) struct Made {
    /// Which run.
    pub(super) number: u64,
    pub(super) headers: HeaderMap,
    pub(super) secrets: Secrets,
}

impl Helper {
    pub(super) fn new(command: StdioCommand) -> Self {
        Self { command, made: Mutex::default() }
    }

    /// What it made last; runs it when it never ran.
    pub(super) async fn headers(&self) -> Result<Made, HttpFault> {
        let mut made = self.made.lock().await;
        match &*made {
            Some(made) => Ok(made.clone()),
            None => Ok(made.insert(self.run(0).await?).clone()),
        }
    }

    /// Runs it again, unless somebody did since run `refused`; `None` when it makes the same.
    pub(super) async fn renew(&self, refused: u64) -> Result<Option<Made>, HttpFault> {
        let mut made = self.made.lock().await;
        if let Some(newer) = made.as_ref().filter(|made| made.number > refused) {
            return Ok(Some(newer.clone()));
        }
        let renewed = self.run(refused.saturating_add(1)).await?;
        let same = made.as_ref().is_some_and(|made| made.headers == renewed.headers);
        *made = Some(renewed.clone());
        Ok((!same).then_some(renewed))
    }

    async fn run(&self, number: u64) -> Result<Made, HttpFault> {
        let fault = |reason: String| HttpFault::HeadersHelper { reason };
        let program = self.command.program().display().to_string();
        let output = match run_briefly(&self.command, LIMIT, MOST).await {
            Ok(Brief::Ended(output)) => output,
            Ok(Brief::TooSlow) => {
                return Err(fault(format!("`{program}` did not end within {} s", LIMIT.as_secs())));
            }
            Ok(Brief::TooMuch) => {
                return Err(fault(format!("`{program}` printed more than {MOST} bytes")));
            }
            Err(error) => return Err(fault(format!("`{program}` could not be run: {error}"))),
        };
        if !output.success {
            return Err(fault(format!("`{program}` failed")));
        }
        let (headers, secrets) = parse(&output.stdout, &program)?;
        Ok(Made { number, headers, secrets })
    }
}

/// A JSON object of strings; a name that comes twice is refused, whatever its case.
fn parse(output: &[u8], program: &str) -> Result<(HeaderMap, Secrets), HttpFault> {
    let fault = |what: &str| HttpFault::HeadersHelper { reason: format!("`{program}` {what}") };
    let text = std::str::from_utf8(output).map_err(|_| fault("printed no UTF-8"))?;
    let parsed = Fragment::parse_object(text);
    let parsed = parsed.map_err(|_| fault("did not print a JSON object"))?;
    let entries = object::entries(parsed.as_raw()).unwrap_or_default();
    let (mut headers, mut secrets) = (HeaderMap::new(), Secrets::default());
    for (name, value) in entries {
        let value =
            object::text(value).ok_or_else(|| fault("printed a value that is no string"))?;
        let (name, mut value): (HeaderName, HeaderValue) = checked(&name, &value)?;
        secrets.add(&name, &value);
        value.set_sensitive(true);
        if headers.insert(name, value).is_some() {
            return Err(fault("printed a header twice"));
        }
    }
    Ok((headers, secrets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_of_strings_is_headers() {
        let (headers, _) =
            parse(b" {\"X-A\": \"1\", \"Authorization\": \"Bearer x\"}\n", "h").unwrap();
        assert_eq!(headers.len(), 2);
        for (output, why) in [
            ("[]", "did not print a JSON object"),
            ("{\"a\":1}", "printed a value that is no string"),
            ("{\"a\":\"1\",\"A\":\"2\"}", "printed a header twice"),
            ("{\"a\":\"1\",\"\\u0061\":\"2\"}", "printed a header twice"),
            ("", "did not print a JSON object"),
        ] {
            let error = parse(output.as_bytes(), "h").unwrap_err().to_string();
            assert_eq!(error, format!("its headers helper `h` {why}"));
        }
        let error = parse(b"{\"Host\":\"evil\"}", "h").unwrap_err().to_string();
        assert_eq!(error, "its header `Host` is not for you to set");
    }
}
