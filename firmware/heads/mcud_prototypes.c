#include "mcud_prototypes.h"

uint32_t mcud_prototypes_enrol(const mcud_prototypes *head, const int8_t *features, uint32_t label)
{
    if (label >= head->classes) {
        return MCUD_ENROL_UNKNOWN;
    }
    if (head->counts[label] == MCUD_ENROL_MOST) {
        return MCUD_ENROL_FULL;
    }
    int16_t *const sums = head->sums + label * head->features;
    for (uint32_t i = 0; i < head->features; i++) {
        sums[i] = (int16_t)(sums[i] + features[i]); /* 255 values of at least -128 fit */
    }
    head->counts[label]++;
    return MCUD_ENROLLED;
}

/* The squared distance to a class' mean, times count * count: an integer below 2^44. */
static uint64_t scaled_distance(const mcud_prototypes *head, const int8_t *features, uint32_t label)
{
    const int16_t *const sums = head->sums + label * head->features;
    const int32_t count = head->counts[label];
    uint64_t distance = 0;
    for (uint32_t i = 0; i < head->features; i++) {
        const int32_t apart = count * features[i] - sums[i]; /* at most 255 * 255, whose square fits 32 bits */
        const uint32_t size = (uint32_t)(apart < 0 ? -apart : apart);
        distance += size * size;
    }
    return distance;
}

uint32_t mcud_prototypes_classify(const mcud_prototypes *head, const int8_t *features)
{
    uint32_t nearest = head->classes;
    uint64_t least = 0;
    uint64_t least_count = 1;
    for (uint32_t label = 0; label < head->classes; label++) {
        const uint64_t count = head->counts[label];
        if (count == 0u) {
            continue;
        }
        const uint64_t distance = scaled_distance(head, features, label);
        /* distance / count^2 < least / least_count^2; both sides stay below 2^60 */
        if (nearest == head->classes || distance * (least_count * least_count) < least * (count * count)) {
            nearest = label;
            least = distance;
            least_count = count;
        }
    }
    return nearest;
}
