// Functions that call each other, for 32-bit processes: with and without frame pointers, through the C library, in a handler.
#include <signal.h>
#include <stdlib.h>

static volatile unsigned sink;

__attribute__((noinline)) static unsigned leaf(unsigned x) {
    for (int i = 0; i < 2000; i++) x = x * 1103515245u + 12345u;
    return x;
}
__attribute__((noinline)) static unsigned middle(unsigned x) { return leaf(x) + leaf(x + 1); }
__attribute__((noinline)) static unsigned outer(unsigned x) { return middle(x) ^ 1u; }
__attribute__((noinline)) static int order(const void *a, const void *b) {
    sink += leaf(*(const unsigned *)a);
    return *(const unsigned *)a < *(const unsigned *)b ? -1 : 1;
}
// Long enough to be met by many samples.
__attribute__((noinline)) static void handler(int number) {
    for (unsigned i = 0; i < 64; i++) sink += outer((unsigned)number + i);
}

int main(void) {
    static unsigned numbers[64];
    signal(SIGUSR1, handler);
    for (unsigned round = 0; round < 250; round++) {
        sink += outer(round);
        for (unsigned i = 0; i < 64; i++) numbers[i] = (i * 37u + round) % 64u;
        qsort(numbers, 64, sizeof *numbers, order);
        raise(SIGUSR1);
    }
    return 0;
}
