// A program for aarch64 whose samples tests make up; `aarch64.elf` is what clang 14 made of it:
// clang --target=aarch64-linux-gnu -O2 -g -gdwarf-4 -ffreestanding -nostdlib -static -fuse-ld=lld -Wl,--build-id \
//   -fdebug-prefix-map=$PWD=/src -o aarch64.elf aarch64.c    (clang 14)
typedef unsigned int u32;
static u32 table[4096];
static inline u32 mix(u32 x) {
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ (x << 5);
}
__attribute__((noinline)) u32 spin(int len, u32 s) {
    for (int i = 0; i < 20000; i++) {
        s = mix(s);
        int k = (s ^ i) % len;
        table[k] = table[k] / 7 + i;
    }
    return s;
}
__attribute__((noinline)) double roots(double a, int n) {
    double sum = 0;
    for (int i = 1; i < n; i++)
        sum += a / i;
    return sum;
}
__attribute__((noinline)) int choose(int what) {
    switch (what % 6) {
    case 0: return (int)spin(3, what);
    case 1: return what * 7;
    case 2: return what / 3;
    case 3: return what - 11;
    default: return 2;
    }
}
void _start(void) {
    u32 s = 1;
    double d = 0;
    for (int i = 0; i < 1500; i++) {
        s = spin(4096 - (i & 1), s);
        d += roots(s, 5000);
        s += choose(6 * i + 1 + i % 5);
    }
    table[0] = s + (u32)d;
    for (;;) __asm__ volatile("nop");
}
