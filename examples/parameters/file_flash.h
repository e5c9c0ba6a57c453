/* Two sectors of a NOR flash in a file, as storage of parameters: an erased byte is 0xFF, writing only clears bits. */
#ifndef FILE_FLASH_H
#define FILE_FLASH_H

#include "mcud_parameters.h"

typedef struct {
    const char *path;
    uint32_t sector_bytes;
    long units_left; /* units that are erased or written before the power fails; below 0: it does not */
} file_flash;

/* Prepares the sectors, which are erased if the file does not exist. Returns 0, or 1 if it cannot be written. */
int file_flash_open(file_flash *flash);

/* The sectors as storage: one slot in each. */
mcud_parameter_storage file_flash_storage(file_flash *flash);

#endif
