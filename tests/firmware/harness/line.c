#include "line.h"

#include "harness.h"
#include "mcud_hal.h"

line_sent line;

void hal_uart_write(const uint8_t *bytes, uint32_t count)
{
    require(count <= SENT_BYTES - line.count);
    for (uint32_t i = 0; i < count; i++) {
        line.bytes[line.count++] = bytes[i];
    }
}

uint32_t line_receive(mcud_frame *frame, uint32_t from)
{
    for (uint32_t i = from; i < line.count; i++) {
        if (frame_receive(frame, line.bytes[i])) {
            return i + 1;
        }
    }
    return 0;
}
