//! Whole walks over synthetic programs: little ELF files with frame information made by `gimli`'s
//! writer, and stacks laid out by hand.

mod files;
mod hosted;
mod jit;
mod narrow;
mod oracle;
mod sizes;
mod support;
