// libnats, the C client of NATS. No target but JetStreamLog imports this module.
#include <nats/nats.h>
