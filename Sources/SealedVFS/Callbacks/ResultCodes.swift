internal import CSQLite

// SQLite's extended result codes, which the C header makes with macros that Swift does not import:
// <https://sqlite.org/rescode.html>.

let SQLITE_IOERR_READ = SQLITE_IOERR | (1 << 8)
let SQLITE_IOERR_SHORT_READ = SQLITE_IOERR | (2 << 8)
let SQLITE_IOERR_WRITE = SQLITE_IOERR | (3 << 8)
let SQLITE_IOERR_LOCK = SQLITE_IOERR | (15 << 8)
/// Bytes that are not what was written: what SQLite's own checksum VFS answers.
let SQLITE_IOERR_DATA = SQLITE_IOERR | (32 << 8)
let SQLITE_READONLY_DBMOVED = SQLITE_READONLY | (4 << 8)
let SQLITE_OK_SYMLINK = SQLITE_OK | (2 << 8)
