/* Every read, write and erase of a load and of a save fails once, in each way, in each state of the storage: no value that
 * a save reported as done is lost. Prints the number of failures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcud_parameter_table.h"

enum { VALUES = 96, BLOB = 32 + VALUES, LOST = 0, OLD = 10, NEW = 20 };

/* How a call fails: before, amid or after its work; or amid it, as all later ones until the next start do. */
typedef enum { BEFORE, AMID, AFTER, POWER, WAYS } way;

static uint8_t values[VALUES];
static uint8_t begun;
static const mcud_parameter_range ranges[] = {{60, 4, 31}, {94, 1, 31}}; /* over the end of a chunk, and at the end */
static const mcud_parameter_table table = {values, NULL, &begun, VALUES, {1, 2, 3, 4, 5, 6, 7, 8}, ranges, 2};

static uint8_t slots[2][BLOB];
static long calls_left; /* until one fails */
static way how;
static unsigned long failures;

static void require(int holds, int line)
{
    if (!holds) {
        printf("line %d: a call that fails in way %d loses values\n", line, (int)how);
        exit(EXIT_FAILURE);
    }
}
#define REQUIRE(holds) require(holds, __LINE__)

/* The bytes that a call still handles; sets whether it fails. */
static uint32_t handled(uint32_t bytes, uint32_t *failed)
{
    const long turn = calls_left--;
    *failed = turn == 0 || (turn < 0 && how == POWER);
    failures += turn == 0;
    if (*failed == 0u || how == AFTER) {
        return bytes;
    }
    return turn < 0 || how == BEFORE ? 0 : bytes / 2u;
}

static uint32_t read_slot(void *user, uint32_t slot, uint32_t offset, void *to, uint32_t bytes)
{
    (void)user;
    uint32_t failed;
    memcpy(to, slots[slot] + offset, handled(bytes, &failed));
    return failed;
}

static uint32_t write_slot(void *user, uint32_t slot, uint32_t offset, const void *from, uint32_t bytes)
{
    (void)user;
    uint32_t failed;
    memcpy(slots[slot] + offset, from, handled(bytes, &failed));
    return failed;
}

static uint32_t erase_slot(void *user, uint32_t slot)
{
    (void)user;
    uint32_t failed;
    memset(slots[slot], 0xFF, handled(BLOB, &failed));
    return failed;
}

static const mcud_parameter_storage storage = {read_slot, write_slot, erase_slot, NULL};

/* Values with the high bytes of numbers zero, so that the ranges hold. */
static void set_values(uint8_t to)
{
    for (int i = 0; i < VALUES; i++) {
        values[i] = i % 2 == 0 ? to : 0;
    }
}

static int is_set(uint8_t to)
{
    int same = 1;
    for (int i = 0; i < VALUES; i++) {
        same &= values[i] == (i % 2 == 0 ? to : 0);
    }
    return same;
}

static void never_fail(void)
{
    calls_left = -1;
    how = BEFORE;
}

static uint32_t load_again(void)
{
    never_fail();
    set_values(LOST);
    return mcud_parameters_load(&table, &storage);
}

static void put_blob(uint32_t slot, uint8_t content, uint32_t sequence)
{
    set_values(content);
    mcud_parameters_header(&table, sequence, slots[slot]);
    memcpy(slots[slot] + 32, values, VALUES);
}

/* The states of a storage whose newest values are OLD; with `state` 0 it is empty. Sequence numbers wrap. */
enum { STATES = 10 };
static void prepare(int state)
{
    const uint32_t newest = (uint32_t)state % 2u;
    const uint32_t other = 1u - newest;
    memset(slots, 0xFF, sizeof slots);
    if (state == 0) {
        return;
    }
    put_blob(newest, OLD, state >= 8 ? 0 : 4);
    if (state >= 4) {
        put_blob(other, 5, state >= 8 ? UINT32_MAX : 3);
    }
    if (state >= 6 && state < 8) {
        slots[other][40] ^= 1; /* torn */
    } else if (state >= 2 && state < 4) {
        put_blob(other, 32, 9); /* newer, with a right CRC and numbers out of their ranges */
    }
}

static int save_with_failure(int state, long number)
{
    prepare(state);
    begun = 1;
    set_values(NEW);
    calls_left = number;
    const uint32_t result = mcud_parameters_save(&table, &storage);
    const int failed = calls_left < 0;
    REQUIRE(is_set(NEW));
    REQUIRE(failed || result == MCUD_PARAMETERS_OK);
    const uint32_t loaded = load_again();
    if (result == MCUD_PARAMETERS_OK) {
        REQUIRE(loaded == MCUD_PARAMETERS_OK && is_set(NEW));
    } else if (state == 0) {
        REQUIRE(loaded != MCUD_PARAMETERS_OK ? is_set(LOST) : is_set(NEW));
    } else {
        REQUIRE(loaded == MCUD_PARAMETERS_OK && (is_set(OLD) || is_set(NEW)));
    }
    set_values(NEW + 1);
    REQUIRE(mcud_parameters_save(&table, &storage) == MCUD_PARAMETERS_OK);
    REQUIRE(load_again() == MCUD_PARAMETERS_OK && is_set(NEW + 1));
    return failed;
}

static int load_with_failure(int state, long number)
{
    uint8_t before[2][BLOB];
    prepare(state);
    memcpy(before, slots, sizeof before);
    begun = 1;
    set_values(NEW);
    calls_left = number;
    const uint32_t result = mcud_parameters_load(&table, &storage);
    const int failed = calls_left < 0;
    REQUIRE(memcmp(before, slots, sizeof before) == 0);
    if (result == MCUD_PARAMETERS_OK) {
        REQUIRE(is_set(OLD));
    } else {
        REQUIRE(is_set(result == MCUD_PARAMETERS_UNSTABLE ? LOST : NEW));
        REQUIRE(!failed ? state == 0 : result == MCUD_PARAMETERS_STORAGE || result == MCUD_PARAMETERS_UNSTABLE);
    }
    REQUIRE(load_again() == (state == 0 ? MCUD_PARAMETERS_ABSENT : MCUD_PARAMETERS_OK));
    REQUIRE(is_set(state == 0 ? LOST : OLD));
    return failed;
}

int main(void)
{
    for (int state = 0; state < STATES; state++) {
        for (int each = 0; each < WAYS; each++) {
            long number = 0;
            do {
                how = (way)each;
            } while (save_with_failure(state, number++));
            number = 0;
            do {
                how = (way)each;
            } while (load_with_failure(state, number++));
        }
    }
    printf("%lu\n", failures);
    return EXIT_SUCCESS;
}
