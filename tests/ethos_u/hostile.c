/* Runs damaged command streams in the functional model, for the sanitizers: SEED RUNS [WORDS CONSTANTS ARENA_BYTES].
 *
 * With files: their commands and constants with flipped bits, cut off, or with random bytes as weights. Without: known
 * commands in random order, most of their values small. Prints the number of runs that ended with each code.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcud_npu.h"

enum { CODES = 16, RANDOM_WORDS = 400, RANDOM_BYTES = 700 };

static uint32_t state;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

static uint8_t *content(const char *path, uint32_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        exit(2);
    }
    *size = (uint32_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size);
    if (bytes == NULL || fread(bytes, 1, *size, file) != *size) {
        exit(2);
    }
    fclose(file);
    return bytes;
}

static void flip(uint8_t *bytes, uint32_t size, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bytes[draw(size)] ^= (uint8_t)(1u << draw(8));
    }
}

/* Registers and operations, seldom an unknown one; most values are small, so that operations run. */
static uint32_t random_words(uint32_t *words)
{
    static const uint8_t operations[] = {0x02, 0x02, 0x03, 0x05, 0x06, 0x06, 0x10};
    static const uint8_t small[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x07, 0x09, 0x0A, 0x0B, 0x0C, 0x0F, 0x11,
                                    0x12, 0x13, 0x14, 0x17, 0x18, 0x1A, 0x1B, 0x1C, 0x1F, 0x20, 0x21, 0x22, 0x24,
                                    0x25, 0x26, 0x27, 0x28, 0x29, 0x30, 0x31, 0x80, 0x81, 0x85, 0x89, 0x8A, 0x8B,
                                    0x8C, 0x8F};
    static const uint8_t large[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15,
                                    0x16, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x30, 0x31, 0x32, 0x80, 0x81,
                                    0x82, 0x83, 0x84, 0x85, 0x86};
    uint32_t count = 0;
    while (count + 2u < RANDOM_WORDS) {
        const uint32_t kind = draw(40);
        const uint32_t value = draw(8) == 0u ? draw(65536) : draw(9);
        if (kind == 0u && count > RANDOM_WORDS / 2) {
            words[count++] = operations[draw(sizeof operations)] | draw(10) << 16;
        } else if (kind < 20u) {
            words[count++] = 0x4000u | large[draw(sizeof large)] | (draw(50) == 0u ? draw(65536) << 16 : 0u);
            words[count++] = draw(3) == 0u ? value : draw(RANDOM_BYTES);
        } else {
            words[count++] = 0x100u | small[draw(sizeof small)] | value << 16;
        }
        if (draw(2000) == 0u) {
            words[count - 1u] ^= 1u << draw(32);
        }
    }
    words[count++] = 0xFFFF0000u;
    return count;
}

int main(int argc, char **argv)
{
    uint32_t codes[CODES] = {0};
    const int has_files = argc > 5;
    uint32_t word_bytes = RANDOM_WORDS * 4u;
    uint32_t constant_bytes = RANDOM_BYTES;
    uint8_t *given = has_files ? content(argv[3], &word_bytes) : NULL;
    uint8_t *constants = has_files ? content(argv[4], &constant_bytes) : NULL;
    const uint32_t arena_bytes = has_files ? (uint32_t)strtoul(argv[5], NULL, 10) : RANDOM_BYTES;
    state = (uint32_t)strtoul(argv[1], NULL, 10) * 2654435761u + 1u;
    for (uint32_t run = (uint32_t)strtoul(argv[2], NULL, 10); run > 0u; run--) {
        uint32_t size = word_bytes;
        uint32_t count = 0;
        const uint32_t kind = draw(4);
        if (has_files && kind == 0u) {
            size = 4u * draw(word_bytes / 4u + 1u);
        }
        uint32_t *words = malloc(size + 1u);
        uint8_t *memory[2] = {malloc(constant_bytes), malloc(arena_bytes)};
        if (words == NULL || memory[0] == NULL || memory[1] == NULL) {
            return 2;
        }
        for (uint32_t i = 0; i < constant_bytes; i++) {
            const int noise = !has_files || (kind == 1u && draw(4) == 0u);
            memory[0][i] = noise ? (uint8_t)draw(256) : constants[i];
        }
        memset(memory[1], 1, arena_bytes);
        if (has_files) {
            memcpy(words, given, size);
            count = size / 4u;
            if (kind >= 2u) {
                flip((uint8_t *)words, size, 1u + draw(3));
            }
        } else {
            count = random_words(words);
        }
        const mcud_npu_regions regions = {{memory[0], memory[1], memory[1]}, {constant_bytes, arena_bytes, arena_bytes},
                                          6};
        codes[mcud_npu_run(words, count, &regions) % CODES]++;
        free(words);
        free(memory[0]);
        free(memory[1]);
    }
    free(given);
    free(constants);
    for (uint32_t code = 0; code < CODES; code++) {
        printf("%u ", (unsigned)codes[code]);
    }
    printf("\n");
    return 0;
}
