// The interface of libsealedsuite.so. It seals every database of a process under one fixed key, so that a test suite
// that knows nothing of keys runs on the sealed VFS.
#ifndef SEALEDSUITE_H
#define SEALEDSUITE_H

#include <sqlite3.h>

// Makes the sealed VFS the default, or makes it the default again: sqlite3_shutdown() and sqlite3_initialize() restore
// "unix". Returns a result code.
int sealedsuite_install(void);

// The calls that a test program uses in place of SQLite's own. A VFS that it registers goes below a sealed one of the
// same name, and a search returns the lower VFS, as if none were sealed.
int sealedsuite_vfs_register(sqlite3_vfs *vfs, int is_default);
int sealedsuite_vfs_unregister(sqlite3_vfs *vfs);
sqlite3_vfs *sealedsuite_vfs_find(const char *name);

// In SealedSuite.swift. Integers are result codes.
int sealedsuite_swift_install(void);
int sealedsuite_swift_register(const char *path, const char *base, int sets_reserve);
void sealedsuite_swift_forget(const char *path);
void sealedsuite_swift_forget_base(const char *base);

#endif
