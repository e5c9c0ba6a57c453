/* What the sketch needs of Arduino, on a computer: time is the number of samples that were read. */
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern uint32_t milliseconds;

inline uint32_t millis()
{
    return milliseconds;
}

inline void delay(uint32_t)
{
    exit(1);
}

struct Port {
    void begin(uint32_t) {}
    void println(const char *text) { printf("%.1f s %s\n", milliseconds / 1000.0, text); }
};
extern Port Serial;
