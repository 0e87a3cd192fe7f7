//! The protocol's constants: revisions, methods, error codes, `_meta` keys.

/// The revision that describes itself on every request ("modern").
pub const MODERN_VERSION: &str = "2026-07-28";

/// Revisions that start with `initialize` ("legacy"), oldest first.
pub const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The legacy revision a client asks for.
pub const LATEST_LEGACY_VERSION: &str = "2025-11-25";

/// Method names.
pub mod methods {
    /// Modern: which revisions and capabilities a server has.
    pub const DISCOVER: &str = "server/discover";
    /// Legacy: start of the handshake.
    pub const INITIALIZE: &str = "initialize";
    /// Legacy: end of the handshake.
    pub const INITIALIZED: &str = "notifications/initialized";
    /// Legacy: liveness.
    pub const PING: &str = "ping";
    /// The tools of a server, page by page.
    pub const TOOLS_LIST: &str = "tools/list";
    /// Runs a tool.
    pub const TOOLS_CALL: &str = "tools/call";
    /// The tool list is no longer what it was.
    pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
    /// The resources of a server, page by page.
    pub const RESOURCES_LIST: &str = "resources/list";
    /// The templates of URIs of a server, page by page.
    pub const RESOURCE_TEMPLATES_LIST: &str = "resources/templates/list";
    /// The contents of a resource.
    pub const RESOURCES_READ: &str = "resources/read";
    /// Legacy: tell when a resource changes.
    pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
    /// Legacy: do not tell any longer.
    pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
    /// The prompts of a server, page by page.
    pub const PROMPTS_LIST: &str = "prompts/list";
    /// A prompt, filled in.
    pub const PROMPTS_GET: &str = "prompts/get";
    /// Suggestions for an argument.
    pub const COMPLETE: &str = "completion/complete";
    /// Skills extension: the skills of a server, page by page.
    pub const SKILLS_LIST: &str = "skills/list";
    /// Skills extension: the entry of one skill.
    pub const SKILLS_GET: &str = "skills/get";
    /// Skills extension: what is directly below a directory, page by page.
    pub const DIRECTORY_READ: &str = "resources/directory/read";
    /// Tasks extension: how a task is.
    pub const TASKS_GET: &str = "tasks/get";
    /// 2025-11-25: waits for what a task comes to.
    pub const TASKS_RESULT: &str = "tasks/result";
    /// Tasks extension: answers to what a task asks.
    pub const TASKS_UPDATE: &str = "tasks/update";
    /// The task is no longer wanted.
    pub const TASKS_CANCEL: &str = "tasks/cancel";
    /// The prompt list is no longer what it was.
    pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
    /// The list of resources or of templates is no longer what it was.
    pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
    /// A resource that was subscribed to is no longer what it was.
    pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";
    /// Modern: notices, for as long as the request is open.
    pub const LISTEN: &str = "subscriptions/listen";
    /// Modern: which part of a subscription is granted.
    pub const SUBSCRIPTION_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    /// The requester no longer wants the answer.
    pub const CANCELLED: &str = "notifications/cancelled";
    /// How far a request is.
    pub const PROGRESS: &str = "notifications/progress";
    /// The server wants something from a person: a form, or a URL to open.
    pub const ELICIT: &str = "elicitation/create";
    /// 2025-11-25: what was to be done behind a URL is done.
    pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
    /// The server wants a model's message. Deprecated.
    pub const SAMPLE: &str = "sampling/createMessage";
    /// The server wants to know where it may work. Deprecated.
    pub const ROOTS_LIST: &str = "roots/list";
    /// `logging/setLevel`, of revisions before 2026-07-28.
    pub const SET_LOG_LEVEL: &str = "logging/setLevel";
    /// A log line of the server.
    pub const MESSAGE: &str = "notifications/message";
}

/// Names in `capabilities.extensions`.
pub mod extensions {
    /// Skills (SEP-2640).
    pub const SKILLS: &str = "io.modelcontextprotocol/skills";
    /// Tasks (SEP-2663).
    pub const TASKS: &str = "io.modelcontextprotocol/tasks";
}

/// Keys in `_meta`.
pub mod meta {
    /// Where progress of a request goes.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// Modern: revision of this request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Modern: what the client can do for this request.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Modern: who asks; self-asserted.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// Modern: which subscription a notice belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Modern: from which level on the server may log while it handles this request.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Modern: who answers; self-asserted.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
}

/// JSON-RPC and MCP error codes. `-32000` to `-32019` have no common meaning.
pub mod error_code {
    /// The text was not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The JSON was not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method does not exist or is not available.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters are wrong; from modern servers also: no such resource.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The peer failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// Resource not found, from legacy servers.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Modern, HTTP: a header does not say what the body says.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// Modern: the request needs a client capability (`data.requiredCapabilities`).
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
    /// Modern: the server does not speak the request's revision (`data.supported`).
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
    /// 2025-11-25 only: a person has to open a URL first.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;

    /// The protocol's name for a code, where it has one.
    #[must_use]
    pub fn name(code: i64) -> Option<&'static str> {
        Some(match code {
            PARSE_ERROR => "parse error",
            INVALID_REQUEST => "invalid request",
            METHOD_NOT_FOUND => "method not found",
            INVALID_PARAMS => "invalid params",
            INTERNAL_ERROR => "internal error",
            RESOURCE_NOT_FOUND => "resource not found",
            HEADER_MISMATCH => "header mismatch",
            MISSING_REQUIRED_CLIENT_CAPABILITY => "missing required client capability",
            UNSUPPORTED_PROTOCOL_VERSION => "unsupported protocol version",
            URL_ELICITATION_REQUIRED => "URL elicitation required",
            _ => return None,
        })
    }
}
