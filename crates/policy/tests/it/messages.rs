//! What a person reads when a state, a profile or a table is refused.

use std::path::Path;

use plenipo_policy::{
    Network, PermissionProfile, ResolveContext, State, WorkspaceRoots, parse_permissions,
};

fn state_messages(states: &[&str]) -> String {
    let messages: Vec<String> =
        states.iter().map(|json| State::parse(json).unwrap_err().to_string()).collect();
    messages.join("\n")
}

fn managed(entry: &str) -> String {
    format!(
        r#"{{"permissionProfile":{{"type":"managed","file_system":{{"type":"restricted","entries":[{entry}]}},"network":"restricted"}},"sandboxCwd":"file:///tmp"}}"#
    )
}

#[test]
fn a_refused_state_names_the_member_what_was_expected_and_what_was_found() {
    let outer = [
        "",
        "null",
        "{} {}",
        r#"{"sandboxCwd":"file:///tmp"}"#,
        r#"{"permissionProfile":{"type":"disabled","extra":1},"sandboxCwd":"file:///tmp"}"#,
        r#"{"permissionProfile":{"type":"off"},"sandboxCwd":"file:///tmp"}"#,
        r#"{"permissionProfile":{"type":"disabled"},"sandboxCwd":"/tmp"}"#,
        r#"{"permissionProfile":{"type":"disabled"},"sandboxCwd":"file://otherhost/tmp"}"#,
        r#"{"permissionProfile":{"type":"disabled"},"sandboxCwd":"file:///a%2Fb"}"#,
        r#"{"permissionProfile":{"type":"disabled"},"sandboxCwd":"file:///","useMxc":"no"}"#,
        r#"{"odd key":{"a":1,"a":2}}"#,
    ];
    insta::assert_snapshot!(state_messages(&outer), @r#"
    expected one JSON object: EOF while parsing a value at line 1 column 0
    expected an object, found null
    expected one JSON object: trailing characters at line 1 column 4
    permissionProfile: this member is missing
    permissionProfile.extra: unknown member (it may restrict something)
    permissionProfile.type: expected one of disabled, external, managed, found "off"
    sandboxCwd: expected an absolute percent-encoded file URI such as "file:///srv/project", found "/tmp"
    sandboxCwd: expected an absolute percent-encoded file URI such as "file:///srv/project", found "file://otherhost/tmp" (a path on another host)
    sandboxCwd: expected an absolute percent-encoded file URI such as "file:///srv/project", found "file:///a%2Fb" (an encoded `/`)
    useMxc: expected a boolean, found "no"
    ["odd key"].a: this key is given twice
    "#);
    let entries = [
        managed(r#"{"path":{"type":"path","path":"/a"},"access":"execute"}"#),
        managed(r#"{"path":{"type":"path","path":"a"},"access":"read"}"#),
        managed(r#"{"path":{"type":"path","path":"/a/../b"},"access":"read"}"#),
        managed(r#"{"path":{"type":"glob_pattern","pattern":"*"},"access":"write"}"#),
        managed(r#"{"path":{"type":"special","value":{"kind":"home"}},"access":"read"}"#),
        managed(
            r#"{"path":{"type":"special","value":{"kind":"unknown","path":":new"}},"access":"deny"}"#,
        ),
        managed(
            r#"{"path":{"type":"path","path":"/a"},"access":"read","missing_path_behavior":"create"}"#,
        ),
        managed(r#"{"access":"read"}"#),
    ];
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    insta::assert_snapshot!(state_messages(&entries), @r#"
    permissionProfile.file_system.entries[0].access: expected one of read, write, deny, found "execute"
    permissionProfile.file_system.entries[0].path.path: must be an absolute path, found "a"
    permissionProfile.file_system.entries[0].path.path: must not contain a `..` component, found "/a/../b"
    permissionProfile.file_system.entries[0].access: expected deny for a glob_pattern, found "write"
    permissionProfile.file_system.entries[0].path.value.kind: expected one of root, minimal, project_roots, tmpdir, slash_tmp, unknown, found "home"
    permissionProfile.file_system.entries[0].path: cannot deny the unknown special path ":new"
    permissionProfile.file_system.entries[0].missing_path_behavior: expected skip, found "create"
    permissionProfile.file_system.entries[0].path: this member is missing
    "#);
}

#[test]
fn a_temporary_directory_that_reaches_further_is_refused() {
    let roots = WorkspaceRoots::new(Path::new("/home/dev/ws"), None, true).unwrap();
    let tables = parse_permissions("", "plenipo.toml").unwrap();
    let profile = tables.profile(":workspace", &roots).unwrap();
    let refusal = |tmpdir: &str| {
        let mut context = ResolveContext::new("/home/dev/ws");
        context.tmpdir = Some(tmpdir.into());
        context.home = Some("/home/dev".into());
        match profile.resolve(&context) {
            Ok(_) => format!("{tmpdir} is fine"),
            Err(error) => error.to_string(),
        }
    };
    let directories = [
        "/tmp",
        "/tmp/session",
        "/var/tmp",
        "/home/dev/ws/tmp",
        "/home/dev/ws",
        "/",
        "/home",
        "/home/dev",
        "/home/dev/ws/.git",
        "/home/dev/ws/.git/hooks",
        "tmp",
        "/tmp/../etc",
    ];
    let messages: Vec<String> = directories.into_iter().map(refusal).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    /tmp is fine
    /tmp/session is fine
    /var/tmp is fine
    /home/dev/ws/tmp is fine
    entries[3]: TMPDIR "/home/dev/ws" equals or contains the working directory ("/home/dev/ws")
    entries[3]: TMPDIR "/" equals or contains HOME ("/home/dev")
    entries[3]: TMPDIR "/home" equals or contains HOME ("/home/dev")
    entries[3]: TMPDIR "/home/dev" equals or contains HOME ("/home/dev")
    entries[3]: TMPDIR "/home/dev/ws/.git" equals or contains entries[4] ("/home/dev/ws/.git")
    entries[3]: TMPDIR "/home/dev/ws/.git/hooks" is inside "/home/dev/ws/.git", which entries[4] protects
    TMPDIR: path "tmp" must be an absolute path
    TMPDIR: path "/tmp/../etc" must not contain a `..` component
    "#);
}

#[test]
fn a_refused_table_names_file_line_key_and_the_nearest_known_key() {
    let message = |text: &str| {
        let error = parse_permissions(text, "plenipo.toml").unwrap_err();
        match error.hint() {
            Some(hint) => format!("{error}\n  hint: {hint}"),
            None => error.to_string(),
        }
    };
    let texts = [
        "[permissions",
        "permissions = 3",
        "[permissions.\":mine\"]",
        "\n[permissions.a]\nextend = \":workspace\"",
        "[permissions.a.filesystem]\n\":workspace_root\" = \"write\"",
        "[permissions.a.filesystem]\n\"~/x\" = \"execute\"",
        "[permissions.a.filesystem]\n\"~other/x\" = \"read\"",
        "[permissions.a.filesystem]\n\"x/../y\" = \"read\"",
        "[permissions.a.filesystem]\n\"/x/../y\" = \"read\"",
        "[permissions.a.filesystem]\n\"/x\" = true",
        "[permissions.a.filesystem]\nglob_scan_max_dept = 3",
        "[permissions.a.filesystem]\nglob_scan_max_depth = 0",
        "[permissions.a.filesystem.\":minimal\"]\n\".\" = \"read\"",
        "[permissions.a.filesystem.\":workspace_roots\"]\n\"/abs\" = \"read\"",
        "[permissions.a]\nnetwork = { enable = true }",
        "[permissions.a]\nnetwork = { enabled = \"yes\" }",
    ];
    let messages: Vec<String> = texts.into_iter().map(message).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    plenipo.toml:1: unclosed table, expected `]`
    plenipo.toml:1: permissions: expected a table, found 3
    plenipo.toml:1: permissions.":mine": names that start with `:` are built in and cannot be redefined
    plenipo.toml:3: permissions.a.extend: unknown key
      hint: did you mean `extends`?
    plenipo.toml:2: permissions.a.filesystem.":workspace_root": unknown key
      hint: did you mean `:workspace_roots`?
    plenipo.toml:2: permissions.a.filesystem."~/x": expected one of read, write, deny, found "execute"
    plenipo.toml:2: permissions.a.filesystem."~other/x": must be an absolute path, start with `~/`, or be a special path, found "~other/x"
    plenipo.toml:2: permissions.a.filesystem."x/../y": must be an absolute path, start with `~/`, or be a special path, found "x/../y"
    plenipo.toml:2: permissions.a.filesystem."/x/../y": must not contain a `..` component, found "/x/../y"
    plenipo.toml:2: permissions.a.filesystem."/x": expected a string, found true
    plenipo.toml:2: permissions.a.filesystem.glob_scan_max_dept: unknown key
      hint: did you mean `glob_scan_max_depth`?
    plenipo.toml:2: permissions.a.filesystem.glob_scan_max_depth: expected a whole number of at least 1, found 0
    plenipo.toml:1: permissions.a.filesystem.":minimal": expected one access word: only `:workspace_roots` and plain paths can hold a table of paths below them
    plenipo.toml:2: permissions.a.filesystem.":workspace_roots"."/abs": must be a relative path, found "/abs"
    plenipo.toml:2: permissions.a.network.enable: unknown key
      hint: did you mean `enabled`?
    plenipo.toml:2: permissions.a.network.enabled: expected a boolean, found "yes"
    "#);
}

#[test]
fn a_profile_that_cannot_be_used_says_why() {
    let text = r#"
        [permissions.web]
        network = { enabled = true, domains = { "example.com" = "allow" } }
        [permissions.web-child]
        extends = "web"
        [permissions.rooted]
        workspace_roots = { "~/code" = true }
        [permissions.one]
        extends = "two"
        [permissions.two]
        extends = "one"
        [permissions.orphan]
        extends = ":workspaces"
        [permissions.free]
        extends = ":danger-full-access"
        [permissions.globbing]
        filesystem = { "/srv/*.db" = "write" }
        [permissions.homely]
        filesystem = { "~/x" = "read" }
    "#;
    let tables = parse_permissions(text, "plenipo.toml").unwrap();
    let roots = WorkspaceRoots::new(Path::new("/home/dev/ws"), None, false).unwrap();
    let message = |name: &str| {
        let error = tables.profile(name, &roots).unwrap_err();
        let hint = error.hint().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
        format!("{error}{hint}")
    };
    let names = [
        "web",
        "web-child",
        "rooted",
        "one",
        "orphan",
        "free",
        "globbing",
        "homely",
        "webb",
        ":readonly",
        "x",
    ];
    insta::assert_snapshot!(names.map(message).join("\n"), @r#"
    plenipo.toml:3: permissions.web.network.domains: only a limited network can be held to domains, and `mode` is not set
      hint: set mode = "limited" in the same table, or take `domains` out
    plenipo.toml:3: permissions.web.network.domains: only a limited network can be held to domains, and `mode` is not set
      hint: set mode = "limited" in the same table, or take `domains` out
    plenipo.toml:7: permissions.rooted.workspace_roots: recognised but not supported yet, so this profile cannot be used
    plenipo.toml:11: permissions.two.extends: circle: one → two → one
    plenipo.toml:13: permissions.orphan.extends: no permission profile is called ":workspaces"
      hint: did you mean `:workspace`?
    plenipo.toml:15: permissions.free.extends: `:danger-full-access` cannot be extended: it has no rules
    plenipo.toml:17: permissions.globbing.filesystem."/srv/*.db": a glob can only be denied, found "write"
      hint: name a path, or end it with `/**` for everything below a directory
    plenipo.toml:19: permissions.homely.filesystem."~/x": the home directory is not known or not UTF-8, so `~` means nothing
    no permission profile is called "webb"
      hint: did you mean `web`?
    no permission profile is called ":readonly"
      hint: did you mean `:read-only`?
    no permission profile is called "x"
      hint: known profiles: :read-only, :workspace, :danger-full-access, free, globbing, homely, one, orphan, rooted, two, web, web-child
    "#);
}

#[test]
fn domains_without_a_limited_network_are_a_fault_of_their_own() {
    let roots = WorkspaceRoots::new(Path::new("/home/dev/ws"), None, false).unwrap();
    let said = |table: &str| {
        let text = format!(
            "[permissions.base]\nextends = \":workspace\"\n[permissions.base.network]\nmode = \"limited\"\n\
             [permissions.a]\n{table}"
        );
        let tables = parse_permissions(&text, "plenipo.toml").unwrap();
        let faults: Vec<String> = tables.faults().map(|fault| fault.to_string()).collect();
        let used = tables.profile("a", &roots).err().map(|error| error.to_string());
        assert_eq!(faults.first(), used.as_ref(), "{table}");
        format!("{table}\n  {}", used.unwrap_or_else(|| "fine".to_owned()))
    };
    let lines = [
        "network = { domains = [\"a.org\"] }",
        "network = { enabled = true, domains = [\"a.org\"] }",
        "network = { enabled = false, domains = [\"a.org\"] }",
        "network = { mode = \"full\", domains = [\"a.org\"] }",
        "network = { enabled = true, mode = \"full\", domains = { \"a.org\" = \"deny\" } }",
        "network = { mode = \"full\", domains = [] }",
        "network = { mode = \"limited\", domains = [\"a.org\"] }",
        "extends = \"base\"\nnetwork = { domains = [\"a.org\"] }",
        "extends = \"base\"\nnetwork = { enabled = false }",
    ];
    insta::assert_snapshot!(lines.map(said).join("\n"));
}

#[test]
fn a_workspace_is_never_the_root_and_the_home_directory_only_when_named() {
    let tables = parse_permissions(
        "[permissions.mine]\nextends = \":workspace\"\n[permissions.look]\nextends = \":read-only\"",
        "plenipo.toml",
    );
    let tables = tables.unwrap();
    let attempt = |path: &str, explicit: bool, name: &str| {
        let roots =
            WorkspaceRoots::new(Path::new(path), Some(Path::new("/home/dev")), explicit).unwrap();
        match tables.profile(name, &roots) {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        }
    };
    let mut lines = Vec::new();
    for path in ["/", "/home", "/home/dev", "/home/dev/ws", "/home/devil"] {
        for explicit in [false, true] {
            for name in [":workspace", "mine", ":read-only", "look"] {
                let outcome = attempt(path, explicit, name);
                lines.push(format!("{path} {explicit} {name}: {outcome}"));
            }
        }
    }
    let refused: Vec<String> = lines.into_iter().filter(|line| !line.ends_with("fine")).collect();
    insta::assert_snapshot!(refused.join("\n"), @r#"
    / false :workspace: workspace root: the whole file system cannot be a workspace
    / false mine: workspace root: the whole file system cannot be a workspace
    / true :workspace: workspace root: the whole file system cannot be a workspace
    / true mine: workspace root: the whole file system cannot be a workspace
    /home false :workspace: workspace root: "/home" covers the home directory
    /home false mine: workspace root: "/home" covers the home directory
    /home/dev false :workspace: workspace root: "/home/dev" covers the home directory
    /home/dev false mine: workspace root: "/home/dev" covers the home directory
    "#);
}

#[test]
fn what_a_network_table_means() {
    let text = r#"
        [permissions.listed.network]
        mode = "limited"
        domains = ["Example.org", "*.example.net:8443"]
        [permissions.table.network]
        enabled = true
        mode = "limited"
        domains = { "*.example.org" = "allow", "ads.example.org" = "deny" }
        [permissions.nothing.network]
        mode = "limited"
        [permissions.child]
        extends = "table"
        network = { domains = { "ads.example.org" = "allow", "more.example" = "allow" } }
        [permissions.off]
        extends = "table"
        network = { enabled = false }
        [permissions.on-again]
        extends = "off"
        network = { mode = "limited" }
        [permissions.full]
        network = { enabled = true, mode = "full" }
        [permissions.only-mode]
        network = { mode = "full" }
        [permissions.unlimited]
        extends = "table"
        network = { mode = "full", enabled = true }
    "#;
    let tables = parse_permissions(text, "plenipo.toml").unwrap();
    let roots = WorkspaceRoots::new(Path::new("/home/dev/ws"), None, false).unwrap();
    let meaning = |name: &str| match tables.profile(name, &roots) {
        Ok(PermissionProfile::Managed { network: Network::Limited(hosts), .. }) => {
            let hosts = hosts.iter().map(|(host, access)| format!("{} {host}", access.as_str()));
            format!("{name}: limited, {}", hosts.collect::<Vec<_>>().join(", "))
        }
        Ok(PermissionProfile::Managed { network, .. }) => format!("{name}: {}", network.as_str()),
        other => format!("{name}: {other:?}"),
    };
    let names = ["listed", "table", "nothing", "child", "off", "on-again", "full", "only-mode"];
    insta::assert_snapshot!(names.map(meaning).join("\n"), @r"
    listed: limited, allow example.org, allow *.example.net:8443
    table: limited, deny ads.example.org, allow *.example.org
    nothing: limited, 
    child: limited, allow ads.example.org, allow more.example, allow *.example.org
    off: restricted
    on-again: limited, deny ads.example.org, allow *.example.org
    full: enabled
    only-mode: restricted
    ");
    let error = tables.profile("unlimited", &roots).unwrap_err();
    insta::assert_snapshot!(error, @"plenipo.toml:8: permissions.table.network.domains: only a limited network can be held to domains, and `mode` is full");
    let wrong = [
        "mode = \"open\"",
        "mode = true",
        "domains = \"a.org\"",
        "domains = [1]",
        "domains = [\"*\"]",
        "domains = [\"**.org\"]",
        "domains = [\"0.0.0.0/1\", \"128.0.0.0/1\"]",
        "domains = { \"https://a.org\" = \"allow\" }",
        "domains = { \"a.org\" = \"read\" }",
        "domain = []",
    ];
    let refused = wrong.map(|line| {
        let text = format!("[permissions.a.network]\n{line}\n");
        parse_permissions(&text, "plenipo.toml").unwrap_err().to_string()
    });
    insta::assert_snapshot!(refused.join("\n"), @r#"
    plenipo.toml:2: permissions.a.network.mode: expected one of limited, full, found "open"
    plenipo.toml:2: permissions.a.network.mode: expected a string, found true
    plenipo.toml:2: permissions.a.network.domains: expected a table or an array of domains, found "a.org"
    plenipo.toml:2: permissions.a.network.domains: expected a string, found 1
    plenipo.toml:2: permissions.a.network.domains: must have `*` only as `*.NAME` (all below NAME) or `**.NAME` (NAME, too), found "*"
    plenipo.toml:2: permissions.a.network.domains: must have at least two labels after the `*`, as in `*.example.org`, to be allowed, found "**.org"
    plenipo.toml:2: permissions.a.network.domains: must have a prefix length of at least 8 (IPv6: 16, private ranges excepted) to be allowed, found "0.0.0.0/1"
    plenipo.toml:2: permissions.a.network.domains."https://a.org": must be a host, not a URL, found "https://a.org"
    plenipo.toml:2: permissions.a.network.domains."a.org": expected one of allow, deny, found "read"
    plenipo.toml:2: permissions.a.network.domain: unknown key
    "#);
}
