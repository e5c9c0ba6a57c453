/* mcud_lines_s8.h by the M-profile Vector Extension. */
#ifndef MCUD_LINES_MVE_H
#define MCUD_LINES_MVE_H

#include <arm_mve.h>

static inline void mcud_interleave_lines(int8_t *to, int32_t line, int32_t height, const mcud_two_rows *rows)
{
    const uint16x8_t even = vmulq_n_u16(vidupq_n_u16(0, 2), (uint16_t)line);
    const uint16x8_t odd = vaddq_n_u16(even, (uint16_t)line);
    const int8_t *upper = rows->at[0];
    const int8_t *lower = rows->at[1];
    int32_t columns = rows->columns; /* then the predicate that is put back, since a clobbered one cannot be named */
    uint16x8_t a;
    uint16x8_t b;
    uint16x8_t c;
    __asm__ volatile("mov lr, %[columns]\n\t"
                     "vmrs %[columns], p0\n\t"
                     "vctp.8 %[channels]\n\t" /* pairs of bytes, as channels are even */
                     "wls lr, lr, 2f\n"
                     "1:\n\t"
                     "vpstt\n\t"
                     "vldrbt.8 %q[a], [%[upper]]\n\t"
                     "vldrbt.8 %q[b], [%[lower]]\n\t"
                     "vmov %q[c], %q[a]\n\t"
                     "add %[upper], %[upper], %[step]\n\t"
                     "vsli.16 %q[c], %q[b], #8\n\t"
                     "add %[lower], %[lower], %[lower_step]\n\t"
                     "vsri.16 %q[b], %q[a], #8\n\t"
                     "vpstt\n\t"
                     "vstrht.16 %q[c], [%[to], %q[even]]\n\t"
                     "vstrht.16 %q[b], [%[to], %q[odd]]\n\t"
                     "add %[to], %[to], %[height]\n\t"
                     "le lr, 1b\n"
                     "2:\n\t"
                     "vmsr p0, %[columns]"
                     : [to] "+&r"(to), [upper] "+&r"(upper), [lower] "+&r"(lower), [columns] "+&r"(columns),
                       [a] "=&w"(a), [b] "=&w"(b), [c] "=&w"(c)
                     : [height] "r"(height), [step] "r"(rows->step[0]), [lower_step] "r"(rows->step[1]),
                       [channels] "r"(rows->channels), [even] "w"(even), [odd] "w"(odd)
                     : "lr", "memory");
}

/* The weights of a window, or of two windows of two vectors each. */
typedef struct {
    int8x16_t a;
    int8x16_t b;
    int8x16_t c;
    int8x16_t d;
} mcud_line_weights;

/* A row of outputs of a channel, or two rows. */
typedef struct {
    const int8_t *x;
    int8_t *y;
    const int32_t *record;
} mcud_line_row;

/* Rows by steps of four outputs: of four columns, or of two by two rows. */
typedef struct {
    uint32x4_t places;
    int32_t row;   /* to the second row, 0 if there is only one */
    int32_t whole;
    int32_t next;  /* from a step's results to the next one's */
    int32_t back;  /* columns that a last step, which ends where the row does, has with the one before it; 0: there is none */
} mcud_line_steps;

static inline mcud_line_steps mcud_steps_of_lines(const mcud_lines_outputs *of, int32_t row)
{
    const int32_t columns = row != 0 ? 2 : 4;
    const uint32_t second = (uint32_t)(row != 0 ? row : of->pitch);
    const uint32_t third = (uint32_t)(row != 0 ? of->pitch : 2 * of->pitch);
    const uint32x4_t places = {0, second, third, third + second};
    const mcud_line_steps steps = {places, row, of->outputs / columns, columns * of->pitch, -of->outputs & (columns - 1)};
    return steps;
}

#if MCUD_BLOCKS && !defined(__clang__)

#define MCUD_LINE_SUM_2(sum)                                                                                 \
    "vldrb.8 %q[u], [%[x]]\n\t"                                                                              \
    "vmladav.s8 %[" sum "], %q[u], %q[wa]\n\t"                                                               \
    "vldrb.8 %q[t], [%[x], #16]\n\t"                                                                         \
    "vmladava.s8 %[" sum "], %q[t], %q[wb]\n\t"
#define MCUD_LINE_SUM_4(sum)                                                                                 \
    MCUD_LINE_SUM_2(sum)                                                                                     \
    "vldrb.8 %q[u], [%[x], #32]\n\t"                                                                         \
    "vmladava.s8 %[" sum "], %q[u], %q[wc]\n\t"                                                              \
    "vldrb.8 %q[t], [%[x], #48]\n\t"                                                                         \
    "vmladava.s8 %[" sum "], %q[t], %q[wd]\n\t"
#define MCUD_LINE_SUMS(one) one("s0") one("s1") one("s2") one("s3")
#define MCUD_LINE_SUM_TWO_ROWS(upper, lower)                                                                 \
    "vldrb.8 %q[u], [%[x]]\n\t"                                                                              \
    "vmladav.s8 %[" upper "], %q[u], %q[wa]\n\t"                                                             \
    "vldrb.8 %q[t], [%[x], #16]\n\t"                                                                         \
    "vmladav.s8 %[" lower "], %q[u], %q[wc]\n\t"                                                             \
    "vmladava.s8 %[" upper "], %q[t], %q[wb]\n\t"                                                            \
    "add %[x], %[x], %[step]\n\t"                                                                            \
    "vmladava.s8 %[" lower "], %q[t], %q[wd]\n\t"
#define MCUD_LINE_NEXT(sum) "add %[x], %[x], %[step]\n\t"
#define MCUD_LINE_ONE_OF_2(sum) MCUD_LINE_SUM_2(sum) MCUD_LINE_NEXT(sum)
#define MCUD_LINE_ONE_OF_4(sum) MCUD_LINE_SUM_4(sum) MCUD_LINE_NEXT(sum)

/* Steps of four outputs: `sums` makes them, in the order of `places`. */
#define MCUD_LINE_STEPS(sums)                                                                                \
    __asm__ volatile("wls lr, %[s0], 2f\n"                                                                   \
                     "1:\n\t" sums                                                                           \
                     "vmov %q[t][2], %q[t][0], %[s0], %[s2]\n\t"                                             \
                     "vmov %q[t][3], %q[t][1], %[s1], %[s3]\n\t"                                             \
                     "vadd.i32 %q[t], %q[t], %[bias]\n\t"                                                    \
                     MCUD_IF_TWICE("vqrdmulh.s32 %q[t], %q[t], %[first]\n\t")                                \
                     "vrmulh.s32 %q[t], %q[t], %q[last]\n\t"                                                 \
                     "vadd.i32 %q[t], %q[t], %[zero]\n\t"                                                    \
                     "vqmovnb.s32 %q[t], %q[t]\n\t"                                                          \
                     "vqmovnb.s16 %q[t], %q[t]\n\t"                                                          \
                     "vstrb.32 %q[t], [%[y], %q[places]]\n\t"                                                \
                     "add %[y], %[y], %[next]\n\t"                                                           \
                     "le lr, 1b\n"                                                                           \
                     "2:"                                                                                    \
                     : [x] "+r"(x), [y] "+r"(y), [s0] "+Te"(s0), [s1] "=&Te"(s1), [s2] "=&Te"(s2),           \
                       [s3] "=&Te"(s3), [t] "=&w"(t), [u] "=&w"(u)                                           \
                     : [step] "r"(step), [next] "r"(next), [bias] "r"(bias), [zero] "r"(zero),               \
                       MCUD_IF_TWICE([first] "r"(row->record[1]) MCUD_COMMA) [last] "w"(last),               \
                       [places] "w"(places), [wa] "w"(w->a), [wb] "w"(w->b), [wc] "w"(w->c), [wd] "w"(w->d)  \
                     : "lr", "memory")
#define MCUD_COMMA ,

static inline void mcud_line_outputs(const mcud_lines_outputs *of, const mcud_line_steps *by, const mcud_line_row *row,
                                     const mcud_line_weights *w, int32_t vectors)
{
    const uint32x4_t places = by->places;
    const int32x4_t last = vdupq_n_s32(row->record[MCUD_FACTORS]);
    const int32_t step = of->step;
    const int32_t next = by->next;
    const int32_t bias = row->record[0];
    const int32_t zero = of->zero_point;
    const int8_t *x = row->x;
    int8_t *y = row->y;
    int32_t back = by->back;
    int32_t s0 = by->whole; /* first the number of steps */
    int32_t s1;
    int32_t s2;
    int32_t s3;
    int32x4_t t;
    int8x16_t u;
    for (;; back = 0, s0 = 1) {
        if (by->row != 0) {
            MCUD_LINE_STEPS(MCUD_LINE_SUM_TWO_ROWS("s0", "s1") MCUD_LINE_SUM_TWO_ROWS("s2", "s3"));
        } else if (vectors == 2) {
            MCUD_LINE_STEPS(MCUD_LINE_SUMS(MCUD_LINE_ONE_OF_2));
        } else {
            MCUD_LINE_STEPS(MCUD_LINE_SUMS(MCUD_LINE_ONE_OF_4));
        }
        if (back == 0) {
            return;
        }
        x -= back * step;
        y -= back * of->pitch;
    }
}

#else

static inline void mcud_line_outputs(const mcud_lines_outputs *of, const mcud_line_steps *by, const mcud_line_row *row,
                                     const mcud_line_weights *w, int32_t vectors)
{
    const mcud_finish_s8 finish = {of->zero_point, 0, 0};
    const int8_t *x = row->x;
    int8_t *y = row->y;
    for (int32_t col = of->outputs; col > 0; col--, x += of->step, y += of->pitch) {
        int32_t sum = vmladavaq_s8(row->record[0], vldrbq_s8(x), w->a);
        sum = vmladavaq_s8(sum, vldrbq_s8(x + 16), w->b);
        if (vectors > 2) {
            sum = vmladavaq_s8(sum, vldrbq_s8(x + 32), w->c);
            sum = vmladavaq_s8(sum, vldrbq_s8(x + 48), w->d);
        }
        *y = MCUD_RESULT_BY_VECTORS(sum, row->record + 1, 1, &finish);
        if (by->row != 0) {
            sum = vmladavaq_s8(row->record[0], vldrbq_s8(x), w->c);
            sum = vmladavaq_s8(sum, vldrbq_s8(x + 16), w->d);
            y[by->row] = MCUD_RESULT_BY_VECTORS(sum, row->record + 1, 1, &finish);
        }
    }
}

#endif

static inline void mcud_lines_s8(const mcud_lines_outputs *of, int32_t vectors)
{
    const int32_t at_once = vectors == 2 ? of->rows : 1;
    const mcud_line_steps by = mcud_steps_of_lines(of, at_once == 2 ? of->row : 0);
    mcud_line_row row = {.record = of->records};
    for (int32_t k = 0; k < of->channels; k++) {
        const int8_t *const from = (const int8_t *)(row.record + 1 + MCUD_FACTORS);
        uint32_t carry = 0;
        mcud_line_weights w = {.a = vldrbq_s8(from), .b = vldrbq_s8(from + 16)};
        if (vectors == 2) { /* those of the second row */
            w.c = vshlcq_s8(w.a, &carry, 8);
            w.d = vshlcq_s8(w.b, &carry, 8);
        } else {
            w.c = vldrbq_s8(from + 32);
            w.d = vldrbq_s8(from + 48);
        }
        row.x = of->x + k * of->line;
        row.y = of->y + k;
        for (int32_t left = of->rows; left > 0; left -= at_once) {
            mcud_line_outputs(of, &by, &row, &w, vectors);
            if (left > at_once) {
                w.a = vshlcq_s8(w.a, &carry, 8);
                w.b = vshlcq_s8(w.b, &carry, 8);
                w.c = vshlcq_s8(w.c, &carry, 8);
                w.d = vshlcq_s8(w.d, &carry, 8);
                row.y += of->row;
            }
        }
        row.record += 1 + MCUD_FACTORS + 4 * vectors;
    }
}

#endif
