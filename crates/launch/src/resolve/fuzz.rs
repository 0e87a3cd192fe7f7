//! Any profile on any directory tree: no plan grants what the profile denies, by a model that knows nothing of walks, trees
//! of grants or covers: it asks the kernel where a path leads, and takes the longest rule.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use plenipo_policy::{Access, DenyGlob, FileSystemPolicy, Network, Rule, SandboxPolicy};
use plenipo_testkit::{Choices, Fuzz};

use super::resolve;
use crate::plan::plan;
use crate::plan::tests::in_force;
use crate::protections::{PROJECT_CONFIGURATIONS, PROTECTED_NAMES, Protections};

const NAMES: [&str; 8] = ["a", "b", "c", "d", ".git", "x.env", "plenipo.toml", ".codex"];
/// Contents of files, for what reads some of them.
const TEXTS: [&str; 4] = ["", "gitdir: ../a\n", "gitdir: b/c\n", "[core]\nhooksPath = b\n"];

/// A place below `top`, there or not.
fn place(choices: &mut Choices<'_>, top: &Path) -> PathBuf {
    let depth = choices.below(4);
    (0..depth).fold(top.to_path_buf(), |path, _| path.join(NAMES[choices.below(NAMES.len())]))
}

/// Whether making something at `path` makes it in `top`: links may lead to wherever the test runs.
fn stays_in(path: &Path, top: &Path) -> bool {
    let there = path.ancestors().skip(1).find_map(|above| std::fs::canonicalize(above).ok());
    !path.is_symlink() && there.is_some_and(|there| there.starts_with(top))
}

/// Makes directories, files and links; what cannot be made is left out.
fn grow(choices: &mut Choices<'_>, top: &Path) {
    for _ in 0..choices.below(24) {
        let path = place(choices, top);
        let made = match choices.below(5) {
            _ if !stays_in(&path, top) => continue,
            0..2 => std::fs::create_dir_all(&path),
            2 => std::fs::write(&path, TEXTS[choices.below(TEXTS.len())]),
            3 => symlink(place(choices, top), &path),
            _ => symlink(place(choices, Path::new("..")), &path),
        };
        made.unwrap_or(());
    }
}

fn policy(choices: &mut Choices<'_>, top: &Path) -> SandboxPolicy {
    const ACCESS: [Access; 3] = [Access::Write, Access::Read, Access::Deny];
    let mut rules = Vec::new();
    if choices.below(4) > 0 {
        rules.push(Rule::new("/", Access::Read));
    }
    rules.push(Rule::new(top, ACCESS[choices.below(2)]));
    for _ in 0..choices.below(8) {
        rules.push(Rule::new(place(choices, top), ACCESS[choices.below(3)]));
    }
    let files = FileSystemPolicy::Restricted(rules);
    let mut policy = SandboxPolicy::new(files, Network::Restricted, top.to_path_buf());
    if choices.below(2) == 1 {
        policy.deny_globs.push(DenyGlob::new(place(choices, top), "**/*.env"));
    }
    policy
}

/// Everything in a directory, links themselves and not what they lead to.
fn everything(top: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(top).into_iter().flatten().flatten() {
        found.push(entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            everything(&entry.path(), found);
        }
    }
}

/// The rules as (real path, access), by the kernel's own path resolution.
fn model(policy: &SandboxPolicy) -> Vec<(PathBuf, Access)> {
    let FileSystemPolicy::Restricted(rules) = &policy.file_system else { return Vec::new() };
    let mut all: Vec<(PathBuf, Access)> = rules
        .iter()
        .filter_map(|rule| Some((std::fs::canonicalize(&rule.path).ok()?, rule.access)))
        .collect();
    for glob in &policy.deny_globs {
        let mut below = Vec::new();
        everything(&glob.base, &mut below);
        let matches = |path: &Path| path.extension().is_some_and(|end| end == "env");
        // A link in a directory that is masked leads nowhere: what it names is denied by its own name or not at all.
        let is_masked = |path: &Path| {
            path.ancestors().skip(1).take_while(|above| *above != glob.base).any(matches)
        };
        let matching = below.iter().filter(|path| matches(path) && !is_masked(path));
        let real = matching.filter_map(|path| std::fs::canonicalize(path).ok());
        all.extend(real.map(|path| (path, Access::Deny)));
    }
    all
}

fn rank(access: Option<Access>) -> u8 {
    match access {
        Some(Access::Write) => 2,
        Some(Access::Read) => 1,
        Some(Access::Deny) | None => 0,
    }
}

/// The longest rule at or above the path; deny before write before read among equals.
fn wanted(model: &[(PathBuf, Access)], path: &Path) -> Option<Access> {
    let above = model.iter().filter(|(rule, _)| path.starts_with(rule));
    let longest = above.clone().map(|(rule, _)| rule.components().count()).max()?;
    let best = above.filter(|(rule, _)| rule.components().count() == longest);
    let accesses: Vec<Access> = best.map(|(_, access)| *access).collect();
    [Access::Deny, Access::Write, Access::Read].into_iter().find(|access| accesses.contains(access))
}

#[test]
fn fuzz_plan() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/plan");
    Fuzz::of(&corpus, &[]).rounds(150).run(|input| {
        let directory = tempfile::tempdir().unwrap();
        let top = std::fs::canonicalize(directory.path()).unwrap();
        let mut choices = Choices::new(input);
        grow(&mut choices, &top);
        let policy = policy(&mut choices, &top);
        let resolved = match resolve(&policy, &Protections::default(), false) {
            Ok(resolved) => resolved,
            Err(error) => return format!("refused: {:?}", error.kind()),
        };
        let plan = plan(&resolved.tree, &resolved.links, &resolved.cwd);
        let model = model(&policy);
        let mut paths = vec![top.clone()];
        everything(&top, &mut paths);
        let has_repository = paths.iter().any(|path| path.ends_with(".git"));
        let mut counts = [0usize; 3];
        for path in paths.iter().filter(|path| !path.is_symlink()) {
            let (seen, wanted) = (in_force(&plan, path), wanted(&model, path));
            assert!(
                rank(seen) <= rank(wanted),
                "{path:?}: {seen:?} for {wanted:?}\n{policy:#?}\n{plan:#?}"
            );
            let protected = path.strip_prefix(&top).unwrap().iter().any(|name| {
                PROTECTED_NAMES.iter().chain(&PROJECT_CONFIGURATIONS).any(|other| name == *other)
            });
            if !protected && !has_repository {
                assert_eq!(rank(seen), rank(wanted), "{path:?}\n{policy:#?}\n{plan:#?}");
            }
            counts[usize::from(rank(seen))] += 1;
        }
        format!("{:?} {}", counts.map(|count| count.min(4)), resolved.reservations.len().min(4))
    });
}
