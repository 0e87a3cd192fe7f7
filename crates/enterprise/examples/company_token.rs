//! Measures what a request pays for a token of the company that is in memory and good: `company_token [REQUESTS]`.
//!
//! Prints nanoseconds for each: `warm_ns=…`, the check of the URL included. The store is removed before: a
//! look into it would fail.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "an example, whose ground has to be there"
)]

#[path = "../tests/it/parties.rs"]
#[expect(dead_code, reason = "shared with the tests, which use all of it")]
mod parties;
#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "shared with the tests, which use all of it")]
mod support;

use std::hint::black_box;
use std::time::Instant;

use parties::{Company, MCP};

fn main() {
    let requests: u32 =
        std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("a number"));
    let company = Company::signed_in();
    let client = company.open().expect("somebody is signed in");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let each = runtime.block_on(async {
        client.token(MCP).await.expect("a token");
        std::fs::remove_dir_all(company.directory.path().join("credentials")).expect("no store");
        let begun = Instant::now();
        for _ in 0..requests {
            black_box(client.token(MCP).await.expect("a token"));
        }
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(requests)
    });
    println!("warm_ns={each:.1}");
}
