//! Multi round-trip requests (2026-07-28, "Multi Round-Trip Requests"): the server answers that it
//! needs input, the request is sent again with the answers.
//!
//! Generic over what is sent, [`Attempt`]: `tools/call`, `prompts/get` and `resources/read` are the
//! only requests that may be answered so. Every attempt has a fresh id. `requestState` is the
//! server's own text, echoed as it came and used for that one retry.

use std::collections::HashSet;
use std::future::Future;
use std::time::Duration;

use plenipo_wire::encode::ObjectWriter;
use plenipo_wire::object::{self, non_null};
use plenipo_wire::protocol::{error_code, methods};
use plenipo_wire::views::ResultType;
use plenipo_wire::{Fragment, RawValue};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{Fault, InputFault, PeerError};
use crate::input::asks::Asks;
use crate::input::respond::{Asker, Refused, Whose, is_accepted, required_urls};
use crate::input::{InputKind, InputRequest};
use crate::peer::RequestFault;

/// Before the first retry that has nothing new to say; doubled each time.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// For a person to get done what is behind a URL.
const LONGEST_ERRAND: Duration = Duration::from_secs(600);

/// A request that can be sent again.
pub(crate) trait Attempt {
    /// Sends it once, under the same authority each time, within the limits of the whole.
    fn send(
        &self,
        retry: &Retry,
    ) -> impl Future<Output = Result<Box<RawValue>, RequestFault>> + Send;

    /// Waits until the caller cancels.
    fn cancelled(&self) -> impl Future<Output = Fault> + Send;

    /// A person was asked for so long, which no deadline counts.
    fn spent_asking(&self, time: Duration);
}

/// What a request carries beside itself when it is sent again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Retry {
    responses: Option<Fragment>,
    state: Option<Fragment>,
    is_retry: bool,
}

/// Answers what the server asks and sends again, within bounds.
#[derive(Debug)]
pub(crate) struct Rounds<'a> {
    pub(crate) asks: &'a Asks,
    /// Nobody: whatever is asked was not offered.
    pub(crate) asker: Option<&'a Asker>,
    pub(crate) is_modern: bool,
    /// `max_input_rounds`.
    pub(crate) limit: u32,
    /// `max_questions`.
    pub(crate) questions: usize,
}

/// Why a request has to be sent again.
#[derive(Debug)]
pub(crate) enum Need {
    /// `resultType: "input_required"`.
    Input(Box<RawValue>),
    /// Error `URLElicitationRequired` of a 2025-11-25 server.
    Urls(PeerError),
}

impl Retry {
    /// Whether it is the first send.
    pub(crate) fn is_first(&self) -> bool {
        !self.is_retry
    }

    /// Adds its members to the parameters.
    pub(crate) fn write(&self, params: &mut ObjectWriter<'_>) {
        if let Some(responses) = &self.responses {
            params.fragment("inputResponses", responses);
        }
        if let Some(state) = &self.state {
            params.fragment("requestState", state);
        }
    }
}

impl Need {
    /// What an attempt's end asks for, if it is not the end of all.
    pub(crate) fn of(
        landed: Result<Box<RawValue>, RequestFault>,
    ) -> Result<Result<Self, Box<RawValue>>, RequestFault> {
        match landed {
            Ok(result) if ResultType::of(&result) == Some(ResultType::InputRequired) => {
                Ok(Ok(Self::Input(result)))
            }
            Ok(result) => Ok(Err(result)),
            Err(RequestFault::Peer(error))
                if error.code == error_code::URL_ELICITATION_REQUIRED =>
            {
                Ok(Ok(Self::Urls(error)))
            }
            Err(fault) => Err(fault),
        }
    }
}

impl Rounds<'_> {
    /// Sends and follows up until there is a result that asks for nothing.
    pub(crate) async fn run<A: Attempt>(&self, attempt: &A) -> Result<Box<RawValue>, RequestFault> {
        match Need::of(attempt.send(&Retry::default()).await)? {
            Ok(need) => self.follow(attempt, need).await,
            Err(result) => Ok(result),
        }
    }

    /// Follows up on a first attempt that asked for something.
    pub(crate) async fn follow<A: Attempt>(
        &self,
        attempt: &A,
        mut need: Need,
    ) -> Result<Box<RawValue>, RequestFault> {
        let mut pause = PAUSE;
        for _ in 0..self.limit {
            let begun = Instant::now();
            let retry = tokio::select! {
                biased;
                fault = attempt.cancelled() => return Err(RequestFault::Fault(fault)),
                retry = self.prepare(&need) => retry?,
            };
            if retry.responses.is_some() || matches!(need, Need::Urls(_)) {
                attempt.spent_asking(begun.elapsed());
            } else {
                tokio::select! {
                    biased;
                    fault = attempt.cancelled() => return Err(RequestFault::Fault(fault)),
                    () = sleep(pause) => {}
                }
                pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
            }
            match Need::of(attempt.send(&retry).await)? {
                Ok(next) => need = next,
                Err(result) => return Ok(result),
            }
        }
        Err(input(InputFault::TooManyRounds { limit: self.limit }))
    }

    /// Has everything answered that is asked.
    async fn prepare(&self, need: &Need) -> Result<Retry, RequestFault> {
        match need {
            // A legacy revision has no such result, a modern one no such error.
            Need::Input(_) if !self.is_modern => {
                Err(RequestFault::Fault(Fault::ResultType { found: "input_required".to_owned() }))
            }
            Need::Urls(error) if self.is_modern => Err(RequestFault::Peer(error.clone())),
            Need::Input(result) => self.answers(result).await,
            Need::Urls(error) => self.urls(error).await,
        }
    }

    /// Has the questions of a result answered.
    pub(crate) async fn answers(&self, result: &RawValue) -> Result<Retry, RequestFault> {
        let [requests, state] =
            object::select(result, ["inputRequests", "requestState"]).unwrap_or_default();
        let state = state.and_then(non_null).map(Fragment::from_raw);
        let Some(requests) = requests.and_then(non_null) else {
            return match state {
                Some(_) => Ok(Retry { responses: None, state, is_retry: true }),
                None => Err(input(InputFault::Nothing)),
            };
        };
        let bad = |key: &str, reason: &str| {
            let key = crate::text::shown(key);
            input(InputFault::BadRequest { key, reason: reason.to_owned() })
        };
        let requests = object::entries(requests)
            .ok_or_else(|| bad("inputRequests", "they are not an object"))?;
        if requests.len() > self.questions {
            let count = requests.len();
            return Err(input(InputFault::TooMany { count, limit: self.questions }));
        }
        let mut keys = HashSet::new();
        if let Some((key, _)) = requests.iter().find(|(key, _)| !keys.insert(key.as_ref())) {
            return Err(bad(key, "it is asked twice"));
        }
        // All are looked at before anybody is asked: what cannot be answered whole is not begun.
        let mut questions = Vec::with_capacity(requests.len());
        for (key, request) in &requests {
            let [method, params] =
                object::select(request, ["method", "params"]).unwrap_or_default();
            let method = method.and_then(object::text).unwrap_or_default();
            questions.push((key, self.question(key, &method, params)?));
        }
        let mut responses = Vec::with_capacity(questions.len());
        for (key, (asker, question)) in &questions {
            let answer = asker.respond(question).await;
            responses.push((key, answer.map_err(|refused| fault(key, refused))?));
        }
        let responses = Fragment::object(|object| {
            for (key, response) in &responses {
                object.fragment(key, response);
            }
        });
        Ok(Retry { responses: Some(responses), state, is_retry: true })
    }

    fn question(
        &self,
        key: &str,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(&Asker, InputRequest), RequestFault> {
        let request = match self.asker {
            Some(asker) => asker.request(method, params).map(|request| (asker, request)),
            None => Err(Refused::not_offered(&format!("`{method}`"))),
        };
        request.map_err(|refused| fault(key, refused))
    }

    /// Has a person open what the server wants opened, and waits until they are done.
    async fn urls(&self, error: &PeerError) -> Result<Retry, RequestFault> {
        let wanted = required_urls(error.data.as_ref());
        if wanted.is_empty() || wanted.len() > self.questions {
            return Err(RequestFault::Peer(error.clone()));
        }
        let Some(asker) = self.asker.filter(|asker| asker.offers().url) else {
            return Err(RequestFault::Peer(error.clone()));
        };
        let mut questions = Vec::with_capacity(wanted.len());
        for params in &wanted {
            let (_, question) = self.question("url", methods::ELICIT, Some(params.as_raw()))?;
            match &question.kind {
                InputKind::Url { elicitation_id, .. } => {
                    questions.push((elicitation_id.clone(), question));
                }
                _ => return Err(RequestFault::Peer(error.clone())),
            }
        }
        for (id, question) in &questions {
            let completion = self.asks.completion(id.clone().into_iter().collect());
            let answer = asker.respond(question).await.map_err(|refused| fault("url", refused))?;
            if !is_accepted(&answer) {
                return Err(input(InputFault::UrlDeclined));
            }
            // A server whose notice never comes is asked again all the same.
            timeout(LONGEST_ERRAND, asker.handler.finished(question, completion)).await.ok();
        }
        Ok(Retry { is_retry: true, ..Retry::default() })
    }
}

fn input(fault: InputFault) -> RequestFault {
    RequestFault::Fault(Fault::Input(fault))
}

fn fault(key: &str, refused: Refused) -> RequestFault {
    let (key, reason) = (crate::text::shown(key), refused.reason);
    input(match refused.whose {
        Whose::NotOffered => InputFault::NotOffered { what: reason },
        Whose::Server => InputFault::BadRequest { key, reason },
        Whose::Handler => InputFault::BadAnswer { key, reason },
        Whose::Person => InputFault::Unanswered { key, reason },
    })
}
