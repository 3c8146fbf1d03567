/* A name as a compiler writes it (-DFUNCTION=NAME). With -DRUNTIME=NAME it has a name of that compiler's runtime, too. */
#include <time.h>

static volatile unsigned sink;

__attribute__((noinline)) void FUNCTION(void) {
  for (unsigned i = 0; i < 100000; i++) sink += i;
}

#ifdef RUNTIME
__attribute__((noinline)) void RUNTIME(void) { sink++; }
#else
#define RUNTIME() sink++
#endif

int main(void) {
  clock_t end = clock() + CLOCKS_PER_SEC / 3;
  while (clock() < end) {
    FUNCTION();
    RUNTIME();
  }
  return 0;
}
