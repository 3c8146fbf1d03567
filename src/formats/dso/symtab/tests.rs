//! The tree of symbols against one that is built step by step, as perf builds its own.

use object::Endianness;
use object::pod::slice_from_all_bytes;
use proptest::prelude::*;

use std::cmp::Ordering;

use super::raw::Symbols;
use super::*;
use crate::ids::Idx;
use crate::rbtree::NodeId;

impl SymbolTable<'_> {
    /// Inserts from the root down and compares all equal starts at once.
    fn build_step_by_step(&self) -> RbTree {
        let mut tree = RbTree::new(self.entries.len());
        let mut present = vec![false; self.entries.len()];
        let mut by_origin: Vec<usize> = (0..self.entries.len()).collect();
        by_origin.sort_by_key(|&i| self.entries[i].origin);
        for table in [SYMTAB, DYNSYM, MADE] {
            for &new in &by_origin {
                if self.entries[new].origin.table() == table {
                    let start = |node: usize| self.entries[node].start;
                    tree.insert(NodeId::from_usize(new), |node| {
                        start(new) < start(node.index())
                    });
                    present[new] = true;
                }
            }
            let mut current: Option<usize> = None;
            for next in (0..self.entries.len()).filter(|_| table != MADE) {
                if !present[next] {
                    continue;
                }
                let same = |&c: &usize| self.entries[c].start == self.entries[next].start;
                let Some(rival) = current.filter(same) else {
                    current = Some(next);
                    continue;
                };
                let wins = Contest::new(rival).is_beaten(self, next);
                let (kept, dropped) = if wins { (next, rival) } else { (rival, next) };
                tree.remove(NodeId::from_usize(dropped));
                present[dropped] = false;
                current = Some(kept);
            }
        }
        tree
    }
}

/// A symbol: table, start, length, kind and binding, length of the name.
type Drawn = (u32, u64, u64, u8, usize);

const STRINGS: &[u8] = b"\0_____abcdefghijklmnopqrstuv.L42\0";

/// `Elf64_Sym` by `Elf64_Sym`.
fn raw(symbols: &[Drawn], table: u32) -> Vec<u8> {
    let of_table = symbols.iter().filter(|symbol| symbol.0 == table);
    let bytes = of_table.flat_map(|&(_, start, len, info, name)| {
        let name = (STRINGS.len() - 1 - name) as u32;
        let mut symbol = name.to_le_bytes().to_vec();
        symbol.extend([info, 0, 1, 0]);
        symbol.extend(start.to_le_bytes());
        symbol.extend(len.to_le_bytes());
        symbol
    });
    bytes.collect()
}

fn table<'a>(drawn: &[Drawn], symtab: &'a [u8], dynsym: &'a [u8]) -> SymbolTable<'a> {
    let as_table = |bytes| RawTable {
        symbols: Symbols::Wide(slice_from_all_bytes(bytes).expect("whole symbols")),
        endian: Endianness::Little,
        strings: STRINGS,
    };
    let mut entries = Vec::new();
    let mut made = Vec::new();
    let mut next = [0; 3];
    for &(table, start, len, _, name) in drawn {
        let index = &mut next[table as usize];
        let origin = Origin::new(table, *index).expect("a small number");
        *index += 1;
        entries.push(SymbolEntry::new(start, origin, len));
        if table == MADE {
            made.push(vec![b'm'; name].into());
        }
    }
    entries.sort();
    let names = Names::Elf {
        symtab: Some(as_table(symtab)),
        dynsym: Some(as_table(dynsym)),
        made,
    };
    SymbolTable::new(entries, names)
}

#[test]
fn labels_are_of_the_function_around_them() {
    const LABEL: usize = 4;
    let drawn = [
        (SYMTAB, 10, 40, STT_FUNC.0, 10),
        (SYMTAB, 20, 5, STT_NOTYPE.0, LABEL),
        (SYMTAB, 25, 25, STT_NOTYPE.0, LABEL),
        (SYMTAB, 60, 9, STT_NOTYPE.0, LABEL),
    ];
    let (symtab, dynsym) = (raw(&drawn, SYMTAB), raw(&drawn, DYNSYM));
    let table = table(&drawn, &symtab, &dynsym);
    for (at, label, function) in [
        (12, false, None),
        (22, true, Some(10)),
        (30, true, Some(10)),
        (62, true, None),
    ] {
        let found = table.find(at).expect("a symbol");
        assert_eq!(found.name == b".L42", label, "{at}");
        let around = table.function_of_label(&found);
        assert_eq!(around.map(|around| around.start), function, "{at}");
    }
}

proptest! {
    #[test]
    fn finds_what_a_tree_built_step_by_step_finds(
        drawn in proptest::collection::vec((0..3_u32, 0..60_u64, 1..40_u64, 0..48_u8, 1..32_usize), 0..120)
    ) {
        let (symtab, dynsym) = (raw(&drawn, SYMTAB), raw(&drawn, DYNSYM));
        let table = table(&drawn, &symtab, &dynsym);
        let tree = table.build_step_by_step();
        for at in 0..110 {
            let mut slow = None;
            tree.search(|node| {
                let entry = &table.entries[node.index()];
                if at >= entry.start && at < entry.end() {
                    slow = Some(node.index());
                }
                match slow {
                    Some(_) => Ordering::Equal,
                    None => at.cmp(&entry.start).then(Ordering::Greater),
                }
            });
            prop_assert_eq!(table.find_in_tree(at), slow, "at {}", at);
        }
    }
}
