/* mcud_bytes.h with RISC-V vector instructions. */
#ifndef MCUD_BYTES_RVV_H
#define MCUD_BYTES_RVV_H

/* y[count] = table[x[count] + 128] */
static inline void mcud_look_up(int8_t *y, const int8_t *x, int32_t count, const int8_t *table)
{
    int32_t vl;
    for (; count > 0; count -= vl, x += vl, y += vl) {
        __asm__ volatile("vsetvli %[vl], %[count], e8, m8, ta, ma\n\t"
                         "vle8.v v0, (%[x])\n\t"
                         "vxor.vx v0, v0, %[middle]\n\t"
                         "vluxei8.v v8, (%[table]), v0\n\t"
                         "vse8.v v8, (%[y])"
                         : [vl] "=&r"(vl)
                         : [count] "r"(count), [x] "r"(x), [middle] "r"(-128), [table] "r"(table), [y] "r"(y)
                         : MCUD_RVV_CHANGED);
    }
}

/* y[count] = a[count] * b[count]; y may be a or b. The result is rounded as mcud_lanes_rvv.h explains. */
static inline void mcud_multiply_bytes(const int8_t *a, const int8_t *b, int8_t *y, int32_t count,
                                       const mcud_byte_product *product)
{
    int32_t vl;
    for (; count > 0; count -= vl, a += vl, b += vl, y += vl) {
        __asm__ volatile("csrwi vxrm, 2\n\t"
                         "vsetvli %[vl], %[count], e32, m8, ta, ma\n\t"
                         "vle8.v v6, (%[a])\n\t"
                         "vle8.v v14, (%[b])\n\t"
                         "vsext.vf4 v0, v6\n\t"
                         "vsext.vf4 v8, v14\n\t"
                         "vadd.vx v0, v0, %[minus_a]\n\t"
                         "vadd.vx v8, v8, %[minus_b]\n\t"
                         "vmul.vv v0, v0, v8\n\t"
                         "vsll.vx v0, v0, %[left]\n\t"
                         "vsmul.vx v0, v0, %[multiplier]\n\t"
                         "vsadd.vx v0, v0, %[zero]\n\t"
                         "vsetvli zero, zero, e16, m4, ta, ma\n\t"
                         "vnclip.wi v0, v0, 1\n\t"
                         "vsetvli zero, zero, e8, m2, ta, ma\n\t"
                         "vnclip.wi v0, v0, 0\n\t"
                         "vse8.v v0, (%[y])"
                         : [vl] "=&r"(vl)
                         : [count] "r"(count), [a] "r"(a), [b] "r"(b), [y] "r"(y), [minus_a] "r"(-product->a_zero_point),
                           [minus_b] "r"(-product->b_zero_point), [left] "r"(product->left),
                           [multiplier] "r"(product->multiplier), [zero] "r"(2 * product->zero_point + 1)
                         : MCUD_RVV_CHANGED);
    }
}

/* The largest values of all channels -> y[channels] */
static inline void mcud_max_window(const mcud_byte_window *window, int32_t channels, int8_t *y)
{
    if (window->rows == 0 || window->cols == 0) {
        memset(y, INT8_MIN, (size_t)channels);
        return;
    }
    int32_t vl;
    for (int32_t c = 0; c < channels; c += vl) {
        const uint32_t *next = window->offsets;
        const uint8_t *x;
        int32_t cols;
        __asm__ volatile("vsetvli %[vl], %[channels], e8, m8, ta, ma\n\t"
                         "vmv.v.x v8, %[lowest]\n"
                         "1:\n\t"
                         "lw %[x], 0(%[next])\n\t"
                         "mv %[cols], %[all_cols]\n\t"
                         "addi %[next], %[next], 4\n\t"
                         "add %[x], %[x], %[memory]\n"
                         "2:\n\t"
                         "vle8.v v0, (%[x])\n\t"
                         "addi %[cols], %[cols], -1\n\t"
                         "add %[x], %[x], %[pitch]\n\t"
                         "vmax.vv v8, v8, v0\n\t"
                         "bnez %[cols], 2b\n\t"
                         "bne %[next], %[end], 1b\n\t"
                         "vse8.v v8, (%[y])"
                         : [vl] "=&r"(vl), [next] "+&r"(next), [x] "=&r"(x), [cols] "=&r"(cols)
                         : [channels] "r"(channels - c), [lowest] "r"(INT8_MIN), [all_cols] "r"(window->cols),
                           [memory] "r"(window->memory + c), [pitch] "r"(window->pitch),
                           [end] "r"(window->offsets + window->rows), [y] "r"(y + c)
                         : MCUD_RVV_CHANGED);
    }
}

/* The sums of up to MCUD_SUMS channels from `channel` on. */
static inline void mcud_sum_window(const mcud_byte_window *window, int32_t channel, int32_t channels,
                                   int32_t sums[MCUD_SUMS])
{
    const int32_t count = channels < MCUD_SUMS ? channels : MCUD_SUMS;
    if (window->rows == 0 || window->cols == 0) {
        memset(sums, 0, (size_t)count * sizeof *sums);
        return;
    }
    int32_t vl;
    for (int32_t c = 0; c < count; c += vl) {
        const uint32_t *next = window->offsets;
        const uint8_t *x;
        int32_t cols;
        __asm__ volatile("vsetvli %[vl], %[channels], e32, m8, ta, ma\n\t"
                         "vmv.v.i v8, 0\n"
                         "1:\n\t"
                         "lw %[x], 0(%[next])\n\t"
                         "mv %[cols], %[all_cols]\n\t"
                         "addi %[next], %[next], 4\n\t"
                         "add %[x], %[x], %[memory]\n"
                         "2:\n\t"
                         "vle8.v v6, (%[x])\n\t"
                         "addi %[cols], %[cols], -1\n\t"
                         "add %[x], %[x], %[pitch]\n\t"
                         "vsext.vf4 v0, v6\n\t"
                         "vadd.vv v8, v8, v0\n\t"
                         "bnez %[cols], 2b\n\t"
                         "bne %[next], %[end], 1b\n\t"
                         "vse32.v v8, (%[sums])"
                         : [vl] "=&r"(vl), [next] "+&r"(next), [x] "=&r"(x), [cols] "=&r"(cols)
                         : [channels] "r"(count - c), [all_cols] "r"(window->cols),
                           [memory] "r"(window->memory + channel + c), [pitch] "r"(window->pitch),
                           [end] "r"(window->offsets + window->rows), [sums] "r"(sums + c)
                         : MCUD_RVV_CHANGED);
    }
}

#endif
