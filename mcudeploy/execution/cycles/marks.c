/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 *
 * A plugin for QEMU. It writes how many instructions each core of a program has executed when the core comes to certain
 * places. Instructions that a core executes while it waits for other cores do not count.
 *
 * QEMU is under GPL-2.0, so this file may also be used under it. It runs inside QEMU only: nothing of it becomes part
 * of mcudeploy or of a firmware.
 *
 * Arguments: out=FILE, and any number of mark=ADDRESS, wait=ADDRESS and work=ADDRESS-ADDRESS. A core begins to wait at
 * the instruction at a wait= address, and works again from an instruction in a work= range on. When a core that does
 * not wait comes to a mark= address, FILE gets three 64-bit words in the byte order of this computer: the number of the
 * core, the number of the mark among the arguments, and the number of instructions that the core has executed before
 * the mark. An address may have one mark.
 *
 * Cores must take turns in one thread, as they do under -icount.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_api.h"

EXPORT int qemu_plugin_version = QEMU_API;

enum { MOST_CORES = 64, MOST_PLACES = 16 };

typedef struct core {
    uint64_t count;
    bool waits;
} core;

typedef struct range {
    uint64_t lo;
    uint64_t hi;
} range;

static core cores[MOST_CORES];
static range marks[MOST_PLACES]; /* a mark or a wait has one address */
static range waits[MOST_PLACES];
static range works[MOST_PLACES];
static size_t mark_count;
static size_t wait_count;
static size_t work_count;
static FILE *out;

static core *core_at(unsigned int number)
{
    if (number >= MOST_CORES) {
        fprintf(stderr, "marks: more than %d cores\n", MOST_CORES);
        abort();
    }
    return &cores[number];
}

static void begin_waiting(unsigned int number, void *data)
{
    (void)data;
    core_at(number)->waits = true;
}

static void begin_work(unsigned int number, void *data)
{
    (void)data;
    core_at(number)->waits = false;
}

static void mark(unsigned int number, void *data)
{
    const core *const here = core_at(number);
    if (here->waits) {
        return;
    }
    const uint64_t words[] = {number, (uint64_t)((const range *)data - marks), here->count};
    fwrite(words, sizeof words, 1, out);
    fflush(out); /* QEMU may be killed any time */
}

static void executed(unsigned int number, void *data)
{
    (void)data;
    core *const here = core_at(number);
    here->count += !here->waits;
}

/* The first range that has an address; NULL if none has. */
static range *range_of(uint64_t address, range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (address >= ranges[i].lo && address < ranges[i].hi) {
            return &ranges[i];
        }
    }
    return NULL;
}

static void call(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t function, void *data)
{
    qemu_plugin_register_vcpu_insn_exec_cb(insn, function, QEMU_PLUGIN_CB_NO_REGS, data);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    const size_t count = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *const insn = qemu_plugin_tb_get_insn(tb, i);
        const uint64_t address = qemu_plugin_insn_vaddr(insn);
        range *const marked = range_of(address, marks, mark_count);
        if (range_of(address, works, work_count) != NULL) {
            call(insn, begin_work, NULL);
        }
        if (range_of(address, waits, wait_count) != NULL) {
            call(insn, begin_waiting, NULL);
        }
        if (marked != NULL) {
            call(insn, mark, marked);
        }
        call(insn, executed, NULL);
    }
}

/* Adds a range, or one address if the text ends after it. */
static void add(range *ranges, size_t *count, const char *text)
{
    char *rest = NULL;
    const uint64_t lo = strtoull(text, &rest, 0);
    if (*count >= MOST_PLACES) {
        fprintf(stderr, "marks: more than %d places of a kind\n", MOST_PLACES);
        exit(EXIT_FAILURE);
    }
    ranges[*count].lo = lo;
    ranges[*count].hi = *rest == '-' ? strtoull(rest + 1, NULL, 0) : lo + 1;
    (*count)++;
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "mark=", 5) == 0) {
            add(marks, &mark_count, argv[i] + 5);
        } else if (strncmp(argv[i], "wait=", 5) == 0) {
            add(waits, &wait_count, argv[i] + 5);
        } else if (strncmp(argv[i], "work=", 5) == 0) {
            add(works, &work_count, argv[i] + 5);
        } else if (strncmp(argv[i], "out=", 4) == 0) {
            out = fopen(argv[i] + 4, "wb");
        }
    }
    if (out == NULL) {
        fprintf(stderr, "marks: out= names no file that can be written\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
