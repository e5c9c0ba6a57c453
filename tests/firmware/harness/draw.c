#include "harness.h"

#ifdef CBMC

uint32_t nondet_u32(void);

uint32_t draw(uint32_t limit)
{
    const uint32_t value = nondet_u32();
    __CPROVER_assume(value < limit);
    return value;
}

void require(bool holds)
{
    __CPROVER_assert(holds, "what the harness requires");
}

int main(void)
{
    harness();
    return 0;
}

#else

#include <stddef.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    const uint8_t *next;
    size_t left;
} source;

static uint32_t next_byte(void)
{
    if (source.left == 0) {
        return 0;
    }
    source.left--;
    return *source.next++;
}

uint32_t draw(uint32_t limit)
{
    uint32_t value = next_byte();
    for (uint32_t reach = 256; reach != 0 && reach < limit; reach <<= 8) {
        value = value << 8 | next_byte();
    }
    return value % limit;
}

void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    source.next = data;
    source.left = size;
    harness();
    return 0;
}

#endif
