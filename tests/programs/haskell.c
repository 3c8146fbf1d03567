/* Names as GHC writes them. With -DGHC it has a name of its runtime, too, without which they may be C's. */
#include <time.h>

static volatile unsigned sink;

__attribute__((noinline)) void Main_zdwzlzpzvzg_info(void) {
  for (unsigned i = 0; i < 100000; i++) sink += i;
}

#ifdef GHC
__attribute__((noinline)) void stg_upd_frame_info(void) { sink++; }
#else
#define stg_upd_frame_info() sink++
#endif

int main(void) {
  clock_t end = clock() + CLOCKS_PER_SEC / 3;
  while (clock() < end) {
    Main_zdwzlzpzvzg_info();
    stg_upd_frame_info();
  }
  return 0;
}
