//! Which server and tool `SERVER.TOOL` means.

use plenipo_connect::ServerName;
use plenipo_connect::catalog::{Catalog, Lookup, Tool};

use crate::failure::{Code, Failure};
use crate::reach::Reachable;
use crate::settings::Settings;

/// A server that can be started, and the name of one of its tools.
pub(super) struct Target {
    pub(super) server: Reachable,
    pub(super) tool: String,
}

impl Target {
    /// The longest known server name that is followed by a dot wins, because both names may hold dots.
    pub(super) fn find(settings: &Settings, text: &str) -> Result<Self, Failure> {
        let split = |name: &str| {
            text.strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('.'))
                .filter(|tool| !tool.is_empty())
                .map(|tool| (name.len(), tool.to_owned()))
        };
        let configured = settings.server_names().filter_map(|name| split(name.as_str()));
        let longest =
            configured.chain(split(ServerName::WORKSPACE)).max_by_key(|(length, _)| *length);
        let Some((length, tool)) = longest else { return Err(unknown(settings, text)) };
        let name = text.get(..length).unwrap_or_default();
        match Reachable::find(settings, name) {
            Some(Ok(server)) => Ok(Self { server, tool }),
            Some(Err(unreachable)) => Err(unreachable.into_failure(name)),
            None => Err(unknown(settings, text)),
        }
    }
}

fn unknown(settings: &Settings, text: &str) -> Failure {
    if let Some(refused) = settings.refused_server(text) {
        return refused;
    }
    let mut names: Vec<&str> = settings.server_names().map(ServerName::as_str).collect();
    names.push(ServerName::WORKSPACE);
    names.sort_unstable();
    names.dedup();
    if names.contains(&text) {
        return Failure::usage(format!("`{text}` names a server and no tool"))
            .with_hint(format!("write it as {text}.TOOL"));
    }
    Failure::usage(format!("no configured server fits `{text}`, which should be SERVER.TOOL"))
        .with_hint(format!("known servers: {}", names.join(", ")))
}

/// The tool, or a failure that names what there is.
pub(crate) fn tool<'a>(
    catalog: &'a Catalog,
    server: &str,
    name: &str,
) -> Result<&'a Tool, Failure> {
    match catalog.find(name) {
        Lookup::Found(tool) => Ok(tool),
        Lookup::Disabled => Err(Failure::new(
            Code::Refused,
            format!("tool `{name}` of server `{server}` is disabled by the configuration"),
        )),
        Lookup::Missing { nearest } => {
            let message = format!("server `{server}` has no tool `{name}`");
            let hint = match nearest {
                Some(nearest) => format!("did you mean `{server}.{nearest}`?"),
                None => {
                    let names: Vec<&str> = catalog.tools().map(Tool::name).take(20).collect();
                    format!("its tools: {}", names.join(", "))
                }
            };
            Err(Failure::usage(message).with_hint(hint))
        }
        _ => Err(Failure::usage(format!("tool `{name}` of server `{server}` cannot be used"))),
    }
}
