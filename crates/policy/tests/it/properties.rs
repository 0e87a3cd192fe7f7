//! What must hold for every profile.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use plenipo_policy::{
    Access, Entry, EntryPath, FileSystem, FileSystemPolicy, HostAccess, Network, PermissionProfile,
    ResolveContext, RestrictedFileSystem, Special, State,
};
use proptest::option;
use proptest::prelude::*;

/// Paths over few names, so that they meet.
fn paths() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "tmp", "é \"%\\"]), 0..4)
        .prop_map(|parts| format!("/{}", parts.join("/")))
}

fn access() -> impl Strategy<Value = Access> {
    prop::sample::select(vec![Access::Read, Access::Write, Access::Deny])
}

fn entries() -> impl Strategy<Value = Entry> {
    let special = prop_oneof![
        Just(Special::Root),
        Just(Special::Minimal),
        Just(Special::SlashTmp),
        Just(Special::Tmpdir),
        option::of("[a-c]{1,2}(/[a-c]){0,2}").prop_map(|subpath| Special::ProjectRoots { subpath }),
    ];
    let unknown = (":[a-z]{0,3}", option::of("[a-z]{0,3}"), any::<bool>());
    let place = prop_oneof![
        4 => (paths().prop_map(EntryPath::Path), access()),
        2 => (special.prop_map(EntryPath::Special), access()),
        1 => ("/?[a-c*?]{1,3}(/[a-c*?]{1,3}){0,2}".prop_map(EntryPath::Glob), Just(Access::Deny)),
        1 => unknown.prop_map(|(path, subpath, write)| {
            let access = if write { Access::Write } else { Access::Read };
            (EntryPath::Special(Special::Unknown { path, subpath }), access)
        }),
    ];
    (place, any::<bool>()).prop_map(|((path, access), skip)| {
        let entry = Entry::new(path, access);
        if skip { entry.skip_missing() } else { entry }
    })
}

fn profiles() -> impl Strategy<Value = PermissionProfile> {
    let patterns = vec![
        "a.b",
        "*.a.b:22",
        "**.c.org",
        "10.0.0.0/8",
        "[fd00::/8]:443",
        "[::1]",
        "xn--bcher-kva.de",
    ];
    let access = prop::sample::select(vec![HostAccess::Allow, HostAccess::Deny]);
    let hosts =
        prop::collection::vec((prop::sample::select(patterns), access), 0..4).prop_map(|hosts| {
            let hosts =
                hosts.into_iter().filter_map(|(text, access)| Some((text.parse().ok()?, access)));
            Network::Limited(hosts.collect())
        });
    let network = || prop_oneof![Just(Network::Restricted), Just(Network::Enabled), hosts.clone()];
    let restricted = (prop::collection::vec(entries(), 0..12), option::of(1_usize..1000));
    let restricted = restricted.prop_map(|(entries, depth)| {
        let mut restricted = RestrictedFileSystem::new(entries);
        restricted.glob_scan_max_depth = depth.and_then(NonZeroUsize::new);
        FileSystem::Restricted(restricted)
    });
    prop_oneof![
        1 => Just(PermissionProfile::Disabled),
        1 => network().prop_map(|network| PermissionProfile::External { network }),
        8 => (prop_oneof![1 => Just(FileSystem::Unrestricted), 9 => restricted], network())
            .prop_map(|(file_system, network)| PermissionProfile::Managed { file_system, network }),
    ]
}

/// Any directory, in bytes where the system's paths are bytes.
#[cfg(unix)]
fn directories() -> impl Strategy<Value = PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let name = prop::collection::vec(any::<u8>(), 1..6).prop_filter("a name", |name| {
        let drive =
            matches!(name.as_slice(), [letter, b':' | b'|'] if letter.is_ascii_alphabetic());
        !drive && !name.contains(&b'/') && !name.contains(&0) && name != b"." && name != b".."
    });
    prop::collection::vec(name, 0..4).prop_map(|names| {
        let path = [&b"/"[..], &names.join(&b'/')].concat();
        PathBuf::from(std::ffi::OsString::from_vec(path))
    })
}

#[cfg(not(unix))]
fn directories() -> impl Strategy<Value = PathBuf> {
    paths().prop_map(PathBuf::from)
}

/// What one entry says about `path`, by its depth; written without the code under test.
fn says(entry: &Entry, cwd: &Path, tmpdir: Option<&Path>, path: &Path) -> Option<usize> {
    const MINIMAL: [&str; 8] =
        ["/bin", "/sbin", "/usr", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw"];
    let places: Vec<PathBuf> = match &entry.path {
        EntryPath::Path(place) => vec![place.into()],
        EntryPath::Special(Special::Root) => vec!["/".into()],
        EntryPath::Special(Special::SlashTmp) => vec!["/tmp".into()],
        EntryPath::Special(Special::Minimal) => MINIMAL.iter().map(PathBuf::from).collect(),
        EntryPath::Special(Special::Tmpdir) => tmpdir.map(Path::to_path_buf).into_iter().collect(),
        EntryPath::Special(Special::ProjectRoots { subpath }) => {
            vec![subpath.as_ref().map_or(cwd.to_path_buf(), |subpath| cwd.join(subpath))]
        }
        _ => Vec::new(),
    };
    let covering = places.iter().filter(|place| path.starts_with(place));
    covering.map(|place| place.components().count()).max()
}

proptest! {
    #[test]
    fn a_state_survives_being_written_and_parsed(
        profile in profiles(),
        cwd in directories(),
        executable in option::of(".{0,20}"),
        flags in any::<(bool, bool)>(),
    ) {
        let mut state = State::new(profile, cwd);
        state.linux_sandbox_executable = executable;
        (state.legacy_landlock, state.use_mxc) = flags;
        let json = state.to_json();
        let parsed = State::parse(&json);
        prop_assert_eq!(parsed.as_ref(), Ok(&state), "{}", json);
        prop_assert_eq!(parsed.unwrap().to_json(), json);
    }

    #[test]
    fn any_text_is_parsed_or_refused_without_a_panic(text in "[{}\\[\\]\":,a-z0-9\\\\ ]{0,60}") {
        drop(State::parse(&text));
    }

    #[test]
    fn a_state_cut_anywhere_is_refused(profile in profiles(), cut in any::<prop::sample::Index>()) {
        let json = State::new(profile, "/tmp").to_json();
        let end = json.floor_char_boundary(cut.index(json.len()));
        prop_assert!(State::parse(&json[..end]).is_err());
    }

    #[test]
    fn rules_are_sorted_clean_and_one_a_path(profile in profiles()) {
        let policy = profile.resolve(&ResolveContext::new("/a/b")).unwrap();
        if let FileSystemPolicy::Restricted(rules) = policy.file_system {
            let order: Vec<_> =
                rules.iter().map(|rule| (rule.path.components().count(), &rule.path)).collect();
            prop_assert!(order.is_sorted());
            prop_assert!(order.windows(2).all(|pair| pair[0] != pair[1]));
            for rule in &rules {
                let clean: PathBuf = rule.path.components().collect();
                prop_assert_eq!(rule.path.as_os_str(), clean.as_os_str());
                prop_assert!(rule.path.is_absolute());
            }
        }
    }

    /// At every path the policy says exactly what the deepest entry over it says, a deny before a
    /// write before a read. In particular nothing below a deny is granted unless an entry that is
    /// deeper than the deny grants it.
    #[test]
    fn resolving_grants_what_the_profile_says_and_nothing_else(
        profile in profiles(),
        tmpdir in option::of(paths().prop_map(PathBuf::from)),
        probe in paths().prop_map(PathBuf::from),
    ) {
        let cwd = Path::new("/a/b");
        let mut context = ResolveContext::new(cwd);
        context.tmpdir = tmpdir.clone();
        let Ok(policy) = profile.resolve(&context) else { return Ok(()) };
        if let PermissionProfile::Managed { file_system: FileSystem::Restricted(restricted), .. } =
            &profile
        {
            let expected = restricted.entries.iter().filter_map(|entry| {
                Some((says(entry, cwd, tmpdir.as_deref(), &probe)?, entry.access))
            });
            let expected = expected.max().map(|(_, access)| access);
            prop_assert_eq!(policy.access(&probe), expected);
        }
    }

    #[test]
    fn a_readable_root_only_adds_reading_where_there_was_nothing(
        profile in profiles(),
        root in paths().prop_map(PathBuf::from),
        probe in paths().prop_map(PathBuf::from),
    ) {
        let mut context = ResolveContext::new("/a/b");
        let before = profile.resolve(&context).unwrap().access(&probe);
        context.readable_roots = vec![root.clone()];
        let after = profile.resolve(&context).unwrap().access(&probe);
        match before {
            Some(_) => prop_assert_eq!(after, before),
            None if probe.starts_with(&root) => prop_assert_eq!(after, Some(Access::Read)),
            None => prop_assert_eq!(after, None),
        }
    }

    /// A temporary directory from the environment neither opens what the profile denies (but for
    /// a deny of everything) nor changes anything outside itself.
    #[test]
    fn a_temporary_directory_opens_nothing_that_was_denied(
        mut entries in prop::collection::vec(entries(), 1..6),
        access in access(),
        tmpdir in paths().prop_map(PathBuf::from),
        probe in paths().prop_map(PathBuf::from),
    ) {
        entries.push(Entry::new(EntryPath::Special(Special::Tmpdir), access));
        let file_system = FileSystem::Restricted(RestrictedFileSystem::new(entries));
        let profile = PermissionProfile::Managed { file_system, network: Network::Restricted };
        let mut context = ResolveContext::new("/a/b");
        let mut before = profile.resolve(&context).unwrap();
        context.tmpdir = Some(tmpdir.clone());
        let Ok(after) = profile.resolve(&context) else { return Ok(()) };
        if !probe.starts_with(&tmpdir) {
            prop_assert_eq!(after.access(&probe), before.access(&probe));
        }
        if let FileSystemPolicy::Restricted(rules) = &mut before.file_system {
            rules.retain(|rule| rule.path != Path::new("/") || rule.access != Access::Deny);
        }
        if before.access(&probe) == Some(Access::Deny) {
            prop_assert_eq!(after.access(&probe), Some(Access::Deny));
        }
    }
}
