// libsecret, the client library of the Secret Service. No target but DesktopKeyring imports this module.
//
// The flags of libsecret's pkg-config file contain -pthread, about which SwiftPM warns in every build. So these are
// the parts of <libsecret/secret.h> by their place beside GLib's headers.
#define __SECRET_INSIDE_HEADER__
#include <libsecret-1/libsecret/secret-collection.h>
#include <libsecret-1/libsecret/secret-item.h>
#include <libsecret-1/libsecret/secret-service.h>
#undef __SECRET_INSIDE_HEADER__

// The attributes of an item. The attribute "vault" belongs to SecretServiceStore, whose searches must not find a key.
static inline const SecretSchema *clibsecret_unlock_key_schema(void) {
  static const SecretSchema schema = {
    "datavault.unlock-key", SECRET_SCHEMA_NONE,
    {
      { "application", SECRET_SCHEMA_ATTRIBUTE_STRING }, { "home", SECRET_SCHEMA_ATTRIBUTE_STRING },
      { "store", SECRET_SCHEMA_ATTRIBUTE_STRING }, { "unlocks", SECRET_SCHEMA_ATTRIBUTE_STRING },
    },
  };
  return &schema;
}

// Swift does not import macros that call.
static inline GType clibsecret_service_type(void) { return SECRET_TYPE_SERVICE; }
static inline gboolean clibsecret_is_locked(const GError *error) {
  return g_error_matches(error, SECRET_ERROR, SECRET_ERROR_IS_LOCKED);
}
static inline gboolean clibsecret_is_cancelled(const GError *error) {
  return g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}
