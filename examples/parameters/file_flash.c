#include "file_flash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_BYTES = MCUD_PARAMETERS_GRAIN, ERASED = 0xFF, POWER_FAILED = 3 };

/* One unit of work; the last one before the power fails is half done. */
static uint32_t changed_bytes(file_flash *flash)
{
    if (flash->units_left < 0) {
        return UNIT_BYTES;
    }
    return flash->units_left-- > 0 ? UNIT_BYTES : UNIT_BYTES / 2;
}

static uint32_t replace(file_flash *flash, uint32_t at, const uint8_t *bytes)
{
    const uint32_t count = changed_bytes(flash);
    FILE *file = fopen(flash->path, "r+b");
    if (file == NULL) {
        return 1;
    }
    const int done = fseek(file, (long)at, SEEK_SET) == 0 && fwrite(bytes, 1, count, file) == count;
    const int closed = fclose(file) == 0;
    if (count < UNIT_BYTES) {
        exit(POWER_FAILED);
    }
    return done && closed ? 0 : 1;
}

static uint32_t read_sector(void *user, uint32_t slot, uint32_t offset, void *to, uint32_t bytes)
{
    const file_flash *flash = user;
    FILE *file = fopen(flash->path, "rb");
    if (file == NULL || offset > flash->sector_bytes || bytes > flash->sector_bytes - offset) {
        if (file != NULL) {
            (void)fclose(file);
        }
        return 1;
    }
    const int done = fseek(file, (long)(slot * flash->sector_bytes + offset), SEEK_SET) == 0
        && fread(to, 1, bytes, file) == bytes;
    (void)fclose(file);
    return done ? 0 : 1;
}

static uint32_t write_sector(void *user, uint32_t slot, uint32_t offset, const void *from, uint32_t bytes)
{
    file_flash *flash = user;
    if (offset > flash->sector_bytes || bytes > flash->sector_bytes - offset) {
        return 1;
    }
    for (uint32_t done = 0; done < bytes; done += UNIT_BYTES) {
        uint8_t unit[UNIT_BYTES];
        if (read_sector(user, slot, offset + done, unit, UNIT_BYTES) != 0u) {
            return 1;
        }
        for (uint32_t i = 0; i < UNIT_BYTES; i++) {
            unit[i] &= ((const uint8_t *)from)[done + i];
        }
        if (replace(flash, slot * flash->sector_bytes + offset + done, unit) != 0u) {
            return 1;
        }
    }
    return 0;
}

static uint32_t erase_sector(void *user, uint32_t slot)
{
    file_flash *flash = user;
    uint8_t unit[UNIT_BYTES];
    memset(unit, ERASED, sizeof unit);
    for (uint32_t offset = 0; offset < flash->sector_bytes; offset += UNIT_BYTES) {
        if (replace(flash, slot * flash->sector_bytes + offset, unit) != 0u) {
            return 1;
        }
    }
    return 0;
}

int file_flash_open(file_flash *flash)
{
    FILE *file = fopen(flash->path, "rb");
    if (file == NULL) {
        file = fopen(flash->path, "wb");
        for (uint32_t i = 0; file != NULL && i < MCUD_PARAMETERS_SLOTS * flash->sector_bytes; i++) {
            (void)fputc(ERASED, file);
        }
    }
    return file == NULL || fclose(file) != 0;
}

mcud_parameter_storage file_flash_storage(file_flash *flash)
{
    const mcud_parameter_storage storage = {read_sector, write_sector, erase_sector, flash};
    return storage;
}
