//! Measures what a token costs that is in memory and fresh: `token_reads [READS]`.
//!
//! Prints nanoseconds for each read, alone and on four tasks while a fifth puts refreshed tokens in its place:
//! `alone_ns=… busy_ns=… refreshes=…`. The store is a directory that is removed halfway: a read that went there
//! would fail.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "an example, whose ground has to be there"
)]

#[path = "../tests/it/http.rs"]
mod http;
#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "shared with the tests, which use all of it")]
mod support;

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plenipo_credentials::TokenSource;

const READERS: u64 = 4;
const HOUR: Duration = Duration::from_secs(3600);

fn main() {
    let reads: u64 =
        std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a directory");
    let (issuer, vault) = (issuer(), support::vault(&directory.path().join("credentials")));
    support::sign_in(&vault, &issuer, support::grant(Some(HOUR)));
    let source = support::source(&vault, &issuer, Duration::from_secs(30));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let (busy, refreshes) = busy(&runtime, &source, reads);
    directory.close().expect("the store is removed");
    println!("alone_ns={:.1} busy_ns={busy:.1} refreshes={refreshes}", nanoseconds(&source, reads));
}

fn nanoseconds(source: &TokenSource, reads: u64) -> f64 {
    let begin = Instant::now();
    for _ in 0..reads {
        black_box(source.fresh().expect("a fresh token"));
    }
    begin.elapsed().as_secs_f64() * 1e9 / reads as f64
}

/// Reads on several threads while the token is refreshed again and again.
fn busy(runtime: &tokio::runtime::Runtime, source: &TokenSource, reads: u64) -> (f64, u64) {
    let (done, refreshes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let refreshing = {
        let (source, done, refreshes) = (source.clone(), Arc::clone(&done), Arc::clone(&refreshes));
        runtime.spawn(async move {
            while !done.load(Ordering::Relaxed) {
                let serial = source.token().await.expect("a token").serial;
                source.refused(serial).await.expect("another token");
                refreshes.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let source = source.clone();
            std::thread::spawn(move || nanoseconds(&source, reads))
        })
        .collect();
    let total: f64 = readers.into_iter().map(|reader| reader.join().expect("a reader")).sum();
    done.store(true, Ordering::Relaxed);
    runtime.block_on(refreshing).expect("refreshes");
    (total / READERS as f64, refreshes.load(Ordering::Relaxed))
}

/// An issuer on loopback that grants whatever is asked.
fn issuer() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a connection");
            let mut request = [0; 4096];
            let count = stream.read(&mut request).expect("a request");
            let asks = request.get(..count).is_some_and(|head| head.starts_with(b"POST /token"));
            let body = format!(
                r#"{{"access_token":"a-{number}","token_type":"Bearer","expires_in":3600,"refresh_token":"r-{number}"}}"#
            );
            let (status, body) =
                if asks { ("200 OK", body) } else { ("404 Not Found", "{}".to_owned()) };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).expect("an answer");
        }
    });
    url
}
