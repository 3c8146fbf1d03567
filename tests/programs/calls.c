/* Three calls of very different cost, one a line: where the weight of `caller` lies is known. */
#include <time.h>

static volatile unsigned sink;

__attribute__((noinline)) static void work(unsigned rounds) {
  for (unsigned i = 0; i < rounds; i++) sink += i * i;
}

__attribute__((noinline)) static void caller(void) {
  work(80000);
  work(20000);
  work(1);
}

int main(void) {
  clock_t end = clock() + CLOCKS_PER_SEC;
  while (clock() < end) caller();
  return 0;
}
