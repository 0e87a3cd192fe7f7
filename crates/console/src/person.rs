//! The person at the terminal: what servers and rules want to know is asked there, one question at a time.
//!
//! Questions go to stderr, answers come from stdin, and both have to be a terminal. What a server says is quoted,
//! shortened and has no say over the terminal. Ctrl-D ends a question without an answer, Ctrl-C the whole call.

mod approval;
mod browser;
mod form;
mod given;
mod quote;
mod url;

use std::io::{BufRead as _, IsTerminal as _};
use std::sync::Arc;
use std::sync::mpsc as blocking;

use plenipo_connect::input::{
    Completion, InputAnswer, InputFuture, InputHandler, InputKind, InputOffer, InputRefusal,
    InputRequest,
};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::{Mutex, MutexGuard, mpsc};

use crate::terminal;

pub use given::Given;

/// Somebody who can be asked.
pub struct Person {
    lines: Mutex<Lines>,
}

/// A thread of its own reads, since reading a terminal cannot be given up.
#[derive(Default)]
struct Lines {
    reader: Option<Reader>,
    /// A line is wanted and has not come.
    reading: bool,
}

struct Reader {
    wanted: blocking::Sender<()>,
    lines: mpsc::UnboundedReceiver<Option<String>>,
}

/// One conversation; nobody else asks meanwhile.
pub struct Talk<'a>(MutexGuard<'a, Lines>);

impl Person {
    /// Whoever sits at the terminal, if there is one.
    #[must_use]
    pub fn at_terminal() -> Option<Arc<Self>> {
        let here = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        here.then(|| Arc::new(Self { lines: Mutex::default() }))
    }

    /// Begins a conversation. What was typed before the question was there is no answer to it.
    pub async fn talk(&self) -> Talk<'_> {
        let mut lines = self.lines.lock().await;
        lines.forget();
        Talk(lines)
    }
}

impl Lines {
    fn forget(&mut self) {
        tcflush(std::io::stdin(), QueueSelector::IFlush).ok();
        if let Some(reader) = &mut self.reader {
            while reader.lines.try_recv().is_ok() {
                self.reading = false;
            }
        }
    }

    async fn next(&mut self) -> Option<String> {
        let reader = self.reader.get_or_insert_with(Reader::start);
        if !self.reading {
            reader.wanted.send(()).ok()?;
            self.reading = true;
        }
        let line = reader.lines.recv().await;
        self.reading = false;
        line.flatten()
    }
}

impl Reader {
    fn start() -> Self {
        let (wanted, requests) = blocking::channel::<()>();
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            while requests.recv().is_ok() {
                let mut line = String::new();
                let read = std::io::stdin().lock().read_line(&mut line);
                let line = read.is_ok_and(|count| count > 0).then_some(line);
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { wanted, lines }
    }
}

/// Ends the line of a question that is given up.
struct OpenLine;

impl Drop for OpenLine {
    fn drop(&mut self) {
        terminal::tell("");
    }
}

impl Talk<'_> {
    /// One line.
    pub fn say(&self, line: &str) {
        terminal::tell(line);
    }

    /// A line that is waited for beside other things: no question ends when it is given up.
    pub async fn line(&mut self) -> Option<String> {
        self.0.next().await
    }

    /// The answer without its line end; `None` when there is none: Ctrl-D, or the terminal is gone.
    pub async fn ask(&mut self, question: &str) -> Option<String> {
        terminal::ask(question);
        let open = OpenLine;
        let line = self.0.next().await?;
        std::mem::forget(open);
        Some(line.trim_end_matches(['\n', '\r']).to_owned())
    }

    /// Asks until the answer begins like one of `words`; `default` is taken for an empty line.
    pub async fn choose(
        &mut self,
        question: &str,
        words: &[&'static str],
        default: Option<&'static str>,
    ) -> Option<&'static str> {
        loop {
            let answer = self.ask(question).await?.trim().to_ascii_lowercase();
            let chosen = match answer.as_str() {
                "" => default,
                answer => words.iter().copied().find(|word| word.starts_with(answer)),
            };
            match chosen {
                Some(word) => return Some(word),
                None => self.say(&format!("  please answer {}", words.join(", "))),
            }
        }
    }
}

/// Answers servers: with what the command line gave, and by asking.
pub struct Answers {
    person: Option<Arc<Person>>,
    given: Given,
}

impl Answers {
    /// Of somebody, if there is one, and what was given beforehand.
    #[must_use]
    pub fn new(person: Option<Arc<Person>>, given: Given) -> Self {
        Self { person, given }
    }

    /// Whether there is anything to answer with.
    #[must_use]
    pub fn is_nobody(&self) -> bool {
        self.person.is_none() && self.given.is_empty()
    }

    /// What `--input` gave and no form asked for.
    #[must_use]
    pub fn unused(&self) -> Vec<String> {
        self.given.unused()
    }

    async fn respond(&self, request: &InputRequest) -> InputAnswer {
        match (&request.kind, &self.person) {
            (InputKind::Form { message, form }, Some(person)) => {
                form::ask(person, request, message, form, &self.given).await
            }
            (InputKind::Form { form, .. }, None) => match self.given.answer(form) {
                Ok(content) => InputAnswer::Accept(Some(content)),
                Err(reason) => {
                    let server = &request.server;
                    terminal::warn(&format!("server `{server}` asks for input: {reason}"));
                    InputAnswer::Cancel
                }
            },
            (InputKind::Url { message, url, .. }, Some(person)) => {
                url::ask(person, request, message, url).await
            }
            _ => {
                let server = &request.server;
                terminal::warn(&format!(
                    "server `{server}` asks for input, and nobody is here to give it"
                ));
                InputAnswer::Cancel
            }
        }
    }
}

impl InputHandler for Answers {
    fn offers(&self) -> InputOffer {
        let mut offer = InputOffer::NOTHING;
        offer.form = !self.is_nobody();
        offer.url = self.person.is_some();
        offer
    }

    fn answer<'a>(
        &'a self,
        request: &'a InputRequest,
    ) -> InputFuture<'a, Result<InputAnswer, InputRefusal>> {
        Box::pin(async move { Ok(self.respond(request).await) })
    }

    fn finished<'a>(
        &'a self,
        _request: &'a InputRequest,
        completion: Completion,
    ) -> InputFuture<'a, ()> {
        Box::pin(async move {
            let Some(person) = &self.person else { return completion.wait().await };
            let mut talk = person.talk().await;
            tokio::select! {
                () = completion.wait() => {}
                _ = talk.ask("Press Enter when you are done. ") => {}
            }
        })
    }
}

/// `server notes asks, during notes.search:` and what it says.
fn introduce(talk: &Talk<'_>, request: &InputRequest, verb: &str, message: &str) {
    let during = match &request.during {
        Some(plenipo_connect::Operation::Call { tool }) => {
            format!(", during `{}.{}`", request.server, plenipo_connect::text::shown(tool))
        }
        _ => String::new(),
    };
    let server = terminal::stderr().bold(&format!("server `{}`", request.server));
    talk.say(&format!("{server} {verb}{during}:"));
    for line in quote::lines(message) {
        talk.say(&line);
    }
}
