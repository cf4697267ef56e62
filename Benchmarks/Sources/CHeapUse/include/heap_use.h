#pragma once
#include <stddef.h>

/// Bytes that this process has from malloc(3) and has not given back: mallinfo(3).
size_t heap_use(void);
