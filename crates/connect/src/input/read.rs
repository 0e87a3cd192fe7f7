//! A question's method and parameters to what a handler is asked.

use plenipo_wire::object::{self, non_null};
use plenipo_wire::protocol::{error_code, methods};
use plenipo_wire::{Fragment, RawValue};

use super::respond::Refused;
use super::{ElicitationUrl, Form, InputKind, InputOffer};

/// Longest text of a server that is shown in front of a form or URL, in characters.
const MESSAGE: usize = 8 * 1024;

/// Reads a question; refuses what is not offered, and what nobody could answer.
pub(super) fn question(
    offer: InputOffer,
    method: &str,
    params: Option<&RawValue>,
) -> Result<InputKind, Refused> {
    match method {
        methods::ELICIT if offer.form || offer.url => elicitation(offer, params),
        methods::SAMPLE if offer.sampling => sampling(offer, params),
        methods::ROOTS_LIST if offer.roots => Ok(InputKind::Roots),
        _ => Err(Refused::not_offered(&format!("`{method}`"))),
    }
}

/// Without a mode it is a form.
fn elicitation(offer: InputOffer, params: Option<&RawValue>) -> Result<InputKind, Refused> {
    let names = ["mode", "message", "requestedSchema", "url", "elicitationId"];
    let [mode, message, schema, url, id] = params
        .and_then(|params| object::select(params, names))
        .ok_or_else(|| Refused::bad("its parameters are not an object"))?;
    let mode = mode.and_then(object::text);
    let message = message.and_then(object::text).unwrap_or_default();
    let message: String = message.chars().take(MESSAGE).collect();
    match mode.as_deref() {
        None | Some("form") if offer.form => {
            let schema = schema.ok_or_else(|| Refused::bad("it has no `requestedSchema`"))?;
            let form = Form::from_raw(schema).map_err(|fault| Refused::bad(&fault.to_string()))?;
            Ok(InputKind::Form { message, form })
        }
        Some("url") if offer.url => {
            let url = url.and_then(object::text).ok_or_else(|| Refused::bad("it has no `url`"))?;
            let url = ElicitationUrl::parse(&url)
                .map_err(|fault| Refused::bad(&format!("its URL may not be opened: {fault}")))?;
            let elicitation_id = id.and_then(object::text).map(Into::into);
            Ok(InputKind::Url { message, url, elicitation_id })
        }
        None | Some("form" | "url") => Err(Refused {
            code: error_code::INVALID_PARAMS,
            ..Refused::not_offered("`elicitation/create` of this mode")
        }),
        Some(_) => Err(Refused::bad("its mode is neither `form` nor `url`")),
    }
}

fn sampling(offer: InputOffer, params: Option<&RawValue>) -> Result<InputKind, Refused> {
    let [max, tools, messages, choice] = params
        .and_then(|params| object::select(params, ["maxTokens", "tools", "messages", "toolChoice"]))
        .ok_or_else(|| Refused::bad("its parameters are not an object"))?;
    let max = max.and_then(object::integer).and_then(|max| u64::try_from(max).ok());
    let max_tokens = max.ok_or_else(|| Refused::bad("it has no `maxTokens`"))?;
    let messages = messages.and_then(object::items);
    let messages = messages.ok_or_else(|| Refused::bad("it has no `messages`"))?;
    let with_tools = tools.and_then(non_null).is_some() || choice.and_then(non_null).is_some();
    if with_tools && !offer.sampling_tools {
        return Err(Refused {
            code: error_code::INVALID_PARAMS,
            ..Refused::not_offered("`sampling/createMessage` with tools")
        });
    }
    if messages.into_iter().any(mixes_tool_results) {
        return Err(Refused::bad("a message mixes tool results with other content"));
    }
    Ok(InputKind::Sampling { max_tokens, with_tools })
}

/// A message with tool results has nothing else (2025-11-25 and later, "Sampling").
fn mixes_tool_results(message: &RawValue) -> bool {
    let Some(content) = object::member(message, "content").and_then(object::items) else {
        return false;
    };
    let is_result = |block: &RawValue| {
        object::member(block, "type").and_then(object::text).as_deref() == Some("tool_result")
    };
    let results = content.iter().filter(|block| is_result(block)).count();
    results > 0 && results < content.len()
}

/// The URLs of `URLElicitationRequired` (2025-11-25), each as the parameters of an elicitation.
pub(crate) fn required_urls(data: Option<&Fragment>) -> Vec<Fragment> {
    let list = data.and_then(|data| object::member(data.as_raw(), "elicitations"));
    let items = list.and_then(object::items).unwrap_or_default();
    items.into_iter().map(Fragment::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offer: InputOffer, method: &str, params: &str) -> String {
        let params = Fragment::parse(params).unwrap();
        match question(offer, method, Some(params.as_raw())) {
            Ok(InputKind::Form { form, .. }) => format!("form of {}", form.fields.len()),
            Ok(InputKind::Url { url, elicitation_id, .. }) => format!("{url} {elicitation_id:?}"),
            Ok(kind) => format!("{kind:?}"),
            Err(refused) => format!("{} {}", refused.code, refused.reason),
        }
    }

    const FORM: &str = r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
    const MODE: &str =
        r#"{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
    const URL: &str =
        r#"{"mode":"url","message":"m","url":"https://example.com/","elicitationId":"e"}"#;

    #[test]
    fn elicitation_mode_defaults() {
        let form = InputOffer { form: true, ..InputOffer::NOTHING };
        let both = InputOffer::ELICITATION;
        let elicit = |offer, params| read(offer, "elicitation/create", params);
        assert_eq!(elicit(form, FORM), "form of 0", "no mode is a form");
        assert_eq!(elicit(both, MODE), "form of 0");
        assert_eq!(elicit(both, URL), r#"https://example.com/ Some("e")"#);
        assert!(elicit(form, URL).starts_with("-32602 "), "a mode that was not declared");
        assert!(
            elicit(InputOffer { url: true, ..InputOffer::NOTHING }, FORM).starts_with("-32602")
        );
        assert!(elicit(InputOffer::NOTHING, FORM).starts_with("-32601 "));
        assert!(elicit(both, r#"{"mode":"dance","message":"m"}"#).starts_with("-32602 "));
        assert!(elicit(both, r#"{"message":"m"}"#).starts_with("-32602 "));
        assert!(elicit(both, "[]").starts_with("-32602 "));
    }

    #[test]
    fn url_elicitation_without_id() {
        let without = r#"{"mode":"url","message":"m","url":"https://example.com/"}"#;
        let read = read(InputOffer::ELICITATION, "elicitation/create", without);
        assert_eq!(read, "https://example.com/ None");
    }

    #[test]
    fn sampling_follows_its_rules() {
        let on = InputOffer { sampling: true, ..InputOffer::NOTHING };
        let with_tools = InputOffer { sampling_tools: true, ..on };
        let sample = |offer, params: &str| read(offer, "sampling/createMessage", params);
        let plain =
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"maxTokens":5}"#;
        let tools = r#"{"messages":[],"maxTokens":5,"tools":[]}"#;
        let mixed = r#"{"messages":[{"role":"user","content":[{"type":"tool_result"},{"type":"text"}]}],"maxTokens":5}"#;
        assert!(sample(InputOffer::ELICITATION, plain).starts_with("-32601 "));
        assert_eq!(sample(on, plain), "Sampling { max_tokens: 5, with_tools: false }");
        assert!(sample(on, tools).starts_with("-32602 "));
        assert_eq!(sample(with_tools, tools), "Sampling { max_tokens: 5, with_tools: true }");
        assert!(sample(with_tools, mixed).starts_with("-32602 "));
        assert!(sample(on, r#"{"messages":[]}"#).starts_with("-32602 "), "no bound");
        assert!(sample(on, r#"{"messages":[],"maxTokens":-1}"#).starts_with("-32602 "));
    }
}
