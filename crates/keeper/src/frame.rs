//! What goes between this program and the keepers: requests with descriptors, orders of one byte, reports of five.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;

use plenipo_connect::StdioCommand;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::AsyncReadExt as _;

/// The server's stdin, stdout and stderr, and the socket of its keeper.
pub(crate) type Descriptors = [OwnedFd; 4];

const DESCRIPTORS: usize = 4;
/// Far above what the system lets a program have as arguments and environment.
const MOST_BYTES: usize = 16 * 1024 * 1024;
const REPORT_BYTES: usize = 5;

/// A server to be started.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) command: StdioCommand,
    pub(crate) descriptors: Descriptors,
}

/// To the keeper of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Terminate,
    Kill,
}

/// From the keeper of one server.
#[derive(Debug)]
pub(crate) enum Report {
    Started,
    Refused(io::Error),
    /// The server itself; `alone` when nothing of it is left.
    Ended {
        status: i32,
        alone: bool,
    },
}

/// Reads reports as they come.
#[derive(Debug)]
pub(crate) struct Reader {
    socket: tokio::net::UnixStream,
    bytes: [u8; REPORT_BYTES],
    filled: usize,
}

impl Order {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Terminate => b't',
            Self::Kill => b'k',
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Terminate, Self::Kill].into_iter().find(|order| order.byte() == byte)
    }
}

impl Report {
    pub(crate) fn write(&self, socket: &mut UnixStream) -> io::Result<()> {
        let (tag, number) = match self {
            Self::Started => (b's', 0),
            Self::Refused(error) => (b'r', error.raw_os_error().unwrap_or(22)), // EINVAL: a NUL inside
            Self::Ended { status, alone: false } => (b'e', *status),
            Self::Ended { status, alone: true } => (b'a', *status),
        };
        let [a, b, c, d] = number.to_ne_bytes();
        socket.write_all(&[tag, a, b, c, d])
    }

    fn read(bytes: [u8; REPORT_BYTES]) -> io::Result<Self> {
        let [tag, number @ ..] = bytes;
        let number = i32::from_ne_bytes(number);
        match tag {
            b's' => Ok(Self::Started),
            b'r' => Ok(Self::Refused(io::Error::from_raw_os_error(number))),
            b'e' | b'a' => Ok(Self::Ended { status: number, alone: tag == b'a' }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl Reader {
    pub(crate) fn new(socket: tokio::net::UnixStream) -> Self {
        Self { socket, bytes: [0; REPORT_BYTES], filled: 0 }
    }

    /// The next report; `None` when the keeper is gone. May be dropped at any point.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Report>> {
        while let Some(rest @ [_, ..]) = self.bytes.get_mut(self.filled..) {
            match self.socket.read(rest).await? {
                0 => return Ok(None),
                count => self.filled = self.filled.saturating_add(count),
            }
        }
        self.filled = 0;
        Report::read(self.bytes).map(Some)
    }
}

/// Sends a request: its length with the descriptors, then its text.
pub(crate) fn send_request(
    socket: &mut UnixStream,
    command: &StdioCommand,
    descriptors: Descriptors,
) -> io::Result<()> {
    let text = encode(command);
    let length = u32::try_from(text.len()).map_err(|_| io::ErrorKind::ArgumentListTooLong)?;
    let borrowed = descriptors.each_ref().map(|descriptor| descriptor.as_fd());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&borrowed));
    let head = length.to_ne_bytes();
    let sent = sendmsg(&*socket, &[IoSlice::new(&head)], &mut ancillary, SendFlags::NOSIGNAL)?;
    if sent != head.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    socket.write_all(&text)
}

/// The next request; `None` when nobody is left to send one.
pub(crate) fn receive_request(socket: &mut UnixStream) -> io::Result<Option<Request>> {
    let mut head = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        &*socket,
        &mut [IoSliceMut::new(&mut head)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            descriptors.extend(sent);
        }
    }
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let descriptors = Descriptors::try_from(descriptors).map_err(|_| bad())?;
    let length = usize::try_from(u32::from_ne_bytes(head)).map_err(|_| bad())?;
    if received.bytes != head.len() || length > MOST_BYTES {
        return Err(bad());
    }
    let mut text = vec![0; length];
    socket.read_exact(&mut text)?;
    let command = decode(&text).ok_or_else(bad)?;
    Ok(Some(Request { command, descriptors }))
}

/// Parts with their lengths before them: program, directory or nothing, how many arguments, these, names and values of
/// variables in turn.
fn encode(command: &StdioCommand) -> Vec<u8> {
    let mut text = Vec::with_capacity(1024);
    let mut part = |bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        text.extend(length.to_ne_bytes());
        text.extend(bytes);
    };
    part(command.program().as_bytes());
    part(command.directory().map(|path| path.as_os_str().as_bytes()).unwrap_or_default());
    let arguments = u32::try_from(command.arguments().len()).unwrap_or(u32::MAX);
    part(&arguments.to_ne_bytes());
    command.arguments().for_each(|argument| part(argument.as_bytes()));
    for (name, value) in command.variables() {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    text
}

fn decode(text: &[u8]) -> Option<StdioCommand> {
    let mut rest = text;
    let mut part = || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_ne_bytes(*length)).ok()?;
        let (part, after) = after.split_at_checked(length)?;
        rest = after;
        Some(part)
    };
    let mut command = StdioCommand::new(OsStr::from_bytes(part()?));
    let directory = part()?;
    if !directory.is_empty() {
        command.current_dir(OsString::from_vec(directory.to_vec()));
    }
    let count = u32::from_ne_bytes(part()?.try_into().ok()?);
    for _ in 0..count {
        command.args([OsStr::from_bytes(part()?)]);
    }
    while let Some(name) = part() {
        command.environment([(OsStr::from_bytes(name), OsStr::from_bytes(part()?))]);
    }
    Some(command)
}

#[cfg(test)]
mod tests {
    use std::io::pipe;

    use super::*;

    #[test]
    fn a_request_comes_through_whole_with_its_descriptors() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let mut command = StdioCommand::new("/bin/x y");
        command.args(["", "a\nb", "\u{1f600}"]).environment([("A", "1"), ("B", "")]);
        command.current_dir("/tmp");
        let (mut reads, writes) = pipe().unwrap();
        let spare = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let descriptors = [writes.into(), spare(), spare(), spare()];
        send_request(&mut near, &command, descriptors).unwrap();
        let request = receive_request(&mut far).unwrap().unwrap();
        assert_eq!(request.command, command);
        let [stdin, ..] = request.descriptors;
        std::fs::File::from(stdin).write_all(b"through").unwrap();
        let mut text = String::new();
        reads.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        drop(near);
        assert!(receive_request(&mut far).unwrap().is_none());
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        near.write_all(&8_u32.to_ne_bytes()).unwrap();
        assert!(receive_request(&mut far).is_err(), "there are no descriptors");
        assert!(decode(&[9, 0, 0, 0, b'x']).is_none(), "it is cut short");
    }
}
