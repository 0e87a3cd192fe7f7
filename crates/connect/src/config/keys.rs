//! The keys of the reference schema, and what we do with each.

/// Keys of `[mcp_servers.NAME]` that are honoured.
pub(super) const HONOURED: [&str; 12] = [
    "command",
    "args",
    "env",
    "env_vars",
    "cwd",
    "enabled",
    "required",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "tool_timeout_sec",
    "enabled_tools",
    "disabled_tools",
];

/// Keys of `[mcp_servers.NAME]` that are known and not honoured yet: they disable the server.
pub(super) const NOT_YET: [&str; 16] = [
    "url",
    "bearer_token_env_var",
    "http_headers",
    "env_http_headers",
    "http_headers_helper",
    "environment_id",
    "auth",
    "startup_readiness",
    "supports_parallel_tool_calls",
    "omit_tools_from",
    "default_tools_approval_mode",
    "scopes",
    "oauth",
    "oauth_resource",
    "name",
    "tools",
];

/// Top-level keys that are honoured.
pub(super) const TOP_LEVEL: [&str; 5] =
    ["launcher", "default_permissions", "permissions", "server", "mcp_servers"];

/// Top-level keys of the reference schema that are not honoured yet.
pub(super) const TOP_LEVEL_NOT_YET: [&str; 7] = [
    "mcp_enterprise_managed_auth",
    "mcp_oauth_credentials_store",
    "mcp_oauth_callback_port",
    "mcp_oauth_callback_url",
    "mcp_optional_startup_grace_ms",
    "features",
    "audit",
];

/// Keys of `[server.workspace]`.
pub(super) const WORKSPACE: [&str; 1] = ["allow_unsandboxed"];
