#ifndef RELEASED_MEMORY_H
#define RELEASED_MEMORY_H

#include <stddef.h>

/// What has become of the mappings that this program asked to lock into memory.
struct released_memory {
  /// Given back with nothing but zeros in them.
  size_t wiped;
  /// Given back with something in them.
  size_t unwiped;
  /// Not given back yet.
  size_t held;
  /// Asked for when there was no room to remember more: the other counts are worth nothing then.
  size_t forgotten;
};

/// The counts so far.
struct released_memory released_memory_counts(void);

#endif
