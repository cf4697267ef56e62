// GLib's D-Bus client, GDBus. No target but SecretServiceStore imports this module.
#include <gio/gio.h>

// Swift does not import macros that cast.
static inline const GVariantType *cgio_byte_type(void) { return G_VARIANT_TYPE_BYTE; }
static inline const GVariantType *cgio_text_entry_type(void) { return G_VARIANT_TYPE("{ss}"); }
static inline const GVariantType *cgio_property_entry_type(void) { return G_VARIANT_TYPE("{sv}"); }
