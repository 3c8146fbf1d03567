// Touches known numbers of pages in known places: pf. 64 MiB are written, 32 MiB read.
// Build: gcc -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls pf.c -o pf
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#define SITE __attribute__((noinline))
#define PAGE 4096L
static char *map(long pages) {
    char *memory = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
    return memory;
}
SITE void site_write(volatile char *memory, long pages) { for (long i = 0; i < pages; i++) memory[i * PAGE] = 1; }
SITE int site_read(volatile char *memory, long pages) { int sum = 0; for (long i = 0; i < pages; i++) sum += memory[i * PAGE]; return sum; }
SITE void site_nap(void) { struct timespec t = {0, 5000000}; nanosleep(&t, 0); }
int main(void) {
    long written = (64L << 20) / PAGE, read = (32L << 20) / PAGE;
    site_write(map(written), written);
    int sum = site_read(map(read), read);
    for (int i = 0; i < 20; i++) site_nap();
    printf("written %ld\nread %ld\n", written, read);
    return sum;
}
