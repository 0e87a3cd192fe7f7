//! Peers' text made fit to show, and what a person may have meant.

pub use plenipo_redact::text::{harmless, shown, shown_bytes, with_sources};

/// The candidate nearest to `name`, when it is near enough to be what was meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= 0.8)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_is_suggested() {
        assert_eq!(nearest("comand", ["args", "command"]), Some("command"));
        assert_eq!(nearest("zzz", ["args", "command"]), None);
    }
}
