#include "tree_sums_f32.h"

#define LEAF 0x80000000U
#define NAN_FIRST 0x8000U

static uint32_t leaf_of(const mcud_tree_sums_f32_params *params, const float *row, uint32_t node)
{
    while ((node & LEAF) == 0) {
        const uint32_t feature = params->features[node];
        const float value = row[feature & ~NAN_FIRST], threshold = params->thresholds[node];
        const int first = (feature & NAN_FIRST) != 0 ? !(value > threshold) : value <= threshold;
        node = params->next[2 * node + (first ? 0 : 1)];
    }
    return node & ~LEAF;
}

void mcud_tree_sums_f32(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_tree_sums_f32_params *params = op->params;
    for (int32_t row = first_row; row < end_row; row++) {
        const float *in = mcud_row(op->in[0], row);
        float *out = mcud_row(op->out, row);
        for (int32_t target = 0; target < params->row_targets; target++) {
            out[target] = 0.0f;
        }
        for (int32_t tree = 0; tree < params->trees; tree++) {
            const uint32_t leaf = leaf_of(params, in, params->roots[tree]);
            for (uint32_t entry = params->leaf_starts[leaf]; entry < params->leaf_starts[leaf + 1]; entry++) {
                out[params->targets[entry]] += params->weights[entry];
            }
        }
    }
}
