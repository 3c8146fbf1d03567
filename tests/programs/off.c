// Threads that wait in known places for known times: off [BURN_MS] [DIVISOR]. Prints what each place took, and each thread on
// a processor, in seconds. DIVISOR waits that much less often.
// Build: gcc -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread off.c -o off
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define SITE __attribute__((noinline))
static double now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static double sleep_s, lock_s, read_s, poll_s, hold_s, join_s, burn_wall[3], burn_cpu[3];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int pipe_fds[2], burn_ms = 300, divisor = 1;
static pid_t tids[9];
static double cpus[9];
// Functions of glibc have no frame: who calls them is not on stacks that the kernel walks, but the caller of these is.
SITE void nap(long us) { struct timespec t = {us / 1000000, us % 1000000 * 1000}; nanosleep(&t, 0); }
SITE void take(void) { pthread_mutex_lock(&mutex); }
SITE void get(void) { char c; if (read(pipe_fds[0], &c, 1) != 1) abort(); }
SITE void look(void) { poll(0, 0, 15); }
SITE void await(pthread_t thread) { pthread_join(thread, 0); }
#define TIMED(sum, what) do { double at = now(CLOCK_MONOTONIC); what; sum += now(CLOCK_MONOTONIC) - at; } while (0)
SITE void site_sleep(void) { for (int i = 0; i < 50 / divisor; i++) TIMED(sleep_s, nap(10000)); }
SITE void site_hold(void) { TIMED(hold_s, nap(10000)); }
SITE void hold(void) { for (int i = 0; i < 20 / divisor; i++) { take(); site_hold(); pthread_mutex_unlock(&mutex); nap(2000); } }
SITE void site_lock(void) { TIMED(lock_s, take()); }
SITE void lock(void) { for (int i = 0; i < 8 / divisor; i++) { site_lock(); pthread_mutex_unlock(&mutex); nap(15000); } }
SITE void site_read(void) { for (int i = 0; i < 40 / divisor; i++) TIMED(read_s, get()); }
SITE void site_write(void) { for (int i = 0; i < 40 / divisor; i++) { nap(10000); if (write(pipe_fds[1], "x", 1) != 1) abort(); } }
SITE void site_poll(void) { for (int i = 0; i < 20 / divisor; i++) TIMED(poll_s, look()); }
SITE double spin(double seconds) { double x = 1, end = now(CLOCK_THREAD_CPUTIME_ID) + seconds; do for (int i = 0; i < 1000; i++) x = x * 1.0000001 + 1e-9; while (now(CLOCK_THREAD_CPUTIME_ID) < end); return x; }
SITE void site_burn(long n) { double at = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID); spin(burn_ms * 1e-3); burn_wall[n] = now(CLOCK_MONOTONIC) - at; burn_cpu[n] = now(CLOCK_THREAD_CPUTIME_ID) - cpu; }
static void *run(void *what) {
    void (*sites[])(void) = {site_sleep, hold, lock, site_read, site_write, site_poll};
    long n = (long)what;
    if (n < 6) sites[n](); else site_burn(n - 6);
    tids[n] = gettid();
    cpus[n] = now(CLOCK_THREAD_CPUTIME_ID);
    return 0;
}
SITE void site_join(pthread_t thread) { TIMED(join_s, await(thread)); }
int main(int argc, char **argv) {
    pthread_t threads[9];
    if (argc > 1) burn_ms = atoi(argv[1]);
    if (argc > 2) divisor = atoi(argv[2]);
    if (pipe(pipe_fds)) return 1;
    for (long i = 0; i < 9; i++) pthread_create(&threads[i], 0, run, (void *)i);
    for (int i = 0; i < 9; i++) site_join(threads[i]);
    double wall = 0, cpu = 0;
    for (int i = 0; i < 3; i++) wall += burn_wall[i], cpu += burn_cpu[i];
    printf("site_sleep %.6f\nsite_lock %.6f\nsite_read %.6f\nsite_hold %.6f\nsite_poll %.6f\nsite_join %.6f\n", sleep_s, lock_s, read_s, hold_s, poll_s, join_s);
    printf("burn_runnable %.6f\nburn_cpu %.6f\n", wall - cpu, cpu);
    printf("pid %d\n", getpid());
    for (int i = 0; i < 9; i++) printf("cpu_%d %.6f\n", tids[i], cpus[i]);
    return 0;
}
