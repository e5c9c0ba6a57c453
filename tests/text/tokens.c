/* Prints the ids of each text of stdin, a line of hexadecimal digits each; "all", then "pieces": the bytes of every id. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcud_tokenizer.h"

extern const mcud_tokenizer tokenizer;

int main(int count, char **arguments)
{
    static char line[1 << 16];
    uint32_t capacity = count > 1 ? (uint32_t)atoi(arguments[1]) : 1u << 14;
    uint32_t *ids = malloc(capacity * sizeof *ids); /* its end is watched by ASan */
    while (fgets(line, sizeof line, stdin)) {
        uint32_t bytes = (uint32_t)strcspn(line, "\n") / 2u;
        char *text = malloc(bytes ? bytes : 1u);
        for (uint32_t i = 0; i < bytes; i++) {
            char digits[3] = {line[2u * i], line[2u * i + 1u], 0};
            text[i] = (char)strtol(digits, NULL, 16);
        }
        int32_t id_count = mcud_encode(&tokenizer, text, bytes, ids, capacity);
        free(text);
        printf("%d", (int)id_count);
        for (int32_t i = 0; i < id_count; i++) {
            printf(" %u", (unsigned)ids[i]);
        }
        printf("\n");
    }
    for (uint32_t id = 0; id < tokenizer.count + 2u; id++) {
        uint32_t bytes;
        const uint8_t *piece = mcud_piece(&tokenizer, id, &bytes);
        printf("%d:", mcud_is_end(&tokenizer, id));
        for (uint32_t i = 0; i < bytes; i++) {
            printf("%02x", piece[i]);
        }
        printf("\n");
    }
    free(ids);
    return 0;
}
