/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 *
 * A plugin for QEMU that analyses taint: which branches, addresses and divisions of a stretch of execution depend on data. QEMU is under
 * GPL-2.0, so this file may also be used under it; it runs inside QEMU only.
 *
 * Arguments: begin=ADDRESS, end=ADDRESS, table=FILE, out=FILE, constants=ADDRESS-ADDRESS, data=ADDRESS-ADDRESS at most 32 times. A window opens
 * before the instruction at `begin` and closes before the one at `end`. When it opens, exactly the bytes of data=
 * depend on data. From then on a result depends on data if a value that it is computed from does, and after a branch
 * that depends on data everything that either of its paths may write.
 *
 * The table has a record of each instruction, see `effects`. Where a branch depends on data, its region is entered:
 * the instructions up to the one where its paths join. Regions inside a region are part of it. A path that was not taken
 * may have stored. In the frame of its function, it may have written the region's slots. Through a pointer, it may have
 * written any memory that is read through pointers: what was stored there before the region ended depends on data.
 *
 * FILE gets for each window 64-bit words in the byte order of this computer: its instructions; the number of regions
 * entered, and of each its branch, how often it was entered, and the instructions executed inside; the number of
 * findings, and of each its address, its kind and how often it occurred.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_api.h"

EXPORT int qemu_plugin_version = QEMU_API;

enum { LOADS = 1, STORES = 2, CALLS = 4, UNKNOWN = 8, REGION = 16, REGION_STORES = 32, FRAME = 64, DIVIDES = 128 };
enum { STACK_BY_ACCESS = 1, STACK_BY_NUMBER, STACK_UNKNOWN };

typedef enum finding {
    BRANCH_WITHOUT_REGION,
    UNKNOWN_INSTRUCTION,
    JUMP_BY_DATA,
    LOAD_ADDRESS,
    STORE_ADDRESS,
    DIVISION,
    LEFT_REGION,
    FINDINGS
} finding;

/* A record of the table. Sets of locations are bits of a number; the locations are those of effects.py. */
typedef struct effects {
    uint32_t address;
    uint32_t join; /* of a branch; 0 if its paths join after the return */
    uint32_t other_join; /* of a path that leaves a loop, or 0 */
    uint32_t longest;
    uint32_t flags;
    uint32_t unused;
    uint64_t reads;
    uint64_t writes;
    uint64_t partial; /* results that depend on their old value, too */
    uint64_t address_locations;
    uint64_t updates;
    uint64_t control;
    uint64_t region_writes;
    uint64_t region_slots;    /* words above the stack pointer that a path may write */
    uint32_t stack_move;      /* how the stack pointer after the instruction is known */
    int32_t stack_difference;
    uint8_t moved_count;
    uint8_t moved[15];
} effects;

typedef struct place {
    struct place *next_in_bucket;
    struct place *next;
    const effects *effects; /* NULL: none is in the table */
    uint64_t address;
    uint64_t following;
    uint64_t entered;
    uint64_t inside;
    uint64_t findings[FINDINGS];
} place;

enum { PAGE_BITS = 12, PAGE = 1 << PAGE_BITS, PAGES = 1 << (32 - PAGE_BITS) };

typedef struct page {
    struct page *next;
    uint8_t tainted[PAGE];
    uint32_t stored[PAGE]; /* the time of the last store */
} page;

typedef struct range {
    uint64_t lo;
    uint64_t hi;
} range;

enum { BUCKETS = 1 << 16, MOST_RANGES = 32, MOST_CALLS = 256, MOST_ACCESSES = 64, PC = 15 };

static place *buckets[BUCKETS];
static place *places;
static effects *table;
static size_t table_count;
static page *pages[PAGES];
static page *all_pages;
static range ranges[MOST_RANGES];
static size_t range_count;
static range constants; /* memory that no store changes */
static uint64_t begin_address;
static uint64_t end_address;
static FILE *out;

static bool open_window;
static uint64_t total;
static uint64_t tainted; /* the locations that depend on data */
static uint32_t now = 1;
static uint32_t hidden; /* the time of the last store through a pointer that may not have been executed */
static uint64_t stack; /* the stack pointer, 0: unknown */
static uint64_t calls[MOST_CALLS]; /* return addresses */
static size_t depth;
static place *last;
static place *region; /* the branch that is open */
static size_t region_depth;
static uint64_t region_inside;
static bool loaded[MOST_ACCESSES]; /* whether each value that `last` loads depends on data */
static size_t access_count;
static bool access_words; /* all are words */
static uint64_t first_access;

static int by_address(const void *key, const void *entry)
{
    const uint64_t address = *(const uint64_t *)key;
    const uint64_t other = ((const effects *)entry)->address;
    return address < other ? -1 : address > other;
}

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
    created->effects = bsearch(&address, table, table_count, sizeof *table, by_address);
    *bucket = created;
    places = created;
    return created;
}

static page *page_at(uint64_t address)
{
    page **const at = &pages[(address >> PAGE_BITS) % PAGES];
    if (*at == NULL) {
        *at = calloc(1, sizeof **at);
        if (*at == NULL) {
            abort();
        }
        (*at)->next = all_pages;
        all_pages = *at;
    }
    return *at;
}

static void store(uint64_t address, uint64_t bytes, bool depends)
{
    for (uint64_t i = address; i < address + bytes; i++) {
        page *const at = page_at(i);
        at->tainted[i % PAGE] = depends;
        at->stored[i % PAGE] = now;
    }
}

static bool load(uint64_t address, uint64_t bytes, bool in_frame)
{
    const uint32_t since = in_frame ? 0 : hidden;
    for (uint64_t i = address; i < address + bytes; i++) {
        const page *const at = pages[(i >> PAGE_BITS) % PAGES];
        const bool constant = i >= constants.lo && i < constants.hi;
        if (!constant && (at == NULL ? since > 0 : at->tainted[i % PAGE] != 0 || at->stored[i % PAGE] < since)) {
            return true;
        }
    }
    return false;
}

/* Whether an open region decides if a store through a pointer is executed. What it decides in the frame of its function
 * are its slots, and other frames end before it does. */
static bool decided_by_region(const effects *it)
{
    return region != NULL && (it->flags & FRAME) == 0;
}

static void accessed(unsigned int core, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    (void)core;
    place *const here = data;
    if (!open_window || here != last || here->effects == NULL) {
        return;
    }
    const effects *const it = here->effects;
    const uint64_t bytes = (uint64_t)1 << qemu_plugin_mem_size_shift(info);
    const bool by_words = access_words && bytes == 4;
    if (qemu_plugin_mem_is_store(info)) {
        const bool one = it->moved_count > 1 && by_words && access_count < it->moved_count;
        const uint64_t values = one ? (uint64_t)1 << it->moved[access_count] : it->reads;
        store(address, bytes, decided_by_region(it) || (tainted & values) != 0);
    } else if (access_count < MOST_ACCESSES) {
        loaded[access_count] = load(address, bytes, (it->flags & FRAME) != 0);
    } else {
        here->findings[UNKNOWN_INSTRUCTION]++;
    }
    if (access_count == 0) {
        first_access = address;
    }
    access_words = by_words;
    access_count++;
}

static void mark(uint64_t written, uint64_t changed, bool depends)
{
    if (depends) {
        tainted |= written | changed;
    } else {
        tainted &= ~written;
    }
}

static void follow_stack(const effects *it)
{
    switch (it->stack_move) {
    case STACK_BY_ACCESS:
        if (access_count > 0) {
            stack = first_access + (uint64_t)(int64_t)it->stack_difference;
        }
        break;
    case STACK_BY_NUMBER:
        stack += stack != 0 ? (uint64_t)(int64_t)it->stack_difference : 0;
        break;
    case STACK_UNKNOWN:
        stack = 0;
        break;
    default:
        break;
    }
}

/* Hands data on from what the last instruction read to what it wrote. */
static void finish(void)
{
    if (last == NULL || last->effects == NULL) {
        return;
    }
    const effects *const it = last->effects;
    follow_stack(it);
    const bool from_address = (tainted & it->address_locations) != 0;
    bool depends = (tainted & it->reads) != 0;
    if ((it->flags & DIVIDES) != 0 && depends) {
        last->findings[DIVISION]++;
    }
    if (from_address) {
        last->findings[(it->flags & STORES) != 0 ? STORE_ADDRESS : LOAD_ADDRESS]++;
    }
    if ((it->flags & STORES) != 0) {
        if (from_address) { /* it may have stored anywhere */
            hidden = ++now;
        }
    } else if ((it->flags & LOADS) != 0) {
        if (it->moved_count > 1 && access_words && access_count == it->moved_count) {
            for (size_t i = 0; i < access_count; i++) {
                const uint64_t one = (uint64_t)1 << it->moved[i];
                mark(it->writes & one, it->partial & one, depends || from_address || loaded[i]);
            }
        } else {
            for (size_t i = 0; i < access_count && i < MOST_ACCESSES; i++) {
                depends |= loaded[i];
            }
            mark(it->writes, it->partial, depends || from_address);
        }
    } else {
        mark(it->writes, it->partial, depends);
    }
    mark(it->updates, 0, from_address);
    if ((tainted >> PC & 1) != 0) {
        if (region == NULL) {
            last->findings[JUMP_BY_DATA]++;
        }
        tainted &= ~((uint64_t)1 << PC);
    }
}

static void close_region(void)
{
    const effects *const it = region->effects;
    if (it->other_join != 0 && (last->effects == NULL || (tainted & last->effects->control) != 0)) {
        region->findings[BRANCH_WITHOUT_REGION]++; /* the end of the path depends on data */
    }
    region->inside += region_inside;
    if (region_inside > it->longest) {
        region->findings[LEFT_REGION]++;
    }
    tainted |= it->region_writes & ~((uint64_t)1 << PC);
    if ((it->flags & REGION_STORES) != 0) {
        hidden = ++now;
    }
    if (it->region_slots != 0 && stack == 0) {
        region->findings[LEFT_REGION]++;
    }
    for (unsigned int i = 0; i < 64 && stack != 0; i++) {
        if ((it->region_slots >> i & 1) != 0) {
            store(stack + 4 * i, 4, true);
        }
    }
    region = NULL;
}

static void executed(unsigned int core, void *data)
{
    (void)core;
    if (!open_window) {
        return;
    }
    place *const here = data;
    finish();
    total++;
    if (depth > 0 && calls[depth - 1] == here->address) {
        depth--;
    }
    if (region != NULL) {
        const uint64_t join = region->effects->join;
        const bool joined = here->address == join || here->address == region->effects->other_join;
        if (join != 0 ? joined && depth == region_depth : depth < region_depth) {
            close_region();
        } else {
            region_inside++;
        }
    }
    last = here;
    access_count = 0;
    access_words = true;
    const effects *const it = here->effects;
    if (it == NULL || (it->flags & UNKNOWN) != 0) {
        here->findings[UNKNOWN_INSTRUCTION]++;
        return;
    }
    if (region == NULL && (tainted & it->control) != 0) {
        if ((it->flags & REGION) != 0) {
            here->entered++;
            region = here;
            region_depth = depth;
            region_inside = 0;
        } else {
            here->findings[BRANCH_WITHOUT_REGION]++;
        }
    }
    if ((it->flags & CALLS) != 0) {
        if (depth == MOST_CALLS) {
            abort();
        }
        calls[depth++] = here->following;
    }
}

static void begin(unsigned int core, void *data)
{
    (void)core;
    (void)data;
    for (place *at = places; at != NULL; at = at->next) {
        at->entered = 0;
        at->inside = 0;
        memset(at->findings, 0, sizeof at->findings);
    }
    total = 0;
    tainted = 0;
    depth = 0;
    last = NULL;
    region = NULL;
    hidden = 0;
    stack = 0;
    now++;
    for (page *at = all_pages; at != NULL; at = at->next) {
        memset(at->tainted, 0, sizeof at->tainted);
    }
    for (size_t i = 0; i < range_count; i++) {
        store(ranges[i].lo, ranges[i].hi - ranges[i].lo, true);
    }
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
    finish();
    if (region != NULL) { /* it ends with the window, if it ends with its function */
        if (region->effects->join != 0) {
            region->findings[LEFT_REGION]++;
        }
        close_region();
    }
    open_window = false;
    uint64_t regions = 0;
    uint64_t findings = 0;
    for (const place *at = places; at != NULL; at = at->next) {
        regions += at->entered != 0;
        for (size_t i = 0; i < FINDINGS; i++) {
            findings += at->findings[i] != 0;
        }
    }
    put(total);
    put(regions);
    for (const place *at = places; at != NULL; at = at->next) {
        if (at->entered != 0) {
            put(at->address);
            put(at->entered);
            put(at->inside);
        }
    }
    put(findings);
    for (const place *at = places; at != NULL; at = at->next) {
        for (size_t i = 0; i < FINDINGS; i++) {
            if (at->findings[i] != 0) {
                put(at->address);
                put(i);
                put(at->findings[i]);
            }
        }
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
        qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, here);
    }
}

static bool read_table(const char *path)
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        return false;
    }
    const long bytes = ftell(file);
    rewind(file);
    table_count = bytes > 0 ? (size_t)bytes / sizeof *table : 0;
    table = calloc(table_count + 1, sizeof *table);
    const bool whole = table != NULL && fread(table, sizeof *table, table_count, file) == table_count;
    fclose(file);
    return whole;
}

static range parse_range(const char *text)
{
    char *rest = NULL;
    const uint64_t lo = strtoull(text, &rest, 0);
    if (*rest != '-') {
        fprintf(stderr, "data_flow: data= and constants= want ADDRESS-ADDRESS\n");
        exit(EXIT_FAILURE);
    }
    const range parsed = {lo, strtoull(rest + 1, NULL, 0)};
    return parsed;
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    bool has_table = false;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "begin=", 6) == 0) {
            begin_address = strtoull(argv[i] + 6, NULL, 0);
        } else if (strncmp(argv[i], "end=", 4) == 0) {
            end_address = strtoull(argv[i] + 4, NULL, 0);
        } else if (strncmp(argv[i], "out=", 4) == 0) {
            out = fopen(argv[i] + 4, "wb");
        } else if (strncmp(argv[i], "table=", 6) == 0) {
            has_table = read_table(argv[i] + 6);
        } else if (strncmp(argv[i], "data=", 5) == 0 && range_count < MOST_RANGES) {
            ranges[range_count++] = parse_range(argv[i] + 5);
        } else if (strncmp(argv[i], "constants=", 10) == 0) {
            constants = parse_range(argv[i] + 10);
        }
    }
    if (out == NULL || !has_table) {
        fprintf(stderr, "data_flow: out= or table= names no file that can be used\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
