#include "esp_err.h"
void esp_restart(void) __attribute__((noreturn));
