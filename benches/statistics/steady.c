// Five functions in no order: a program that does the same all the time. steady SECONDS
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define F __attribute__((noinline)) static void

static unsigned seed = 1;
static volatile double sum;
static volatile unsigned sink;

static unsigned chance(void) { return (seed = seed * 1664525u + 1013904223u) >> 16; }

F divide(void) {
  double x = 1;
  for (int i = 1; i < 3000; i++) x = x / 1.0001 + i;
  sum = x;
}

F hash(void) {
  unsigned h = 0;
  for (int i = 0; i < 4500; i++) h = h * 31 + i;
  sink = h;
}

F copy(void) {
  static char a[65536], b[65536];
  memcpy(a, b, sizeof a);
  sink = a[5];
}

F sort(void) {
  static int v[60];
  for (int i = 0; i < 60; i++) v[i] = chance();
  for (int i = 1; i < 60; i++) {
    int key = v[i], j = i;
    for (; j > 0 && v[j - 1] > key; j--) v[j] = v[j - 1];
    v[j] = key;
  }
  sink = v[3];
}

F walk(void) {
  static int next[1 << 16];
  int at = 0;
  for (int i = 0; i < 3000; i++) at = (next[at] + i * 97) & 65535;
  sink = at;
}

int main(int count, char **words) {
  void (*all[])(void) = {divide, hash, copy, sort, walk};
  double seconds = count > 1 ? atof(words[1]) : 1;
  clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
  while (clock() < end)
    for (int i = 0; i < 200; i++) all[chance() % 5]();
  return 0;
}
