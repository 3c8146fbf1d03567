/* Callers that chains of frame pointers lack: of code that keeps no frames, in the midst of a stack, of what a signal interrupts,
   and of assembly. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void work(long rounds) {
  for (long i = 0; i < rounds; i++) sink += i;
}

__attribute__((noinline)) static void busy(long rounds) {
  work(rounds);
  sink++;
}

static void handler(int number) {
  (void)number;
  busy(2000000);
  sink++;
}

__attribute__((noinline)) static void interrupted(long rounds) {
  for (long i = 0; i < rounds; i++) sink ^= i;
  work(1);
}

__attribute__((noinline)) static void starter(long rounds) {
  interrupted(rounds);
  sink++;
}

static int compare(const void *a, const void *b) {
  busy(300);
  return *(const int *)a - *(const int *)b;
}

/* As assembly of C libraries has it: neither a frame nor information about frames. */
__asm__(".text\n.type bare,@function\nbare:\n1: dec %rdi\njnz 1b\nret\n.size bare,.-bare\n");
void bare(unsigned long rounds);

__attribute__((noinline)) static void caller_of_bare(unsigned long rounds) {
  bare(rounds);
  sink++;
}

int main(void) {
  caller_of_bare(300000000);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigaction(SIGALRM, &action, 0);
  struct itimerval timer = {{0, 20000}, {0, 20000}};
  setitimer(ITIMER_REAL, &timer, 0);
  starter(1500000000);
  memset(&timer, 0, sizeof timer);
  setitimer(ITIMER_REAL, &timer, 0);
  static int numbers[60000];
  for (int i = 0; i < 60000; i++) numbers[i] = rand();
  qsort(numbers, 60000, sizeof *numbers, compare);
  return 0;
}
