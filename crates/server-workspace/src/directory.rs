//! Where an unsandboxed command runs. A launcher finds its directory itself.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use plenipo_authority::SandboxState;
use plenipo_wire::object;

/// The directory that a state names in `sandboxCwd` (a `file:` URI, RFC 8089); `None` when it names
/// none. The error is a sentence: a state that is there but unusable is no reason to run elsewhere.
pub(crate) fn of_state(state: &SandboxState) -> Result<Option<PathBuf>, String> {
    let Some(raw) = object::member(state.as_raw(), "sandboxCwd") else { return Ok(None) };
    let path = object::text(raw).as_deref().and_then(path_of_uri);
    path.map(Some).ok_or_else(|| {
        "`sandboxCwd` of the sandbox state must be a `file:` URI of a local absolute path"
            .to_owned()
    })
}

fn path_of_uri(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') || path.contains(['?', '#']) {
        return None;
    }
    let bytes: Vec<u8> = percent_decode_str(path).collect();
    (!bytes.contains(&0)).then(|| OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_local_file_uri_names_a_directory() {
        let decoded = |uri| path_of_uri(uri).map(PathBuf::into_os_string).map(OsString::into_vec);
        assert_eq!(decoded("file:///a%20b/%C3%A4%ff"), Some(b"/a b/\xc3\xa4\xff".to_vec()));
        assert_eq!(decoded("file://localhost/w"), Some(b"/w".to_vec()));
        for uri in ["/w", "file:/w", "file://host/w", "file://w", "file:///a%00", "file:///a?b", ""]
        {
            assert_eq!(decoded(uri), None, "{uri}");
        }
    }

    #[test]
    fn a_state_without_a_directory_is_no_error_and_a_broken_one_is() {
        let state = |text| SandboxState::capture(text).unwrap();
        assert_eq!(of_state(&state("{}")), Ok(None));
        assert_eq!(of_state(&state(r#"{"sandboxCwd":"file:///w"}"#)), Ok(Some("/w".into())));
        assert!(of_state(&state(r#"{"sandboxCwd":"/w"}"#)).is_err());
        assert!(of_state(&state(r#"{"sandboxCwd":null}"#)).is_err());
    }
}
