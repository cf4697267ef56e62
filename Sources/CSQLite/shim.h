// The system's own SQLite, unpatched: the VFS below it is built against this header.
// The session extension is in Debian's library.
#define SQLITE_ENABLE_SESSION 1
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include <sqlite3.h>

// What SQLite hands to a loadable extension, without the macros that would send every call through it.
#define SQLITE_CORE 1
#include <sqlite3ext.h>

// Swift does not import variadic functions.
static inline void csqlite_log(int code, const char *message) {
  sqlite3_log(code, "%s", message);
}
