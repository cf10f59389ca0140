/* program_read.c: programs from JSON (program_json.h). Names become numbers in the order in which
 * they are met; the builder checks the rest. */
#include "core/base/suggest.h"
#include "lab/files/program_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_US    1e12
#define MAX_BYTES (INT64_C(1) << 50)
#define MAX_KEYS  8

/* "note", "expected" and "layers" are for people who keep programs as cases; nobody reads them. */
static const char *const root_keys[] = {"num_ubatches", "streams",  "buffers", "ubatches",
                                        "note",         "expected", "layers"};
static const char *const buffer_keys[] = {"name", "pool", "bytes", "workspace", "input"};
static const char *const keys_of[DBO_CODE_COUNT][MAX_KEYS] = {
    [DBO_CODE_OP] = {"i", "name", "kind", "stream", "us", "sms", "reads", "writes"},
    [DBO_CODE_RECORD] = {"i", "event", "stream"},
    [DBO_CODE_WAIT] = {"i", "event", "stream"},
    [DBO_CODE_SET_STREAM] = {"i", "stream"},
    [DBO_CODE_YIELD] = {"i"},
    [DBO_CODE_HOOK_SET] = {"i", "handle"},
    [DBO_CODE_HOOK_RUN] = {"i"},
    [DBO_CODE_A2A_POST] = {"i", "dir", "handle", "stream", "us", "reads", "writes", "prev_event"},
    [DBO_CODE_A2A_FINISH] = {"i", "handle", "stream"},
    [DBO_CODE_HOST_WAIT] = {"i", "handle", "event"},
    [DBO_CODE_ALLOC] = {"i", "buffer", "stream"},
    [DBO_CODE_FREE] = {"i", "buffer", "stream"},
    [DBO_CODE_RECORD_STREAM] = {"i", "buffer", "stream"},
};

typedef struct reader {
    dbo_program_file *file;
    bool (*cancelled)(void *self); /* or NULL */
    const char *codes[DBO_CODE_COUNT], *kinds[DBO_KIND_COUNT];
    dbo_name_list buffers;
    dbo_program_builder builder;
    bool buffers_given;
    uint8_t recorded[UINT16_MAX + 1];        /* by event: does an instruction record it? */
    uint8_t stream_of_handle[UINT8_MAX + 1]; /* of its last post: where a hook receives */
    uint8_t current;                         /* of the ubatch, since its last SET_STREAM */
} reader;

/* ---- names ---- */

static dbo_status poll_reader(const reader *r, dbo_error *err)
{
    bool stop = r->cancelled && r->cancelled(NULL);
    return stop ? dbo_fail(err, DBO_CANCELLED, NULL, "interrupted") : DBO_OK;
}

/* The text of a name: a string, or a number that stands for one. */
static dbo_status name_of(const dbo_json_value *value, char *out, size_t size, dbo_error *err)
{
    if (dbo_json_type_of(value) == DBO_JSON_INT) {
        snprintf(out, size, "%lld", (long long)dbo_json_int(value));
        return DBO_OK;
    }
    DBO_TRY(dbo_json_expect(value, DBO_JSON_STRING, err));
    if (dbo_json_string(value)[0] == '\0' || strlen(dbo_json_string(value)) >= size)
        return dbo_json_fail(err, value, NULL, "a name has 1 to %zu characters", size - 1);
    snprintf(out, size, "%s", dbo_json_string(value));
    return DBO_OK;
}

/* A name that is met for the first time is the next number. */
static dbo_status number_of(reader *r, dbo_name_list *list, const dbo_json_value *instr,
                            const char *key, uint16_t (*add)(dbo_program_builder *builder),
                            uint16_t *out, dbo_error *err)
{
    dbo_json_value value;
    char name[128];
    DBO_TRY(dbo_json_need(instr, key, DBO_JSON_ANY, &value, err));
    DBO_TRY(name_of(&value, name, sizeof name, err));
    uint32_t number = dbo_name_find(list, name);
    if (number == list->count) {
        if (list->count > UINT8_MAX)
            return dbo_json_fail(err, &value, NULL,
                                 "'%.40s' is one too many: a program file can name %u %s", name,
                                 UINT8_MAX + 1u, list == &r->file->handles ? "handles" : "events");
        DBO_TRY(dbo_name_add(list, &r->file->arena, name, err));
        (void)add(&r->builder);
    }
    *out = (uint16_t)number;
    return DBO_OK;
}

static dbo_status read_event(reader *r, const dbo_json_value *instr, const char *key, uint16_t *out,
                             dbo_error *err)
{
    return number_of(r, &r->file->events, instr, key, dbo_program_add_event, out, err);
}

static dbo_status read_handle(reader *r, const dbo_json_value *instr, uint16_t *out, dbo_error *err)
{
    return number_of(r, &r->file->handles, instr, "handle", dbo_program_add_handle, out, err);
}

/* A buffer more; its number is that of its name. */
static dbo_status add_buffer(reader *r, const dbo_json_value *value, const char *name,
                             const dbo_program_buffer *buffer, dbo_error *err)
{
    if (r->buffers.count >= DBO_NO_INDEX)
        return dbo_json_fail(err, value, NULL,
                             "'%.40s' is one too many: a program can have %u buffers", name,
                             DBO_NO_INDEX);
    DBO_TRY(dbo_name_add(&r->buffers, &r->file->arena, name, err));
    uint16_t number =
        buffer->workspace
            ? dbo_program_add_workspace(&r->builder, name, buffer->bytes, buffer->pool)
            : dbo_program_add_buffer(&r->builder, name, buffer->bytes, buffer->pool);
    if (buffer->input && r->builder.status == DBO_OK)
        dbo_program_set_input(&r->builder, number);
    return DBO_OK;
}

static dbo_status find_buffer(reader *r, const dbo_json_value *value, uint16_t *out, dbo_error *err)
{
    const dbo_program *p = &r->builder.program;
    char name[128], hint[128];
    DBO_TRY(poll_reader(r, err));
    DBO_TRY(name_of(value, name, sizeof name, err));
    uint32_t number = dbo_name_find(&r->buffers, name);
    *out = (uint16_t)number;
    if (number < r->buffers.count)
        return DBO_OK;
    if (!r->buffers_given) {
        const dbo_program_buffer buffer = {.pool = DBO_STREAM_COMPUTE};
        return add_buffer(r, value, name, &buffer, err);
    }
    dbo_suggestion near = dbo_suggest_begin(name);
    for (uint32_t i = 0; i < p->num_buffers; i++)
        dbo_suggest_offer(&near, p->buffers[i].name);
    return dbo_json_fail(err, value, dbo_suggest_hint(&near, hint, sizeof hint),
                         "\"buffers\" has no '%s'", name);
}

static dbo_status read_buffer(reader *r, const dbo_json_value *instr, uint16_t *out, dbo_error *err)
{
    dbo_json_value value;
    DBO_TRY(dbo_json_need(instr, "buffer", DBO_JSON_ANY, &value, err));
    return find_buffer(r, &value, out, err);
}

/* The stream that a key names; `otherwise` where it is left out. */
static dbo_status read_stream(reader *r, const dbo_json_value *object, const char *key,
                              uint8_t otherwise, uint8_t *out, dbo_error *err)
{
    const dbo_program *p = &r->builder.program;
    dbo_json_value value = dbo_json_get(object, key);
    char name[128];
    if (dbo_json_is_null(&value)) {
        *out = otherwise;
        return DBO_OK;
    }
    if (dbo_json_type_of(&value) == DBO_JSON_INT) {
        int64_t number = dbo_json_int(&value);
        *out = (uint8_t)number;
        if (number >= 0 && number < (int64_t)p->num_streams)
            return DBO_OK;
        return dbo_json_fail(err, &value, NULL, "there is no stream %lld", (long long)number);
    }
    DBO_TRY(name_of(&value, name, sizeof name, err));
    for (uint32_t i = 0; i < p->num_streams; i++) {
        *out = (uint8_t)i;
        if (strcmp(p->stream_names[i], name) == 0)
            return DBO_OK;
    }
    return dbo_json_fail(err, &value, "\"streams\" lists them.", "there is no stream '%s'", name);
}

/* A buffer comes from the pool that it is said to belong to, unless the instruction says. */
static dbo_status read_alloc(reader *r, const dbo_json_value *instr, dbo_instr *out, dbo_error *err)
{
    DBO_TRY(read_buffer(r, instr, &out->index, err));
    if (out->index >= r->builder.program.num_buffers)
        return DBO_OK; /* the builder says it in the end */
    return read_stream(r, instr, "stream", r->builder.program.buffers[out->index].pool,
                       &out->stream, err);
}

/* ---- ops and posts ---- */

static dbo_status read_accesses(reader *r, const dbo_json_value *instr, const char *key,
                                const dbo_access **out, uint32_t *count, dbo_error *err)
{
    dbo_json_value list;
    DBO_TRY(dbo_json_opt(instr, key, DBO_JSON_ARRAY, &list, err));
    *count = (uint32_t)dbo_json_count(&list);
    *out = NULL;
    if (*count == 0)
        return DBO_OK;
    dbo_access *accesses = DBO_ARENA_ARRAY(&r->file->arena, dbo_access, *count);
    DBO_TRY(dbo_need_memory(accesses, "a program", err));
    for (uint32_t i = 0; i < *count; i++) {
        uint16_t buffer = 0;
        dbo_json_value name = dbo_json_at(&list, i);
        DBO_TRY(find_buffer(r, &name, &buffer, err));
        accesses[i] = (dbo_access){.buffer = buffer};
        if (buffer < r->builder.program.num_buffers)
            accesses[i].bytes = r->builder.program.buffers[buffer].bytes;
    }
    *out = accesses;
    return DBO_OK;
}

static dbo_status read_io(reader *r, const dbo_json_value *instr, dbo_op_io *io, dbo_error *err)
{
    *io = (dbo_op_io){0};
    DBO_TRY(read_accesses(r, instr, "reads", &io->reads, &io->num_reads, err));
    return read_accesses(r, instr, "writes", &io->writes, &io->num_writes, err);
}

static dbo_status read_ns(const dbo_json_value *instr, int64_t *out, dbo_error *err)
{
    double us = 0;
    DBO_TRY(DBO_JSON_OPT(double, instr, "us", 0, MAX_US, &us, err));
    *out = (int64_t)(us * 1000 + 0.5);
    return DBO_OK;
}

static dbo_status read_op(reader *r, uint32_t ubatch, const dbo_json_value *instr, uint16_t *index,
                          dbo_error *err)
{
    uint32_t kind = DBO_KIND_CUSTOM, sms = 0;
    dbo_op_io io;
    const char *name = NULL, *word = NULL;
    dbo_op_cost cost = {0};
    DBO_TRY(DBO_JSON_OPT(string, instr, "kind", &word, err));
    if (word)
        kind = dbo_op_kind_of_name(word);
    if (kind >= DBO_KIND_COUNT)
        return dbo_json_need_word(instr, "kind", "kind of op", r->kinds, DBO_KIND_COUNT, &kind,
                                  err);
    DBO_TRY(read_ns(instr, &cost.fixed_ns, err));
    DBO_TRY(DBO_JSON_OPT(uint32, instr, "sms", 0, UINT16_MAX, &sms, err));
    if (dbo_json_has(instr, "name")) {
        char checked[128];
        dbo_json_value given = dbo_json_get(instr, "name");
        DBO_TRY(dbo_json_need_string(instr, "name", &name, err));
        DBO_TRY(name_of(&given, checked, sizeof checked, err));
    }
    DBO_TRY(read_io(r, instr, &io, err));
    if (r->builder.program.num_ops >= DBO_NO_INDEX)
        return dbo_json_fail(err, instr, NULL, "a program can have %u ops: this is one too many",
                             DBO_NO_INDEX);
    cost.fixed_sms = (uint16_t)sms;
    *index = dbo_program_add_op(&r->builder, ubatch, (dbo_op_kind)kind, &cost, 1);
    if (r->builder.status != DBO_OK)
        return DBO_OK; /* the builder says it in the end */
    dbo_program_set_op_io(&r->builder, *index, &io);
    return dbo_name_push(&r->file->op_names, &r->file->arena, name ? name : r->kinds[kind], err);
}

static dbo_status read_post(reader *r, uint32_t ubatch, const dbo_json_value *instr, dbo_instr *out,
                            dbo_error *err)
{
    static const char *const directions[] = {
        [DBO_A2A_DISPATCH] = "dispatch", [DBO_A2A_COMBINE] = "combine"};
    uint32_t direction = 0;
    dbo_op_io io;
    dbo_a2a_cost cost = {0};
    uint16_t handle = 0;
    DBO_TRY(dbo_json_need_word(instr, "dir", "direction", directions, 2, &direction, err));
    DBO_TRY(read_handle(r, instr, &handle, err));
    DBO_TRY(read_ns(instr, &cost.fixed_ns, err));
    DBO_TRY(read_io(r, instr, &io, err));
    out->previous = DBO_NO_INDEX;
    if (dbo_json_has(instr, "prev_event"))
        DBO_TRY(read_event(r, instr, "prev_event", &out->previous, err));
    if (r->builder.program.num_posts >= DBO_NO_INDEX)
        return dbo_json_fail(err, instr, NULL,
                             "a program can have %u transfers: this is one too many", DBO_NO_INDEX);
    out->index =
        dbo_program_add_post(&r->builder, ubatch, (dbo_a2a_direction)direction, &cost, handle);
    if (r->builder.status == DBO_OK)
        dbo_program_set_post_io(&r->builder, out->index, &io);
    r->stream_of_handle[handle] = out->stream;
    return DBO_OK;
}

static dbo_status read_host_wait(reader *r, const dbo_json_value *instr, dbo_instr *out,
                                 dbo_error *err)
{
    out->wait_event = dbo_json_has(instr, "event");
    if (out->wait_event && dbo_json_has(instr, "handle"))
        return dbo_json_fail(err, instr, NULL, "the host waits for an event or for a handle");
    return out->wait_event ? read_event(r, instr, "event", &out->index, err)
                           : read_handle(r, instr, &out->index, err);
}

/* ---- instructions ---- */

static dbo_status read_instr(reader *r, uint32_t ubatch, const dbo_json_value *instr,
                             dbo_error *err)
{
    uint32_t code;
    dbo_json_value stream;
    dbo_instr out = {0};
    DBO_TRY(poll_reader(r, err));
    DBO_TRY(dbo_json_need_word(instr, "i", "instruction", r->codes, DBO_CODE_COUNT, &code, err));
    DBO_TRY(dbo_json_check_keys(instr, keys_of[code], MAX_KEYS, err));
    DBO_TRY(read_stream(r, instr, "stream", r->current, &out.stream, err));
    out.code = (uint8_t)code;
    switch ((dbo_code)code) {
    case DBO_CODE_OP: DBO_TRY(read_op(r, ubatch, instr, &out.index, err)); break;
    case DBO_CODE_RECORD:
    case DBO_CODE_WAIT:
        DBO_TRY(read_event(r, instr, "event", &out.index, err));
        r->recorded[out.index] |= code == DBO_CODE_RECORD;
        break;
    case DBO_CODE_A2A_POST: DBO_TRY(read_post(r, ubatch, instr, &out, err)); break;
    case DBO_CODE_HOOK_SET:
        DBO_TRY(read_handle(r, instr, &out.index, err));
        out.stream = r->stream_of_handle[out.index];
        break;
    case DBO_CODE_A2A_FINISH: DBO_TRY(read_handle(r, instr, &out.index, err)); break;
    case DBO_CODE_HOST_WAIT: DBO_TRY(read_host_wait(r, instr, &out, err)); break;
    case DBO_CODE_ALLOC: DBO_TRY(read_alloc(r, instr, &out, err)); break;
    case DBO_CODE_FREE:
    case DBO_CODE_RECORD_STREAM: DBO_TRY(read_buffer(r, instr, &out.index, err)); break;
    case DBO_CODE_SET_STREAM:
        DBO_TRY(dbo_json_need(instr, "stream", DBO_JSON_ANY, &stream, err));
        r->current = out.stream;
        break;
    case DBO_CODE_YIELD:
    case DBO_CODE_HOOK_RUN:
    case DBO_CODE_COUNT: break;
    }
    dbo_program_emit(&r->builder, ubatch, out);
    return DBO_OK;
}

/* ---- the document ---- */

static dbo_status read_streams(reader *r, const dbo_json_value *root, dbo_error *err)
{
    dbo_json_value list;
    dbo_name_list given = {0};
    DBO_TRY(dbo_json_need(root, "streams", DBO_JSON_ARRAY, &list, err));
    if (dbo_json_count(&list) == 0)
        return dbo_json_fail(err, &list, NULL,
                             "no stream is named; name those that are used, "
                             "such as \"compute\"");
    for (size_t i = 0; i < dbo_json_count(&list); i++) {
        dbo_json_value value = dbo_json_at(&list, i);
        char name[128];
        DBO_TRY(name_of(&value, name, sizeof name, err));
        if (dbo_name_find(&given, name) < given.count)
            return dbo_json_fail(err, &value, NULL, "two streams are called '%s'", name);
        DBO_TRY(dbo_name_add(&given, &r->file->arena, name, err));
        if (strcmp(name, "compute") == 0 || strcmp(name, "comm") == 0)
            continue;
        if (r->builder.program.num_streams >= DBO_MAX_STREAMS)
            return dbo_json_fail(err, &value, NULL,
                                 "'%.40s' is one too many: a program can have %u streams, "
                                 "compute and comm among them",
                                 name, DBO_MAX_STREAMS);
        /* the program borrows the copy */
        (void)dbo_program_add_stream(&r->builder, given.names[given.count - 1]);
    }
    return DBO_OK;
}

static dbo_status read_one_buffer(reader *r, const dbo_json_value *buffer, dbo_error *err)
{
    dbo_json_value value;
    char name[128];
    uint8_t pool = DBO_STREAM_COMPUTE;
    int64_t bytes = 0;
    bool workspace = false, input = false;
    DBO_TRY(poll_reader(r, err));
    DBO_TRY(
        dbo_json_check_keys(buffer, buffer_keys, sizeof buffer_keys / sizeof *buffer_keys, err));
    DBO_TRY(dbo_json_need(buffer, "name", DBO_JSON_ANY, &value, err));
    DBO_TRY(name_of(&value, name, sizeof name, err));
    DBO_TRY(read_stream(r, buffer, "pool", DBO_STREAM_COMPUTE, &pool, err));
    DBO_TRY(DBO_JSON_OPT(int, buffer, "bytes", 0, MAX_BYTES, &bytes, err));
    DBO_TRY(DBO_JSON_OPT(bool, buffer, "workspace", &workspace, err));
    DBO_TRY(DBO_JSON_OPT(bool, buffer, "input", &input, err));
    if (dbo_name_find(&r->buffers, name) < r->buffers.count)
        return dbo_json_fail(err, &value, NULL, "two buffers are called '%s'", name);
    const dbo_program_buffer given = {
        .bytes = (uint64_t)bytes, .pool = pool, .workspace = workspace, .input = input};
    return add_buffer(r, buffer, name, &given, err);
}

static dbo_status read_buffers(reader *r, const dbo_json_value *root, dbo_error *err)
{
    dbo_json_value list;
    DBO_TRY(dbo_json_opt(root, "buffers", DBO_JSON_ARRAY, &list, err));
    for (size_t i = 0; i < dbo_json_count(&list); i++) {
        dbo_json_value buffer = dbo_json_at(&list, i);
        DBO_TRY(read_one_buffer(r, &buffer, err));
    }
    r->buffers_given = list.node != NULL;
    return DBO_OK;
}

/* Waiting for an event that nothing records would wait for nothing. */
static dbo_status check_recorded(const reader *r, const dbo_json_value *ubatches, uint32_t ubatch,
                                 dbo_error *err)
{
    const dbo_program *p = &r->builder.program;
    for (uint32_t i = 0; i < p->num_instrs[ubatch]; i++) {
        const dbo_instr *instr = &p->instrs[ubatch][i];
        bool posts = instr->code == DBO_CODE_A2A_POST && instr->previous != DBO_NO_INDEX;
        bool waits = instr->code == DBO_CODE_WAIT ||
                     (instr->code == DBO_CODE_HOST_WAIT && instr->wait_event);
        uint16_t event = posts ? instr->previous : instr->index;
        if ((!posts && !waits) || r->recorded[event])
            continue;
        const dbo_json_value list = dbo_json_at(ubatches, ubatch), at = dbo_json_at(&list, i);
        const dbo_json_value value = dbo_json_get(&at, posts ? "prev_event" : "event");
        return dbo_json_fail(err, &value, NULL, "nothing records the event '%.60s'",
                             r->file->events.names[event]);
    }
    return DBO_OK;
}

static dbo_status read_ubatches(reader *r, const dbo_json_value *root, uint32_t num_ubatches,
                                dbo_error *err)
{
    dbo_json_value ubatches;
    DBO_TRY(dbo_json_need(root, "ubatches", DBO_JSON_ARRAY, &ubatches, err));
    if (dbo_json_count(&ubatches) != num_ubatches)
        return dbo_json_fail(err, &ubatches, NULL, "there are %zu lists, not num_ubatches, %u",
                             dbo_json_count(&ubatches), num_ubatches);
    for (uint32_t u = 0; u < num_ubatches; u++) {
        dbo_json_value list = dbo_json_at(&ubatches, u);
        DBO_TRY(dbo_json_expect(&list, DBO_JSON_ARRAY, err));
        r->current = DBO_STREAM_COMPUTE;
        for (size_t i = 0; i < dbo_json_count(&list); i++) {
            dbo_json_value instr = dbo_json_at(&list, i);
            DBO_TRY(read_instr(r, u, &instr, err));
        }
    }
    for (uint32_t u = 0; u < num_ubatches; u++)
        DBO_TRY(check_recorded(r, &ubatches, u, err));
    return DBO_OK;
}

/* ---- the names of ops ---- */

typedef struct dbo_op_place {
    dbo_op_id id;
    uint32_t op; /* index in ops[] */
} dbo_op_place;

static int compare_ids(const void *left, const void *right)
{
    dbo_op_id a = ((const dbo_op_place *)left)->id, b = ((const dbo_op_place *)right)->id;
    return a < b ? -1 : a > b;
}

static dbo_status order_ops(dbo_program_file *file, dbo_error *err)
{
    const dbo_program *p = &file->program;
    file->ops_by_id = DBO_ARENA_ARRAY(&file->arena, dbo_op_place, p->num_ops + 1);
    DBO_TRY(dbo_need_memory(file->ops_by_id, "the names of a program", err));
    for (uint32_t i = 0; i < p->num_ops; i++)
        file->ops_by_id[i] = (dbo_op_place){.id = p->ops[i].id_bits, .op = i};
    qsort(file->ops_by_id, p->num_ops, sizeof *file->ops_by_id, compare_ids);
    return DBO_OK;
}

void dbo_program_file_op_text(const void *self, dbo_op_id id, char *out, size_t size)
{
    const dbo_program_file *file = self;
    const dbo_program *p = &file->program;
    const dbo_op_id own =
        dbo_op_id_make(0, 0, 0, dbo_op_id_ubatch(id), dbo_op_id_kind(id), dbo_op_id_occurrence(id));
    const char *name = dbo_op_kind_name(dbo_op_id_kind(id));
    uint32_t low = 0, high = p->num_ops;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (file->ops_by_id[middle].id < own)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < p->num_ops && file->ops_by_id[low].id == own)
        name = file->op_names.names[file->ops_by_id[low].op];
    int length = snprintf(out, size, "%.40s of ubatch %u", name, dbo_op_id_ubatch(id));
    if (file->many_layers && length > 0 && (size_t)length < size)
        snprintf(out + length, size - (size_t)length, " (layer %u)", dbo_op_id_layer(id));
}

/* ---- the file ---- */

static dbo_status read_parts(reader *r, const dbo_json_value *root, uint32_t num_ubatches,
                             dbo_error *err)
{
    DBO_TRY(read_streams(r, root, err));
    DBO_TRY(read_buffers(r, root, err));
    return read_ubatches(r, root, num_ubatches, err);
}

dbo_status dbo_program_json_read(const dbo_json_value *root, bool (*cancelled)(void *self),
                                 dbo_program_file *out, dbo_error *err)
{
    uint32_t num_ubatches = 0;
    reader r = {.file = out, .cancelled = cancelled};
    for (int code = 0; code < DBO_CODE_COUNT; code++)
        r.codes[code] = dbo_code_name((dbo_code)code);
    for (int kind = 0; kind < DBO_KIND_COUNT; kind++)
        r.kinds[kind] = dbo_op_kind_name((dbo_op_kind)kind);
    memset(out, 0, sizeof *out);
    DBO_TRY(dbo_json_check_keys(root, root_keys, sizeof root_keys / sizeof *root_keys, err));
    DBO_TRY(dbo_json_need_uint32(root, "num_ubatches", 1, DBO_MAX_UBATCHES, &num_ubatches, err));
    dbo_program_builder_init(&r.builder, "file", num_ubatches);
    dbo_status status = read_parts(&r, root, num_ubatches, err);
    if (status == DBO_OK) {
        status = dbo_program_builder_finish(&r.builder, &out->program, err);
    } else {
        dbo_program dropped;
        if (dbo_program_builder_finish(&r.builder, &dropped, NULL) == DBO_OK)
            dbo_program_fini(&dropped);
    }
    if (status == DBO_OK)
        status = order_ops(out, err);
    if (status != DBO_OK)
        dbo_program_file_fini(out);
    return status;
}

void dbo_program_file_fini(dbo_program_file *file)
{
    dbo_program_fini(&file->program);
    dbo_arena_fini(&file->arena);
    memset(file, 0, sizeof *file);
}
