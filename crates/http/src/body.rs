//! Reading bodies, bounded.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use plenipo_redact::text::shown;
use tokio::time::timeout;

use crate::error::ClientFault;
use crate::received::Received;
use crate::secrets::Secrets;

/// So much of it is looked at for a preview.
const PREVIEW: usize = 8 * 1024;
/// What may be left in a body whose connection is kept, and for how long that is waited for.
const REST: usize = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(1);

/// The beginning of an error's body.
#[derive(Debug)]
pub struct ErrorBody {
    bytes: Vec<u8>,
    /// There was more than the limit.
    is_cut: bool,
    limit: usize,
}

impl Received {
    /// The whole body.
    ///
    /// # Errors
    /// [`ClientFault::TooLong`] when it has more than `limit` bytes, [`ClientFault::Broken`] when it ends too early.
    pub async fn read(mut self, limit: usize) -> Result<Bytes, ClientFault> {
        let expected = usize::try_from(self.expected()).unwrap_or(usize::MAX);
        if expected > limit {
            return Err(ClientFault::TooLong { limit });
        }
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        // One chunk is the rule: no copy.
        if self.is_over() && first.len() <= limit {
            return Ok(first);
        }
        let mut whole = BytesMut::with_capacity(expected.max(first.len()));
        let mut chunk = Some(first);
        while let Some(bytes) = chunk {
            if whole.len().saturating_add(bytes.len()) > limit {
                return Err(ClientFault::TooLong { limit });
            }
            whole.extend_from_slice(&bytes);
            chunk = self.next().await?;
        }
        Ok(whole.freeze())
    }

    /// At most `limit` bytes of an error's body; what breaks off is an error's body, too.
    pub async fn read_error(mut self, limit: usize) -> ErrorBody {
        let mut error = ErrorBody { bytes: Vec::new(), is_cut: false, limit };
        while let Ok(Some(bytes)) = self.next().await {
            let room = limit.saturating_sub(error.bytes.len());
            error.bytes.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
            if bytes.len() > room {
                error.is_cut = true;
                break;
            }
        }
        error
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// [`ClientFault::Broken`] when the connection ends before the body does.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientFault> {
        loop {
            match self.frame().await {
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

    /// Lets a body that should be at its end come to it, so that its connection can be used again. What is longer than
    /// 64 KiB or takes longer than a second is dropped, and the connection with it.
    pub fn let_end(mut self) {
        if self.is_over() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let rest = async {
                let mut left = REST;
                while let Ok(Some(bytes)) = self.next().await {
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
}

impl ErrorBody {
    /// As far as it was read.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its beginning, fit to show. Of JSON that was cut it is said where, since the rest could have told more.
    #[must_use]
    pub fn preview(&self, secrets: &Secrets) -> String {
        let preview = preview(&self.bytes, secrets);
        match self.is_cut && self.bytes.trim_ascii_start().first() == Some(&b'{') {
            true => format!("{preview} (longer than {} bytes, `max_error_bytes`)", self.limit),
            false => preview,
        }
    }
}

/// The beginning of a body, fit to show: of 8 KiB at most 200 characters, without `secrets`.
#[must_use]
pub fn preview(body: &[u8], secrets: &Secrets) -> String {
    let start = body.get(..body.len().min(PREVIEW)).unwrap_or_default();
    let text = String::from_utf8_lossy(start);
    let words: Vec<_> = text.split_whitespace().collect();
    // It ends where a limit, the server or we cut it.
    shown(&secrets.scrub_cut(&words.join(" ")))
}
