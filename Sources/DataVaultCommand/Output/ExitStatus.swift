/// How the process ends, after sysexits.h.
enum ExitStatus: Int32 {
  /// The command line is wrong.
  case usage = 64
  /// Input, vault or database is damaged, foreign, plain, or of a newer version.
  case badData = 65
  /// There is no such vault, item or database.
  case absent = 66
  /// The store cannot be reached.
  case unavailable = 69
  /// It exists already, or is secured already.
  case exists = 73
  /// Input or output failed: the disk is full, the pipe is closed.
  case inputOutput = 74
  /// Busy, or backing off: the same command may succeed later.
  case tryLater = 75
  /// Wrong password, locked, no password source, loose permissions.
  case notPermitted = 77
  /// A rule forbids it.
  case policy = 78
}
