// Works below 20 000 bytes of stack, more than a small copy of it has: deep.
// Build: gcc -O1 -g deep.c -o deep
#include <alloca.h>
#include <string.h>
static volatile unsigned long sink;
__attribute__((noinline)) void busy(void) { for (int i = 0; i < 300000000; i++) sink++; }
__attribute__((noinline)) void below(void) {
    volatile char *room = alloca(20000);
    memset((void *)room, 1, 20000);
    busy();
    sink += room[7];
}
int main(void) { below(); return 0; }
