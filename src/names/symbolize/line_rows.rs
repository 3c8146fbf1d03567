//! The rows of a line program, straight from its bytes.
//!
//! In: the header as gimli reads it. Out: address, file, line and column, row by row; what else a row tells nobody asks for.
//! gimli makes a value of every instruction and keeps all registers: to look lines up took 470 instructions of the processor for
//! each of its rows, a tenth of an export of a large program for the Firefox Profiler; with these rows it takes 180. Which
//! rows there are, and where a damaged program ends, is as gimli has it (a test compares). Format: DWARF 5, 6.2.5.

use gimli::constants as dw;

use super::abbreviations::{Reader, number, signed};

/// A row: from this address on, code belongs to this place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) address: u64,
    pub(super) file: u64,
    pub(super) line: u64,
    pub(super) column: u64,
    /// The address is the first behind a sequence.
    pub(super) is_end: bool,
}

impl Row {
    /// What the registers are at the beginning of a sequence.
    const FIRST: Self = Self {
        address: 0,
        file: 1,
        line: 1,
        column: 0,
        is_end: false,
    };
}

/// What the header says about instructions.
struct Layout<'a> {
    version: u16,
    /// Bytes of an address, and the largest.
    address_size: u8,
    largest: u64,
    /// Bytes of the shortest instruction, and operations of one.
    shortest: u64,
    operations: u64,
    /// The first opcode that is a step of both address and line.
    first_special: u8,
    /// By opcode: how many numbers stand behind it.
    lengths: &'a [u8],
}

/// What an opcode adds to line and operation.
#[derive(Clone, Copy, Default)]
struct Step {
    line: i16,
    operations: u8,
}

/// A line program under way.
pub(super) struct Rows<'a> {
    rest: &'a [u8],
    layout: Layout<'a>,
    /// By opcode.
    steps: [Step; 256],
    row: Row,
    operation: u64,
    /// What a linker threw away: nothing counts until there is another address.
    is_dead: bool,
}

impl<'a> Rows<'a> {
    pub(super) fn of(header: &gimli::LineProgramHeader<Reader<'a>>) -> Self {
        let address_size = header.address_size();
        let mut steps = [Step::default(); 256];
        let range = header.line_range().max(1);
        for opcode in header.opcode_base()..=u8::MAX {
            let adjusted = opcode - header.opcode_base();
            steps[usize::from(opcode)] = Step {
                line: i16::from(header.line_base()) + i16::from(adjusted % range),
                operations: adjusted / range,
            };
        }
        Self {
            rest: header.raw_program_buf().slice(),
            layout: Layout {
                version: header.version(),
                address_size,
                largest: u64::MAX >> 64_u32.saturating_sub(8 * u32::from(address_size)).min(63),
                shortest: header.minimum_instruction_length().into(),
                operations: header.maximum_operations_per_instruction().max(1).into(),
                first_special: header.opcode_base(),
                lengths: header.standard_opcode_lengths().slice(),
            },
            steps,
            row: Row::FIRST,
            operation: 0,
            is_dead: false,
        }
    }

    /// The next row; none at the end, and where the program makes no sense.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Row> {
        if self.row.is_end {
            self.begin();
        }
        loop {
            let opcode = byte(&mut self.rest)?;
            let is_row = if opcode >= self.layout.first_special {
                let step = self.steps[usize::from(opcode)];
                self.add_lines(step.line.into());
                self.advance(step.operations.into())?;
                true
            } else {
                self.execute(opcode)?
            };
            if is_row && !self.is_dead {
                return Some(self.row);
            }
            if is_row && self.row.is_end {
                self.begin();
            }
        }
    }

    fn begin(&mut self) {
        self.row = Row::FIRST;
        self.operation = 0;
        self.is_dead = false;
    }

    /// An instruction with operands, or none; whether it makes a row.
    #[inline]
    fn execute(&mut self, opcode: u8) -> Option<bool> {
        match dw::DwLns(opcode) {
            dw::DwLns(0) => return self.execute_extended(),
            dw::DW_LNS_copy => return Some(true),
            dw::DW_LNS_advance_pc => {
                let operations = number(&mut self.rest)?;
                self.advance(operations)?;
            }
            dw::DW_LNS_advance_line => {
                let lines = signed(&mut self.rest)?;
                self.add_lines(lines);
            }
            dw::DW_LNS_set_file => self.row.file = number(&mut self.rest)?,
            dw::DW_LNS_set_column => self.row.column = number(&mut self.rest)?,
            dw::DW_LNS_const_add_pc => {
                self.advance(self.steps[usize::from(u8::MAX)].operations.into())?;
            }
            dw::DW_LNS_fixed_advance_pc => {
                let (bytes, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                self.add_address(u16::from_le_bytes(*bytes).into())?;
            }
            dw::DW_LNS_set_isa => drop(number(&mut self.rest)?),
            dw::DW_LNS_negate_stmt
            | dw::DW_LNS_set_basic_block
            | dw::DW_LNS_set_prologue_end
            | dw::DW_LNS_set_epilogue_begin => {}
            _ => {
                for _ in 0..*self.layout.lengths.get(usize::from(opcode) - 1)? {
                    number(&mut self.rest)?;
                }
            }
        }
        Some(false)
    }

    fn execute_extended(&mut self) -> Option<bool> {
        let length = usize::try_from(number(&mut self.rest)?).ok()?;
        let (mut own, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        match dw::DwLne(byte(&mut own)?) {
            dw::DW_LNE_end_sequence => {
                self.row.is_end = true;
                return Some(true);
            }
            dw::DW_LNE_set_address => {
                let address = self.address(own)?;
                self.is_dead = address < self.row.address || address >= self.layout.largest - 1;
                if !self.is_dead {
                    self.row.address = address;
                    self.operation = 0;
                }
            }
            // Nobody asks for such a file, but the program ends where it is none.
            dw::DW_LNE_define_file if self.layout.version <= 4 => {
                let name = memchr::memchr(0, own)?;
                own = &own[name + 1..];
                (0..3).try_for_each(|_| number(&mut own).map(drop))?;
            }
            dw::DW_LNE_set_discriminator => drop(number(&mut own)?),
            _ => {}
        }
        Some(false)
    }

    fn address(&self, bytes: &[u8]) -> Option<u64> {
        let bytes = bytes.get(..self.layout.address_size.into())?;
        let mut wide = [0; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(wide))
    }

    fn add_lines(&mut self, lines: i64) {
        self.row.line = match u64::try_from(lines) {
            Ok(more) => self.row.line.wrapping_add(more),
            Err(_) => self.row.line.saturating_sub(lines.unsigned_abs()),
        };
    }

    #[inline]
    fn advance(&mut self, operations: u64) -> Option<()> {
        if self.is_dead {
            return Some(());
        }
        let layout = &self.layout;
        let (instructions, operation) = match layout.operations {
            1 => (operations, 0),
            many => {
                let all = self.operation.wrapping_add(operations);
                (all / many, all % many)
            }
        };
        let bytes = layout.shortest.wrapping_mul(instructions);
        self.operation = operation;
        self.row.address = self.row.address.checked_add(bytes)?;
        (self.row.address <= self.layout.largest).then_some(())
    }

    fn add_address(&mut self, bytes: u64) -> Option<()> {
        if self.is_dead {
            return Some(());
        }
        self.operation = 0;
        self.row.address = self.row.address.checked_add(bytes)?;
        (self.row.address <= self.layout.largest).then_some(())
    }
}

#[inline]
fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (byte, behind) = rest.split_first()?;
    *rest = behind;
    Some(*byte)
}

#[cfg(test)]
mod tests {
    use gimli::{ColumnType, DebugLine, DebugLineOffset, LittleEndian};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// What the header says: version, address size, shortest instruction, operations, base and range of lines, first special
    /// opcode.
    type Head = (u16, u8, u8, u8, i8, u8, u8);

    fn section(
        (version, size, shortest, operations, base, range, first): Head,
        program: &[u8],
    ) -> Vec<u8> {
        let mut header = vec![shortest];
        if version >= 4 {
            header.push(operations);
        }
        header.extend([1, base.cast_unsigned(), range, first]);
        header.extend((1..first).map(|opcode| opcode % 3));
        match version {
            // No directories, no files.
            5 => header.extend([1, 1, 8, 0, 1, 1, 8, 0]),
            _ => header.extend([0, 0]),
        }
        let mut unit = version.to_le_bytes().to_vec();
        if version == 5 {
            unit.extend([size, 0]);
        }
        unit.extend((header.len() as u32).to_le_bytes());
        unit.extend(header);
        unit.extend(program);
        let mut section = (unit.len() as u32).to_le_bytes().to_vec();
        section.extend(unit);
        section
    }

    fn gimlis(program: &gimli::IncompleteLineProgram<Reader<'_>>) -> Vec<Row> {
        let mut rows = program.clone().rows();
        let mut all = Vec::new();
        while let Ok(Some((_, row))) = rows.next_row() {
            all.push(Row {
                address: row.address(),
                file: row.file_index(),
                line: row.line().map_or(0, |line| line.get()),
                column: match row.column() {
                    ColumnType::LeftEdge => 0,
                    ColumnType::Column(column) => column.get(),
                },
                is_end: row.end_sequence(),
            });
        }
        all
    }

    fn instruction() -> impl Strategy<Value = Vec<u8>> {
        let address = |size: usize| {
            (0_u64..0x4000, any::<bool>()).prop_map(move |(at, is_dead)| {
                let at = if is_dead && at % 5 == 0 {
                    u64::MAX - at % 3
                } else {
                    at
                };
                let mut bytes = vec![0, size as u8 + 1, 2];
                bytes.extend(&at.to_le_bytes()[..size]);
                bytes
            })
        };
        prop_oneof![
            6 => any::<u8>().prop_map(|opcode| vec![opcode]),
            6 => (13_u8..).prop_map(|opcode| vec![opcode]),
            4 => (1_u8..13, vec(any::<u8>(), 0..3)).prop_map(|(opcode, mut operands)| {
                operands.insert(0, opcode);
                operands
            }),
            1 => address(8),
            1 => address(4),
            1 => Just(vec![0, 1, 1]),
            1 => (0_u8..6, vec(0_u8..6, 0..6)).prop_map(|(length, mut own)| {
                own.splice(0..0, [0, length]);
                own
            }),
            1 => (0_u8..200).prop_map(|number| vec![0, 2, 4, number]),
        ]
    }

    proptest! {
        #[test]
        fn rows_are_those_of_gimli(
            version in 2_u16..=5,
            size in prop_oneof![Just(4_u8), Just(8_u8), Just(2_u8)],
            shortest in 1_u8..5,
            operations in prop_oneof![4 => Just(1_u8), 1 => 2_u8..5],
            base in any::<i8>(),
            range in 1_u8..,
            first in prop_oneof![4 => Just(13_u8), 1 => 1_u8..30],
            program in vec(instruction(), 0..60),
        ) {
            let head = (version, size, shortest, operations, base, range, first);
            let section = section(head, &program.concat());
            let lines = DebugLine::new(&section, LittleEndian);
            let program = lines.program(DebugLineOffset(0), size, None, None).expect("a header");
            let mut rows = Rows::of(program.header());
            let own: Vec<Row> = std::iter::from_fn(|| rows.next()).collect();
            prop_assert_eq!(own, gimlis(&program));
        }
    }
}
