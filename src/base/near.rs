//! Names that are like one that is not there: for who mistyped it.
//!
//! Only what is worth a look is suggested: a name that contains the word, one that two other letters make of it, or one that
//! shares a word with it. Three names that have nothing in common with it would be taken for what there is.

use std::cmp::Reverse;

/// How many names are suggested.
const MOST: usize = 3;
/// Letters that somebody mistypes in a name.
const SLIPS: usize = 2;
/// Only the beginnings of long names are compared.
const LETTERS: usize = 64;

/// A name that may be meant.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'n> {
    /// What is compared.
    pub name: &'n str,
    /// What is suggested.
    pub shown: &'n str,
    /// Of equally near ones the heaviest come first.
    pub weight: u64,
}

/// The nearest of some names, at most three; none that is not near.
pub fn near<'n>(wanted: &str, names: impl Iterator<Item = Candidate<'n>>) -> Vec<String> {
    let mut found: Vec<(usize, Reverse<u64>, &str)> = names
        .filter_map(|one| Some((distance(wanted, one.name)?, Reverse(one.weight), one.shown)))
        .collect();
    found.sort_unstable();
    let mut shown: Vec<&str> = Vec::with_capacity(MOST);
    for (_, _, name) in found {
        if shown.len() < MOST && !shown.contains(&name) {
            shown.push(name);
        }
    }
    shown.into_iter().map(str::to_owned).collect()
}

/// The same of words that weigh alike.
pub fn near_words<'n>(wanted: &str, words: impl Iterator<Item = &'n str>) -> Vec<String> {
    let candidates = words.map(|word| Candidate {
        name: word,
        shown: word,
        weight: 0,
    });
    near(wanted, candidates)
}

/// How far a name is from the one that was asked for, if it is near: letters that are others, for the name or its last part.
#[must_use]
pub fn distance(wanted: &str, name: &str) -> Option<usize> {
    let (wanted, name) = (wanted.to_lowercase(), name.to_lowercase());
    if wanted.is_empty() {
        return None;
    }
    if name.contains(&wanted) {
        return Some(0);
    }
    let is_joint = |c: char| !c.is_alphanumeric() && c != '_' && c != '-';
    let last = name.rsplit(is_joint).find(|part| !part.is_empty());
    let letters = wanted.chars().take(LETTERS).count();
    let parts = [Some(name.as_str()), last].into_iter().flatten();
    let changes = parts.map(|part| changes(&wanted, part)).min()?;
    if changes <= SLIPS && 2 * changes <= letters {
        return Some(changes);
    }
    let has_word = |word: &str| words(&wanted).any(|of| of == word);
    words(&name).any(has_word).then_some(SLIPS + 1)
}

/// The words of a name that are long enough to tell something.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() >= 4)
}

/// Letters to add, remove or replace.
fn changes(wanted: &str, name: &str) -> usize {
    let wanted: Vec<char> = wanted.chars().take(LETTERS).collect();
    let mut row: Vec<usize> = (0..=wanted.len()).collect();
    for (i, theirs) in name.chars().take(LETTERS).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, own) in wanted.iter().enumerate() {
            let changed = diagonal + usize::from(*own != theirs);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[wanted.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_contain_the_word_or_share_half_of_it() {
        let from = |wanted: &'static str, names: &[&'static str]| {
            near_words(wanted, names.iter().copied())
        };
        assert_eq!(from("nosuch", &["fputc", "malloc", "crc32_z"]), [""; 0]);
        assert_eq!(from("min-x", &["vmlinux", "min-samples"]), [""; 0]);
        assert_eq!(from("addmuk", &["main", "addmul"]), ["addmul"]);
        assert_eq!(from("SPNI", &["roots", "hot::spin"]), ["hot::spin"]);
        let flate = "compress/flate.(*compressor).findMatch";
        assert_eq!(from("findmatch", &[flate, "find"]), [flate]);
        assert_eq!(from("findMacth", &["x", flate]), [flate]);
        assert_eq!(from("a", &["ab", "ba", "ca", "da"]).len(), MOST);
    }
}
