//! What a token costs that is in memory and fresh.

use std::process::Command;

use super::stats::{Against, Row};
use super::tools::number_after;
use crate::run::{Outcome, cargo, output};
use crate::workspace::Workspace;

/// Without a lock that I/O is done under, and without a look into any store.
const MOST_NANOSECONDS: f64 = 1000.0;

/// Reads of one source: alone, and from several threads while it is refreshed without end.
pub(super) fn reads(workspace: &Workspace) -> Outcome<Vec<Row>> {
    let mut build = cargo(&workspace.root);
    build.args([
        "build",
        "--release",
        "--package",
        "plenipo-credentials",
        "--example",
        "token_reads",
    ]);
    output(&mut build)?;
    let said = output(&mut Command::new(workspace.target.join("release/examples/token_reads")))?;
    let row = |name, key: &str| {
        let ours = number_after(&said, key)?;
        Ok(Row { name, ours, unit: "ns", against: Against::Most(MOST_NANOSECONDS) })
    };
    Ok(vec![row("token", "alone_ns=")?, row("token while refreshed", "busy_ns=")?])
}
