//! A server of the official Rust SDK, over stdio: tool `run` runs a shell command under the sandbox policy of its
//! call, tool `repl` a line in a shell that stays and serves no other policy. `--allow-unsandboxed` on its command
//! line is its operator's opt-out.

mod group;
mod shell;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use plenipo_authority::{CallAuthority, OperatorPolicy, STATE_KEY, SandboxedCommand};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ExperimentalCapabilities, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;

use crate::group::Group;
use crate::shell::Shell;

const TIMEOUT: Duration = Duration::from_secs(60);

/// What a tool says: a value, or why it did nothing.
type Said = Result<Value, Box<dyn Error + Send + Sync>>;

struct Server {
    operator: OperatorPolicy,
    shell: Mutex<Option<Shell>>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut experimental = ExperimentalCapabilities::new();
        experimental.insert(STATE_KEY.to_owned(), serde_json::Map::new());
        let capabilities = ServerCapabilities::builder().enable_tools();
        ServerConfig::new(capabilities.enable_experimental_with(experimental).build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &'static str, about: &'static str, argument: &str| {
            let properties = json!({ argument: { "type": "string" } });
            let schema =
                json!({ "type": "object", "properties": properties, "required": [argument] });
            Tool::new(name, about, Arc::new(schema.as_object().cloned().unwrap_or_default()))
        };
        Ok(ListToolsResult::with_all_items(vec![
            tool("run", "Run a shell command under the sandbox policy of this call", "command"),
            tool("repl", "Run a line in a shell that stays", "line"),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let argument = |name| {
            let value = request.arguments.as_ref().and_then(|all| all.get(name));
            value.and_then(Value::as_str).unwrap_or_default()
        };
        let work = async {
            // This SDK hands over parsed values.
            let authority = CallAuthority::from_map(&context.meta)?;
            match request.name.as_ref() {
                "run" => self.run(&authority, argument("command")).await,
                "repl" => self.repl(&authority, argument("line")).await,
                other => Err(format!("no tool {other}").into()),
            }
        };
        let said = tokio::select! {
            said = work => said,
            // Dropping the work ends its process group.
            () = context.ct.cancelled() => Err("cancelled".into()),
        };
        Ok(match said {
            Ok(value) => CallToolResult::success(vec![ContentBlock::text(value.to_string())]),
            Err(error) => {
                CallToolResult::error(vec![ContentBlock::text(format!("refused: {error}"))])
            }
        }
        .into())
    }
}

impl Server {
    fn command(
        &self,
        authority: &CallAuthority,
        argv: &[&str],
    ) -> Result<SandboxedCommand, Box<dyn Error + Send + Sync>> {
        Ok(SandboxedCommand::new(authority, argv, self.operator)?
            .with_environment(std::env::vars_os()))
    }

    async fn run(&self, authority: &CallAuthority, line: &str) -> Said {
        let command = self.command(authority, &["/bin/sh", "-c", line])?;
        let sandboxed = command.is_sandboxed();
        let mut group = Group::start(&command, false)?;
        let (done, timed_out) = group.finish(TIMEOUT).await?;
        Ok(json!({
            "exitCode": done.status,
            "stdout": String::from_utf8_lossy(&done.stdout),
            "stderr": String::from_utf8_lossy(&done.stderr),
            "timedOut": timed_out,
            "sandboxed": sandboxed,
        }))
    }

    /// The shell was started under one policy and serves no other.
    async fn repl(&self, authority: &CallAuthority, line: &str) -> Said {
        let mut place = self.shell.lock().await;
        // Taken while it works: a line that is cancelled ends the shell, since nobody knows what is still to come.
        let mut shell = match place.take().filter(Shell::is_alive) {
            Some(shell) => shell,
            None => Shell::start(&self.command(authority, &["/bin/sh"])?, authority)?,
        };
        if let Err(changed) = shell.ensure_same(authority) {
            *place = Some(shell);
            return Err(changed.into());
        }
        let (status, output) = tokio::time::timeout(TIMEOUT, shell.line(line)).await??;
        *place = Some(shell);
        Ok(json!({ "exitCode": status, "stdout": output }))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let allowed = std::env::args().any(|word| word == "--allow-unsandboxed");
    let operator = match allowed {
        true => OperatorPolicy::AllowUnsandboxed,
        false => OperatorPolicy::RequireLauncher,
    };
    let server = Server { operator, shell: Mutex::new(None) };
    let service = server.serve(rmcp::transport::stdio()).await?;
    // Hosts end servers with SIGTERM; leaving `main` ends the groups.
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = service.waiting() => ended.map(drop)?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
