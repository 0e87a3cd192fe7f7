//! The arguments of tool `run`. They come from a model and are never authority.

use std::time::Duration;

use plenipo_wire::{RawValue, object};

use crate::text::name;

/// How long a command may run unless the call says otherwise.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest a call may ask for, in seconds.
const LONGEST_TIMEOUT_SECONDS: f64 = 600.0;
/// Runs `command`, inside the sandbox.
pub(crate) const SHELL: &str = "/bin/sh";

/// What to run, and for how long.
#[derive(Debug, PartialEq)]
pub(crate) struct RunArguments {
    /// The program first; never empty.
    pub(crate) argv: Vec<String>,
    /// Above zero, at most ten minutes.
    pub(crate) timeout: Duration,
}

impl RunArguments {
    /// Reads `params.arguments`. The error is a sentence for whoever wrote them.
    pub(crate) fn parse(raw: Option<&RawValue>) -> Result<Self, String> {
        let entries = match raw {
            None => Vec::new(),
            Some(raw) => {
                object::entries(raw).ok_or_else(|| "`arguments` must be an object".to_owned())?
            }
        };
        let (mut command, mut argv, mut timeout) = (None, None, None);
        for (key, value) in entries {
            let slot = match &*key {
                "command" => &mut command,
                "argv" => &mut argv,
                "timeout_seconds" => &mut timeout,
                other => return Err(unknown(other)),
            };
            if slot.replace(value).is_some() {
                return Err(format!("argument `{key}` is given twice"));
            }
        }
        let argv = match (command, argv) {
            (Some(command), None) => shell(command)?,
            (None, Some(argv)) => words(argv)?,
            (Some(_), Some(_)) => return Err("give `command` or `argv`, not both".to_owned()),
            (None, None) => {
                return Err("nothing to run: give `command`, a line for `sh -c`, or `argv`, an \
                            array of words"
                    .to_owned());
            }
        };
        Ok(Self { argv, timeout: timeout.map_or(Ok(DEFAULT_TIMEOUT), duration)? })
    }
}

fn shell(raw: &RawValue) -> Result<Vec<String>, String> {
    let mut line = string("command", raw)?;
    if line.is_empty() {
        return Err("argument `command` is empty".to_owned());
    }
    if line.starts_with(['-', '+']) {
        // The shell would take it for its own option.
        line.insert(0, ' ');
    }
    Ok(vec![SHELL.to_owned(), "-c".to_owned(), line])
}

fn words(raw: &RawValue) -> Result<Vec<String>, String> {
    let items = object::items(raw).ok_or_else(|| expected("argv", "an array of strings", raw))?;
    if items.is_empty() {
        return Err("argument `argv` is empty".to_owned());
    }
    let word = |(index, raw)| string(&format!("argv[{index}]"), raw);
    items.into_iter().enumerate().map(word).collect()
}

pub(crate) fn duration(raw: &RawValue) -> Result<Duration, String> {
    if object::type_name(raw) != "number" {
        return Err(expected("timeout_seconds", "a number", raw));
    }
    let seconds = object::number(raw).unwrap_or(f64::INFINITY);
    if seconds > 0.0 && seconds <= LONGEST_TIMEOUT_SECONDS {
        // A value that rounds to nothing is still above zero.
        return Ok(Duration::from_secs_f64(seconds).max(Duration::from_nanos(1)));
    }
    let found = name(raw.get());
    Err(format!(
        "argument `timeout_seconds` must be above 0 and at most {LONGEST_TIMEOUT_SECONDS}, \
         found {found}"
    ))
}

pub(crate) fn string(what: &str, raw: &RawValue) -> Result<String, String> {
    if object::type_name(raw) != "string" {
        return Err(expected(what, "a string", raw));
    }
    // Strict, unlike `object::text`: what cannot be run as written is not run at all.
    serde_json::from_str(raw.get())
        .map_err(|_| format!("argument `{what}` holds an escape that is no Unicode character"))
}

pub(crate) fn expected(what: &str, expected: &str, found: &RawValue) -> String {
    let found = object::type_name(found);
    format!("argument `{what}` must be {expected}, found {found}")
}

fn unknown(key: &str) -> String {
    let key = name(key);
    format!("unknown argument `{key}`: `run` takes `command` or `argv`, and `timeout_seconds`")
}

#[cfg(test)]
mod tests {
    use plenipo_wire::Fragment;

    use super::*;

    fn parse(text: &str) -> Result<RunArguments, String> {
        RunArguments::parse(Some(Fragment::parse(text).unwrap().as_raw()))
    }

    #[test]
    fn a_command_is_one_argument_of_the_shell() {
        let arguments = parse(r#"{"command":"echo \"$HOME\" 'a  b'"}"#).unwrap();
        assert_eq!(arguments.argv, ["/bin/sh", "-c", "echo \"$HOME\" 'a  b'"]);
        assert_eq!(arguments.timeout, DEFAULT_TIMEOUT);
        assert_eq!(parse(r#"{"command":"-x"}"#).unwrap().argv[2], " -x");
    }

    #[test]
    fn argv_is_taken_word_by_word() {
        let arguments = parse(r#"{"argv":["-a","","b c"],"timeout_seconds":1.5e0}"#).unwrap();
        assert_eq!(arguments.argv, ["-a", "", "b c"]);
        assert_eq!(arguments.timeout, Duration::from_millis(1500));
        assert!(
            parse(r#"{"command":"x","timeout_seconds":1e-300}"#).unwrap().timeout > Duration::ZERO
        );
        assert!(parse(r#"{"command":"x","timeout_seconds":600}"#).is_ok());
    }

    #[test]
    fn every_other_shape_is_refused_in_words() {
        let cases = [
            "[]",
            "{}",
            r#"{"command":"a","argv":["a"]}"#,
            r#"{"command":"a","command":"b"}"#,
            r#"{"command":""}"#,
            r#"{"command":7}"#,
            r#"{"command":"\ud800"}"#,
            r#"{"argv":[]}"#,
            r#"{"argv":"ls"}"#,
            r#"{"argv":["ls",1]}"#,
            r#"{"command":"a","cwd\u0007":"/"}"#,
            r#"{"command":"a","timeout_seconds":"5"}"#,
            r#"{"command":"a","timeout_seconds":0}"#,
            r#"{"command":"a","timeout_seconds":-1}"#,
            r#"{"command":"a","timeout_seconds":600.5}"#,
            r#"{"command":"a","timeout_seconds":1e999}"#,
        ];
        let said: Vec<_> = cases.iter().map(|case| parse(case).unwrap_err()).collect();
        insta::assert_snapshot!(said.join("\n"));
        assert!(RunArguments::parse(None).unwrap_err().starts_with("nothing to run"));
    }
}
