//! What a call carries: a token that is in memory and fresh, and an authority.

use std::process::Command;

use super::stats::{Against, Row};
use super::tools::number_after;
use crate::run::{Outcome, cargo, output};
use crate::workspace::Workspace;

/// Without a lock that I/O is done under, and without a look into any store.
const MOST_NANOSECONDS: f64 = 1000.0;

/// A state of 10 KiB is copied, not read.
const MOST_TO_ATTACH: f64 = 2000.0;

/// Reads of one source: alone, and from several threads while it is refreshed without end.
pub(super) fn reads(workspace: &Workspace) -> Outcome<Vec<Row>> {
    let reads = example(workspace, "plenipo-credentials", "token_reads")?;
    let company = example(workspace, "plenipo-enterprise", "company_token")?;
    let attach = example(workspace, "plenipo-authority", "attach_state")?;
    let within = |name, said: &str, key: &str, most| {
        let ours = number_after(said, key)?;
        Ok(Row { name, ours, unit: "ns", against: Against::Most(most) })
    };
    let row = |name, said: &str, key: &str| within(name, said, key, MOST_NANOSECONDS);
    Ok(vec![
        row("token", &reads, "alone_ns=")?,
        row("token while refreshed", &reads, "busy_ns=")?,
        row("token of a company", &company, "warm_ns=")?,
        within("authority attached", &attach, "state_ns=", MOST_TO_ATTACH)?,
        within("authority attached, with a launcher", &attach, "launcher_ns=", MOST_TO_ATTACH)?,
    ])
}

/// What an example prints.
fn example(workspace: &Workspace, package: &str, name: &str) -> Outcome<String> {
    let mut build = cargo(&workspace.root);
    build.args(["build", "--release", "--package", package, "--example", name]);
    output(&mut build)?;
    output(&mut Command::new(workspace.target.join("release/examples").join(name)))
}
