//! A limited network: the proxy that serves it while the command runs, and what is told of it afterwards.

use std::fs::File;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use plenipo_egress::{Proxy, Refused, Summary, SystemResolver};
use plenipo_launch::{Egress, ErrorKind, LaunchError, LaunchRequest, REPORT_VERSION};
use plenipo_policy::Network;
use serde_json::{Value, json};

use crate::terminal;

/// How long what the command sent just before its end may take to be passed on.
const GRACE: Duration = Duration::from_secs(1);
/// Hosts named on standard error without `-v`.
const NAMED: usize = 3;

/// The proxy of one launch.
#[derive(Debug, Clone)]
pub(super) struct Limited(Arc<Proxy>);

impl Egress for Limited {
    fn serve(&self, listener: TcpListener) -> io::Result<()> {
        self.0.serve(listener)
    }
}

impl Limited {
    /// Gives the request a proxy if its policy needs one. It starts nothing before the sandbox is built.
    pub(super) fn attach(request: &mut LaunchRequest) -> Result<Option<Self>, LaunchError> {
        let Network::Limited(hosts) = &request.policy.network else { return Ok(None) };
        plenipo_launch::resolve_without_modules().map_err(|error| {
            let message = format!("choose how names are looked up: {error}");
            LaunchError::new(ErrorKind::Setup, message)
        })?;
        let limited = Self(Arc::new(Proxy::new(hosts.clone(), SystemResolver)));
        request.egress = Some(Box::new(limited.clone()));
        Ok(Some(limited))
    }

    /// Ends the proxy, tells a person what it refused, and returns it for the report.
    pub(super) fn finish(&self, verbose: bool) -> Value {
        let summary = self.0.finish(GRACE);
        if let Some(text) = sentence(&summary, if verbose { usize::MAX } else { NAMED }) {
            terminal::tell(&format!("{} {text}", terminal::stderr().yellow("plenipo:")));
        }
        let refused = summary.refused.iter().map(|refused| {
            let Refused { host, port, reason, count, .. } = refused;
            json!({ "host": host, "port": port, "reason": reason, "count": count })
        });
        json!({
            "connections": summary.connections,
            "refused": refused.collect::<Vec<_>>(),
            "omitted": summary.omitted,
            "malformed": summary.malformed,
        })
    }
}

/// Writes the line that ends a launch; `network` is null unless it was limited.
pub(super) fn write_end(report: OwnedFd, exit_code: u8, network: Option<&Value>) {
    let line = json!({
        "version": REPORT_VERSION, "status": "ended", "exit_code": exit_code, "network": network,
    });
    // A reader that is gone wants nothing.
    drop(File::from(report).write_all(format!("{line}\n").as_bytes()));
}

/// `the network is limited; refused: evil.example:443 (not listed, 2 times) and 4 more`
fn sentence(summary: &Summary, named: usize) -> Option<String> {
    let told = |refused: &Refused| {
        let Refused { host, port, explanation, count, .. } = refused;
        let times = if *count == 1 { String::new() } else { format!(", {count} times") };
        format!("{host}:{port} ({explanation}{times})")
    };
    let first: Vec<String> = summary.refused.iter().take(named).map(told).collect();
    if first.is_empty() {
        return None;
    }
    let more = summary.refused.len() - first.len() + usize::from(summary.omitted > 0);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("the network is limited; refused: {}{more}", first.join(", ")))
}
