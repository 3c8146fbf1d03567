//! Inlined calls of Go's functions.
//!
//! Each function with inlined calls has a table that gives the number of the innermost one for each address, and a list
//! of calls: the name, and an address in the caller (Go 1.12 and later). Versions differ in which of a function's
//! tables that is, in the calls' layout and where lists lie, and not all of that is written down anywhere. So every
//! possibility is tried on many functions, and the one that fits all of them is right, or none.

use super::layout::{Version, u32_at};
use super::{GoFunction, GoTable};

/// How inlined calls are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Which table has the number of the call.
    values: usize,
    /// Which data is the list of calls.
    data: usize,
    /// Where lists are counted from; `None` if functions have their address.
    base: Option<u64>,
    call: CallLayout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallLayout {
    size: usize,
    name_at: usize,
    caller_at: usize,
}

/// Go 1.12 to 1.19.
const OLD: CallLayout = CallLayout {
    size: 20,
    name_at: 12,
    caller_at: 16,
};
/// Go 1.20 and later.
const NEW: CallLayout = CallLayout {
    size: 16,
    name_at: 4,
    caller_at: 8,
};

/// The calls inlined in one function.
pub(super) struct Tree<'a> {
    values: u32,
    list: &'a [u8],
    call: CallLayout,
}

/// An inlined call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) name: &'a [u8],
    /// An address of the caller, where the call is.
    pub(super) caller: u64,
}

impl Shape {
    /// The one that fits all functions that were tried.
    pub(super) fn find(table: &GoTable<'_>) -> Option<Self> {
        /// Functions with inlined calls that are asked for an opinion.
        const ENOUGH: usize = 48;
        /// Functions that are looked at for that.
        const MOST: usize = 20_000;
        let mut fitting = Self::possible(table);
        let mut voters = 0;
        for function in table.functions().take(MOST) {
            let has_values = |shape: &Self| shape.has_calls(table, &function);
            if !fitting.iter().any(has_values) {
                continue;
            }
            fitting
                .retain(|shape| !shape.has_calls(table, &function) || shape.fits(table, &function));
            voters += 1;
            if fitting.is_empty() || voters >= ENOUGH {
                break;
            }
        }
        // Without a single function to show it, a shape proves nothing.
        let shown = |shape: &&Self| {
            let all = table.functions().take(MOST);
            all.filter(|f| shape.has_calls(table, f)).take(2).count() == 2
        };
        let mut fitting = fitting.iter().filter(shown);
        fitting.next().copied()
    }

    fn possible(table: &GoTable<'_>) -> Vec<Self> {
        let layout = &table.layout;
        let bases = layout.inline_bases.iter();
        let bases = bases.filter(|&&base| table.memory.at(base).is_some());
        let of = |values, data, base, call| Self {
            values,
            data,
            base,
            call,
        };
        match layout.version {
            Version::Go1_2 => [(2, 4), (1, 2), (2, 3), (1, 4)]
                .map(|(values, data)| of(values, data, None, OLD))
                .to_vec(),
            Version::Go1_16 => [3, 4].map(|data| of(2, data, None, OLD)).to_vec(),
            Version::Go1_18 => bases.map(|&base| of(2, 3, Some(base), OLD)).collect(),
            Version::Go1_20 => bases.map(|&base| of(2, 3, Some(base), NEW)).collect(),
        }
    }

    /// Whether the function may have inlined calls.
    fn has_calls(&self, table: &GoTable<'_>, function: &GoFunction<'_>) -> bool {
        self.parts(table, function).is_some()
    }

    /// Table of values, and where the list of calls is.
    fn parts(&self, table: &GoTable<'_>, function: &GoFunction<'_>) -> Option<(u32, u64)> {
        let layout = &table.layout;
        let (count, first) = layout.more_values(function.at)?;
        if self.values >= count as usize
            || self.data >= usize::from(layout.data_count(function.at)?)
        {
            return None;
        }
        let values = layout.field(function.at, first + self.values * 4)?;
        let data_at = first.checked_add(usize::try_from(count).ok()?.checked_mul(4)?)?;
        let list = match self.base {
            Some(base) => {
                let offset = layout.field(function.at, data_at.checked_add(self.data * 4)?)?;
                base.checked_add(u64::from(Some(offset).filter(|&o| o != u32::MAX)?))?
            }
            None => {
                let at = function.at.checked_add(data_at)?.next_multiple_of(8) - function.at;
                layout.pointer(function.at, at + self.data * 8)?
            }
        };
        (values != 0 && list != 0).then_some((values, list))
    }

    /// The calls of a function, if there are any.
    pub(super) fn tree<'a>(
        &self,
        table: &GoTable<'a>,
        function: &GoFunction<'a>,
    ) -> Option<Tree<'a>> {
        let (values, list) = self.parts(table, function)?;
        Some(Tree {
            values,
            list: table.memory.at(list)?,
            call: self.call,
        })
    }

    /// Whether what the function's tables say of its addresses makes sense as calls.
    fn fits(&self, table: &GoTable<'_>, function: &GoFunction<'_>) -> bool {
        /// Places of a function that are looked at.
        const PLACES: u64 = 32;
        let Some(tree) = self.tree(table, function) else {
            return false;
        };
        let size = function.end.0.saturating_sub(function.start.0);
        let step = (size / PLACES).max(1);
        (0..size.min(PLACES)).all(|n| {
            let pc = function.start.0 + n * step;
            let number = table.value(tree.values, function, pc).unwrap_or(-1);
            number < 0
                || tree
                    .call(table, function, number)
                    .is_some_and(|call| call.caller < function.end.0)
        })
    }
}

impl<'a> Tree<'a> {
    /// The innermost call at an address.
    pub(super) fn call_at(
        &self,
        table: &GoTable<'a>,
        function: &GoFunction<'a>,
        pc: u64,
    ) -> Option<Call<'a>> {
        let number = table.value(self.values, function, pc)?;
        self.call(table, function, number)
    }

    fn call(
        &self,
        table: &GoTable<'a>,
        function: &GoFunction<'a>,
        number: i32,
    ) -> Option<Call<'a>> {
        let at = usize::try_from(number).ok()?.checked_mul(self.call.size)?;
        let call = self.list.get(at..at.checked_add(self.call.size)?)?;
        let name = table.layout.name(u32_at(call, self.call.name_at)?)?;
        let ahead = u64::from(u32_at(call, self.call.caller_at)?);
        let caller = function.start.0.checked_add(ahead)?;
        let is_name = name.contains(&b'.') && !name.iter().any(u8::is_ascii_control);
        (is_name && caller < function.end.0).then_some(Call { name, caller })
    }
}
