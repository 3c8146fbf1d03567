// Sorts, half of the time in a function NAME of its own: sorts ROUNDS.
// Build: gcc -O1 -g -DNAME=one sorts.c -o sorts
#include <stdlib.h>

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

__attribute__((noinline)) unsigned NAME(int *values, int count, unsigned seed) {
  for (int round = 0; round < 60; round++)
    for (int i = 0; i < count; i++) values[i] = seed = seed * 1103515245 + 12345;
  return seed;
}

int main(int count, char **words) {
  enum { COUNT = 100000 };
  int *values = malloc(COUNT * sizeof *values);
  unsigned seed = 1;
  for (int round = count > 1 ? atoi(words[1]) : 1; round > 0; round--) {
    seed = NAME(values, COUNT, seed);
    for (int i = 0; i < COUNT; i++) values[i] >>= 8;
    qsort(values, COUNT, sizeof *values, compare);
  }
  return seed == 7;
}
