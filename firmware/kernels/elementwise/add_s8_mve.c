#include "add_s8_mve.h"

#include "mcud_clip_s8.h"
#include "mcud_operand.h"
#include "mcud_vector.h"

void mcud_add_s8_mve(const mcud_op *op, int32_t first_row, int32_t end_row)
{
    const mcud_add_s8_mve_params *params = op->params;
    const mcud_sum_quant addition = params->quant;
    const mcud_operands tensors = mcud_find_operands(op, params->a, params->b);
    for (int32_t row = first_row; row < end_row; row++) {
        const int8_t *a = mcud_operand_s8(params->a, tensors.a, row, params->broadcast.a_row_step);
        const int8_t *b = mcud_operand_s8(params->b, tensors.b, row, params->broadcast.b_row_step);
        int8_t *const out = mcud_row(op->out, row);
        for (int32_t col = 0; col < params->broadcast.cols; col++) {
            int8_t *const y = out + col * params->broadcast.channels;
            if (params->has_ties) {
                mcud_vector_add(a, b, y, params->broadcast.channels, &addition);
            } else {
                mcud_vector_add_untied(a, b, y, params->broadcast.channels, &addition);
            }
            a += params->broadcast.a_col_step;
            b += params->broadcast.b_col_step;
        }
        mcud_clip_s8(out, params->broadcast.cols * params->broadcast.channels, params->act.min, params->act.max);
    }
}
