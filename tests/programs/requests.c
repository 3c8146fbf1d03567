/* Requests on two threads, of which some take a slow way. Prints thread, number and milliseconds of each. The last one of each thread
   has no end, and between requests there is other work. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

static void work(double ms) {
  double end = seconds(CLOCK_THREAD_CPUTIME_ID) + ms * 1e-3;
  while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
    ;
}

__attribute__((noinline)) void begin_request(long number) { __asm__ volatile("" ::"r"(number)); }
__attribute__((noinline)) void end_request(long number) { __asm__ volatile("" ::"r"(number)); }
__attribute__((noinline)) void quick_way(void) { work(4); __asm__ volatile(""); }
__attribute__((noinline)) void slow_way(void) { work(60); __asm__ volatile(""); }
__attribute__((noinline)) void other_work(void) { work(4); __asm__ volatile(""); }

static void *serve(void *first) {
  for (long at = 0; at < 20; at++) {
    long number = (long)first + at;
    begin_request(number);
    double begin = seconds(CLOCK_MONOTONIC);
    if (at % 10 == 7) slow_way();
    else quick_way();
    double ms = (seconds(CLOCK_MONOTONIC) - begin) * 1e3;
    end_request(number);
    printf("%d %ld %f\n", gettid(), number, ms);
    other_work();
  }
  begin_request(-1);
  other_work();
  return NULL;
}

int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, serve, (void *)100);
  serve((void *)0);
  pthread_join(other, NULL);
  return 0;
}
