/* int8 values times weights of four bits, which stay packed; requantised to int8.
 *
 * A half word has the weights of four channels for one value: nibbles w0 + 8, w1 + 8, w2 + 8 and w3, of two's
 * complement. As an integer of 16 bits the half is p = 4096 w3 + 256 u2 + 16 u1 + u0. Its lower byte is 16 u1 + u0; of
 * both, the even nibbles alone are 256 u2 + u0 and u0. So four sums of products with parts of a word give those of four
 * channels by differences and shifts, less 8 times the sum of the values; three instructions take a word of eight
 * weights apart. All is computed modulo 2^32. The sums of a word's last channel fit 20 bits, those of u2 24 bits: the
 * code generator has checked the layer.
 *
 * A word has values 0 and 2 of a group of four, the next word values 1 and 3. A record is words [groups][2], and
 * int32_t biases and factors of four channels; channels that are missing have weights of 0. */
#ifndef MCUD_S4W_H
#define MCUD_S4W_H

#include "mcud_dot_s8.h"

/* Words of the records of some channels. */
static inline int32_t mcud_words_s4w(int32_t channels, int32_t groups)
{
    return (channels + 3) / 4 * (4 + 4 * MCUD_FACTORS + 2 * groups);
}

/* x[groups] of 2 expanded pixels, of which the first one may be alone -> y[pixels][channels], `pitch` apart */
void mcud_multiply_s4w(const mcud_channels_s8 *to, const int16_t *x, int32_t pixels, int8_t *y);

/* x[values], a multiple of four -> y[channels]; returns the record after those used. */
const int32_t *mcud_pixel_s4w(const mcud_finish_s8 *to, const int32_t *record, int32_t channels, const int8_t *x,
                              int32_t values, int8_t *y);

#endif
