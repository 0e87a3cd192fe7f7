//! Did a server ask for the sandbox state?

use serde_json::value::RawValue;

use crate::{
    CapabilityFault, JsonKind, STATE_ALIAS_KEY, STATE_KEY,
    meta::{self, Member},
};

/// What a server's capabilities say about the sandbox state.
///
/// Either name under `capabilities.experimental`, with an object as its value, is an opt-in for
/// both. The same names under `extensions`, and `codex/sandbox-launcher` anywhere, are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxOptIn {
    /// True when the server opted in.
    pub advertised: bool,
    /// What was malformed and therefore not counted; warn about it once, keep the connection.
    pub faults: Vec<CapabilityFault>,
}

impl SandboxOptIn {
    /// Reads the `capabilities` object of an `initialize` or `server/discover` result.
    pub fn from_capabilities(capabilities: &RawValue) -> Self {
        let mut opt_in = Self::default();
        for member in opt_in.members("capabilities", capabilities) {
            if member.key != "experimental" {
                continue;
            }
            for capability in opt_in.members("capabilities.experimental", member.value) {
                if [STATE_KEY, STATE_ALIAS_KEY].contains(&&*capability.key) {
                    opt_in.count(&capability);
                }
            }
        }
        opt_in
    }

    /// The members of the object at `name`; what is none is a fault.
    fn members<'a>(&mut self, name: &str, value: &'a RawValue) -> Vec<Member<'a>> {
        let members = meta::members(value.get());
        members.unwrap_or_else(|_| {
            self.fault(name, value);
            Vec::new()
        })
    }

    fn count(&mut self, capability: &Member<'_>) {
        match JsonKind::of(capability.value.get()) {
            JsonKind::Object => self.advertised = true,
            _ => self.fault(&capability.key, capability.value),
        }
    }

    fn fault(&mut self, name: &str, value: &RawValue) {
        let found = JsonKind::of(value.get());
        self.faults.push(CapabilityFault { name: name.to_owned(), found });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(capabilities: &str) -> (bool, Vec<String>) {
        let raw = RawValue::from_string(capabilities.to_owned()).unwrap();
        let opt_in = SandboxOptIn::from_capabilities(&raw);
        (opt_in.advertised, opt_in.faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn either_name_under_experimental_opts_in() {
        for capabilities in [
            r#"{"experimental":{"codex/sandbox-state":{}}}"#,
            r#"{"experimental":{"codex/sandbox-state-meta":{"version":2}}}"#,
            r#"{"tools":{},"experimental":{"x":1,"codex\/sandbox-state":{},"codex/sandbox-state-meta":{}}}"#,
        ] {
            assert_eq!(read(capabilities), (true, vec![]), "{capabilities}");
        }
    }

    #[test]
    fn other_places_and_names_are_no_opt_in() {
        for capabilities in [
            "{}",
            r#"{"experimental":{}}"#,
            r#"{"extensions":{"codex/sandbox-state":{}}}"#,
            r#"{"codex/sandbox-state":{}}"#,
            r#"{"experimental":{"codex/sandbox-launcher":{}}}"#,
            r#"{"experimental":{"nested":{"codex/sandbox-state":{}}}}"#,
        ] {
            assert_eq!(read(capabilities), (false, vec![]), "{capabilities}");
        }
    }

    #[test]
    fn a_non_object_value_is_no_opt_in_but_a_fault_to_warn_about() {
        for value in ["true", "null", "\"x\"", "[]", "1"] {
            let (advertised, faults) =
                read(&format!(r#"{{"experimental":{{"codex/sandbox-state":{value}}}}}"#));
            assert!(!advertised);
            let [fault] = &faults[..] else { panic!("one fault expected: {faults:?}") };
            assert!(fault.contains("codex/sandbox-state"), "{fault}");
        }
        assert_eq!(read(r#"{"experimental":null}"#).1.len(), 1);
        assert_eq!(read("[]").1.len(), 1);
    }

    #[test]
    fn a_well_formed_name_counts_beside_a_malformed_one() {
        let both = r#"{"experimental":{"codex/sandbox-state":null,"codex/sandbox-state-meta":{}}}"#;
        let (advertised, faults) = read(both);
        assert!(advertised);
        assert_eq!(faults.len(), 1);
    }
}
