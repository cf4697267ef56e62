// MIT Kerberos' GSSAPI (RFC 2743, RFC 2744). No target but NegotiateAuthentication imports this module.
//
// The flags of its pkg-config file contain -isystem, which SwiftPM does not accept. The headers and the library also lie
// in the compiler's own paths.
#include <gssapi/gssapi.h>
#include <gssapi/gssapi_ext.h>
#include <stddef.h>

// Object identifiers, whose variables in the library Swift cannot use safely.
static inline gss_OID cgssapi_spnego(void) {
  static gss_OID_desc oid = { 6, "\x2b\x06\x01\x05\x05\x02" };  // 1.3.6.1.5.5.2, RFC 4178
  return &oid;
}
static inline gss_OID cgssapi_kerberos(void) {
  static gss_OID_desc oid = { 9, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x02" };  // 1.2.840.113554.1.2.2, RFC 4121
  return &oid;
}

// The name of a service of a host: "HTTP@host" (RFC 2743, 4.1).
static inline OM_uint32 cgssapi_import_service(OM_uint32 *minor, const char *text, size_t length, gss_name_t *name) {
  gss_buffer_desc buffer = { length, (void *)text };
  return gss_import_name(minor, &buffer, GSS_C_NT_HOSTBASED_SERVICE, name);
}

// The client's credentials, with the seconds that they are valid: those of a ticket cache, or of the default one for NULL.
static inline OM_uint32 cgssapi_acquire(OM_uint32 *minor, gss_OID mechanism, const char *cache,
                                        gss_cred_id_t *credential, OM_uint32 *lifetime) {
  gss_OID_set_desc mechanisms = { 1, mechanism };
  gss_key_value_element_desc element = { "ccache", cache };
  gss_key_value_set_desc store = { 1, &element };
  return gss_acquire_cred_from(minor, GSS_C_NO_NAME, GSS_C_INDEFINITE, &mechanisms, GSS_C_INITIATE,
                               cache ? &store : GSS_C_NO_CRED_STORE, credential, NULL, lifetime);
}

// SPNEGO then offers Kerberos alone, and no mechanism of a plug-in.
static inline OM_uint32 cgssapi_restrict(OM_uint32 *minor, gss_cred_id_t credential) {
  gss_OID_set_desc mechanisms = { 1, cgssapi_kerberos() };
  return gss_set_neg_mechs(minor, credential, &mechanisms);
}

// One round: mutual authentication, no delegation.
static inline OM_uint32 cgssapi_step(OM_uint32 *minor, gss_cred_id_t credential, gss_ctx_id_t *context, gss_name_t name,
                                     const void *token, size_t length, gss_buffer_t output, OM_uint32 *flags) {
  gss_buffer_desc input = { length, (void *)token };
  return gss_init_sec_context(minor, credential, context, name, cgssapi_spnego(), GSS_C_MUTUAL_FLAG, 0,
                              GSS_C_NO_CHANNEL_BINDINGS, token ? &input : GSS_C_NO_BUFFER, NULL, output, flags, NULL);
}

// The next text of a status; another one follows if `more` is not 0.
static inline OM_uint32 cgssapi_display(OM_uint32 *minor, OM_uint32 status, int kind, gss_OID mechanism,
                                        OM_uint32 *more, gss_buffer_t text) {
  return gss_display_status(minor, status, kind, mechanism, more, text);
}

// Swift does not import macros that cast or call.
static inline int cgssapi_failed(OM_uint32 major) { return GSS_ERROR(major) != 0; }
static inline int cgssapi_is_continued(OM_uint32 major) { return (major & GSS_S_CONTINUE_NEEDED) != 0; }
static inline OM_uint32 cgssapi_routine_error(OM_uint32 major) { return GSS_ROUTINE_ERROR(major); }
static inline OM_uint32 cgssapi_supplementary_errors(OM_uint32 major) {
  return major & (GSS_S_DUPLICATE_TOKEN | GSS_S_OLD_TOKEN | GSS_S_UNSEQ_TOKEN | GSS_S_GAP_TOKEN);
}
enum {
  cgssapi_no_credential = GSS_S_NO_CRED,
  cgssapi_credentials_expired = GSS_S_CREDENTIALS_EXPIRED,
  cgssapi_defective_token = GSS_S_DEFECTIVE_TOKEN,
  cgssapi_bad_signature = GSS_S_BAD_SIG,
  cgssapi_failure = GSS_S_FAILURE,
};
