//! How records get from the process that watches to the one that proposes: a socket without a file, so that nothing is
//! left behind however both end. Only this user may connect; who is watched could say something wrong, as it could do
//! something else in a watched run than otherwise.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getuid;

use crate::{Record, Survey};

/// How long the last records may take once the server has ended.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a host starts a server, trying one thing after the other.
const MOST_PROCESSES: usize = 16;

/// Takes the records of one run, of each process that its host starts for it.
#[derive(Debug)]
pub struct Collector {
    name: String,
    stop: UnixStream,
    accepting: JoinHandle<io::Result<Survey>>,
}

impl Collector {
    /// Begins to listen, on a thread of its own.
    ///
    /// # Errors
    /// The system's.
    pub fn start() -> io::Result<Self> {
        let mut random = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let name = format!("plenipo-trace-{:032x}", u128::from_ne_bytes(random));
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let (stop, stopped) = UnixStream::pair()?;
        let accepting = std::thread::spawn(move || accept(&listener, &stopped));
        Ok(Self { name, stop, accepting })
    }

    /// What `plenipo trace` has to be told.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Everything that was recorded. Waits for the end of the run, at most five seconds.
    ///
    /// # Errors
    /// Nobody reported, or a connection broke.
    pub fn finish(self) -> io::Result<Survey> {
        drop(self.stop);
        self.accepting.join().map_err(|_| panicked())?
    }
}

fn panicked() -> io::Error {
    io::Error::other("a reader of records panicked")
}

/// Takes connections of this user until the run has ended.
fn accept(listener: &UnixListener, stopped: &UnixStream) -> io::Result<Survey> {
    let mut readers = Vec::new();
    loop {
        let mut waited =
            [PollFd::new(listener, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        poll(&mut waited, None)?;
        if !waited.iter().take(1).any(|one| one.revents().contains(PollFlags::IN)) {
            break;
        }
        let (stream, _) = listener.accept()?;
        let ours = rustix::net::sockopt::socket_peercred(&stream)?.uid == getuid();
        if ours && readers.len() < MOST_PROCESSES {
            let stopped = stopped.try_clone()?;
            readers.push(std::thread::spawn(move || read(stream, &stopped)));
        }
    }
    if readers.is_empty() {
        return Err(io::Error::other("nothing reported"));
    }
    let mut survey = Survey::default();
    for reader in readers {
        for record in reader.join().map_err(|_| panicked())??.into_records() {
            survey.add(record);
        }
    }
    Ok(survey)
}

fn read(stream: UnixStream, stopped: &UnixStream) -> io::Result<Survey> {
    let mut survey = Survey::default();
    let waiting = stream.try_clone()?;
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        if lines.buffer().is_empty() && !wait(&waiting, stopped)? {
            survey.add(Record::Incomplete);
            return Ok(survey);
        }
        line.clear();
        let limit = u64::try_from(Record::MAX_LINE).unwrap_or(u64::MAX);
        if (&mut lines).take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(survey);
        }
        survey.add(serde_json::from_slice(&line).unwrap_or(Record::Incomplete));
    }
}

/// Until there is more, or a while after the run has ended.
fn wait(stream: &UnixStream, stopped: &UnixStream) -> io::Result<bool> {
    let mut waited = [PollFd::new(stream, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
    poll(&mut waited, None)?;
    let mut more = [PollFd::new(stream, PollFlags::IN)];
    let limit = Timespec::try_from(PATIENCE).ok();
    Ok(poll(&mut more, limit.as_ref())? > 0)
}

/// The other end: says each record once.
pub(crate) struct Reporter {
    stream: UnixStream,
    told: Survey,
}

impl Reporter {
    pub(crate) fn connect(name: &str) -> io::Result<Self> {
        let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        Ok(Self { stream, told: Survey::default() })
    }

    /// Nobody may be left to hear it: the server goes on all the same.
    pub(crate) fn tell(&mut self, record: Record) {
        if let Some(record) = self.told.add(record) {
            let mut line = serde_json::to_vec(record).unwrap_or_default();
            line.push(b'\n');
            drop(self.stream.write_all(&line));
        }
    }
}
