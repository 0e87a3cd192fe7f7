//! Everything but `tools/call`: eras, handshake, tool list, errors.

use plenipo_wire::encode::ObjectWriter;
use plenipo_wire::protocol::{
    LATEST_LEGACY_VERSION, LEGACY_VERSIONS, MODERN_VERSION, error_code, meta, methods,
};
use plenipo_wire::{Fragment, RawValue, RequestId, object};

use crate::text::name;
use crate::tool;

const SERVER_NAME: &str = "plenipo-workspace";
const SERVER_TITLE: &str = "Plenipo workspace";
const INSTRUCTIONS: &str = "Runs commands on this machine with the tool `run`. Each command runs \
    under the sandbox policy that the host sends with the call; a call that comes without one is \
    refused, unless the operator of this server allows unsandboxed commands.";
/// How long a modern client may keep what never changes while the server runs: one hour.
const FRESH_MILLISECONDS: i64 = 3_600_000;

/// Which family of revisions a request belongs to; each request says so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2024-11-05 … 2025-11-25.
    Legacy,
    /// 2026-07-28.
    Modern,
}

/// A JSON-RPC error answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Fragment>,
}

impl Era {
    /// Reads the era of a request from its parameters.
    ///
    /// # Errors
    /// When parameters or `_meta` are no object, or the revision named there is not spoken.
    pub(crate) fn of(params: Option<&RawValue>) -> Result<Self, Failure> {
        let Some(params) = params else { return Ok(Self::Legacy) };
        let [meta] = object::select(params, ["_meta"]).ok_or_else(|| {
            Failure::invalid_params(format!(
                "params must be an object, found {}",
                object::type_name(params)
            ))
        })?;
        match meta.and_then(|meta| object::member(meta, meta::PROTOCOL_VERSION)) {
            None => Ok(Self::Legacy),
            Some(version) => match object::text(version) {
                Some(version) if version == MODERN_VERSION => Ok(Self::Modern),
                Some(version) => Err(Failure::unsupported_version(&version)),
                None => Err(Failure::invalid_params(format!(
                    "`{}` must be a string, found {}",
                    meta::PROTOCOL_VERSION,
                    object::type_name(version)
                ))),
            },
        }
    }

    /// Says in a modern result that it is the whole answer.
    pub(crate) fn mark_complete(self, result: &mut ObjectWriter<'_>) {
        if self == Self::Modern {
            result.string("resultType", "complete");
        }
    }
}

impl Failure {
    pub(crate) fn invalid_params(message: String) -> Self {
        Self { code: error_code::INVALID_PARAMS, message, data: None }
    }

    pub(crate) fn invalid_request(message: String) -> Self {
        Self { code: error_code::INVALID_REQUEST, message, data: None }
    }

    fn unsupported_version(requested: &str) -> Self {
        let supported = Fragment::string(MODERN_VERSION);
        let data = Fragment::object(|data| {
            data.array("supported", [&supported]);
            data.string("requested", requested);
        });
        Self {
            code: error_code::UNSUPPORTED_PROTOCOL_VERSION,
            message: format!("protocol version `{}` is not supported", name(requested)),
            data: Some(data),
        }
    }

    fn unknown_method(method: &str) -> Self {
        let message = format!("method `{}` is not available", name(method));
        Self { code: error_code::METHOD_NOT_FOUND, message, data: None }
    }
}

/// Answers every request but `tools/call`.
pub(crate) fn answer(
    era: Era,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Fragment, Failure> {
    match (method, era) {
        (methods::INITIALIZE, Era::Legacy) => initialize(params),
        (methods::PING, Era::Legacy) => Ok(Fragment::object_empty()),
        // Also without `_meta`: it is how a client finds out which era this is.
        (methods::DISCOVER, _) => Ok(discover()),
        (methods::TOOLS_LIST, _) => tools_list(era, params),
        _ => Err(Failure::unknown_method(method)),
    }
}

fn initialize(params: Option<&RawValue>) -> Result<Fragment, Failure> {
    let asked = params.and_then(|params| object::member(params, "protocolVersion"));
    let asked = asked
        .and_then(object::text)
        .ok_or_else(|| Failure::invalid_params("`protocolVersion` must be a string".to_owned()))?;
    let version = LEGACY_VERSIONS.into_iter().find(|version| *version == asked);
    Ok(Fragment::object(|result| {
        result.string("protocolVersion", version.unwrap_or(LATEST_LEGACY_VERSION));
        result.object("capabilities", capabilities);
        result.object("serverInfo", server_info);
        result.string("instructions", INSTRUCTIONS);
    }))
}

fn discover() -> Fragment {
    let version = Fragment::string(MODERN_VERSION);
    Fragment::object(|result| {
        Era::Modern.mark_complete(result);
        result.array("supportedVersions", [&version]);
        result.object("capabilities", capabilities);
        result.string("instructions", INSTRUCTIONS);
        mark_fresh(result);
        result.object("_meta", |meta| meta.object(meta::SERVER_INFO, server_info));
    })
}

fn tools_list(era: Era, params: Option<&RawValue>) -> Result<Fragment, Failure> {
    let cursor = params.and_then(|params| object::member(params, "cursor"));
    if cursor.and_then(object::non_null).is_some() {
        return Err(Failure::invalid_params("unknown `cursor`: there is one page".to_owned()));
    }
    let tools = tool::definitions();
    Ok(Fragment::object(|result| {
        era.mark_complete(result);
        result.array("tools", &tools);
        if era == Era::Modern {
            mark_fresh(result);
        }
    }))
}

fn mark_fresh(result: &mut ObjectWriter<'_>) {
    result.integer("ttlMs", FRESH_MILLISECONDS);
    result.string("cacheScope", "public");
}

fn capabilities(capabilities: &mut ObjectWriter<'_>) {
    capabilities.object("tools", |_| {});
    capabilities.object("experimental", |experimental| {
        experimental.object(plenipo_authority::STATE_KEY, |_| {});
    });
}

fn server_info(info: &mut ObjectWriter<'_>) {
    info.string("name", SERVER_NAME);
    info.string("title", SERVER_TITLE);
    info.string("version", env!("CARGO_PKG_VERSION"));
}

/// The id of a request of which only the beginning is there, so that its sender gets an answer. None
/// when the id or the method comes later.
pub(crate) fn id_of_beginning(beginning: &[u8]) -> Option<RequestId> {
    let text = String::from_utf8_lossy(beginning);
    let mut commas = text.rmatch_indices(',').filter_map(|(index, _)| text.get(..index));
    // The longest run of whole members is the one that becomes an object when it is closed.
    let whole = commas.find_map(|members| Fragment::parse_object(&format!("{members}}}")).ok())?;
    let [id, method] = object::select(whole.as_raw(), ["id", "method"])?;
    method.and(id).and_then(RequestId::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_request_still_has_its_id() {
        let found = |text: &str| id_of_beginning(text.as_bytes()).map(|id| id.to_string());
        let text = r#"{"jsonrpc":"2.0","id":"a,b","method":"tools/call","params":{"id":3,"x":[1,"#;
        assert_eq!(found(text).as_deref(), Some(r#""a,b""#));
        assert_eq!(found(r#"{"method":"x","id":7,"params":"aaaaaa"#).as_deref(), Some("7"));
        for text in ["", "aaaa", r#"{"id":7,"result":{"a":1"#, r#"{"params":{"id":7,"a":"#, "[1,2,"]
        {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn a_request_says_which_era_it_is_of() {
        let era = |text: &str| {
            let params = Fragment::parse(text).unwrap();
            Era::of(Some(params.as_raw())).map_err(|failure| failure.code)
        };
        assert_eq!(era("{}"), Ok(Era::Legacy));
        assert_eq!(era(r#"{"_meta":{"progressToken":1}}"#), Ok(Era::Legacy));
        let key = meta::PROTOCOL_VERSION;
        assert_eq!(era(&format!(r#"{{"_meta":{{"{key}":"2026-07-28"}}}}"#)), Ok(Era::Modern));
        assert_eq!(era(&format!(r#"{{"_meta":{{"{key}":"2030-01-01"}}}}"#)), Err(-32022));
        assert_eq!(era(&format!(r#"{{"_meta":{{"{key}":7}}}}"#)), Err(-32602));
        assert_eq!(era("[]"), Err(-32602));
    }
}
