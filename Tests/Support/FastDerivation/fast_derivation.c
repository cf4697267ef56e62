// In front of OpenSSL in the commands that tests start: the 300,000 iterations of a vault's password become 300. They
// were a third of the suite's processor time. Only commands with it open such vaults. Other counts stay.
// scripts/run-tests builds it, and Program.commandEnvironment loads it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <openssl/core.h>
#include <openssl/types.h>
#include <stdlib.h>
#include <string.h>

enum { VAULT_ITERATIONS = 300000, PARAMETER_LIMIT = 16 };

int EVP_KDF_derive(
    EVP_KDF_CTX *context, unsigned char *key, size_t size, const OSSL_PARAM parameters[]) {
  int (*derive)(EVP_KDF_CTX *, unsigned char *, size_t, const OSSL_PARAM[]) =
      dlsym(RTLD_NEXT, "EVP_KDF_derive");
  OSSL_PARAM changed[PARAMETER_LIMIT];
  unsigned int few = VAULT_ITERATIONS / 1000;
  size_t count = 0;
  do {
    if (count == PARAMETER_LIMIT) abort();
    changed[count] = parameters[count];
    unsigned int iterations = 0;
    if (parameters[count].key && !strcmp(parameters[count].key, "iter") &&
        parameters[count].data_size == sizeof iterations) {
      memcpy(&iterations, parameters[count].data, sizeof iterations);
      if (iterations == VAULT_ITERATIONS) changed[count].data = &few;
    }
  } while (parameters[count++].key);
  return derive(context, key, size, changed);
}
