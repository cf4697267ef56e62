#pragma once
#include <stddef.h>

/// The bytes that this process has allocated with malloc(3) and not freed: mallinfo(3).
size_t heap_use(void);
