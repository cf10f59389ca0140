/* json_parse.c: text -> tree, on yajl's event stream.
 *
 * Finished values wait on one stack; when a container closes, its members are the top of that
 * stack and are copied, contiguous, into the document's arena. So the parser needs memory for the
 * open containers only, and depth lives in an array of frames, never in recursion.
 *
 * yajl tells where a token ends. Where it begins is found by skipping white space, commas and
 * colons from the end of the token before; lines and columns are counted on the way, once over the
 * text. Numbers are read in the C locale, whatever locale a terminal has set.
 *
 * yajl takes memory for granted: it writes to whatever its allocator returns. So its memory is on a
 * list of ours, and when there is none the parse is left by a jump and the list freed.
 */
#include "lab/files/json.h"
#include "lab/files/json_tree.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#define MIN_CHUNK_BYTES    ((size_t)1024)
#define MAX_CHUNK_BYTES    ((size_t)256 * 1024)
#define DEFAULT_MAX_BYTES  ((size_t)1 << 30)
#define DEFAULT_MAX_VALUES ((size_t)1 << 26)
#define DEFAULT_MAX_DEPTH  ((size_t)64)
#define NUMBER_CHARS       400
#define POLL_VALUES        ((size_t)1024) /* between looks at `cancelled` */
#define COLUMN_MAX         ((1u << 28) - 1)

typedef struct json_frame {
    size_t first; /* of its members on the value stack */
    const char *key;
    uint32_t line, column;
    bool is_object;
} json_frame;

/* In front of each of yajl's blocks. */
typedef struct yajl_block {
    _Alignas(max_align_t) struct yajl_block *next;
    struct yajl_block *before;
} yajl_block;

typedef struct json_builder {
    dbo_json *doc;
    dbo_json_limits limits;
    yajl_handle yajl;
    yajl_block *blocks; /* yajl's */
    jmp_buf no_memory;
    const char *text;
    size_t length;
    bool at_end;      /* yajl is told that no more text comes */
    size_t token_end; /* of the latest token */
    size_t place;     /* line and column below are those of this offset */
    uint32_t line, column;
    const char *key; /* waits for its value */
    dbo_json_value *values;
    size_t num_values, cap_values, total_values;
    json_frame *frames;
    size_t num_frames, cap_frames;
    locale_t c_locale;
    dbo_status status;
    dbo_error *err;
} json_builder;

static void move_place(json_builder *b, size_t offset)
{
    for (; b->place < offset; b->place++) {
        unsigned char c = (unsigned char)b->text[b->place];
        if (c == '\n') {
            b->line++;
            b->column = 1;
        } else if ((c & 0xC0u) != 0x80u && b->column < COLUMN_MAX) {
            b->column++;
        }
    }
}

/* Moves to the beginning of the token that yajl has just finished. */
static void locate_token(json_builder *b)
{
    size_t start = b->token_end;
    while (start < b->length && strchr(" \t\r\n,:", b->text[start]) != NULL &&
           b->text[start] != '\0')
        start++;
    move_place(b, start);
    b->token_end = b->at_end ? b->length : yajl_get_bytes_consumed(b->yajl);
}

static int stop(json_builder *b, dbo_status status)
{
    b->status = status;
    return 0;
}

#define STOP_HERE(b, status, hint, format, ...)                                              \
    stop((b), dbo_fail((b)->err, (status), (hint), "line %u, column %u: " format, (b)->line, \
                       (b)->column, __VA_ARGS__))

static bool grow(void **array, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity)
        return true;
    size_t larger = *capacity == 0 ? 64 : *capacity * 2;
    void *moved = realloc(*array, larger * size);
    if (moved == NULL)
        return false;
    *array = moved;
    *capacity = larger;
    return true;
}

static int push(json_builder *b, dbo_json_value value)
{
    if (++b->total_values > b->limits.max_values)
        return STOP_HERE(b, DBO_LIMIT, NULL, "the document has more than %zu values",
                         b->limits.max_values);
    bool polls = b->limits.cancelled && b->total_values % POLL_VALUES == 0;
    if (polls && b->limits.cancelled(b->limits.cancelled_self))
        return stop(b, dbo_fail(b->err, DBO_CANCELLED, NULL, "interrupted"));
    if (!grow((void **)&b->values, &b->cap_values, b->num_values + 1, sizeof *b->values))
        return stop(b, dbo_fail_memory(b->err, "a JSON document"));
    value.key = b->key;
    b->key = NULL;
    b->values[b->num_values++] = value;
    return 1;
}

static dbo_json_value here(const json_builder *b, dbo_json_type type)
{
    return (dbo_json_value){
        .type = (uint32_t)type & 15u, .line = b->line, .column = b->column & COLUMN_MAX};
}

static const char *copy_text(json_builder *b, const unsigned char *text, size_t length)
{
    if (memchr(text, 0, length) != NULL) {
        (void)STOP_HERE(b, DBO_PARSE, NULL, "a string holds the character %s, which is refused",
                        "U+0000");
        return NULL;
    }
    char *copy = dbo_arena_alloc_aligned(&b->doc->arena, length + 1, 1);
    if (copy == NULL) {
        (void)stop(b, dbo_fail_memory(b->err, "a JSON string"));
        return NULL;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

static int on_null(void *ctx)
{
    json_builder *b = ctx;
    locate_token(b);
    return push(b, here(b, DBO_JSON_NULL));
}

static int on_boolean(void *ctx, int boolean)
{
    json_builder *b = ctx;
    locate_token(b);
    dbo_json_value value = here(b, DBO_JSON_BOOL);
    value.u.boolean = boolean != 0;
    return push(b, value);
}

static int on_number(void *ctx, const char *text, size_t length)
{
    json_builder *b = ctx;
    locate_token(b);
    char digits[NUMBER_CHARS];
    if (length >= sizeof digits)
        return STOP_HERE(b, DBO_LIMIT, NULL, "a number of %zu characters is too long", length);
    memcpy(digits, text, length);
    digits[length] = '\0';
    dbo_json_value value = here(b, DBO_JSON_INT);
    bool whole = strpbrk(digits, ".eE") == NULL;
    if (whole) {
        errno = 0;
        value.u.integer = strtoll(digits, NULL, 10);
        whole = errno == 0;
    }
    if (!whole) {
        value.type = DBO_JSON_DOUBLE;
        value.u.real = strtod_l(digits, NULL, b->c_locale);
        if (isinf(value.u.real))
            return STOP_HERE(b, DBO_PARSE, NULL, "the number %.40s overflows a double", digits);
    }
    return push(b, value);
}

static int on_string(void *ctx, const unsigned char *text, size_t length)
{
    json_builder *b = ctx;
    locate_token(b);
    dbo_json_value value = here(b, DBO_JSON_STRING);
    value.u.text = copy_text(b, text, length);
    return value.u.text == NULL ? 0 : push(b, value);
}

static int on_key(void *ctx, const unsigned char *text, size_t length)
{
    json_builder *b = ctx;
    locate_token(b);
    b->key = copy_text(b, text, length);
    return b->key != NULL;
}

static int open_container(json_builder *b, bool is_object)
{
    locate_token(b);
    if (b->num_frames >= b->limits.max_depth)
        return STOP_HERE(b, DBO_LIMIT, NULL, "arrays and objects are nested more than %zu deep",
                         b->limits.max_depth);
    if (!grow((void **)&b->frames, &b->cap_frames, b->num_frames + 1, sizeof *b->frames))
        return stop(b, dbo_fail_memory(b->err, "a JSON document"));
    b->frames[b->num_frames++] = (json_frame){.first = b->num_values,
                                              .key = b->key,
                                              .line = b->line,
                                              .column = b->column,
                                              .is_object = is_object};
    b->key = NULL;
    return 1;
}

static int on_open_object(void *ctx)
{
    return open_container(ctx, true);
}

static int on_open_array(void *ctx)
{
    return open_container(ctx, false);
}

static int compare_keys(const void *left, const void *right)
{
    const dbo_json_value *const *a = left;
    const dbo_json_value *const *b = right;
    int order = strcmp((*a)->key, (*b)->key);
    return order != 0 ? order : (*a < *b ? -1 : 1); /* so that the later one is named */
}

static int fail_twice(json_builder *b, const dbo_json_value *again)
{
    return stop(b, dbo_fail(b->err, DBO_PARSE, "Keep one of the two.",
                            "line %u, column %u: the key \"%.80s\" appears twice in one object",
                            again->line, (unsigned)again->column, again->key));
}

/* Looks for a key given twice, and leaves the sorted index behind the members of a large object. */
static int index_members(json_builder *b, dbo_json_value *items, size_t count)
{
    if (count <= DBO_JSON_SMALL) {
        for (size_t i = 1; i < count; i++)
            for (size_t j = 0; j < i; j++)
                if (strcmp(items[i].key, items[j].key) == 0)
                    return fail_twice(b, &items[i]);
        return 1;
    }
    const dbo_json_value **sorted = (const dbo_json_value **)(void *)(items + count);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &items[i];
    qsort(sorted, count, sizeof(dbo_json_value *), compare_keys);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            return fail_twice(b, sorted[i]);
    return 1;
}

static int close_container(void *ctx)
{
    json_builder *b = ctx;
    locate_token(b);
    json_frame frame = b->frames[--b->num_frames];
    size_t count = b->num_values - frame.first;
    if (count > UINT32_MAX)
        return STOP_HERE(b, DBO_LIMIT, NULL, "an array of %zu values is too long", count);
    dbo_json_value value = {.type = frame.is_object ? DBO_JSON_OBJECT : DBO_JSON_ARRAY,
                            .line = frame.line,
                            .column = frame.column & COLUMN_MAX,
                            .count = (uint32_t)count};
    if (count > 0) {
        bool indexed = frame.is_object && count > DBO_JSON_SMALL;
        size_t bytes = count * sizeof(dbo_json_value);
        size_t index_bytes = indexed ? count * sizeof(dbo_json_value *) : 0;
        dbo_json_value *items = dbo_arena_alloc(&b->doc->arena, bytes + index_bytes);
        if (items == NULL)
            return stop(b, dbo_fail_memory(b->err, "a JSON document"));
        memcpy(items, b->values + frame.first, bytes);
        if (frame.is_object && !index_members(b, items, count))
            return 0;
        value.u.items = items;
    }
    b->num_values = frame.first;
    b->key = frame.key;
    return push(b, value);
}

static const yajl_callbacks callbacks = {.yajl_null = on_null,
                                         .yajl_boolean = on_boolean,
                                         .yajl_number = on_number,
                                         .yajl_string = on_string,
                                         .yajl_start_map = on_open_object,
                                         .yajl_map_key = on_key,
                                         .yajl_end_map = close_container,
                                         .yajl_start_array = on_open_array,
                                         .yajl_end_array = close_container};

/* ---- yajl's memory ---- */

static void link_block(json_builder *b, yajl_block *block)
{
    block->before = NULL;
    block->next = b->blocks;
    b->blocks = block;
    if (block->next)
        block->next->before = block;
}

static void unlink_block(json_builder *b, const yajl_block *block)
{
    *(block->before ? &block->before->next : &b->blocks) = block->next;
    if (block->next)
        block->next->before = block->before;
}

static void *yajl_resize(void *ctx, void *memory, size_t bytes)
{
    json_builder *b = ctx;
    yajl_block *block = memory ? (yajl_block *)memory - 1 : NULL;
    if (block)
        unlink_block(b, block);
    yajl_block *moved = realloc(block, sizeof *block + bytes);
    if (!moved) {
        free(block);
        longjmp(b->no_memory, 1);
    }
    link_block(b, moved);
    return moved + 1;
}

static void *yajl_take(void *ctx, size_t bytes)
{
    return yajl_resize(ctx, NULL, bytes);
}

static void yajl_give(void *ctx, void *memory)
{
    if (!memory)
        return;
    yajl_block *block = (yajl_block *)memory - 1;
    unlink_block(ctx, block);
    free(block);
}

static void free_blocks(json_builder *b)
{
    for (yajl_block *block = b->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
}

/* ---- the parse ---- */

/* yajl's own verdict, with our place in it. */
static dbo_status fail_malformed(json_builder *b)
{
    unsigned char *text = yajl_get_error(b->yajl, 0, NULL, 0);
    const char *said = text != NULL ? (const char *)text : "malformed";
    bool lexical = strncmp(said, "lexical", 7) == 0;
    const char *colon = strstr(said, ": ");
    said = colon != NULL ? colon + 2 : said;
    int length = (int)strcspn(said, "\n");
    if (b->at_end) {
        move_place(b, b->length);
        said = "the text ends too early";
        length = (int)strlen(said);
    } else if (lexical) {
        size_t offset = yajl_get_bytes_consumed(b->yajl);
        move_place(b, offset > b->length ? b->length : offset);
    } else {
        locate_token(b);
    }
    dbo_status status = dbo_fail(b->err, DBO_PARSE, NULL, "line %u, column %u: not JSON: %.*s",
                                 b->line, b->column, length, said);
    if (text != NULL)
        yajl_free_error(b->yajl, text);
    return status;
}

static dbo_status run_yajl(json_builder *b)
{
    yajl_alloc_funcs memory = {
        .malloc = yajl_take, .realloc = yajl_resize, .free = yajl_give, .ctx = b};
    if (setjmp(b->no_memory) != 0)
        return dbo_fail_memory(b->err, "a JSON document");
    b->yajl = yajl_alloc(&callbacks, &memory, b);
    const unsigned char *text = (const unsigned char *)b->text;
    yajl_status verdict = yajl_parse(b->yajl, text, b->length);
    if (verdict == yajl_status_ok) {
        b->at_end = true;
        verdict = yajl_complete_parse(b->yajl);
    }
    if (b->status != DBO_OK)
        return b->status;
    if (verdict != yajl_status_ok)
        return fail_malformed(b);
    if (b->num_values != 1)
        return dbo_fail(b->err, DBO_PARSE, NULL, "the text holds no JSON value");
    b->doc->root = b->values[0];
    return DBO_OK;
}

static void set_limits(json_builder *b, const dbo_json_limits *limits)
{
    b->limits = limits != NULL ? *limits : (dbo_json_limits){0};
    if (b->limits.max_bytes == 0)
        b->limits.max_bytes = DEFAULT_MAX_BYTES;
    if (b->limits.max_values == 0)
        b->limits.max_values = DEFAULT_MAX_VALUES;
    if (b->limits.max_depth == 0)
        b->limits.max_depth = DEFAULT_MAX_DEPTH;
}

/* A one-line document should not hold a large chunk, nor a large one be cut into many. */
static size_t chunk_bytes(size_t length)
{
    if (length < MIN_CHUNK_BYTES)
        return MIN_CHUNK_BYTES;
    return length < MAX_CHUNK_BYTES ? length : MAX_CHUNK_BYTES;
}

dbo_status dbo_json_parse(dbo_json **out, const char *text, size_t length,
                          const dbo_json_limits *limits, dbo_error *err)
{
    *out = NULL;
    json_builder b = {.text = text, .length = length, .line = 1, .column = 1, .err = err};
    set_limits(&b, limits);
    if (length > b.limits.max_bytes)
        return dbo_fail(err, DBO_LIMIT, NULL, "the text has %zu bytes, more than the limit of %zu",
                        length, b.limits.max_bytes);
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        b.text += 3;
        b.length -= 3;
    }
    dbo_status status = DBO_NO_MEMORY;
    b.c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    b.doc = calloc(1, sizeof *b.doc);
    if (b.doc != NULL)
        dbo_arena_init(&b.doc->arena, chunk_bytes(b.length));
    if (b.c_locale != (locale_t)0 && b.doc != NULL)
        status = run_yajl(&b);
    else
        (void)dbo_fail_memory(err, "a JSON document");
    free_blocks(&b); /* all that yajl has */
    if (b.c_locale != (locale_t)0)
        freelocale(b.c_locale);
    free(b.values);
    free(b.frames);
    if (status == DBO_OK)
        *out = b.doc;
    else
        dbo_json_destroy(b.doc);
    return status;
}

void dbo_json_destroy(dbo_json *doc)
{
    if (doc == NULL)
        return;
    dbo_arena_fini(&doc->arena);
    free(doc);
}
