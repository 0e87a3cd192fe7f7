//! Whole connections against fake servers (`tests/data/servers`, run by `python3`).
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests are tests too"
)]

mod approval;
mod authority;
mod cache;
mod calls;
mod cases;
mod catalog;
mod enterprise;
mod environments;
mod fleet;
mod host;
mod http_authorizer;
mod http_calls;
mod http_headers;
mod http_memory;
mod http_negotiation;
mod http_network;
mod http_tls;
mod input;
mod interop;
mod launcher;
mod negotiation;
mod oauth;
mod paging;
mod peers;
mod prompts;
mod resources;
mod restart;
mod schemas;
mod shutdown;
mod skills;
mod subscriptions;
mod support;
mod tasks;
mod web;
