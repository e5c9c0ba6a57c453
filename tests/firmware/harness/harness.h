/* What a harness may ask for. CBMC (-DCBMC) takes every value that is possible; a fuzzer, or main.c, takes them
 * from its bytes. */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdbool.h>
#include <stdint.h>

/* A number below `limit`, which is above 0. */
uint32_t draw(uint32_t limit);

/* Ends the program where it does not hold; an assertion for CBMC. */
void require(bool holds);

/* One try, with whatever is drawn. */
void harness(void);

#endif
