//! `layout`: the functions of an ordinary launch, and behind them those of a short call, in the order in which one calls
//! them, for the linker to put side by side. They are found by single steps through the release and the default build, and named as the sections that the
//! compiler makes of them.
//!
//! The hash in a mangled name differs from build to build, so it becomes a wildcard, and a name can stand for much that a
//! launch has no use for: instances of a generic function. Such a crowd comes behind the others, where it takes a page or
//! two from them; one of hundreds is left where it is.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{LAYOUT, PROGRAM, build_release};
use crate::run::{Doing, Failure, Outcome, cargo, output, succeed};
use crate::workspace::Workspace;

/// The functions stand between these lines.
const FIRST: &str = "    /* by cargo xtask layout */\n";
const LAST: &str = "    /* the rest by crates and modules */\n";
/// From this size on, a name has to be worth its place.
const BIG: u64 = 4096;
/// How many times the bytes that are run a big name may stand for among the first.
const MOST_TIMES: u64 = 2;
/// The biggest crowd that is brought near: what it would take elsewhere is sixteen pages.
const CROWD: u64 = 45_000;

/// What the server of the call is asked to run.
const COMMAND: &str = "command=true";

/// A section of the executable's code.
struct Section<'a> {
    start: u64,
    bytes: u64,
    name: &'a str,
}

/// What names are chosen from one build.
#[derive(Default)]
struct Chosen {
    first: Vec<String>,
    crowds: Vec<String>,
}

/// Writes them into the linker's script.
pub(crate) fn run(workspace: &Workspace) -> Outcome {
    let place = workspace.target.join("layout");
    fs::create_dir_all(place.join("work/.git")).doing("make target/layout")?;
    let steps = place.join("steps");
    let source = workspace.root.join("xtask/bench/steps.c");
    output(Command::new("gcc").args(["-O2", "-o"]).arg(&steps).arg(source))?;
    let map = |name: &str| {
        (place.join(name), format!("link-arg=-Wl,-Map={}", place.join(name).display()))
    };
    let (map_of_default, option) = map("default.map");
    let default = build_default(workspace, &option)?;
    let (map_of_release, option) = map("release.map");
    let release = build_release(workspace, &[&option])?;
    let (mut launch, mut call) = (Chosen::default(), Chosen::default());
    for (program, map) in [(&default, &map_of_default), (&release.program, &map_of_release)] {
        let built = Built { steps: &steps, program, map };
        let state = state(&built.work()?);
        launch.add(built.runs(&["sandbox", "--sandbox-state-json", &state, "--", "/bin/true"])?);
        call.add(built.runs(&["call", "--config", &built.configuration()?, "own.run", COMMAND])?);
    }
    let mut names = launch.in_order();
    names.extend(call.in_order());
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let script = workspace.root.join(LAYOUT);
    let text = fs::read_to_string(&script).doing("read the linker's script")?;
    let text = with_names(&text, &names)
        .ok_or_else(|| Failure::new(format!("{LAYOUT} does not have the two lines")))?;
    fs::write(&script, text).doing("write the linker's script")?;
    println!("layout: {} names in {LAYOUT}", names.len());
    Ok(())
}

fn build_default(workspace: &Workspace, option: &str) -> Outcome<PathBuf> {
    let mut build = cargo(&workspace.root);
    build.args(["rustc", "--release", "--locked", "--package", PROGRAM, "--bin", PROGRAM]);
    succeed(build.args(["--", "-C", option]).env("CARGO_TARGET_DIR", &workspace.target))?;
    Ok(workspace.target.join("release").join(PROGRAM))
}

/// A program with the linker's map of it.
struct Built<'a> {
    steps: &'a Path,
    program: &'a Path,
    map: &'a Path,
}

impl Built<'_> {
    fn place(&self) -> &Path {
        self.map.parent().unwrap_or(self.map)
    }

    fn work(&self) -> Outcome<String> {
        let work = self.place().join("work").into_os_string().into_string();
        work.map_err(|_| Failure::new("the repository's path is no UTF-8".to_owned()))
    }

    /// With the program's own server as one that is started, like any other.
    fn configuration(&self) -> Outcome<String> {
        let file = self.place().join("work/call.toml");
        let program = self.program.display();
        let text =
            format!("[mcp_servers.own]\ncommand = '{program}'\nargs = ['server', 'workspace']\n");
        fs::write(&file, text).doing("write the configuration of a call")?;
        Ok(file.display().to_string())
    }

    /// Of the functions that are called with these arguments.
    fn runs(&self, arguments: &[&str]) -> Outcome<Chosen> {
        let result = self.place().join("steps.txt");
        let mut run = Command::new(self.steps);
        run.current_dir(self.work()?).env("HOME", self.place()).arg(&result).arg(self.program);
        output(run.args(arguments))?;
        let map = fs::read(self.map).doing("read the linker's map")?;
        let addresses = fs::read_to_string(&result).doing("read the steps")?;
        Ok(Chosen::of(&sections(&String::from_utf8_lossy(&map)), &addresses))
    }
}

fn state(work: &str) -> String {
    let entry = |path: &str, access: &str| format!(r#"{{"path":{path},"access":"{access}"}}"#);
    let root = entry(r#"{"type":"special","value":{"kind":"root"}}"#, "read");
    let temporary = entry(r#"{"type":"special","value":{"kind":"slash_tmp"}}"#, "write");
    let path = |path: String| format!(r#"{{"type":"path","path":"{path}"}}"#);
    let writable = entry(&path(work.to_owned()), "write");
    let kept = entry(&path(format!("{work}/.git")), "read");
    format!(
        r#"{{"permissionProfile":{{"type":"managed","file_system":{{"type":"restricted","entries":[{root},{temporary},{writable},{kept}]}},"network":"restricted"}},"sandboxCwd":"file://{work}"}}"#
    )
}

/// Of GNU ld's map: name, address, size and file, the name on a line of its own if it is long. Of lld's: two addresses,
/// size, alignment, `file:(name)`.
fn sections(map: &str) -> Vec<Section<'_>> {
    let number = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let mut sections = Vec::new();
    let mut last = "";
    for line in map.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [start, _, bytes, _, input] = words.as_slice()
            && let Some((_, name)) = input.split_once(":(.text.")
            && let (Ok(start), Ok(bytes)) =
                (u64::from_str_radix(start, 16), u64::from_str_radix(bytes, 16))
            && bytes > 0
        {
            let name = line.get(line.len() - name.len() - ".text.".len()..line.len() - 1);
            sections.push(Section { start, bytes, name: name.unwrap_or_default() });
            continue;
        }
        let (name, rest) = match words.as_slice() {
            [name] if name.starts_with(".text") => {
                last = name;
                continue;
            }
            [name, rest @ ..] if name.starts_with(".text.") => (*name, rest),
            rest => (last, rest),
        };
        last = "";
        if let [start, bytes, _file, ..] = rest
            && let (Some(start), Some(bytes)) = (number(start), number(bytes))
            && name.starts_with(".text.")
            && bytes > 0
        {
            sections.push(Section { start, bytes, name });
        }
    }
    sections.sort_by_key(|section| section.start);
    sections
}

impl Chosen {
    /// The patterns for the sections that the addresses are in.
    fn of(sections: &[Section<'_>], addresses: &str) -> Self {
        let mut stands_for: HashMap<String, u64> = HashMap::new();
        for section in sections {
            *stands_for.entry(pattern(section.name)).or_default() += section.bytes;
        }
        let mut runs: HashMap<String, u64> = HashMap::new();
        let (mut order, mut seen) = (Vec::new(), HashSet::new());
        for address in addresses.lines().filter_map(|line| u64::from_str_radix(line, 16).ok()) {
            let after = sections.partition_point(|section| section.start <= address);
            let Some(section) = after.checked_sub(1).and_then(|index| sections.get(index)) else {
                continue;
            };
            if address < section.start + section.bytes && seen.insert(section.start) {
                let name = pattern(section.name);
                *runs.entry(name.clone()).or_default() += section.bytes;
                if !order.contains(&name) {
                    order.push(name);
                }
            }
        }
        let of =
            |all: &HashMap<String, u64>, name: &String| all.get(name).copied().unwrap_or_default();
        let is_first = |name: &String| {
            let bytes = of(&stands_for, name);
            bytes <= BIG || bytes <= MOST_TIMES * of(&runs, name)
        };
        let (first, mut crowds): (Vec<_>, Vec<_>) = order.into_iter().partition(is_first);
        crowds.retain(|name| of(&stands_for, name) <= CROWD);
        Self { first, crowds }
    }

    fn add(&mut self, more: Self) {
        self.first.extend(more.first);
        self.crowds.extend(more.crowds);
    }

    /// Each once. What is the first in one build and a crowd in another is a crowd.
    fn in_order(&self) -> Vec<String> {
        let first = self.first.iter().filter(|name| !self.crowds.contains(name));
        let mut seen = HashSet::new();
        first.chain(&self.crowds).filter(|name| seen.insert(*name)).cloned().collect()
    }
}

/// A section's name without what differs from build to build.
fn pattern(name: &str) -> String {
    const HASH: usize = 16;
    let name = name.split_once(".llvm.").map_or(name, |(name, _)| name);
    let is_hash = |text: &str| {
        let hash = text.get(..HASH);
        hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    match name.rsplit_once("17h") {
        Some((path, hash)) if is_hash(hash) => format!("{path}17h*"),
        _ => crates_without_hashes(name),
    }
}

/// In the newer way of mangling each crate is `Cs`, a hash, `_` and its name.
fn crates_without_hashes(name: &str) -> String {
    let mut parts = name.split("Cs");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let hash = part.split_once('_').filter(|(hash, _)| {
            !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        plain.push_str("Cs");
        plain.push_str(&hash.map_or_else(|| part.to_owned(), |(_, rest)| format!("*_{rest}")));
    }
    plain
}

fn with_names(script: &str, names: &[String]) -> Option<String> {
    let (before, rest) = script.split_once(FIRST)?;
    let (_, after) = rest.split_once(LAST)?;
    let lines: String = names.iter().map(|name| format!("    *({name})\n")).collect();
    Some(format!("{before}{FIRST}{lines}{LAST}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_name_is_left_open() {
        let open = |name| pattern(name);
        assert_eq!(open(".text._ZN1a1b17h0123456789abcdefE"), ".text._ZN1a1b17h*");
        assert_eq!(open(".text._ZN1a1b17h0123456789abcdefE.llvm.42"), ".text._ZN1a1b17h*");
        assert_eq!(open(".text._RNvCs9ltgdHTiPiY_3std2rt"), ".text._RNvCs*_3std2rt");
        assert_eq!(open(".text.memcpy"), ".text.memcpy");
    }

    #[test]
    fn what_is_run_comes_in_its_order_and_crowds_stay_away() {
        let map = " .text.a\n                0x0000000000000010       0x10 a.o\n \
                   .text.b        0x0000000000000020       0x10 b.o\n *fill*         0x30 0x10\n \
                   .text.c17h0123456789abcdefE\n                0x0000000000000040       0x10 c.o\n \
                   .text.c17h1123456789abcdefE\n                0x0000000000001000     0x4000 c.o\n";
        let sections = sections(map);
        assert_eq!(sections.len(), 4);
        let chosen = Chosen::of(&sections, "28\n40\n10\n1f\n35\n");
        assert_eq!(chosen.first, [".text.b", ".text.a"]);
        assert_eq!(chosen.crowds, [".text.c17h*"]);
        assert_eq!(chosen.in_order(), [".text.b", ".text.a", ".text.c17h*"]);
    }

    #[test]
    fn both_linkers_maps_are_read() {
        let map = "             VMA              LMA     Size Align Out     In      Symbol\n\
                   \t1000 1000 45302 16 .text.launch\n\
                   1040 40 10 16         /t/a.o:(.text.a)\n\
                   1040 40 10 1                 a\n\
                   1050 50 8 16         /t/a.o:(.text.unlikely.b)\n\
                   2000 2000 8 4         /t/a.o:(.rodata.a)\n";
        let read: Vec<_> =
            sections(map).iter().map(|s| (s.start, s.bytes, s.name.to_owned())).collect();
        let wanted = [(0x1040, 16, ".text.a"), (0x1050, 8, ".text.unlikely.b")];
        assert_eq!(read, wanted.map(|(start, bytes, name)| (start, bytes, name.to_owned())));
    }

    #[test]
    fn the_script_keeps_what_is_around_them() {
        let script = format!("a\n{FIRST}    *(old)\n{LAST}b\n");
        let wanted = format!("a\n{FIRST}    *(new)\n{LAST}b\n");
        assert_eq!(with_names(&script, &["new".to_owned()]), Some(wanted));
        assert_eq!(with_names("a\n", &[]), None);
    }
}
