//! What weights are counted in: on the ground floor, because stages and views name it.

/// What a weight is a number of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Unit {
    /// Events, calls, blocks, or whatever an expression says.
    #[default]
    Count,
    /// Time.
    Nanoseconds,
    /// Processor cycles.
    Cycles,
    /// Memory.
    Bytes,
    /// Memory over time, in steps of a kibibyte for a millisecond.
    ByteSeconds,
    /// Pages of memory.
    Pages,
    /// Pieces of memory.
    Blocks,
}

/// KiB·ms in a byte·second: 1000 / 1024.
const BYTE_SECONDS: f64 = 1.024;

impl Unit {
    /// Heading of a column.
    #[must_use]
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Nanoseconds => "Time",
            Self::Cycles => "Cycles",
            Self::Bytes => "Bytes",
            Self::ByteSeconds => "Byte-seconds",
            Self::Pages => "Pages",
            Self::Blocks => "Blocks",
        }
    }

    /// What stands behind a bare number of it.
    #[must_use]
    pub const fn smallest(self) -> &'static str {
        match self {
            Self::Nanoseconds => " ns",
            Self::ByteSeconds => " KiB·ms",
            Self::Count | Self::Cycles | Self::Bytes | Self::Pages | Self::Blocks => "",
        }
    }

    /// As JSON names it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Count | Self::Cycles => "count",
            Self::Nanoseconds => "ns",
            Self::Bytes => "bytes",
            Self::ByteSeconds => "KiB ms",
            Self::Pages => "pages",
            Self::Blocks => "blocks",
        }
    }

    /// A number as people read it: `1.91 MiB`, `82.1 ms`.
    #[must_use]
    pub fn human(self, number: u64) -> String {
        match self {
            Self::Count | Self::Cycles | Self::Pages | Self::Blocks => number.to_string(),
            Self::Nanoseconds => time(number),
            Self::Bytes => binary(number as f64, "B"),
            Self::ByteSeconds => binary(number as f64 * BYTE_SECONDS, "B·s"),
        }
    }
}

/// Four digits at most of what is worth them.
fn time(ns: u64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns {
        ns if ns >= 1e9 => (ns / 1e9, "s"),
        ns if ns >= 1e6 => (ns / 1e6, "ms"),
        ns if ns >= 1e3 => (ns / 1e3, "us"),
        _ => return format!("{ns} ns"),
    };
    let digits = match value {
        value if value >= 1000.0 => 0,
        value if value >= 100.0 || unit != "s" => 1,
        _ => 3,
    };
    format!("{value:.digits$} {unit}")
}

fn binary(number: f64, unit: &str) -> String {
    let mut number = number;
    if number < 1024.0 {
        return format!("{number:.0} {unit}");
    }
    let mut prefix = "";
    for next in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
        if number < 1024.0 {
            break;
        }
        number /= 1024.0;
        prefix = next;
    }
    format!("{number:.2} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let human = |unit: Unit, number| unit.human(number);
        assert_eq!(human(Unit::Bytes, 20_971_520), "20.00 MiB");
        assert_eq!(human(Unit::Bytes, 480_000), "468.75 KiB");
        assert_eq!(human(Unit::Bytes, 1023), "1023 B");
        assert_eq!(human(Unit::Nanoseconds, 1_446_000_000), "1.446 s");
        assert_eq!(human(Unit::Nanoseconds, 82_123_456), "82.1 ms");
        assert_eq!(human(Unit::Nanoseconds, 950), "950 ns");
        assert_eq!(human(Unit::Count, 7), "7");
    }
}
