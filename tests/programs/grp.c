// Two functions that take turns: one touches new pages, the other only computes. Prints what getrusage counted.
//   grp ROUNDS PAGES MICROSECONDS
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

static volatile unsigned long sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

__attribute__((noinline)) void faulter(char *area, long pages) {
  for (long i = 0; i < pages; i++) area[i * 4096] = 1;
  madvise(area, pages * 4096, MADV_DONTNEED);
}

__attribute__((noinline)) void burner(unsigned long turns) {
  for (unsigned long i = 0; i < turns; i++) sink += i * i;
}

int main(int argc, char **argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 5000, pages = argc > 2 ? atol(argv[2]) : 10;
  double us = argc > 3 ? atof(argv[3]) : 50;
  char *area = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // How many turns take so long here.
  unsigned long turns = 1 << 22;
  double from = now();
  burner(turns);
  turns = (unsigned long)(turns * us * 1e-6 / (now() - from));
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  for (long round = 0; round < rounds; round++) {
    faulter(area, pages);
    burner(turns);
  }
  getrusage(RUSAGE_SELF, &after);
  printf("faults %ld\n", after.ru_minflt - before.ru_minflt);
  return 0;
}
