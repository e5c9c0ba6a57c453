/* In the place of libFuzzer: random inputs from a seed, for a number of seconds. Prints their number. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_BYTES = 2048, BETWEEN_LOOKS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Xorshift: state is never 0. */
static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Half of the inputs are uniform bytes, in the others most bytes are small or at an end of their range. */
static size_t make(uint8_t *bytes, uint64_t *state)
{
    const size_t size = next(state) % (MOST_BYTES >> next(state) % 8);
    const uint64_t plain = next(state) % 2;
    for (size_t i = 0; i < size; i++) {
        static const uint8_t ends[] = {0, 1, 2, 3, 4, 8, 0xFE, 0xFF};
        const uint64_t value = next(state);
        bytes[i] = plain != 0 || value >> 62 == 0 ? (uint8_t)(value >> 32) : ends[(value >> 32) % sizeof ends];
    }
    return size;
}

int main(int count, char **words)
{
    static uint8_t bytes[MOST_BYTES];
    const double seconds = count > 1 ? atof(words[1]) : 1.0;
    uint64_t state = 0x9E3779B97F4A7C15u + (count > 2 ? strtoull(words[2], NULL, 10) : 0u);
    uint64_t tried = 0;
    while ((double)clock() < seconds * CLOCKS_PER_SEC) {
        for (int i = 0; i < BETWEEN_LOOKS; i++, tried++) {
            LLVMFuzzerTestOneInput(bytes, make(bytes, &state));
        }
    }
    printf("%" PRIu64 "\n", tried);
    return 0;
}
