//! C's library, allocators, threads that spin: what any native object may have in it.

use super::Activity;

pub(super) const ROWS: &[Activity] = &[
    Activity::new(
        1,
        "waiting by spinning",
        r"^(blas_thread_server|exec_blas(?:_async_wait)?$|inner_thread$|gomp_(?:barrier_wait|team_barrier|spin|
            doacross_spin|wait)|do_(?:spin|wait)$|__?kmp_?(?:wait|flag|hyper_barrier|fork_barrier|x86_pause)\w*|
            rayon_core::(?:registry::WorkerThread::wait_until|sleep)|crossbeam_utils::backoff|
            std::hint::spin_loop|core::hint::spin_loop|pthread_spin_lock|__pthread_spin_lock|sched_yield|
            __sched_yield|tbb::.*(?:pause|backoff)|mi_atomic_yield|SpinLock|absl::.*Spin)",
    ),
    Activity::new(
        1,
        "dynamic linking",
        // `check_matching` is a part of glibc's regular expressions.
        r"^(_dl_(start\w*|main|relocate\w*|map_object\w*|lookup_symbol_x|open\w*|fixup\w*|runtime_resolve\w*|
            init\w*|new_object|protect\w*|sysdep_start)|dl_main|do_lookup_x|check_match|elf_machine_rela\w*|
            elf_dynamic_do_\w*|dl_open_worker\w*)$",
    ),
    Activity::new(
        2,
        "allocation",
        r"^(_?_?(libc_)?(malloc|free|calloc|realloc|memalign|aligned_alloc|cfree|posix_memalign)(_consolidate|
            _usable_size)?|_int_(malloc|free|realloc|memalign)\w*|unlink_chunk|sysmalloc|systrim|
            tcache_(?:get|put|init|free|key|thread|dalloc|flush|event|alloc|bin|gc)\w*|alloc_perturb|arena_get\w*|
            _int_new_arena|heap_trim|operator\ (new|delete).*|_Zn[wa]\w+|_Zd[la]\w+|
            __rust_(alloc|dealloc|realloc|alloc_zeroed)|__rdl_\w+|__rg_\w+|alloc::alloc::\w+|_?rjem_\w+|je_\w+|
            _rjem_je_\w+|arena_(?:malloc|dalloc|ralloc|slab|bin|run|chunk)\w*|
            large_(?:malloc|dalloc|palloc)\w*|mi_(?:malloc|free|heap|page|segment|realloc|calloc|zalloc|new|
            bin)\w*|_mi_\w+|tc_(?:malloc|free|new|delete)\w*|tcmalloc::.*|dlmalloc|dlfree|dlrealloc|<?dlmalloc::.*|talc::.*|
            wee_alloc.*|g_(?:try_)?(?:malloc|realloc|free|slice_(?:alloc|free))(?:0|1|0?_n|_sized)?|
            pas_\w+|snmalloc::.*)$",
    ),
    Activity::new(
        2,
        "locks",
        r"^(__?_?(pthread_(mutex|rwlock|cond|spin|once)_\w+)|__lll_\w+|__new_sem_\w+|futex_\w+|__futex\w+|
            <?parking_lot(_core)?::.*|<?std::sys::(?:sync|pal::unix)::(?:mutex|rwlock|condvar|futex).*|
            <?std::sync::(?:mutex|rwlock|condvar|poison|once).*|pthread_(?:mutex|cond|rwlock)_\w+|absl::Mutex.*|
            uv_(?:mutex|cond|sem|rwlock)_\w+)$",
    ),
    Activity::new(
        2,
        "unwinding",
        r"^(_Unwind_\w+|uw_\w+|execute_cfa_program\w*|__gcc_personality\w*|__gxx_personality\w*|
            __cxa_(?:throw|rethrow|begin_catch|end_catch|allocate_exception)|rust_eh_personality|
            _dl_find_object|_dl_iterate_phdr|dl_iterate_phdr|std::panicking::(?:rust_panic|begin_panic|
            default_hook|rust_panic_with_hook)\w*|std::backtrace(?:_rs)?::(?:Backtrace|symbolize|backtrace)\w*)",
    ),
    Activity::new(
        2,
        "encryption",
        r"^((EVP_(Encrypt|Decrypt|Cipher|Seal|Open|PKEY|Sign|Verify|DigestSign|DigestVerify)|AES_|aesni_|RSA_|
            rsa_|rsaz_|ECDSA_|ecdsa_|ECDH_|ecp_nistz|X25519|x25519_|ChaCha20_|Poly1305_|poly1305_|gcm_|CRYPTO_gcm|BN_mod_exp|
            bn_(mul|sqr|mul4x|mulx4x|sqrx?8x|power5|powerx5)_?mont)\w*|aes\w*_(encrypt|decrypt|ctr|gcm)\w*)$",
    ),
    Activity::new(
        2,
        "compression and hashes",
        r"^((?:in|de)flate(?:_(?:fast|slow|stored|rle|huff|table|trees|block|state|medium|quick)\w*|(?:Init|End|
            Reset|Copy|Set|Get|Prime|Params|Bound|Sync|Back)\w*)?$|longest_match\w*$|adler32\w*|crc32\w*|ZSTD_\w+|HUF_\w+|
            FSE_\w+|LZ4_\w+|Brotli\w+|lzma_\w+|BZ2_\w+|sha\d+_\w+|SHA\d+\w*|md5_\w+|EVP_(?:Digest|MD|Q_digest)\w*|
            blake3\w*|<?zlib_rs::.*|<?miniz_oxide::.*|md4\w*)",
    ),
    Activity::new(
        2,
        "regex",
        r"^(<?regex_automata::|<?regex::|<?regex_syntax::|<?aho_corasick::|pcre2?_|re2::|onig|
            hs_scan)|^(re_(?:search|compile|acquire|string|node_set)_\w+|check_matching|sift_states_\w+|transit_state\w*|check_arrival\w*|
            get_subexp\w*|build_trtable|merge_state_\w+|check_subexp_\w+|check_node_accept\w*|
            proceed_next_node|prune_impossible_nodes|regexec|regcomp)$",
    ),
    Activity::new(
        2,
        "linear algebra",
        // `cherry_pick` begins as the product `cher` does.
        r"^(cblas_|[sdcz](ge|sy|tr|gb|he)(mm|mv|rk|r|sv|sm)(_(64_|[A-Za-z]{1,4}|\w*(kernel|thread|copy)\w*|
            (small|beta|driver)\w*))?_?$|[sdcz](axpy|dot|scal|copy|nrm2|swap|asum|rot)(_(k|64_|compute|
            kernel\w*|thread\w*))?_?$|LAPACKE_|[sdcz](getr|getf|potr|gesdd|gesvd|geqr|ormb|ormq|bdsdc|
            lasd|gebr|labrd|larf|lasr|orgb|orgq)\w*|\w+_(HASWELL|SKYLAKEX|ZEN|SANDYBRIDGE|COOPERLAKE|SAPPHIRERAPIDS|NEHALEM|
            PRESCOTT)|gemm_(driver|thread|beta|kernel|small|pack|[io][nt]copy)\w*$|blas_\w+|trsm_\w+|
            trmv_\w+|Eigen::|mkl_)",
    ),
    Activity::new(
        3,
        "memcpy and memset",
        r"^_*(mem(cpy|move|set|pcpy)|bcopy|bzero|wmemset|wmemcpy|wmemmove)(_\w+)?$",
    ),
    Activity::new(
        3,
        "memcmp and memchr",
        r"^_*(mem(cmp|cmpeq|chr|rchr|mem)|bcmp|rawmemchr|wmemcmp|wmemchr)(_\w+)?$",
    ),
    Activity::new(
        3,
        "strings",
        r"^_*(str(len|cmp|ncmp|chr|rchr|str|cpy|ncpy|cat|dup|casecmp|spn|cspn|tok|tol|toul|tod|nlen)|
            wcs\w+)(_\w+)?$|^_*(v?[sf]?n?printf|v?asprintf|v?dprintf|strto\w+)(_fp\w*|_internal|_positional|
            _chk|_l\w*)?$|^(__mpn_\w+|Dragon4\w*|BigInt_\w+)",
    ),
    Activity::new(
        3,
        "sorting",
        r"(^|::)(qsort(_r)?$|msort_with_tmp|__introsort\w*|(quicksort|merge_sort|smallsort|driftsort|ipnsort|
            pdqsort)(\W|$))",
    ),
    Activity::new(
        3,
        "math",
        r"^_*(ieee754_)?(exp|log|pow|sin|cos|tan|atan|sqrt|fmod|floor|ceil|hypot)(2|10|1p|f|l)?(_fma\w*|
            _sse\w*|_avx\w*)?$",
    ),
    Activity::new(
        2,
        "input and output",
        r"^(_IO_\w+|__?GI__?_?IO_\w+|(fwrite|fread|fputs|fflush|fgets|getline|fclose)(_unlocked)?$|
            fopen(64)?$|std::io::(?:Read|
            Write|stdio|buffered)\w*.*|uv_fs_\w+|uv__fs_\w+|node::fs::.*)",
    ),
];
