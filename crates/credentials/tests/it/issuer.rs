//! A strict authorization server with a resource: refresh tokens work once, and one that is used
//! again takes the whole sign-in away (RFC 9700 §4.14.2).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use plenipo_credentials::Vault;

use crate::support::{grant, sign_in, vault};

#[derive(Debug, Default)]
struct State {
    /// Tokens are numbered: `access-N` and `refresh-N`.
    number: u64,
    /// Calls that the current access token is still good for; without a number it is for ever.
    calls_left: Option<u64>,
    revoked: bool,
    refreshes: u64,
    refused: u64,
    failed: u64,
    /// The next answers to refreshes are this status, and change nothing.
    failing: Option<u16>,
    /// A refresh waits here, untouched, while this holds.
    held: bool,
    waiting: u64,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    lifetime: Duration,
}

/// Ends with the test's process; its threads wait for connections.
#[derive(Debug, Clone)]
pub(crate) struct Issuer {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Issuer {
    /// Starts one whose access tokens live for `lifetime`.
    pub(crate) fn start(lifetime: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("an address");
        let shared = Shared { state: Mutex::default(), changed: Condvar::new(), lifetime };
        let issuer = Self { address, shared: Arc::new(shared) };
        let served = issuer.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let issuer = served.clone();
                thread::spawn(move || issuer.serve(stream.expect("a connection")));
            }
        });
        issuer
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn refreshes(&self) -> u64 {
        self.change(|state| state.refreshes)
    }

    /// Refresh tokens that were no good.
    pub(crate) fn refused(&self) -> u64 {
        self.change(|state| state.refused)
    }

    /// Refreshes that were answered with [`fail_with`](Self::fail_with).
    pub(crate) fn failed(&self) -> u64 {
        self.change(|state| state.failed)
    }

    pub(crate) fn revoke(&self) {
        self.change(|state| state.revoked = true);
    }

    pub(crate) fn fail_with(&self, status: Option<u16>) {
        self.change(|state| state.failing = status);
    }

    /// The current access token is good for so many calls more, the next ones are as before.
    pub(crate) fn end_after_calls(&self, calls: u64) {
        self.change(|state| state.calls_left = Some(calls));
    }

    /// Holds refreshes back, or lets them go.
    pub(crate) fn hold(&self, held: bool) {
        self.change(|state| state.held = held);
        self.shared.changed.notify_all();
    }

    /// How many refreshes are held back.
    pub(crate) fn waiting(&self) -> u64 {
        self.change(|state| state.waiting)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.shared.state.lock().expect("state"))
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some(request) = read_request(&mut stream) else { return };
        let (status, body) = match request.split_whitespace().nth(1) {
            Some("/token") => self.token(&request, &stream),
            Some("/mcp") => (self.resource(&request), "{}".to_owned()),
            _ => (404, "{}".to_owned()),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {length}\r\n");
        // A client that was killed does not read it.
        drop(stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()));
    }

    fn token(&self, request: &str, stream: &TcpStream) -> (u16, String) {
        let mut state = self.shared.state.lock().expect("state");
        state.waiting += 1;
        while state.held {
            state = self.shared.changed.wait(state).expect("state");
        }
        state.waiting -= 1;
        if is_gone(stream) {
            return (400, String::new());
        }
        if let Some(status) = state.failing {
            state.failed += 1;
            return (status, r#"{"error":"server_error"}"#.to_owned());
        }
        let number = state.number;
        let is_good = request.contains(&format!("refresh_token=refresh-{number}&"))
            || request.ends_with(&format!("refresh_token=refresh-{number}"));
        if !is_good || state.revoked {
            state.refused += 1;
            state.revoked = true;
            return (400, r#"{"error":"invalid_grant"}"#.to_owned());
        }
        state.number += 1;
        state.refreshes += 1;
        state.calls_left = None;
        let (number, lifetime) = (state.number, self.shared.lifetime.as_secs());
        (
            200,
            format!(
                r#"{{"access_token":"access-{number}","token_type":"Bearer","expires_in":{lifetime},"refresh_token":"refresh-{number}"}}"#
            ),
        )
    }

    fn resource(&self, request: &str) -> u16 {
        let mut state = self.shared.state.lock().expect("state");
        let is_current = request.contains(&format!("access-{}\r\n", state.number));
        match &mut state.calls_left {
            _ if !is_current => 401,
            None => 200,
            Some(0) => 401,
            Some(left) => {
                *left -= 1;
                200
            }
        }
    }
}

/// An issuer, a directory and a sign-in there.
pub(crate) fn signed_in(lifetime: Duration) -> (Issuer, tempfile::TempDir, Vault) {
    let (issuer, directory) = (Issuer::start(lifetime), tempfile::tempdir().expect("a directory"));
    let vault = vault(&directory.path().join("credentials"));
    sign_in(&vault, &issuer.url(), grant(Some(lifetime)));
    (issuer, directory, vault)
}

/// Whether the other side has closed.
fn is_gone(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket");
    let is_gone = matches!(stream.peek(&mut [0]), Ok(0));
    stream.set_nonblocking(false).expect("a socket");
    is_gone
}

fn read_request(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text.into_owned());
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}
