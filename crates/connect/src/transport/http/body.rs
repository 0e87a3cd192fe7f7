//! Reading bodies, bounded.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::timeout;

use super::received::Received;
use super::secrets::Secrets;
use crate::error::HttpFault;
use crate::text::shown;

/// So much of it is looked at for a preview.
const PREVIEW: usize = 8 * 1024;
/// What may be left in a body whose connection is kept, and for how long that is waited for.
const REST: usize = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(1);

/// The whole body.
pub(super) async fn read(mut body: Received, limit: usize) -> Result<Bytes, HttpFault> {
    let expected = usize::try_from(body.expected()).unwrap_or(usize::MAX);
    if expected > limit {
        return Err(HttpFault::TooLong { limit });
    }
    let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
    // One chunk is the rule: no copy.
    if body.is_over() && first.len() <= limit {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(expected.max(first.len()));
    let mut chunk = Some(first);
    while let Some(bytes) = chunk {
        if whole.len().saturating_add(bytes.len()) > limit {
            return Err(HttpFault::TooLong { limit });
        }
        whole.extend_from_slice(&bytes);
        chunk = next(&mut body).await?;
    }
    Ok(whole.freeze())
}

/// The beginning of an error's body.
pub(super) struct ErrorBody {
    pub(super) bytes: Vec<u8>,
    /// There was more than the limit.
    is_cut: bool,
    limit: usize,
}

/// At most `limit` bytes of an error's body; what breaks off is an error's body, too.
pub(super) async fn read_error(mut body: Received, limit: usize) -> ErrorBody {
    let mut error = ErrorBody { bytes: Vec::new(), is_cut: false, limit };
    while let Ok(Some(bytes)) = next(&mut body).await {
        let room = limit.saturating_sub(error.bytes.len());
        error.bytes.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        if bytes.len() > room {
            error.is_cut = true;
            break;
        }
    }
    error
}

impl ErrorBody {
    /// Its beginning, fit to show. Of JSON that was cut it is said where, since the rest could have told more.
    pub(super) fn preview(&self, secrets: &Secrets) -> String {
        let preview = preview(&self.bytes, secrets);
        match self.is_cut && self.bytes.trim_ascii_start().first() == Some(&b'{') {
            true => format!("{preview} (longer than {} bytes, `max_error_bytes`)", self.limit),
            false => preview,
        }
    }
}

/// The next bytes; `None` at the end.
pub(super) async fn next(body: &mut Received) -> Result<Option<Bytes>, HttpFault> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(fault)) => return Err(fault),
            // Trailers are of no interest.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Lets a body that should be at its end come to it, so that its connection can be used again.
pub(super) fn let_end(mut body: Received) {
    if body.is_over() {
        return;
    }
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        let rest = async {
            let mut left = REST;
            while let Ok(Some(bytes)) = next(&mut body).await {
                left = left.saturating_sub(bytes.len());
                if left == 0 {
                    return;
                }
            }
        };
        // Else the server keeps the stream open, and it is closed here.
        timeout(PATIENCE, rest).await.ok();
    });
}

/// The beginning of a body, fit to show.
pub(super) fn preview(body: &[u8], secrets: &Secrets) -> String {
    let start = body.get(..body.len().min(PREVIEW)).unwrap_or_default();
    let text = String::from_utf8_lossy(start);
    let words: Vec<_> = text.split_whitespace().collect();
    shown(&secrets.scrub(&words.join(" ")))
}
