//! What goes between this program and the keepers: requests with descriptors, orders of nine bytes, the last one with
//! descriptors, reports of five.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use plenipo_process::{Grace, StdioCommand};
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
const ORDER_BYTES: usize = 9;
/// The server's stdout and stderr, to be read from, and a lock.
const OUTPUTS: usize = 3;
/// In place of a length: how long to be patient, in milliseconds.
const PATIENCE_MARK: u32 = 1 << 31;

/// What the first keeper is asked.
#[derive(Debug)]
pub(crate) enum Asked {
    Start(Request),
    /// To give the others so long to end their servers once this program is gone.
    Patience(Duration),
}

/// A server to be started.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) command: StdioCommand,
    pub(crate) descriptors: Descriptors,
}

/// To the keeper of one server.
#[derive(Debug)]
pub(crate) enum Order {
    Terminate,
    Kill,
    /// To see to the server's end alone, and to read what it still writes; the third is to be kept open till then.
    TakeOver {
        outputs: Vec<OwnedFd>,
        grace: Grace,
    },
}

/// Reads orders as they come.
#[derive(Debug)]
pub(crate) struct Orders {
    pub(crate) socket: UnixStream,
    bytes: [u8; ORDER_BYTES],
    filled: usize,
    outputs: Vec<OwnedFd>,
}

/// From the keeper of one server.
#[derive(Debug)]
pub(crate) enum Report {
    Started,
    Refused(io::Error),
    /// The order to take over was read.
    TakenOver,
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
    /// Sends it without waiting.
    pub(crate) fn send(self, socket: &UnixStream) -> io::Result<()> {
        let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let (tag, grace, outputs) = match self {
            Self::Terminate => (b't', None, Vec::new()),
            Self::Kill => (b'k', None, Vec::new()),
            Self::TakeOver { outputs, grace } => (b'o', Some(grace), outputs),
        };
        let [a, b, c, d] = grace.map_or(0, |grace| millis(grace.stdin_closed)).to_ne_bytes();
        let [e, f, g, h] = grace.map_or(0, |grace| millis(grace.terminated)).to_ne_bytes();
        let borrowed: Vec<_> = outputs.iter().map(OwnedFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(OUTPUTS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !borrowed.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&borrowed));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let order = [tag, a, b, c, d, e, f, g, h];
        match sendmsg(socket, &[IoSlice::new(&order)], &mut ancillary, flags)? {
            ORDER_BYTES => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

impl Orders {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self { socket, bytes: [0; ORDER_BYTES], filled: 0, outputs: Vec::new() }
    }

    /// The next order; `None` when nobody is left to give one, an error of kind
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) while there is none.
    pub(crate) fn next(&mut self) -> io::Result<Option<Order>> {
        while let Some(rest @ [_, ..]) = self.bytes.get_mut(self.filled..) {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(OUTPUTS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(rest)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let received = recvmsg(&self.socket, &mut parts, &mut ancillary, flags)?;
            if received.bytes == 0 {
                return Ok(None);
            }
            self.filled = self.filled.saturating_add(received.bytes);
            self.outputs.extend(descriptors(&mut ancillary));
        }
        self.filled = 0;
        let [tag, a, b, c, d, e, f, g, h] = self.bytes;
        let time = |bytes| Duration::from_millis(u32::from_ne_bytes(bytes).into());
        let outputs = std::mem::take(&mut self.outputs);
        Ok(Some(match tag {
            b't' => Order::Terminate,
            b'o' => Order::TakeOver {
                outputs,
                grace: Grace::new(time([a, b, c, d]), time([e, f, g, h])),
            },
            _ => Order::Kill,
        }))
    }
}

impl Report {
    pub(crate) fn write(&self, socket: &mut UnixStream) -> io::Result<()> {
        let (tag, number) = match self {
            Self::Started => (b's', 0),
            Self::Refused(error) => (b'r', error.raw_os_error().unwrap_or(22)), // EINVAL: a NUL inside
            Self::TakenOver => (b'o', 0),
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
            b'o' => Ok(Self::TakenOver),
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
pub(crate) fn receive_request(socket: &mut UnixStream) -> io::Result<Option<Asked>> {
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
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let length = u32::from_ne_bytes(head);
    if received.bytes == head.len() && length & PATIENCE_MARK != 0 {
        let patience = Duration::from_millis((length & !PATIENCE_MARK).into());
        return Ok(Some(Asked::Patience(patience)));
    }
    let descriptors = Descriptors::try_from(descriptors(&mut ancillary)).map_err(|_| bad())?;
    let length = usize::try_from(length).map_err(|_| bad())?;
    if received.bytes != head.len() || length > MOST_BYTES {
        return Err(bad());
    }
    let mut text = vec![0; length];
    socket.read_exact(&mut text)?;
    let command = decode(&text).ok_or_else(bad)?;
    Ok(Some(Asked::Start(Request { command, descriptors })))
}

/// Tells the first keeper how long the others may take.
pub(crate) fn send_patience(socket: &mut UnixStream, patience: Duration) -> io::Result<()> {
    let most = u128::from(PATIENCE_MARK - 1);
    let millis = u32::try_from(patience.as_millis().min(most)).unwrap_or_default();
    socket.write_all(&(millis | PATIENCE_MARK).to_ne_bytes())
}

fn descriptors(ancillary: &mut RecvAncillaryBuffer<'_>) -> Vec<OwnedFd> {
    let sent = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sent) => Some(sent),
        _ => None,
    });
    sent.flatten().collect()
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
        let Asked::Start(request) = receive_request(&mut far).unwrap().unwrap() else {
            panic!("something else");
        };
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
    fn patience_is_asked_for_between_requests() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        send_patience(&mut near, Duration::from_millis(4500)).unwrap();
        drop(near);
        let asked = receive_request(&mut far).unwrap();
        assert!(matches!(asked, Some(Asked::Patience(time)) if time.as_millis() == 4500));
        assert!(receive_request(&mut far).unwrap().is_none());
    }

    #[test]
    fn orders_come_one_by_one_and_the_last_with_the_outputs() {
        let (near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        let mut orders = Orders::new(far);
        assert_eq!(orders.next().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let (reads, mut writes) = pipe().unwrap();
        let spare = std::fs::File::open("/dev/null").unwrap();
        let grace = Grace::new(Duration::from_secs(3), Duration::from_millis(70));
        Order::Terminate.send(&near).unwrap();
        let outputs = vec![reads.into(), spare.into()];
        Order::TakeOver { outputs, grace }.send(&near).unwrap();
        drop(near);
        assert!(matches!(orders.next().unwrap(), Some(Order::Terminate)));
        let Some(Order::TakeOver { outputs, grace: read }) = orders.next().unwrap() else {
            panic!("something else");
        };
        assert_eq!(read, grace);
        let [stdout, _stderr] = <[OwnedFd; 2]>::try_from(outputs).unwrap();
        writes.write_all(b"through").unwrap();
        drop(writes);
        let mut text = String::new();
        std::fs::File::from(stdout).read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert!(orders.next().unwrap().is_none());
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        near.write_all(&8_u32.to_ne_bytes()).unwrap();
        assert!(receive_request(&mut far).is_err(), "there are no descriptors");
        assert!(decode(&[9, 0, 0, 0, b'x']).is_none(), "it is cut short");
    }
}
