//! DWARF expressions of call frame information, evaluated against one frame.
//!
//! Differs from a strict evaluator in one point: `DW_OP_regN`, which the standard allows only as a
//! location, pushes the register's value, as libgcc does. wasmtime's fibers rely on it.

use gimli::{Encoding, EndianSlice, LittleEndian, Operation};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Where an expression's inputs come from.
pub(super) trait Inputs {
    /// Value of a register by its DWARF number.
    fn register(&mut self, dwarf: u16) -> Option<u64>;
    /// `size` (1 to 8) bytes of memory, zero-extended.
    fn read(&mut self, address: u64, size: u8) -> Option<u64>;
    /// The CFA, when it is known already.
    fn cfa(&self) -> Option<u64>;
    /// What to add to stated addresses.
    fn bias(&self) -> u64;
}

/// Operations that one evaluation may take: branches may go backwards.
const MAX_STEPS: usize = 1000;
/// Values on the stack.
const MAX_DEPTH: usize = 64;

/// The value on top of the stack at the end, `initial` having been pushed at the start.
pub(super) fn evaluate(
    code: Slice<'_>,
    encoding: Encoding,
    initial: Option<u64>,
    inputs: &mut impl Inputs,
) -> Option<u64> {
    let mut stack: Vec<u64> = initial.into_iter().collect();
    let mut rest = code;
    for _ in 0..MAX_STEPS {
        if rest.is_empty() {
            return stack.pop();
        }
        let operation = Operation::parse(&mut rest, encoding).ok()?;
        if let Some(target) = step(operation, &mut stack, inputs)? {
            let here = code.len().checked_sub(rest.len())?;
            let at = here.checked_add_signed(isize::from(target))?;
            rest = EndianSlice::new(code.slice().get(at..)?, LittleEndian);
        }
        if stack.len() > MAX_DEPTH {
            return None;
        }
    }
    None
}

/// Executes one operation; `Some(Some(distance))` is a jump, `None` failure.
fn step(
    op: Operation<Slice<'_>>,
    stack: &mut Vec<u64>,
    inputs: &mut impl Inputs,
) -> Option<Option<i16>> {
    let value = match op {
        Operation::Nop => return Some(None),
        Operation::Skip { target } => return Some(Some(target)),
        Operation::Bra { target } => return Some((stack.pop()? != 0).then_some(target)),
        Operation::Drop => {
            stack.pop()?;
            return Some(None);
        }
        Operation::Swap => {
            let last = stack.len().checked_sub(1)?;
            stack.swap(last, last.checked_sub(1)?);
            return Some(None);
        }
        Operation::Rot => {
            let first = stack.len().checked_sub(3)?;
            stack[first..].rotate_right(1);
            return Some(None);
        }
        Operation::Pick { index } => {
            *stack.get(stack.len().checked_sub(usize::from(index) + 1)?)?
        }
        Operation::Deref {
            size, space: false, ..
        } => {
            let address = stack.pop()?;
            inputs.read(address, size)?
        }
        Operation::UnsignedConstant { value } => value,
        Operation::SignedConstant { value } => value.cast_unsigned(),
        Operation::Address { address } => address.wrapping_add(inputs.bias()),
        Operation::Register { register } => inputs.register(register.0)?,
        Operation::RegisterOffset {
            register, offset, ..
        } => inputs.register(register.0)?.wrapping_add_signed(offset),
        Operation::CallFrameCFA => inputs.cfa()?,
        Operation::PlusConstant { value } => stack.pop()?.wrapping_add(value),
        Operation::Not => !stack.pop()?,
        Operation::Neg => stack.pop()?.wrapping_neg(),
        Operation::Abs => stack.pop()?.cast_signed().unsigned_abs(),
        binary => {
            let right = stack.pop()?;
            let left = stack.pop()?;
            calculate(&binary, left, right)?
        }
    };
    stack.push(value);
    Some(None)
}

fn calculate(op: &Operation<Slice<'_>>, left: u64, right: u64) -> Option<u64> {
    let (signed_left, signed_right) = (left.cast_signed(), right.cast_signed());
    // Shifts by 64 or more shift everything out.
    let by = u32::try_from(right).unwrap_or(u32::MAX);
    Some(match op {
        Operation::And => left & right,
        Operation::Or => left | right,
        Operation::Xor => left ^ right,
        Operation::Plus => left.wrapping_add(right),
        Operation::Minus => left.wrapping_sub(right),
        Operation::Mul => left.wrapping_mul(right),
        Operation::Div => signed_left.checked_div(signed_right)?.cast_unsigned(),
        Operation::Mod => left.checked_rem(right)?,
        Operation::Shl => left.checked_shl(by).unwrap_or(0),
        Operation::Shr => left.checked_shr(by).unwrap_or(0),
        Operation::Shra => signed_left
            .checked_shr(by)
            .unwrap_or(signed_left >> 63)
            .cast_unsigned(),
        Operation::Eq => u64::from(left == right),
        Operation::Ne => u64::from(left != right),
        Operation::Ge => u64::from(signed_left >= signed_right),
        Operation::Gt => u64::from(signed_left > signed_right),
        Operation::Le => u64::from(signed_left <= signed_right),
        Operation::Lt => u64::from(signed_left < signed_right),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Frame;

    impl Inputs for Frame {
        fn register(&mut self, dwarf: u16) -> Option<u64> {
            (dwarf < 17).then_some(u64::from(dwarf) * 0x1000 + 0xb)
        }
        fn read(&mut self, address: u64, size: u8) -> Option<u64> {
            (size == 8).then_some(address + 1)
        }
        fn cfa(&self) -> Option<u64> {
            Some(0xcfa)
        }
        fn bias(&self) -> u64 {
            0x5000
        }
    }

    fn run(code: &[u8], initial: Option<u64>) -> Option<u64> {
        let encoding = Encoding {
            address_size: 8,
            format: gimli::Format::Dwarf32,
            version: 4,
        };
        evaluate(
            EndianSlice::new(code, LittleEndian),
            encoding,
            initial,
            &mut Frame,
        )
    }

    #[test]
    fn plt_expression() {
        // breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus
        let code = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(run(&code, None), Some(0x700b + 8 + 8));
    }

    #[test]
    fn register_location_is_taken_as_its_value() {
        // wasmtime_fiber_start: reg7; deref; plus_uconst 0x38
        assert_eq!(
            run(&[0x57, 0x06, 0x23, 0x38], None),
            Some(0x700b + 1 + 0x38)
        );
    }

    #[test]
    fn jumps_and_memory() {
        // lit1; bra +1; lit5; lit7
        assert_eq!(run(&[0x31, 0x28, 1, 0, 0x35, 0x37], None), Some(7));
        assert_eq!(run(&[0x31, 0x28, 1, 0, 0x35], Some(9)), Some(9));
        // DW_OP_addr 0x10
        assert_eq!(run(&[0x03, 0x10, 0, 0, 0, 0, 0, 0, 0], None), Some(0x5010));
    }

    #[test]
    fn hostile_code_ends() {
        assert_eq!(run(&[0x2f, 0xfd, 0xff], None), None, "endless loop");
        assert_eq!(run(&[0x31, 0x2f, 0xfc, 0xff], None), None, "endless growth");
        assert_eq!(run(&[0x22], None), None, "empty stack");
        assert_eq!(run(&[0x30, 0x30, 0x1b], None), None, "division by zero");
        assert_eq!(run(&[0x2f, 0x00, 0x80], None), None, "jump out of the code");
        assert_eq!(run(&[0x12, 0xff], None), None, "unknown pick");
    }
}
