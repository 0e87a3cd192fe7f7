//! Which program's file it is, told by its content; by its name only where content cannot say.

use std::path::{Path, PathBuf};

/// The format of a configuration file.
///
/// | format | recognised by | top level that is read |
/// |---|---|---|
/// | [`Plenipo`](Self::Plenipo) | TOML that is not Codex's | all of it; unknown keys are errors |
/// | [`Codex`](Self::Codex) | TOML with a key that only Codex has (`model`, `projects` …), or named `config.toml` without a key that only Plenipo has | `mcp_servers`, `mcp_*` |
/// | [`McpServers`](Self::McpServers) | JSON with `mcpServers`: `.mcp.json`, Claude, Cursor and many more | `mcpServers` |
/// | [`ClaudeDesktop`](Self::ClaudeDesktop) | the same, named `claude_desktop_config.json` | `mcpServers` |
/// | [`VsCode`](Self::VsCode) | JSON with `servers` | `servers` |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Our own.
    Plenipo,
    /// `config.toml` of Codex. Nothing in it is expanded, because Codex does not.
    Codex,
    /// JSON with `mcpServers`.
    McpServers,
    /// `claude_desktop_config.json`. Nothing in it is expanded, because Claude Desktop does not.
    ClaudeDesktop,
    /// `mcp.json` of VS Code.
    VsCode,
}

/// Top-level keys that only our own files have.
const ONLY_OURS: [&str; 3] = ["launcher", "server", "audit"];

/// Top-level keys that only Codex's files have.
const ONLY_CODEX: [&str; 23] = [
    "model",
    "model_provider",
    "model_providers",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_verbosity",
    "model_context_window",
    "approval_policy",
    "approvals_reviewer",
    "sandbox_mode",
    "sandbox_workspace_write",
    "profile",
    "profiles",
    "projects",
    "notify",
    "tui",
    "history",
    "personality",
    "plugins",
    "skills",
    "notice",
    "hide_agent_reasoning",
    "file_opener",
];

impl Format {
    pub(crate) fn is_toml(self) -> bool {
        matches!(self, Self::Plenipo | Self::Codex)
    }

    /// The table that holds the servers.
    pub(crate) fn servers_key(self) -> &'static str {
        match self {
            Self::Plenipo | Self::Codex => "mcp_servers",
            Self::McpServers | Self::ClaudeDesktop => "mcpServers",
            Self::VsCode => "servers",
        }
    }

    /// For people.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Plenipo => "plenipo.toml",
            Self::Codex => "a configuration of Codex",
            Self::McpServers => "JSON with `mcpServers`",
            Self::ClaudeDesktop => "a configuration of Claude Desktop",
            Self::VsCode => "an `mcp.json` of VS Code",
        }
    }

    /// Of a TOML file with these top-level keys.
    pub(crate) fn of_toml<'k>(file: &str, keys: impl Iterator<Item = &'k str> + Clone) -> Self {
        if keys.clone().any(|key| ONLY_OURS.contains(&key)) {
            return Self::Plenipo;
        }
        let named = Path::new(file).file_name().is_some_and(|name| name == "config.toml");
        match named || keys.clone().any(|key| ONLY_CODEX.contains(&key)) {
            true => Self::Codex,
            false => Self::Plenipo,
        }
    }

    /// Of a JSON file with these top-level keys.
    pub(crate) fn of_json<'k>(
        file: &str,
        mut keys: impl Iterator<Item = &'k str> + Clone,
    ) -> Option<Self> {
        if keys.clone().any(|key| key == "mcpServers") {
            let name = Path::new(file).file_name();
            return Some(match name.is_some_and(|name| name == "claude_desktop_config.json") {
                true => Self::ClaudeDesktop,
                false => Self::McpServers,
            });
        }
        keys.any(|key| key == "servers").then_some(Self::VsCode)
    }
}

/// Whether the text is JSON: no TOML starts with a brace or a slash.
pub(crate) fn looks_like_json(text: &str, file: &str) -> bool {
    let named = Path::new(file).extension().is_some_and(|end| end == "json" || end == "jsonc");
    named || text.trim_start().starts_with(['{', '/'])
}

/// The folder that `.cursor/mcp.json` or `.vscode/mcp.json` belongs to.
pub(crate) fn workspace_of(file: &str) -> Option<PathBuf> {
    let file = Path::new(file);
    let folder = file.parent().filter(|_| file.is_absolute())?;
    let editor = folder.file_name().filter(|name| *name == ".cursor" || *name == ".vscode");
    editor.and_then(|_| folder.parent()).map(Path::to_path_buf)
}
