/* Chooses the boxes of the highest scores, without those whose intersection with a chosen box is more than
 * `most_overlap` of their union.
 *
 * in[0]    float [boxes][1][4]: rows and columns of two opposite corners, in either order
 * in[1]    float [1][1][boxes]: scores; the first of equal ones is considered first
 * out      int32_t [1][1][count]: the numbers of the chosen boxes in the order of their scores, then -1
 *
 * Needs no scratch: every round searches for the box that comes, by score, after the last considered one.
 */
#ifndef MCUD_NON_MAX_SUPPRESSION_H
#define MCUD_NON_MAX_SUPPRESSION_H

#include "mcud.h"

typedef struct {
    int32_t boxes;
    int32_t count;
    float least_score; /* boxes of lower scores are not chosen */
    float most_overlap;
} mcud_non_max_suppression_params;

mcud_kernel mcud_non_max_suppression;

#endif
