//! What addresses are called: functions, inlined ones too, lines, and what JavaScript and WebAssembly were made from.

pub mod symbolize;
pub mod wasm;
