// Works until a signal comes, then cleans up for 0.4 s and ends with 41 and the number of signals: server. Makes the file `ready`.
// Build: gcc -O1 -g server.c -o server
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile sig_atomic_t signals;
static volatile unsigned long sink;
static void on(int signal) { (void)signal; signals++; }
static double used(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) void serve(void) { while (!signals) sink++; sink++; }
__attribute__((noinline)) void clean_up(void) {
    for (double end = used() + 0.4; used() < end;)
        for (int i = 0; i < 1000; i++) sink++;
}
int main(void) {
    signal(SIGINT, on);
    signal(SIGTERM, on);
    signal(SIGHUP, on);
    fclose(fopen("ready", "w"));
    serve();
    clean_up();
    exit(41 + signals);
}
