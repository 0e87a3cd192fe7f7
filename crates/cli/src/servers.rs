//! `plenipo servers`: which servers there are and whether they work.

use std::process::ExitCode;

use plenipo_connect::Era;
use serde::Serialize;

use crate::arguments::Global;
use crate::failure::Failure;
use crate::reach::Reachable;
use crate::serve::runtime;
use crate::settings::Settings;
use crate::terminal;
use crate::tools::{Listed, Outcome, exit_code, list, shut_down};

/// One row.
#[derive(Debug, Serialize)]
struct Row {
    server: String,
    status: &'static str,
    transport: &'static str,
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    /// Whether the server asked for the sandbox policy of a call.
    sandbox: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Starts all of them at once; one that fails is a row with its reason.
pub(crate) fn run(global: &Global) -> Result<ExitCode, Failure> {
    let settings = Settings::load(global.config.as_deref())?;
    for warning in settings.warnings() {
        terminal::warn(warning);
    }
    let wanted = Reachable::all(&settings);
    runtime()?.block_on(async {
        let listed = list(global, &settings, wanted, None).await?;
        let rows: Vec<Row> = listed.iter().map(row).collect();
        let shown = if global.json { terminal::print_json(&rows) } else { show(&rows) };
        let code = exit_code(&listed);
        shut_down(listed).await;
        shown.map(|()| code)
    })
}

fn row(entry: &Listed) -> Row {
    let mut row = Row {
        server: entry.name.to_string(),
        status: "ready",
        transport: entry.transport,
        required: entry.required,
        version: None,
        tools: None,
        sandbox: false,
        reason: None,
    };
    match &entry.outcome {
        Outcome::Ready { connection, catalog } => {
            row.version = Some(match connection.era() {
                Era::Legacy { version } => version,
                _ => "2026-07-28".to_owned(),
            });
            row.tools = Some(catalog.tools().count());
            row.sandbox = connection.sandbox_opt_in();
        }
        Outcome::Disabled(reason) => {
            row.status = "disabled";
            row.reason = Some(reason.clone());
        }
        Outcome::Failed(failure) => {
            row.status = "failed";
            row.reason = Some(failure.message().to_owned());
        }
    }
    row
}

fn show(rows: &[Row]) -> Result<(), Failure> {
    let paint = terminal::stdout();
    let width = rows.iter().map(|row| row.server.chars().count()).max().unwrap_or_default().max(6);
    let mut lines = vec![format!(
        "{:<width$}  {:<8}  {:<9}  {:>5}  notes",
        "server", "status", "transport", "tools"
    )];
    for row in rows {
        let status = format!("{:<8}", row.status);
        let status = match row.status {
            "ready" => paint.green(&status),
            "failed" => paint.red(&status),
            _ => paint.yellow(&status),
        };
        let tools = row.tools.map(|count| count.to_string()).unwrap_or_default();
        let notes = notes(row);
        let line =
            format!("{:<width$}  {status}  {:<9}  {tools:>5}  {notes}", row.server, row.transport);
        lines.push(line.trim_end().to_owned());
    }
    terminal::print_lines(&lines)
}

fn notes(row: &Row) -> String {
    let required = row.required.then(|| "required".to_owned());
    let sandbox = row.sandbox.then(|| "takes the sandbox policy".to_owned());
    let words = [row.version.clone(), required, sandbox, row.reason.clone()];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
