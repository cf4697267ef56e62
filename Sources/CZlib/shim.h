// zlib, for the compressed bodies of requests. No target but MessagingServer imports this module.
#include <zlib.h>

// Swift does not import macros that call a function with the size of a struct.
static inline int czlib_inflate_init(z_stream *stream) { return inflateInit2(stream, 15 + 32); }
