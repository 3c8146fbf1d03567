//! Who pays for stacks of several languages, and what they do.

use std::sync::Arc;

use super::*;
use crate::functions::Basis;
use crate::functions::kinds::OwnRules;
use crate::functions::tally::Tally;
use crate::ids::Idx;
use crate::profile::{EventId, Producer};
use crate::report::testing::ProfileBuilder;

/// What tests say of symbols and files that the builder does not know.
struct Recorded {
    /// By name: who made it.
    made: Vec<(&'static str, Producer)>,
    /// By name of the object: its path.
    paths: Vec<(&'static str, &'static str)>,
    /// The program.
    main: Option<&'static str>,
}

const NODE: Recorded = Recorded {
    made: Vec::new(),
    paths: Vec::new(),
    main: Some("node"),
};

/// Payer and activity of each stack, leaf first.
fn told(recorded: &Recorded, stacks: &[&str]) -> Vec<(String, &'static str)> {
    let profile = profile(recorded, stacks);
    let functions = Functions::of(&profile, &OwnRules::default());
    let mut payers = Payers::new(&profile, &functions);
    let entries = profile.entries.iter();
    let mut steps = Vec::new();
    let told = entries.map(|entry| {
        let frames = profile.stacks.get(entry.stack);
        let Told {
            payer, activity, ..
        } = payers.of(frames);
        // Pictures go the other way, and come to the same.
        payers.steps(frames, &mut steps);
        let is_package = payers.all()[payer].ecosystem.is_some();
        let step = steps[0];
        assert_eq!(
            (step.payer, step.activity),
            (is_package.then_some(payer), activity)
        );
        (payers.all()[payer].label(), payers.activities()[activity])
    });
    told.collect()
}

fn profile(recorded: &Recorded, stacks: &[&str]) -> Profile {
    let mut builder = ProfileBuilder::default();
    for stack in stacks {
        builder.sample("x", stack, 10);
    }
    let mut profile = builder.finish();
    for symbol in &mut profile.symbols {
        let made = recorded.made.iter().find(|(name, _)| *name == symbol.name);
        let is_js = symbol.name.starts_with("JS:").then_some(Producer::V8);
        symbol.producer = made.map(|(_, producer)| *producer).or(is_js);
    }
    for object in &mut profile.objects {
        let path = recorded
            .paths
            .iter()
            .find(|(name, _)| *name == object.short_name);
        if let Some((_, path)) = path {
            object.long_name = (*path).to_owned();
        }
        object.is_jit = object.short_name == "[jit]";
    }
    let main = |name| {
        profile
            .objects
            .iter()
            .position(|object| object.short_name == name)
    };
    let main = recorded.main.and_then(main).map(ObjectId::from_usize);
    for thread in &mut profile.threads {
        thread.main = main;
    }
    profile
}

fn label<'t>(told: &'t [(String, &'static str)]) -> Vec<(&'t str, &'static str)> {
    told.iter()
        .map(|(who, what)| (who.as_str(), *what))
        .collect()
}

#[test]
fn the_innermost_package_pays_and_what_stands_around_it_tells_nothing() {
    let stacks = [
        // The collector runs for terser, in a build by webpack.
        "memcpy@libc.so.6;v8::internal::Scavenger::Process@node;JS:*minify /w/node_modules/terser/m.js:1:2@[jit];JS:*run /w/node_modules/webpack/x.js:3:4@[jit]",
        // What runs now is terser's own code, though JSON.parse called it back.
        "JS:*walk /w/node_modules/terser/m.js:9:2@[jit];v8::internal::JsonParser::Parse@node;JS:^a /w/a.js:1:1@[jit]",
        // node's own scripts and code made by `eval` pay for nothing.
        "Builtins_LoadIC_Megamorphic@node;JS:~stat node:fs:1:2@[jit];JS:*_next38 :7:32@[jit];JS:*go /w/own.js:3:4@[jit]",
        "Builtins_LoadIC@node;JS:~stat node:fs:1:2@[jit]",
        "v8::internal::compiler::Optimize@node;start_thread@libc.so.6",
        // Where nobody called what `eval` made, it is not the engine's.
        "JS:~stat node:fs:1:2@[jit];JS:*_next38 :7:32@[jit];JS:~run node:vm:3:4@[jit]",
        "Builtins_LoadIC@node;JS:* :8:13@[jit];start_thread@libc.so.6",
        // It may tell its file.
        "JS:*hot webpack:///./src/hot.js:8:13@[jit];JS:^a /w/a.js:1:1@[jit]",
        "JS:*clone webpack:///../node_modules/lodash/lodash.js:8:13@[jit];JS:^a /w/a.js:1:1@[jit]",
        "native_queued_spin_lock_slowpath@[kernel.kallsyms];__x64_sys_futex@[kernel.kallsyms]",
        "0x10@",
        // A function without a name called it, and not its caller.
        "v8::internal::JsonParser::Parse@node;Builtins_InterpreterEntryTrampoline@node;JS:^a /w/a.js:1:1@[jit]",
    ];
    let told = told(&NODE, &stacks);
    let expected = [
        ("terser", "GC"),
        ("terser", "optimised code"),
        ("own.js (own)", "inline caches"),
        ("nobody: node: modules", "inline caches"),
        ("nobody: V8", "JIT compile"),
        ("nobody: code made by eval", "interpreter"),
        ("nobody: code made by eval", "inline caches"),
        ("hot.js (own)", "optimised code"),
        ("lodash", "optimised code"),
        ("nobody: the kernel alone", "waiting"),
        ("nobody: unknown", "unknown"),
        ("nobody: unnamed JS", "JSON"),
    ];
    assert_eq!(label(&told), expected);
}

#[test]
fn of_a_library_under_a_cut_stack_somebody_is_the_caller() {
    let stacks = ["malloc@libc.so.6", "malloc@libc.so.6;work@app"];
    let mut profile = profile(
        &Recorded {
            main: Some("app"),
            ..NODE
        },
        &stacks,
    );
    let entries = profile.entries.iter();
    let frames = entries.map(|entry| profile.stacks.get(entry.stack).to_vec());
    let frames: Vec<Vec<FrameId>> = frames.collect();
    let ends = [StackEnd::Complete, StackEnd::DumpTooShort, StackEnd::NoRule];
    let both = frames
        .iter()
        .flat_map(|frames| ends.map(|end| (frames, end)));
    let pushed = both.map(|(frames, end)| (profile.stacks.push(frames, end), frames[0]));
    let pushed: Vec<_> = pushed.collect();
    let functions = Functions::of(&profile, &OwnRules::default());
    let mut payers = Payers::new(&profile, &functions);
    let told = pushed.into_iter().map(|(stack, leaf)| {
        let payer = payers.of_stack(stack, leaf).payer;
        payers.all()[payer].label()
    });
    let told: Vec<String> = told.collect();
    let (alone, cut, own) = ("nobody: C library", "nobody: stack cut", "app (own)");
    assert_eq!(told, [alone, cut, cut, own, own, own]);
}

#[test]
fn ranks_decide_and_then_what_is_nearest_the_root() {
    let stacks = [
        // An allocation that faults is an allocation.
        "clear_page@[kernel.kallsyms];exc_page_fault@[kernel.kallsyms];malloc@libc.so.6;work@app",
        // The other way round: the fault came first.
        "malloc@libc.so.6;exc_page_fault@[kernel.kallsyms];work@app",
        // memcpy counts for the running frame alone.
        "memcpy@libc.so.6;work@app",
        "__memcmp_evex_movbe@libc.so.6;work@app",
        "work@app;memcpy@libc.so.6",
        // With what is inlined into it.
        "round(inlined)@libm.so.6;__sin_fma@libm.so.6;work@app",
        // What is known of a descriptor tells more than the call.
        "tcp_sendmsg@[kernel.kallsyms];sock_write_iter@[kernel.kallsyms];__x64_sys_write@[kernel.kallsyms];work@app",
        "anon_pipe_read@[kernel.kallsyms];ksys_read@[kernel.kallsyms];__x64_sys_read@[kernel.kallsyms];work@app",
        "ext4_file_read_iter@[kernel.kallsyms];__x64_sys_read@[kernel.kallsyms];work@app",
        // Whatever is around it.
        "perf_event_mmap@[kernel.kallsyms];__x64_sys_mmap@[kernel.kallsyms];malloc@libc.so.6;work@app",
        "work@app;main@app",
    ];
    let app = Recorded {
        main: Some("app"),
        ..NODE
    };
    let told = told(&app, &stacks);
    let activities: Vec<&str> = told.iter().map(|(_, what)| *what).collect();
    let expected = [
        "allocation",
        "page faults",
        "memcpy and memset",
        "memcmp and memchr",
        "code",
        "math",
        "network",
        "pipes",
        "file input and output",
        "profiling itself",
        "code",
    ];
    assert_eq!(activities, expected);
    assert!(told.iter().all(|(who, _)| who == "app (own)"), "{told:?}");
}

#[test]
fn files_of_packages_and_crates_of_programs_pay() {
    let python = Recorded {
        made: vec![("py::load:/home/me/job.py", Producer::CPython)],
        paths: vec![
            (
                "blas.so",
                "/v/lib/python3.13/site-packages/numpy.libs/blas.so",
            ),
            ("_json.so", "/usr/lib/python3.13/lib-dynload/_json.so"),
        ],
        main: Some("python3.13"),
    };
    let stacks = [
        "dgemm_kernel_HASWELL@blas.so;py::load:/home/me/job.py@[jit]",
        "blas_thread_server@blas.so;start_thread@libc.so.6",
        // Newer ones have the loop of the caller that waits in the function that shares out the work.
        "exec_blas@blas.so;py::load:/home/me/job.py@[jit]",
        "dgemm_kernel_HASWELL@blas.so;exec_blas@blas.so;py::load:/home/me/job.py@[jit]",
        "scan_once_unicode@_json.so;_PyEval_EvalFrameDefault@python3.13;py::load:/home/me/job.py@[jit]",
        "gc_collect_main@python3.13",
        // Compiling a script and running it is one function, and so is making what may be garbage one day.
        "long_add@python3.13;_PyEval_EvalFrameDefault@python3.13;run_mod@python3.13",
        "pymalloc_alloc@python3.13;gc_alloc@python3.13;PyList_New@python3.13",
    ];
    let told = told(&python, &stacks);
    let expected = [
        ("numpy", "linear algebra"),
        ("numpy", "waiting by spinning"),
        ("numpy", "waiting by spinning"),
        ("numpy", "linear algebra"),
        ("job.py (own)", "JSON"),
        ("nobody: CPython", "GC"),
        ("nobody: CPython", "numbers"),
        ("nobody: CPython", "allocation"),
    ];
    assert_eq!(label(&told), expected);

    let rust = Recorded {
        main: Some("my-app"),
        ..NODE
    };
    let stacks = [
        "core::str::from_utf8@my-app;serde_json::de::parse@my-app;my_app::run@my-app",
        "<alloc::vec::Vec<T> as core::ops::Drop>::drop@my-app;my_app::run@my-app",
        // A part of Rust's library where that calls it, a package where the program does.
        "gimli::read@my-app;std::backtrace::print@my-app;my_app::run@my-app",
        "gimli::read@my-app;my_app::run@my-app",
        "deflate@libz.so.1.3;png::encode@my-app",
    ];
    let told = self::told(&rust, &stacks);
    let payers: Vec<&str> = told.iter().map(|(who, _)| who.as_str()).collect();
    let expected = [
        "serde_json",
        "my_app (own)",
        "my_app (own)",
        "gimli",
        "libz.so",
    ];
    assert_eq!(payers, expected);
}

#[test]
fn memory_that_is_no_file_pays_for_nothing() {
    let dotnet = Recorded {
        made: vec![("App::Run", Producer::DotNet)],
        paths: vec![("doublemapper", "/memfd:doublemapper (deleted)")],
        main: Some("dotnet"),
    };
    let stacks = ["0x10@doublemapper;main@app.so", "App::Run@doublemapper"];
    let told = told(&dotnet, &stacks);
    let expected = [
        ("app.so", "unknown"),
        (".NET classes (own)", "compiled code"),
    ];
    assert_eq!(label(&told), expected);
}

#[test]
fn packages_of_a_go_program_are_own_where_their_files_are() {
    let go = Recorded {
        main: Some("app"),
        ..NODE
    };
    let stacks = [
        "example.com/acme/app/inner.Work@app;main.main@app;runtime.main@app",
        "github.com/foo/bar/sub.Spin@app;main.main@app;runtime.main@app",
    ];
    let told = paid_by(profile(&go, &stacks), |name| match name {
        name if name.starts_with("github.com") => (Origin::Dependency, None),
        name if name.starts_with("runtime.") => (Origin::Std, None),
        _ => (Origin::Own, None),
    });
    assert_eq!(told, ["example.com/acme (own)", "github.com/foo/bar"]);
}

/// Who pays for each stack, if functions lie in files of these origins and packages.
fn paid_by(
    mut profile: Profile,
    author: impl Fn(&str) -> (Origin, Option<&'static str>),
) -> Vec<String> {
    for symbol in &mut profile.symbols {
        let (origin, package) = author(&symbol.name);
        (symbol.origin, symbol.package) = (origin, package.map(Arc::from));
    }
    let functions = Functions::of(&profile, &OwnRules::default());
    let mut payers = Payers::new(&profile, &functions);
    let entries = profile.entries.iter();
    let told = entries.map(|entry| {
        let payer = payers.of(profile.stacks.get(entry.stack)).payer;
        payers.all()[payer].label()
    });
    told.collect()
}

#[test]
fn c_in_a_go_program_is_paid_by_whose_file_it_is_in() {
    let go = Recorded {
        main: Some("app"),
        ..NODE
    };
    let stacks = [
        "cspin@app",
        "sqlite3Step@app",
        "memeqbody@app;runtime.main@app",
        "gogo@app",
    ];
    let sqlite = "github.com/mattn/go-sqlite3";
    let told = paid_by(profile(&go, &stacks), |name| match name {
        "sqlite3Step" => (Origin::Dependency, Some(sqlite)),
        _ => (Origin::Own, None),
    });
    let runtime = "nobody: Go runtime";
    assert_eq!(told, ["app (own)", sqlite, runtime, runtime]);
}

#[test]
fn of_a_rust_function_without_namespaces_the_folder_tells_the_crate() {
    let rust = Recorded {
        main: Some("app"),
        ..NODE
    };
    let stacks = [
        "wrapping_add@app;schedule@app;app::main@app",
        "spin@app;app::main@app;std::rt::lang_start@app",
        "ZSTD_compress@app;app::main@app",
    ];
    let told = paid_by(profile(&rust, &stacks), |name| match name {
        "wrapping_add" => (Origin::Std, Some("std")),
        "schedule" => (Origin::Dependency, Some("sha2")),
        "ZSTD_compress" => (Origin::Dependency, Some("zstd_sys")),
        _ => (Origin::Own, None),
    });
    assert_eq!(told, ["sha2", "app (own)", "zstd_sys"]);
}

#[test]
fn what_the_user_calls_own_is_own() {
    let profile = profile(&NODE, &["JS:*m /w/node_modules/terser/m.js:1:2@[jit]"]);
    let rules = OwnRules {
        own: Some(regex::RegexSet::new(["terser"]).expect("valid")),
        not_own: None,
        ..OwnRules::default()
    };
    let functions = Functions::of(&profile, &rules);
    let mut payers = Payers::new(&profile, &functions);
    let payer = payers
        .of(profile.stacks.get(profile.entries[0].stack))
        .payer;
    assert_eq!(payers.all()[payer].ecosystem, Some(Ecosystem::Own));
}

proptest::proptest! {
    #[test]
    fn payments_and_activities_add_up_to_the_total(
        stacks in proptest::collection::vec(
            ("(malloc@libc.so.6|f@app|g@lib.so|v8::internal::Heap::CollectGarbage@node|x@\\[kernel.kallsyms\\]|0x10@)(;(main@app|h@lib.so|read@libc.so.6)){0,3}", 1_u64..1000),
            1..30
        )
    ) {
        let mut builder = ProfileBuilder::default();
        for (stack, weight) in &stacks {
            builder.sample("x", stack, *weight);
        }
        let profile = builder.finish();
        let functions = Functions::of(&profile, &OwnRules::default());
        let tally = Tally::of(&profile, &functions, EventId(0));
        let spending = Spending::of(&profile, &tally, Payers::new(&profile, &functions), Grouping::Programs);
        let total = tally.total;
        let sum = |counts: &mut dyn Iterator<Item = crate::functions::tally::Count>| {
            counts.fold((0, 0), |(period, samples), count| (period + count.period, samples + count.samples))
        };
        let all = (total.period, total.samples);
        proptest::prop_assert_eq!(sum(&mut spending.payments.iter().map(|p| p.count)), all);
        proptest::prop_assert_eq!(sum(&mut spending.activities.iter().map(|a| a.count)), all);
        for payment in &spending.payments {
            let parts = sum(&mut payment.activities.iter().map(|(_, count)| *count));
            proptest::prop_assert_eq!(parts, (payment.count.period, payment.count.samples));
        }
        for activity in &spending.activities {
            let parts = sum(&mut activity.payers.iter().map(|(_, count)| *count));
            proptest::prop_assert_eq!(parts, (activity.count.period, activity.count.samples));
        }
    }
}

#[test]
fn of_a_runtime_without_names_packages_are_own_and_the_runtime_never() {
    let python = Recorded {
        made: Vec::new(),
        paths: vec![("core.so", "/v/lib/python3.11/site-packages/numpy/core.so")],
        main: Some("python3.11"),
    };
    let of = |stacks: &[&str]| {
        let functions = Functions::of(&profile(&python, stacks), &OwnRules::default());
        let own = functions.all.iter().filter(|of| of.kind == Kind::Own);
        let own: Vec<String> = own.map(|of| of.identity.name.name.clone()).collect();
        (functions.basis, own)
    };
    let (basis, own) = of(&["dot@core.so;_PyEval_EvalFrameDefault@python3.11;_start@python3.11"]);
    assert_eq!((basis, own), (Basis::Packages, vec!["dot".to_owned()]));
    let (basis, own) = of(&["_PyEval_EvalFrameDefault@python3.11;_start@python3.11"]);
    assert_eq!((basis, own), (Basis::Name, Vec::new()));
}

/// One automaton says what the patterns say one by one.
#[test]
fn rows_are_those_whose_patterns_fit_one_by_one() {
    const NAMES: [&str; 27] = [
        "",
        "malloc",
        "_int_malloc",
        "xmalloc",
        "__memmove_avx_unaligned_erms",
        "qsort_r",
        "std::__introsort_loop<int*>",
        "mine::qsort",
        "pthread_mutex_lock",
        "clear_page_erms",
        "finish_task_switch.isra.0",
        "unknown_to_the_kernel",
        "v8::internal::StackGuard::HandleGCInterrupts",
        "Builtins_LoadIC_Megamorphic",
        "Runtime_CompileLazy",
        "JS:*f /w/x.js:1:2",
        "_PyEval_EvalFrameDefault",
        "gc_collect_main",
        "Runtime_RegExpExec",
        "sock_write_iter",
        "cranelift_codegen::isa::x64::lower",
        "wasmtime::runtime::vm::instance::Instance::new",
        "ObjectMonitor::enter",
        "G1ParScanThreadState::trim_queue",
        "zend_jit",
        "runtime.mallocgc",
        "operationNewArray",
    ];
    let mut found = 0;
    for scope in Scope::all() {
        let mut caches = FxHashMap::default();
        for name in NAMES {
            let fits = |pattern: &str| {
                let mut regex = regex::bytes::RegexBuilder::new(pattern);
                let regex = regex.unicode(false).ignore_whitespace(true).build();
                regex.expect("a pattern").is_match(name.as_bytes())
            };
            let rows = scope.rows().iter().filter(|row| fits(row.pattern));
            let first = rows.min_by_key(|row| row.rank);
            let expected = first.map(|row| (row.rank, row.name));
            let said = row_of(scope, &mut caches, name);
            assert_eq!(
                said.map(|said| (said.rank, said.name)),
                expected,
                "{scope:?} {name}"
            );
            found += usize::from(expected.is_some());
        }
    }
    assert!(found > 40, "{found}");
}

/// Functions whose names begin as those of another activity do.
#[test]
fn what_is_called_alike_is_not_the_same() {
    use Producer::{HotSpot, Mono, Php, Yjit};
    for (scope, name, expected) in [
        (
            Scope::Runtime(HotSpot),
            "TypeArrayKlass::allocate_common",
            Some("allocation"),
        ),
        (
            Scope::Runtime(HotSpot),
            "InterpreterRuntime::_new",
            Some("allocation"),
        ),
        (
            Scope::Runtime(HotSpot),
            "TypeInstPtr::xmeet_helper",
            Some("JIT compile"),
        ),
        (
            Scope::Runtime(HotSpot),
            "Type::hashcons",
            Some("JIT compile"),
        ),
        (
            Scope::Runtime(Mono),
            "mono_gc_alloc_obj",
            Some("allocation"),
        ),
        (Scope::Runtime(Mono), "mono_gc_collect", Some("GC")),
        (
            Scope::Runtime(Yjit),
            "objspace_xmalloc0",
            Some("allocation"),
        ),
        (
            Scope::Runtime(Php),
            "zend_jit_find_func_helper",
            Some("interpreter"),
        ),
        (
            Scope::Runtime(Php),
            "zend_jit_trace_hot_root",
            Some("JIT compile"),
        ),
        (Scope::Runtime(Php), "zend_jit", Some("JIT compile")),
        (Scope::Native, "check_matching", Some("regex")),
        (Scope::Native, "check_match", Some("dynamic linking")),
        (
            Scope::Native,
            "_dl_relocate_object",
            Some("dynamic linking"),
        ),
        (Scope::Native, "check_matches", None),
        (Scope::Native, "cherry_pick", None),
        (Scope::Native, "scopy_pixels", None),
        (Scope::Native, "gemm_gemstone", None),
        (Scope::Native, "dgemm_kernel_nn", Some("linear algebra")),
        (Scope::Native, "dgemv_n", Some("linear algebra")),
        (Scope::Native, "ddot_k", Some("linear algebra")),
        (Scope::Native, "dscal_", Some("linear algebra")),
        (Scope::Native, "inflate_mesh", None),
        (
            Scope::Native,
            "inflate_fast",
            Some("compression and hashes"),
        ),
        (
            Scope::Native,
            "inflateInit2_",
            Some("compression and hashes"),
        ),
        (Scope::Native, "EVP_CipherUpdate", Some("encryption")),
        (Scope::Native, "aesni_gcm_encrypt", Some("encryption")),
        (Scope::Native, "EVP_DigestSignFinal", Some("encryption")),
        (
            Scope::Native,
            "EVP_DigestUpdate",
            Some("compression and hashes"),
        ),
        (
            Scope::Native,
            "<parking_lot::raw_mutex::RawMutex as lock_api::mutex::RawMutex>::lock",
            Some("locks"),
        ),
        (Scope::Native, "printf_stats", None),
        (Scope::Native, "__vfprintf_internal", Some("strings")),
        (Scope::Native, "__printf_fp_l", Some("strings")),
        (Scope::Native, "____strtod_l_internal", Some("strings")),
        (Scope::Native, "getline_total", None),
        (Scope::Native, "fread", Some("input and output")),
        (Scope::Native, "g_free_cells", None),
        (Scope::Native, "g_malloc0_n", Some("allocation")),
        (Scope::Native, "tcache_get", Some("allocation")),
        (Scope::Native, "tcache_lookup", None),
        (Scope::Native, "quicksort_rows", None),
        (
            Scope::Native,
            "core::slice::sort::stable::quicksort::quicksort",
            Some("sorting"),
        ),
        (Scope::OCaml, "mark_slice_darken", Some("GC")),
        (Scope::OCaml, "caml_oldify_one", Some("GC")),
        (Scope::OCaml, "bf_allocate", Some("allocation")),
        (Scope::OCaml, "Hot.fib_510", None),
        (Scope::Haskell, "scavenge_block", Some("GC")),
        (Scope::Haskell, "Main_zdwfib_info", None),
    ] {
        let said = row_of(scope, &mut FxHashMap::default(), name);
        assert_eq!(said.map(|row| row.name), expected, "{scope:?} {name}");
    }
}

#[test]
fn versions_and_copies_of_symbols_do_the_same() {
    for (name, expected) in [
        ("pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock"),
        ("cfree@GLIBC_2.2.5", "cfree"),
        ("pthread_mutex_lock@plt", "pthread_mutex_lock"),
        (
            "__GI___pthread_mutex_unlock_usercnt",
            "__pthread_mutex_unlock_usercnt",
        ),
        ("work.constprop.0", "work"),
    ] {
        assert_eq!(plain(name), expected);
    }
}
