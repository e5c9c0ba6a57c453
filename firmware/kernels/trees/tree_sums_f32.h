/* Sums of the weights of the leaves that decision trees reach.
 *
 * in[0]    float [rows][1][values]
 * out      float [rows][1][targets]
 *
 * A node compares a value with its threshold. `next` has the next node if the value is not larger, then the next node
 * if it is; bit 31 marks a leaf, whose number is in the other bits. If bit 15 of a feature is set, NaN goes to the
 * first of both. The leaf's weights are entries leaf_starts[leaf] to leaf_starts[leaf + 1].
 */
#ifndef MCUD_TREE_SUMS_F32_H
#define MCUD_TREE_SUMS_F32_H

#include "mcud.h"

typedef struct {
    const float *thresholds;
    const uint16_t *features;
    const uint32_t *next; /* [nodes][2] */
    const uint32_t *roots;
    const uint32_t *leaf_starts;
    const uint16_t *targets;
    const float *weights;
    int32_t trees;
    int32_t row_targets;
} mcud_tree_sums_f32_params;

mcud_kernel mcud_tree_sums_f32;

#endif
