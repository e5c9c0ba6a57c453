/* mcud_lanes_s8.h by RISC-V's vectors of integers.
 *
 * Sums of one to three pixels are in v8, v16 and v24, eight registers each; v0-v7 hold values, weights and multipliers
 * in turn. Products are of 16 bits by 16 bits: int8 values are widened once, then multiplied by an int8 value in a
 * scalar register, or by those of another vector. */
#ifndef MCUD_LANES_RVV_H
#define MCUD_LANES_RVV_H

/* A line of assembler for each pixel. */
#define MCUD_OF_1(line) line("v8", "x0", "t0", "y0")
#define MCUD_OF_2(line) MCUD_OF_1(line) line("v16", "x1", "t1", "y1")
#define MCUD_OF_3(line) MCUD_OF_2(line) line("v24", "x2", "t2", "y2")

#define MCUD_BIAS(sum, x, t, y) "vle32.v " sum ", (%[bias])\n\t"
#define MCUD_VALUE(sum, x, t, y) "lb %[" t "], 0(%[" x "])\n\t"
#define MCUD_NEXT(sum, x, t, y) "addi %[" x "], %[" x "], 1\n\t"
#define MCUD_MULTIPLY(sum, x, t, y) "vwmacc.vx " sum ", %[" t "], v4\n\t"

/* Sums become results as mcud_requantize_s8 states. They are doubled to the left, which saturates. Then vsmul, which
 * rounds down here, halves less than the multiplication by 2^-32 does, and the second half is rounded up by the 1 that
 * `zero` has beside twice the zero point. */
#define MCUD_DOUBLE(sum, x, t, y) "vsadd.vv " sum ", " sum ", " sum "\n\t"
#define MCUD_SCALE(sum, x, t, y) "vsmul.vv " sum ", " sum ", v0\n\t"
#define MCUD_SHIFT(sum, x, t, y) "vsadd.vx " sum ", " sum ", %[zero]\n\t"
#define MCUD_HALVE(sum, x, t, y) "vnclip.wi " sum ", " sum ", 1\n\t"
#define MCUD_NARROW(sum, x, t, y) "vnclip.wi " sum ", " sum ", 0\n\t"
#define MCUD_STORE(sum, x, t, y) "vse8.v " sum ", (%[" y "])\n\t"
#define MCUD_FINISH(of)                                                                                      \
    "vsetvli zero, zero, e32, m8, ta, ma\n\t"                                                                \
    "vle32.v v0, (%[multipliers])\n\t"                                                                       \
    "csrwi vxrm, 2\n\t"                                                                                      \
    "mv %[t0], %[left]\n\t"                                                                                  \
    "beqz %[t0], 3f\n"                                                                                       \
    "2:\n\t"                                                                                                 \
    of(MCUD_DOUBLE)                                                                                          \
    "addi %[t0], %[t0], -1\n\t"                                                                              \
    "bnez %[t0], 2b\n"                                                                                       \
    "3:\n\t"                                                                                                 \
    of(MCUD_SCALE) of(MCUD_SHIFT)                                                                            \
    "vsetvli zero, zero, e16, m4, ta, ma\n\t"                                                                \
    of(MCUD_HALVE)                                                                                           \
    "vsetvli zero, zero, e8, m2, ta, ma\n\t"                                                                 \
    of(MCUD_NARROW) of(MCUD_STORE)

/* All values of as many pixels, by as many channels as sums have lanes; `vl` becomes their number. */
#define MCUD_PIXELS(of)                                                                                      \
    __asm__ volatile("vsetvli %[vl], %[channels], e32, m8, ta, ma\n\t"                                       \
                     of(MCUD_BIAS)                                                                           \
                     "vsetvli zero, zero, e16, m4, ta, ma\n"                                                 \
                     "1:\n\t"                                                                                \
                     of(MCUD_VALUE)                                                                          \
                     "vle8.v v6, (%[w])\n\t"                                                                 \
                     of(MCUD_NEXT)                                                                           \
                     "add %[w], %[w], %[pitch]\n\t"                                                          \
                     "vsext.vf2 v4, v6\n\t"                                                                  \
                     of(MCUD_MULTIPLY)                                                                       \
                     "bne %[x0], %[end], 1b\n\t"                                                             \
                     MCUD_FINISH(of)                                                                         \
                     : [vl] "=&r"(vl), [w] "+&r"(w), [x0] "+&r"(x0), [x1] "+&r"(x1), [x2] "+&r"(x2),            \
                       [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2)                                        \
                     : [channels] "r"(channels), [bias] "r"(bias), [multipliers] "r"(multipliers),           \
                       [pitch] "r"(to->channels), [end] "r"(x[0] + to->depth), [left] "r"(to->finish.left),  \
                       [zero] "r"(2 * to->finish.zero_point + 1), [y0] "r"(y), [y1] "r"(y + to->pitch),      \
                       [y2] "r"(y + 2 * to->pitch)                                                           \
                     : MCUD_RVV_CHANGED)

/* `count` pixels, 1 to 3, of x[depth] each -> y[count][channels], `pitch` apart */
static inline void mcud_lanes_pixels(const mcud_vector_channels *to, const int8_t *const x[3], int32_t count,
                                     int8_t *y)
{
    const int32_t *bias = to->records;
    const int32_t *multipliers = bias + to->channels;
    const int8_t *weights = (const int8_t *)(multipliers + to->channels);
    int32_t vl;
    for (int32_t channels = to->channels; channels > 0; channels -= vl) {
        const int8_t *w = weights;
        const int8_t *x0 = x[0];
        const int8_t *x1 = count > 1 ? x[1] : x0;
        const int8_t *x2 = count > 2 ? x[2] : x0;
        int32_t t0;
        int32_t t1;
        int32_t t2;
        if (count == 3) {
            MCUD_PIXELS(MCUD_OF_3);
        } else if (count == 2) {
            MCUD_PIXELS(MCUD_OF_2);
        } else {
            MCUD_PIXELS(MCUD_OF_1);
        }
        bias += vl;
        multipliers += vl;
        weights += vl;
        y += vl;
    }
}

/* At a tap, values of as many windows, by the weights of their channels. */
#define MCUD_TAP(sum, x, t, y)                                                                               \
    "vle8.v v2, (%[t0])\n\t"                                                                                 \
    "add %[t0], %[t0], %[step]\n\t"                                                                          \
    "vsext.vf2 v0, v2\n\t"                                                                                   \
    "vwmacc.vv " sum ", v0, v4\n\t"
#define MCUD_WINDOWS(of)                                                                                     \
    __asm__ volatile("vsetvli %[vl], %[channels], e32, m8, ta, ma\n\t"                                       \
                     of(MCUD_BIAS)                                                                           \
                     "vsetvli zero, zero, e16, m4, ta, ma\n"                                                 \
                     "1:\n\t"                                                                                \
                     "lw %[t0], 0(%[tap])\n\t"                                                               \
                     "vle8.v v6, (%[w])\n\t"                                                                 \
                     "add %[t0], %[t0], %[at]\n\t"                                                           \
                     "vsext.vf2 v4, v6\n\t"                                                                  \
                     "addi %[tap], %[tap], 4\n\t"                                                            \
                     "add %[w], %[w], %[lanes]\n\t"                                                          \
                     of(MCUD_TAP)                                                                            \
                     "bne %[tap], %[end], 1b\n\t"                                                            \
                     MCUD_FINISH(of)                                                                         \
                     : [vl] "=&r"(vl), [w] "+&r"(w), [tap] "+&r"(tap), [t0] "=&r"(t0)                          \
                     : [channels] "r"(channels), [bias] "r"(bias), [multipliers] "r"(multipliers),           \
                       [lanes] "r"(by->lanes), [end] "r"(windows->taps + windows->tap_count), [at] "r"(at),  \
                       [step] "r"(windows->step), [left] "r"(by->finish.left),                               \
                       [zero] "r"(2 * by->finish.zero_point + 1), [y0] "r"(out), [y1] "r"(out + windows->channels), \
                       [y2] "r"(out + 2 * windows->channels)                                                      \
                     : MCUD_RVV_CHANGED)

/* The first channels of a record, each by its own input channel -> y[windows][channels] */
static inline void mcud_lanes_taps(const mcud_windows_alike *windows, const mcud_lanes_depthwise *by, int8_t *y)
{
    int32_t left = windows->count;
    for (int32_t first = windows->at; left > 0;) {
        const int32_t count = mcud_vector_next_pixels(left, 3);
        const int32_t *bias = by->record;
        const int32_t *multipliers = bias + by->lanes;
        const int8_t *weights = (const int8_t *)(multipliers + by->lanes);
        int8_t *out = y;
        int32_t at = first;
        int32_t vl;
        for (int32_t channels = windows->channels; channels > 0; channels -= vl) {
            const int8_t *const *tap = windows->taps;
            const int8_t *w = weights;
            int32_t t0;
            if (count == 3) {
                MCUD_WINDOWS(MCUD_OF_3);
            } else if (count == 2) {
                MCUD_WINDOWS(MCUD_OF_2);
            } else {
                MCUD_WINDOWS(MCUD_OF_1);
            }
            bias += vl;
            multipliers += vl;
            weights += vl;
            out += vl;
            at += vl;
        }
        first += count * windows->step;
        y += count * windows->channels;
        left -= count;
    }
}

#endif
