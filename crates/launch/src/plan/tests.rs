//! Plans of typical trees, and what must hold for all of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use plenipo_policy::{FileSystemPolicy, Network, Rule, SandboxPolicy};
use proptest::prelude::*;

use super::*;
use crate::tree::Source;

fn tree<'a>(rules: impl IntoIterator<Item = (&'a str, Access)>) -> GrantTree {
    let mut tree = GrantTree::default();
    for (path, access) in rules {
        let kind =
            if path.contains('.') && !path.contains("/.") { Kind::File } else { Kind::Directory };
        let (source, origin) = (Source::Profile, String::new());
        let (identity, temporary) = (None, false);
        tree.add(path.into(), Grant { access, kind, identity, source, origin, temporary });
    }
    tree
}

fn shown(plan: &LaunchPlan) -> String {
    let mut text = format!("base {:?}\n", plan.base);
    let opening = |opening: &Opening| match opening {
        Opening::MountPoint { relative, kind } => format!("{} ({kind:?})", relative.display()),
        Opening::Link { relative, text } => format!("{} -> {}", relative.display(), text.display()),
    };
    for place in &plan.root_openings {
        writeln!(text, "root opening {}", opening(place)).unwrap();
    }
    for path in &plan.pins {
        writeln!(text, "pin {}", path.display()).unwrap();
    }
    for cover in &plan.covers {
        let action = match &cover.action {
            Action::Show { read_only: true } => "read-only".to_owned(),
            Action::Show { read_only: false } => "writable".to_owned(),
            Action::Mask { openings } => {
                let openings: Vec<String> = openings.iter().map(opening).collect();
                format!("mask [{}]", openings.join(", "))
            }
        };
        writeln!(text, "cover {} {:?} {action}", cover.path.display(), cover.kind).unwrap();
    }
    writeln!(text, "landlock write {:?}\nlandlock read {:?}", plan.writable, plan.readable)
        .unwrap();
    write!(text, "cwd {}", plan.cwd.display()).unwrap();
    text
}

/// The plan of these rules, for what is made of plans.
pub(crate) fn planned<'a>(rules: impl IntoIterator<Item = (&'a str, Access)>) -> LaunchPlan {
    plan(&tree(rules), &[("/link".into(), "ws".into())], Path::new("/ws"))
}

fn plan_of<'a>(rules: impl IntoIterator<Item = (&'a str, Access)>) -> String {
    shown(&plan(&tree(rules), &[], Path::new("/ws")))
}

use Access::{Deny, Read, Write as Writable};

#[test]
fn read_only() {
    insta::assert_snapshot!(plan_of([("/", Read)]));
}

#[test]
fn workspace_with_protected_names() {
    let names = [("/home/u/ws/.git", Read), ("/home/u/ws/.codex", Read)];
    let rules = [("/", Read), ("/home/u/ws", Writable), ("/tmp", Writable)];
    insta::assert_snapshot!(plan_of(rules.into_iter().chain(names)));
}

#[test]
fn deep_carve_out_pins_its_ancestors() {
    let rules = [
        ("/", Read),
        ("/ws", Writable),
        ("/ws/a/b/kept", Read),
        ("/ws/a/b/kept/open", Writable),
        ("/ws/a/c/secret", Deny),
    ];
    insta::assert_snapshot!(plan_of(rules));
}

#[test]
fn grants_inside_a_mask_get_openings() {
    let rules = [
        ("/", Read),
        ("/out", Deny),
        ("/out/deep/dir", Writable),
        ("/out/log.txt", Writable),
        ("/out/deep/dir/hidden", Deny),
    ];
    insta::assert_snapshot!(plan_of(rules));
}

#[test]
fn writable_root_directory() {
    insta::assert_snapshot!(plan_of([("/", Writable), ("/home/u/.config", Read), ("/srv", Deny)]));
}

#[test]
fn nothing_readable_but_a_few_places() {
    let tree = tree([("/usr", Read), ("/etc", Read), ("/home/u/ws", Writable)]);
    let links = [("/bin".into(), "usr/bin".into()), ("/usr/tmp".into(), "../var/tmp".into())];
    insta::assert_snapshot!(shown(&plan(&tree, &links, Path::new("/home/u/ws"))));
}

/// What the covers, attached one after the other, make of a path. Written without looking at rules.
pub(crate) fn in_force(plan: &LaunchPlan, path: &Path) -> Option<Access> {
    let mut access = match plan.base {
        Base::Readable => Some(Read),
        Base::Writable => Some(Writable),
        Base::Empty => None,
    };
    for cover in plan.covers.iter().filter(|cover| path.starts_with(&cover.path)) {
        access = match &cover.action {
            Action::Show { read_only: true } => Some(Read),
            Action::Show { read_only: false } => Some(Writable),
            Action::Mask { .. } => None,
        };
    }
    access
}

/// Where the mount on `cover` stands: on a real directory of what is below it, or on an opening.
fn has_ground(plan: &LaunchPlan, cover: &Cover) -> bool {
    let below = plan
        .covers
        .iter()
        .rev()
        .find(|other| cover.path != other.path && cover.path.starts_with(&other.path));
    let (openings, top) = match below.map(|below| (&below.action, &below.path)) {
        Some((Action::Show { .. }, _)) => return true,
        Some((Action::Mask { openings }, path)) => (openings, path.as_path()),
        None if plan.base != Base::Empty => return true,
        None => (&plan.root_openings, Path::new("/")),
    };
    openings.iter().any(|opening| {
        matches!(opening, Opening::MountPoint { relative, .. } if top.join(relative) == cover.path)
    })
}

fn path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..5)
        .prop_map(|names| names.iter().fold(PathBuf::from("/"), |path, name| path.join(name)))
}

fn rules() -> impl Strategy<Value = BTreeMap<PathBuf, Access>> {
    let access = prop::sample::select(vec![Read, Writable, Deny]);
    prop::collection::btree_map(path(), access, 0..12)
}

fn both(rules: &BTreeMap<PathBuf, Access>) -> (SandboxPolicy, GrantTree) {
    let listed = rules.iter().map(|(path, access)| Rule::new(path, *access)).collect();
    let files = FileSystemPolicy::Restricted(listed);
    let policy = SandboxPolicy::new(files, Network::Restricted, "/".into());
    let texts = rules.iter().map(|(path, access)| (path.to_str().unwrap(), *access));
    (policy, tree(texts))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn covers_grant_exactly_what_the_policy_says(rules in rules(), paths in prop::collection::vec(path(), 1..40)) {
        let (policy, tree) = both(&rules);
        let plan = plan(&tree, &[], Path::new("/"));
        for path in paths {
            let wanted = policy.access(&path).filter(|access| *access != Deny);
            prop_assert_eq!(in_force(&plan, &path), wanted, "{} under {:?}", path.display(), rules);
        }
    }

    #[test]
    fn landlock_never_allows_writing_beyond_the_writable_roots_nor_forbids_what_is_granted(
        rules in rules(), paths in prop::collection::vec(path(), 1..40)
    ) {
        let (policy, tree) = both(&rules);
        let plan = plan(&tree, &[], Path::new("/"));
        for path in paths {
            let above = |list: &[PathBuf]| list.iter().any(|root| path.starts_with(root));
            match policy.access(&path) {
                Some(Writable) => prop_assert!(above(&plan.writable)),
                Some(Read) => prop_assert!(above(&plan.readable) || above(&plan.writable)),
                _ => {}
            }
            let writable_somewhere = path.ancestors().any(|a| policy.access(a) == Some(Writable));
            prop_assert!(writable_somewhere || !above(&plan.writable));
        }
    }

    #[test]
    fn every_cover_stands_on_something_and_cannot_be_moved(rules in rules()) {
        let (_, tree) = both(&rules);
        let plan = plan(&tree, &[], Path::new("/"));
        for cover in &plan.covers {
            prop_assert!(has_ground(&plan, cover), "{} in {}", cover.path.display(), shown(&plan));
            for ancestor in cover.path.ancestors().skip(1) {
                let Some(above) = ancestor.parent() else { continue };
                // Renaming `ancestor` needs both it and its parent on writable mounts, and no mount on it.
                let movable = in_force(&plan, above) == Some(Writable)
                    && in_force(&plan, ancestor) == Some(Writable);
                let mounted = plan.pins.iter().any(|pin| pin == ancestor)
                    || plan.covers.iter().any(|other| other.path == ancestor);
                prop_assert!(!movable || mounted, "{} of {}", ancestor.display(), cover.path.display());
            }
        }
    }

    #[test]
    fn parents_come_before_what_is_below_them(rules in rules()) {
        let (_, tree) = both(&rules);
        let plan = plan(&tree, &[], Path::new("/"));
        for (index, cover) in plan.covers.iter().enumerate() {
            let later = &plan.covers[index + 1..];
            prop_assert!(later.iter().all(|other| !cover.path.starts_with(&other.path)));
        }
    }
}
