/* The address sanitizer of a host build: bytes of the arena that a kernel must not touch. */
#ifndef MCUD_SANITIZER_H
#define MCUD_SANITIZER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define UNSANITIZED __attribute__((noinline, no_sanitize("address", "undefined")))

static inline bool sanitizer_guard(const uint8_t *bytes, uint32_t count, bool poison)
{
    if (poison) {
        __asan_poison_memory_region(bytes, count);
    } else {
        __asan_unpoison_memory_region(bytes, count);
    }
    return true;
}
#else
#define UNSANITIZED __attribute__((noinline))

static inline bool sanitizer_guard(const uint8_t *bytes, uint32_t count, bool poison)
{
    (void)bytes;
    (void)count;
    (void)poison;
    return false;
}
#endif

#endif
