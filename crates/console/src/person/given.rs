//! `--input KEY=VALUE`: answers to a server's forms, given before anybody asks.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use plenipo_connect::input::{Field, Form};
use plenipo_wire::Fragment;

use crate::failure::Failure;

/// What the command line gave.
#[derive(Debug, Default)]
pub struct Given {
    values: BTreeMap<String, Value>,
    used: Mutex<BTreeSet<String>>,
}

#[derive(Debug, Clone)]
enum Value {
    /// Typed by the field.
    Text(String),
    Json(Fragment),
}

impl Given {
    /// Reads `KEY=VALUE` and `KEY:=JSON`.
    ///
    /// # Errors
    /// A word is neither, or a key is given twice.
    pub fn read(words: &[String]) -> Result<Self, Failure> {
        let mut values = BTreeMap::new();
        for word in words {
            let wrong = || {
                Failure::usage(format!("failed to read the input {word:?}: it is not KEY=VALUE"))
            };
            let (key, text) = word.split_once('=').ok_or_else(wrong)?;
            let (key, value) = match key.strip_suffix(':') {
                None => (key, Value::Text(text.to_owned())),
                Some(key) => {
                    let json = Fragment::parse(text).map_err(|_| {
                        Failure::usage(format!("failed to read the input `{key}`: it is not JSON"))
                    })?;
                    (key, Value::Json(json))
                }
            };
            if key.is_empty() {
                return Err(wrong());
            }
            if values.insert(key.to_owned(), value).is_some() {
                return Err(Failure::usage(format!("the input `{key}` is given twice")));
            }
        }
        Ok(Self { values, used: Mutex::default() })
    }

    /// Whether nothing was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// What was given for a field, if it fits.
    pub(super) fn value(&self, field: &Field) -> Option<Result<Fragment, String>> {
        let value = self.values.get(&field.name)?;
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(field.name.clone());
        let fault = |fault: plenipo_connect::input::FormFault| fault.to_string();
        Some(match value {
            Value::Text(text) => field.parse(text).map_err(fault),
            Value::Json(json) => field.check(json.as_raw()).map(|()| json.clone()).map_err(fault),
        })
    }

    /// A whole answer where nobody can be asked: what was given agrees to this form only if some of it is for this
    /// form, and if what it leaves out has a default or is optional.
    pub(super) fn answer(&self, form: &Form) -> Result<Fragment, String> {
        let mut members = Vec::new();
        for field in &form.fields {
            if let Some(value) = self.value(field) {
                members.push((field.name.clone(), value?));
            }
        }
        if members.is_empty() {
            return Err("nothing of what --input gives is in its form".to_owned());
        }
        let content = Fragment::object(|object| {
            for (name, value) in &members {
                object.fragment(name, value);
            }
        });
        form.complete(Some(content.as_raw()))
            .map_err(|fault| format!("{fault}: give it with --input"))
    }

    /// Keys that no form had.
    pub(super) fn unused(&self) -> Vec<String> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        self.values.keys().filter(|key| !used.contains(*key)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Form {
        let schema = r#"{"type":"object","required":["name","age"],"properties":{"name":{"type":"string"},
            "age":{"type":"integer","default":30},"tags":{"type":"array","items":{"type":"string","enum":["a","b"]}}}}"#;
        Form::from_raw(Fragment::parse(schema).unwrap().as_raw()).unwrap()
    }

    fn given(words: &[&str]) -> Result<Given, String> {
        let words: Vec<_> = words.iter().map(ToString::to_string).collect();
        Given::read(&words).map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn what_is_given_is_typed_by_the_form() {
        let some = given(&["name=Jo=x", "tags=a,b", "other=1"]).unwrap();
        let answer = some.answer(&form()).unwrap();
        assert_eq!(answer.as_str(), r#"{"name":"Jo=x","age":30,"tags":["a","b"]}"#);
        assert_eq!(some.unused(), ["other"]);
        let json = given(&["name:=\"Jo\"", "age:=1e1"]).unwrap();
        assert_eq!(json.answer(&form()).unwrap().as_str(), r#"{"name":"Jo","age":1e1}"#);
    }

    #[test]
    fn what_does_not_fit_or_is_missing_is_no_answer() {
        let answer = |words: &[&str]| given(words).unwrap().answer(&form()).unwrap_err();
        assert_eq!(answer(&["age=4"]), "`name` is required: give it with --input");
        assert_eq!(answer(&["name=x", "age=four"]), "`age` has to be a whole number");
        assert_eq!(answer(&["name:=7"]), "`name` has to be text");
        assert_eq!(answer(&["other=4"]), "nothing of what --input gives is in its form");
        for words in [&["name"][..], &["=x"], &[":=1"], &["name:=x"], &["name=1", "name=2"]] {
            assert!(given(words).is_err(), "{words:?}");
        }
    }
}
