//! A form, field by field: defaults in brackets, choices by number or word, another try for what does not fit, and a
//! last look before anything is sent.

use std::collections::BTreeMap;

use plenipo_connect::input::{Choice, Field, FieldKind, Form, InputAnswer, InputRequest};
use plenipo_connect::text::shown;
use plenipo_wire::{Fragment, object};

use super::given::Given;
use super::{Person, Talk, introduce, quote};
use crate::terminal;

type Values = BTreeMap<String, Fragment>;

/// Asks for the whole form; Ctrl-D is no answer.
pub(super) async fn ask(
    person: &Person,
    request: &InputRequest,
    message: &str,
    form: &Form,
    given: &Given,
) -> InputAnswer {
    let mut talk = person.talk().await;
    introduce(&talk, request, "asks you", message);
    let answered = converse(&mut talk, request, form, given).await;
    answered.unwrap_or(InputAnswer::Cancel)
}

async fn converse(
    talk: &mut Talk<'_>,
    request: &InputRequest,
    form: &Form,
    given: &Given,
) -> Option<InputAnswer> {
    if form.fields.is_empty() {
        let question = "Agree? [y]es, [d]ecline, [c]ancel: ";
        let chosen = talk.choose(question, &["yes", "decline", "cancel"], None).await?;
        return Some(answer(chosen, &Values::new()));
    }
    warn_about_secrets(talk, form);
    talk.say("  (Enter takes what is in brackets, Ctrl-D ends without an answer)");
    let mut values = prefilled(talk, form, given);
    let mut known: Vec<&str> = values.keys().map(String::as_str).collect();
    known.sort_unstable();
    let mut asks: Vec<&Field> =
        form.fields.iter().filter(|field| !known.contains(&field.name.as_str())).collect();
    loop {
        for field in asks {
            match ask_field(talk, field, values.get(&field.name)).await? {
                Some(value) => values.insert(field.name.clone(), value),
                None => values.remove(&field.name),
            };
        }
        for field in &form.fields {
            let value = values.get(&field.name).map_or("-".to_owned(), displayed);
            talk.say(&format!("  {}: {value}", terminal::stderr().bold(&shown(&field.name))));
        }
        let question =
            format!("Send this to `{}`? [Y]es, [e]dit, [d]ecline, [c]ancel: ", request.server);
        let words = ["yes", "edit", "decline", "cancel"];
        match talk.choose(&question, &words, Some("yes")).await? {
            "edit" => asks = form.fields.iter().collect(),
            chosen => return Some(answer(chosen, &values)),
        }
    }
}

fn answer(chosen: &str, values: &Values) -> InputAnswer {
    match chosen {
        "yes" => InputAnswer::Accept(Some(Fragment::object(|object| {
            for (name, value) in values {
                object.fragment(name, value);
            }
        }))),
        "decline" => InputAnswer::Decline,
        _ => InputAnswer::Cancel,
    }
}

/// A form is not for secrets (2025-11-25 and later, "Elicitation"); people should not find out afterwards.
fn warn_about_secrets(talk: &Talk<'_>, form: &Form) {
    let is_secret = |field: &&Field| {
        let words = format!("{} {}", field.name, field.title.as_deref().unwrap_or_default());
        let words = words.to_ascii_lowercase();
        ["password", "passwd", "secret", "token", "api key", "api_key", "apikey", "credential"]
            .iter()
            .any(|word| words.contains(word))
    };
    if let Some(field) = form.fields.iter().find(is_secret) {
        let name = shown(&field.name);
        talk.say(&format!(
            "  {} `{name}` looks like a secret: the server reads what you type, and no server may ask for secrets so",
            terminal::stderr().yellow("warning:")
        ));
    }
}

fn prefilled(talk: &Talk<'_>, form: &Form, given: &Given) -> Values {
    let mut values = Values::new();
    for field in &form.fields {
        match given.value(field) {
            Some(Ok(value)) => {
                values.insert(field.name.clone(), value);
            }
            Some(Err(fault)) => talk.say(&format!("  {fault}")),
            None => {}
        }
    }
    values
}

/// Asks until it fits; `None` inside leaves the field out.
async fn ask_field(
    talk: &mut Talk<'_>,
    field: &Field,
    before: Option<&Fragment>,
) -> Option<Option<Fragment>> {
    for line in quote::lines(field.description.as_deref().unwrap_or_default()) {
        talk.say(&line);
    }
    if let FieldKind::Choice { options, .. } | FieldKind::Choices { options, .. } = &field.kind {
        for (index, option) in options.iter().enumerate() {
            talk.say(&format!("  {:>3}  {}", index + 1, named(option)));
        }
    }
    let default = before.cloned().or_else(|| field.default());
    let question = question(field, default.as_ref());
    loop {
        let text = talk.ask(&question).await?;
        if text.trim().is_empty() {
            match &default {
                Some(default) => return Some(Some(default.clone())),
                None if !field.required => return Some(None),
                None => {
                    talk.say("  it is required");
                    continue;
                }
            }
        }
        match field.parse(&text) {
            Ok(value) => return Some(Some(value)),
            Err(fault) => talk.say(&format!("  {fault}")),
        }
    }
}

fn named(option: &Choice) -> String {
    match option.title == option.value {
        true => shown(&option.value),
        false => format!("{} ({})", shown(&option.title), shown(&option.value)),
    }
}

/// `Your name (name), 2 to 5 characters [John]: `
fn question(field: &Field, default: Option<&Fragment>) -> String {
    let name = shown(&field.name);
    let name = match field.title.as_deref().map(shown).filter(|title| *title != name) {
        Some(title) => format!("{title} ({name})"),
        None => name,
    };
    let name = terminal::stderr().bold(&name);
    let kind = expectation(&field.kind).map(|kind| format!(", {kind}")).unwrap_or_default();
    let default = match default {
        Some(default) => format!(" [{}]", displayed(default)),
        None if !field.required => " (optional)".to_owned(),
        None => String::new(),
    };
    format!("{name}{kind}{default}: ")
}

fn expectation(kind: &FieldKind) -> Option<String> {
    match kind {
        FieldKind::Text { min_length, max_length, format, .. } => {
            let length = range(min_length.as_ref(), max_length.as_ref());
            let length = length.map(|range| format!("{range} characters"));
            let format = format.map(|format| format.description().to_owned());
            let parts: Vec<_> = [format, length].into_iter().flatten().collect();
            (!parts.is_empty()).then(|| parts.join(", "))
        }
        FieldKind::Number { integer, minimum, maximum, .. } => {
            let what = if *integer { "a whole number" } else { "a number" };
            Some(match range(minimum.as_ref(), maximum.as_ref()) {
                Some(range) => format!("{what}, {range}"),
                None => what.to_owned(),
            })
        }
        FieldKind::Boolean { .. } => Some("yes or no".to_owned()),
        FieldKind::Choice { .. } => Some("one of these".to_owned()),
        FieldKind::Choices { min_items, max_items, .. } => {
            let how_many = range(min_items.as_ref(), max_items.as_ref());
            let how_many = how_many.map_or("some".to_owned(), |range| range);
            Some(format!("{how_many} of these, between commas"))
        }
        _ => None,
    }
}

fn range<T: std::fmt::Display>(least: Option<&T>, most: Option<&T>) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    }
}

/// A value as a person would type it.
fn displayed(value: &Fragment) -> String {
    let raw = value.as_raw();
    if let Some(text) = object::text(raw) {
        return shown(&text);
    }
    if let Some(flag) = object::boolean(raw) {
        return if flag { "yes" } else { "no" }.to_owned();
    }
    match object::items(raw) {
        Some(items) => {
            let items = items.into_iter().filter_map(object::text).map(|item| shown(&item));
            items.collect::<Vec<_>>().join(", ")
        }
        None => shown(value.as_str()),
    }
}
