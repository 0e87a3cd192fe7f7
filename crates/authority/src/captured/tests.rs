use super::*;
use crate::{LAUNCHER_KEY, STATE_ALIAS_KEY, STATE_KEY};

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn captured(state: Option<&str>, opt_in: bool) -> CapturedAuthority {
    let mut parts = AuthorityParts::new(EnvironmentId::local(), ServerReach::LocalStdio);
    parts.state = state.map(|text| SandboxState::capture(text).unwrap());
    parts.opt_in = opt_in;
    CapturedAuthority::capture(parts)
}

fn attached(authority: &CapturedAuthority, caller: Option<&str>) -> String {
    let caller = caller.map(raw);
    authority.attach(caller.as_deref(), &[]).unwrap().get().to_owned()
}

const BOTH_KEYS: &str = r#""codex/sandbox-state":{"a":1},"codex/sandbox-state-meta":{"a":1}"#;

#[test]
fn only_an_opted_in_server_with_a_state_gets_the_keys() {
    assert_eq!(attached(&captured(Some(r#"{"a":1}"#), true), None), format!("{{{BOTH_KEYS}}}"));
    assert_eq!(attached(&captured(Some(r#"{"a":1}"#), false), None), "{}");
    assert_eq!(attached(&captured(None, true), None), "{}");
}

#[test]
fn stale_entries_are_removed_in_every_spelling_whether_or_not_new_ones_follow() {
    let caller = r#"{ "codex/sandbox-state":1, "a" : [ 1 ] ,"codex\/sandbox-state-meta":{},
        "\u0063odex/sandbox-launcher":{"codexExecutable":"/fake"},
        "codex/sandbox-launcher":2,"a":-0 }"#;
    assert_eq!(attached(&captured(None, false), Some(caller)), r#"{"a":[ 1 ],"a":-0}"#);
    assert_eq!(
        attached(&captured(Some(r#"{"a":1}"#), true), Some(caller)),
        format!(r#"{{"a":[ 1 ],"a":-0,{BOTH_KEYS}}}"#),
    );
}

#[test]
fn caller_cannot_forge_reserved_meta() {
    for key in [
        "progressToken",
        "progress\\u0054oken",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol\\/clientInfo",
        "com.mcp.tools/x",
        "codex/sandbox-next",
    ] {
        let caller = raw(&format!(r#"{{"a":1,"{key}":1}}"#));
        let error = captured(None, true).attach(Some(&caller), &[]).unwrap_err();
        assert!(matches!(error, AttachError::CallerReservedKey { .. }), "{key}: {error}");
    }
    for key in ["traceparent", "tracestate", "baggage", "com.example/x", "x y", "\\ud800"] {
        let caller = format!(r#"{{"{key}":1}}"#);
        assert_eq!(attached(&captured(None, true), Some(&caller)), caller);
    }
}

#[test]
fn the_hosts_own_entries_follow_the_callers_and_win_over_them() {
    let (token, version) = (raw("7"), raw("\"2026-07-28\""));
    let extra: [(&str, &RawValue); 2] =
        [("progressToken", &token), ("io.modelcontextprotocol/protocolVersion", &version)];
    let caller = raw(r#"{"threadId":"t"}"#);
    insta::assert_snapshot!(
        captured(Some("{}"), true).attach(Some(&caller), &extra).unwrap().get(),
        @r#"{"threadId":"t","progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","codex/sandbox-state":{},"codex/sandbox-state-meta":{}}"#
    );
    let caller = raw(r#"{"thread\u0049d":"forged","b":1}"#);
    let attached = captured(None, false).attach(Some(&caller), &[("threadId", &token)]).unwrap();
    assert_eq!(attached.get(), r#"{"b":1,"threadId":7}"#);
}

#[test]
fn the_hosts_own_entries_cannot_carry_authority_or_repeat_a_key() {
    let value = raw("{}");
    for key in [STATE_KEY, STATE_ALIAS_KEY, LAUNCHER_KEY] {
        let error = captured(None, true).attach(None, &[(key, &value)]).unwrap_err();
        assert!(matches!(error, AttachError::ExtraSandboxKey { .. }), "{error}");
    }
    let error = captured(None, true).attach(None, &[("a", &value), ("a", &value)]).unwrap_err();
    assert!(matches!(error, AttachError::ExtraTwice { .. }), "{error}");
}

#[test]
fn meta_that_is_no_object_is_refused() {
    for caller in ["null", "[]", "1", "\"{}\"", "true"] {
        let error = captured(None, true).attach(Some(&raw(caller)), &[]).unwrap_err();
        assert!(matches!(error, AttachError::CallerNotAnObject { .. }), "{error}");
    }
}

#[test]
fn the_digest_tells_fields_apart() {
    let mut parts = AuthorityParts::new(EnvironmentId::new("a"), ServerReach::Remote);
    let plain = CapturedAuthority::capture(parts.clone());
    parts.credential = Some(CredentialPin::new(""));
    let empty_pin = CapturedAuthority::capture(parts.clone());
    parts.credential = None;
    parts.opt_in = true;
    let opted_in = CapturedAuthority::capture(parts);
    let digests = [plain.digest(), empty_pin.digest(), opted_in.digest()];
    assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
    assert_eq!(plain.digest(), plain.clone().digest());
    let digest = plain.digest();
    let digits: String = digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((digest.to_string(), format!("{digest:?}")), (digits.clone(), digits));
}

#[test]
fn names_are_what_they_were_made_of() {
    let [local, other] = [EnvironmentId::local(), EnvironmentId::new("box")];
    assert!(local.is_local() && !other.is_local());
    assert_eq!((other.as_str(), other.to_string()), ("box", "box".to_owned()));
    assert_eq!(CredentialPin::new("login").as_str(), "login");
}

#[test]
fn an_attachment_knows_whether_there_is_anything_to_send() {
    let caller = raw(r#"{"a":1}"#);
    let authority = captured(None, true);
    let [nothing, something] =
        [None, Some(&*caller)].map(|caller| authority.attachment(caller, &[]).unwrap().is_empty());
    assert!(nothing && !something);
}
