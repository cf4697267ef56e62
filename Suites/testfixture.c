// Linked into SQLite's testfixture: loads libsealedsuite.so when SQLite initializes, and passes it the VFSes that the
// tests register. Without SEALEDSUITE_LIBRARY in the environment, testfixture runs unsealed.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct sqlite3_vfs sqlite3_vfs;

// The linker renames the calls of the tests (-Wl,--wrap); SQLite's own calls stay as they are.
int __real_sqlite3_vfs_register(sqlite3_vfs *, int);
int __real_sqlite3_vfs_unregister(sqlite3_vfs *);
sqlite3_vfs *__real_sqlite3_vfs_find(const char *);

static int (*install)(void);
static int (*vfs_register)(sqlite3_vfs *, int) = __real_sqlite3_vfs_register;
static int (*vfs_unregister)(sqlite3_vfs *) = __real_sqlite3_vfs_unregister;
static sqlite3_vfs *(*vfs_find)(const char *) = __real_sqlite3_vfs_find;

static void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (found) return found;
  fprintf(stderr, "testfixture: %s\n", dlerror());
  abort();
}

// SQLITE_EXTRA_INIT: SQLite calls it at the end of each initialization.
int sealedsuite_extra_init(const char *unused) {
  static int is_loaded;
  const char *name = getenv("SEALEDSUITE_LIBRARY");
  (void)unused;
  if (!name || !*name) return 0;
  if (!is_loaded) {
    is_loaded = 1;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      fprintf(stderr, "testfixture: %s\n", dlerror());
      abort();
    }
    install = symbol(library, "sealedsuite_install");
    vfs_register = symbol(library, "sealedsuite_vfs_register");
    vfs_unregister = symbol(library, "sealedsuite_vfs_unregister");
    vfs_find = symbol(library, "sealedsuite_vfs_find");
  }
  return install();
}

int __wrap_sqlite3_vfs_register(sqlite3_vfs *vfs, int is_default) { return vfs_register(vfs, is_default); }

int __wrap_sqlite3_vfs_unregister(sqlite3_vfs *vfs) { return vfs_unregister(vfs); }

sqlite3_vfs *__wrap_sqlite3_vfs_find(const char *name) { return vfs_find(name); }
