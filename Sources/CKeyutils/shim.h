// libkeyutils: the kernel's keyrings, for DataVault's sessions. No other target imports this module.
#include <keyutils.h>
