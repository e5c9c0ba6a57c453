/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 *
 * A plugin for QEMU. Between two places of a program it counts how often each instruction is executed, and the bytes
 * that are loaded from each memory and stored to it.
 *
 * QEMU is under GPL-2.0, so this file may also be used under it. It runs inside QEMU only: nothing of it becomes part
 * of mcudeploy or of a firmware.
 *
 * Arguments: begin=ADDRESS, end=ADDRESS, out=FILE, and any number of region=ADDRESS-ADDRESS. A window opens before the
 * instruction at `begin` is executed, and closes before the one at `end` is. If both are the same, each window ends
 * where the next one begins. FILE gets 64-bit words for each window, in the order of time and in the byte order of
 * this computer:
 * - the number of instructions in the window; of each its address, the number of its executions, and of those that
 *   were not followed by the next instruction in memory;
 * - the number of regions; of each the bytes loaded and stored.
 * An access counts for the first region that has its address, or else for the last region, which is all other
 * addresses; without region= there are none. Accesses of a DMA controller, and those of an exception's entry and
 * return, are not seen.
 *
 * The plugin uses a call for each instruction, and no inline counters, whose interface differs between versions. It is
 * for machines with one core.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_api.h"

EXPORT int qemu_plugin_version = QEMU_API;

/* An instruction of the program. */
typedef struct place {
    struct place *next_in_bucket;
    struct place *next;
    uint64_t address;
    uint64_t following;
    uint64_t count;
    uint64_t not_followed;
} place;

typedef struct region {
    uint64_t lo;
    uint64_t hi;
    uint64_t loaded;
    uint64_t stored;
} region;

enum { BUCKETS = 1 << 16, MOST_REGIONS = 32 };

static place *buckets[BUCKETS];
static place *places; /* all, the newest first */
static place *last;   /* the one executed last in the open window */
static bool open_window;
static region regions[MOST_REGIONS]; /* the last one is all other addresses */
static size_t region_count;
static uint64_t begin_address;
static uint64_t end_address;
static FILE *out;

/* The record of an address. QEMU may translate an instruction several times, but it has one record. */
static place *place_at(uint64_t address, uint64_t size)
{
    place **const bucket = &buckets[(address >> 1) % BUCKETS];
    for (place *at = *bucket; at != NULL; at = at->next_in_bucket) {
        if (at->address == address) {
            return at;
        }
    }
    place *const created = calloc(1, sizeof *created);
    if (created == NULL) {
        abort();
    }
    created->next_in_bucket = *bucket;
    created->next = places;
    created->address = address;
    created->following = address + size;
    *bucket = created;
    places = created;
    return created;
}

static void executed(unsigned int core, void *data)
{
    (void)core;
    if (!open_window) {
        return;
    }
    place *const here = data;
    if (last != NULL && last->following != here->address) {
        last->not_followed++;
    }
    here->count++;
    last = here;
}

static void accessed(unsigned int core, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    (void)core;
    (void)data;
    if (!open_window) {
        return;
    }
    size_t i = 0;
    while (i + 1 < region_count && (address < regions[i].lo || address >= regions[i].hi)) {
        i++;
    }
    const uint64_t bytes = (uint64_t)1 << qemu_plugin_mem_size_shift(info);
    if (qemu_plugin_mem_is_store(info)) {
        regions[i].stored += bytes;
    } else {
        regions[i].loaded += bytes;
    }
}

static void begin(unsigned int core, void *data)
{
    (void)core;
    (void)data;
    for (place *at = places; at != NULL; at = at->next) {
        at->count = 0;
        at->not_followed = 0;
    }
    for (size_t i = 0; i < region_count; i++) {
        regions[i].loaded = 0;
        regions[i].stored = 0;
    }
    last = NULL;
    open_window = true;
}

static void put(uint64_t word)
{
    fwrite(&word, sizeof word, 1, out);
}

static void end(unsigned int core, void *data)
{
    (void)core;
    (void)data;
    if (!open_window) {
        return;
    }
    open_window = false;
    uint64_t seen = 0;
    for (const place *at = places; at != NULL; at = at->next) {
        seen += at->count != 0;
    }
    put(seen);
    for (const place *at = places; at != NULL; at = at->next) {
        if (at->count != 0) {
            put(at->address);
            put(at->count);
            put(at->not_followed);
        }
    }
    put(region_count);
    for (size_t i = 0; i < region_count; i++) {
        put(regions[i].loaded);
        put(regions[i].stored);
    }
    fflush(out); /* QEMU may be killed any time */
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    const size_t count = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *const insn = qemu_plugin_tb_get_insn(tb, i);
        const uint64_t address = qemu_plugin_insn_vaddr(insn);
        if (address == end_address) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, end, QEMU_PLUGIN_CB_NO_REGS, NULL);
        }
        if (address == begin_address) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, QEMU_PLUGIN_CB_NO_REGS, NULL);
        }
        place *const here = place_at(address, qemu_plugin_insn_size(insn));
        qemu_plugin_register_vcpu_insn_exec_cb(insn, executed, QEMU_PLUGIN_CB_NO_REGS, here);
        if (region_count > 0) {
            qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
        }
    }
}

static void add_region(const char *text)
{
    char *rest = NULL;
    const uint64_t lo = strtoull(text, &rest, 0);
    if (*rest != '-' || region_count >= MOST_REGIONS - 1) {
        fprintf(stderr, "counts: region= wants ADDRESS-ADDRESS, at most %d times\n", MOST_REGIONS - 1);
        exit(EXIT_FAILURE);
    }
    regions[region_count].lo = lo;
    regions[region_count].hi = strtoull(rest + 1, NULL, 0);
    region_count++;
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "begin=", 6) == 0) {
            begin_address = strtoull(argv[i] + 6, NULL, 0);
        } else if (strncmp(argv[i], "end=", 4) == 0) {
            end_address = strtoull(argv[i] + 4, NULL, 0);
        } else if (strncmp(argv[i], "out=", 4) == 0) {
            out = fopen(argv[i] + 4, "wb");
        } else if (strncmp(argv[i], "region=", 7) == 0) {
            add_region(argv[i] + 7);
        }
    }
    region_count += region_count > 0; /* all other addresses */
    if (out == NULL) {
        fprintf(stderr, "counts: out= names no file that can be written\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
