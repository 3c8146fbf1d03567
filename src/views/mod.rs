//! What is asked of a profile: tables and trees. They know nothing of how it was made.

pub mod code;
pub mod flame;
pub mod functions;
pub mod questions;
pub mod report;
