//! Measures what attaching an authority to a call costs: `attach_state [CALLS]`.
//!
//! The state has 10 KiB, the launcher is this program, the caller sends an entry of its own. The entries
//! are written into one buffer that is used again, as a frame's is. Prints nanoseconds for each call:
//! `state_ns=…` without a launcher, `launcher_ns=…` with one, whose file is looked at for each call.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "an example, whose ground has to be there"
)]

use std::hint::black_box;
use std::time::Instant;

use plenipo_authority::{
    AuthorityParts, CapturedAuthority, EntryName, EnvironmentId, SandboxState, ServerReach,
    VerifiedLauncher,
};
use plenipo_wire::RequestId;
use plenipo_wire::encode::write_request_with;
use serde_json::value::RawValue;

const STATE_BYTES: usize = 10 * 1024;

fn main() {
    let calls: u32 =
        std::env::args().nth(1).map_or(100_000, |text| text.parse().expect("a number"));
    let alone = authority(None);
    let program = std::env::current_exe().expect("a path of this program");
    let launched = authority(Some(VerifiedLauncher::verify(&program).expect("a launcher")));
    println!(
        "state_ns={:.0} launcher_ns={:.0}",
        attached(&alone, calls),
        attached(&launched, calls)
    );
}

fn authority(launcher: Option<VerifiedLauncher>) -> CapturedAuthority {
    let mut text = String::from(r#"{"entries":["#);
    while text.len() < STATE_BYTES {
        text.push_str(r#"{"path":"/home/user/project","access":"write","depth":1},"#);
    }
    text.push_str("{}]}");
    let mut parts = AuthorityParts::new(EnvironmentId::local(), ServerReach::LocalStdio);
    parts.state = Some(SandboxState::capture(&text).expect("a state"));
    parts.opt_in = true;
    parts.launcher = launcher;
    CapturedAuthority::capture(parts)
}

fn attached(authority: &CapturedAuthority, calls: u32) -> f64 {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("a value");
    let (caller, token) =
        (raw(r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c"}"#), raw("7"));
    let extra = [("progressToken", &*token)];
    let mut frame: Vec<u8> = Vec::with_capacity(4 * STATE_BYTES);
    let begin = Instant::now();
    for _ in 0..calls {
        frame.clear();
        let entries = authority.attachment(Some(&caller), &extra).expect("an attachment");
        write_request_with(&mut frame, &RequestId::Number(7), "tools/call", |params| {
            params.object("_meta", |meta| {
                for (name, value) in entries.entries() {
                    match name {
                        EntryName::Written(name) => meta.raw_spelled(name, value),
                        EntryName::Plain(name) => meta.raw(name, value),
                    }
                }
            });
        });
        black_box(&frame);
    }
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
}
