//! Typed views of results and notifications. They borrow, read only what they name, and judge
//! each item by itself: one malformed tool never hides a list. Whatever a view does not name is
//! still in its raw text.

mod call;
mod handshake;
mod page;
mod progress;
mod prompts;
mod resources;
mod skills;
mod tasks;
mod tools;

pub use call::{CallResult, ContentBlock, ResultType};
pub use handshake::{DiscoverResult, Implementation, InitializeResult};
pub use page::Page;
pub use progress::{Cancelled, Progress};
pub use prompts::{CompletionResult, PromptArgument, PromptMessage, PromptResult, PromptView};
pub use resources::{ReadResult, ResourceContents, ResourceTemplateView, ResourceView};
pub use skills::{SkillFile, SkillView};
pub use tasks::{TaskStatus, TaskView};
pub use tools::{ToolAnnotations, ToolPage, ToolView};

use serde_json::value::RawValue;

use crate::error::ViewError;
use crate::object::type_name;

fn wrong(
    what: &'static str,
    path: &'static str,
    expected: &'static str,
    found: Option<&RawValue>,
) -> ViewError {
    ViewError { what, path, expected, found: found.map_or("nothing", type_name), item: None }
}
