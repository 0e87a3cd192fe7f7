//! Uses one credential from many tasks: `tokens STORE ISSUER TASKS CALLS`.
//!
//! Makes `CALLS` calls of `ISSUER/mcp` on each of `TASKS` tasks with the credential that is stored
//! in `STORE` (a directory, `keyring/BUS ADDRESS` or `postgres/CONNECTION STRING`), refreshing it when the resource refuses it, and prints how many were answered.
//! Several of these at once share one refresh. Only for servers on loopback without TLS.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "an example, and the tests' stand-in for another process"
)]

#[path = "../tests/it/http.rs"]
mod http;
#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "shared with the tests, which use all of it")]
mod support;

use std::path::Path;
use std::time::Duration;

use plenipo_credentials::Vault;

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [store, issuer, tasks, calls] = words.as_slice() else {
        println!("usage: tokens STORE ISSUER TASKS CALLS");
        return;
    };
    let vault = vault_named(store);
    let source = support::source(&vault, issuer, Duration::from_secs(30));
    let address = issuer.trim_start_matches("http://").to_owned();
    let (tasks, calls): (u32, u32) =
        (tasks.parse().expect("a number"), calls.parse().expect("a number"));
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            let (source, address) = (source.clone(), address.clone());
            tokio::spawn(async move { support::calls(&source, &address, calls).await })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        done += task.await.expect("the task ends");
    }
    println!("{done}");
}

/// The store that a word names: `keyring/BUS ADDRESS`, `postgres/CONNECTION STRING`, or a directory.
fn vault_named(name: &str) -> Vault {
    match name.split_once('/') {
        #[cfg(feature = "keyring")]
        Some(("keyring", bus)) => support::keyring(bus),
        #[cfg(feature = "postgres")]
        Some(("postgres", address)) => support::postgres(address),
        _ => support::vault(Path::new(name)),
    }
}
