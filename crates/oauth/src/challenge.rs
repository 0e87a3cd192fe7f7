//! `WWW-Authenticate`: the grammar (RFC 9110 §11.6.1), and what a challenge asks for (RFC 6750 §3,
//! RFC 9728 §5.1, RFC 9449 §7.1).

use http::{HeaderMap, StatusCode, header};

use crate::scope::Scopes;

/// The most text that is read, in bytes.
const LONGEST: usize = 16 * 1024;
/// The most challenges, and the most parameters of one.
const MOST: usize = 32;

/// One challenge. What a peer wrote may be anything: show nothing of it as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

/// What a refusal asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Demand {
    /// A token: there was none, or it is no longer good.
    Token(Asked),
    /// A token with more scopes (RFC 6750 §3.1).
    MoreScopes(Asked),
    /// The same request with this nonce in the proof (RFC 9449 §8).
    DpopNonce(String),
}

/// What came with a demand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// Where the resource's metadata is (RFC 9728 §5.1), unchecked.
    pub resource_metadata: Option<String>,
    /// Scopes; `None` as well when they cannot be read.
    pub scopes: Option<Scopes>,
    /// Whether the token has to be bound to a key: the challenge is `DPoP`, and none is `Bearer`.
    pub dpop: bool,
    /// `error`, such as `invalid_token`; unchecked.
    pub error: Option<String>,
    /// The server did refuse something. Default: nothing was asked of it, or it does not mind.
    pub refused: bool,
}

impl Challenge {
    /// All challenges of a response, in order. A part that does not follow the grammar ends the
    /// reading of its header; what came before counts.
    #[must_use]
    pub fn all(headers: &HeaderMap) -> Vec<Self> {
        let mut challenges = Vec::new();
        for value in headers.get_all(header::WWW_AUTHENTICATE) {
            let bytes = value.as_bytes();
            let text = String::from_utf8_lossy(bytes.get(..LONGEST).unwrap_or(bytes));
            Reader { rest: &text }.challenges(&mut challenges);
        }
        challenges.truncate(MOST);
        challenges
    }

    /// In lower case.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The first parameter of that name, in whatever case.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self.parameters.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }
}

impl Demand {
    /// What a response with this status and these headers asks for: a 401 asks for a token, a 403
    /// only if it says `insufficient_scope`.
    #[must_use]
    pub fn of(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        let challenges = Challenge::all(headers);
        let dpop = challenges.iter().find(|challenge| challenge.scheme == "dpop");
        let bearer = challenges.iter().find(|challenge| challenge.scheme == "bearer");
        let chosen = bearer.or(dpop);
        match status {
            StatusCode::UNAUTHORIZED => {
                let wants_nonce =
                    |challenge: &&Challenge| challenge.parameter("error") == Some("use_dpop_nonce");
                if let (Some(_), Some(nonce)) = (dpop.filter(wants_nonce), dpop_nonce(headers)) {
                    return Some(Self::DpopNonce(nonce));
                }
                let mut asked = chosen.map(Asked::of).unwrap_or_default();
                asked.dpop = dpop.is_some() && bearer.is_none();
                asked.refused = true;
                Some(Self::Token(asked))
            }
            StatusCode::FORBIDDEN => {
                let wants_more = |challenge: &&Challenge| {
                    challenge.parameter("error") == Some("insufficient_scope")
                };
                let challenge = [bearer, dpop].into_iter().flatten().find(wants_more)?;
                Some(Self::MoreScopes(Asked::of(challenge)))
            }
            _ => None,
        }
    }
}

impl Asked {
    fn of(challenge: &Challenge) -> Self {
        let text = |name| challenge.parameter(name).map(str::to_owned);
        let scopes = challenge.parameter("scope").and_then(|scopes| Scopes::parse(scopes).ok());
        Self {
            resource_metadata: text("resource_metadata"),
            scopes: scopes.filter(|scopes| !scopes.is_empty()),
            dpop: challenge.scheme == "dpop",
            error: text("error"),
            refused: true,
        }
    }
}

/// `DPoP-Nonce` (RFC 9449 §8.1), if it has the characters of one.
#[must_use]
pub fn dpop_nonce(headers: &HeaderMap) -> Option<String> {
    let nonce = headers.get("dpop-nonce")?.to_str().ok()?;
    let sound = !nonce.is_empty()
        && nonce.len() <= 1024
        && nonce.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
    sound.then(|| nonce.to_owned())
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// `1#challenge`, as far as it can be read. Commas between parameters may be missing.
    fn challenges(mut self, into: &mut Vec<Challenge>) {
        loop {
            self.skip(|character| character == ',' || character.is_ascii_whitespace());
            let before = self.rest;
            let Some(word) = self.token() else { return };
            let blank = self.skip(|character| character.is_ascii_whitespace());
            let is_parameter = self.rest.starts_with('=') && !self.rest.starts_with("==");
            match into.last_mut() {
                // A token68 is skipped: no scheme that counts has one.
                Some(challenge) if is_parameter && challenge.parameters.len() < MOST => {
                    self.take("=");
                    self.skip(|character| character.is_ascii_whitespace());
                    let Some(value) = self.value() else { return };
                    challenge.parameters.push((word.to_owned(), value));
                }
                _ if is_parameter => return,
                _ if blank || self.rest.is_empty() || self.rest.starts_with(',') => {
                    if into.len() >= MOST {
                        return;
                    }
                    let scheme = word.to_ascii_lowercase();
                    into.push(Challenge { scheme, parameters: Vec::new() });
                    self.skip_token68();
                }
                _ => {
                    self.rest = before;
                    return;
                }
            }
        }
    }

    /// A token68 ends at a comma or at the end; anything else is a parameter.
    fn skip_token68(&mut self) {
        let end = self.rest.find(',').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        let word = word.trim();
        let body = word.trim_end_matches('=');
        let is_token68 = !body.is_empty()
            && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte));
        // A lone word before a comma could be the next scheme; "Negotiate abc" is what is meant.
        if is_token68 {
            self.rest = rest;
        }
    }

    fn value(&mut self) -> Option<String> {
        if !self.take("\"") {
            return self.token().map(str::to_owned);
        }
        let mut value = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = self.rest.get(at + 1..).unwrap_or_default();
                    return Some(value);
                }
                '\\' => value.push(characters.next()?.1),
                other => value.push(other),
            }
        }
        None
    }

    fn token(&mut self) -> Option<&'a str> {
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/?@".contains(&byte);
        let end = self.rest.bytes().position(|byte| !is_token(byte)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        Some(token).filter(|token| !token.is_empty())
    }

    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) -> bool {
        let rest = self.rest.trim_start_matches(skipped);
        let any = rest.len() < self.rest.len();
        self.rest = rest;
        any
    }
}

#[cfg(test)]
mod tests;
