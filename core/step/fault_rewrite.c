/* fault_rewrite.c: programs as faults have them.
 *
 * A rewrite copies the program's frame (events, handles, buffers, ops, transfers, in order, so that
 * numbers stay) and then each ubatch's part, instruction by instruction; a fault is a function that
 * copies a part and leaves out, moves or adds something. Buffers that all ubatches are made to
 * share become one workspace, in every program of a plan alike.
 */
#include "core/layer/layer_sizes.h"
#include "core/step/faults.h"

#include <stdlib.h>
#include <string.h>

typedef struct rewrite {
    const dbo_program *in;
    dbo_program_builder out;
    uint16_t *alias;     /* by buffer: whose memory it uses */
    uint16_t new_events; /* the first one added */
    uint8_t new_stream;
    bool reverse; /* HEAD puts the ubatches' rows together from the last to the first */
    bool changed; /* the program is another one */
} rewrite;

typedef void (*part_fn)(rewrite *r, uint32_t ubatch);

static void put(rewrite *r, uint32_t ubatch, dbo_instr instr)
{
    dbo_program_emit(&r->out, ubatch, instr);
}

/* ---- looking around ---- */

static const dbo_instr *end_of(const rewrite *r, uint32_t ubatch)
{
    const dbo_instr *first = r->in->instrs[ubatch]; /* NULL where there are none */
    return r->in->num_instrs[ubatch] > 0 ? first + r->in->num_instrs[ubatch] : first;
}

/* The next instruction of this code before a YIELD, from `from` on, or NULL. */
static const dbo_instr *next_in_turn(const rewrite *r, uint32_t ubatch, const dbo_instr *from,
                                     dbo_code code)
{
    for (const dbo_instr *i = from; i < end_of(r, ubatch); i++) {
        if (i->code == code)
            return i;
        if (i->code == DBO_CODE_YIELD)
            return NULL;
    }
    return NULL;
}

static bool posts_dispatch(const rewrite *r, const dbo_instr *instr)
{
    return instr && instr->code == DBO_CODE_A2A_POST &&
           r->in->posts[instr->index].direction == DBO_A2A_DISPATCH;
}

/* Is the event what a transfer of this ubatch itself waits for? */
static bool is_previous(const rewrite *r, uint32_t ubatch, uint32_t event)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < end_of(r, ubatch); i++)
        if (i->code == DBO_CODE_A2A_POST && i->previous == event)
            return true;
    return false;
}

/* Do only records stand between this instruction and a YIELD? */
static bool ends_turn(const rewrite *r, uint32_t ubatch, const dbo_instr *instr)
{
    while (instr < end_of(r, ubatch) && instr->code == DBO_CODE_RECORD)
        instr++;
    return instr < end_of(r, ubatch) && instr->code == DBO_CODE_YIELD;
}

/* ---- the faults, a part at a time ---- */

static void copy_part(rewrite *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < end_of(r, ubatch); i++)
        put(r, ubatch, *i);
}

static void event_after_yield(rewrite *r, uint32_t ubatch)
{
    const dbo_instr *late = NULL;
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < end_of(r, ubatch); i++) {
        if (i->code == DBO_CODE_RECORD && is_previous(r, ubatch, i->index) &&
            ends_turn(r, ubatch, i)) {
            late = i;
            continue;
        }
        put(r, ubatch, *i);
        if (i->code != DBO_CODE_YIELD || !late)
            continue;
        put(r, ubatch, *late);
        late = NULL;
        r->changed = true;
    }
}

static void yield_after_dispatch(rewrite *r, uint32_t ubatch)
{
    bool owed = false;
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < end_of(r, ubatch); i++) {
        if (i->code == DBO_CODE_YIELD &&
            posts_dispatch(r, next_in_turn(r, ubatch, i + 1, DBO_CODE_A2A_POST)) &&
            next_in_turn(r, ubatch, i + 1, DBO_CODE_HOST_WAIT)) {
            owed = r->changed = true;
            continue;
        }
        put(r, ubatch, *i);
        if (!owed || i->code != DBO_CODE_HOST_WAIT)
            continue;
        put(r, ubatch, (dbo_instr){.code = DBO_CODE_YIELD});
        owed = false;
    }
}

static void no_compute_wait(rewrite *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < end_of(r, ubatch); i++) {
        dbo_instr instr = *i;
        if (i->code == DBO_CODE_WAIT && i->stream != DBO_STREAM_COMPUTE &&
            posts_dispatch(r, next_in_turn(r, ubatch, i, DBO_CODE_A2A_POST))) {
            r->changed = true;
            continue;
        }
        if (posts_dispatch(r, i))
            instr.previous = DBO_NO_INDEX;
        put(r, ubatch, instr);
    }
}

/* Without a code's instructions on one stream; DBO_MAX_STREAMS: on any. */
static void leave_out(rewrite *r, uint32_t ubatch, dbo_code code, uint32_t stream)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < end_of(r, ubatch); i++) {
        if (i->code == code && (stream == DBO_MAX_STREAMS || i->stream == stream))
            r->changed = true;
        else
            put(r, ubatch, *i);
    }
}

static void no_comm_wait(rewrite *r, uint32_t ubatch)
{
    leave_out(r, ubatch, DBO_CODE_WAIT, DBO_STREAM_COMPUTE);
}

static void no_record_stream(rewrite *r, uint32_t ubatch)
{
    leave_out(r, ubatch, DBO_CODE_RECORD_STREAM, DBO_MAX_STREAMS);
}

/* An event of ubatch 0 that plays the same role, if the ubatches have as many each. */
static uint16_t common_event(rewrite *r, uint16_t event)
{
    const dbo_program *p = r->in;
    if (event == DBO_NO_INDEX || p->num_events % p->num_ubatches != 0)
        return event;
    uint16_t shared = (uint16_t)(event % (p->num_events / p->num_ubatches));
    r->changed = r->changed || shared != event;
    return shared;
}

static void shared_event(rewrite *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < end_of(r, ubatch); i++) {
        dbo_instr instr = *i;
        if (i->code == DBO_CODE_RECORD || i->code == DBO_CODE_WAIT ||
            (i->code == DBO_CODE_HOST_WAIT && i->wait_event))
            instr.index = common_event(r, i->index);
        if (i->code == DBO_CODE_A2A_POST)
            instr.previous = common_event(r, i->previous);
        put(r, ubatch, instr);
    }
}

/* What is allocated right before a dispatch on another stream is what it brings. */
static void wrong_pool(rewrite *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < end_of(r, ubatch); i++) {
        dbo_instr instr = *i;
        const dbo_instr *then = i;
        while (then < end_of(r, ubatch) && then->code == DBO_CODE_ALLOC)
            then++;
        if (i->code == DBO_CODE_ALLOC && i->stream != DBO_STREAM_COMPUTE &&
            then < end_of(r, ubatch) && posts_dispatch(r, then)) {
            instr.stream = DBO_STREAM_COMPUTE;
            r->changed = true;
        }
        put(r, ubatch, instr);
    }
}

/* The transfer goes to a stream of the back end, behind what the caller's stream has; that is also
 * where its end is noted. */
static void double_async(rewrite *r, uint32_t ubatch)
{
    uint16_t handed = (uint16_t)(r->new_events + ubatch);
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < end_of(r, ubatch); i++) {
        dbo_instr instr = *i;
        bool own = i->stream == DBO_STREAM_COMM &&
                   (i->code == DBO_CODE_A2A_POST || i->code == DBO_CODE_A2A_FINISH ||
                    i->code == DBO_CODE_HOOK_SET);
        if (own && i->code == DBO_CODE_A2A_POST) {
            put(r, ubatch,
                (dbo_instr){.code = DBO_CODE_RECORD, .stream = i->stream, .index = handed});
            put(r, ubatch,
                (dbo_instr){.code = DBO_CODE_WAIT, .stream = r->new_stream, .index = handed});
        }
        if (own) {
            instr.stream = r->new_stream;
            r->changed = true;
        }
        put(r, ubatch, instr);
    }
}

/* The comm stream's last work is not waited for. */
static void unjoined_comm_stream(rewrite *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < end_of(r, ubatch); i++) {
        bool foreign = false;
        for (const dbo_instr *j = r->in->instrs[ubatch]; j < end_of(r, ubatch); j++)
            foreign = foreign || (j->code == DBO_CODE_RECORD && j->index == i->index &&
                                  j->stream != DBO_STREAM_COMPUTE);
        if (i->code == DBO_CODE_WAIT && i->stream == DBO_STREAM_COMPUTE && foreign)
            r->changed = true;
        else
            put(r, ubatch, *i);
    }
}

static void uneven_yields(rewrite *r, uint32_t ubatch)
{
    copy_part(r, ubatch);
    if (ubatch == 0 || ubatch + 1 != r->in->num_ubatches)
        return;
    put(r, ubatch, (dbo_instr){.code = DBO_CODE_YIELD});
    r->changed = true;
}

/* Memory of shared buffers is there for good. */
static void share_buffers(rewrite *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < end_of(r, ubatch); i++) {
        bool memory = i->code == DBO_CODE_ALLOC || i->code == DBO_CODE_FREE ||
                      i->code == DBO_CODE_RECORD_STREAM;
        if (!memory || !r->out.program.buffers[r->alias[i->index]].workspace)
            put(r, ubatch, *i);
    }
}

/* ---- the table ---- */

#define MAX_SHARED 4

typedef struct fault_rule {
    part_fn part;
    uint8_t shared[MAX_SHARED]; /* roles of buffers, DBO_BUFFER_NONE at the end */
    bool only_first;            /* of the forward's first program alone */
    bool reverse;               /* rows of ubatches are joined in another order */
} fault_rule;

static const fault_rule rules[DBO_FAULT_COUNT] = {
    [DBO_FAULT_EVENT_AFTER_YIELD] = {.part = event_after_yield},
    [DBO_FAULT_YIELD_AFTER_DISPATCH] = {.part = yield_after_dispatch},
    [DBO_FAULT_NO_COMPUTE_WAIT] = {.part = no_compute_wait},
    [DBO_FAULT_NO_COMM_WAIT] = {.part = no_comm_wait},
    [DBO_FAULT_SHARED_EVENT] = {.part = shared_event},
    [DBO_FAULT_NO_RECORD_STREAM] = {.part = no_record_stream},
    [DBO_FAULT_WRONG_POOL] = {.part = wrong_pool},
    [DBO_FAULT_SHARED_HANDLE] = {.part = share_buffers, .shared = {DBO_BUFFER_HANDLE}},
    [DBO_FAULT_DOUBLE_ASYNC] = {.part = double_async},
    [DBO_FAULT_UNSORTED_OUTPUTS] = {.part = copy_part, .reverse = true},
    [DBO_FAULT_UNJOINED_COMM_STREAM] = {.part = unjoined_comm_stream},
    [DBO_FAULT_WORKSPACE_REUSE] = {.part = share_buffers,
                                   .shared = {DBO_BUFFER_RECV_TOKENS, DBO_BUFFER_RECV_SCALES}},
    [DBO_FAULT_UNEVEN_YIELDS] = {.part = uneven_yields, .only_first = true},
};

/* ---- the frame ---- */

/* "handle1" is the role's of ubatch 1. */
static bool plays(const dbo_program_buffer *buffer, uint32_t role)
{
    const char *name = dbo_buffer_role_name((dbo_buffer_role)role);
    size_t length = strlen(name);
    return strncmp(buffer->name, name, length) == 0 && buffer->name[length] != '\0' &&
           buffer->name[length + strspn(buffer->name + length, "0123456789")] == '\0';
}

/* All buffers that play the role use the first one's memory, which holds the largest. */
static void share_role(rewrite *r, uint32_t role)
{
    dbo_program *out = &r->out.program;
    uint32_t first = UINT32_MAX;
    for (uint32_t b = 0; b < out->num_buffers; b++) {
        if (!plays(&out->buffers[b], role))
            continue;
        if (first == UINT32_MAX)
            first = b;
        else
            r->changed = true;
        r->alias[b] = (uint16_t)first;
        out->buffers[first].workspace = true;
        if (out->buffers[b].bytes > out->buffers[first].bytes)
            out->buffers[first].bytes = out->buffers[b].bytes;
    }
}

static void copy_buffers(rewrite *r, const fault_rule *rule)
{
    const dbo_program *in = r->in;
    for (uint32_t b = 0; b < in->num_buffers && r->out.status == DBO_OK; b++) {
        const dbo_program_buffer *buffer = &in->buffers[b];
        uint16_t number =
            dbo_program_add_buffer(&r->out, buffer->name, buffer->bytes, buffer->pool);
        if (r->out.status != DBO_OK)
            return;
        dbo_program_buffer *copy = &r->out.program.buffers[number];
        copy->workspace = buffer->workspace;
        copy->input = buffer->input;
        r->alias[b] = number;
    }
    for (uint32_t i = 0; i < MAX_SHARED && rule->shared[i] != DBO_BUFFER_NONE; i++)
        share_role(r, rule->shared[i]);
}

/* HEAD reads a pair of tensors of each ubatch, in the order in which their rows are joined. */
static void reverse_pairs(rewrite *r, dbo_access *reads, uint32_t count)
{
    for (uint32_t i = 0, j = count & ~1u; i + 2 < j; i += 2) {
        j -= 2;
        for (uint32_t k = 0; k < 2; k++) {
            dbo_access moved = reads[i + k];
            reads[i + k] = reads[j + k];
            reads[j + k] = moved;
        }
        r->changed = true;
    }
}

/* The lists with shared buffers in place; `accesses` has room for both. */
static dbo_op_io shared_io(const rewrite *r, const dbo_op_io *io, dbo_access *accesses)
{
    dbo_op_io copy = *io;
    copy.reads = accesses;
    copy.writes = accesses + io->num_reads;
    for (uint32_t i = 0; i < io->num_reads + io->num_writes; i++) {
        accesses[i] = i < io->num_reads ? io->reads[i] : io->writes[i - io->num_reads];
        accesses[i].buffer = r->alias[accesses[i].buffer];
    }
    return copy;
}

static void copy_io(rewrite *r, const dbo_op_io *io, dbo_op_kind kind, uint16_t index)
{
    if (!io || r->out.status != DBO_OK)
        return;
    dbo_access *accesses = malloc(((size_t)io->num_reads + io->num_writes + 1) * sizeof *accesses);
    if (!accesses) {
        r->out.status = dbo_fail_memory(&r->out.error, "a program");
        return;
    }
    dbo_op_io copy = shared_io(r, io, accesses);
    if (r->reverse && kind == DBO_KIND_HEAD)
        reverse_pairs(r, accesses, io->num_reads);
    if (kind == DBO_KIND_DISPATCH || kind == DBO_KIND_COMBINE)
        dbo_program_set_post_io(&r->out, index, &copy);
    else
        dbo_program_set_op_io(&r->out, index, &copy);
    free(accesses);
}

static void copy_ops(rewrite *r)
{
    const dbo_program *in = r->in;
    for (uint32_t i = 0; i < in->num_ops && r->out.status == DBO_OK; i++) {
        const dbo_program_op *op = &in->ops[i];
        uint16_t number =
            dbo_program_add_op(&r->out, dbo_op_id_ubatch(op->id_bits),
                               (dbo_op_kind)dbo_op_id_kind(op->id_bits), &op->cost, op->kernels);
        copy_io(r, op->io, (dbo_op_kind)dbo_op_id_kind(op->id_bits), number);
    }
    for (uint32_t i = 0; i < in->num_posts && r->out.status == DBO_OK; i++) {
        const dbo_program_post *post = &in->posts[i];
        uint16_t number =
            dbo_program_add_post(&r->out, dbo_op_id_ubatch(post->id_bits),
                                 (dbo_a2a_direction)post->direction, &post->cost, post->handle);
        copy_io(r, post->io, (dbo_op_kind)dbo_op_id_kind(post->id_bits), number);
    }
}

/* Events and streams of its own come behind those that there are. */
static void copy_frame(rewrite *r, dbo_fault_id id)
{
    const dbo_program *in = r->in;
    dbo_program_builder_init(&r->out, in->name, in->num_ubatches);
    for (uint32_t s = r->out.program.num_streams; s < in->num_streams; s++)
        dbo_program_add_stream(&r->out, in->stream_names[s]);
    for (uint32_t i = 0; i < in->num_events; i++)
        dbo_program_add_event(&r->out);
    for (uint32_t i = 0; i < in->num_handles; i++)
        dbo_program_add_handle(&r->out);
    if (id == DBO_FAULT_DOUBLE_ASYNC) {
        r->new_stream = dbo_program_add_stream(&r->out, "back end");
        r->new_events = (uint16_t)in->num_events;
        for (uint32_t u = 0; u < in->num_ubatches; u++)
            dbo_program_add_event(&r->out);
    }
    copy_buffers(r, &rules[id]);
    copy_ops(r);
}

/* ---- the whole ---- */

/* The program as the fault has it, beside the original; *changed false, and *out zeroed, when it is
 * as it was. */
static dbo_status apply(dbo_fault_id id, bool first, const dbo_program *in, dbo_program *out,
                        bool *changed, dbo_error *err)
{
    rewrite r = {.in = in, .reverse = rules[id].reverse};
    *changed = false;
    memset(out, 0, sizeof *out);
    if (!rules[id].part || (rules[id].only_first && !first))
        return DBO_OK;
    r.alias = calloc((size_t)in->num_buffers + 1, sizeof *r.alias);
    if (!r.alias)
        return dbo_fail_memory(err, "a program");
    copy_frame(&r, id);
    for (uint32_t u = 0; u < in->num_ubatches && r.out.status == DBO_OK; u++)
        rules[id].part(&r, u);
    dbo_status status = dbo_program_builder_finish(&r.out, out, err);
    free(r.alias);
    if (status == DBO_OK && !r.changed)
        dbo_program_fini(out);
    *changed = status == DBO_OK && r.changed;
    return status;
}

dbo_status dbo_fault_rewrite(dbo_fault *fault, bool first, dbo_program *program, dbo_error *err)
{
    dbo_program rewritten;
    bool changed = false;
    if (!fault)
        return DBO_OK;
    DBO_TRY(apply(fault->id, first, program, &rewritten, &changed, err));
    if (!changed)
        return DBO_OK;
    fault->reached++;
    dbo_program_fini(program);
    *program = rewritten;
    return DBO_OK;
}
