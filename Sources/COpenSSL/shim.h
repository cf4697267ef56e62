// The parts of OpenSSL 3's libcrypto that VaultCrypto calls. No other target imports this module.
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
