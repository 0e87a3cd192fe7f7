//! A form to post, which remembers what in it must not come back in an error.

use plenipo_redact::Secret;

/// `application/x-www-form-urlencoded`.
#[derive(Default)]
pub(crate) struct Form {
    pairs: Vec<(&'static str, Secret<String>)>,
    secrets: Vec<Secret<String>>,
}

impl Form {
    pub(crate) fn add(&mut self, name: &'static str, value: impl Into<String>) {
        self.pairs.push((name, Secret::new(value.into())));
    }

    pub(crate) fn add_some(&mut self, name: &'static str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    pub(crate) fn add_secret(&mut self, name: &'static str, value: &Secret<String>) {
        self.pairs.push((name, value.clone()));
        self.protect(value);
    }

    /// A secret that goes with the form, though not in it.
    pub(crate) fn protect(&mut self, value: &Secret<String>) {
        self.secrets.push(value.clone());
    }

    pub(crate) fn encode(&self) -> Secret<String> {
        let mut encoded = form_urlencoded::Serializer::new(String::new());
        for (name, value) in &self.pairs {
            encoded.append_pair(name, value.expose());
        }
        Secret::new(encoded.finish())
    }

    pub(crate) fn secrets(&self) -> &[Secret<String>] {
        &self.secrets
    }
}
