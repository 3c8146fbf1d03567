/* One task works alone, then two beside each other, then one again; without libc, so that all frames are here. */
#define CALL(n, a, b, c, d) ({ long r; register long r10 __asm__("r10") = (long)(d); \
    __asm__ volatile("syscall" : "=a"(r) : "a"((long)(n)), "D"((long)(a)), "S"((long)(b)), "d"((long)(c)), "r"(r10) \
        : "rcx", "r11", "memory"); r; })
enum { EXIT = 60, FORK = 57, WAIT4 = 61, PRCTL = 157, SCHED_SETAFFINITY = 203, CLOCK_GETTIME = 228, SET_NAME = 15, PROCESS_CPUTIME = 2 };

volatile unsigned long sink;

static unsigned long used(void) {
    long t[2];
    CALL(CLOCK_GETTIME, PROCESS_CPUTIME, t, 0, 0);
    return t[0] * 1000 + t[1] / 1000000;
}

__attribute__((noinline)) void work(unsigned long ms) {
    unsigned long end = used() + ms;
    while (used() < end) for (int i = 0; i < 20000; i++) sink += i;
}

__attribute__((noinline)) void alone(unsigned long ms) { work(ms); sink++; }
__attribute__((noinline)) void beside(unsigned long ms) { work(ms); sink++; }

__attribute__((noinline)) void run(void) {
    unsigned long cpus[2] = { 1, 2 };
    CALL(SCHED_SETAFFINITY, 0, 8, &cpus[0], 0);
    alone(60);
    if (CALL(FORK, 0, 0, 0, 0) == 0) {
        CALL(PRCTL, SET_NAME, "second", 0, 0);
        beside(40);
        CALL(EXIT, 0, 0, 0, 0);
    }
    CALL(SCHED_SETAFFINITY, 0, 8, &cpus[1], 0);
    beside(60);
    CALL(WAIT4, -1, 0, 0, 0);
    alone(30);
}

void _start(void) { run(); CALL(EXIT, 0, 0, 0, 0); }
