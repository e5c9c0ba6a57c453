/* Runs programs on request: several models in one process, chosen by number, their arenas read and written.
 *
 * A request on standard input is a letter and four 32-bit numbers; WRITE brings as many bytes as its last one says.
 * READ and RUN are answered on standard output: with the bytes, and with one byte. Sizes are the caller's matter:
 * what is wrong ends the process by a sanitizer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcud_cores.h"

extern const mcud_model *const programs[];

/* Cores that are threads lose time at random in the next run, from a seed; none with 0. */
void yields_begin(uint32_t seed);

typedef struct {
    uint32_t kind, a, b, count;
} request;

static void fill(const mcud_model *model, uint32_t state)
{
    for (uint32_t i = 0; i < model->arena_count; i++) {
        for (uint32_t at = 0; at < model->arenas[i].bytes; at++) {
            state = state * 1664525u + 1013904223u;
            model->arenas[i].base[at] = (uint8_t)(state >> 24);
        }
    }
}

static void take(void *to, size_t bytes)
{
    if (fread(to, 1, bytes, stdin) != bytes) {
        exit(EXIT_SUCCESS); /* the other end has gone */
    }
}

static void give(const void *from, size_t bytes)
{
    if (fwrite(from, 1, bytes, stdout) != bytes || fflush(stdout) != 0) {
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    const mcud_model *model = programs[0];
    for (;;) {
        request it;
        take(&it, sizeof it);
        switch (it.kind) {
        case 'S':
            model = programs[it.a];
            fill(model, it.b);
            break;
        case 'W':
            take(model->arenas[it.a].base + it.b, it.count);
            break;
        case 'R':
            give(model->arenas[it.a].base + it.b, it.count);
            break;
        case 'G':
            yields_begin(it.b);
            if (model->cores != 0) {
                model->cores->run(model->cores, it.a, it.a + it.count);
                give("k", 1);
                break;
            }
            for (uint32_t step = it.a; step < it.a + it.count; step++) {
                mcud_step(model, step);
            }
            give("k", 1);
            break;
        default:
            return EXIT_FAILURE;
        }
    }
}
