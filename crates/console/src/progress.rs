//! How far a call is: a bar on the last line of a terminal, lines with `-v`, nothing for a pipe.

use plenipo_connect::call::ProgressUpdate;
use rustix::termios::tcgetwinsize;

use crate::{env, terminal};

const BAR: usize = 24;
const NARROW: usize = 40;
const USUAL: usize = 80;

/// Shows progress on stderr; clones are the same line.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ProgressLine {
    /// A line for each, `-v`.
    Lines,
    /// On the last line of a terminal.
    Bar {
        /// Columns of the terminal.
        width: usize,
    },
    /// Nobody looks.
    Nothing,
}

impl ProgressLine {
    /// What fits standard error.
    #[must_use]
    pub fn new(verbose: bool) -> Self {
        if verbose {
            Self::Lines
        } else if terminal::stderr_is_terminal() && env::terminal_has_lines() {
            let width = tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col.into());
            Self::Bar { width: if width == 0 { USUAL } else { width } }
        } else {
            Self::Nothing
        }
    }

    /// Shows how far it is.
    pub fn show(self, update: &ProgressUpdate) {
        match self {
            Self::Lines => {
                let message = update.message.as_deref().unwrap_or("working");
                terminal::tell(&terminal::stderr().dim(&terminal::harmless(message)));
            }
            Self::Bar { width } => terminal::draw(&line(update, width)),
            Self::Nothing => {}
        }
    }

    /// Takes the bar away.
    pub fn clear(self) {
        if matches!(self, Self::Bar { .. }) {
            terminal::clear();
        }
    }
}

/// `[=====>     ]  42 % message`, or `7 message` when the server does not say how much there is; never wider than the
/// terminal, and without control characters of the server.
fn line(update: &ProgressUpdate, width: usize) -> String {
    let message = update.message.as_deref().unwrap_or("working");
    let message: String = message.chars().map(plenipo_connect::text::harmless).collect();
    let share = update.total.map(|total| update.progress / total).filter(|share| share.is_finite());
    let line = match share {
        Some(share) => {
            let share = share.clamp(0.0, 1.0);
            let percent = format!("{:3.0} %", share * 100.0);
            if width < NARROW {
                format!("{percent} {message}")
            } else {
                format!("[{}] {percent} {message}", bar(share))
            }
        }
        None => format!("{} {message}", update.progress),
    };
    line.chars().take(width.saturating_sub(1)).collect()
}

/// `share` is from 0 to 1.
fn bar(share: f64) -> String {
    let done = (1..=BAR).take_while(|cell| *cell as f64 <= share * BAR as f64).count();
    let tip = usize::from(done < BAR);
    format!("{}{}{}", "=".repeat(done), ">".repeat(tip), " ".repeat(BAR - done - tip))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(progress: f64, total: Option<f64>, message: Option<&str>, width: usize) -> String {
        let mut update = ProgressUpdate::new(progress);
        (update.total, update.message) = (total, message.map(str::to_owned));
        line(&update, width)
    }

    #[test]
    fn a_line_fits_the_terminal_whatever_the_server_says() {
        assert_eq!(shown(0.0, Some(4.0), None, 80), "[>                       ]   0 % working");
        assert_eq!(
            shown(1.0, Some(4.0), Some("one\x1b[2J"), 80),
            "[======>                 ]  25 % one\u{fffd}[2J"
        );
        assert_eq!(
            shown(9.0, Some(4.0), Some("over"), 80),
            "[========================] 100 % over"
        );
        assert_eq!(shown(1.0, Some(0.0), Some("nothing"), 80), "1 nothing");
        assert_eq!(shown(3.0, Some(4.0), Some("narrow"), 30), " 75 % narrow");
        assert_eq!(shown(7.5, None, Some(&"x".repeat(500)), 20).chars().count(), 19);
    }
}
