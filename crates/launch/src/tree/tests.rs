use plenipo_policy::Access::{Deny, Read, Write};
use proptest::prelude::*;

use super::*;

fn grant(access: Access, source: Source) -> Grant {
    let origin = String::new();
    Grant { access, kind: Kind::Directory, identity: None, source, origin, temporary: false }
}

#[test]
fn at_one_path_deny_beats_write_beats_read_in_any_order() {
    for order in [[Read, Write, Deny], [Deny, Write, Read], [Write, Deny, Read]] {
        let mut tree = GrantTree::default();
        for access in order {
            tree.add("/a".into(), grant(access, Source::Profile));
        }
        assert_eq!(tree.access(Path::new("/a/b")), Some(Deny));
    }
}

#[test]
fn the_enforcer_beats_everything_at_its_path_and_below() {
    let mut tree = GrantTree::default();
    tree.add("/a".into(), grant(Read, Source::Enforcer));
    tree.add("/a".into(), grant(Write, Source::Profile));
    tree.add("/a/b".into(), grant(Write, Source::Profile));
    tree.add("/ab".into(), grant(Write, Source::Profile));
    tree.narrow_below_enforcer();
    assert_eq!(tree.access(Path::new("/a")), Some(Read));
    assert_eq!(tree.access(Path::new("/a/b/c")), Some(Read));
    assert_eq!(tree.access(Path::new("/ab")), Some(Write));
}

#[test]
fn a_rule_that_changes_nothing_is_not_a_change() {
    let mut tree = GrantTree::default();
    tree.add("/a".into(), grant(Deny, Source::Profile));
    tree.add("/b".into(), grant(Write, Source::Profile));
    tree.add("/b/c".into(), grant(Write, Source::Profile));
    let changes: Vec<&Path> = tree.changes().map(|(path, _)| path).collect();
    assert_eq!(changes, [Path::new("/b")]);
}

fn path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(prop::sample::select(vec!["a", "b"]), 0..5)
        .prop_map(|names| names.iter().fold(PathBuf::from("/"), |path, name| path.join(name)))
}

fn source() -> impl Strategy<Value = Source> {
    prop::sample::select(vec![Source::Profile, Source::ProtectedName, Source::Enforcer])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The order in which rules are found must not matter.
    #[test]
    fn no_order_of_adding_grants_more(
        mut rules in prop::collection::vec((path(), prop::sample::select(vec![Read, Write, Deny]), source()), 0..10),
        looked_at in path(),
    ) {
        let build = |rules: &[(PathBuf, Access, Source)]| {
            let mut tree = GrantTree::default();
            for (path, access, source) in rules {
                tree.add(path.clone(), grant(*access, *source));
            }
            tree.narrow_below_enforcer();
            tree.access(&looked_at)
        };
        let forwards = build(&rules);
        rules.reverse();
        prop_assert_eq!(forwards, build(&rules));
    }

    /// Going through all of them at once is the same as asking for each.
    #[test]
    fn what_changes_something_is_a_change(
        rules in prop::collection::vec((path(), prop::sample::select(vec![Read, Write, Deny])), 0..10),
    ) {
        let mut tree = GrantTree::default();
        for (path, access) in rules {
            tree.add(path, grant(access, Source::Profile));
        }
        let one_by_one: Vec<&Path> =
            tree.iter().map(|(path, _)| path).filter(|path| tree.is_change(path)).collect();
        let changes: Vec<&Path> = tree.changes().map(|(path, _)| path).collect();
        prop_assert_eq!(changes, one_by_one);
    }

    /// Whatever a profile says at or below the enforcer's place, its own rule holds there.
    #[test]
    fn nothing_opens_what_the_enforcer_keeps(
        rules in prop::collection::vec((path(), prop::sample::select(vec![Read, Write, Deny])), 0..10),
        kept in path(),
        below in path(),
    ) {
        let mut tree = GrantTree::default();
        for (path, access) in rules {
            tree.add(path, grant(access, Source::Profile));
        }
        tree.add(kept.clone(), grant(Deny, Source::Enforcer));
        tree.narrow_below_enforcer();
        let inside = kept.join(below.strip_prefix("/").unwrap());
        prop_assert_eq!(tree.access(&inside), Some(Deny));
    }
}

#[test]
fn paths_compare_as_the_standard_library_says() {
    let names = ["a", "a-b", "a b", "ab", "a.b", "\u{1}", "\u{e9}", "b"];
    let mut paths = vec![PathBuf::from("/")];
    for _ in 0..2 {
        let longer: Vec<PathBuf> =
            paths.iter().flat_map(|path| names.map(|name| path.join(name))).collect();
        paths.extend(longer);
    }
    for one in &paths {
        for other in &paths {
            assert_eq!(is_at_or_below(one, other), one.starts_with(other), "{one:?} {other:?}");
            assert_eq!(key(one).cmp(&key(other)), one.cmp(other), "{one:?} {other:?}");
        }
    }
}
