/* mcud_blocks_f32.h in portable C. */
#ifndef MCUD_BLOCKS_F32_C_H
#define MCUD_BLOCKS_F32_C_H

static inline void mcud_add_pairs_1x4_s4(const float *x, const uint32_t *w, int32_t values, float sums[4])
{
    float a = sums[0];
    float b = sums[1];
    float c = sums[2];
    float d = sums[3];
    for (const float *const end = x + values; x != end; x += 2) {
        const uint32_t eight = *w++;
        a = mcud_mac_f32(x[0], (float)mcud_packed_integer(eight, 0, 4), a);
        b = mcud_mac_f32(x[0], (float)mcud_packed_integer(eight, 4, 4), b);
        c = mcud_mac_f32(x[0], (float)mcud_packed_integer(eight, 8, 4), c);
        d = mcud_mac_f32(x[0], (float)mcud_packed_integer(eight, 12, 4), d);
        a = mcud_mac_f32(x[1], (float)mcud_packed_integer(eight, 16, 4), a);
        b = mcud_mac_f32(x[1], (float)mcud_packed_integer(eight, 20, 4), b);
        c = mcud_mac_f32(x[1], (float)mcud_packed_integer(eight, 24, 4), c);
        d = mcud_mac_f32(x[1], (float)mcud_packed_integer(eight, 28, 4), d);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

#endif
