/* New weights for a device in the field.
 *
 * example FLASH                   loads the parameters, runs the model, prints the outputs
 * example FLASH BLOB [UNITS]      first takes the parameters of a received blob and saves them; the power fails after
 *                                 that number of units of flash
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file_flash.h"
#include "model.h"

enum { SECTOR_GRAIN = 4096 };

/* A message with one blob, which a radio or a serial line has delivered. */
static uint32_t read_message(void *user, uint32_t slot, uint32_t offset, void *to, uint32_t bytes)
{
    if (slot != 0u) {
        return MCUD_PARAMETERS_ABSENT;
    }
    FILE *file = fopen(user, "rb");
    if (file == NULL) {
        return 1;
    }
    const int done = fseek(file, (long)offset, SEEK_SET) == 0 && fread(to, 1, bytes, file) == bytes;
    (void)fclose(file);
    return done ? 0 : 1;
}

static void run_and_print(void)
{
    memset(model_input(), 7, MODEL_INPUT_COUNT * sizeof *model_input());
    model_run();
    printf("outputs");
    for (uint32_t i = 0; i < MODEL_OUTPUT_COUNT; i++) {
        printf(" %g", (double)model_output()[i]);
    }
    printf("\n");
}

int main(int count, char **words)
{
    if (count < 2) {
        return EXIT_FAILURE;
    }
    const uint32_t blob_bytes = MCUD_PARAMETERS_HEADER_BYTES + MODEL_PARAMETERS_BYTES;
    const uint32_t sectors = (blob_bytes + SECTOR_GRAIN - 1u) / SECTOR_GRAIN;
    file_flash flash = {words[1], sectors * SECTOR_GRAIN, count > 3 ? atol(words[3]) : -1};
    if (file_flash_open(&flash) != 0) {
        return EXIT_FAILURE;
    }
    const mcud_parameter_storage storage = file_flash_storage(&flash);
    printf("loaded from flash: %u\n", (unsigned)model_load_parameters(&storage));
    if (count > 2) {
        const mcud_parameter_storage message = {read_message, NULL, NULL, words[2]};
        const uint32_t taken = model_load_parameters(&message);
        printf("taken from the message: %u\n", (unsigned)taken);
        if (taken == MCUD_PARAMETERS_OK) {
            printf("saved: %u\n", (unsigned)model_save_parameters(&storage));
        }
    }
    run_and_print();
    return EXIT_SUCCESS;
}
