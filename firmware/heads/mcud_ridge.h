/* A classifier that learns from a few examples: linear scores, by ridge regression on the examples' labels.
 *
 * For each class it computes the weights w and the bias b that minimise, over the examples x with target 1 if they are
 * of this class and 0 otherwise,
 *
 *     sum (w . (x - mean) + b - target)^2 + penalty * w . w,    penalty = MCUD_RIDGE_PENALTY * mean |x - mean|^2
 *
 * by conjugate gradients on the stored examples, in float32; products with examples take vectors of 16 bits. The method
 * stores no Gram matrix, but 4 vectors of features and 2 of examples. The penalty bounds the condition number by 1 +
 * examples / MCUD_RIDGE_PENALTY.
 */
#ifndef MCUD_RIDGE_H
#define MCUD_RIDGE_H

#include <stdint.h>

#include "mcud_head.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MCUD_RIDGE_PENALTY 0.1f

typedef struct {
    float *steps;      /* [classes], the value of a weight of 1 */
    float *biases;     /* [classes] */
    int16_t *weights;  /* [classes][features], in steps */
    uint16_t *counts;  /* [2]: examples, and examples for which the weights were solved */
    uint16_t *labels;  /* [capacity] */
    int8_t *examples;  /* [capacity][features] */
    uint32_t classes;  /* at most 1000 */
    uint32_t features; /* at most 4096 */
    uint32_t capacity; /* at most 65535 examples */
} mcud_ridge;

/* Stores an example. Returns MCUD_ENROLLED; with another result nothing has changed. */
uint32_t mcud_ridge_enrol(const mcud_ridge *head, const int8_t *features, uint32_t label);

/* Computes the weights, unless they are those of the present examples. `scratch` is aligned to 4 and has room for 4 *
 * features + 2 * capacity floats, then for one int16 per feature, or per example if there are more of these. */
void mcud_ridge_solve(const mcud_ridge *head, void *scratch);

/* The label with the greatest score, of equal ones the first; `classes` if there are no examples. */
uint32_t mcud_ridge_classify(const mcud_ridge *head, const int8_t *features);

/* The score of a class by the weights that were solved last: about 1 for its inputs and 0 for others; -INFINITY if the
 * class had no examples. */
float mcud_ridge_score(const mcud_ridge *head, const int8_t *features, uint32_t label);

/* The number of examples of a class; 0 for a label that does not exist. */
uint32_t mcud_ridge_examples(const mcud_ridge *head, uint32_t label);

#ifdef __cplusplus
}
#endif

#endif
