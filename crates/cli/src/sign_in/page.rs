//! The page that a browser is left with.

/// Signed in, or what failed.
pub(super) fn outcome(server: &str, told: Result<(), String>) -> String {
    let server = escaped(server);
    match told {
        Ok(()) => page(
            "Signed in",
            &format!("Plenipo is signed in to <b>{server}</b>. You can close this page."),
        ),
        Err(error) => page(
            "Not signed in",
            &format!("Plenipo could not sign in to <b>{server}</b>: {}", escaped(&error)),
        ),
    }
}

/// For whatever else asks.
pub(super) fn other() -> String {
    page("Nothing here", "This address only waits for the end of a sign-in.")
}

fn page(title: &str, text: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>body{{font:1.1rem/1.5 sans-serif;margin:4rem auto;max-width:40rem;padding:0 1rem}}</style>\
         <h1>{title}</h1><p>{text}</p></html>\n"
    )
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_peer_becomes_markup() {
        let page = outcome("x", Err("<script>alert('1')</script>".to_owned()));
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"), "{page}");
        assert!(outcome("notes", Ok(())).contains("signed in to <b>notes</b>"));
    }
}
