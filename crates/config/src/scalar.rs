//! Values of one key: times, names of variables.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plenipo_connect::{RestartPolicy, ShutdownPolicy};

use crate::error::ConfigError;
use crate::limits::Limits;
use crate::node::{Node, Place, Value};
use crate::template::is_variable;

/// Clocks far in the future overflow on some systems; 30 days is for ever here.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(crate) fn seconds(node: &Node, place: &Place<'_>) -> Result<Duration, ConfigError> {
    let number = match &node.value {
        Value::Integer { digits, radix } => u32::from_str_radix(digits, *radix).ok().map(f64::from),
        Value::Float(text) => text.parse::<f64>().ok(),
        other => return Err(place.wrong_type("a number of seconds", other)),
    };
    number
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| place.fault("should be a number of seconds above 0 and below 30 days"))
}

pub(crate) fn milliseconds(node: &Node, place: &Place<'_>) -> Result<Duration, ConfigError> {
    let Value::Integer { digits, radix } = &node.value else {
        return Err(place.wrong_type("a whole number of milliseconds", &node.value));
    };
    u64::from_str_radix(digits, *radix)
        .ok()
        .filter(|milliseconds| *milliseconds > 0)
        .map(Duration::from_millis)
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| place.fault("should be a number of milliseconds above 0 and below 30 days"))
}

/// A limit of messages.
pub(crate) fn bytes(node: &Node, place: &Place<'_>) -> Result<usize, ConfigError> {
    within(Limits::MESSAGE_BYTES, "a number of bytes", (node, place))
}

/// A limit of what is read only to be shown, or to find an error in.
pub(crate) fn small_bytes(node: &Node, place: &Place<'_>) -> Result<usize, ConfigError> {
    within(1024..=16 * 1024 * 1024, "a number of bytes", (node, place))
}

/// A count of what a server lists or asks; the most is more than any host could show.
pub(crate) fn count(node: &Node, place: &Place<'_>) -> Result<usize, ConfigError> {
    within(1..=100_000, "a number", (node, place))
}

fn within(
    bounds: RangeInclusive<usize>,
    what: &str,
    (node, place): (&Node, &Place<'_>),
) -> Result<usize, ConfigError> {
    let Value::Integer { digits, radix } = &node.value else {
        return Err(place.wrong_type(what, &node.value));
    };
    let number = usize::from_str_radix(digits, *radix).ok();
    number.filter(|number| bounds.contains(number)).ok_or_else(|| {
        place.fault(format!("should be {what} from {} to {}", bounds.start(), bounds.end()))
    })
}

/// More than a person would answer.
const MOST_ROUNDS: u32 = 1000;

pub(crate) fn rounds(node: &Node, place: &Place<'_>) -> Result<u32, ConfigError> {
    let Value::Integer { digits, radix } = &node.value else {
        return Err(place.wrong_type("a whole number of rounds", &node.value));
    };
    u32::from_str_radix(digits, *radix)
        .ok()
        .filter(|rounds| *rounds <= MOST_ROUNDS)
        .ok_or_else(|| place.fault(format!("should be a number from 0 to {MOST_ROUNDS}")))
}

/// `restart`: what becomes of a server that ends by itself.
pub(crate) fn restart(node: &Node, place: &Place<'_>) -> Result<RestartPolicy, ConfigError> {
    match place.string(node)?.as_str() {
        "on-failure" => Ok(RestartPolicy::OnFailure),
        "never" => Ok(RestartPolicy::Never),
        _ => Err(place.fault("should be `on-failure` or `never`")),
    }
}

/// `shutdown`: who waits for the server's end.
pub(crate) fn shutdown(node: &Node, place: &Place<'_>) -> Result<ShutdownPolicy, ConfigError> {
    match place.string(node)?.as_str() {
        "background" => Ok(ShutdownPolicy::Background),
        "wait" => Ok(ShutdownPolicy::Wait),
        _ => Err(place.fault("should be `background` or `wait`")),
    }
}

pub(crate) fn absolute(place: &Place<'_>, text: &str) -> Result<PathBuf, ConfigError> {
    if Path::new(text).is_absolute() {
        return Ok(PathBuf::from(text));
    }
    Err(place.fault("should be an absolute path"))
}

/// The name of a variable that is set, which programs may want to be an odd one.
pub(crate) fn variable_name(name: &str, place: &Place<'_>) -> Result<String, ConfigError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(place.fault("is not the name of an environment variable"));
    }
    Ok(name.to_owned())
}

/// The name of a variable that is looked up. What stands there instead may be the secret itself, so that it is not shown.
pub(crate) fn looked_up(name: &str, place: &Place<'_>) -> Result<String, ConfigError> {
    if is_variable(name) {
        return Ok(name.to_owned());
    }
    let mut fault = place.fault(
        "is not the name of an environment variable: letters, digits and `_`, no digit first",
    );
    fault.hint = Some("put the value into an environment variable and name that here".to_owned());
    Err(fault)
}

/// `env_vars`: names, or tables with a name and where it is looked up.
pub(crate) fn forwarded(node: &Node, place: &Place<'_>) -> Result<Vec<String>, ConfigError> {
    let items = place.array(node)?;
    Ok(items.filter_map(|(place, item)| place.note(forwarded_one(item, &place))).collect())
}

fn forwarded_one(item: &Node, place: &Place<'_>) -> Result<String, ConfigError> {
    let table = match &item.value {
        Value::Text(name) => return looked_up(name, place),
        Value::Table(table) => table,
        other => return Err(place.wrong_type("a name or a table {name, source}", other)),
    };
    let mut name = None;
    for (key, value) in table {
        let place = place.member(key);
        match key.text.as_str() {
            "name" => name = Some(looked_up(&place.string(value)?, &place)?),
            "source" => match place.string(value)?.as_str() {
                "local" => {}
                "remote" => return Err(place.fault("is `remote`, but this server is local")),
                _ => return Err(place.fault("should be `local` or `remote`")),
            },
            unknown => {
                return Err(place.unknown_key(unknown, ["name", "source"].into_iter()));
            }
        }
    }
    name.ok_or_else(|| place.fault("has no `name`"))
}
