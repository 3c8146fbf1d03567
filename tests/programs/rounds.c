// The same work so often, about a millisecond each: rounds [N]. All of it is in `busy`, however fast the machine is.
// Build: gcc -O1 -g rounds.c -o rounds
#include <stdlib.h>
static volatile unsigned long sink;
__attribute__((noinline)) void busy(void) { for (int i = 0; i < 500000; i++) sink++; }
int main(int count, char **words) {
    for (int i = count > 1 ? atoi(words[1]) : 0; i > 0; i--) busy();
    return 0;
}
