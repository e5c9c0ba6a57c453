/* The choice of the next token of a text by the logits of a language model. */
#ifndef MCUD_SAMPLER_H
#define MCUD_SAMPLER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* With a temperature of 0 the choice is the greatest logit, the first of equal ones. Otherwise logits are divided by
 * the temperature. The top_k greatest ones stay (0: all), then of these the fewest whose probabilities together reach
 * top_p (1: all); equal logits at the border all stay. One of those that stay is drawn by its probability among them.
 *
 * A choice needs no memory, since it neither sorts nor stores logits: it reads them at most 70 times with top_k and
 * top_p, 3 times without. A NaN is the least logit; if the greatest one is not finite, it is chosen. */
typedef struct {
    float temperature;
    uint32_t top_k;
    float top_p;
    uint64_t state; /* of the generator PCG32; set it with mcud_sampler_seed() */
} mcud_sampler;

/* Equal seeds give equal draws. */
void mcud_sampler_seed(mcud_sampler *sampler, uint64_t seed);

/* Returns the index of one of `count` logits, at least 1. */
uint32_t mcud_sample_f32(mcud_sampler *sampler, const float *logits, uint32_t count);

/* Returns the index of one of `count` quantised logits; `scale`: the difference of two neighbouring values. */
uint32_t mcud_sample_s8(mcud_sampler *sampler, const int8_t *logits, float scale, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
