/* Decodes weights in sequence; all state is in the record of a place in the stream.
 *
 * A slice has up to 32,768 weights and, alternating with them, runs of zeros. Both are in chunks of 12 quotients in
 * unary (8 for runs with long remainders), and the remainders of a chunk follow the quotients of the next one. A chunk
 * has no weights while weights are 8 ahead of the runs, and no runs while runs are ahead.
 */
#include "ethos_u_weights.h"

#include <string.h>

enum { NO_ZEROS = 6, END = 7, PLAIN = 7, AHEAD = 8, LARGEST_INDEX = 511 };

static uint32_t bits(mcud_npu_weights *stream, uint32_t count)
{
    uint32_t value = 0;
    if (count > stream->size_bits - stream->at) {
        stream->broken = true;
        return 0;
    }
    for (uint32_t have = 0; have < count;) {
        const uint32_t within = stream->at % 8u;
        const uint32_t left = count - have;
        const uint32_t take = left < 8u - within ? left : 8u - within;
        const uint32_t piece = ((uint32_t)stream->bytes[stream->at / 8u] >> within) & ((1u << take) - 1u);
        value |= piece << have;
        have += take;
        stream->at += take;
    }
    return value;
}

static void begin_symbols(mcud_npu_symbols *symbols, uint32_t total, uint32_t divisor)
{
    memset(symbols, 0, sizeof *symbols);
    symbols->total = total;
    symbols->divisor = divisor;
}

static void read_palette(mcud_npu_weights *stream)
{
    stream->direct_offset = bits(stream, 5);
    stream->palette_size = bits(stream, 5);
    if (stream->palette_size > 0u) {
        stream->palette_size++;
    }
    stream->index_bits = bits(stream, 3) + 2u;
    for (uint32_t i = 0; i < stream->palette_size; i++) {
        stream->palette[i] = (uint16_t)bits(stream, stream->index_bits);
    }
}

/* Bits of an index that has no quotient. */
static uint32_t plain_bits(const mcud_npu_weights *stream)
{
    uint32_t count = 0;
    if (stream->palette_size == 0u) {
        return stream->index_bits;
    }
    while ((1u << count) < stream->palette_size) {
        count++;
    }
    return count;
}

static void begin_slice(mcud_npu_weights *stream)
{
    uint32_t zero_divisor = bits(stream, 3);
    while (zero_divisor == END && !stream->broken) {
        stream->at = (stream->at + 7u) & ~7u; /* to a full byte, still within the stream */
        stream->has_palette = false;
        zero_divisor = bits(stream, 3);
    }
    const bool has_zeros = zero_divisor != NO_ZEROS;
    const uint32_t count = bits(stream, 15) + 1u;
    uint32_t divisor = bits(stream, 3);
    stream->truncated = bits(stream, 1) != 0u;
    const bool new_palette = bits(stream, 1) != 0u;
    if ((!new_palette && (!stream->has_palette || has_zeros != stream->has_zeros)) || zero_divisor == 4u ||
        zero_divisor == 5u || divisor == 6u) {
        stream->broken = true; /* a palette from an earlier slice must agree on runs of zeros */
        return;
    }
    if (new_palette) {
        read_palette(stream);
    }
    stream->plain = divisor == PLAIN;
    if (stream->plain) {
        divisor = plain_bits(stream);
    }
    stream->has_palette = true;
    stream->has_zeros = has_zeros;
    stream->run_is_due = new_palette && has_zeros;
    begin_symbols(&stream->weights, count, divisor);
    begin_symbols(&stream->zeros, has_zeros ? count + (new_palette ? 1u : 0u) : 0u, has_zeros ? zero_divisor : 0u);
}

/* Adds to the current quotient, and completes it if `ends`. */
static void add_quotient(mcud_npu_symbols *symbols, uint32_t amount, bool ends)
{
    symbols->carry += amount;
    if (ends) {
        symbols->quotients[symbols->pending] = symbols->carry;
        symbols->pending++;
        symbols->parsed++;
        symbols->carry = 0;
    }
}

static void weight_quotients(mcud_npu_weights *stream, uint32_t first)
{
    const uint32_t count = stream->plain && stream->weights.divisor > 5u ? 8u : MCUD_NPU_CHUNK;
    uint32_t ones = 0;
    for (uint32_t i = 0; i < count; i++) {
        ones += (first >> i) & 1u;
    }
    uint32_t second = bits(stream, ones);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t amount = (first >> i) & 1u;
        if (amount == 1u) {
            amount += second & 1u;
            second >>= 1;
        }
        add_quotient(&stream->weights, amount, amount < 2u || stream->truncated);
    }
}

static void remainders(mcud_npu_weights *stream, mcud_npu_symbols *symbols, const uint32_t *quotients, uint32_t count)
{
    for (uint32_t i = 0; i < count && symbols->read < symbols->total; i++) {
        const uint32_t value = (quotients[i] << symbols->divisor) + bits(stream, symbols->divisor);
        if (symbols->read - symbols->taken == MCUD_NPU_QUEUE || quotients[i] >= 1u << 24) {
            stream->broken = true;
            return;
        }
        symbols->queue[symbols->read % MCUD_NPU_QUEUE] = value;
        symbols->read++;
    }
}

static void next_chunk(mcud_npu_weights *stream)
{
    mcud_npu_symbols *weights = &stream->weights;
    mcud_npu_symbols *zeros = &stream->zeros;
    const uint32_t older[2] = {weights->pending, zeros->pending};
    uint32_t quotients[2][MCUD_NPU_CHUNK];
    memcpy(quotients[0], weights->quotients, sizeof quotients[0]);
    memcpy(quotients[1], zeros->quotients, sizeof quotients[1]);
    const bool has_weights =
        weights->parsed < weights->total && (!stream->has_zeros || weights->parsed < zeros->parsed + AHEAD);
    const bool has_runs = zeros->parsed < zeros->total && weights->parsed >= zeros->parsed;
    weights->pending = 0;
    zeros->pending = 0;
    const uint32_t first = has_weights && !stream->plain ? bits(stream, MCUD_NPU_CHUNK) : 0u;
    if (has_runs) {
        const uint32_t count = zeros->divisor < 3u ? MCUD_NPU_CHUNK : 8u;
        const uint32_t unary = bits(stream, count);
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t one = (unary >> i) & 1u;
            add_quotient(zeros, one, one == 0u);
        }
    }
    if (has_weights) {
        weight_quotients(stream, first);
    }
    remainders(stream, weights, quotients[0], older[0]);
    remainders(stream, zeros, quotients[1], older[1]);
}

/* Reads chunks until a symbol is there; false if the stream has none. */
static bool wait_for(mcud_npu_weights *stream, const mcud_npu_symbols *symbols)
{
    while (symbols->read == symbols->taken) {
        if (stream->broken) {
            return false;
        }
        next_chunk(stream);
    }
    return !stream->broken;
}

static uint32_t take(mcud_npu_symbols *symbols)
{
    const uint32_t value = symbols->queue[symbols->taken % MCUD_NPU_QUEUE];
    symbols->taken++;
    return value;
}

/* The weight of an index. Bit 0 of a value is its sign, the others its magnitude. */
static int16_t weight_of(const mcud_npu_weights *stream, uint32_t index)
{
    const uint32_t value = index < stream->palette_size ? stream->palette[index]
                                                        : index - stream->palette_size + stream->direct_offset;
    const int16_t magnitude = (int16_t)(value >> 1);
    return (value & 1u) != 0u ? (int16_t)-magnitude : magnitude;
}

void mcud_npu_open_weights(mcud_npu_weights *stream, const uint8_t *bytes, uint32_t size_bytes)
{
    memset(stream, 0, sizeof *stream);
    stream->bytes = bytes;
    stream->broken = size_bytes > UINT32_MAX / 8u;
    stream->size_bits = stream->broken ? 0u : 8u * size_bytes;
}

bool mcud_npu_next_weights(mcud_npu_weights *stream, int16_t *weights, uint32_t count)
{
    for (uint32_t i = 0; i < count;) {
        if (stream->zero_run > 0u) {
            stream->zero_run--;
            weights[i++] = 0;
        } else if (stream->run_is_due) {
            if (!wait_for(stream, &stream->zeros)) {
                return false;
            }
            stream->zero_run = take(&stream->zeros);
            stream->run_is_due = false;
        } else if (stream->weights.taken == stream->weights.total) {
            if (stream->broken) {
                return false;
            }
            begin_slice(stream);
        } else {
            if (!wait_for(stream, &stream->weights)) {
                return false;
            }
            const uint32_t index = take(&stream->weights);
            if (index > LARGEST_INDEX) {
                stream->broken = true;
                return false;
            }
            weights[i++] = weight_of(stream, index);
            stream->run_is_due = stream->has_zeros;
        }
    }
    return true;
}
