//! Medians, ratios and the rows that are printed.

use std::fmt;

/// The middle value; 0 of nothing.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Two things measured in turns, so that whatever else the machine does hits both.
pub(super) fn in_turns<E>(
    rounds: usize,
    mut first: impl FnMut() -> Result<f64, E>,
    mut second: impl FnMut() -> Result<f64, E>,
) -> Result<(f64, f64), E> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        left.push(first()?);
        right.push(second()?);
    }
    Ok((median(left), median(right)))
}

/// How much longer the first takes than the second, by the middle of their differences: things that vary more from
/// round to round than they differ are compared round by round. Each round begins with the other one.
pub(super) fn difference<E>(
    rounds: usize,
    mut first: impl FnMut() -> Result<f64, E>,
    mut second: impl FnMut() -> Result<f64, E>,
) -> Result<f64, E> {
    let mut differences = Vec::with_capacity(rounds);
    for round in 0..rounds {
        differences.push(if round % 2 == 0 {
            let left = first()?;
            left - second()?
        } else {
            let right = second()?;
            first()? - right
        });
    }
    Ok(median(differences))
}

/// A measured value beside what it is compared with and the bar it should keep.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) ours: f64,
    pub(super) unit: &'static str,
    pub(super) against: Against,
}

/// What a row is judged by.
#[derive(Debug)]
pub(super) enum Against {
    /// Nothing: the floor was not there. The text says what is missing.
    Skipped(String),
    /// Nothing at all: a figure for information.
    Nothing,
    /// Something that is shown beside it and judges nothing.
    Beside { name: &'static str, value: f64 },
    /// At most so much, in the row's unit.
    Most(f64),
    /// Ours divided by the floor, at most `most`.
    Floor { name: &'static str, value: f64, most: f64 },
    /// The peer divided by ours, at least `least`.
    Peer { name: &'static str, value: f64, least: f64 },
}

impl Against {
    /// The same comparison without a bar.
    pub(super) fn for_information(self) -> Self {
        match self {
            Self::Floor { name, value, .. } | Self::Peer { name, value, .. } => {
                Self::Beside { name, value }
            }
            other => other,
        }
    }
}

impl Row {
    pub(super) fn missed(&self) -> bool {
        match &self.against {
            Against::Skipped(_) | Against::Nothing | Against::Beside { .. } => false,
            Against::Most(most) => self.ours > *most,
            Against::Floor { value, most, .. } => self.ours / value > *most,
            Against::Peer { value, least, .. } => value / self.ours < *least,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, ours, unit, against } = self;
        write!(formatter, "{name:<28} ")?;
        if ours.is_finite() {
            write!(formatter, "{ours:>9.2} {unit}  ")?;
        }
        match against {
            Against::Skipped(why) => return write!(formatter, "skipped: {why}"),
            Against::Nothing => return formatter.write_str("no bar"),
            Against::Beside { name, value } => {
                let ratio = ours / value;
                return write!(formatter, "{ratio:.2} × {name} ({value:.2} {unit}), no bar");
            }
            Against::Most(most) => write!(formatter, "bar ≤ {most} {unit}")?,
            Against::Floor { name, value, most } => {
                let ratio = ours / value;
                write!(formatter, "{ratio:.2} × {name} ({value:.2} {unit}), bar ≤ {most} ×")?;
            }
            Against::Peer { name, value, least } => {
                let ratio = value / ours;
                write!(formatter, "{ratio:.2} × faster than {name} ({value:.2} {unit}), ")?;
                write!(formatter, "bar ≥ {least} ×")?;
            }
        }
        formatter.write_str(if self.missed() { "  MISSED" } else { "  ok" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(against: Against) -> Row {
        Row { name: "a call", ours: 3.0, unit: "ms", against }
    }

    #[test]
    fn bars_are_judged_in_their_own_direction() {
        assert!(row(Against::Floor { name: "c", value: 1.0, most: 2.5 }).missed());
        assert!(!row(Against::Floor { name: "c", value: 2.0, most: 2.5 }).missed());
        assert!(row(Against::Peer { name: "sdk", value: 3.0, least: 1.5 }).missed());
        assert!(!row(Against::Peer { name: "sdk", value: 6.0, least: 1.5 }).missed());
        assert!(row(Against::Most(2.0)).missed());
        assert!(!row(Against::Skipped("no floor".to_owned())).missed());
    }

    #[test]
    fn a_row_reads_as_one_line() {
        let shown = row(Against::Floor { name: "C", value: 2.0, most: 2.5 }).to_string();
        assert_eq!(
            shown,
            "a call                            3.00 ms  1.50 × C (2.00 ms), bar ≤ 2.5 ×  ok"
        );
    }

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
    }
}
