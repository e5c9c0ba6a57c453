#include "mcud_ridge.h"

#include <math.h>
#include <string.h>

enum {
    EXAMPLES = 0, /* entries of counts */
    SOLVED = 1,
    MOST_ROUNDS = 128,
    LARGEST_STEPS = 32767
};

/* A system is solved when the squared gradient has fallen to this share of the first one. */
static const float solved_share = 1e-8f;

/* Vectors are rounded to 16 bits before they are multiplied with examples. The products are sums of integers: a core
 * without an FPU solves in a quarter of the time. Each example enters minus the first example, so that centring loses
 * no digits where examples are close to each other. */
typedef struct {
    float *mean;       /* [features], of the examples */
    float *weights;    /* [features] */
    float *direction;  /* [features], of this round's search, rounded to 16 bits */
    float *gradient;   /* [features], the negative gradient of half the error */
    float *residual;   /* [examples], target minus score */
    float *change;     /* [examples], of the score along the direction */
    int16_t *in_steps; /* [features] or [examples], the vector that is multiplied */
    float penalty;
} workspace;

/* The number of examples, at most the capacity: a count that did not come from this head must not lead out of its
 * arrays. */
static uint32_t example_count(const mcud_ridge *head)
{
    const uint32_t count = head->counts[EXAMPLES];
    return count < head->capacity ? count : head->capacity;
}

uint32_t mcud_ridge_examples(const mcud_ridge *head, uint32_t label)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < example_count(head); i++) {
        count += head->labels[i] == label;
    }
    return count;
}

uint32_t mcud_ridge_enrol(const mcud_ridge *head, const int8_t *features, uint32_t label)
{
    const uint32_t number = example_count(head);
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

static float product(const float *one, const float *other, uint32_t count)
{
    float sum = 0.0f;
    for (uint32_t i = 0; i < count; i++) {
        sum += one[i] * other[i];
    }
    return sum;
}

static float squared(const float *vector, uint32_t count)
{
    return product(vector, vector, count);
}

/* Sets mean and penalty. */
static void measure(const mcud_ridge *head, workspace *at)
{
    const uint32_t count = example_count(head);
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

/* Rounds a vector to 16 bits and returns the value of a step; 0 for a vector of zeros. */
static float round_to_steps(const float *vector, uint32_t count, int16_t *in_steps)
{
    float largest = 0.0f;
    for (uint32_t i = 0; i < count; i++) {
        const float size = fabsf(vector[i]);
        largest = size > largest ? size : largest;
    }
    const float step = largest / (float)LARGEST_STEPS;
    for (uint32_t i = 0; i < count; i++) {
        const float steps = step > 0.0f ? vector[i] / step : 0.0f;
        in_steps[i] = (int16_t)(steps + (steps < 0.0f ? -0.5f : 0.5f));
    }
    return step;
}

/* The sum of the products of `count` values, `pitch` apart, with a vector in steps. */
static int64_t integer_product(const int8_t *values, uint32_t pitch, const int16_t *in_steps, uint32_t count)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += (int32_t)values[i * pitch] * in_steps[i];
    }
    return sum;
}

/* Rounds the direction; change = centred examples * direction. Returns the curvature of half the error along it. */
static float search(const mcud_ridge *head, const workspace *at)
{
    const uint32_t count = example_count(head);
    const uint32_t features = head->features;
    const float step = round_to_steps(at->direction, features, at->in_steps);
    const int64_t first = integer_product(head->examples, 1, at->in_steps, features);
    float sum = 0.0f;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t each = integer_product(head->examples + i * features, 1, at->in_steps, features);
        at->change[i] = step * (float)(each - first);
        sum += at->change[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        at->change[i] -= sum / (float)count;
    }
    for (uint32_t j = 0; j < features; j++) {
        at->direction[j] = step * (float)at->in_steps[j];
    }
    return squared(at->change, count) + at->penalty * squared(at->direction, features);
}

/* gradient = transposed centred examples * residual - penalty * weights */
static void differentiate(const mcud_ridge *head, const workspace *at)
{
    const uint32_t count = example_count(head);
    const float step = round_to_steps(at->residual, count, at->in_steps);
    int32_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        total += at->in_steps[i];
    }
    for (uint32_t j = 0; j < head->features; j++) {
        const int32_t first = head->examples[j];
        const int64_t sum = integer_product(head->examples + j, head->features, at->in_steps, count);
        const float of_mean = (at->mean[j] - (float)first) * (float)total;
        const float slope = step * ((float)(sum - (int64_t)first * total) - of_mean);
        at->gradient[j] = slope - at->penalty * at->weights[j];
    }
}

/* Solves for the targets in `residual`. Without differences between the examples the penalty is 0, and so are the
 * weights. */
static void descend(const mcud_ridge *head, const workspace *at)
{
    const uint32_t features = head->features;
    memset(at->weights, 0, features * sizeof *at->weights);
    if (!(at->penalty > 0.0f)) {
        return;
    }
    differentiate(head, at);
    memcpy(at->direction, at->gradient, features * sizeof *at->direction);
    float size = squared(at->gradient, features);
    const float enough = solved_share * size;
    for (uint32_t round = 0; round < MOST_ROUNDS && size > enough; round++) {
        const float curvature = search(head, at);
        const float length = product(at->gradient, at->direction, features) / curvature;
        for (uint32_t j = 0; j < features; j++) {
            at->weights[j] += length * at->direction[j];
        }
        for (uint32_t i = 0; i < example_count(head); i++) {
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

/* Rounds the weights; the bias is that of the rounded weights. */
static void store(const mcud_ridge *head, const workspace *at, uint32_t label, float share)
{
    int16_t *const weights = head->weights + label * head->features;
    const float step = round_to_steps(at->weights, head->features, weights);
    float at_mean = 0.0f;
    for (uint32_t j = 0; j < head->features; j++) {
        at_mean += (float)weights[j] * at->mean[j];
    }
    head->steps[label] = step;
    head->biases[label] = share - step * at_mean;
}

void mcud_ridge_solve(const mcud_ridge *head, void *scratch)
{
    const uint32_t count = example_count(head);
    const uint32_t features = head->features;
    float *const vectors = scratch;
    void *const rest = vectors + 4u * features + 2u * head->capacity;
    workspace at = {
        .mean = vectors,
        .weights = vectors + features,
        .direction = vectors + 2u * features,
        .gradient = vectors + 3u * features,
        .residual = vectors + 4u * features,
        .change = vectors + 4u * features + head->capacity,
        .in_steps = rest,
    };
    if (count == 0u || count == head->counts[SOLVED]) {
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
    const int64_t sum = integer_product(features, 1, weights, head->features);
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
