#include "mcud_ridge.h"

#include <math.h>
#include <string.h>

enum {
    EXAMPLES = 0, /* entries of counts */
    SOLVED = 1,
    MOST_ROUNDS = 128,
    LARGEST_WEIGHT = 32767
};

/* A system is solved when the squared gradient has fallen to this share of the first one. */
static const float solved_share = 1e-8f;

typedef struct {
    float *mean;      /* [features], of the examples */
    float *weights;   /* [features] */
    float *direction; /* [features], in which this round searches */
    float *gradient;  /* [features], of half the error, negative */
    float *residual;  /* [examples], target minus score */
    float *change;    /* [examples], of the score along the direction */
    float penalty;
} workspace;

uint32_t mcud_ridge_examples(const mcud_ridge *head, uint32_t label)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < head->counts[EXAMPLES]; i++) {
        count += head->labels[i] == label;
    }
    return count;
}

uint32_t mcud_ridge_enrol(const mcud_ridge *head, const int8_t *features, uint32_t label)
{
    const uint32_t number = head->counts[EXAMPLES];
    if (label >= head->classes) {
        return MCUD_ENROL_UNKNOWN;
    }
    if (number == head->capacity) {
        return MCUD_ENROL_FULL;
    }
    memcpy(head->examples + number * head->features, features, head->features);
    head->labels[number] = (uint16_t)label;
    head->counts[EXAMPLES] = (uint16_t)(number + 1u);
    return MCUD_ENROLLED;
}

static float squared(const float *vector, uint32_t count)
{
    float sum = 0.0f;
    for (uint32_t i = 0; i < count; i++) {
        sum += vector[i] * vector[i];
    }
    return sum;
}

/* Sets mean and penalty. */
static void measure(const mcud_ridge *head, workspace *at)
{
    const uint32_t count = head->counts[EXAMPLES];
    for (uint32_t j = 0; j < head->features; j++) {
        int32_t sum = 0;
        for (uint32_t i = 0; i < count; i++) {
            sum += head->examples[i * head->features + j];
        }
        at->mean[j] = (float)sum / (float)count;
    }
    float total = 0.0f;
    for (uint32_t i = 0; i < count; i++) {
        const int8_t *const example = head->examples + i * head->features;
        for (uint32_t j = 0; j < head->features; j++) {
            at->gradient[j] = (float)example[j] - at->mean[j];
        }
        total += squared(at->gradient, head->features);
    }
    at->penalty = MCUD_RIDGE_PENALTY * total / (float)count;
}

/* change = centred examples * direction. Returns the curvature of half the error along the direction. */
static float search(const mcud_ridge *head, const workspace *at)
{
    for (uint32_t i = 0; i < head->counts[EXAMPLES]; i++) {
        const int8_t *const example = head->examples + i * head->features;
        float sum = 0.0f;
        for (uint32_t j = 0; j < head->features; j++) {
            sum += ((float)example[j] - at->mean[j]) * at->direction[j];
        }
        at->change[i] = sum;
    }
    return squared(at->change, head->counts[EXAMPLES]) + at->penalty * squared(at->direction, head->features);
}

/* gradient = transposed centred examples * residual - penalty * weights */
static void differentiate(const mcud_ridge *head, const workspace *at)
{
    for (uint32_t j = 0; j < head->features; j++) {
        at->gradient[j] = -at->penalty * at->weights[j];
    }
    for (uint32_t i = 0; i < head->counts[EXAMPLES]; i++) {
        const int8_t *const example = head->examples + i * head->features;
        for (uint32_t j = 0; j < head->features; j++) {
            at->gradient[j] += ((float)example[j] - at->mean[j]) * at->residual[i];
        }
    }
}

/* Solves for the targets in `residual`. Without differences between the examples the gradient is 0, and so are the
 * weights. */
static void descend(const mcud_ridge *head, const workspace *at)
{
    const uint32_t features = head->features;
    memset(at->weights, 0, features * sizeof *at->weights);
    differentiate(head, at);
    memcpy(at->direction, at->gradient, features * sizeof *at->direction);
    float size = squared(at->gradient, features);
    const float enough = solved_share * size;
    for (uint32_t round = 0; round < MOST_ROUNDS && size > enough; round++) {
        const float length = size / search(head, at);
        for (uint32_t j = 0; j < features; j++) {
            at->weights[j] += length * at->direction[j];
        }
        for (uint32_t i = 0; i < head->counts[EXAMPLES]; i++) {
            at->residual[i] -= length * at->change[i];
        }
        differentiate(head, at);
        const float next = squared(at->gradient, features);
        for (uint32_t j = 0; j < features; j++) {
            at->direction[j] = at->gradient[j] + next / size * at->direction[j];
        }
        size = next;
    }
}

/* Rounds the weights to 16 bits; the bias is that of the rounded weights. */
static void store(const mcud_ridge *head, const workspace *at, uint32_t label, float share)
{
    int16_t *const weights = head->weights + label * head->features;
    float largest = 0.0f;
    for (uint32_t j = 0; j < head->features; j++) {
        const float size = fabsf(at->weights[j]);
        largest = size > largest ? size : largest;
    }
    const float step = largest / (float)LARGEST_WEIGHT;
    float at_mean = 0.0f;
    for (uint32_t j = 0; j < head->features; j++) {
        const float steps = step > 0.0f ? at->weights[j] / step : 0.0f;
        weights[j] = (int16_t)(steps + (steps < 0.0f ? -0.5f : 0.5f));
        at_mean += (float)weights[j] * at->mean[j];
    }
    head->steps[label] = step;
    head->biases[label] = share - step * at_mean;
}

void mcud_ridge_solve(const mcud_ridge *head, float *scratch)
{
    const uint32_t count = head->counts[EXAMPLES];
    const uint32_t features = head->features;
    workspace at = {
        .mean = scratch,
        .weights = scratch + features,
        .direction = scratch + 2u * features,
        .gradient = scratch + 3u * features,
        .residual = scratch + 4u * features,
        .change = scratch + 4u * features + head->capacity,
    };
    if (count == head->counts[SOLVED]) {
        return;
    }
    measure(head, &at);
    for (uint32_t label = 0; label < head->classes; label++) {
        const uint32_t own = mcud_ridge_examples(head, label);
        const float share = (float)own / (float)count;
        for (uint32_t i = 0; i < count; i++) {
            at.residual[i] = own == 0u ? 0.0f : (float)(head->labels[i] == label) - share;
        }
        descend(head, &at);
        store(head, &at, label, own == 0u ? -INFINITY : share);
    }
    head->counts[SOLVED] = (uint16_t)count;
}

float mcud_ridge_score(const mcud_ridge *head, const int8_t *features, uint32_t label)
{
    if (label >= head->classes || head->counts[SOLVED] == 0u) {
        return -INFINITY;
    }
    const int16_t *const weights = head->weights + label * head->features;
    int64_t sum = 0;
    for (uint32_t j = 0; j < head->features; j++) {
        sum += (int32_t)weights[j] * features[j];
    }
    return head->steps[label] * (float)sum + head->biases[label];
}

uint32_t mcud_ridge_classify(const mcud_ridge *head, const int8_t *features)
{
    uint32_t best = head->classes;
    float most = -INFINITY;
    for (uint32_t label = 0; label < head->classes; label++) {
        const float score = mcud_ridge_score(head, features, label);
        if (score > most) {
            best = label;
            most = score;
        }
    }
    return best;
}
