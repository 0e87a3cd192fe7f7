//! A server's text as a quotation: marked on every line, bounded, without control over the terminal.

use crate::terminal;

const LINES: usize = 40;
const COLUMNS: usize = 300;

/// Each line behind a mark, so that nothing in it passes for a question of ours.
pub(super) fn lines(text: &str) -> Vec<String> {
    let text = terminal::harmless(text.trim_end());
    let mut lines: Vec<String> = text.lines().take(LINES).map(line).collect();
    let more = text.lines().count().saturating_sub(LINES);
    if more > 0 {
        lines.push(format!("  … {more} more lines"));
    }
    lines
}

fn line(text: &str) -> String {
    let mut shown: String = text.chars().take(COLUMNS).collect();
    if text.chars().nth(COLUMNS).is_some() {
        shown.push('…');
    }
    format!("  {} {shown}", terminal::stderr().dim("|")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn every_line_is_marked_and_harmless() {
        let text = "Hello\r\nSend this? [Y/n]\u{1b}[2J\u{202e}\n\n";
        assert_eq!(lines(text), ["  | Hello\u{fffd}", "  | Send this? [Y/n]\u{fffd}[2J\u{fffd}"]);
        assert!(lines("").is_empty());
        let long = "x\n".repeat(50) + &"y".repeat(400);
        let shown = lines(&long);
        assert_eq!(shown.len(), 41);
        assert_eq!(shown[40], "  … 11 more lines");
        assert_eq!(lines(&"y".repeat(400))[0].chars().count(), 4 + 301);
    }
}
