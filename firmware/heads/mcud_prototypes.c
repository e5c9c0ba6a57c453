#include "mcud_prototypes.h"

#include <math.h>

enum { COUNT_BITS = 7 };

static uint32_t bit_of(int16_t stored)
{
    return (uint16_t)stored & 1u;
}

static int32_t doubled_sum(int16_t stored)
{
    return stored - (int32_t)bit_of(stored);
}

static void set_count(int16_t *sums, uint32_t count)
{
    for (uint32_t i = 0; i < COUNT_BITS; i++) {
        sums[i] = (int16_t)(doubled_sum(sums[i]) + (int32_t)(count >> i & 1u));
    }
}

uint32_t mcud_prototypes_examples(const mcud_prototypes *head, uint32_t label)
{
    uint32_t count = 0;
    if (label < head->classes) {
        const int16_t *const sums = head->sums + label * head->columns;
        for (uint32_t i = 0; i < COUNT_BITS; i++) {
            count |= bit_of(sums[i]) << i;
        }
    }
    return count;
}

uint32_t mcud_prototypes_enrol(const mcud_prototypes *head, const int8_t *features, uint32_t label)
{
    if (label >= head->classes) {
        return MCUD_ENROL_UNKNOWN;
    }
    const uint32_t count = mcud_prototypes_examples(head, label);
    if (count == MCUD_PROTOTYPES_MOST) {
        return MCUD_ENROL_FULL;
    }
    int16_t *const sums = head->sums + label * head->columns;
    for (uint32_t i = 0; i < head->features; i++) {
        sums[i] = (int16_t)(sums[i] + 2 * features[i]);
    }
    set_count(sums, count + 1u);
    return MCUD_ENROLLED;
}

/* The squared distance to a class' mean, times (2 * count)^2: an integer below 2^44. */
static uint64_t scaled_distance(const mcud_prototypes *head, const int8_t *features, uint32_t label, int32_t count)
{
    const int16_t *const sums = head->sums + label * head->columns;
    uint64_t distance = 0;
    for (uint32_t i = 0; i < head->features; i++) {
        /* at most 2 * 127 * 255, whose square fits 32 bits */
        const int32_t apart = 2 * count * features[i] - doubled_sum(sums[i]);
        const uint32_t size = (uint32_t)(apart < 0 ? -apart : apart);
        distance += size * size;
    }
    return distance;
}

float mcud_prototypes_score(const mcud_prototypes *head, const int8_t *features, uint32_t label)
{
    const uint32_t count = mcud_prototypes_examples(head, label);
    if (count == 0u) {
        return -INFINITY;
    }
    return -(float)scaled_distance(head, features, label, (int32_t)count) / (float)(4u * count * count);
}

uint32_t mcud_prototypes_classify(const mcud_prototypes *head, const int8_t *features)
{
    uint32_t nearest = head->classes;
    uint64_t least = 0;
    uint64_t least_count = 1;
    for (uint32_t label = 0; label < head->classes; label++) {
        const uint64_t count = mcud_prototypes_examples(head, label);
        if (count == 0u) {
            continue;
        }
        const uint64_t distance = scaled_distance(head, features, label, (int32_t)count);
        /* distance / count^2 < least / least_count^2; both sides stay below 2^60 */
        if (nearest == head->classes || distance * (least_count * least_count) < least * (count * count)) {
            nearest = label;
            least = distance;
            least_count = count;
        }
    }
    return nearest;
}
