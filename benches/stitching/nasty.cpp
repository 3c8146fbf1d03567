// Stacks that are hard to complete: callers with equal frames, told apart only by what lies behind the recorded part.
//
//   nasty fast      4 callers x 2 outer functions, chosen at random for each recursion of 80 frames
//   nasty slow      the same, chosen every 20 ms
//   nasty bias      one caller works only deep, another only shallow, in turn
//   nasty biaslong  100 ms of one deep call, then 100 ms of shallow calls by another caller
//   nasty equal     100 ms of calls that work only deep by one caller, then 100 ms of calls that work only shallow by
//                   another; arguments, registers and frames are equal
//   nasty tree      random expression trees, six operators with frames of 64 to 320 bytes, two entry functions
#include <chrono>
#include <cstdint>
#include <cstring>

using Clock = std::chrono::steady_clock;
static double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }
static uint64_t state = 88172645463325252ull;
static uint64_t random64() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
volatile uint64_t sink;

__attribute__((noinline)) static void work(int n) {
    uint64_t x = state;
    for (int i = 0; i < n; i++) x = x * 6364136223846793005ull + 1442695040888963407ull;
    sink = x;
}

// 80 frames of some 256 bytes; works everywhere, or only beyond or only before a depth.
__attribute__((noinline)) static int down(int depth, int low, int high) {
    volatile char room[208];
    room[depth & 127] = (char)depth;
    if (depth >= low && depth < high) work(400);
    int below = depth < 79 && depth + 1 < high + 80 ? down(depth + 1, low, high) : 0;
    return below + room[depth & 127];
}

#define CALLER(name) __attribute__((noinline)) static int name(int low, int high) { \
    volatile char room[256]; room[low & 127] = 1; int r = down(0, low, high); return r + room[low & 127]; }
CALLER(caller_a)
CALLER(caller_b)
CALLER(caller_c)
CALLER(caller_d)
#define OUTER(name) __attribute__((noinline)) static int name(int which, int low, int high) { \
    volatile char room[512]; room[which] = 1; int r; \
    switch (which) { case 0: r = caller_a(low, high); break; case 1: r = caller_b(low, high); break; \
        case 2: r = caller_c(low, high); break; default: r = caller_d(low, high); } \
    return r + room[which]; }
OUTER(outer_x)
OUTER(outer_y)

static void chosen(double seconds, double every) {
    double end = now() + seconds, next = 0;
    uint64_t choice = 0;
    while (double t = now()) {
        if (t > end) break;
        if (t >= next) choice = random64() >> 20, next = t + every;
        sink = choice & 4 ? outer_x(choice & 3, 0, 80) : outer_y(choice & 3, 0, 80);
    }
}

// A deep stack that works long at its end.
__attribute__((noinline)) static int hold(int depth, double until, int low) {
    volatile char room[208];
    room[depth & 127] = (char)depth;
    if (depth < low) return hold(depth + 1, until, low) + room[depth & 127];
    while (now() < until) work(2000);
    return room[depth & 127];
}
#define HOLDER(name) __attribute__((noinline)) static int name(double until, int low) { \
    volatile char room[256]; room[low & 127] = 1; int r = hold(0, until, low); return r + room[low & 127]; }
HOLDER(deep_caller)
HOLDER(shallow_caller)

static void bias(double seconds) {
    double end = now() + seconds;
    while (now() < end) {
        sink = outer_x(0, 60, 80);
        sink = outer_y(1, 0, 20);
    }
}
static void biaslong(double seconds) {
    double end = now() + seconds;
    while (now() < end) {
        sink = deep_caller(now() + 0.1, 70);
        double until = now() + 0.1;
        while (now() < until) sink = shallow_caller(now() + 0.001, 5);
    }
}
// The same arguments for both: when to work is decided by a global.
static volatile int works_from, works_to;
__attribute__((noinline)) static int equal_down(int depth) {
    volatile char room[208];
    room[depth & 127] = (char)depth;
    if (depth >= works_from && depth < works_to) work(400);
    int below = depth < 79 ? equal_down(depth + 1) : 0;
    return below + room[depth & 127];
}
#define EQUAL(name) __attribute__((noinline)) static int name(int zero) { \
    volatile char room[256]; room[zero & 127] = 1; int r = equal_down(zero); return r + room[zero & 127]; }
EQUAL(equal_deep)
EQUAL(equal_shallow)
static void equal(double seconds) {
    double end = now() + seconds;
    while (now() < end) {
        double until = now() + 0.1;
        works_from = 40, works_to = 80;
        while (now() < until) sink = equal_deep(0);
        until = now() + 0.1;
        works_from = 0, works_to = 20;
        while (now() < until) sink = equal_shallow(0);
    }
}

static int node(int depth);
#define OPERATOR(name, bytes) __attribute__((noinline)) static int name(int depth) { \
    volatile char room[bytes]; room[depth & 31] = 1; int l = node(depth - 1); work(30); \
    int r = random64() % 3 ? node(depth - 1) : 1; return l + r + room[depth & 31]; }
OPERATOR(op_add, 64)
OPERATOR(op_sub, 96)
OPERATOR(op_mul, 128)
OPERATOR(op_div, 192)
OPERATOR(op_mod, 256)
OPERATOR(op_pow, 320)
static int budget;
static int node(int depth) {
    if (depth <= 0 || --budget < 0) { work(60); return 1; }
    switch (random64() % 6) {
    case 0: return op_add(depth) + 1; case 1: return op_sub(depth) + 2; case 2: return op_mul(depth) + 3;
    case 3: return op_div(depth) + 4; case 4: return op_mod(depth) + 5; default: return op_pow(depth) + 6;
    }
}
#define ENTRY(name) __attribute__((noinline)) static int name(int depth) { \
    volatile char room[128]; room[depth & 31] = 1; return node(depth) + room[depth & 31]; }
ENTRY(entry_one)
ENTRY(entry_two)
static void tree(double seconds) {
    double end = now() + seconds;
    while (now() < end) {
        budget = 20000;
        int depth = 20 + random64() % 120;
        sink = random64() & 1 ? entry_one(depth) : entry_two(depth);
    }
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "fast";
    double seconds = 6;
    if (!strcmp(what, "slow")) chosen(seconds, 0.02);
    else if (!strcmp(what, "bias")) bias(seconds);
    else if (!strcmp(what, "biaslong")) biaslong(seconds);
    else if (!strcmp(what, "equal")) equal(seconds);
    else if (!strcmp(what, "tree")) tree(seconds);
    else chosen(seconds, 0);
    return 0;
}
