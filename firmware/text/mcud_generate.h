/* Options and results of MODEL_generate(), which writes a text with a language model. */
#ifndef MCUD_GENERATE_H
#define MCUD_GENERATE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MCUD_TEXT_EMPTY (-3) /* the prompt has no tokens */
#define MCUD_TEXT_FULL (-4)  /* the prompt has more tokens than the model has positions */

/* All zero, or NULL: the most probable token each time, until the text ends or all positions are used. */
typedef struct {
    uint32_t tokens;   /* the most that are generated; 0: no other limit than the positions */
    float temperature; /* this and the following: as in mcud_sampler.h */
    uint32_t top_k;    /* 0: all */
    float top_p;       /* 0 or 1: all */
    uint64_t seed;
} mcud_generate_options;

/* Receives each generated token and its bytes, none for special tokens. A character may span several tokens. A result
 * other than 0 ends the text. */
typedef int32_t mcud_on_text(void *user, uint32_t token, const uint8_t *text, uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif
