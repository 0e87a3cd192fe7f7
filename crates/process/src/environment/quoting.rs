//! Words for a POSIX shell.

/// `word` so that a POSIX shell reads exactly it: in single quotes, inside which nothing has a meaning (POSIX.1-2024,
/// Shell Command Language, 2.2.2). A NUL, which no word can hold, is not treated.
pub(super) fn posix(word: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(word.len().saturating_add(2));
    quoted.push(b'\'');
    for byte in word {
        match byte {
            b'\'' => quoted.extend(br"'\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}
