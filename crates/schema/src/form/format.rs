//! Formats of text, as far as they can be told without asking anybody.

/// What a text has to look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextFormat {
    /// `name@host` (RFC 5321 in outline).
    Email,
    /// An absolute URI (RFC 3986).
    Uri,
    /// `2026-07-28` (RFC 3339 `full-date`).
    Date,
    /// `2026-07-28T12:00:00Z` (RFC 3339 `date-time`).
    DateTime,
}

impl TextFormat {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "email" => Self::Email,
            "uri" => Self::Uri,
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            _ => return None,
        })
    }

    /// With an example, for people.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Email => "an e-mail address",
            Self::Uri => "a URI like https://example.com/",
            Self::Date => "a date like 2026-07-28",
            Self::DateTime => "a date and time like 2026-07-28T12:00:00Z",
        }
    }

    pub(super) fn fits(self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
            Self::Date => date(text).is_some_and(str::is_empty),
            Self::DateTime => is_date_time(text),
        }
    }
}

fn is_email(text: &str) -> bool {
    let is_fit = |part: &str| {
        !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    match text.rsplit_once('@') {
        Some((name, host)) => is_fit(name) && is_fit(host) && !host.contains('@'),
        None => false,
    }
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(is_scheme)
        && !rest.is_empty()
        && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Takes `YYYY-MM-DD`; gives the rest.
fn date(text: &str) -> Option<&str> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then_some(rest)
}

fn is_date_time(text: &str) -> bool {
    let time = |text: &'_ str| -> Option<bool> {
        let rest = date(text)?.strip_prefix(['T', 't', ' '])?;
        let (hour, rest) = digits(rest, 2)?;
        let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
        let (second, rest) = digits(rest.strip_prefix(':')?, 2)?;
        let rest = match rest.strip_prefix('.') {
            Some(fraction) => {
                let rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
                (rest.len() < fraction.len()).then_some(rest)?
            }
            None => rest,
        };
        Some(hour < 24 && minute < 60 && second <= 60 && is_offset(rest))
    };
    time(text) == Some(true)
}

fn is_offset(text: &str) -> bool {
    let offset = |text: &'_ str| -> Option<bool> {
        let (hour, rest) = digits(text.strip_prefix(['+', '-'])?, 2)?;
        let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
        Some(hour < 24 && minute < 60 && rest.is_empty())
    };
    text == "Z" || text == "z" || offset(text) == Some(true)
}

/// Takes exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (head, rest) = text.split_at_checked(count)?;
    let number = head.bytes().all(|byte| byte.is_ascii_digit()).then(|| head.parse().ok())??;
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::TextFormat::{Date, DateTime, Email, Uri};

    #[test]
    fn formats_are_checked() {
        for (format, good, bad) in [
            (Email, &["a@b", "a.b+c@example.com"][..], &["", "a", "@b", "a@", "a b@c"][..]),
            (Uri, &["https://x", "urn:a:b", "mailto:a@b"], &["", "x", ":x", "1a:b", "a: b", "a:"]),
            (
                Date,
                &["2024-02-29", "2026-12-31"],
                &[
                    "2023-02-29",
                    "2026-13-01",
                    "2026-1-01",
                    "2026-04-31",
                    "2026-01-01x",
                    "1900-02-29",
                ],
            ),
            (
                DateTime,
                &["2026-07-28T12:00:00Z", "2026-07-28t23:59:60.123+05:30"],
                &[
                    "2026-07-28",
                    "2026-07-28T12:00:00",
                    "2026-07-28T24:00:00Z",
                    "2026-07-28T1:00:00Z",
                    "2026-07-28T12:00:00.Z",
                    "2026-07-28T12:00:00+5:30",
                ],
            ),
        ] {
            for text in good {
                assert!(format.fits(text), "{format:?} {text}");
            }
            for text in bad {
                assert!(!format.fits(text), "{format:?} {text}");
            }
        }
    }
}
