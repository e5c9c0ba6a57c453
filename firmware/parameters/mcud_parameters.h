/* Storage of model parameters that an application keeps: flash sectors, a file, a received message.
 *
 * Parameters are the constants of the operators that `build --replaceable` names. They are stored as a blob: a header
 * of MCUD_PARAMETERS_HEADER_BYTES, then the values as kernels read them. All integers are little-endian.
 *
 *   offset  bytes
 *        0      4  "MCUP"
 *        4      4  layout version of this header: MCUD_PARAMETERS_VERSION
 *        8      8  hash of the model: of its operators, their kernels, and all constants that are not replaceable
 *       16      4  bytes of the values, a multiple of MCUD_PARAMETERS_GRAIN
 *       20      4  sequence number: of two intact blobs, the later one is loaded
 *       24      4  0
 *       28      4  CRC-32 (IEEE 802.3, as in zlib) of the 28 bytes before, then of the values
 *       32         the values
 */
#ifndef MCUD_PARAMETERS_H
#define MCUD_PARAMETERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MCUD_PARAMETERS_VERSION 1u
#define MCUD_PARAMETERS_HEADER_BYTES 32u
#define MCUD_PARAMETERS_GRAIN 32u /* the largest unit in which a flash is written */
#define MCUD_PARAMETERS_SLOTS 2u

/* Results; if neither slot has parameters, the larger one of the two. A function that does not return
 * MCUD_PARAMETERS_OK has left the parameters in RAM as they were, with one exception: MCUD_PARAMETERS_UNSTABLE. */
enum {
    MCUD_PARAMETERS_OK = 0,
    MCUD_PARAMETERS_STORAGE = 1, /* a callback failed, or the storage lost written bytes: call again */
    MCUD_PARAMETERS_ABSENT = 2,  /* no slot begins with "MCUP": nothing was saved */
    MCUD_PARAMETERS_FOREIGN = 3, /* of another model, or of a library with other replaceable operators */
    MCUD_PARAMETERS_LAYOUT = 4,  /* another layout version */
    MCUD_PARAMETERS_CORRUPT = 5, /* truncated or changed: wrong CRC */
    MCUD_PARAMETERS_UNSTABLE = 6, /* the storage changed while it was read: the parameters are the initial ones */
    MCUD_PARAMETERS_MISALIGNED = 7, /* the address of a blob is not a multiple of 4 */
    MCUD_PARAMETERS_INVALID = 8 /* the CRC is right, but a count or a label among the values is out of its range */
};

/* Two slots, each with room for a blob; in flash, each in separate sectors. Offsets count from the start of a slot.
 *
 * Callbacks return 0, or 1 for a failure. A slot whose read failed may hold the newest blob: nothing is then loaded,
 * erased or written. Two further results of read say that a slot holds no blob: MCUD_PARAMETERS_ABSENT if there is no
 * such slot (a message is slot 0 alone), and MCUD_PARAMETERS_CORRUPT if its bytes can never be read (an ECC error after
 * a torn write).
 *
 * Offsets and bytes of a write are multiples of MCUD_PARAMETERS_GRAIN, and a save writes no byte twice. A save first
 * erases the slot that it writes; erase may be NULL where that needs nothing. */
typedef struct {
    uint32_t (*read)(void *user, uint32_t slot, uint32_t offset, void *to, uint32_t bytes);
    uint32_t (*write)(void *user, uint32_t slot, uint32_t offset, const void *from, uint32_t bytes);
    uint32_t (*erase)(void *user, uint32_t slot);
    void *user;
} mcud_parameter_storage;

#ifdef __cplusplus
}
#endif

#endif
