// What the load generator needs and Swift's Glibc module lacks: epoll(7), and OpenSSL's TLS.
#include <openssl/ssl.h>
#include <sys/epoll.h>
