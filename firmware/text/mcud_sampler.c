#include "mcud_sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Logits, which are compared by keys: integers in the same order. */
typedef struct {
    const float *floats; /* or */
    const int8_t *integers;
    float scale;
    uint32_t count;
    float greatest, temperature;
} logits;

static int32_t key_at(const logits *l, uint32_t i)
{
    if (!l->floats) {
        return l->integers[i];
    }
    float value = l->floats[i] + 0.0f; /* -0 is 0 */
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? INT32_MIN : bits < 0 ? bits ^ INT32_MAX : bits;
}

static float value_at(const logits *l, uint32_t i) { return l->floats ? l->floats[i] : l->scale * l->integers[i]; }

static float weight_at(const logits *l, uint32_t i)
{
    return expf((value_at(l, i) - l->greatest) / l->temperature);
}

/* The number of logits with at least this key, or the sum of their weights. */
static float amount(const logits *l, int32_t least, bool of_weights)
{
    float sum = 0.0f;
    uint32_t number = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        int32_t key = key_at(l, i);
        if (key >= least && key > INT32_MIN) {
            number++;
            sum += of_weights ? weight_at(l, i) : 0.0f;
        }
    }
    return of_weights ? sum : (float)number;
}

/* The greatest key from `low` to `high` at which the amount is at least `wanted`, or else `low`. */
static int32_t border(const logits *l, int32_t low, int32_t high, float wanted, bool of_weights)
{
    while (low < high) {
        int32_t middle = (int32_t)((int64_t)high - ((int64_t)high - low) / 2);
        if (amount(l, middle, of_weights) >= wanted) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

void mcud_sampler_seed(mcud_sampler *sampler, uint64_t seed)
{
    sampler->state = (seed + 1442695040888963407u) * 6364136223846793005u + 1442695040888963407u;
}

/* A number of [0, 1) with 24 bits. */
static float draw(mcud_sampler *sampler)
{
    uint64_t state = sampler->state;
    sampler->state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t mixed = (uint32_t)(((state >> 18) ^ state) >> 27), turn = (uint32_t)(state >> 59);
    uint32_t bits = mixed >> turn | mixed << ((32u - turn) & 31u);
    return (float)(bits >> 8) * 0x1p-24f;
}

static uint32_t sample(mcud_sampler *sampler, logits *l)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < l->count; i++) {
        best = key_at(l, i) > key_at(l, best) ? i : best;
    }
    l->greatest = value_at(l, best);
    l->temperature = sampler->temperature;
    if (!(l->temperature > 0.0f) || !isfinite(l->greatest)) {
        return best;
    }
    int32_t least = INT32_MIN, most = key_at(l, best);
    if (sampler->top_k > 0 && sampler->top_k < l->count) {
        least = border(l, least, most, (float)sampler->top_k, false);
    }
    float sum = amount(l, least, true);
    if (sampler->top_p < 1.0f) {
        least = border(l, least, most, sampler->top_p * sum, true);
        sum = amount(l, least, true);
    }
    float left = draw(sampler) * sum;
    for (uint32_t i = 0; i < l->count; i++) {
        if (key_at(l, i) >= least && key_at(l, i) > INT32_MIN) {
            left -= weight_at(l, i);
            if (left < 0.0f) {
                return i;
            }
        }
    }
    return best; /* reached only by the rounding of differences */
}

uint32_t mcud_sample_f32(mcud_sampler *sampler, const float *values, uint32_t count)
{
    logits l = {values, NULL, 1.0f, count, 0.0f, 0.0f};
    return sample(sampler, &l);
}

uint32_t mcud_sample_s8(mcud_sampler *sampler, const int8_t *values, float scale, uint32_t count)
{
    logits l = {NULL, values, scale, count, 0.0f, 0.0f};
    return sample(sampler, &l);
}
