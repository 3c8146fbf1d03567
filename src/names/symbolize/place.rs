//! Where functions are defined, of those that share their name with another one of the file.
//!
//! A name is not all: each file of a program may have a `static` function of one name. The place in the sources tells them apart
//! where debug information has it; else the source file that the symbol table names before local symbols; else which of those of
//! its name it is, by address. What compilers make of one function (copies for inlining, cold parts, instances for types) is in
//! one place and stays one.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::declared::{Body, Declared, Mark};
use super::expanded::{Expanded, NameNumber, NameOrigin};
use super::{Symbol, SymbolIndex};
use crate::dso::{DsoId, Namesake, SymbolTable};
use crate::ids::{Idx, IndexSlice, IndexVec};

/// Where a function is defined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Path of the source file, or its name alone; empty where it is not known.
    pub file: String,
    /// Line, 0 where it is not known.
    pub line: u32,
    /// What tells it from others of its name on this line.
    pub mark: Mark,
    /// What a compiler tells it by from others of its name, where it does and nothing better is known; 0 elsewhere.
    pub hash: u32,
    /// Where the file alone does not tell, nor a hash: which it is of those of its name, by address, from 1.
    pub nth: u32,
    /// How many functions of this name the object has, 0 where that was not counted.
    pub of: u32,
    /// How many of these are of a source file of this name, as far as the symbol table tells.
    pub like: u32,
}

impl Place {
    /// As it stands behind a name, with an end of the file's path: ` a/x.c:12`, ` (2 of 3)`, `::h4c86a0`; with its mark where
    /// others of the name are on its line: ` a/x.cc:12:20`, ` x.rs:12#1`.
    #[must_use]
    pub fn text(&self, end: &str, is_crowded: bool) -> String {
        let mark = if is_crowded { self.mark } else { Mark::Nothing };
        match (end, self.line) {
            _ if self.nth > 0 || self.hash > 0 => self.order(),
            ("", 0) => String::new(),
            ("", line) => format!(":{line}{mark}"),
            (end, 0) => format!(" {end}"),
            (end, line) => format!(" {end}:{line}{mark}"),
        }
    }

    /// Which it is of those of its name, where that is needed: ` (2 of 3)`, `::h4c86a0`.
    #[must_use]
    pub fn order(&self) -> String {
        match (self.hash, self.nth) {
            (0, 0) => String::new(),
            (0, nth) => format!(" ({nth} of {})", self.of),
            (hash, _) => format!("::h{hash:06x}"),
        }
    }
}

/// What is known of one function.
#[derive(Clone, Copy)]
enum Evidence<'e> {
    Declared(&'e Declared),
    /// What the file calls it, and its address there.
    Symbol(&'e [u8], u64),
}

impl Evidence<'_> {
    /// Whether two of one name are two functions. Other names in the file are copies; entries of a linkage table are none.
    fn differs(self, other: Self) -> bool {
        match (self, other) {
            (Self::Declared(a), Self::Declared(b)) => {
                a.line != b.line || a.path != b.path || a.mark.differs(b.mark)
            }
            (Self::Symbol(a, at), Self::Symbol(b, other)) => {
                at != other && Namesake::differ(a, b) && !a.ends_with(b"@plt")
            }
            _ => true,
        }
    }
}

/// The functions of one name in a file, as far as they were hit.
struct Seen<'e> {
    first: Evidence<'e>,
    are_several: bool,
}

/// What is looked at.
pub(super) struct Functions<'f, 'd> {
    /// What files call the symbols.
    pub(super) raw: &'f [&'f [u8]],
    /// Numbers of their names.
    pub(super) numbers: &'f [u32],
    /// Where debug information says that they are defined.
    pub(super) declared: &'f IndexSlice<SymbolIndex, [Option<&'f Declared>]>,
    pub(super) expanded: &'f [Expanded<'d>],
    /// By piece: the number of its object, and its file if it is one.
    pub(super) objects: &'f [Owner],
    /// By piece: numbers of the names of inlined functions.
    pub(super) inlined: &'f [IndexVec<NameNumber, u32>],
    /// What files call them says more than their names, so that it counts no namesakes (`NameStyle::Plain`).
    pub(super) are_plain: bool,
}

/// The number of an object, and its file if it is one.
pub(super) type Owner = (usize, Option<DsoId>);

/// Objects are told by their files; modules of WebAssembly have numbers.
type ObjectKey = Result<DsoId, usize>;

/// Gives symbols their places; the answer are those of inlined functions, by piece. `all` have them where comparisons want that.
pub(super) fn find<'t, 'a: 't>(
    symbols: &mut IndexVec<SymbolIndex, Symbol>,
    functions: &Functions<'_, '_>,
    all: bool,
    table: impl Fn(DsoId) -> Option<&'t SymbolTable<'a>>,
) -> Vec<IndexVec<NameNumber, Option<Box<Place>>>> {
    let mut seen: FxHashMap<(ObjectKey, u32), Seen<'_>> = FxHashMap::default();
    // Most names are those of one function.
    let inlined = functions.inlined.iter().flatten();
    let mut is_met: Vec<(bool, bool)> = Vec::new();
    for number in functions.numbers.iter().chain(inlined) {
        let at = *number as usize;
        if is_met.len() <= at {
            is_met.resize(at + 1, (false, false));
        }
        is_met[at] = (true, is_met[at].0);
    }
    let unplaced = of_bodies(symbols, functions);
    let mut meet = |key: (ObjectKey, u32), evidence| {
        if !all && !is_met[key.1 as usize].1 {
            return;
        }
        let known = seen.entry(key).or_insert(Seen {
            first: evidence,
            are_several: all,
        });
        known.are_several = known.are_several || known.first.differs(evidence);
    };
    for (at, symbol) in symbols.iter_enumerated() {
        let raw = functions.raw[at.index()];
        let evidence = functions.declared[at].map(Evidence::Declared);
        let evidence = evidence.unwrap_or(Evidence::Symbol(raw, symbol.start));
        meet((Ok(symbol.dso), functions.numbers[at.index()]), evidence);
    }
    let pieces = functions.expanded.iter().zip(functions.objects);
    for ((expanded, (object, dso)), numbers) in pieces.zip(functions.inlined) {
        let object = dso.ok_or(*object);
        for (at, number) in numbers.iter_enumerated() {
            let declared = unplaced.declared(expanded.origins.get(at), (object, *number));
            if let Some(declared) = declared {
                meet((object, *number), Evidence::Declared(declared));
            }
        }
    }
    let are_several = |key: (ObjectKey, u32)| seen.get(&key).is_some_and(|of| of.are_several);
    let mut wanted: FxHashMap<DsoId, Vec<u64>> = FxHashMap::default();
    let is_wanted: IndexVec<SymbolIndex, bool> = symbols
        .iter_enumerated()
        .map(|(at, symbol)| are_several((Ok(symbol.dso), functions.numbers[at.index()])))
        .collect();
    for (at, symbol) in symbols.iter_enumerated().filter(|(at, _)| is_wanted[*at]) {
        if !functions.are_plain && (all || functions.declared[at].is_none()) {
            wanted.entry(symbol.dso).or_default().push(symbol.start);
        }
    }
    let namesakes: FxHashMap<DsoId, _> = wanted
        .into_iter()
        .filter_map(|(dso, wanted)| Some((dso, table(dso)?.namesakes(&wanted))))
        .collect();
    let mut counts = Counts::default();
    let mut found: Vec<(SymbolIndex, Option<Place>)> = symbols
        .iter_enumerated()
        .filter(|(at, _)| is_wanted[*at])
        .map(|(at, symbol)| {
            let of_file = namesakes.get(&symbol.dso);
            let raw = functions.raw[at.index()];
            let namesake = of_file.and_then(|of| of.get(&(Namesake::stem(raw), symbol.start)));
            let hash = Namesake::hash(raw).filter(|_| !functions.are_plain);
            let count = namesake.map_or((0, 0), |namesake| (namesake.of, namesake.like));
            if let Some(declared) = functions.declared[at] {
                let number = functions.numbers[at.index()];
                let known = counts.entry((symbol.dso, number, declared)).or_default();
                *known = count.max(*known);
            }
            (at, place(functions.declared[at], namesake, hash))
        })
        .collect();
    for (at, place) in &mut found {
        let number = functions.numbers[at.index()];
        let declared = functions.declared[*at];
        if let (Some(place), Some(declared)) = (place, declared) {
            let dso = symbols[*at].dso;
            (place.of, place.like) = counts[&(dso, number, declared)];
        }
    }
    let places = expanded_places(functions, are_several, &counts, &unplaced);
    let by_table = found
        .iter_mut()
        .filter_map(|(at, place)| Some((*at, place.as_mut()?)))
        .filter(|(at, place)| functions.declared[*at].is_none() && !place.file.is_empty());
    let mut by_table = by_table.peekable();
    if by_table.peek().is_some() {
        let paths = paths(symbols, functions);
        for (at, place) in by_table {
            if let Some(Some(path)) = paths.get(&(symbols[at].dso, place.file.as_str())) {
                place.file = (*path).to_owned();
            }
        }
    }
    for (at, place) in found {
        symbols[at].place = place.map(Box::new);
    }
    places
}

/// By file and base name of a source file: its path, if debug information tells but one. The symbol table has the base name alone.
/// Of some functions of such a file debug information does not tell where they are declared: of C++ lambdas.
fn paths<'f>(
    symbols: &IndexSlice<SymbolIndex, [Symbol]>,
    functions: &Functions<'f, '_>,
) -> FxHashMap<(DsoId, &'f str), Option<&'f str>> {
    let of_symbols = symbols.iter_enumerated();
    let of_symbols =
        of_symbols.filter_map(|(at, symbol)| Some((symbol.dso, functions.declared[at]?)));
    let pieces = functions.expanded.iter().zip(functions.objects);
    let of_pieces = pieces.filter_map(|(expanded, (_, dso))| Some((expanded, (*dso)?)));
    let of_pieces = of_pieces.flat_map(|(expanded, dso)| {
        let declared = expanded.origins.iter().flat_map(|of| &of.declared);
        declared.map(move |of| (dso, of))
    });
    let mut paths: FxHashMap<_, Option<&str>> = FxHashMap::default();
    for (dso, declared) in of_symbols.chain(of_pieces) {
        let path: &str = &declared.path;
        let name = path.rsplit('/').next().unwrap_or(path);
        let known = paths.entry((dso, name)).or_insert(Some(path));
        *known = known.filter(|known| *known == path);
    }
    paths
}

/// By object and number of the name: what stands for where functions are defined, of those of which only the lines of their code are
/// known. Lines that overlap are of one function.
struct Unplaced(FxHashMap<(ObjectKey, u32), Vec<(Declared, u32)>>);

impl Unplaced {
    /// Where a function is defined, or what stands for it.
    fn declared<'u>(
        &'u self,
        origin: Option<&'u NameOrigin>,
        key: (ObjectKey, u32),
    ) -> Option<&'u Declared> {
        let NameOrigin { declared, body, .. } = origin?;
        let stand_in = || self.of(key, body.as_ref()?);
        declared.as_ref().or_else(stand_in)
    }

    fn of(&self, key: (ObjectKey, u32), body: &Body) -> Option<&Declared> {
        let all = self.0.get(&key)?.iter();
        let mut fitting = all.filter(|(of, last)| {
            of.path == body.path && of.line <= body.first && body.last <= *last
        });
        fitting.next().map(|(of, _)| of)
    }
}

/// Functions that stand somewhere by themselves have no lines here, and so their inlined copies have none.
fn of_bodies(
    symbols: &IndexSlice<SymbolIndex, [Symbol]>,
    functions: &Functions<'_, '_>,
) -> Unplaced {
    let mut met: FxHashMap<(ObjectKey, u32), Vec<&Body>> = FxHashMap::default();
    let pieces = functions.expanded.iter().zip(functions.objects);
    for ((expanded, (object, dso)), numbers) in pieces.zip(functions.inlined) {
        for (origin, number) in expanded.origins.iter().zip(numbers) {
            if let Some(body) = &origin.body {
                let key = (dso.ok_or(*object), *number);
                met.entry(key).or_default().push(body);
            }
        }
    }
    if !met.is_empty() {
        for (symbol, number) in symbols.iter().zip(functions.numbers) {
            met.remove(&(Ok(symbol.dso), *number));
        }
    }
    let joined = |mut all: Vec<&Body>| {
        all.sort_by(|a, b| (&a.path, a.first).cmp(&(&b.path, b.first)));
        let mut joined: Vec<(Declared, u32)> = Vec::new();
        for body in all {
            match joined.last_mut() {
                Some((of, last)) if of.path == body.path && body.first <= *last => {
                    *last = body.last.max(*last);
                }
                _ => joined.push((
                    Declared {
                        path: Arc::clone(&body.path),
                        line: body.first,
                        mark: Mark::Nothing,
                    },
                    body.last,
                )),
            }
        }
        joined
    };
    Unplaced(
        met.into_iter()
            .map(|(key, all)| (key, joined(all)))
            .collect(),
    )
}

/// By file, number of the name and where it is defined: how many functions of the name there are ([`Place::of`], [`Place::like`]).
type Counts<'f> = FxHashMap<(DsoId, u32, &'f Declared), (u32, u32)>;

fn expanded_places<'f>(
    functions: &Functions<'f, '_>,
    are_several: impl Fn((ObjectKey, u32)) -> bool,
    counts: &Counts<'f>,
    unplaced: &Unplaced,
) -> Vec<IndexVec<NameNumber, Option<Box<Place>>>> {
    let pieces = functions
        .expanded
        .iter()
        .zip(functions.objects)
        .zip(functions.inlined);
    let of_piece =
        |((expanded, owner), numbers): ((&Expanded<'_>, &Owner), &IndexVec<NameNumber, u32>)| {
            let object = owner.1.ok_or(owner.0);
            let mut places = IndexVec::new();
            for (at, number) in numbers.iter_enumerated() {
                let declared = unplaced.declared(expanded.origins.get(at), (object, *number));
                let declared = declared.filter(|_| are_several((object, *number)));
                let mut place = place(declared, None, None);
                // What is inlined is the function that stands elsewhere by itself.
                let counted = owner
                    .1
                    .and_then(|dso| counts.get(&(dso, *number, declared?)));
                if let (Some(place), Some(count)) = (&mut place, counted) {
                    (place.of, place.like) = *count;
                }
                places.push(place.map(Box::new));
            }
            places
        };
    pieces.map(of_piece).collect()
}

/// What is known of a place, by debug information first.
fn place(
    declared: Option<&Declared>,
    namesake: Option<&Namesake<'_>>,
    hash: Option<u32>,
) -> Option<Place> {
    let (of, like) = namesake.map_or((0, 0), |namesake| (namesake.of, namesake.like));
    if let Some(declared) = declared {
        return Some(Place {
            file: declared.path.to_string(),
            line: declared.line,
            mark: declared.mark,
            hash: 0,
            nth: 0,
            of,
            like,
        });
    }
    let namesake = namesake?;
    let file = namesake
        .file
        .map(String::from_utf8_lossy)
        .unwrap_or_default();
    let place = Place {
        file: file.into_owned(),
        line: 0,
        mark: Mark::Nothing,
        hash: hash.unwrap_or_default(),
        nth: if like > 1 && hash.is_none() {
            namesake.nth
        } else {
            0
        },
        of,
        like,
    };
    (place.nth > 0 || place.hash > 0 || !place.file.is_empty()).then_some(place)
}
