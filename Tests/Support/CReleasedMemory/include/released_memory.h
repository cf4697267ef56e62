#ifndef RELEASED_MEMORY_H
#define RELEASED_MEMORY_H

#include <stddef.h>

/// The state of the mappings that this program asked to lock into memory.
struct released_memory {
  /// Mappings that were released and contained only zeros.
  size_t wiped;
  /// Mappings that were released and contained other bytes.
  size_t unwiped;
  /// Mappings that have not been released yet.
  size_t held;
  /// Mappings for which there was no room in the table; if there are any, the other counts are
  /// invalid.
  size_t forgotten;
};

/// The counts so far.
struct released_memory released_memory_counts(void);

#endif
