//! The keys of each format's servers, and what we do with each.

use crate::format::Format;
use crate::limits::Limits;

/// What a key of a server means here, under the name that the reference schema gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// It is honoured.
    Honoured(&'static str),
    /// It is known and not honoured yet: it disables the server.
    NotYet,
    /// It describes the entry for people or for a catalogue: there is nothing to honour.
    Descriptive,
    /// Nothing that we know.
    Unknown,
}

/// Keys of `[mcp_servers.NAME]` that are honoured for a server of either kind, or say of which it is.
const OF_BOTH: [&str; 14] = [
    "environment_id",
    "command",
    "url",
    "enabled",
    "required",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "tool_timeout_sec",
    "tool_total_timeout_sec",
    "enabled_tools",
    "disabled_tools",
    "default_tools_approval_mode",
    "tools",
    "trust_annotations",
];

/// Keys of `[mcp_servers.NAME.tools.TOOL]`.
pub(crate) const TOOL: [&str; 3] = ["approval_mode", "output_token_limit", "tool_timeout_sec"];

/// Keys of `[mcp_servers.NAME]` that are known and not honoured yet.
const NOT_YET: [&str; 4] =
    ["startup_readiness", "supports_parallel_tool_calls", "omit_tools_from", "name"];

/// Keys of a server in `mcpServers`, and what the reference schema calls them.
const JSON_HONOURED: [(&str, &str); 12] = [
    ("type", "type"),
    ("transport", "type"),
    ("command", "command"),
    ("args", "args"),
    ("env", "env"),
    ("cwd", "cwd"),
    ("url", "url"),
    ("serverUrl", "url"),
    ("headers", "http_headers"),
    ("headersHelper", "http_headers_helper"),
    ("disabled", "disabled"),
    ("enabled", "enabled"),
];
const JSON_NOT_YET: [&str; 14] = [
    "envFile",
    "oauth",
    "auth",
    "timeout",
    "alwaysAllow",
    "alwaysLoad",
    "autoApprove",
    "disabledTools",
    "trust",
    "includeTools",
    "excludeTools",
    "dev",
    "sandbox",
    "sandboxEnabled",
];
const JSON_DESCRIPTIVE: [&str; 4] = ["description", "gallery", "version", "note"];

/// Keys that only a server with `command` has, as the reference schema calls them.
pub(crate) const STDIO_ONLY: [&str; 7] =
    ["args", "env", "env_vars", "cwd", "restart", "shutdown", "sandbox"];
/// Keys that only a server with `url` has.
pub(crate) const HTTP_ONLY: [&str; 9] = [
    "bearer_token_env_var",
    "http_headers",
    "env_http_headers",
    "http_headers_helper",
    "scopes",
    "oauth",
    "oauth_resource",
    "auth",
    "enterprise",
];
/// Keys of `mcp_enterprise_managed_auth.idp` and of `account`, beside those of a client.
const IDENTITY_PROVIDER: [&str; 4] = ["issuer", "client_id", "tenant", "callback_port"];
/// What a client proves itself with, wherever there is one.
pub(crate) const CLIENT: [&str; 7] = [
    "client_secret_env_var",
    "client_secret_file",
    "private_key_env_var",
    "private_key_file",
    "private_key_id",
    "private_key_algorithm",
    "token_endpoint_auth_method",
];
/// Other ways to a token, which a server with `auth = "enterprise"` has not.
pub(crate) const NOT_MANAGED: [&str; 4] =
    ["bearer_token_env_var", "http_headers", "env_http_headers", "http_headers_helper"];
/// Values of `auth`.
pub(crate) const AUTH: [&str; 3] = ["oauth", "enterprise", "ema_auth"];
/// Keys of `[mcp_servers.NAME.enterprise]`.
pub(crate) const ENTERPRISE: [&str; 3] = ["assertion", "algorithms", "max_token_lifetime_sec"];
/// Values of `enterprise.assertion`.
pub(crate) const ASSERTIONS: [&str; 2] = ["signed", "encrypted"];
/// Values in `enterprise.algorithms` (RFC 7518 §3.1, RFC 8037).
pub(crate) const SIGNING_ALGORITHMS: [&str; 9] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

/// Top-level keys that are honoured.
pub(crate) const TOP_LEVEL: [&str; 13] = [
    "environments",
    "account",
    "mcp_enterprise_managed_auth",
    "credentials",
    "credentials_store",
    "launcher",
    "default_permissions",
    "permissions",
    "server",
    "audit",
    "sandbox",
    "shell_environment_policy",
    "mcp_servers",
];

/// Top-level keys of the reference schema that are about MCP and not honoured yet.
pub(crate) const TOP_LEVEL_NOT_YET: [&str; 4] = [
    "mcp_oauth_credentials_store",
    "mcp_oauth_callback_port",
    "mcp_oauth_callback_url",
    "mcp_optional_startup_grace_ms",
];

/// Our own top-level keys that are not honoured yet.
pub(crate) const OWN_NOT_YET: [&str; 1] = ["features"];

/// Keys of `[shell_environment_policy]`.
pub(crate) const ENVIRONMENT: [&str; 5] =
    ["inherit", "ignore_default_excludes", "exclude", "set", "include_only"];

/// Keys of `[mcp_servers.NAME.oauth]`, beside those of a client.
const OAUTH: [&str; 9] = [
    "grant",
    "client_id",
    "client_id_metadata_document",
    "assertion_env_var",
    "assertion_file",
    "callback_port",
    "callback_url",
    "authorization_server_issuer",
    "dpop",
];
/// Values of `oauth.grant`.
pub(crate) const GRANTS: [&str; 3] = ["authorization_code", "client_credentials", "jwt_bearer"];
/// Values of `oauth.token_endpoint_auth_method`.
pub(crate) const AUTHENTICATION_METHODS: [&str; 4] =
    ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];
/// Values of `oauth.private_key_algorithm` (RFC 7518 §3.1, RFC 8037).
pub(crate) const KEY_ALGORITHMS: [&str; 3] = ["ES256", "RS256", "EdDSA"];

/// Values of `credentials_store`.
pub(crate) const CREDENTIALS_STORES: [&str; 4] = ["auto", "keyring", "file", "postgres"];
/// Keys of `[credentials]`.
pub(crate) const CREDENTIALS: [&str; 7] = [
    "directory",
    "passphrase_env_var",
    "passphrase_file",
    "key_env_var",
    "key_file",
    "database_url_env_var",
    "database_url_file",
];

/// Keys of `[environments.NAME]`.
pub(crate) const PLACE: [&str; 10] = [
    "command",
    "quoting",
    "cwd",
    "env",
    "env_vars",
    "forward_env",
    "watchdog",
    "permissions",
    "startup_timeout_sec",
    "tool_timeout_sec",
];

/// Keys of `[audit]`.
pub(crate) const AUDIT: [&str; 1] = ["file"];

/// Keys of `[server.workspace]`.
pub(crate) const WORKSPACE: [&str; 1] = ["allow_unsandboxed"];

/// Keys of `[sandbox]`.
pub(crate) const SANDBOX: [&str; 3] = ["default_for_servers", "deny_glob", "minimum_rung"];

/// Values of `sandbox.deny_glob`: a pattern that cannot hold for what appears later is refused, or holds at the start.
pub(crate) const DENY_GLOBS: [&str; 2] = [STRICT, "at-start"];
pub(crate) const STRICT: &str = "strict";

/// Values of `sandbox.minimum_rung`, as the launcher names its rungs.
pub(crate) const RUNGS: [&str; 5] = ["full", "full-privileged", "bwrap", "no-proc", "landlock"];

/// What the key `name` of a server means in a file of this format.
pub(crate) fn meaning(format: Format, name: &str) -> Meaning {
    if format.is_toml() {
        return match honoured().find(|known| *known == name) {
            Some(known) => Meaning::Honoured(known),
            None if NOT_YET.contains(&name) => Meaning::NotYet,
            None => Meaning::Unknown,
        };
    }
    match JSON_HONOURED.into_iter().find(|(known, _)| *known == name) {
        Some((_, meant)) => Meaning::Honoured(meant),
        None if JSON_NOT_YET.contains(&name) => Meaning::NotYet,
        None if JSON_DESCRIPTIVE.contains(&name) => Meaning::Descriptive,
        None => Meaning::Unknown,
    }
}

/// Every key of a server that this format knows.
pub(crate) fn known(format: Format) -> impl Iterator<Item = &'static str> {
    let toml = honoured().chain(NOT_YET);
    let json = JSON_HONOURED.into_iter().map(|(name, _)| name).chain(JSON_NOT_YET);
    toml.filter(move |_| format.is_toml()).chain(json.filter(move |_| !format.is_toml()))
}

/// Every key of a server that is honoured in our own format.
fn honoured() -> impl Iterator<Item = &'static str> {
    OF_BOTH.into_iter().chain(Limits::KEYS).chain(STDIO_ONLY).chain(HTTP_ONLY)
}

/// Every key of `[mcp_servers.NAME.oauth]`.
pub(crate) fn oauth() -> impl Iterator<Item = &'static str> {
    OAUTH.into_iter().chain(CLIENT)
}

/// Every key of `mcp_enterprise_managed_auth.idp` and of `account`.
pub(crate) fn identity_provider() -> impl Iterator<Item = &'static str> {
    IDENTITY_PROVIDER.into_iter().chain(CLIENT)
}
