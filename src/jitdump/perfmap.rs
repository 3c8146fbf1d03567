//! One `perf-PID.map`: bytes in, address ranges with names out.
