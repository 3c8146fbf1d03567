//! How much may be printed, and which table gets what of it.
//!
//! A larger budget never shows less: what a smaller one shows of a table is the beginning of what a larger one shows.

/// How much may be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// So many lines.
    Lines(usize),
    /// So many characters.
    Characters(usize),
}

/// A page fits on a screen, with the command above it.
impl Default for Budget {
    fn default() -> Self {
        Self::Lines(45)
    }
}

impl Budget {
    /// Rows of a document for programs, of all tables together.
    pub const ROWS: usize = 60;
    /// Fewest lines that a page has.
    pub const MIN_LINES: usize = 12;
    /// Most lines; nobody reads more, and no page has.
    pub const MAX_LINES: usize = 1_000_000;
}

/// Tables wait for lines in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// Lines that it needs to show all of its rows.
    pub lines: usize,
    /// Its share of what is there, in per cent.
    pub share: usize,
    /// Lines that it has before others have any: less shows nothing.
    pub least: usize,
}

/// Lines for each table: its share, and what those before it leave; what the last leave goes to the first again.
#[must_use]
pub fn split(lines: usize, wants: &[Want]) -> Vec<usize> {
    let all: usize = wants.iter().map(|want| want.share).sum();
    let (mut left, mut room) = (0, lines);
    let mut given: Vec<usize> = Vec::with_capacity(wants.len());
    for want in wants {
        let part = lines * want.share / all.max(1) + left;
        let used = part.max(want.least).min(want.lines).min(room);
        left = part.saturating_sub(used);
        room -= used;
        given.push(used);
    }
    left = left.min(room);
    for (granted, want) in given.iter_mut().zip(wants) {
        let more = left.min(want.lines - *granted);
        *granted += more;
        left -= more;
    }
    given
}

/// Rows of a table that fit into so many lines, beside its heading and the row for the rest; nothing when not one does.
#[must_use]
pub const fn rows(lines: usize, want: Want, heading: usize, rows: usize) -> Option<usize> {
    if lines >= want.lines {
        return Some(rows);
    }
    // The heading, and the row that stands for what is left out.
    match lines.checked_sub(heading + 1) {
        Some(fit) if fit > 0 => Some(fit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn budgets_are_kept_and_more_is_never_less(
            wants in proptest::collection::vec((0_usize..40, 1_usize..60), 1..5), lines in 0_usize..120
        ) {
            let wants: Vec<Want> = wants.into_iter().map(|(lines, share)| Want { lines, share, least: 0 }).collect();
            let (less, more) = (split(lines, &wants), split(lines + 1, &wants));
            prop_assert!(less.iter().sum::<usize>() <= lines);
            for ((less, more), want) in less.iter().zip(&more).zip(&wants) {
                prop_assert!(less <= more && *more <= want.lines);
            }
        }
    }

    #[test]
    fn what_one_leaves_the_next_gets() {
        let wants = [(3, 40), (50, 25), (50, 20)].map(|(lines, share)| Want {
            lines,
            share,
            least: 0,
        });
        assert_eq!(split(85, &wants), [3, 50, 32]);
        assert_eq!(split(200, &wants), [3, 50, 50]);
    }

    #[test]
    fn the_first_has_a_row_however_little_there_is() {
        let wants = [(40, 3), (25, 0), (20, 0)].map(|(share, least)| Want {
            lines: 50,
            share,
            least,
        });
        for lines in 0..150 {
            let (less, more) = (split(lines, &wants), split(lines + 1, &wants));
            assert!(less.iter().sum::<usize>() <= lines);
            assert!(less.iter().zip(&more).all(|(less, more)| less <= more));
            assert_eq!(rows(less[0], wants[0], 1, 50).is_some(), lines >= 3);
        }
    }
}
