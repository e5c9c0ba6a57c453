/* A classifier that learns from a few examples: a vector of features belongs to the class whose mean is nearest.
 *
 * Sums and counts are integers, so the order of the examples does not matter, and nothing is lost by rounding.
 */
#ifndef MCUD_PROTOTYPES_H
#define MCUD_PROTOTYPES_H

#include <stdint.h>

#include "mcud_head.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MCUD_PROTOTYPES_MOST = 127 }; /* examples of a class */

/* Twice the sum of 127 int8 values fits an int16, so the lowest bit of each sum is free. The lowest bits of a class'
 * first seven sums are its number of examples, the least significant bit first. */
typedef struct {
    int16_t *sums; /* [classes][columns] */
    uint32_t classes;  /* at most 1000 */
    uint32_t features; /* at most 4096 */
    uint32_t columns;  /* features, at least 7 */
} mcud_prototypes;

/* Adds an example to a class. Returns MCUD_ENROLLED; with another result nothing has changed. */
uint32_t mcud_prototypes_enrol(const mcud_prototypes *head, const int8_t *features, uint32_t label);

/* The label whose mean has the least squared distance, of equal ones the first; `classes` if all classes are empty. */
uint32_t mcud_prototypes_classify(const mcud_prototypes *head, const int8_t *features);

/* The negative squared distance to a class' mean; -INFINITY if the class has no examples. */
float mcud_prototypes_score(const mcud_prototypes *head, const int8_t *features, uint32_t label);

/* The number of examples of a class; 0 for a label that does not exist. */
uint32_t mcud_prototypes_examples(const mcud_prototypes *head, uint32_t label);

#ifdef __cplusplus
}
#endif

#endif
