// Starts threads one after the other, each of which works for a while: brief THREADS ROUNDS [FIRST]. Prints the CPU time of all.
// The first thread works for so many rounds before that.
// Build: gcc -O1 -g -pthread brief.c -o brief
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
static volatile unsigned long sum;
static void *in_thread(void *rounds) { for (long i = 0; i < (long)rounds; i++) sum += i; return 0; }
int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 1000, rounds = argc > 2 ? atol(argv[2]) : 100000;
    in_thread((void *)(argc > 3 ? atol(argv[3]) : 0));
    for (long i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, in_thread, (void *)rounds)) return 1;
        pthread_join(thread, 0);
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("cpu %f\n", used.ru_utime.tv_sec + used.ru_utime.tv_usec / 1e6 + used.ru_stime.tv_sec + used.ru_stime.tv_usec / 1e6);
}
