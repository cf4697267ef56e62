// Replaces the C library's mlock(2) and munmap(2) in the program that it is linked into, in any
// build:
// it sees the memory that the kernel gets back, without help from the code under test.

#define _GNU_SOURCE
#include "released_memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

enum { capacity = 1 << 16 };

static struct {
  const unsigned char *start;
  size_t length;
} mappings[capacity];
static size_t mapping_count;
static struct released_memory counts;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

struct released_memory released_memory_counts(void) {
  pthread_mutex_lock(&mutex);
  struct released_memory result = counts;
  result.held = mapping_count;
  pthread_mutex_unlock(&mutex);
  return result;
}

int mlock(const void *start, size_t length) {
  int (*next)(const void *, size_t) = dlsym(RTLD_NEXT, "mlock");
  pthread_mutex_lock(&mutex);
  if (mapping_count < capacity) {
    mappings[mapping_count].start = start;
    mappings[mapping_count++].length = length;
  } else {
    counts.forgotten++;
  }
  pthread_mutex_unlock(&mutex);
  return next(start, length);
}

static void look(size_t index) {
  const volatile unsigned char *bytes = mappings[index].start;
  unsigned char all = 0;
  for (size_t offset = 0; offset < mappings[index].length; offset++) all |= bytes[offset];
  if (all) {
    counts.unwiped++;
  } else {
    counts.wiped++;
  }
  mappings[index] = mappings[--mapping_count];
}

int munmap(void *start, size_t length) {
  int (*next)(void *, size_t) = dlsym(RTLD_NEXT, "munmap");
  pthread_mutex_lock(&mutex);
  for (size_t index = 0; index < mapping_count; index++) {
    if (mappings[index].start == start) {
      look(index);
      break;
    }
  }
  pthread_mutex_unlock(&mutex);
  return next(start, length);
}
