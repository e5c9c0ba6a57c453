#include "non_max_suppression.h"

static float smaller(float a, float b)
{
    return a < b ? a : b;
}

static float larger(float a, float b)
{
    return a > b ? a : b;
}

static float area(const float *box)
{
    return (larger(box[0], box[2]) - smaller(box[0], box[2])) * (larger(box[1], box[3]) - smaller(box[1], box[3]));
}

/* Whether two boxes share more than `most` of their union. */
static int overlap(const float *a, const float *b, float most)
{
    const float top = larger(smaller(a[0], a[2]), smaller(b[0], b[2]));
    const float bottom = smaller(larger(a[0], a[2]), larger(b[0], b[2]));
    const float left = larger(smaller(a[1], a[3]), smaller(b[1], b[3]));
    const float right = smaller(larger(a[1], a[3]), larger(b[1], b[3]));
    if (bottom <= top || right <= left) {
        return 0;
    }
    const float shared = (bottom - top) * (right - left);
    const float joined = area(a) + area(b) - shared;
    return shared > 0.0f && joined > 0.0f && shared / joined > most;
}

/* The box with the highest score, or the next one in the order of scores after box `last`; -1 if there is none. */
static int32_t next(const mcud_non_max_suppression_params *params, const float *scores, int32_t last)
{
    int32_t best = -1;
    for (int32_t box = 0; box < params->boxes; box++) {
        const int after = last < 0 || scores[box] < scores[last] || (scores[box] == scores[last] && box > last);
        if (after && scores[box] >= params->least_score && (best < 0 || scores[box] > scores[best])) {
            best = box;
        }
    }
    return best;
}

void mcud_non_max_suppression(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_non_max_suppression_params *params = op->params;
    const float *scores = mcud_row(op->in[1], 0);
    int32_t *out = mcud_row(op->out, 0);
    int32_t chosen = 0;
    (void)first_row;
    (void)end_row;
    for (int32_t box = next(params, scores, -1); box >= 0 && chosen < params->count;
         box = next(params, scores, box)) {
        int free = 1;
        for (int32_t other = 0; other < chosen && free; other++) {
            free = !overlap(mcud_row(op->in[0], box), mcud_row(op->in[0], out[other]), params->most_overlap);
        }
        if (free) {
            out[chosen] = box;
            chosen++;
        }
    }
    for (; chosen < params->count; chosen++) {
        out[chosen] = -1;
    }
}
