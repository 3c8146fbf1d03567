/* Five functions of fixed work; the second argument scales `table` in per cent. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline))
static uint32_t slots[1 << 20];
NOINLINE uint64_t mix(uint64_t n) { uint64_t x = n; for (uint64_t i = 0; i < n; i++) x = (x ^ (x >> 7)) * 0x9e3779b97f4a7c15u; return x; }
NOINLINE uint64_t fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
NOINLINE uint64_t table(uint64_t n) { uint64_t s = 0, x = 1; for (uint64_t i = 0; i < n; i++) { x = x * 6364136223846793005u + 1; s += slots[x >> 44]++; } return s; }
NOINLINE double matrix(unsigned n) { double s = 0; for (unsigned i = 0; i < n; i++) for (unsigned j = 0; j < 600; j++) s += (double)(i ^ j) / (j + 1.5); return s; }
static int order(const void *a, const void *b) { uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b; return (x > y) - (x < y); }
NOINLINE uint32_t sorted(unsigned n) { for (unsigned i = 0; i < n; i++) slots[i] = i * 2654435761u; qsort(slots, n, 4, order); return slots[n / 2]; }
int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 10, percent = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
  uint64_t all = 0;
  for (unsigned r = 0; r < rounds; r++) {
    all += mix(3000000) + fib(27) + table(15000ull * percent) + (uint64_t)matrix(9000) + sorted(60000);
  }
  printf("%llu\n", (unsigned long long)all);
  return 0;
}
