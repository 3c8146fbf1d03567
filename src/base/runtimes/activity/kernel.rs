//! Linux.

use super::Activity;

/// What calls on descriptors do, where nothing tells more.
const FILES: &str = "file input and output";

pub(super) const ROWS: &[Activity] = &[
    Activity::new(
        0,
        "idle",
        r"^(default_idle\w*|cpuidle_\w+|intel_idle\w*|acpi_idle\w*|acpi_safe_halt|pv_native_safe_halt|
            native_safe_halt|mwait_idle\w*|cpu_startup_entry|do_idle|poll_idle|arch_cpu_idle|cpu_idle_\w+|
            haltpoll\w*)",
    ),
    Activity::new(
        0,
        "profiling itself",
        r"^(perf_(event|output|swevent|trace|pmu|mmap|adjust|install|ctx|callchain|prepare_sample|tp_event|
            poll|read|ioctl)\w*|__perf_\w+|__x64_sys_perf_event_open|uprobe_\w+|handle_swbp|kprobe_\w+|
            trace_call_bpf)",
    ),
    Activity::new(
        2,
        "page faults",
        r"^(asm_exc_page_fault|exc_page_fault|do_user_addr_fault|do_page_fault|el0_da|el0_ia|do_mem_abort|
            el1_abort)",
    ),
    Activity::new(
        2,
        "memory mapping",
        r"^(__(x64|arm64|se|do)_sys_(mmap|munmap|brk|madvise|mprotect|mremap|mlock\w*|msync|membarrier|
            mincore)|ksys_mmap_pgoff|__vm_munmap)$",
    ),
    // What a descriptor is, functions behind the call know.
    Activity::new(
        2,
        "network",
        r"^(sock_(read_iter|write_iter|close|splice_\w+|sendpage|ioctl|poll)|splice_to_socket|
            io_(send|recv|sendmsg|recvmsg|accept|connect)(_\w+)?)$",
    )
    .kind_of(FILES),
    Activity::new(
        2,
        "pipes",
        r"^((anon_|fifo_)?pipe_(read|write|release|poll|ioctl)|__(x64|arm64|se|do)_sys_pipe2?|do_pipe2)$",
    )
    .kind_of(FILES),
    Activity::new(
        2,
        "terminals",
        r"^((redirected_)?tty_(read|write|release|ioctl)|file_tty_write\w*)$",
    )
    .kind_of(FILES),
    Activity::new(
        2,
        FILES,
        r"^(__(x64|arm64|se|do)_sys_(read|write|pread64|pwrite64|readv|writev|preadv2?|pwritev2?|open|
            openat2?|close|fsync|fdatasync|lseek|stat|fstat|lstat|newfstat|newfstatat|newstat|newlstat|statx|
            getdents(64)?|readlink(at)?|access|faccessat2?|unlink(at)?|rename(at2?)?|mkdir(at)?|rmdir|ftruncate|
            fallocate|sendfile(64)?|splice|copy_file_range|chmod|fchmod(at)?|utimensat|dup[23]?|fcntl|
            ioctl|getcwd|chdir|symlink\w*|link\w*|flock|io_uring_enter|inotify\w*)|ksys_(read|write|pread64|
            pwrite64))$",
    ),
    Activity::new(
        2,
        "network",
        r"^__(x64|arm64|se|do)_sys_(sendto|recvfrom|sendmsg|recvmsg|sendmmsg|recvmmsg|socket|connect|accept4?|
            bind|listen|shutdown|getsockopt|setsockopt|socketpair)$|^(net_rx_action|__napi_poll|ip_rcv)$",
    ),
    Activity::new(
        2,
        "waiting",
        r"^__(x64|arm64|se|do)_sys_(futex\w*|epoll_p?wait2?|poll|ppoll|select|pselect6|nanosleep|
            clock_nanosleep|wait4|waitid|rt_sigtimedwait|rt_sigsuspend|pause|semop|semtimedop|epoll_ctl|
            eventfd2?)$|^(do_futex|do_wait|kernel_wait4|kernel_waitid)$",
    ),
    Activity::new(
        1,
        "waiting by spinning",
        r"^(__(x64|arm64|se|do)_sys_sched_yield)$",
    ),
    Activity::new(
        2,
        "kernel lock contention",
        r"^(native_queued_spin_lock_slowpath|queued_spin_lock_slowpath|osq_lock|mutex_spin_on_owner|
            rwsem_spin_on_owner|rwsem_down_(read|write)_slowpath|queued_(read|write)_lock_slowpath|
            __pv_queued_spin_lock_slowpath|mutex_lock_slowpath)$",
    ),
    Activity::new(
        2,
        "processes and threads",
        r"^__(x64|arm64|se|do)_sys_(execve(at)?|clone3?|fork|vfork|exit|exit_group|kill|tgkill|rt_sig\w+|
            set_robust_list|sched_\w+|prctl|arch_prctl|setpriority|unshare|setns|getpid|gettid|getrusage|
            set_tid_address|rseq|prlimit64|setrlimit)$|^(do_exit|do_group_exit|ret_from_fork|ret_from_fork_asm|
            schedule_tail|begin_new_exec|load_elf_binary|wake_up_new_task)$",
    ),
    Activity::new(
        2,
        "interrupts",
        r"^(asm_sysvec_\w+|asm_common_interrupt|common_interrupt|sysvec_\w+|irq_exit_rcu|__do_softirq|
            handle_softirqs|asm_exc_nmi|exc_nmi|el[01]t?_(64_)?irq\w*|gic_handle_irq|do_interrupt_handler|
            irqentry_\w+|exit_to_user_mode\w*|syscall_exit_to_user_mode\w*)$",
    ),
    Activity::new(
        2,
        "time",
        r"^__(x64|arm64|se|do)_sys_(clock_get\w+|gettimeofday|time|times|timer\w*)$",
    ),
    Activity::new(
        3,
        "system calls, other",
        r"^(do_syscall_64|entry_SYSCALL_64\w*|entry_SYSCALL_64_after_hwframe|el0_svc|__(x64|arm64|se|
            do)_sys_\w+|syscall_return_via_sysret|entry_SYSRETQ\w*)$",
    ),
    Activity::new(
        3,
        "kernel threads",
        r"^(kthread|worker_thread|kswapd|rcu_\w+|ksoftirqd|run_ksoftirqd|smpboot_thread_fn|migration|
            process_one_work)",
    ),
    Activity::new(3, "kernel, other", r"."),
];
