// The same work so often, about a millisecond each: rounds [N]. All of it is in `busy`, however fast the machine is.
// Build: gcc -O1 -g rounds.c -o rounds
#include <stdlib.h>
static volatile unsigned long sink;
// Each product waits for the one before, which takes the same few cycles on all machines; counting in memory does not.
__attribute__((noinline)) void busy(void) {
    unsigned long x = sink;
    for (int i = 0; i < 750000; i++) x = x * 6364136223846793005ul + 1;
    sink = x;
}
int main(int count, char **words) {
    for (int i = count > 1 ? atoi(words[1]) : 0; i > 0; i--) busy();
    return 0;
}
