//! Who wrote a file, by all of its names.

use rustc_hash::FxHashSet;

use super::Producer;

/// So many names are looked at closely, of those behind them one in [`ONE_IN`].
const CLOSELY: u64 = 4096;
const ONE_IN: u64 = 64;

/// Counts whose names a dump has. One name alone decides nothing: a wasm module may call its functions
/// `py::f` or `Lower;(x)`, and wasmtime's own names come behind those of the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Votes {
    of: [u64; Producer::ALL.len()],
    asked: u64,
    names: u64,
}

impl Votes {
    /// Takes one more name into account.
    pub(crate) fn add(&mut self, name: &[u8]) {
        self.add_with(name, |name| name);
    }

    /// The same with bytes that begin with the name; where it ends, `whole` finds out if that matters.
    #[inline]
    pub(crate) fn add_with<'n>(
        &mut self,
        beginning: &'n [u8],
        whole: impl Fn(&'n [u8]) -> &'n [u8],
    ) {
        self.names += 1;
        let closely = self.names <= CLOSELY || self.names.is_multiple_of(ONE_IN);
        let producer = if closely {
            Producer::of_name(whole(beginning))
        } else {
            Producer::of_prefix(beginning)
        };
        // A name that was only glanced at counts where it says something.
        self.asked += u64::from(closely || producer.is_known());
        if let Some(at) = place(producer) {
            self.of[at] += 1;
        }
    }

    /// How many of the names looked at are of this runtime.
    pub(crate) fn count(&self, producer: Producer) -> u64 {
        place(producer).map_or(0, |at| self.of[at])
    }

    /// How many names were looked at.
    pub(crate) const fn asked(&self) -> u64 {
        self.asked
    }

    /// The runtime that the names are of. wasmtime is told by a few of its own among those that the
    /// module brought; of all others, most names must be theirs.
    pub(crate) fn producer(&self) -> Producer {
        let Some((&most, producer)) = self
            .of
            .iter()
            .zip(Producer::ALL)
            .max_by_key(|&(&votes, producer)| (votes, std::cmp::Reverse(producer)))
        else {
            return Producer::Unknown;
        };
        let mut hosts = Producer::all().filter(|runtime| runtime.names_are_of_programs);
        let host = hosts.find(|host| self.count(host.producer) > 0);
        let share = |percent: u64| most.saturating_mul(100) >= self.asked.saturating_mul(percent);
        let enough = match (producer.row().tags_all_names, host.is_some()) {
            (true, true) => share(100),
            (true, false) => share(80),
            (false, true) => share(90),
            (false, false) => share(25),
        };
        if most > 0 && enough {
            producer
        } else {
            host.map_or(Producer::Unknown, |host| host.producer)
        }
    }
}

fn place(producer: Producer) -> Option<usize> {
    (producer as usize).checked_sub(1)
}

/// Runtimes beside the one that most names of a perf map are of: those of one process append to the same file. One that
/// takes part has named at least two pieces of code of one size as it alone does: a program's function of such a name stands alone,
/// or is of any size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guests(u16);

impl Guests {
    /// Looks at names and sizes of a map.
    pub(crate) fn of<'n>(entries: impl Iterator<Item = (&'n [u8], u64)>) -> Self {
        let mut guests = Self::default();
        let mut sizes = FxHashSet::default();
        for (name, size) in entries {
            let producer = Producer::of_prefix(name);
            if producer.is_known() && !guests.has(producer) && !sizes.insert((producer, size)) {
                guests.0 |= 1 << producer as usize;
            }
        }
        guests
    }

    /// Whether it takes part.
    pub(crate) const fn has(self, producer: Producer) -> bool {
        self.0 >> producer as usize & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_name_two_pieces_of_one_size() {
        let has = |entries: &[(&str, u64)], producer| {
            let entries = entries.iter().map(|&(name, size)| (name.as_bytes(), size));
            Guests::of(entries).has(producer)
        };
        let python = Producer::CPython;
        assert!(has(
            &[("py::f:/x.py", 16), ("f", 7), ("py::g:/x.py", 16)],
            python
        ));
        assert!(!has(&[("py::f:/x.py", 16), ("f", 7)], python));
        assert!(!has(&[("py::f:/x.py", 16), ("py::g:/x.py", 20)], python));
        assert!(!has(&[("py::f", 16), ("py::g", 16)], python), "no file");
    }
}
