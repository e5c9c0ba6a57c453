#include "mcud_pixel_f32.h"

/* Values above `high` become `high`. */
static void lower(const float *from, float *y, const float *end, float high)
{
    for (; y < end; y++, from++) {
        *y = *from > high ? high : *from;
    }
}

void mcud_pixel_f32(const mcud_channels_f32 *to, const float *x, float *y)
{
    const float *const end = y + to->channels;
    const float *w = to->weights;
    const float high = to->act.max;
    mcud_base_f32 base = {to->bias, to->act.min};
    float *at = y;
    for (; end - at >= 8; at += 8, base.bias += 8, w += 8 * to->depth) {
        mcud_raised_1x8_f32(x, w, to->depth, &base, at);
    }
    for (int32_t left = (int32_t)(end - at); left > 0; left -= 4, at += 4, base.bias += 4, w += 4 * to->depth) {
        float last[4];
        float *const four = left < 4 ? last : at;
        mcud_raised_1x4_f32(x, w, to->depth, &base, four);
        if (four == last) {
            lower(last, at, end, high);
        }
    }
    if (high < INFINITY) {
        lower(y, y, end, high);
    }
}
