/// What a sealed page is part of; the first byte of its additional data.
///
/// Database and log share one role and one key, so that a checkpoint may copy sealed pages.
enum Role: UInt8 {
  case page = 1
  case journal = 2
  /// Blocks of temporary files, each file under a random key of its own.
  case temporary = 3
}
