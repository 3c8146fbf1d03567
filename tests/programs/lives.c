/* One process with two lives: works in first_life, runs a copy of itself (./another), works in second_life. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static void work(double seconds)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		for (int i = 0; i < 100000; i++)
			sink += i * sink + 1;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) * 1e-9 < seconds);
	sink++;
}

__attribute__((noinline)) static void first_life(void)
{
	work(0.3);
	sink++;
}

__attribute__((noinline)) static void second_life(void)
{
	work(0.3);
	sink++;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		second_life();
		return 0;
	}
	first_life();
	execl("./another", "another", "again", (char *)NULL);
	perror("./another");
	return 1;
}
