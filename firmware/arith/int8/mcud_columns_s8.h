/* Writes rows of few channels into columns, which hold the values of several rows. */
#ifndef MCUD_COLUMNS_S8_H
#define MCUD_COLUMNS_S8_H

#include "mcud_vector.h"

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
#include <arm_mve.h>
#endif

/* The places of a row's values in the columns. */
typedef struct {
    uint8_t at[16]; /* of the values that are written together */
    int32_t count;  /* their number, whole columns */
    int32_t next;   /* from the place of the first value to that of the next value after them */
} mcud_column_places;

/* The places for columns of `column` values; 1 <= channels <= 4, and the values of 16 / channels columns are at most
 * 256. */
static inline mcud_column_places mcud_places_of_columns(int32_t channels, int32_t column)
{
    mcud_column_places places = {{0}, 0, 0};
    for (; places.count + channels <= 16; places.next += column) {
        for (int32_t c = 0; c < channels; c++) {
            places.at[places.count++] = (uint8_t)(places.next + c);
        }
    }
    return places;
}

/* Writes row[values] to their places from `to` on. */
static inline void mcud_to_columns(int8_t *to, const mcud_column_places *places, const int8_t *row, int32_t values)
{
    const int32_t count = places->count;
#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__)
    const uint8x16_t at = vldrbq_u8(places->at);
    const int32_t whole = values / count;
    int32_t predicate; /* restored, since it cannot be named as clobbered */
    int8x16_t v;
    __asm__ volatile("vmrs %[predicate], p0\n\t"
                     "vctp.8 %[count]\n\t"
                     "wls lr, %[whole], 2f\n"
                     "1:\n\t"
                     "vpstt\n\t"
                     "vldrbt.8 %q[v], [%[row]]\n\t"
                     "vstrbt.8 %q[v], [%[to], %q[at]]\n\t"
                     "add %[row], %[row], %[count]\n\t"
                     "add %[to], %[to], %[next]\n\t"
                     "le lr, 1b\n"
                     "2:\n\t"
                     "vctp.8 %[rest]\n\t"
                     "vpstt\n\t"
                     "vldrbt.8 %q[v], [%[row]]\n\t"
                     "vstrbt.8 %q[v], [%[to], %q[at]]\n\t"
                     "vmsr p0, %[predicate]"
                     : [row] "+r"(row), [to] "+r"(to), [predicate] "=&r"(predicate), [v] "=&w"(v)
                     : [at] "w"(at), [whole] "r"(whole), [rest] "r"(values - whole * count), [count] "r"(count),
                       [next] "r"(places->next)
                     : "lr", "memory");
#else
    for (; values > 0; values -= count, row += count, to += places->next) {
        for (int32_t i = 0; i < count && i < values; i++) {
            to[places->at[i]] = row[i];
        }
    }
#endif
}

#endif
