/* json_parse.c: text -> tree, by jansson, inside limits.
 *
 * Before jansson sees the text, a scan of its brackets and commas bounds depth and values. The same
 * scan, stopped where jansson stopped, says where that is: the path, the line, the column.
 *
 * jansson's memory is the document's arena: a piece is never given back by itself, so a tree goes
 * with its arena, and jansson, which does not look at every refusal (a token that could not grow is
 * read past its end), is left by a jump when there is no more. jansson keeps its allocator for the
 * whole process; ours looks at what this thread is parsing, and is malloc where it is nothing.
 */
#include "core/base/arena.h"
#include "core/base/strbuf.h"
#include "lab/files/json.h"

#include <errno.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_CHUNK_BYTES    ((size_t)2 * 1024)
#define MAX_CHUNK_BYTES    ((size_t)64 * 1024)
#define DEFAULT_MAX_BYTES  ((size_t)256 << 20)
#define DEFAULT_MAX_VALUES ((size_t)1 << 22)
#define POLL_PIECES        1024u /* between looks at `cancelled` */

struct dbo_json {
    dbo_arena arena; /* the tree */
    dbo_json_value root;
};

/* ---- where a place is ---- */

typedef struct scan_frame {
    const char *key; /* NULL: none yet, or an array */
    size_t key_length, index;
    bool is_object;
} scan_frame;

typedef struct scan {
    const char *text;
    size_t length, at;
    size_t token; /* where the latest one begins */
    size_t depth, values;
    bool wants_key;
    scan_frame frames[DBO_JSON_MAX_DEPTH];
} scan;

static void scan_string(scan *s, size_t end)
{
    size_t start = ++s->at;
    while (s->at < end && s->text[s->at] != '"')
        s->at += s->text[s->at] == '\\' ? 2 : 1;
    if (s->at < end && s->wants_key) {
        s->frames[s->depth - 1].key = s->text + start;
        s->frames[s->depth - 1].key_length = s->at - start;
    }
    s->at++;
}

static void scan_comma(scan *s)
{
    s->values++;
    s->at++;
    if (s->depth == 0)
        return;
    scan_frame *frame = &s->frames[s->depth - 1];
    frame->index++;
    frame->key = NULL;
    s->wants_key = frame->is_object;
}

static bool scan_open(scan *s)
{
    if (s->depth == DBO_JSON_MAX_DEPTH)
        return false;
    s->values++;
    s->wants_key = s->text[s->at++] == '{';
    s->frames[s->depth++] = (scan_frame){.is_object = s->wants_key};
    return true;
}

static bool is_word_char(char c)
{
    char bracket = (char)(c | 0x20); /* [ and ] are { and } then */
    return c > ' ' && c != ',' && c != ':' && c != '"' && bracket != '{' && bracket != '}';
}

/* Goes on to `end`, over text that may be malformed; false where it is too deep or has too much. */
static bool scan_to(scan *s, size_t end, size_t max_values)
{
    while (s->at < end && s->values < max_values) {
        char c = s->text[s->at];
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            s->at++;
            continue;
        }
        s->token = s->at;
        switch (c) {
        case '"': scan_string(s, end); break;
        case '{':
        case '[':
            if (!scan_open(s))
                return false;
            break;
        case '}':
        case ']':
            s->depth -= s->depth > 0;
            s->wants_key = false;
            s->at++;
            break;
        case ',': scan_comma(s); break;
        case ':':
            s->wants_key = false;
            s->at++;
            break;
        default:
            while (++s->at < end && is_word_char(s->text[s->at]))
                continue;
        }
    }
    return s->at >= end;
}

/* Of text that may be anything, so that a sentence is one line. */
static void make_plain(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7F)
            *text = '?';
}

static void put_scanned_path(const scan *s, char *out, size_t size)
{
    size_t length = 0;
    out[0] = '\0';
    for (size_t d = 0; d < s->depth && length < size; d++) {
        const scan_frame *frame = &s->frames[d];
        int more = 0;
        if (!frame->is_object)
            more = snprintf(out + length, size - length, "[%zu]", frame->index);
        else if (frame->key)
            more = snprintf(out + length, size - length, "%s%.*s", length > 0 ? "." : "",
                            (int)(frame->key_length < 64 ? frame->key_length : 64), frame->key);
        length += (size_t)more;
    }
    make_plain(out);
}

/* Fails at the latest token of a scan. */
static dbo_status fail_at(const scan *s, const dbo_json_options *options, dbo_status status,
                          const char *hint, const char *sentence, dbo_error *err)
{
    uint32_t line = options->line > 0 ? options->line : 1, column = 1;
    char path[200];
    for (size_t i = 0; i < s->token; i++) {
        unsigned char c = (unsigned char)s->text[i];
        line += c == '\n';
        column = c == '\n' ? 1 : column + ((c & 0xC0u) != 0x80u);
    }
    put_scanned_path(s, path, sizeof path);
    if (path[0] != '\0')
        dbo_fail(err, status, hint, "line %u, column %u: %s: %s", line, column, path, sentence);
    else
        dbo_fail(err, status, hint, "line %u, column %u: %s", line, column, sentence);
    if (err) {
        dbo_error_key(err, "%s", path);
        dbo_error_at(err, options->name, 0);
        err->line = line;
        err->column = column;
    }
    return status;
}

/* ---- jansson's memory ---- */

typedef struct parse {
    dbo_arena *arena;
    const dbo_json_options *options;
    uint32_t pieces;
    jmp_buf leave; /* with a dbo_status */
} parse;

static _Thread_local parse *parsing; /* NULL: nothing */

static void *take_memory(size_t bytes)
{
    parse *p = parsing;
    if (!p)
        return malloc(bytes);
    bool polls = p->options->cancelled && ++p->pieces % POLL_PIECES == 0;
    if (polls && p->options->cancelled(p->options->cancelled_self))
        longjmp(p->leave, DBO_CANCELLED);
    void *piece = dbo_arena_alloc_aligned(p->arena, bytes, _Alignof(double)); /* its strictest */
    if (!piece)
        longjmp(p->leave, DBO_NO_MEMORY);
    return piece;
}

static void give_memory(void *memory)
{
    if (!parsing)
        free(memory);
}

static void set_allocator(void)
{
    json_set_alloc_funcs(take_memory, give_memory);
}

/* ---- the parse ---- */

static dbo_status fail_malformed(scan *s, const dbo_json_options *options, const json_error_t *said,
                                 dbo_error *err)
{
    const char *sentence = NULL, *hint = NULL;
    char syntax[JSON_ERROR_TEXT_LENGTH + 16];
    size_t end = said->position > 0 ? (size_t)said->position : 0;
    scan_to(s, end < s->length ? end : s->length, SIZE_MAX);
    switch (json_error_code(said)) {
    case json_error_duplicate_key:
        sentence = "this key appears twice in one object";
        hint = "Keep one of the two.";
        break;
    case json_error_invalid_utf8: sentence = "not JSON: the text is not UTF-8"; break;
    case json_error_null_character:
    case json_error_null_byte_in_key:
        sentence = "a string holds the character U+0000, which is refused";
        break;
    case json_error_premature_end_of_input:
        sentence = "not JSON: the text ends too early";
        s->token = s->length;
        break;
    default:
        snprintf(syntax, sizeof syntax, "not JSON: %s", said->text);
        make_plain(syntax);
        sentence = syntax;
    }
    return fail_at(s, options, DBO_PARSE, hint, sentence, err);
}

/* Adds a number, or what looks like one, as jansson can read it: no integer beyond 64 bits, nothing
 * beyond doubles. */
static void put_number(dbo_strbuf *out, const char *word, size_t length)
{
    size_t start = out->len;
    dbo_strbuf_add_bytes(out, word, length);
    if (out->failed)
        return;
    const char *copy = out->data + start; /* which ends in a 0 */
    double number = strtod(copy, NULL);
    errno = 0;
    (void)strtoll(copy, NULL, 10);
    if (isinf(number)) {
        out->len = start;
        dbo_strbuf_printf(out, "%.17g", copysign(DBL_MAX, number));
    } else if (errno == ERANGE && !memchr(word, '.', length) && !memchr(word, 'e', length) &&
               !memchr(word, 'E', length)) {
        dbo_strbuf_add_bytes(out, ".0", 2);
    }
}

/* The text with every number so, to about `stop` bytes of it. */
static void fit_numbers(scan *s, size_t stop, dbo_strbuf *out)
{
    while (s->at < s->length && out->len < stop && !out->failed) {
        size_t start = s->at;
        char c = s->text[start];
        if (c == '"')
            scan_string(s, s->length);
        else
            while (++s->at < s->length && is_word_char(c) && is_word_char(s->text[s->at]))
                continue;
        size_t end = s->at < s->length ? s->at : s->length;
        if (c == '-' || (c >= '0' && c <= '9'))
            put_number(out, s->text + start, end - start);
        else
            dbo_strbuf_add_bytes(out, s->text + start, end - start);
    }
}

static json_t *load(const char *text, size_t length, json_error_t *said)
{
    return json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, said);
}

/* Once more, with its numbers made to fit; what is wrong then is said of the text as it was. */
static json_t *load_fitted(const scan *begin, dbo_strbuf *fitted, json_error_t *said)
{
    scan s = *begin;
    fit_numbers(&s, SIZE_MAX, fitted);
    json_t *node = fitted->failed ? NULL : load(fitted->data, fitted->len, said);
    if (!node && !fitted->failed) {
        size_t stop = (size_t)said->position;
        s = *begin;
        dbo_strbuf_clear(fitted);
        fit_numbers(&s, stop, fitted);
        said->position = (int)s.at;
    }
    return node;
}

/* `fitted` is the caller's to end: a local one would be lost where jansson is left. */
static dbo_status make_tree(dbo_json *doc, scan *s, const dbo_json_options *options,
                            dbo_strbuf *fitted, dbo_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    json_error_t said;
    parse here = {.arena = &doc->arena, .options = options};
    pthread_once(&once, set_allocator);
    dbo_status status = (dbo_status)setjmp(here.leave);
    if (status == DBO_OK) {
        parsing = &here;
        doc->root.node = load(s->text, s->length, &said);
        if (!doc->root.node && json_error_code(&said) == json_error_numeric_overflow)
            doc->root.node = load_fitted(s, fitted, &said);
    }
    parsing = NULL;
    if (status == DBO_CANCELLED)
        return dbo_fail(err, status, NULL, "interrupted");
    if (status != DBO_OK || fitted->failed)
        return dbo_fail_memory(err, "a JSON document");
    return doc->root.node ? DBO_OK : fail_malformed(s, options, &said, err);
}

static dbo_status check_size(scan *s, const dbo_json_options *options, dbo_error *err)
{
    char sentence[96];
    size_t max_bytes = options->max_bytes > 0 ? options->max_bytes : DEFAULT_MAX_BYTES;
    size_t max_values = options->max_values > 0 ? options->max_values : DEFAULT_MAX_VALUES;
    if (s->length > max_bytes) {
        dbo_fail(err, DBO_LIMIT, NULL, "the text has more than %zu bytes", max_bytes);
        dbo_error_at(err, options->name, 0);
        return DBO_LIMIT;
    }
    const char *nul = memchr(s->text, 0, s->length);
    if (nul) { /* jansson passes over one behind a number */
        scan_to(s, (size_t)(nul - s->text), SIZE_MAX);
        s->token = (size_t)(nul - s->text);
        return fail_at(s, options, DBO_PARSE, NULL, "not JSON: a byte is 0", err);
    }
    if (scan_to(s, s->length, max_values + 1))
        return DBO_OK;
    if (s->values > max_values)
        snprintf(sentence, sizeof sentence, "the document has more than %zu values", max_values);
    else
        snprintf(sentence, sizeof sentence, "arrays and objects are nested more than %d deep",
                 DBO_JSON_MAX_DEPTH);
    return fail_at(s, options, DBO_LIMIT, NULL, sentence, err);
}

/* A one-line document should not hold a large chunk, nor a large one be cut into many. */
static size_t chunk_bytes(size_t length)
{
    size_t bytes = MIN_CHUNK_BYTES + 8 * length;
    return bytes < MAX_CHUNK_BYTES ? bytes : MAX_CHUNK_BYTES;
}

dbo_status dbo_json_parse(dbo_json **out, const char *text, size_t length,
                          const dbo_json_options *options, dbo_error *err)
{
    const dbo_json_options defaults = {0};
    options = options ? options : &defaults;
    text = text ? text : ""; /* of no bytes */
    *out = NULL;
    bool marked = length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0;
    scan s = {.text = text + (marked ? 3 : 0), .length = length - (marked ? 3 : 0), .values = 1};
    scan begin = s;
    DBO_TRY(check_size(&s, options, err));
    dbo_json *doc = calloc(1, sizeof *doc);
    DBO_TRY(dbo_need_memory(doc, "a JSON document", err));
    doc->arena.chunk_bytes = chunk_bytes(length);
    doc->root = (dbo_json_value){.key = options->name, .index = options->line};
    dbo_strbuf fitted = {0};
    dbo_status status = make_tree(doc, &begin, options, &fitted, err);
    dbo_strbuf_fini(&fitted);
    if (status == DBO_OK)
        *out = doc;
    else
        dbo_json_destroy(doc);
    return status;
}

void dbo_json_destroy(dbo_json *doc)
{
    if (!doc)
        return;
    dbo_arena_fini(&doc->arena);
    free(doc);
}

const dbo_json_value *dbo_json_root(const dbo_json *doc)
{
    return &doc->root;
}

const json_t *dbo_json_tree(const dbo_json *doc)
{
    return doc->root.node;
}

/* ---- files ---- */

static dbo_status read_stream(FILE *file, const dbo_json_options *options, dbo_strbuf *out,
                              dbo_error *err)
{
    char piece[16384];
    size_t bytes;
    size_t max_bytes = options->max_bytes > 0 ? options->max_bytes : DEFAULT_MAX_BYTES;
    do {
        if (options->cancelled && options->cancelled(options->cancelled_self))
            return dbo_fail(err, DBO_CANCELLED, NULL, "interrupted");
        bytes = fread(piece, 1, sizeof piece, file);
        dbo_strbuf_add_bytes(out, piece, bytes);
        DBO_TRY(dbo_need_memory(!out->failed, "the text of a JSON file", err));
        if (out->len > max_bytes)
            return dbo_fail(err, DBO_LIMIT, NULL, "the file has more than %zu bytes", max_bytes);
    } while (bytes > 0);
    return ferror(file) ? dbo_fail_read(err, options->name, errno) : DBO_OK;
}

dbo_status dbo_json_read_file(dbo_json **out, const char *path, const dbo_json_options *options,
                              dbo_error *err)
{
    dbo_json_options named = options ? *options : (dbo_json_options){0};
    bool is_stdin = strcmp(path, "-") == 0;
    dbo_strbuf text = {0};
    *out = NULL;
    if (!named.name)
        named.name = is_stdin ? "stdin" : path;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    if (!file)
        return dbo_fail_read(err, path, errno);
    dbo_status status = read_stream(file, &named, &text, err);
    if (status == DBO_OK)
        status = dbo_json_parse(out, text.data, text.len, &named, err);
    else if (status != DBO_IO) /* whose sentence names the file */
        dbo_error_at(err, named.name, 0);
    if (!is_stdin)
        (void)fclose(file);
    dbo_strbuf_fini(&text);
    return status;
}
