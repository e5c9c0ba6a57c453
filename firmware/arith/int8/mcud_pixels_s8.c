#include "mcud_pixels_s8.h"

#include "mcud_pixel_blocks_s8.h"

void mcud_vector_pixels(const mcud_vector_channels *to, const int8_t *x, int32_t step, int32_t count, int8_t *y)
{
    mcud_blocks_of_pixels(to, x, step, count, y);
}
