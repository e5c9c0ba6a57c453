/* Weights as the unit reads them: slices of Golomb-Rice codes of palette indices, and of runs of zeros between them. */
#ifndef MCUD_ETHOS_U_WEIGHTS_H
#define MCUD_ETHOS_U_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

enum { MCUD_NPU_CHUNK = 12, MCUD_NPU_QUEUE = 64, MCUD_NPU_PALETTE = 32 };

/* Either the weights or the runs of zeros of a slice: quotients come a chunk before their remainders. */
typedef struct {
    uint32_t total;  /* symbols of the slice */
    uint32_t parsed; /* symbols whose quotient has been read, also those after `total` */
    uint32_t read;   /* symbols in the queue or taken from it */
    uint32_t carry;  /* the part of a quotient that the next chunk continues */
    uint32_t quotients[MCUD_NPU_CHUNK];
    uint32_t pending; /* quotients without a remainder */
    uint32_t queue[MCUD_NPU_QUEUE];
    uint32_t taken;
    uint32_t divisor; /* bits of a remainder */
} mcud_npu_symbols;

/* A place in a stream: a copy of this record continues from the same place. */
typedef struct {
    const uint8_t *bytes;
    uint32_t size_bits;
    uint32_t at;
    mcud_npu_symbols weights;
    mcud_npu_symbols zeros;
    uint32_t zero_run; /* zeros that come before the next weight */
    uint32_t direct_offset;
    uint32_t palette_size;
    uint32_t index_bits;
    uint16_t palette[MCUD_NPU_PALETTE];
    bool has_palette;
    bool has_zeros;
    bool plain;     /* indices of a fixed number of bits */
    bool truncated; /* a quotient is at most 2 */
    bool run_is_due;
    bool broken;
} mcud_npu_weights;

void mcud_npu_open_weights(mcud_npu_weights *stream, const uint8_t *bytes, uint32_t size_bytes);

/* Writes the next `count` weights; false where the stream has fewer or no encoder writes it. */
bool mcud_npu_next_weights(mcud_npu_weights *stream, int16_t *weights, uint32_t count);

#endif
