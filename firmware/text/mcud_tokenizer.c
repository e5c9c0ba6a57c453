#include "mcud_tokenizer.h"

#include <stddef.h>
#include <string.h>

#define SPECIAL 0x80000000u
#define NO_RANK UINT32_MAX

typedef struct {
    const uint8_t *bytes;
    uint32_t length;
    const uint8_t *merges;
    uint32_t merge_count;
} piece;

static uint32_t start_of(const mcud_tokenizer *t, uint32_t id) { return t->block_starts[id / 32u] + t->starts[id]; }

static piece piece_of(const mcud_tokenizer *t, uint32_t id)
{
    const uint8_t *record = t->records + start_of(t, id);
    const uint8_t *end = t->records + start_of(t, id + 1u);
    piece p = {record + 1, record[0], record + 1 + record[0], 0};
    p.merge_count = (uint32_t)(end - p.merges) / t->merge_bytes;
    return p;
}

static uint32_t sorted_id(const mcud_tokenizer *t, uint32_t place)
{
    uint32_t high = t->sorted_high ? t->sorted_high[place] : 0u;
    return high << 16 | t->sorted[place];
}

static uint32_t find(const mcud_tokenizer *t, const uint8_t *bytes, uint32_t length)
{
    uint32_t low = 0, high = t->sorted_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2u, id = sorted_id(t, middle);
        piece p = piece_of(t, id);
        int order = memcmp(p.bytes, bytes, p.length < length ? p.length : length);
        if (order == 0 && p.length == length) {
            return id;
        }
        if (order < 0 || (order == 0 && p.length < length)) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return MCUD_NO_TOKEN;
}

/* The first place from `low` to `high` whose piece has at least this byte at `index`, after equal bytes before it. */
static uint32_t first_with(const mcud_tokenizer *t, uint32_t low, uint32_t high, uint32_t index, uint32_t byte)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2u;
        piece p = piece_of(t, sorted_id(t, middle));
        if (p.length <= index || p.bytes[index] < byte) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint32_t char_length(uint8_t first)
{
    return first < 0x80u ? 1u : first < 0xE0u ? 2u : first < 0xF0u ? 3u : 4u;
}

/* The code of a character of valid UTF-8. */
static uint32_t char_at(const uint8_t *s)
{
    uint32_t length = char_length(s[0]), code = length == 1u ? s[0] : s[0] & (0x7Fu >> length);
    for (uint32_t i = 1; i < length; i++) {
        code = code << 6 | (s[i] & 0x3Fu);
    }
    return code;
}

static bool is_utf8(const uint8_t *s, const uint8_t *end)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    while (s < end) {
        uint32_t length = char_length(*s);
        if ((*s >= 0x80u && *s < 0xC2u) || *s > 0xF4u || (uint32_t)(end - s) < length) {
            return false;
        }
        for (uint32_t i = 1; i < length; i++) {
            if ((s[i] & 0xC0u) != 0x80u) {
                return false;
            }
        }
        uint32_t code = char_at(s);
        if (code < least[length] || code > 0x10FFFFu || (code >= 0xD800u && code < 0xE000u)) {
            return false;
        }
        s += length;
    }
    return true;
}

enum { OTHER, LETTER, NUMBER, SPACE };

static uint32_t class_of(const mcud_tokenizer *t, uint32_t c)
{
    if (c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
        c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000) {
        return SPACE;
    }
    if (c < 0x80u) {
        return (c | 32u) >= 'a' && (c | 32u) <= 'z' ? LETTER : c >= '0' && c <= '9' ? NUMBER : OTHER;
    }
    uint32_t first = 0x80;
    const uint8_t *s = t->classes;
    for (;;) { /* stretches of one class: 3 * length + class, 7 bits a byte, the last stretch has the length 0 */
        uint32_t value = 0, shift = 0;
        do {
            value |= (*s & 0x7Fu) << shift;
            shift += 7u;
        } while (*s++ & 0x80u);
        first += value / 3u;
        if (value < 3u || c < first) {
            return value % 3u;
        }
    }
}

static const uint8_t *class_end(const mcud_tokenizer *t, const uint8_t *s, const uint8_t *end, uint32_t class)
{
    while (s < end && class_of(t, char_at(s)) == class) {
        s += char_length(*s);
    }
    return s;
}

static const uint8_t *contraction_end(const uint8_t *s, const uint8_t *end)
{
    uint32_t left = (uint32_t)(end - s);
    if (left < 2 || s[0] != '\'') {
        return s;
    }
    if (strchr("stmd", s[1]) && s[1]) {
        return s + 2;
    }
    bool is_long = left > 2 && ((s[1] == 'l' && s[2] == 'l') || ((s[1] == 'r' || s[1] == 'v') && s[2] == 'e'));
    return is_long ? s + 3 : s;
}

/* The end of the match of GPT-2's expression at s; `prefixed`: a space that the text lacks is before s. */
static const uint8_t *gpt2_end(const mcud_tokenizer *t, const uint8_t *s, const uint8_t *end, bool prefixed)
{
    const uint8_t *last = prefixed ? s : contraction_end(s, end);
    if (last > s) {
        return last;
    }
    const uint8_t *next = prefixed || *s != ' ' ? s : s + 1;
    uint32_t class = next < end ? class_of(t, char_at(next)) : SPACE;
    if (class != SPACE) {
        return class_end(t, next, end, class);
    }
    uint32_t count = prefixed;
    for (next = s; next < end && class_of(t, char_at(next)) == SPACE; count++) {
        last = next;
        next += char_length(*next);
    }
    return next < end && count > 1 ? last : next; /* the last space belongs to the next word */
}

/* The first place where one of the added tokens [first, last) begins, or `end`; `id` becomes the longest one there. */
static const uint8_t *next_added(const mcud_tokenizer *t, const uint8_t *s, const uint8_t *end, uint32_t first,
                                 uint32_t last, uint32_t *id)
{
    for (; s < end && first < last; s++) {
        for (uint32_t i = first; i < last; i++) {
            *id = t->added[i] & ~SPECIAL;
            piece p = piece_of(t, *id);
            if (p.length <= (uint32_t)(end - s) && memcmp(p.bytes, s, p.length) == 0) {
                return s;
            }
        }
    }
    return end;
}

/* Copies the next word of the part to `word`, and moves beyond it. Returns its length; above `room`: too long. */
static uint32_t take_word(mcud_text *text, uint8_t *word, uint32_t room)
{
    const mcud_tokenizer *t = text->tokenizer;
    const uint8_t *s = text->at, *end = text->part_end;
    bool is_space = *s == ' ' || (!t->of_bytes && char_at(s) == 0x2581u);
    bool prefixed = text->starts_part && t->prefix != MCUD_PREFIX_NONE &&
                    !(t->prefix != MCUD_PREFIX_ALL && is_space) &&
                    !(t->prefix == MCUD_PREFIX_FIRST && s != text->begin);
    uint32_t length = 0;
    if (prefixed) {
        if (room == 0) {
            return 1;
        }
        word[length++] = ' ';
    }
    if (t->split == MCUD_SPLIT_GPT2) {
        end = gpt2_end(t, s, end, prefixed);
    }
    while (s < end) {
        uint32_t bytes = char_length(*s);
        bool marks = !t->of_bytes && char_at(s) == 0x2581u;
        if (length > 0 && (marks || *s == ' ') &&
            (t->split == MCUD_SPLIT_SPACES || (t->split == MCUD_SPLIT_RUNS && word[length - 1u] != ' '))) {
            break;
        }
        uint32_t written = marks ? 1u : bytes;
        if (room - length < written) {
            return room + 1u;
        }
        memcpy(word + length, marks ? (const uint8_t *)" " : s, written);
        length += written;
        s += bytes;
    }
    text->at = s;
    text->starts_part = false;
    return length;
}

/* A word as symbols: a symbol i is the bytes [starts[i], starts[i + 1]) of the word. */
typedef struct {
    const mcud_tokenizer *t;
    const uint8_t *bytes;
    uint32_t *ids, *starts, *ranks, count, length;
} symbols;

static void add_symbol(symbols *w, uint32_t id, uint32_t start)
{
    w->ids[w->count] = id;
    w->starts[w->count++] = start;
}

static void divide(symbols *w)
{
    const mcud_tokenizer *t = w->t;
    bool was_unknown = false;
    for (uint32_t at = 0; at < w->length;) {
        uint32_t length = t->of_bytes ? 1u : char_length(w->bytes[at]), id = find(t, w->bytes + at, length);
        bool is_unknown = id == MCUD_NO_TOKEN && t->first_byte == MCUD_NO_TOKEN;
        if (id != MCUD_NO_TOKEN) {
            add_symbol(w, id, at);
        } else if (!is_unknown) {
            for (uint32_t i = at; i < at + length; i++) {
                add_symbol(w, t->first_byte + w->bytes[i], i);
            }
        } else if (!(t->fuses_unknown && was_unknown)) {
            add_symbol(w, t->unknown, at);
        }
        was_unknown = is_unknown;
        at += length;
    }
    w->starts[w->count] = w->length;
}

/* Whether symbol i may merge: bytes and the unknown token may not. */
static bool can_merge(const symbols *w, uint32_t i)
{
    uint32_t id = w->ids[i], first = w->t->first_byte;
    return id != w->t->unknown && (first == MCUD_NO_TOKEN || id - first > 255u);
}

/* The rank of the merge of symbols i and i + 1; the least rank is merged first. */
static uint32_t rank_of(const symbols *w, uint32_t i)
{
    uint32_t start = w->starts[i], left = w->starts[i + 1u] - start, width = w->t->merge_bytes;
    if (!can_merge(w, i) || !can_merge(w, i + 1u)) {
        return NO_RANK;
    }
    uint32_t id = find(w->t, w->bytes + start, w->starts[i + 2u] - start);
    if (id == MCUD_NO_TOKEN) {
        return NO_RANK;
    }
    piece p = piece_of(w->t, id);
    for (uint32_t j = 0; j < p.merge_count; j++) {
        const uint8_t *merge = p.merges + j * width;
        if (merge[0] == left) {
            return width == 1u ? id << 8 | j : (uint32_t)(merge[1] | merge[2] << 8 | merge[3] << 16);
        }
    }
    return NO_RANK;
}

static void remove_at(uint32_t *array, uint32_t i, uint32_t count)
{
    memmove(array + i, array + i + 1, (count - i - 1u) * sizeof *array);
}

static uint32_t encode_bpe(symbols *w)
{
    uint32_t whole = w->t->whole_words ? find(w->t, w->bytes, w->length) : MCUD_NO_TOKEN;
    if (whole != MCUD_NO_TOKEN) {
        w->ids[0] = whole;
        return 1;
    }
    divide(w);
    for (uint32_t i = 0; i + 1u < w->count; i++) {
        w->ranks[i] = rank_of(w, i);
    }
    while (w->count > 1u) {
        uint32_t best = 0;
        for (uint32_t i = 1; i + 1u < w->count; i++) {
            best = w->ranks[i] < w->ranks[best] ? i : best;
        }
        if (w->ranks[best] == NO_RANK) {
            break;
        }
        w->ids[best] = find(w->t, w->bytes + w->starts[best], w->starts[best + 2u] - w->starts[best]);
        remove_at(w->ids, best + 1u, w->count);
        remove_at(w->starts, best + 1u, w->count + 1u);
        remove_at(w->ranks, best, w->count - 1u);
        w->count--;
        for (uint32_t i = best > 0 ? best - 1u : 0; i <= best && i + 1u < w->count; i++) {
            w->ranks[i] = rank_of(w, i);
        }
    }
    return w->count;
}

/* Enters `id` as the token that ends at a place, if its path has the best score until now. */
static void reach(uint32_t *ids, uint32_t *scores, uint32_t place, uint32_t id, double score)
{
    double known;
    memcpy(&known, scores + 2u * place, sizeof known);
    if (ids[place] == MCUD_NO_TOKEN || score > known) {
        ids[place] = id;
        memcpy(scores + 2u * place, &score, sizeof score);
    }
}

/* The best path: ids[i] is the token that ends before byte i. */
static void find_path(const mcud_tokenizer *t, const uint8_t *bytes, uint32_t length, uint32_t *ids, uint32_t *scores)
{
    const double zero = 0.0;
    memset(ids, 0xFF, (length + 1u) * sizeof *ids);
    memcpy(scores, &zero, sizeof zero);
    for (uint32_t at = 0; at < length; at += char_length(bytes[at])) {
        uint32_t low = 0, high = t->sorted_count, own = char_length(bytes[at]);
        bool has_own = false;
        double score;
        memcpy(&score, scores + 2u * at, sizeof score);
        for (uint32_t n = 0; at + n < length && low < high;) {
            low = first_with(t, low, high, n, bytes[at + n]);
            high = first_with(t, low, high, n, bytes[at + n] + 1u);
            n++;
            uint32_t id = low < high ? sorted_id(t, low) : MCUD_NO_TOKEN;
            if (id != MCUD_NO_TOKEN && piece_of(t, id).length == n) {
                reach(ids, scores, at + n, id, score + (t->scores32 ? (double)t->scores32[id] : t->scores64[id]));
                has_own = has_own || n == own;
            }
        }
        if (!has_own) {
            reach(ids, scores, at + own, t->unknown, score + t->unknown_score);
        }
    }
}

static uint32_t encode_unigram(symbols *w)
{
    const mcud_tokenizer *t = w->t;
    uint32_t *ids = w->ids, *scores = w->starts, *backwards = w->starts, count = 0; /* scores are read before */
    find_path(t, w->bytes, w->length, ids, scores);
    for (uint32_t end = w->length; end > 0;) {
        uint32_t id = ids[end], begin = end;
        if (id != t->unknown) {
            begin -= piece_of(t, id).length;
            backwards[count++] = id;
        } else {
            do {
                begin--;
            } while ((w->bytes[begin] & 0xC0u) == 0x80u);
            for (uint32_t i = end; t->first_byte != MCUD_NO_TOKEN && i > begin; i--) {
                backwards[count++] = t->first_byte + w->bytes[i - 1u];
            }
            if (t->first_byte == MCUD_NO_TOKEN && !(count > 0 && backwards[count - 1u] == id)) {
                backwards[count++] = id;
            }
        }
        end = begin;
    }
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = backwards[count - 1u - i];
    }
    return count;
}

int32_t mcud_text_begin(mcud_text *text, const mcud_tokenizer *tokenizer, const char *utf8, uint32_t bytes)
{
    const uint8_t *s = (const uint8_t *)utf8;
    *text = (mcud_text){tokenizer, s, s, s, s + bytes, false, false};
    return is_utf8(s, s + bytes) ? 0 : MCUD_TEXT_UTF8;
}

int32_t mcud_text_next(mcud_text *text, uint32_t *ids, uint32_t capacity)
{
    const mcud_tokenizer *t = text->tokenizer;
    if (!text->has_begun && t->before_count > 0) {
        if (capacity < t->before_count) {
            return MCUD_TEXT_LONG;
        }
        text->has_begun = true;
        memcpy(ids, t->before, t->before_count * sizeof *ids);
        return t->before_count;
    }
    if (text->at == text->end) {
        return 0;
    }
    if (capacity < 4u) {
        return MCUD_TEXT_LONG;
    }
    if (text->at == text->part_end) {
        uint32_t verbatim = 0, id = 0;
        const uint8_t *until = next_added(t, text->at, text->end, 0, t->added_verbatim, &verbatim);
        text->part_end = next_added(t, text->at, until, t->added_verbatim, t->added_count, &id);
        text->starts_part = true;
        if (text->part_end == text->at) {
            ids[0] = text->at < until ? id : verbatim;
            text->at += piece_of(t, ids[0]).length;
            text->part_end = text->at;
            return 1;
        }
    }
    uint32_t room = capacity - 4u;
    uint32_t length = take_word(text, (uint8_t *)ids, room); /* 4 n entries: n of them are the bytes of the word */
    if (length > room / 4u) {
        return MCUD_TEXT_LONG;
    }
    uint8_t *bytes = (uint8_t *)(ids + 3u * (length + 1u));
    memmove(bytes, ids, length);
    symbols w = {t, bytes, ids, ids + length + 1u, ids + 2u * (length + 1u), 0, length};
    return (int32_t)(t->scores32 || t->scores64 ? encode_unigram(&w) : encode_bpe(&w));
}

int32_t mcud_encode(const mcud_tokenizer *tokenizer, const char *utf8, uint32_t bytes, uint32_t *ids,
                    uint32_t capacity)
{
    mcud_text text;
    int32_t error = mcud_text_begin(&text, tokenizer, utf8, bytes), id_count;
    uint32_t count = 0;
    if (error < 0) {
        return error;
    }
    while ((id_count = mcud_text_next(&text, ids + count, capacity - count)) > 0) {
        count += (uint32_t)id_count;
    }
    return id_count < 0 ? id_count : (int32_t)count;
}

const uint8_t *mcud_piece(const mcud_tokenizer *tokenizer, uint32_t id, uint32_t *bytes)
{
    *bytes = 0;
    if (id >= tokenizer->count) {
        return NULL;
    }
    for (uint32_t i = 0; i < tokenizer->added_count; i++) {
        if (tokenizer->added[i] == (id | SPECIAL)) {
            return NULL;
        }
    }
    piece p = piece_of(tokenizer, id);
    *bytes = p.length;
    return p.bytes;
}

bool mcud_is_end(const mcud_tokenizer *tokenizer, uint32_t id)
{
    for (uint32_t i = 0; i < tokenizer->end_count; i++) {
        if (tokenizer->ends[i] == id) {
            return true;
        }
    }
    return false;
}
