/* Text to the ids of tokens, and ids to bytes, by tables that mcudeploy makes of a tokenizer.json.
 *
 * A text is divided into words, one at a time, so the memory does not grow with the text. A word is at most as long as
 * the buffer of the caller allows; see mcud_text_next().
 */
#ifndef MCUD_TOKENIZER_H
#define MCUD_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MCUD_NO_TOKEN UINT32_MAX
#define MCUD_TEXT_LONG (-1) /* the buffer is too small for a word, or for all tokens */
#define MCUD_TEXT_UTF8 (-2) /* the text is not UTF-8 */

enum mcud_prefix { MCUD_PREFIX_NONE, MCUD_PREFIX_ALL, MCUD_PREFIX_UNLESS_SPACE, MCUD_PREFIX_FIRST };
enum mcud_split { MCUD_SPLIT_NONE, MCUD_SPLIT_SPACES, MCUD_SPLIT_RUNS, MCUD_SPLIT_GPT2 };

/* Generated tables; all are constant. A piece is the bytes of a token, at most 255. */
typedef struct {
    uint32_t count;               /* ids are 0 to count - 1 */
    const uint8_t *records;       /* of each id: length of the piece, piece, merges */
    const uint32_t *block_starts; /* the first byte of every 32nd record */
    const uint16_t *starts;       /* [count + 1], from the start of the block */
    const uint16_t *sorted;       /* lower 16 bits of the ids of pieces, in the order of their bytes */
    const uint8_t *sorted_high;   /* the 8 bits above; NULL up to 65,536 ids */
    uint32_t sorted_count;
    const float *scores32;        /* [count] of a Unigram model: one of both, NULL for BPE */
    const double *scores64;
    double unknown_score;
    uint32_t unknown;             /* id for characters without a piece, MCUD_NO_TOKEN without one */
    uint32_t first_byte;          /* id of byte 0, which 255 others follow; MCUD_NO_TOKEN without byte fallback */
    const uint32_t *added;        /* ids that text may name, longest first; bit 31: a special token, not text */
    uint16_t added_verbatim;      /* the number of those that are found before all others; they come first */
    uint16_t added_count;
    const uint32_t *before;       /* ids at the beginning of a text, such as BOS */
    uint8_t before_count;
    uint8_t end_count;
    const uint32_t *ends;         /* ids that end a generated text, such as EOS */
    const uint8_t *classes;       /* letters and numbers of Unicode from 128 on; NULL unless MCUD_SPLIT_GPT2 */
    uint8_t prefix;               /* enum mcud_prefix: a space before each part of the text */
    uint8_t split;                /* enum mcud_split */
    uint8_t merge_bytes;          /* of a merge: 1, the length of its left part; 4, with its rank in 24 bits */
    bool of_bytes;                /* symbols are bytes, else characters; U+2581 is then a space */
    bool fuses_unknown;
    bool whole_words;             /* a word that is a piece needs no merges */
} mcud_tokenizer;

typedef struct {
    const mcud_tokenizer *tokenizer;
    const uint8_t *begin, *at, *part_end, *end;
    bool starts_part, has_begun;
} mcud_text;

/* Begins a text of `bytes` bytes, which stays where it is. Returns 0 or MCUD_TEXT_UTF8. */
int32_t mcud_text_begin(mcud_text *text, const mcud_tokenizer *tokenizer, const char *utf8, uint32_t bytes);

/* Writes the ids of the next word to `ids`; the first word is the tokens at the beginning, if there are any. Returns
 * their number, 0 at the end of the text, or MCUD_TEXT_LONG. A word of n bytes needs a `capacity` of 4 n + 4. */
int32_t mcud_text_next(mcud_text *text, uint32_t *ids, uint32_t capacity);

/* Writes the ids of a whole text. Returns their number or an error. `capacity` must hold the ids before each word, and
 * 4 n + 4 others for a word of n bytes. */
int32_t mcud_encode(const mcud_tokenizer *tokenizer, const char *utf8, uint32_t bytes, uint32_t *ids,
                    uint32_t capacity);

/* Returns the bytes of a token in a text; NULL and 0 for special tokens and ids that do not exist. A character may
 * span several tokens. */
const uint8_t *mcud_piece(const mcud_tokenizer *tokenizer, uint32_t id, uint32_t *bytes);

/* Returns whether a token ends a generated text. */
bool mcud_is_end(const mcud_tokenizer *tokenizer, uint32_t id);

#ifdef __cplusplus
}
#endif

#endif
