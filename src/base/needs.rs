//! What a request needs of the reading half, as one set: what several need is their union.
//!
//! Each key, filter, view and writer says its own needs where it is defined, and a verb joins them. What nobody names is not
//! computed. When these were flags of four structs that were copied by hand, one that was forgotten gave an empty column.

bitflags::bitflags! {
    /// Facts that are computed only if somebody asks for them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Needs: u64 {
        /// Call chains.
        const STACKS = 1;
        /// Inlined functions in call chains.
        const INLINED = 1 << 1;
        /// A frame where others are missing, so that only whole stacks begin at the root.
        const MARKS = 1 << 2;
        /// Rows apart by time, in steps.
        const TIME = 1 << 3;
        /// Rows apart by exact time.
        const MOMENTS = 1 << 4;
        /// When each sample was taken that a row stands for, in a list of its own: rows stay as few as they are. Of samples that have
        /// rows of their own these know it, and branches have no times.
        const TIMES = 1 << 33;
        /// Payloads of tracepoints as text if all events of the recording are tracepoints: perf shows nothing else of these by
        /// default.
        const ONLY_PAYLOADS = 1 << 5;
        /// Rows apart by fields of tracepoints.
        const FIELDS = 1 << 6;
        /// A row for each sample, with its exact time and data address.
        const SAMPLES = 1 << 7;
        /// Sum of the squares of the periods of each row.
        const SQUARES = 1 << 8;
        /// Sizes of stacks.
        const DEPTHS = 1 << 9;
        /// When threads were not on a processor.
        const WAITS = 1 << 10;
        /// Where complete stacks begin; samples whose stacks were cut get rows of their own.
        const ROOTS = 1 << 11;
        /// Where the frames of all stacks lie.
        const PATHS = 1 << 12;
        /// Source lines of frames.
        const LINES = 1 << 13;
        /// Frames apart by address.
        const ADDRESSES = 1 << 14;
        /// Where objects were mapped.
        const RANGES = 1 << 15;
        /// Where the kernel and its modules lie.
        const KERNEL_RANGES = 1 << 16;
        /// JIT functions apart by version, with the code of each.
        const CODE = 1 << 17;
        /// Lines of WebAssembly are looked for, shown or not.
        const WASM_LINES = 1 << 18;
        /// Whose code functions are: the program's own, a library's, a runtime's.
        const KINDS = 1 << 19;
        /// What debug information says of source files, for proofs.
        const CLAIMS = 1 << 20;
        /// For which packages a runtime made optimised code.
        const OPTIMISED = 1 << 21;
        /// Callers in chains that the kernel recorded are looked up where calls return to, for views that show what perf shows.
        /// That may be the next line, or another function.
        const RETURNS = 1 << 22;
        /// Where the line of an address is not known, that of its function serves: for views that show where functions are, and
        /// not what lines weigh.
        const FUNCTION_LINES = 1 << 23;
        /// Parameters and places of all functions, not of those alone that share a name: comparisons want what tells a function
        /// from others that only the other side has.
        const PLACES = 1 << 24;
        /// What else the code of functions is called in its file: for views that say whose time it is, or match functions by name.
        const ALIASES = 1 << 34;
        /// Functions of scripts have the names and places of the originals, where source maps tell them: for views that people read.
        const ORIGINALS = 1 << 30;
        /// Which thread each row is of, where several recordings are one. Without it those of one name and program are one.
        const THREADS = 1 << 31;

        /// A row for each branch that samples have, in place of the samples.
        const BRANCHES = 1 << 25;
        /// The same if perf's report shows branches of such a recording by default.
        const BRANCHES_AS_RECORDED = 1 << 26;
        /// The branches of each sample.
        const BRANCH_LISTS = 1 << 27;
        /// Samples weigh what their access to memory cost.
        const ACCESSES = 1 << 28;
        /// Where branches before samples were mispredicted.
        const PREDICTIONS = 1 << 29;
        /// By what the records are known again, whatever file they are in.
        const DIGEST = 1 << 32;
        /// Names of what `eval` made have the file that its lines tell, if its text names one: for who looks for files or packages.
        /// perf prints them without.
        const EVALED = 1 << 35;

        /// Call chains as people read them.
        const CHAINS = Self::STACKS.bits() | Self::INLINED.bits() | Self::MARKS.bits();
    }
}

impl Needs {
    /// The bit of the first facet.
    const FIRST_FACET: u32 = 36;

    /// Rows apart by a facet, by its number in the table of facets. The bits behind those with a name are theirs.
    #[must_use]
    pub const fn facet(number: u32) -> Self {
        Self::from_bits_retain(1 << (Self::FIRST_FACET + number))
    }

    /// The needs, or none.
    #[must_use]
    pub const fn only_if(self, condition: bool) -> Self {
        if condition { self } else { Self::empty() }
    }
}

#[cfg(test)]
mod tests {
    use bitflags::Flags;

    use super::*;

    #[test]
    fn each_need_has_a_bit_of_its_own() {
        let alone = Needs::FLAGS.iter().filter(|flag| *flag.name() != *"CHAINS");
        let mut known = Needs::empty();
        for flag in alone {
            assert!(!known.intersects(*flag.value()), "{}", flag.name());
            assert_eq!(flag.value().bits().count_ones(), 1, "{}", flag.name());
            known |= *flag.value();
        }
        assert!(
            known.bits() < 1 << Needs::FIRST_FACET,
            "those above are facets"
        );
    }
}
