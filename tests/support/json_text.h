/* json_text.h: a sink of JSON that keeps everything in memory.
 *
 *     json_text text = {0};
 *     dbo_json_writer_init(&out, json_text_sink, &text, 1);
 *     ...
 *     json_text_fini(&text);
 */
#ifndef TESTS_JSON_TEXT_H
#define TESTS_JSON_TEXT_H

#include "lab/files/json_write.h"

#include <stdlib.h>
#include <string.h>

typedef struct json_text {
    char *bytes; /* NUL-terminated once something is written */
    size_t length, capacity;
} json_text;

static inline bool json_text_sink(void *text, const char *bytes, size_t length)
{
    json_text *t = text;
    if (t->capacity - t->length <= length) {
        size_t capacity = (t->capacity + length + 1) * 2;
        char *larger = realloc(t->bytes, capacity);
        if (larger == NULL)
            return false;
        t->bytes = larger;
        t->capacity = capacity;
    }
    memcpy(t->bytes + t->length, bytes, length);
    t->length += length;
    t->bytes[t->length] = '\0';
    return true;
}

static inline void json_text_fini(json_text *text)
{
    free(text->bytes);
    *text = (json_text){0};
}

#endif
