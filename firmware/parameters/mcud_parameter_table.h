/* The parameters of one model, saved and loaded whole or not at all: the functions that generated ones call. */
#ifndef MCUD_PARAMETER_TABLE_H
#define MCUD_PARAMETER_TABLE_H

#include "mcud_parameters.h"

/* 16-bit numbers among the values, which index an array or count its elements. One above `most` would lead outside of
 * the array. */
typedef struct {
    uint32_t offset; /* in the values, even */
    uint32_t count;
    uint32_t most;
} mcud_parameter_range;

typedef struct {
    void *values;        /* in RAM, where kernels read them */
    const void *initial; /* in flash; NULL for zeros */
    uint8_t *begun;      /* 0 until the values are set for the first time; NULL if zeros are the initial values */
    uint32_t bytes;      /* a multiple of MCUD_PARAMETERS_GRAIN */
    uint8_t hash[8];
    const mcud_parameter_range *ranges; /* which blobs must keep */
    uint32_t range_count;
} mcud_parameter_table;

/* Sets the initial values, unless the values have been set before. */
void mcud_parameters_begin(const mcud_parameter_table *table);

/* Sets the initial values. */
void mcud_parameters_reset(const mcud_parameter_table *table);

/* Writes the values to the slot that does not hold the newest blob, and reads both slots again: MCUD_PARAMETERS_OK if a
 * load would take these values. */
uint32_t mcud_parameters_save(const mcud_parameter_table *table, const mcud_parameter_storage *storage);

/* Sets the values to those of the newest intact blob. */
uint32_t mcud_parameters_load(const mcud_parameter_table *table, const mcud_parameter_storage *storage);

/* Checks a header without the CRC: MCUD_PARAMETERS_OK if it is one of a blob for this table. */
uint32_t mcud_parameters_check(const mcud_parameter_table *table, const uint8_t *header);

/* Checks a whole blob in place, of which `bytes` can be read. The table must have no ranges. */
uint32_t mcud_parameters_check_blob(const mcud_parameter_table *table, const void *blob, uint32_t bytes);

/* Continues a CRC-32, which begins with 0, over further bytes. */
uint32_t mcud_parameters_crc(uint32_t crc, const void *bytes, uint32_t count);

/* The header of a blob of the present values. */
void mcud_parameters_header(const mcud_parameter_table *table, uint32_t sequence, uint8_t *header);

/* The CRC of a header, as its last field states it. */
uint32_t mcud_parameters_stated_crc(const uint8_t *header);

#endif
