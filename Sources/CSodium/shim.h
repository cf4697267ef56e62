// libsodium. No target but PusherEncryption imports this module.
#include <sodium.h>
