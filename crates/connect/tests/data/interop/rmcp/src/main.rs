//! A server of the official Rust SDK: `interop-rmcp stdio` or `interop-rmcp http PORT`.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest,
    ElicitRequestParams, ElicitationAction, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputRequest, InputRequests, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, Prompt, PromptArgument, PromptMessage, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

#[derive(Clone)]
struct Server;

type Context = RequestContext<RoleServer>;

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder();
        ServerConfig::new(capabilities.enable_tools().enable_prompts().enable_resources().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &'static str, properties: Value| {
            let Value::Object(schema) = json!({ "type": "object", "properties": properties }) else {
                unreachable!("it is an object")
            };
            Tool::new(name, name, Arc::new(schema))
        };
        Ok(ListToolsResult::with_all_items(vec![
            tool("echo", json!({ "message": { "type": "string" } })),
            tool("kinds", json!({})),
            tool("steps", json!({ "count": { "type": "integer" } })),
            tool("wait", json!({})),
            tool("ask", json!({})),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let argument = |name| request.arguments.as_ref().and_then(|all| all.get(name));
        match request.name.as_ref() {
            "echo" => {
                let message = argument("message").and_then(Value::as_str).unwrap_or_default();
                Ok(text(format!("echo: {message}")))
            }
            "kinds" => Ok(CallToolResult::success(kinds()).into()),
            "steps" => {
                let count = argument("count").and_then(Value::as_u64).unwrap_or_default();
                for step in 1..=count {
                    progress(&context, step as f64, count as f64).await;
                }
                Ok(text("stepped".to_owned()))
            }
            "wait" => {
                progress(&context, 1.0, 2.0).await;
                let cancelled = context.ct.cancelled();
                tokio::time::timeout(Duration::from_secs(60), cancelled).await.ok();
                Ok(text("waited".to_owned()))
            }
            "ask" => ask(&request, &context).await,
            other => Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new("data://notes", "notes")]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("data://item/{number}", "item");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let number = request.uri.rsplit('/').next().unwrap_or_default();
        let contents = ResourceContents::text(format!("item {number}"), request.uri.clone());
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let name = PromptArgument::new("name").with_required(true);
        let greet = Prompt::new("greet", Some("Greets somebody"), Some(vec![name]));
        Ok(ListPromptsResult::with_all_items(vec![greet]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = request.arguments.as_ref().and_then(|all| all.get("name"));
        let name = name.and_then(Value::as_str).unwrap_or("nobody");
        let message = PromptMessage::new_text(Role::User, format!("Greet {name}."));
        Ok(GetPromptResult::new(vec![message]).into())
    }
}

fn text(text: String) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn kinds() -> Vec<ContentBlock> {
    let blob = ResourceContents::BlobResourceContents {
        uri: "data://b".to_owned(),
        mime_type: Some("application/octet-stream".to_owned()),
        blob: "AAE=".to_owned(),
        meta: None,
    };
    vec![
        ContentBlock::text("t"),
        ContentBlock::image("AAE=", "image/png"),
        ContentBlock::audio("AAE=", "audio/wav"),
        ContentBlock::resource_link(Resource::new("data://l", "l")),
        ContentBlock::resource(blob),
    ]
}

async fn progress(context: &Context, step: f64, total: f64) {
    if let Some(token) = context.meta.get_progress_token() {
        let update = ProgressNotificationParam::new(token, step).with_total(total);
        context.peer.notify_progress(update).await.ok();
    }
}

/// In a result in the modern era, by a request of its own in the other.
async fn ask(
    request: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let question = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "Who?".to_owned(),
        requested_schema: serde_json::from_value(json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
        }))
        .expect("a schema of a form"),
    };
    let is_modern = context.meta.get(PROTOCOL_VERSION).is_some();
    let (action, content) = match &request.input_responses {
        Some(responses) => {
            if request.request_state.as_deref() != Some("st.ate/ \"1\"") {
                return Err(ErrorData::invalid_params("another state", None));
            }
            let answer = responses.get("who").cloned().unwrap_or_default();
            (answer["action"].as_str().unwrap_or_default().to_owned(), answer["content"].clone())
        }
        None if is_modern => {
            let mut questions = InputRequests::new();
            let question = InputRequest::Elicitation(ElicitRequest::new(question));
            questions.insert("who".to_owned(), question);
            let state = Some("st.ate/ \"1\"".into());
            return Ok(InputRequiredResult::new(Some(questions), state).into());
        }
        None => {
            let answer = context.peer.create_elicitation(question).await;
            let answer = answer.map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
            let action = match answer.action {
                ElicitationAction::Accept => "accept",
                _ => "no",
            };
            (action.to_owned(), answer.content.unwrap_or_default())
        }
    };
    Ok(text(format!("{action}: {}", content["name"].as_str().unwrap_or_default())))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["stdio"] => {
            Server.serve(rmcp::transport::stdio()).await?.waiting().await?;
        }
        ["http", port] => {
            let sessions = Arc::new(LocalSessionManager::default());
            let config = StreamableHttpServerConfig::default();
            let service = StreamableHttpService::new(|| Ok(Server), sessions, config);
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
            axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
        }
        _ => return Err("read the arguments: stdio, or http PORT".into()),
    }
    Ok(())
}
