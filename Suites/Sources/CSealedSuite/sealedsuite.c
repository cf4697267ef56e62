// VFSes that register each database under the test key before the sealed VFS opens it.
//
// Environment:
//   SEALEDSUITE_SETS_RESERVE=1  an empty file shows as empty: the program's SQLite reserves 40 bytes itself, or, with
//                               LD_PRELOAD, sqlite3_open_v2() does, as SealedDatabase
//   SEALEDSUITE_PLAIN_FILES=1   a file that begins with SQLite's own magic is opened without a key
//   SEALEDSUITE_LOG=FILE        appends a line for each plain file that was opened so
//   SEALEDSUITE_COUNTS=1        prints the numbers of databases opened sealed and plain at exit, on standard error
#define _GNU_SOURCE
#include "sealedsuite.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Layer Layer;
// A sealed VFS over one base; the first one is "sealed" over "unix".
struct Layer {
  sqlite3_vfs vfs;       // a copy of "sealed" with another name and base
  sqlite3_vfs *active;   // what SQLite has registered: &vfs, or "sealed" itself
  sqlite3_vfs *base;
  const char *base_name; // what SealedVFS.register(over:) gets
  Layer *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Layer *layers;
static int (*sealed_open)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
static atomic_ulong sealed_count, plain_count;

static int is_set(const char *name) {
  const char *value = getenv(name);
  return value && *value && strcmp(value, "0") != 0;
}

static Layer *layer_above(sqlite3_vfs *base) {
  Layer *layer = layers;
  while (layer && layer->base != base) layer = layer->next;
  return layer;
}

static Layer *layer_of(sqlite3_vfs *active) {
  Layer *layer = layers;
  while (layer && layer->active != active) layer = layer->next;
  return layer;
}

// Whether a file begins with SQLite's magic: a test made it byte by byte. A child reads it, because closing a descriptor
// here would release this process's locks. A call of the base VFS would consume an injected fault.
static int is_plain(const char *path) {
  static const char magic[16] = "SQLite format 3";
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  static volatile int is_equal;
  char bytes[16];
  pthread_mutex_lock(&one);
  is_equal = 0;
  pid_t child = vfork();  // shares the memory, not the descriptors
  if (child == 0) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    is_equal = file >= 0 && read(file, bytes, sizeof bytes) == sizeof bytes && memcmp(bytes, magic, sizeof bytes) == 0;
    _exit(0);
  }
  while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
  int result = is_equal;
  pthread_mutex_unlock(&one);
  return result;
}

static void note_plain(const char *path) {
  const char *name = getenv("SEALEDSUITE_LOG");
  FILE *log = name && *name ? fopen(name, "a") : NULL;
  if (!log) return;
  fprintf(log, "%s\n", path);
  fclose(log);
}

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out_flags) {
  if (path && flags & SQLITE_OPEN_MAIN_DB) {
    pthread_mutex_lock(&mutex);
    Layer *layer = layer_of(vfs);
    pthread_mutex_unlock(&mutex);
    if (layer) {
      if (is_set("SEALEDSUITE_PLAIN_FILES") && is_plain(path)) {
        sealedsuite_swift_forget(path);
        note_plain(path);
        atomic_fetch_add(&plain_count, 1);
      } else {
        int result = sealedsuite_swift_register(path, layer->base_name, is_set("SEALEDSUITE_SETS_RESERVE"));
        if (result != SQLITE_OK) {
          file->pMethods = NULL;
          return result;
        }
        result = sealed_open(vfs, path, file, flags, out_flags);
        if (result == SQLITE_OK) atomic_fetch_add(&sealed_count, 1);
        return result;
      }
    }
  }
  return sealed_open(vfs, path, file, flags, out_flags);
}

__attribute__((destructor)) static void print_counts(void) {
  if (!is_set("SEALEDSUITE_COUNTS")) return;
  fprintf(stderr, "sealedsuite: databases opened sealed: %lu, plain: %lu\n", atomic_load(&sealed_count),
          atomic_load(&plain_count));
}

int sealedsuite_install(void) {
  int result = sealedsuite_swift_install();
  if (result != SQLITE_OK) return result;
  sqlite3_vfs *sealed = sqlite3_vfs_find("sealed");
  sqlite3_vfs *unix_vfs = sqlite3_vfs_find("unix");
  if (!sealed || !unix_vfs) return SQLITE_ERROR;
  pthread_mutex_lock(&mutex);
  if (!layers) {
    // Layer copies rely on this: the sealed VFS finds its base here.
    if (sealed->pAppData != unix_vfs) {
      fprintf(stderr, "sealedsuite: the sealed VFS no longer keeps its base in pAppData\n");
      abort();
    }
    Layer *layer = calloc(1, sizeof *layer);
    if (!layer) abort();
    layer->active = sealed;
    layer->base = unix_vfs;
    layer->base_name = "unix";
    sealed_open = sealed->xOpen;
    sealed->xOpen = open_file;
    layers = layer;
  }
  pthread_mutex_unlock(&mutex);
  return sqlite3_vfs_register(sealed, 1);
}

int sealedsuite_vfs_register(sqlite3_vfs *base, int is_default) {
  if (!layers || layer_of(base)) return sqlite3_vfs_register(base, is_default);
  Layer *layer = layer_above(base);
  if (!layer) {
    layer = calloc(1, sizeof *layer);
    static unsigned count;
    size_t length = strlen(base->zName) + 32;
    char *name = malloc(length);
    if (!layer || !name) abort();
    // A later VFS of the same name must get another one: keys are registered over a name.
    snprintf(name, length, "below-%s-%u", base->zName, ++count);
    Layer *first = layers;
    while (first->next) first = first->next;
    layer->vfs = *first->active;
    layer->vfs.zName = base->zName;
    layer->vfs.pNext = NULL;
    layer->vfs.pAppData = base;
    layer->vfs.mxPathname = base->mxPathname;
    if (layer->vfs.szOsFile < base->szOsFile) layer->vfs.szOsFile = base->szOsFile;
    layer->active = &layer->vfs;
    layer->base = base;
    layer->base_name = base->zName = name;
    pthread_mutex_lock(&mutex);
    layer->next = layers;
    layers = layer;
    pthread_mutex_unlock(&mutex);
  }
  int result = sqlite3_vfs_register(base, 0);
  return result == SQLITE_OK ? sqlite3_vfs_register(layer->active, is_default) : result;
}

int sealedsuite_vfs_unregister(sqlite3_vfs *base) {
  Layer *layer = base ? layer_above(base) : NULL;
  if (!layer) return sqlite3_vfs_unregister(base);
  sqlite3_vfs_unregister(layer->active);
  int result = sqlite3_vfs_unregister(base);
  if (layer->active != &layer->vfs) return result;  // "sealed" can be registered again
  base->zName = layer->vfs.zName;
  sealedsuite_swift_forget_base(layer->base_name);
  pthread_mutex_lock(&mutex);
  for (Layer **link = &layers; *link; link = &(*link)->next) {
    if (*link == layer) {
      *link = layer->next;
      break;
    }
  }
  pthread_mutex_unlock(&mutex);
  return result;  // the layer is not freed: a file can still be open on it
}

sqlite3_vfs *sealedsuite_vfs_find(const char *name) {
  sqlite3_vfs *found = sqlite3_vfs_find(name);
  Layer *layer = found ? layer_of(found) : NULL;
  return layer ? layer->base : found;
}

// With LD_PRELOAD, the first open installs the VFS. Installing it earlier would make sqlite3_config() fail.
// A program that exports its own SQLite, as testfixture does, never gets here.
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void install_once(void) {
  if (sealedsuite_install() == SQLITE_OK) return;
  fprintf(stderr, "sealedsuite: the sealed VFS cannot be installed\n");
  abort();
}

// Reserves the bytes of a new database, as SealedDatabase does before its first write.
static void reserve_bytes(sqlite3 *connection) {
  char *name = NULL;
  int count = 40;
  if (!is_set("SEALEDSUITE_SETS_RESERVE")) return;
  if (sqlite3_file_control(connection, "main", SQLITE_FCNTL_VFSNAME, &name) != SQLITE_OK || !name) return;
  if (strcmp(name, "sealed") == 0) {
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &count);
  }
  sqlite3_free(name);
}

int sqlite3_open_v2(const char *path, sqlite3 **connection, int flags, const char *vfs) {
  int (*next)(const char *, sqlite3 **, int, const char *) = dlsym(RTLD_NEXT, "sqlite3_open_v2");
  pthread_once(&once, install_once);
  int result = next(path, connection, flags, vfs);
  if (result == SQLITE_OK) reserve_bytes(*connection);
  return result;
}

int sqlite3_open(const char *path, sqlite3 **connection) {
  int (*next)(const char *, sqlite3 **) = dlsym(RTLD_NEXT, "sqlite3_open");
  pthread_once(&once, install_once);
  return next(path, connection);
}

int sqlite3_open16(const void *path, sqlite3 **connection) {
  int (*next)(const void *, sqlite3 **) = dlsym(RTLD_NEXT, "sqlite3_open16");
  pthread_once(&once, install_once);
  return next(path, connection);
}
