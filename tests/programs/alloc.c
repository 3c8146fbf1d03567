// Allocates known numbers of bytes in known places: alloc [N] [THREADS] [DIVISOR]. Prints what glibc was asked for.
// DIVISOR allocates that much less often, but for the large blocks.
// Build: gcc -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread alloc.c -o alloc
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define SITE __attribute__((noinline))
static void *kept[2000], *volatile sink;
static long total, blocks, freed;
static void *use(void *p, long size) { sink = p; __atomic_add_fetch(&total, size, __ATOMIC_RELAXED); __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED); return p; }
static void drop(void *p) { sink = p; free(sink); freed++; }
SITE void *site_small(void) { return use(malloc(24), 24); }
SITE void *site_big(void) { return use(malloc(1 << 20), 1 << 20); }
SITE void *site_calloc(void) { return use(calloc(10, 100), 1000); }
SITE void *site_realloc(void *p, long size) { return use(realloc(p, size), size); }
SITE void *site_posix(void) { void *p; if (posix_memalign(&p, 64, 512)) abort(); return use(p, 512); }
SITE void *site_aligned(void) { return use(aligned_alloc(64, 256), 256); }
static void *many(void *n) { for (long i = 0; i < (long)n; i++) { void *p = site_small(); sink = p; free(sink); } return 0; }
int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 20000;
    int threads = argc > 2 ? atoi(argv[2]) : 0, divisor = argc > 3 ? atoi(argv[3]) : 1, k = 0;
    pthread_t started[16];
    for (long i = 0; i < n; i++) drop(site_small());
    void *big[20];
    for (int i = 0; i < 20; i++) { big[i] = site_big(); if (i >= 5) drop(big[i]); }
    for (int i = 0; i < 5; i++) kept[k++] = big[i];
    for (int i = 0; i < 2000 / divisor; i++) { void *p = site_calloc(); if (i % 2) kept[k++] = p; else drop(p); }
    for (int i = 0; i < 200 / divisor; i++) { void *p = 0; for (long size = 16; size <= 4096; size *= 2) p = site_realloc(p, size); drop(p); }
    for (int i = 0; i < 200 / divisor; i++) drop(site_posix());
    for (int i = 0; i < 200 / divisor; i++) drop(site_aligned());
    for (int i = 0; i < threads; i++) pthread_create(&started[i], 0, many, (void *)n);
    for (int i = 0; i < threads; i++) pthread_join(started[i], 0);
    char text[100];
    int len = snprintf(text, sizeof text, "bytes %ld\nblocks %ld\nlive_bytes %ld\nlive_blocks %d\n", total, blocks, 5L * (1 << 20) + 1000L * (k - 5), k);
    _exit(write(1, text, len) != len); // printf would allocate, and exit could free
}
