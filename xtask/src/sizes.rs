//! Lengths: of files, functions and crates. Written limits without a check do not hold.
//!
//! How it counts: *production lines* are all lines of a file outside `#[cfg(test)]` items, comments
//! and blank lines included; files below `tests/`, `benches/`, `examples/` and `tests.rs` files are
//! tests. A function runs from its `fn` line to its closing brace, a receiver is an argument.
//! Crate roots are the crates named in `use` lines, the standard library and own modules apart.
//! Public items are `pub` items of modules (not methods, fields or re-exports).

mod allow;
mod functions;
mod measure;

use std::collections::BTreeMap;
use std::fs;

use crate::run::{Doing, Failure, Outcome};
use crate::workspace::{Package, Workspace};
use allow::AllowList;
use measure::FileMeasure;

/// One kind of length: what to aim at and what fails.
#[derive(Debug)]
struct Limit {
    measure: &'static str,
    aim: usize,
    most: usize,
}

const LIMITS: [Limit; 8] = [
    Limit { measure: "file-lines", aim: 250, most: 500 },
    Limit { measure: "function-lines", aim: 30, most: 80 },
    Limit { measure: "arguments", aim: 4, most: 6 },
    Limit { measure: "use-lines", aim: 15, most: 30 },
    Limit { measure: "crate-roots", aim: 5, most: 9 },
    Limit { measure: "inline-test-lines", aim: 100, most: 250 },
    Limit { measure: "public-items", aim: 60, most: 120 },
    Limit { measure: "crate-lines", aim: 3_000, most: 8_000 },
];

/// How many of the biggest are shown for each measure.
const SHOWN: usize = 3;

/// Something that was measured: where, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    place: String,
    value: usize,
}

type Measures = BTreeMap<&'static str, Vec<Found>>;

/// Prints the biggest of each measure; fails over a limit that `sizes.allow` does not raise.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut measures = Measures::new();
    for package in &workspace.packages {
        measure_crate(workspace, package, &mut measures)?;
    }
    let path = workspace.root.join("xtask/sizes.allow");
    let text = fs::read_to_string(path).doing("read xtask/sizes.allow")?;
    let mut allowed = AllowList::parse(&text)?;
    let mut over = Vec::new();
    for limit in &LIMITS {
        let mut found = measures.remove(limit.measure).unwrap_or_default();
        found.sort_by(|a, b| b.value.cmp(&a.value).then_with(|| a.place.cmp(&b.place)));
        report(limit, &found);
        over.extend(found.iter().filter_map(|found| exceeds(limit, found, &mut allowed)));
    }
    over.extend(allowed.stale());
    for line in &over {
        println!("sizes: {line}");
    }
    match over.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} problem(s) with sizes, listed above"))),
    }
}

fn exceeds(limit: &Limit, found: &Found, allowed: &mut AllowList) -> Option<String> {
    let most = allowed.raise(limit.measure, &found.place).unwrap_or(limit.most);
    let Found { place, value } = found;
    (*value > most).then(|| format!("{place}: {value} {}, at most {most}", limit.measure))
}

fn report(limit: &Limit, found: &[Found]) {
    let above = found.iter().filter(|found| found.value > limit.aim).count();
    println!(
        "sizes: {} (aim {}, most {}): {above} of {} above the aim",
        limit.measure,
        limit.aim,
        limit.most,
        found.len()
    );
    for found in found.iter().take(SHOWN) {
        println!("  {:>6}  {}", found.value, found.place);
    }
}

fn measure_crate(workspace: &Workspace, package: &Package, measures: &mut Measures) -> Outcome {
    let (mut lines, mut public) = (0, 0);
    for path in package.rust_files()? {
        let place = workspace.relative(&path);
        if is_test_file(&place) {
            continue;
        }
        let text = fs::read_to_string(&path).doing(&format!("read {place}"))?;
        let file = FileMeasure::of(&text);
        lines += file.lines;
        public += file.public_items;
        for (measure, value) in [
            ("file-lines", file.lines),
            ("use-lines", file.use_lines),
            ("crate-roots", file.crate_roots.len()),
            ("inline-test-lines", file.test_lines),
        ] {
            measures.entry(measure).or_default().push(Found { place: place.clone(), value });
        }
        for function in file.functions {
            let place = format!("{place}:{}", function.name);
            let arguments = Found { place: place.clone(), value: function.arguments };
            measures.entry("arguments").or_default().push(arguments);
            let length = Found { place, value: function.lines };
            measures.entry("function-lines").or_default().push(length);
        }
    }
    let place = package.short_name().to_owned();
    measures.entry("crate-lines").or_default().push(Found { place: place.clone(), value: lines });
    measures.entry("public-items").or_default().push(Found { place, value: public });
    Ok(())
}

fn is_test_file(place: &str) -> bool {
    let folders = ["/tests/", "/benches/", "/examples/"];
    folders.iter().any(|folder| place.contains(folder)) || place.ends_with("/tests.rs")
}
