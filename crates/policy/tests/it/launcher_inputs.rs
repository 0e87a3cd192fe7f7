//! The inputs that the reference launcher was asked about, as far as they concern the state, and
//! what this implementation says to each: `Ok`, or the JSON path at fault.

use std::path::PathBuf;

use plenipo_policy::{Access, ResolveContext, ResolveError, State};

const ROOT: &str = r#"{"path":{"type":"special","value":{"kind":"root"}},"access":"read"}"#;

/// A state with a read-only root and one more entry.
fn with_entry(entry: &str) -> String {
    with_file_system(&format!(r#"{{"type":"restricted","entries":[{ROOT},{entry}]}}"#))
}

fn with_file_system(file_system: &str) -> String {
    let network = r#""network":"restricted""#;
    with_profile(&format!(r#"{{"type":"managed","file_system":{file_system},{network}}}"#))
}

fn with_profile(profile: &str) -> String {
    format!(r#"{{"permissionProfile":{profile},"sandboxCwd":"file:///home/dev/ws"}}"#)
}

fn with_outer(members: &str) -> String {
    format!(r#"{{"permissionProfile":{{"type":"disabled"}},{members}}}"#)
}

fn with_cwd(value: &str) -> String {
    with_outer(&format!(r#""sandboxCwd":{value}"#))
}

fn with_extra(member: &str) -> String {
    with_outer(&format!(r#""sandboxCwd":"file:///tmp",{member}"#))
}

fn path(path: &str, access: &str) -> String {
    format!(r#"{{"path":{{"type":"path","path":"{path}"}},"access":"{access}"}}"#)
}

fn special(value: &str, access: &str) -> String {
    format!(r#"{{"path":{{"type":"special","value":{value}}},"access":"{access}"}}"#)
}

fn glob(pattern: &str, access: &str) -> String {
    format!(r#"{{"path":{{"type":"glob_pattern","pattern":"{pattern}"}},"access":"{access}"}}"#)
}

fn check(table: &[(&str, String, Result<(), &str>)]) {
    for (name, json, expected) in table {
        let found = State::parse(json).map(drop);
        let found = found.as_ref().map_err(|error| error.path()).copied();
        assert_eq!(found, *expected, "{name}: {json}");
    }
}

#[test]
fn text_that_is_no_state_is_refused() {
    let whole = Err("");
    check(&[
        ("empty string", String::new(), whole),
        ("not json", "{".into(), whole),
        ("trailing garbage", with_extra(r#""useMxc":false"#) + "x", whole),
        ("json null", "null".into(), whole),
        ("json array", "[]".into(), whole),
        ("json string", r#""x""#.into(), whole),
        ("json number", "1".into(), whole),
        ("json true", "true".into(), whole),
        ("empty object", "{}".into(), Err("permissionProfile")),
        (
            "legacy sandboxPolicy shape",
            r#"{"sandboxPolicy":{"type":"read-only"},"sandboxCwd":"/tmp"}"#.into(),
            Err("permissionProfile"),
        ),
        (
            "snake_case keys",
            r#"{"permission_profile":{"type":"disabled"},"sandbox_cwd":"file:///tmp"}"#.into(),
            Err("permissionProfile"),
        ),
        ("duplicate json keys", with_extra(r#""sandboxCwd":"file:///tmp""#), Err("sandboxCwd")),
        ("huge json 140KB", with_extra(&format!(r#""x":"{}""#, "x".repeat(140_000))), Ok(())),
    ]);
}

#[test]
fn outer_members_are_typed_and_unknown_ones_allowed() {
    check(&[
        ("unknown extra top field", with_extra(r#""zzz":{"a":[1,-2.5e3,null]}"#), Ok(())),
        (
            "missing permissionProfile",
            r#"{"sandboxCwd":"file:///tmp"}"#.into(),
            Err("permissionProfile"),
        ),
        (
            "missing sandboxCwd",
            r#"{"permissionProfile":{"type":"disabled"}}"#.into(),
            Err("sandboxCwd"),
        ),
        ("missing all optional members", with_cwd(r#""file:///tmp""#), Ok(())),
        ("null codexLinuxSandboxExe", with_extra(r#""codexLinuxSandboxExe":null"#), Ok(())),
        (
            "null useLegacyLandlock",
            with_extra(r#""useLegacyLandlock":null"#),
            Err("useLegacyLandlock"),
        ),
        ("null useMxc", with_extra(r#""useMxc":null"#), Err("useMxc")),
        ("null sandboxCwd", with_cwd("null"), Err("sandboxCwd")),
        ("null permissionProfile", with_profile("null"), Err("permissionProfile")),
        (
            "useLegacyLandlock string",
            with_extra(r#""useLegacyLandlock":"true""#),
            Err("useLegacyLandlock"),
        ),
        ("useLegacyLandlock true", with_extra(r#""useLegacyLandlock":true"#), Ok(())),
        ("useMxc true", with_extra(r#""useMxc":true"#), Ok(())),
    ]);
}

#[test]
fn the_working_directory_is_a_native_file_uri() {
    let refused = Err("sandboxCwd");
    check(&[
        ("sandboxCwd plain abs path", with_cwd(r#""/tmp""#), refused),
        ("sandboxCwd relative", with_cwd(r#""x""#), refused),
        ("sandboxCwd empty", with_cwd(r#""""#), refused),
        ("sandboxCwd number", with_cwd("5"), refused),
        ("sandboxCwd host uri", with_cwd(r#""file://otherhost/tmp""#), refused),
        ("sandboxCwd http uri", with_cwd(r#""http://localhost/tmp""#), refused),
        ("sandboxCwd windows uri", with_cwd(r#""file:///C:/Users/x""#), refused),
        ("one slash", with_cwd(r#""file:/tmp""#), refused),
        ("no path", with_cwd(r#""file://localhost""#), refused),
        ("dot segments", with_cwd(r#""file:///tmp/../etc""#), refused),
        ("encoded dot segments", with_cwd(r#""file:///tmp/%2e%2E/etc""#), refused),
        ("encoded slash", with_cwd(r#""file:///tmp%2fx""#), refused),
        ("encoded NUL", with_cwd(r#""file:///tmp%00""#), refused),
        ("half an escape", with_cwd(r#""file:///tmp%4""#), refused),
        ("bad escape", with_cwd(r#""file:///tmp%zz""#), refused),
        ("query", with_cwd(r#""file:///tmp?x""#), refused),
        ("fragment", with_cwd(r##""file:///tmp#x""##), refused),
        ("backslash", with_cwd(r#""file:///tmp\\x""#), refused),
        ("newline", with_cwd(r#""file:///tmp\nx""#), refused),
        // Whether it exists and is a directory is the launcher's to find out.
        ("sandboxCwd nonexistent", with_cwd(r#""file:///nonexistent""#), Ok(())),
        ("sandboxCwd localhost uri", with_cwd(r#""file://localhost/tmp""#), Ok(())),
        ("sandboxCwd root", with_cwd(r#""file:///""#), Ok(())),
    ]);
}

#[cfg(unix)]
#[test]
fn the_working_directory_is_percent_decoded_to_bytes() {
    use std::os::unix::ffi::OsStringExt as _;
    let decoded = |uri: &str| State::parse(&with_cwd(&format!("\"{uri}\""))).unwrap().cwd;
    let odd = decoded("file:///home/dev/ws%20git%20%C3%A9%20%2525");
    assert_eq!(odd, PathBuf::from("/home/dev/ws git é %25"));
    let bytes = std::ffi::OsString::from_vec(b"/tmp/\xff".to_vec());
    assert_eq!(decoded("file:///tmp/%ff"), PathBuf::from(bytes));
}

#[test]
fn a_profile_is_understood_completely_or_refused() {
    let profile = Err("permissionProfile");
    let kind = Err("permissionProfile.type");
    let network = Err("permissionProfile.network");
    let managed = r#""type":"managed","file_system":{"type":"unrestricted"}"#;
    check(&[
        ("profile type disabled", with_profile(r#"{"type":"disabled"}"#), Ok(())),
        (
            "profile type external",
            with_profile(r#"{"type":"external","network":"enabled"}"#),
            Ok(()),
        ),
        ("profile type external no net", with_profile(r#"{"type":"external"}"#), network),
        ("profile type unknown", with_profile(r#"{"type":"bogus"}"#), kind),
        (
            "profile missing type",
            with_profile(r#"{"file_system":{"type":"unrestricted"},"network":"enabled"}"#),
            kind,
        ),
        ("profile managed no network", with_profile(&format!("{{{managed}}}")), network),
        (
            "profile managed no fs",
            with_profile(r#"{"type":"managed","network":"enabled"}"#),
            Err("permissionProfile.file_system"),
        ),
        (
            "profile fs unrestricted net enabled",
            with_profile(&format!(r#"{{{managed},"network":"enabled"}}"#)),
            Ok(()),
        ),
        (
            "profile network bool",
            with_profile(&format!(r#"{{{managed},"network":true}}"#)),
            network,
        ),
        (
            "profile network bogus",
            with_profile(&format!(r#"{{{managed},"network":"bogus"}}"#)),
            network,
        ),
        ("permissionProfile false", with_profile("false"), profile),
        ("permissionProfile []", with_profile("[]"), profile),
        (
            "unknown extra in profile",
            with_profile(r#"{"type":"disabled","zzz":1}"#),
            Err("permissionProfile.zzz"),
        ),
        (
            "unknown extra in file_system",
            with_file_system(r#"{"type":"unrestricted","zzz":1}"#),
            Err("permissionProfile.file_system.zzz"),
        ),
        (
            "duplicate inside an entry",
            with_entry(r#"{"access":"read","access":"deny"}"#),
            Err("permissionProfile.file_system.entries[1].access"),
        ),
        (
            "untagged older form",
            with_profile(&format!(
                r#"{{"file_system":{{"entries":[{ROOT}]}},"network":{{"enabled":true}}}}"#
            )),
            Ok(()),
        ),
        (
            "untagged older form, unknown member",
            with_profile(
                r#"{"file_system":{"entries":[]},"network":{"enabled":true,"domains":[]}}"#,
            ),
            Err("permissionProfile.network.domains"),
        ),
    ]);
}

#[test]
fn entries_are_understood_completely_or_refused() {
    let at = |member| ["permissionProfile.file_system.entries[1]", member].concat();
    let (access, place, whole) = (at(".access"), at(".path.path"), at(""));
    let (unknown_entry, unknown_path) = (at(".zzz"), at(".path.zzz"));
    let missing = at(".missing_path_behavior");
    let long = format!("/{}", "x".repeat(4096));
    check(&[
        ("entries empty", with_file_system(r#"{"type":"restricted","entries":[]}"#), Ok(())),
        (
            "entries missing",
            with_file_system(r#"{"type":"restricted"}"#),
            Err("permissionProfile.file_system.entries"),
        ),
        ("entry no object", with_entry("1"), Err(&whole)),
        (
            "unknown extra in entry",
            with_entry(&path("/opt", "read").replacen('{', r#"{"zzz":1,"#, 1)),
            Err(&unknown_entry),
        ),
        (
            "unknown extra in path",
            with_entry(&path("/opt", "read").replace(r#""type""#, r#""zzz":1,"type""#)),
            Err(&unknown_path),
        ),
        ("access none", with_entry(&path("/opt", "none")), Ok(())),
        ("access deny", with_entry(&path("/opt", "deny")), Ok(())),
        ("access bogus", with_entry(&path("/opt", "execute")), Err(&access)),
        ("path relative", with_entry(&path("opt", "read")), Err(&place)),
        ("path empty", with_entry(&path("", "read")), Err(&place)),
        ("path with ..", with_entry(&path("/opt/../etc", "read")), Err(&place)),
        ("path with NUL", with_entry(&path("/opt/\\u0000", "read")), Err(&place)),
        ("path too long", with_entry(&path(&long, "read")), Err(&place)),
        ("path nonexistent write", with_entry(&path("/nonexistent", "write")), Ok(())),
        (
            "missing_path_behavior bogus",
            with_entry(&path("/opt", "read").replacen('{', r#"{"missing_path_behavior":"x","#, 1)),
            Err(&missing),
        ),
    ]);
}

#[test]
fn special_places_globs_and_depths_are_understood_completely_or_refused() {
    let at = |member| ["permissionProfile.file_system.entries[1]", member].concat();
    let (access, kind, value) = (at(".access"), at(".path.type"), at(".path.value.kind"));
    let (special_path, pattern, subpath) =
        (at(".path"), at(".path.pattern"), at(".path.value.subpath"));
    let depth = "permissionProfile.file_system.glob_scan_max_depth";
    let with_depth = |depth: &str| {
        with_file_system(&format!(
            r#"{{"type":"restricted","entries":[],"glob_scan_max_depth":{depth}}}"#
        ))
    };
    check(&[
        ("special kind bogus", with_entry(&special(r#"{"kind":"bogus"}"#, "read")), Err(&value)),
        (
            "special kind unknown",
            with_entry(&special(r#"{"kind":"unknown","path":":x","subpath":"y"}"#, "write")),
            Ok(()),
        ),
        (
            "special kind unknown deny",
            with_entry(&special(r#"{"kind":"unknown","path":":x"}"#, "deny")),
            Err(&special_path),
        ),
        (
            "special project_roots",
            with_entry(&special(r#"{"kind":"project_roots"}"#, "write")),
            Ok(()),
        ),
        (
            "special current_working_directory",
            with_entry(&special(r#"{"kind":"current_working_directory"}"#, "write")),
            Ok(()),
        ),
        (
            "project_roots absolute subpath",
            with_entry(&special(r#"{"kind":"project_roots","subpath":"/x"}"#, "write")),
            Err(&subpath),
        ),
        (
            "project_roots escaping subpath",
            with_entry(&special(r#"{"kind":"project_roots","subpath":"a/../../x"}"#, "write")),
            Err(&subpath),
        ),
        (
            "path type bogus",
            with_entry(&path("/opt", "read").replace(r#""type":"path""#, r#""type":"x""#)),
            Err(&kind),
        ),
        ("root write", with_entry(&special(r#"{"kind":"root"}"#, "write")), Ok(())),
        ("root deny", with_entry(&special(r#"{"kind":"root"}"#, "deny")), Ok(())),
        ("glob deny relative", with_entry(&glob("**/.env", "deny")), Ok(())),
        ("glob write", with_entry(&glob("**/.env", "write")), Err(&access)),
        ("glob empty", with_entry(&glob("", "deny")), Err(&pattern)),
        ("glob with ..", with_entry(&glob("../*.env", "deny")), Err(&pattern)),
        // An enforcer that cannot compile it refuses it.
        ("glob bad", with_entry(&glob("[", "deny")), Ok(())),
        ("depth 1", with_depth("1"), Ok(())),
        ("depth 0", with_depth("0"), Err(depth)),
        ("depth -1", with_depth("-1"), Err(depth)),
        ("depth 1.5", with_depth("1.5"), Err(depth)),
        ("depth null", with_depth("null"), Err(depth)),
    ]);
}

#[test]
fn what_is_read_is_bounded() {
    let entries = vec![ROOT; 8193].join(",");
    let state = with_file_system(&format!(r#"{{"type":"restricted","entries":[{entries}]}}"#));
    let error = State::parse(&state).unwrap_err();
    assert_eq!(
        error.to_string(),
        "permissionProfile.file_system.entries: 8193 entries, at most 8192"
    );
    let entries = vec![ROOT; 8192].join(",");
    let state = with_file_system(&format!(r#"{{"type":"restricted","entries":[{entries}]}}"#));
    assert!(State::parse(&state).is_ok());

    let error = State::parse(&" ".repeat(16 * 1024 * 1024 + 1)).unwrap_err();
    assert_eq!(error.to_string(), "sandbox state is 16777217 bytes, at most 16 MiB");
    let many = with_extra(&format!(r#""x":[{}0]"#, "0,".repeat(100_000)));
    let error = State::parse(&many).unwrap_err();
    assert_eq!(error.to_string(), "more than 100000 values in the sandbox state");
    let deep = with_extra(&format!(r#""x":{}{}"#, "[".repeat(10_000), "]".repeat(10_000)));
    assert!(State::parse(&deep).is_err());
}

#[test]
fn a_readable_root_is_absolute_and_never_overrides_a_deny() {
    let state = State::parse(&with_file_system(&format!(
        r#"{{"type":"restricted","entries":[{},{}]}}"#,
        path("/secret", "deny"),
        path("/work", "write"),
    )));
    let state = state.unwrap();
    let resolve = |roots: &[&str]| {
        let mut context = state.resolve_context();
        context.readable_roots = roots.iter().map(PathBuf::from).collect();
        state.profile.resolve(&context)
    };
    let policy = resolve(&["/secret/inner", "/secret", "/work/src", "/opt/tool", "/"]).unwrap();
    let access = |path: &str| policy.access(path.as_ref());
    assert_eq!(access("/secret/inner/x"), Some(Access::Deny));
    assert_eq!(access("/work/src/x"), Some(Access::Write), "a readable root does not narrow");
    assert_eq!(access("/opt/tool/x"), Some(Access::Read));
    assert_eq!(access("/etc"), Some(Access::Read));
    assert_eq!(policy.ignored.len(), 2, "{:?}", policy.ignored);
    assert!(matches!(resolve(&["opt"]), Err(ResolveError::InvalidPath { .. })));
}

#[test]
fn disable_network_restricts_and_conflicts_with_disabled() {
    let mut context = ResolveContext::new("/tmp");
    context.disable_network = true;
    let parse = |profile: &str| State::parse(&with_profile(profile)).unwrap().profile;
    let external = parse(r#"{"type":"external","network":"enabled"}"#).resolve(&context).unwrap();
    assert_eq!(external.network, plenipo_policy::Network::Restricted);
    assert_eq!(external.access("/etc".as_ref()), Some(Access::Read));
    let disabled = parse(r#"{"type":"disabled"}"#).resolve(&context);
    assert_eq!(disabled, Err(ResolveError::DisableNetworkOfDisabled));
}

/// A whole state with `network` as the profile's and `plenipoNetwork` as given.
fn limited(network: &str, member: &str) -> String {
    format!(
        r#"{{"permissionProfile":{{"type":"external","network":"{network}"}},"sandboxCwd":"file:///w","plenipoNetwork":{member}}}"#
    )
}

#[test]
fn a_limited_network_is_understood_completely_or_refused() {
    let domains = |domains: &str| {
        limited("restricted", &format!(r#"{{"mode":"limited","domains":{domains}}}"#))
    };
    let disabled = limited("x", r#"{"mode":"limited","domains":{}}"#)
        .replace(r#"{"type":"external","network":"x"}"#, r#"{"type":"disabled"}"#);
    check(&[
        ("limited", domains(r#"{"*.example.org":"allow","ads.example.org":"deny"}"#), Ok(())),
        ("limited to nothing", domains("{}"), Ok(())),
        (
            "limited and enabled",
            limited("enabled", r#"{"mode":"limited","domains":{}}"#),
            Err("plenipoNetwork"),
        ),
        ("limited and disabled", disabled, Err("plenipoNetwork")),
        ("no object", limited("restricted", "true"), Err("plenipoNetwork")),
        ("null", limited("restricted", "null"), Err("plenipoNetwork")),
        ("no mode", limited("restricted", r#"{"domains":{}}"#), Err("plenipoNetwork.mode")),
        (
            "another mode",
            limited("restricted", r#"{"mode":"full","domains":{}}"#),
            Err("plenipoNetwork.mode"),
        ),
        (
            "no domains",
            limited("restricted", r#"{"mode":"limited"}"#),
            Err("plenipoNetwork.domains"),
        ),
        ("a list of domains", domains(r#"["a.org"]"#), Err("plenipoNetwork.domains")),
        (
            "an unknown member",
            limited("restricted", r#"{"mode":"limited","domains":{},"methods":["GET"]}"#),
            Err("plenipoNetwork.methods"),
        ),
        ("an unknown word", domains(r#"{"a":"none"}"#), Err("plenipoNetwork.domains.a")),
        ("a pattern", domains(r#"{"*":"allow"}"#), Err(r#"plenipoNetwork.domains["*"]"#)),
        ("twice", domains(r#"{"a":"allow","a":"deny"}"#), Err("plenipoNetwork.domains.a")),
        (
            "too many",
            domains(&format!(
                "{{{}}}",
                (0..1025).map(|n| format!(r#""h{n}.org":"allow""#)).collect::<Vec<_>>().join(",")
            )),
            Err("plenipoNetwork.domains"),
        ),
    ]);
    // Two spellings of one pattern: the stricter counts.
    let state = State::parse(&domains(r#"{"A.org.":"deny","a.org":"allow"}"#)).unwrap();
    assert!(
        state
            .to_json()
            .ends_with(r#""plenipoNetwork":{"mode":"limited","domains":{"a.org":"deny"}}}"#)
    );
    assert!(
        state.to_json().contains(r#""network":"restricted""#),
        "to a launcher that knows nothing of it"
    );
}

#[test]
fn a_limited_network_can_be_disabled_by_the_caller() {
    let state = limited("restricted", r#"{"mode":"limited","domains":{"a.org":"allow"}}"#);
    let state = State::parse(&state).unwrap();
    let mut context = state.resolve_context();
    let policy = state.profile.resolve(&context).unwrap();
    assert!(matches!(policy.network, plenipo_policy::Network::Limited(_)));
    context.disable_network = true;
    let policy = state.profile.resolve(&context).unwrap();
    assert_eq!(policy.network, plenipo_policy::Network::Restricted);
}
