#include "measurer.h"

#include "command.h"
#include "mcud_hal.h"

#if MCUD_CHAIN
#include "chain_stage.h"
#include "mcud_ports.h"
#endif

static mcud_link host_link;

static void answer_host(void)
{
    for (int32_t byte = hal_uart_read(); byte >= 0; byte = hal_uart_read()) {
        if (frame_receive(&host_link.frame, (uint8_t)byte)) {
            command_answer(&host_link);
        }
    }
}

void measurer_start(void)
{
    hal_init();
#if MCUD_PARAMETERS
    mcud_parameters_begin(mcud_deployed_parameters);
#endif
#if MCUD_CHAIN
    hal_port_init();
#endif
}

void measurer_turn(void)
{
    answer_host();
#if MCUD_CHAIN
    chain_turn(answer_host);
#endif
    hal_wait();
}
