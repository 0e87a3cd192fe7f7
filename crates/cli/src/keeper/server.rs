//! The keeper of one server: its parent, and that of every orphan it leaves.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plenipo_connect::transport::stdio::Descendants;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, wait};

use super::frame::{Order, Report, Request};

/// From the loss of who used the server to SIGKILL.
const GRACE: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(5);

/// Starts the server and stays until nothing of it is left.
pub(super) fn keep(request: Request) -> u8 {
    let Request { command, descriptors: [stdin, stdout, stderr, socket] } = request;
    let mut socket = UnixStream::from(socket);
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        return refuse(&mut socket, error.into());
    }
    #[expect(clippy::disallowed_methods, reason = "servers of the command line start here")]
    let mut start = Command::new(command.program());
    start.args(command.arguments()).env_clear().envs(command.variables()).process_group(0);
    start.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    if let Some(directory) = command.directory() {
        start.current_dir(directory);
    }
    let started = start.spawn();
    // Its copies of the server's streams would keep them open.
    drop(start);
    let server = match started.map(|child| i32::try_from(child.id()).ok().and_then(Pid::from_raw)) {
        Ok(Some(server)) => server,
        Ok(None) => return refuse(&mut socket, io::ErrorKind::Other.into()),
        Err(error) => return refuse(&mut socket, error),
    };
    let listening = socket
        .try_clone()
        .and_then(|orders| thread::Builder::new().spawn(move || obey(orders)).map(drop));
    if let Err(error) = listening {
        end();
        return refuse(&mut socket, error);
    }
    // Who is not there to read it shows it by closing the socket.
    Report::Started.write(&mut socket).unwrap_or_default();
    reap(server, &mut socket)
}

fn refuse(socket: &mut UnixStream, error: io::Error) -> u8 {
    Report::Refused(error).write(socket).unwrap_or_default();
    0
}

/// Waits for everything that was started, and tells of the server.
fn reap(server: Pid, socket: &mut UnixStream) -> u8 {
    let mut ended = None;
    loop {
        // Whoever is left is waited for; the server's end is told once that is clear.
        let options = if ended.is_some() { WaitOptions::NOHANG } else { WaitOptions::empty() };
        match wait(options) {
            Ok(Some((pid, status))) if pid == server => ended = Some(status.as_raw()),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => {
                if let Some(status) = ended.take() {
                    Report::Ended { status, alone: false }.write(socket).unwrap_or_default();
                }
            }
            Err(_) => {
                if let Some(status) = ended {
                    Report::Ended { status, alone: true }.write(socket).unwrap_or_default();
                }
                return 0;
            }
        }
    }
}

/// Does as it is told, and ends everything when nobody is left to tell it.
fn obey(mut orders: UnixStream) {
    let mut byte = [0];
    loop {
        match orders.read(&mut byte) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(1) => match Order::from_byte(u8::from_ne_bytes(byte)) {
                Some(Order::Terminate) => Descendants::of(getpid()).signal(Signal::TERM),
                Some(Order::Kill) | None => end(),
            },
            _ => break,
        }
    }
    // Its stdin is closed by now: a server with manners ends by itself.
    Descendants::of(getpid()).signal(Signal::TERM);
    let limit = Instant::now() + GRACE;
    while Instant::now() < limit {
        thread::sleep(POLL);
    }
    end();
}

/// Kills until the other thread finds that nobody is left, and with that ends this process.
fn end() {
    loop {
        let left = Descendants::of(getpid());
        // Stopped first: what is stopped starts nothing that would be missed.
        left.signal(Signal::STOP);
        left.signal(Signal::KILL);
        if left.is_empty() {
            return;
        }
        thread::sleep(POLL);
    }
}
