/* mcud_lanes_s8.h with RISC-V vector instructions.
 *
 * Sums of one to three pixels are in v8, v16 and v24, eight registers each; v0-v7 hold values, weights or multipliers.
 * Products are of 16 bits by 16 bits: int8 values are widened once, then multiplied by an int8 value in a scalar
 * register, or by those of another vector. */
#ifndef MCUD_LANES_RVV_H
#define MCUD_LANES_RVV_H

/* A line of assembler for each pixel; `i` is a number in the line. */
#define MCUD_OF_1(line, i) line("v8", "x0", "t0", "y0", i)
#define MCUD_OF_2(line, i) MCUD_OF_1(line, i) line("v16", "x1", "t1", "y1", i)
#define MCUD_OF_3(line, i) MCUD_OF_2(line, i) line("v24", "x2", "t2", "y2", i)

#define MCUD_BIAS(sum, x, t, y, i) "vle32.v " sum ", (%[bias])\n\t"
#define MCUD_VALUE(sum, x, t, y, i) "lb %[" t "], " i "(%[" x "])\n\t"
#define MCUD_NEXT(sum, x, t, y, i) "addi %[" x "], %[" x "], " i "\n\t"
#define MCUD_MULTIPLY(sum, x, t, y, i) "vwmacc.vx " sum ", %[" t "], v4\n\t"
/* Value i of each pixel times the next weights. */
#define MCUD_VALUES(of, i)                                                                                   \
    of(MCUD_VALUE, i)                                                                                        \
    "vle8.v v6, (%[w])\n\t"                                                                                  \
    "add %[w], %[w], %[pitch]\n\t"                                                                           \
    "vsext.vf2 v4, v6\n\t"                                                                                   \
    of(MCUD_MULTIPLY, "")

/* Sums become results as mcud_requantize_s8 states: zero_point + floor((p + 2^31) / 2^32), where p = sum * 2^left *
 * multiplier. Sums are doubled `left` times, which saturates. All roundings are down (vxrm is 2): vsmul computes
 * floor(p / 2^31), to which 2 * zero_point + 1 is added; half of that is the result. */
#define MCUD_DOUBLE(sum, x, t, y, i) "vsadd.vv " sum ", " sum ", " sum "\n\t"
#define MCUD_SCALE(sum, x, t, y, i) "vsmul.vv " sum ", " sum ", v0\n\t"
#define MCUD_SHIFT(sum, x, t, y, i) "vsadd.vx " sum ", " sum ", %[zero]\n\t"
#define MCUD_NARROW(sum, x, t, y, i) "vnclip.wi " sum ", " sum ", " i "\n\t"
#define MCUD_STORE(sum, x, t, y, i) "vse8.v " sum ", (%[" y "])\n\t"
#define MCUD_FINISH(of)                                                                                      \
    "vsetvli zero, zero, e32, m8, ta, ma\n\t"                                                                \
    "vle32.v v0, (%[multipliers])\n\t"                                                                       \
    "csrwi vxrm, 2\n\t"                                                                                      \
    "mv %[t0], %[left]\n\t"                                                                                  \
    "beqz %[t0], 3f\n"                                                                                       \
    "2:\n\t"                                                                                                 \
    of(MCUD_DOUBLE, "")                                                                                      \
    "addi %[t0], %[t0], -1\n\t"                                                                              \
    "bnez %[t0], 2b\n"                                                                                       \
    "3:\n\t"                                                                                                 \
    of(MCUD_SCALE, "") of(MCUD_SHIFT, "")                                                                    \
    "vsetvli zero, zero, e16, m4, ta, ma\n\t"                                                                \
    of(MCUD_NARROW, "1")                                                                                     \
    "vsetvli zero, zero, e8, m2, ta, ma\n\t"                                                                 \
    of(MCUD_NARROW, "0") of(MCUD_STORE, "")

/* All values of the pixels that `of` names, four at a time. */
#define MCUD_DEPTH(of)                                                                                       \
    "vsetvli zero, zero, e16, m4, ta, ma\n\t"                                                                \
    "beq %[x0], %[fours], 5f\n"                                                                              \
    "4:\n\t"                                                                                                 \
    MCUD_VALUES(of, "0") MCUD_VALUES(of, "1") MCUD_VALUES(of, "2") MCUD_VALUES(of, "3")                      \
    of(MCUD_NEXT, "4")                                                                                       \
    "bne %[x0], %[fours], 4b\n\t"                                                                            \
    "beq %[x0], %[end], 6f\n"                                                                                \
    "5:\n\t"                                                                                                 \
    MCUD_VALUES(of, "0")                                                                                     \
    of(MCUD_NEXT, "1")                                                                                       \
    "bne %[x0], %[end], 5b\n"                                                                                \
    "6:\n\t"

/* Results of the pixels that `of` names, for as many channels as sums have lanes; `vl` becomes that number. */
#define MCUD_PIXELS(of)                                                                                      \
    __asm__ volatile("vsetvli %[vl], %[channels], e32, m8, ta, ma\n\t"                                       \
                     of(MCUD_BIAS, "") MCUD_DEPTH(of) MCUD_FINISH(of)                                        \
                     : [vl] "=&r"(vl), [w] "+&r"(w), [x0] "+&r"(x0), [x1] "+&r"(x1), [x2] "+&r"(x2),         \
                       [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2)                                        \
                     : [channels] "r"(channels), [bias] "r"(bias), [multipliers] "r"(multipliers),           \
                       [pitch] "r"(to->channels), [fours] "r"(x[0] + (to->depth & ~3)),                      \
                       [end] "r"(x[0] + to->depth), [left] "r"(to->finish.left),                             \
                       [zero] "r"(2 * to->finish.zero_point + 1), [y0] "r"(y), [y1] "r"(y + to->pitch),      \
                       [y2] "r"(y + 2 * to->pitch)                                                           \
                     : MCUD_RVV_CHANGED)

/* Multiplies `count` pixels x[depth], 1 to 3, to y[count][channels], whose pixels are `pitch` apart. */
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

/* sums[channels] += x[values] . w[values][channels] */
static inline void mcud_lanes_add(const mcud_vector_channels *to, const int8_t *x, int32_t values, const int8_t *w,
                                  int32_t *sums)
{
    int32_t vl;
    for (int32_t channels = to->channels; channels > 0; channels -= vl, sums += vl, w += vl) {
        const int8_t *x0 = x;
        const int8_t *next = w;
        int32_t t0;
        __asm__ volatile("vsetvli %[vl], %[channels], e32, m8, ta, ma\n\t"
                         MCUD_OF_1(MCUD_BIAS, "") MCUD_DEPTH(MCUD_OF_1)
                         "vsetvli zero, zero, e32, m8, ta, ma\n\t"
                         "vse32.v v8, (%[bias])"
                         : [vl] "=&r"(vl), [w] "+&r"(next), [x0] "+&r"(x0), [t0] "=&r"(t0)
                         : [channels] "r"(channels), [bias] "r"(sums), [pitch] "r"(to->channels),
                           [fours] "r"(x + (values & ~3)), [end] "r"(x + values)
                         : MCUD_RVV_CHANGED);
    }
}

/* Requantises sums[channels] to y[channels]. */
static inline void mcud_lanes_finish(const mcud_vector_channels *to, const int32_t *sums, int8_t *y)
{
    const int32_t *multipliers = to->records + to->channels;
    int32_t vl;
    for (int32_t channels = to->channels; channels > 0; channels -= vl, sums += vl, multipliers += vl, y += vl) {
        int32_t t0;
        __asm__ volatile("vsetvli %[vl], %[channels], e32, m8, ta, ma\n\t"
                         MCUD_OF_1(MCUD_BIAS, "") MCUD_FINISH(MCUD_OF_1)
                         : [vl] "=&r"(vl), [t0] "=&r"(t0)
                         : [channels] "r"(channels), [bias] "r"(sums), [multipliers] "r"(multipliers),
                           [left] "r"(to->finish.left), [zero] "r"(2 * to->finish.zero_point + 1), [y0] "r"(y)
                         : MCUD_RVV_CHANGED);
    }
}

/* At a tap: values of the windows that `of` names, times the weights of their channels. */
#define MCUD_TAP(sum, x, t, y, i)                                                                            \
    "vle8.v v2, (%[t0])\n\t"                                                                                 \
    "add %[t0], %[t0], %[step]\n\t"                                                                          \
    "vsext.vf2 v0, v2\n\t"                                                                                   \
    "vwmacc.vv " sum ", v0, v4\n\t"
#define MCUD_WINDOWS(of)                                                                                     \
    __asm__ volatile("vsetvli %[vl], %[channels], e32, m8, ta, ma\n\t"                                       \
                     of(MCUD_BIAS, "")                                                                       \
                     "vsetvli zero, zero, e16, m4, ta, ma\n"                                                 \
                     "1:\n\t"                                                                                \
                     "lw %[t0], 0(%[tap])\n\t"                                                               \
                     "vle8.v v6, (%[w])\n\t"                                                                 \
                     "add %[t0], %[t0], %[at]\n\t"                                                           \
                     "vsext.vf2 v4, v6\n\t"                                                                  \
                     "addi %[tap], %[tap], 4\n\t"                                                            \
                     "add %[w], %[w], %[lanes]\n\t"                                                          \
                     of(MCUD_TAP, "")                                                                        \
                     "bne %[tap], %[end], 1b\n\t"                                                            \
                     MCUD_FINISH(of)                                                                         \
                     : [vl] "=&r"(vl), [w] "+&r"(w), [tap] "+&r"(tap), [t0] "=&r"(t0)                        \
                     : [channels] "r"(channels), [bias] "r"(bias), [multipliers] "r"(multipliers),           \
                       [lanes] "r"(by->lanes), [end] "r"(windows->taps + windows->tap_count), [at] "r"(at),  \
                       [step] "r"(windows->step), [left] "r"(by->finish.left),                               \
                       [zero] "r"(2 * by->finish.zero_point + 1), [y0] "r"(out), [y1] "r"(out + windows->channels), \
                       [y2] "r"(out + 2 * windows->channels)                                                 \
                     : MCUD_RVV_CHANGED)

/* Multiplies the first windows->channels channels of a record, each with its input channel, to y[windows][channels]. */
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
