// An agent for Java that makes the folders in which perf's own lays its dumps, and writes their name to the file `loaded`.
// Build: gcc -shared -fPIC agent.c -o agent.so; run: java -agentpath:./agent.so -version
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
int Agent_OnLoad(void *machine, char *options, void *reserved) {
    char path[4096];
    const char *parts[] = {"/.debug", "/.debug/jit", "/.debug/jit/java-jit-1"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", getenv("JITDUMPDIR"), parts[i]);
        mkdir(path, 0700);
    }
    FILE *file = fopen("loaded", "w");
    fputs(path, file);
    return fclose(file);
}
