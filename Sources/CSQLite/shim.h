// The system's own SQLite, unpatched: the VFS below it is built against this header.
#include <sqlite3.h>
