/* Callers that chains of frame pointers lack: of code that keeps no frames, in the midst of a stack, and of what a signal interrupts. */
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

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigaction(SIGALRM, &action, 0);
  struct itimerval timer = {{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &timer, 0);
  starter(1500000000);
  memset(&timer, 0, sizeof timer);
  setitimer(ITIMER_REAL, &timer, 0);
  static int numbers[60000];
  for (int i = 0; i < 60000; i++) numbers[i] = rand();
  qsort(numbers, 60000, sizeof *numbers, compare);
  return 0;
}
