//! Payloads as text.
