/* A call that never returns is the last thing that `ends` does: behind it begins another function. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) static unsigned long burn(unsigned long turns) {
  volatile unsigned long sum = 0;
  for (unsigned long i = 0; i < turns; i++) sum += i;
  return sum;
}

__attribute__((noinline, noreturn)) static void stops(void) {
  burn(300000000);
  exit(0);
}

__attribute__((noinline, used)) static void ends(void) { stops(); }

__attribute__((noinline, used)) static void neighbour(void) { __asm__ volatile(""); }

__attribute__((noinline)) static void handler(int number) {
  burn(100000000UL + (unsigned long)number);
}

int main(void) {
  signal(SIGUSR1, handler);
  raise(SIGUSR1);
  ends();
  neighbour();
}
