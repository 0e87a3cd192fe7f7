//! Rust source with comments and literals blanked out: enough of a lexer to count what is code.
//!
//! It relies on rustfmt's layout (an item's closing brace stands at the item's indent), not on a
//! full grammar. Line numbers and columns stay those of the file.

/// A file's code; every comment, string and character literal is blank, lines are kept.
#[derive(Debug)]
pub(crate) struct Source {
    code: String,
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    BlockComment(usize),
    Text { hashes: Option<usize> },
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let mut code = String::with_capacity(text.len());
        let mut state = State::Code;
        let mut at = 0;
        while let Some(rest) = characters.get(at..).filter(|rest| !rest.is_empty()) {
            let (next, taken, keep) = step(state, rest, characters.get(at.wrapping_sub(1)));
            for character in rest.iter().take(taken) {
                code.push(if keep || *character == '\n' { *character } else { ' ' });
            }
            state = next;
            at += taken;
        }
        Self { code }
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.code.lines()
    }
}

/// From a state and what follows: the next state, how many characters it took, whether to keep them.
fn step(state: State, rest: &[char], before: Option<&char>) -> (State, usize, bool) {
    match state {
        State::Code => enter(rest, before),
        State::LineComment if rest.first() == Some(&'\n') => (State::Code, 1, true),
        State::LineComment => (state, 1, false),
        State::BlockComment(depth) => match rest {
            ['*', '/', ..] if depth == 1 => (State::Code, 2, false),
            ['*', '/', ..] => (State::BlockComment(depth - 1), 2, false),
            ['/', '*', ..] => (State::BlockComment(depth + 1), 2, false),
            _ => (state, 1, false),
        },
        State::Text { hashes: None } => match rest {
            ['\\', _, ..] => (state, 2, false),
            ['"', ..] => (State::Code, 1, true),
            _ => (state, 1, false),
        },
        State::Text { hashes: Some(count) } => {
            let closes = rest.first() == Some(&'"')
                && rest.iter().skip(1).take_while(|c| **c == '#').take(count).count() == count;
            if closes { (State::Code, 1 + count, true) } else { (state, 1, false) }
        }
    }
}

fn enter(rest: &[char], before: Option<&char>) -> (State, usize, bool) {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || *c == '_');
    match rest {
        ['/', '/', ..] => (State::LineComment, 2, false),
        ['/', '*', ..] => (State::BlockComment(1), 2, false),
        ['"', ..] => (State::Text { hashes: None }, 1, true),
        ['r', '"' | '#', ..] if !in_word || before == Some(&'b') => raw_text(rest),
        // A character literal, not a lifetime: it closes within a few characters.
        ['\'', '\\', ..] => (State::Code, escaped_length(rest), false),
        ['\'', _, '\'', ..] => (State::Code, 3, false),
        _ => (State::Code, 1, true),
    }
}

fn raw_text(rest: &[char]) -> (State, usize, bool) {
    let hashes = rest.iter().skip(1).take_while(|c| **c == '#').count();
    if rest.get(1 + hashes) == Some(&'"') {
        (State::Text { hashes: Some(hashes) }, 2 + hashes, true)
    } else {
        (State::Code, 1, true) // a raw identifier
    }
}

fn escaped_length(rest: &[char]) -> usize {
    let close = rest.iter().skip(3).position(|c| *c == '\'');
    close.map_or(1, |position| position + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new(text).code
    }

    #[test]
    fn comments_and_literals_are_blank_and_code_is_kept() {
        assert_eq!(code("a // fn x\nb"), "a        \nb");
        assert_eq!(code("a /* x /* y */ z */ b"), "a                   b");
        assert_eq!(code(r#"f("un\"safe", b)"#), r#"f("        ", b)"#);
        assert_eq!(code("r#\"a\"b\"# + 1"), "r#\"   \"# + 1");
        assert_eq!(code("br\"\\\" + 1"), "br\" \" + 1");
        assert_eq!(
            code("['\"', '\\'', '\\u{1b}', 'x'] + \"{\""),
            "[   ,     ,         ,    ] + \" \""
        );
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        for text in ["fn f<'a>(x: &'a str, y: &'static str) {}", "let r#type = r;"] {
            assert_eq!(code(text), text);
        }
    }
}
