//! `SandboxPolicy::within`, against a slow and plain model of what two policies grant.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use plenipo_policy::{
    Access, DenyGlob, FileSystemPolicy, Missing, Mode, Network, PermissionProfile, ResolveContext,
    Rule, SandboxPolicy, Widening, WorkspaceRoots, parse_permissions,
};
use proptest::prelude::*;

/// Every path of up to three components over two names.
fn universe() -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("/")];
    let mut last = paths.clone();
    for _ in 0..3 {
        last = last.iter().flat_map(|path| ["a", "b"].map(|name| path.join(name))).collect();
        paths.extend(last.iter().cloned());
    }
    paths
}

fn policies() -> impl Strategy<Value = SandboxPolicy> {
    let access = prop::sample::select(vec![Access::Read, Access::Write, Access::Deny]);
    let rule = (prop::sample::select(universe()), access, any::<bool>());
    prop::collection::vec(rule, 0..6).prop_map(|rules| {
        let mut seen = BTreeSet::new();
        let mut rules: Vec<Rule> = rules
            .into_iter()
            .filter(|(path, ..)| seen.insert(path.clone()))
            .map(|(path, access, skip)| {
                let missing = if skip { Missing::Skip } else { Missing::Enforce };
                Rule::new(path, access).with_missing(missing)
            })
            .collect();
        rules.sort_by_key(|rule| rule.path.components().count());
        managed(rules)
    })
}

fn managed(rules: Vec<Rule>) -> SandboxPolicy {
    SandboxPolicy::new(FileSystemPolicy::Restricted(rules), Network::Restricted, "/".into())
}

/// What a policy grants at `path` in a world where only `existing` paths are there.
fn grants(policy: &SandboxPolicy, existing: &BTreeSet<PathBuf>, path: &Path) -> u8 {
    let mut world = policy.clone();
    if let FileSystemPolicy::Restricted(rules) = &mut world.file_system {
        rules.retain(|rule| {
            let gone = rule.missing == Missing::Skip && rule.access != Access::Write;
            !gone || existing.contains(&rule.path)
        });
    }
    match world.access(path) {
        None | Some(Access::Deny) => 0,
        Some(Access::Read) => 1,
        Some(Access::Write) => 2,
    }
}

/// A path exists only below one that does.
fn closed(paths: Vec<PathBuf>) -> BTreeSet<PathBuf> {
    let all: BTreeSet<PathBuf> = paths.into_iter().chain(["/".into()]).collect();
    let whole = |path: &&PathBuf| path.ancestors().all(|above| all.contains(above));
    all.iter().filter(whole).cloned().collect()
}

proptest! {
    #[test]
    fn what_is_within_grants_no_more_in_any_world(
        own in policies(),
        limit in policies(),
        existing in prop::collection::vec(prop::sample::select(universe()), 0..16),
    ) {
        let existing = closed(existing);
        if own.within(&limit).is_ok() {
            for path in universe() {
                let (mine, theirs) = (grants(&own, &existing, &path), grants(&limit, &existing, &path));
                prop_assert!(mine <= theirs, "{path:?} {existing:?}");
            }
        }
    }

    #[test]
    fn what_is_not_within_grants_more_somewhere(own in policies(), limit in policies()) {
        if let Err(Widening::Path { path, .. }) = own.within(&limit) {
            let worlds = (0..=path.components().count()).map(|count| {
                let parts = path.components().take(count);
                closed(parts.scan(PathBuf::new(), |so_far, part| {
                    so_far.push(part);
                    Some(so_far.clone())
                }).collect())
            });
            let more = worlds.into_iter().any(|existing| {
                grants(&own, &existing, &path) > grants(&limit, &existing, &path)
            });
            // Below a writable root of the limit's own, a launcher's protected names decide.
            prop_assert!(more || path.to_string_lossy().contains("/."), "{path:?}");
        }
    }

    #[test]
    fn every_policy_is_within_itself_and_an_empty_one_within_all(own in policies()) {
        prop_assert_eq!(own.within(&own), Ok(()));
        prop_assert_eq!(managed(Vec::new()).within(&own), Ok(()));
    }
}

fn named(config: &str, name: &str) -> SandboxPolicy {
    let roots = WorkspaceRoots::new(Path::new("/work"), None, false).unwrap();
    let tables = parse_permissions(config, "plenipo.toml").unwrap();
    let profile = tables.profile(name, &roots).unwrap();
    let mut context = ResolveContext::new("/work");
    context.tmpdir = Some("/var/tmp/session".into());
    profile.resolve(&context).unwrap()
}

fn of(profile: &str) -> SandboxPolicy {
    named(&format!("[permissions.p]\n{profile}"), "p")
}

/// What `:workspace` finds too wide about a profile.
fn against_workspace(profile: &str) -> String {
    match of(profile).within(&named("", ":workspace")) {
        Ok(()) => "within".to_owned(),
        Err(widening) => widening.to_string(),
    }
}

#[test]
fn profiles_against_the_default() {
    let told: Vec<String> = [
        "extends = \":workspace\"",
        "extends = \":read-only\"",
        "filesystem = { \":minimal\" = \"read\", \"/work/sub\" = \"write\" }",
        "extends = \":workspace\"\nfilesystem = { \"/work/secret\" = \"deny\" }",
        "extends = \":workspace\"\nfilesystem = { \"/home\" = \"write\" }",
        "extends = \":workspace\"\nfilesystem = { \":root\" = \"write\" }",
        "extends = \":workspace\"\nfilesystem = { \"/work/.git\" = \"write\" }",
        "extends = \":workspace\"\nfilesystem = { \"/work/.git/hooks\" = \"write\" }",
        "extends = \":read-only\"\nnetwork = { enabled = true }",
    ]
    .into_iter()
    .map(against_workspace)
    .collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    within
    within
    within
    within
    it grants write at /home, where the limit grants read
    it grants write at /, where the limit grants read
    it grants write at /work/.git, where the limit grants read
    it grants write at /work/.git/hooks, where the limit grants read
    it enables the network, which the limit restricts
    ");
}

#[test]
fn modes_and_whole_file_systems_are_compared() {
    let context = ResolveContext::new("/work");
    let full = PermissionProfile::danger_full_access().resolve(&context).unwrap();
    let read_only = named("", ":read-only");
    assert_eq!(full.within(&read_only), Err(Widening::Mode));
    assert_eq!(read_only.within(&full), Ok(()));
    assert_eq!(full.mode, Mode::Disabled);
    let whole =
        SandboxPolicy::new(FileSystemPolicy::Unrestricted, Network::Restricted, "/work".into());
    assert_eq!(whole.within(&read_only), Err(Widening::WholeFileSystem));
    assert_eq!(read_only.within(&whole), Ok(()));
}

#[test]
fn globs_that_the_limit_denies_are_kept_and_as_deep() {
    let deny = "extends = \":read-only\"\nfilesystem.\"/srv/**/*.key\" = \"deny\"";
    let limit = of(deny);
    assert_eq!(of(deny).within(&limit), Ok(()));
    let without = named("", ":read-only");
    let glob = DenyGlob::new("/srv", "**/*.key");
    let missing = Widening::Glob { base: glob.base.clone(), pattern: glob.pattern.clone() };
    assert_eq!(without.within(&limit), Err(missing.clone()));
    let mut shallow = limit.clone();
    shallow.deny_globs[0].max_depth = NonZeroUsize::new(2);
    assert_eq!(shallow.within(&limit), Err(missing));
    assert_eq!(limit.within(&shallow), Ok(()));
}

#[test]
fn a_limited_network_is_between_none_and_all() {
    let with = |network: &str| of(&format!("extends = \":read-only\"\nnetwork = {network}"));
    let none = named("", ":read-only");
    let all = with("{ enabled = true }");
    let some = with("{ mode = \"limited\", domains = [\"*.example.org\"] }");
    let fewer = with("{ mode = \"limited\", domains = [\"a.example.org\"] }");
    let others = with("{ mode = \"limited\", domains = [\"example.net\"] }");
    let holed = with(
        "{ mode = \"limited\", domains = { \"*.example.org\" = \"allow\", \"a.example.org\" = \"deny\" } }",
    );
    for (own, limit, expected) in [
        (&none, &some, ""),
        (&some, &some, ""),
        (&some, &all, ""),
        (&fewer, &some, ""),
        (&holed, &some, ""),
        (&some, &none, "it enables the network, which the limit restricts"),
        (&all, &some, "it enables the network, which the limit restricts"),
        (&some, &fewer, "it allows the host *.example.org, which the limit does not allow"),
        (&others, &some, "it allows the host example.net, which the limit does not allow"),
        (&some, &holed, "it does not deny the host a.example.org, which the limit denies"),
        (&fewer, &holed, "it does not deny the host a.example.org, which the limit denies"),
    ] {
        let found =
            own.within(limit).map_or_else(|widening| widening.to_string(), |()| String::new());
        assert_eq!(found, expected);
    }
}
