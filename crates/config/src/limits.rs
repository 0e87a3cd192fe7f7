//! How much of a server is borne: sizes and counts, each with its key.

use std::ops::RangeInclusive;

use plenipo_connect::ConnectOptions;

use crate::error::ConfigError;
use crate::node::{Node, Place};
use crate::scalar::{bytes, count, rounds, small_bytes};

/// Bounds of one server. What is absent is as [`ConnectOptions`] has it.
///
/// | key | of | least to most |
/// |---|---|---|
/// | `max_message_bytes` | one message of the server, in bytes | 64 KiB to 1 GiB |
/// | `max_error_bytes` | the body of an HTTP error, in bytes; the rest is not read | 1 KiB to 16 MiB |
/// | `max_tools` | tools in its list | 1 to 100,000 |
/// | `max_list_items` | items of any other of its lists | 1 to 100,000 |
/// | `max_list_pages` | pages that one of its lists may come in | 1 to 100,000 |
/// | `max_input_rounds` | how often a call may be sent again with answers to its questions | 0 to 1,000 |
/// | `max_questions` | questions of one round | 1 to 100,000 |
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// `max_message_bytes`.
    pub max_message_bytes: Option<usize>,
    /// `max_error_bytes`.
    pub max_error_bytes: Option<usize>,
    /// `max_tools`.
    pub max_tools: Option<usize>,
    /// `max_list_items`.
    pub max_list_items: Option<usize>,
    /// `max_list_pages`.
    pub max_list_pages: Option<usize>,
    /// `max_input_rounds`.
    pub max_input_rounds: Option<u32>,
    /// `max_questions`.
    pub max_questions: Option<usize>,
}

impl Limits {
    /// What `max_message_bytes` may be: at least what a server needs to introduce itself.
    pub const MESSAGE_BYTES: RangeInclusive<usize> = 64 * 1024..=1024 * 1024 * 1024;

    /// Its keys.
    pub(crate) const KEYS: [&str; 7] = [
        "max_message_bytes",
        "max_error_bytes",
        "max_tools",
        "max_list_items",
        "max_list_pages",
        "max_input_rounds",
        "max_questions",
    ];

    /// Reads one of its keys.
    pub(crate) fn take(
        &mut self,
        key: &str,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<(), ConfigError> {
        match key {
            "max_message_bytes" => self.max_message_bytes = Some(bytes(node, place)?),
            "max_error_bytes" => self.max_error_bytes = Some(small_bytes(node, place)?),
            "max_tools" => self.max_tools = Some(count(node, place)?),
            "max_list_items" => self.max_list_items = Some(count(node, place)?),
            "max_list_pages" => self.max_list_pages = Some(count(node, place)?),
            "max_input_rounds" => self.max_input_rounds = Some(rounds(node, place)?),
            "max_questions" => self.max_questions = Some(count(node, place)?),
            unknown => return Err(place.unknown_key(unknown, Self::KEYS.into_iter())),
        }
        Ok(())
    }

    /// Puts what is given into `options`.
    pub fn apply_to(&self, options: &mut ConnectOptions) {
        let put = |given: Option<usize>, option: &mut usize| *option = given.unwrap_or(*option);
        put(self.max_message_bytes, &mut options.max_message_bytes);
        put(self.max_error_bytes, &mut options.max_error_bytes);
        put(self.max_tools, &mut options.max_tools);
        put(self.max_list_items, &mut options.max_list_items);
        put(self.max_list_pages, &mut options.max_list_pages);
        put(self.max_questions, &mut options.max_questions);
        options.max_input_rounds = self.max_input_rounds.unwrap_or(options.max_input_rounds);
    }
}
