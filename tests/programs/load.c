// Works for so many milliseconds of its own CPU time: load WORK [MORE]; without end where WORK is 0.
// With -DMORE=N the function `more` does N times as much.
// Build: gcc -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls load.c -o load
#include <stdlib.h>
#include <time.h>
#define SITE __attribute__((noinline))
#ifndef MORE
#define MORE 1
#endif
static volatile unsigned long sink;
static double used(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
SITE void work(double until) { while (used() < until) for (int i = 0; i < 20000; i++) sink += i; }
SITE void more(double until) { while (used() < until) for (int i = 0; i < 20000; i++) sink ^= i; }
int main(int count, char **words) {
    double first = count > 1 ? atof(words[1]) : 100, second = count > 2 ? atof(words[2]) : first;
    do {
        double now = used();
        work(first > 0 ? now + first : now + 10);
        now = used();
        more(first > 0 ? now + second * MORE : now + 10);
    } while (first == 0);
    return 0;
}
