/* mcud_four_rows_s8.h by instructions of the M-profile Vector Extension. */
#ifndef MCUD_FOUR_ROWS_MVE_H
#define MCUD_FOUR_ROWS_MVE_H

MCUD_NAKED static void mcud_interleave_rows(MCUD_UNUSED int8_t *to, MCUD_UNUSED const mcud_rows_of_four *rows,
                                            MCUD_UNUSED int32_t columns)
{
    __asm__(
        "push {r4-r10, lr}\n\t"
        "ldm r1, {r3-r10, r12}\n\t"
        "vctp.8 r12\n\t"
        "wls lr, r2, 2f\n"
        "1:\n\t"
        "vpstttt\n\t"
        "vldrbt.8 q0, [r3]\n\t"
        "vldrbt.8 q1, [r4]\n\t"
        "vldrbt.8 q2, [r5]\n\t"
        "vldrbt.8 q3, [r6]\n\t"
        "add r3, r3, r7\n\t"
        "vst40.8 {q0, q1, q2, q3}, [r0]\n\t"
        "add r4, r4, r8\n\t"
        "vst41.8 {q0, q1, q2, q3}, [r0]\n\t"
        "add r5, r5, r9\n\t"
        "vst42.8 {q0, q1, q2, q3}, [r0]\n\t"
        "add r6, r6, r10\n\t"
        "vst43.8 {q0, q1, q2, q3}, [r0]!\n\t"
        "le lr, 1b\n"
        "2:\n\t"
        "pop {r4-r10, pc}\n\t");
}

/* The parameters of the assembler functions, which know the order of the fields. A step is four outputs: of two columns
 * by two rows, or of four columns. */
typedef struct {
    uint32_t places[4]; /* of the outputs of a step */
    uint16_t pairs[8];  /* of the outputs of two steps, alternating */
    const int8_t *x;    /* 128 bytes before the first column */
    const int32_t *records;
    int8_t *y;
    int32_t channels;
    int32_t blocks;
    int32_t steps;       /* whole ones in a row after `twos` */
    int32_t rest;        /* outputs of a last step, 0..4; minus 8 if whole steps precede it */
    int32_t pitch;       /* from a step's results to the next one's */
    int32_t zero_point;
    int32_t shift;       /* 8 for a second row, otherwise 0 */
    int32_t next_block;  /* from the end of a block of x to the next one */
    int32_t next_y;
    int32_t next_channel; /* from the end of the blocks to those of the next channel */
    int32_t twos;         /* pairs of steps */
} mcud_four_steps;

/* Four sums in r0, r2, r4 and r6 to results, stored by `store`. r1 y, r7 zero point, r8 pitch, r10 bias, q4 multiplier,
 * q7 places. Rounded twice, r9 multiplier, q4 power of two. */
#define MCUD_FOUR_RESULTS(store)                                                                             \
    "vmov q6[2], q6[0], r0, r4\n\t"                                                                          \
    "vmov q6[3], q6[1], r2, r6\n\t"                                                                          \
    "vadd.i32 q6, q6, r10\n\t" MCUD_IF_TWICE("vqrdmulh.s32 q6, q6, r9\n\t")                                 \
    "vrmulh.s32 q6, q6, q4\n\t"                                                                              \
    "vadd.i32 q6, q6, r7\n\t"                                                                                \
    "vqmovnb.s32 q6, q6\n\t"                                                                                 \
    "vqmovnb.s16 q6, q6\n\t" store                                                                           \
    "add r1, r1, r8\n\t"

/* The sums of two steps, the first ones in q7 with their bias, to results. */
#define MCUD_EIGHT_RESULTS                                                                                   \
    "vmov q6[2], q6[0], r0, r4\n\t"                                                                          \
    "vrmulh.s32 q7, q7, q4\n\t"                                                                              \
    "vmov q6[3], q6[1], r2, r6\n\t"                                                                          \
    "vadd.i32 q6, q6, r10\n\t" MCUD_IF_TWICE("vqrdmulh.s32 q6, q6, r9\n\t")                                 \
    "vrmulh.s32 q6, q6, q4\n\t"                                                                              \
    "vqmovnb.s32 q7, q7\n\t"                                                                                 \
    "vqmovnt.s32 q7, q6\n\t"                                                                                 \
    "vqadd.s16 q7, q7, r7\n\t"                                                                               \
    "vldrw.u32 q6, [r11, #16]\n\t"                                                                           \
    "vqmovnb.s16 q7, q7\n\t"                                                                                 \
    "vstrb.16 q7, [r1, q6]\n\t"                                                                              \
    "add r1, r1, r8, lsl #1\n\t"

/* Two steps of two rows. */
#define MCUD_TWO_STEPS_OF_TWO                                                                                \
    "vldrw.u32 q6, [q5, #128]!\n\t"                                                                          \
    "vmladav.s8 r0, q6, q0\n\t"                                                                              \
    "vmladav.s8 r4, q6, q2\n\t"                                                                              \
    "vmladav.s8 r2, q6, q1\n\t"                                                                              \
    "vmladav.s8 r6, q6, q3\n\t"                                                                              \
    "vldrw.u32 q6, [q5, #128]!\n\t"                                                                          \
    "vmov q7[2], q7[0], r0, r4\n\t"                                                                          \
    "vmladav.s8 r0, q6, q0\n\t"                                                                              \
    "vmov q7[3], q7[1], r2, r6\n\t"                                                                          \
    "vmladav.s8 r4, q6, q2\n\t"                                                                              \
    "vadd.i32 q7, q7, r10\n\t"                                                                               \
    "vmladav.s8 r2, q6, q1\n\t" MCUD_IF_TWICE("vqrdmulh.s32 q7, q7, r9\n\t")                                \
    "vmladav.s8 r6, q6, q3\n\t" MCUD_EIGHT_RESULTS
/* A step of two rows: q0 to q3 are the weights of a column's upper and lower window, then of the next column's. */
#define MCUD_STEP_OF_TWO(store)                                                                              \
    "vldrw.u32 q6, [q5, #128]!\n\t"                                                                          \
    "vmladav.s8 r0, q6, q0\n\t"                                                                              \
    "vmladav.s8 r2, q6, q1\n\t"                                                                              \
    "vmladav.s8 r4, q6, q2\n\t"                                                                              \
    "vmladav.s8 r6, q6, q3\n\t" MCUD_FOUR_RESULTS(store)
#define MCUD_WEIGHTS_OF_TWO                                                                                  \
    "ldr r4, [r11, #68]\n\t"                                                                                 \
    "movs r5, #0\n\t"                                                                                        \
    "vmov q2, q0\n\t"                                                                                        \
    "vmov q1, q0\n\t"                                                                                        \
    "vshlc q2, r5, #32\n\t"                                                                                  \
    "vshl.s32 q1, r4\n\t"                                                                                    \
    "vmov q3, q2\n\t"                                                                                        \
    "vshl.s32 q3, r4\n\t"

/* A step of one row, with a stride of 2. */
#define MCUD_STEP_OF_ONE(store)                                                                              \
    "vldrw.u32 q1, [q5, #128]!\n\t"                                                                          \
    "vmladav.s8 r0, q1, q0\n\t"                                                                              \
    "vldrw.u32 q2, [q5, #128]!\n\t"                                                                          \
    "vmladav.s8 r2, q2, q0\n\t"                                                                              \
    "vldrw.u32 q3, [q5, #128]!\n\t"                                                                          \
    "vmladav.s8 r4, q3, q0\n\t"                                                                              \
    "vldrw.u32 q6, [q5, #128]!\n\t"                                                                          \
    "vmladav.s8 r6, q6, q0\n\t" MCUD_FOUR_RESULTS(store)

/* Two steps of one row. */
#define MCUD_TWO_STEPS_OF_ONE                                                                                \
    "vldrw.u32 q1, [q5, #128]!\n\t"                                                                          \
    "vmladav.s8 r0, q1, q0\n\t"                                                                              \
    "vldrw.u32 q2, [q5, #128]!\n\t"                                                                          \
    "vmladav.s8 r2, q2, q0\n\t"                                                                              \
    "vldrw.u32 q3, [q5, #128]!\n\t"                                                                          \
    "vmladav.s8 r4, q3, q0\n\t"                                                                              \
    "vldrw.u32 q1, [q5, #128]!\n\t"                                                                          \
    "vmladav.s8 r6, q1, q0\n\t"                                                                              \
    "vldrw.u32 q2, [q5, #128]!\n\t"                                                                          \
    "vmov q7[2], q7[0], r0, r4\n\t"                                                                          \
    "vmladav.s8 r0, q2, q0\n\t"                                                                              \
    "vldrw.u32 q3, [q5, #128]!\n\t"                                                                          \
    "vmov q7[3], q7[1], r2, r6\n\t"                                                                          \
    "vmladav.s8 r2, q3, q0\n\t"                                                                              \
    "vldrw.u32 q1, [q5, #128]!\n\t"                                                                          \
    "vadd.i32 q7, q7, r10\n\t"                                                                               \
    "vmladav.s8 r4, q1, q0\n\t" MCUD_IF_TWICE("vqrdmulh.s32 q7, q7, r9\n\t")                                \
    "vldrw.u32 q2, [q5, #128]!\n\t"                                                                          \
    "vmladav.s8 r6, q2, q0\n\t" MCUD_EIGHT_RESULTS

/* Begins a record, and the loops over the steps of a row. */
#if MCUD_FACTORS == 2
#define MCUD_FOUR_RECORD_BEGIN "ldr r10, [r3]\n\tldr r4, [r3, #8]\n\tadd r3, r3, #12\n\t"
#define MCUD_TWO_STEPS_BEGIN "ldr lr, [r11, #84]\n\tldr r9, [r3, #-24]\n\twls lr, lr, 6f\n"
#else
#define MCUD_FOUR_RECORD_BEGIN "ldrd r10, r4, [r3], #8\n\t"
#define MCUD_TWO_STEPS_BEGIN "ldr r9, [r11, #84]\n\twls lr, r9, 6f\n"
#endif

/* A loop over channels and blocks. r3 records, r11 steps, r12 blocks left, q5 four columns of x. */
#define MCUD_FOUR_ROWS_OF(weights, step, two)                                                                 \
    __asm__(                                                                                                 \
        "push {r4-r11, lr}\n\t"                                                                              \
        "vpush {d8-d15}\n\t"                                                                                 \
        "mov r11, r0\n\t"                                                                                    \
        "movs r0, #0\n\t"                                                                                    \
        "vidup.u32 q5, r0, #8\n\t"                                                                           \
        "ldrd r4, r3, [r11, #32]\n\t"                                                                        \
        "vshl.i32 q5, q5, #3\n\t"                                                                            \
        "vadd.i32 q5, q5, r4\n\t"                                                                            \
        "ldrd r8, r7, [r11, #60]\n"                                                                          \
        "0:\n\t"                                                                                             \
        MCUD_FOUR_RECORD_BEGIN                                                                               \
        "vldrw.u32 q0, [r3], #16\n\t"                                                                        \
        "vdup.32 q4, r4\n\t" weights                                                                         \
        "ldr r1, [r11, #40]\n\t"                                                                             \
        "ldr r12, [r11, #48]\n"                                                                              \
        "1:\n\t"                                                                                             \
        MCUD_TWO_STEPS_BEGIN                                                                                 \
        "5:\n\t" two                                                                                         \
        "le lr, 5b\n"                                                                                        \
        "6:\n\t"                                                                                             \
        "ldr r5, [r11, #56]\n\t"                                                                             \
        "cmp r5, #0\n\t"                                                                                     \
        "beq 4f\n\t"                                                                                         \
        "vldrw.u32 q7, [r11]\n\t"                                                                            \
        "blt 7f\n"                                                                                           \
        "3:\n\t"                                                                                             \
        "vctp.32 r5\n\t" step("vpst\n\tvstrbt.32 q6, [r1, q7]\n\t")                                          \
        "4:\n\t"                                                                                             \
        "ldrd r5, r9, [r11, #72]\n\t"                                                                        \
        "vadd.i32 q5, q5, r5\n\t"                                                                            \
        "add r1, r1, r9\n\t"                                                                                 \
        "subs r12, r12, #1\n\t"                                                                              \
        "bne 1b\n\t"                                                                                         \
        "ldrd r0, r2, [r11, #40]\n\t"                                                                        \
        "ldr r5, [r11, #80]\n\t"                                                                             \
        "adds r0, r0, #1\n\t"                                                                                \
        "vadd.i32 q5, q5, r5\n\t"                                                                            \
        "subs r2, r2, #1\n\t"                                                                                \
        "strd r0, r2, [r11, #40]\n\t"                                                                        \
        "bne 0b\n\t"                                                                                         \
        "vpop {d8-d15}\n\t"                                                                                  \
        "pop {r4-r11, pc}\n"                                                                                 \
        "7:\n\t"                                                                                             \
        "ldr lr, [r11, #52]\n"                                                                               \
        "2:\n\t" step("vstrb.32 q6, [r1, q7]\n\t")                                                           \
        "le lr, 2b\n\t"                                                                                      \
        "ands r5, r5, #3\n\t"                                                                                \
        "bne 3b\n\t"                                                                                         \
        "b 4b\n\t")

MCUD_NAKED static void mcud_steps_of_two(MCUD_UNUSED mcud_four_steps *by)
{
    MCUD_FOUR_ROWS_OF(MCUD_WEIGHTS_OF_TWO, MCUD_STEP_OF_TWO, MCUD_TWO_STEPS_OF_TWO);
}

MCUD_NAKED static void mcud_steps_of_one(MCUD_UNUSED mcud_four_steps *by)
{
    MCUD_FOUR_ROWS_OF("", MCUD_STEP_OF_ONE, MCUD_TWO_STEPS_OF_ONE);
}

static inline void mcud_four_rows_s8(const mcud_four_rows_outputs *of, int32_t stride)
{
    const int32_t columns = stride == 1 ? 2 : 4; /* of outputs in a step */
    const int32_t whole = of->outputs / columns;
    const int32_t rest = of->outputs % columns;
    const int32_t taken = whole + (rest > 0);
    const int32_t block = of->columns * MCUD_FOUR_ROWS;
    const int32_t pitch = of->pitch;
    const int32_t row = of->rows == 2 ? of->row : 0; /* a single row is stored twice */
    const int32_t next = stride == 1 ? row : pitch;  /* the place of the second output */
    const int32_t third = stride == 1 ? pitch : 2 * pitch;
    const int32_t twos = third + next + columns * pitch < 0x10000 ? whole / 2 : 0;
    const int32_t alone = whole - 2 * twos == 1 && rest == 0; /* the last step is whole */
    const int32_t steps = alone != 0 ? 0 : whole - 2 * twos;
    const int32_t lanes = alone != 0 ? 4 : (stride == 1 ? 2 * rest : rest);
    mcud_four_steps by = {
        .places = {0, (uint32_t)next, (uint32_t)third, (uint32_t)(third + next)},
        .x = of->x - 128,
        .records = of->records,
        .y = of->y,
        .channels = of->channels,
        .blocks = of->blocks,
        .steps = steps,
        .rest = steps > 0 ? lanes - 8 : lanes,
        .pitch = pitch * columns,
        .zero_point = of->zero_point,
        .shift = of->rows == 2 ? 8 : 0,
        .next_block = block - taken * columns * stride * MCUD_FOUR_ROWS,
        .next_y = of->rows * of->row - taken * pitch * columns,
        .next_channel = 4 - of->blocks * block,
        .twos = twos,
    };
    for (int32_t i = 0; i < 4; i++) {
        by.pairs[2 * i] = (uint16_t)by.places[i];
        by.pairs[2 * i + 1] = (uint16_t)(by.places[i] + (uint32_t)(columns * pitch));
    }
    if (stride == 1) {
        mcud_steps_of_two(&by);
    } else {
        mcud_steps_of_one(&by);
    }
}

#endif
