// Memory that is handed out once, at rising addresses: perf orders equal branches of call trees by the addresses of its nodes,
// and with an ordinary allocator these depend on what its libraries have freed before.
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { ROOM = 1 << 30 };
static char *base;
static size_t used;

static void *take(size_t size, size_t align) {
  if (!base) {
    void *room = mmap(0, (size_t)ROOM * 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return 0;
    base = room;
  }
  if (align < 16) align = 16;
  for (;;) {
    size_t old = __atomic_load_n(&used, __ATOMIC_RELAXED);
    size_t at = (old + 16 + align - 1) / align * align;
    if (size > (size_t)ROOM * 16 - at) return 0;
    if (!__atomic_compare_exchange_n(&used, &old, at + size, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
    memcpy(base + at - 8, &size, 8);
    return base + at;
  }
}

void *malloc(size_t size) { return take(size, 16); }
void *calloc(size_t count, size_t size) { return size && count > SIZE_MAX / size ? 0 : take(count * size, 16); }
void free(void *at) { (void)at; }
void *realloc(void *at, size_t size) {
  size_t old = 0;
  if (at) memcpy(&old, (char *)at - 8, 8);
  void *new = take(size, 16);
  if (new && at) memcpy(new, at, old < size ? old : size);
  return new;
}
void *memalign(size_t align, size_t size) { return take(size, align); }
void *aligned_alloc(size_t align, size_t size) { return take(size, align); }
int posix_memalign(void **to, size_t align, size_t size) { return (*to = take(size, align)) ? 0 : 12; }
size_t malloc_usable_size(void *at) {
  size_t size = 0;
  if (at) memcpy(&size, (char *)at - 8, 8);
  return size;
}
