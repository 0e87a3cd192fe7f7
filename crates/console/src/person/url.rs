//! A URL that a server wants opened: shown whole, its host told apart, opened only when the person says so.

use plenipo_connect::input::{ElicitationUrl, InputAnswer, InputRequest};

use super::{Person, Talk, browser, introduce};
use crate::terminal;

/// Asks for consent to exactly this URL.
pub(super) async fn ask(
    person: &Person,
    request: &InputRequest,
    message: &str,
    url: &ElicitationUrl,
) -> InputAnswer {
    let mut talk = person.talk().await;
    introduce(&talk, request, "asks you to open a page", message);
    converse(&mut talk, url).await.unwrap_or(InputAnswer::Cancel)
}

async fn converse(talk: &mut Talk<'_>, url: &ElicitationUrl) -> Option<InputAnswer> {
    let paint = terminal::stderr();
    let (before, host, after) = url.parts();
    talk.say(&format!("  {before}{}{after}", paint.bold(host)));
    talk.say(&format!("  host: {}", paint.bold(host)));
    for warning in url.warnings() {
        talk.say(&format!("  {} {warning}", paint.yellow("warning:")));
    }
    if !browser::is_there() {
        let question = "Will you open it yourself? [y]es, [d]ecline, [c]ancel: ";
        return Some(match talk.choose(question, &["yes", "decline", "cancel"], None).await? {
            "yes" => InputAnswer::Accept(None),
            "decline" => InputAnswer::Decline,
            _ => InputAnswer::Cancel,
        });
    }
    let question = "Open it in your browser? [y]es, I do it [m]yself, [d]ecline, [c]ancel: ";
    let words = ["yes", "myself", "decline", "cancel"];
    Some(match talk.choose(question, &words, None).await? {
        "yes" => {
            if let Err(error) = browser::open(url) {
                talk.say(&format!("  no browser could be started ({error}): open it yourself"));
            }
            InputAnswer::Accept(None)
        }
        "myself" => InputAnswer::Accept(None),
        "decline" => InputAnswer::Decline,
        _ => InputAnswer::Cancel,
    })
}
