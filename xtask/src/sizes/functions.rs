//! Functions in rustfmt-formatted code: name, length, arguments.

/// A function outside tests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) lines: usize,
    pub(super) arguments: usize,
}

const MODIFIERS: [&str; 5] = ["const", "async", "unsafe", "extern", "default"];

/// Every function with a body, and every trait method's signature, in lines of blanked code.
pub(super) fn functions(lines: &[&str]) -> Vec<Function> {
    let named = lines.iter().enumerate();
    let starts = named.filter_map(|(index, line)| Some((index, name(line)?)));
    starts
        .map(|(index, name)| {
            let rest = lines.get(index..).unwrap_or_default();
            let text = rest.join("\n");
            let arguments = text.split_once("fn ").map_or(0, |(_, after)| arguments(after));
            Function { name: name.to_owned(), lines: length(rest), arguments }
        })
        .collect()
}

fn name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let mut word = words.next()?;
    // A visibility may be two words, and so is `extern "C"`, whose literal is blank by now.
    let skipped = |word: &str| {
        MODIFIERS.contains(&word)
            || word == "pub"
            || word.starts_with("pub(")
            || word.ends_with(')')
            || word.starts_with('"')
    };
    while skipped(word) {
        word = words.next()?;
    }
    let after = if word == "fn" { words.next()? } else { return None };
    after.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '#').next()
}

/// From the `fn` line to the line that closes it: a brace or a semicolon at the same indent.
fn length(lines: &[&str]) -> usize {
    let Some(first) = lines.first() else { return 0 };
    let code = first.trim_end();
    if code.ends_with('}') || code.ends_with(';') {
        return 1;
    }
    let indent = indent(first);
    let mut below = lines.iter().skip(1);
    let closes = |line: &&str| {
        let same = line.len() > indent && self::indent(line) == indent;
        same && (line.trim_start().starts_with('}') || line.trim_end().ends_with(';'))
    };
    below.position(closes).map_or(lines.len(), |position| position + 2)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// How many arguments a signature has, from its name on; a receiver counts.
fn arguments(signature: &str) -> usize {
    let (mut depth, mut inside, mut count, mut pending) = (0_usize, false, 0, false);
    let mut before = ' ';
    for character in signature.chars() {
        match character {
            '(' if depth == 0 && !inside => inside = true,
            ')' if depth == 0 && inside => break,
            ',' if depth == 0 && inside => {
                count += usize::from(pending);
                pending = false;
            }
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '>' if before != '-' && before != '=' => depth = depth.saturating_sub(1),
            _ => {}
        }
        pending |= inside && !character.is_whitespace() && !"(,".contains(character);
        before = character;
    }
    count + usize::from(pending)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize, usize)> {
        let lines: Vec<_> = text.lines().collect();
        functions(&lines).into_iter().map(|f| (f.name, f.lines, f.arguments)).collect()
    }

    #[test]
    fn names_lengths_and_arguments() {
        let text = "\
pub(crate) async fn one<F: Fn(u8, u8) -> u8>(
    first: F,
    second: &[(u8, u8)],
) -> u8
where
    F: Send,
{
    let fnord = 1;
    if a {
    }
}
impl X {
    fn two(&self) {}
    pub const unsafe extern \"C\" fn pub_three(&mut self, map: Map<u8, u8>) -> u8 {
        fn inner() {
        }
    }
}
trait Y {
    fn four();
    fn five(
        &self,
    ) -> u8;
}
";
        let expected = [
            ("one", 11, 2),
            ("two", 1, 1),
            ("pub_three", 4, 2),
            ("inner", 2, 0),
            ("four", 1, 0),
            ("five", 3, 1),
        ];
        let expected = expected.map(|(name, lines, arguments)| (name.to_owned(), lines, arguments));
        assert_eq!(found(text), expected);
    }

    #[test]
    fn function_pointers_are_not_functions() {
        assert_eq!(found("let f: fn (u8) = g;\ntype A = fn(u8);\n// nothing"), []);
    }
}
