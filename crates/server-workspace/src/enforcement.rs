//! What a result says about the enforcement of the policy.

use std::io;

use plenipo_wire::{Fragment, RawValue, object};

use crate::output::Captured;

/// The longest enforcement report taken: 1 MiB.
pub(crate) const REPORT_BYTES: usize = 1 << 20;

/// The `enforcement` member of a structured result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Enforcement {
    /// The operator's opt-out was used: the command ran unsandboxed.
    None,
    /// Sandboxed by a launcher that said nothing; why, if it should have.
    Unreported(Option<&'static str>),
    /// The launcher's own words.
    Reported(Fragment),
}

/// Why the launcher ran nothing.
#[derive(Debug, PartialEq)]
pub(crate) struct Refused {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Enforcement {
    /// Reads what a launcher wrote to its report descriptor.
    pub(crate) fn from_report(report: &Captured) -> Self {
        let Some(bytes) = report.complete() else {
            return Self::Unreported(Some("the launcher's report is too long"));
        };
        let text = String::from_utf8_lossy(bytes);
        if text.trim().is_empty() {
            return Self::Unreported(Some("the launcher wrote no report"));
        }
        match Fragment::parse_object(text.trim()) {
            Ok(report) => Self::Reported(report),
            Err(_) => Self::Unreported(Some("the launcher's report is not a JSON object")),
        }
    }

    /// The refusal, when the report is one (`"status": "refused"`).
    pub(crate) fn refused(&self) -> Option<Refused> {
        let Self::Reported(report) = self else { return None };
        let [status, reason] = object::select(report.as_raw(), ["status", "reason"])?;
        if object::text(status?)? != "refused" {
            return None;
        }
        let members = reason.and_then(|raw| object::select(raw, ["message", "hint", "errno"]));
        let [message, hint, errno] = members.unwrap_or([None, None, None]);
        let mut message = words(message).unwrap_or_else(|| "it gave no reason".to_owned());
        let errno = errno.and_then(object::integer).and_then(|number| i32::try_from(number).ok());
        if let Some(errno) = errno {
            message = format!("{message}: {}", io::Error::from_raw_os_error(errno));
        }
        Some(Refused { message, hint: words(hint) })
    }

    /// As JSON.
    pub(crate) fn to_fragment(&self) -> Fragment {
        match self {
            Self::None => Fragment::string("none"),
            Self::Unreported(reason) => Fragment::object(|object| {
                object.boolean("reported", false);
                if let Some(reason) = reason {
                    object.string("reason", reason);
                }
            }),
            Self::Reported(report) => report.clone(),
        }
    }
}

fn words(raw: Option<&RawValue>) -> Option<String> {
    let text = raw.and_then(object::text)?;
    (!text.trim().is_empty()).then(|| crate::text::one_line(text.trim(), 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(text: &str) -> Enforcement {
        Enforcement::Reported(Fragment::parse_object(text).unwrap())
    }

    #[test]
    fn a_refusal_is_told_with_its_reason_and_hint() {
        let refused = reported(
            r#"{"status":"refused","reason":{"message":"mount /proc","hint":"run it on the host","errno":13}}"#,
        );
        let refused = refused.refused().unwrap();
        assert_eq!(refused.message, "mount /proc: Permission denied (os error 13)");
        assert_eq!(refused.hint.as_deref(), Some("run it on the host"));
        let bare = reported(r#"{"status":"refused"}"#).refused().unwrap();
        assert_eq!((bare.message.as_str(), bare.hint), ("it gave no reason", None));
    }

    #[test]
    fn any_other_report_is_no_refusal() {
        for text in [r#"{"status":"enforced","reason":{"message":"x"}}"#, "{}", r#"{"status":1}"#] {
            assert_eq!(reported(text).refused(), None, "{text}");
        }
        assert_eq!(Enforcement::None.refused(), None);
    }

    #[test]
    fn each_has_its_own_json() {
        let shown = |enforcement: Enforcement| enforcement.to_fragment().to_string();
        assert_eq!(shown(Enforcement::None), r#""none""#);
        assert_eq!(shown(Enforcement::Unreported(None)), r#"{"reported":false}"#);
        assert_eq!(shown(reported("{\"a\":\n1.10}")), r#"{"a": 1.10}"#);
    }
}
