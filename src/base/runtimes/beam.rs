//! Erlang's BEAM, of releases 25 to 28.

use super::{
    Activity, CleanName, Ecosystem, Habit, Kind, Lapse, Producer, Runtime, Whose, recipe, switch,
};

pub(super) const BEAM: Runtime = Runtime {
    producer: Producer::Beam,
    name: "Erlang (BEAM)",
    short_name: "Erlang",
    engine: "BEAM",
    prefixes: &[b"global::", b"erts_beamasm:", b"$erts_beamasm:"],
    is_name: is_erlang_function,
    patches_calls: true,
    loops: &["process_main"],
    lapses: &[Lapse::PthreadIds, Lapse::NoClose, Lapse::LinesBefore],
    habit,
    is_entered_by_return: |name| habit(name) == Habit::ErlangBase,
    clean: |name| CleanName::plain(clean(name)),
    kind,
    own: Some("modules that are not OTP's"),
    recipes: recipe::BEAM,
    switches: switch::BEAM,
    activities: ACTIVITIES,
    programs: &["beam.smp", "erl"],
    libraries: &[],
    package,
    ..Runtime::UNKNOWN
};

/// What its own functions do, and its code.
const ACTIVITIES: &[Activity] = &[
    Activity::new(
        1,
        "GC",
        r"^(erts_garbage|minor_collection|major_collection|do_minor|do_major|full_sweep|sweep|erts_gc|
            garbage_collect|collect_live|setup_rootset|erts_cleanup_offheap|collect_heap|move_(?:cons|boxed)|
            any_heap_refs|any_heap_ref_ptrs)",
    ),
    Activity::new(
        1,
        "JIT compile",
        r"^(beamasm|asmjit|BeamModuleAssembler|BeamGlobalAssembler|BeamAssembler|beam_(?:asm|jit|load|opcodes|
            transform)|erts_(?:finish_loading|prepare_loading))",
    ),
    Activity::new(
        1,
        "waiting by spinning",
        r"^(erts_sys_(?:schedule)|sched_spin|scheduler_wait_spin|erts_spin|ethr_.*spin)",
    ),
    Activity::new(
        2,
        "scheduler",
        r"^(scheduler_wait|erts_schedule|schedule|try_steal|check_requeue|sched_|erts_thr_progress|
            erts_tse_wait|ethr_event|erts_proc_(?:lock|unlock)|wait__|erts_poll|check_io|erts_check_io)",
    ),
    Activity::new(
        2,
        "allocation",
        r"^(erts_alloc|erts_free|bf_|mbc_|sbc_|erts_(?:realloc|alcu|mseg|mmap)|aoffcaf|dealloc)",
    ),
    Activity::new(
        2,
        "copying messages",
        r"^(copy_struct|size_object|erts_send|erts_queue|copy_shallow|erts_copy)",
    ),
    Activity::new(
        2,
        "ETS and maps",
        r"^(ets_|db_|erts_(?:maps|hash)|hashmap|make_internal_hash|make_hash|flatmap)",
    ),
    Activity::new(3, "interpreter", r"^(process_main)"),
    Activity::new(
        3,
        "built-in functions",
        r"^(bif|erts_bif|erts_internal)|_[0-9]$",
    ),
];

/// What an Erlang process returns to from its first function has no caller; perf maps put a `$` in front.
fn habit(name: &[u8]) -> Habit {
    let name = name.strip_prefix(b"$").unwrap_or(name);
    if name.starts_with(b"erts_beamasm:normal_exit/") {
        Habit::ErlangBase
    } else {
        Habit::FramePointers
    }
}

/// `mod:fun/arity`, or what maps call the beginning of a function.
fn is_erlang_function(name: &[u8]) -> bool {
    if name.ends_with(b"-CodeInfoPrologue") {
        return true;
    }
    let Some(slash) = name.iter().rposition(|&b| b == b'/') else {
        return false;
    };
    let (before, arity) = (&name[..slash], &name[slash + 1..]);
    let colon = before.iter().position(|&b| b == b':');
    (1..=3).contains(&arity.len())
        && arity.iter().all(u8::is_ascii_digit)
        && colon.is_some_and(|at| at > 0 && before.get(at + 1).is_some_and(|&b| b != b':'))
}

/// Without the mark of entries, and as maps write it.
fn clean(name: &str) -> &str {
    let name = name.strip_prefix('$').unwrap_or(name);
    name.strip_suffix("-CodeInfoPrologue").unwrap_or(name)
}

fn kind(_: &str, clean: &CleanName) -> Kind {
    let name = clean.name.as_str();
    let module = name.split(':').next().unwrap_or(name).trim_matches('\'');
    if name.starts_with("global::") || module == "erts_beamasm" || !name.contains(':') {
        Kind::Runtime
    } else if MODULES.binary_search(&module).is_ok()
        || FAMILIES.iter().any(|family| module.starts_with(family))
    {
        Kind::Std
    } else {
        Kind::Own
    }
}

fn package(_: &str, clean: &CleanName, kind: Kind) -> Whose {
    match kind {
        Kind::Runtime => Whose::Nobody,
        Kind::Std => Whose::Std("OTP"),
        _ => {
            let module = clean.name.split(':').next().unwrap_or_default();
            let module = module.trim_matches('\'');
            // `Elixir.Plug.Router` is of `Plug`.
            let elixir = module.strip_prefix("Elixir.");
            let package = elixir.map_or(module, |m| m.split('.').next().unwrap_or(m));
            Whose::Package(Ecosystem::Beam, package.to_owned())
        }
    }
}

/// Modules of Erlang's and Elixir's libraries.
const MODULES: [&str; 88] = [
    "Elixir.Access",
    "Elixir.Agent",
    "Elixir.Enum",
    "Elixir.File",
    "Elixir.GenServer",
    "Elixir.IO",
    "Elixir.Integer",
    "Elixir.Kernel",
    "Elixir.Keyword",
    "Elixir.List",
    "Elixir.Map",
    "Elixir.MapSet",
    "Elixir.Process",
    "Elixir.Range",
    "Elixir.Regex",
    "Elixir.Registry",
    "Elixir.Stream",
    "Elixir.String",
    "Elixir.Supervisor",
    "Elixir.Task",
    "application",
    "application_controller",
    "application_master",
    "array",
    "base64",
    "binary",
    "calendar",
    "code",
    "code_server",
    "crypto",
    "dets",
    "dict",
    "disk_log",
    "edlin",
    "erl_eval",
    "erl_init",
    "erl_internal",
    "erl_lint",
    "erl_parse",
    "erl_prim_loader",
    "erl_scan",
    "erl_tracer",
    "erlang",
    "error_handler",
    "error_logger",
    "erts_code_purger",
    "erts_internal",
    "ets",
    "file",
    "file_server",
    "filelib",
    "filename",
    "gb_sets",
    "gb_trees",
    "gen",
    "gen_event",
    "gen_server",
    "gen_statem",
    "gen_tcp",
    "gen_udp",
    "group",
    "heart",
    "inet",
    "init",
    "io",
    "io_lib",
    "io_lib_format",
    "kernel",
    "lists",
    "logger",
    "maps",
    "math",
    "orddict",
    "ordsets",
    "os",
    "persistent_term",
    "prim_file",
    "prim_inet",
    "proc_lib",
    "proplists",
    "queue",
    "rand",
    "re",
    "sets",
    "string",
    "supervisor",
    "timer",
    "unicode",
];

/// Modules that only their beginning tells.
const FAMILIES: [&str; 10] = [
    "logger_",
    "erts_",
    "prim_",
    "inet_",
    "user_",
    "ssl_",
    "unicode_",
    "io_lib_",
    "otp_",
    "raw_file_",
];

#[cfg(test)]
mod tests {
    #[test]
    fn modules_are_sorted() {
        assert!(super::MODULES.is_sorted());
    }
}
