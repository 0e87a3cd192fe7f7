//! How far a peer's clock is off, by the `Date` header of what it answers (RFC 9110 §6.6.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, header};
use plenipo_oauth::{Answer, HttpClient, OutgoingRequest};

/// Nothing was said yet.
const UNKNOWN: i64 = i64::MIN;

/// Passes requests on, and keeps how far the clock of the last one who answered is ahead.
pub(crate) struct Watched<'a> {
    client: &'a dyn HttpClient,
    ahead: AtomicI64,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(client: &'a Arc<dyn HttpClient>) -> Self {
        Self { client: client.as_ref(), ahead: AtomicI64::new(UNKNOWN) }
    }

    /// In seconds; negative when it is behind.
    pub(crate) fn seconds_ahead(&self) -> Option<i64> {
        Some(self.ahead.load(Ordering::Relaxed)).filter(|ahead| *ahead != UNKNOWN)
    }
}

impl HttpClient for Watched<'_> {
    fn send(&self, request: OutgoingRequest) -> Answer<'_> {
        Box::pin(async move {
            let response = self.client.send(request).await?;
            if let Some(theirs) = date(response.headers()) {
                let ahead = seconds(theirs) - seconds(self.client.now());
                self.ahead.store(ahead, Ordering::Relaxed);
            }
            Ok(response)
        })
    }

    fn now(&self) -> SystemTime {
        self.client.now()
    }
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX / 2)
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`; the two older forms are nobody's any more.
fn date(headers: &HeaderMap) -> Option<SystemTime> {
    let text = headers.get(header::DATE)?.to_str().ok()?;
    let (_, rest) = text.split_once(", ")?;
    let words: Vec<_> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = *words.as_slice() else { return None };
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = u64::try_from(months.iter().position(|name| *name == month)?).ok()? + 1;
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let clock: Vec<u64> = time.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [hours, minutes, seconds] = *clock.as_slice() else { return None };
    let sound = (1970..10_000).contains(&year) && (1..=31).contains(&day);
    if !sound || hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let total = days(year, month, day) * 86_400 + hours * 3600 + minutes * 60 + seconds;
    UNIX_EPOCH.checked_add(Duration::from_secs(total))
}

/// Since 1970, in the Gregorian calendar: years that begin in March have their leap day at the end.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    // 719 468 days from 1 March of year 0 to 1970.
    (year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1) - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(header::DATE, text.parse().unwrap());
        date(&headers).map(|time| time.duration_since(UNIX_EPOCH).unwrap().as_secs())
    }

    #[test]
    fn dates_are_read_and_nonsense_is_not() {
        assert_eq!(read("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(read("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        assert_eq!(read("Fri, 15 Jan 2027 08:00:00 GMT"), Some(1_800_000_000));
        for bad in [
            "",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 0000 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "x, 99999999999999999999 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
