/* template_io.c: what the ops of a written schedule touch, for whoever checks it (template.h).
 *
 * A script names ops; what these hand on to each other is the layer's, so a program gets the
 * tensors of the built-in schedules, by their numbers and names, and accesses from their table
 * (layer_writer.h), with its fallbacks for steps that the schedule leaves out. The tensors are the
 * rank's for good and hold data from the start: the script says nothing of their memory. Its own
 * buffers come behind them; one that is called as a tensor is, "recv_tokens0", is that tensor, and
 * who allocates or frees it has its memory in hand. Accesses that are given stay as they are.
 */
#include "core/program/layer_writer.h"
#include "core/program/template.h"

#include <stdlib.h>
#include <string.h>

typedef struct touching {
    const dbo_program *from; /* a template's, filled in */
    dbo_program_builder out;
    dbo_build_options options;
    dbo_layer_costs *costs; /* (num_ubatches) which ops and tensors there are */
    uint16_t *numbers;      /* of the template's buffers, by theirs */
    dbo_access *accesses;   /* room for the longest lists of an op */
} touching;

/* ---- which steps and tensors there are ---- */

static void note_steps(touching *t, const dbo_layer_costs *costs)
{
    const dbo_program *p = t->from;
    for (uint32_t u = 0; u < p->num_ubatches; u++) {
        t->costs[u].quant_late = costs[u].quant_late;
        for (uint32_t role = 1; role < DBO_BUFFER_ROLES; role++)
            t->costs[u].sizes.bytes[role] = costs[u].sizes.bytes[role] > 0;
    }
    for (uint32_t u = 0; u < p->num_ubatches; u++)
        for (uint32_t i = 0; i < p->num_instrs[u]; i++) {
            const dbo_instr *instr = &p->instrs[u][i];
            if (instr->code != DBO_CODE_OP)
                continue;
            dbo_op_id id = p->ops[instr->index].id_bits;
            t->costs[dbo_op_id_ubatch(id)].kernels[dbo_op_id_kind(id)] = 1;
        }
}

static void init_writer(touching *t, dbo_writer *w, uint32_t ubatch)
{
    const dbo_layer_costs *costs = &t->costs[ubatch];
    dbo_writer_init(w, &t->out, &t->options, costs, ubatch,
                    t->options.low_latency ? DBO_FORM_LL : DBO_FORM_HT);
    if (costs->kernels[DBO_KIND_COPY] > 0) /* low latency copies nothing unless a script does */
        w->sizes.bytes[DBO_BUFFER_COMBINED] = costs->sizes.bytes[DBO_BUFFER_COMBINED];
}

/* ---- buffers ---- */

static bool is_memory(const dbo_instr *instr)
{
    return instr->code == DBO_CODE_ALLOC || instr->code == DBO_CODE_FREE;
}

static uint16_t number_of(touching *t, const dbo_program_buffer *buffer, uint32_t num_tensors)
{
    for (uint32_t b = 0; b < num_tensors; b++)
        if (strcmp(t->out.program.buffers[b].name, buffer->name) == 0)
            return (uint16_t)b;
    return dbo_program_add_buffer(&t->out, buffer->name, buffer->bytes, buffer->pool);
}

static void add_buffers(touching *t)
{
    const dbo_program *p = t->from;
    dbo_writer_add_buffers(&t->out, &t->options, t->costs, DBO_STREAM_COMPUTE);
    uint32_t num_tensors = t->out.program.num_buffers;
    for (uint32_t b = 0; b < p->num_buffers && t->out.status == DBO_OK; b++)
        t->numbers[b] = number_of(t, &p->buffers[b], num_tensors);
    if (t->out.status != DBO_OK)
        return;
    for (uint32_t b = 0; b < t->out.program.num_buffers; b++)
        t->out.program.buffers[b].workspace = t->out.program.buffers[b].input = true;
    for (uint32_t b = 0; b < p->num_buffers; b++) /* also a tensor that the layer does not have */
        t->out.program.buffers[t->numbers[b]].bytes = 1;
    for (uint32_t u = 0; u < p->num_ubatches; u++)
        for (uint32_t i = 0; i < p->num_instrs[u]; i++) {
            const dbo_instr *instr = &p->instrs[u][i];
            if (!is_memory(instr))
                continue;
            dbo_program_buffer *buffer = &t->out.program.buffers[t->numbers[instr->index]];
            buffer->workspace = buffer->input = false;
        }
}

/* ---- accesses ---- */

/* Given ones, with the numbers that the buffers have now. */
static dbo_op_io renumbered(const touching *t, const dbo_op_io *io)
{
    dbo_op_io copy = *io;
    copy.reads = t->accesses;
    copy.writes = t->accesses + io->num_reads;
    for (uint32_t i = 0; i < io->num_reads + io->num_writes; i++) {
        t->accesses[i] = i < io->num_reads ? io->reads[i] : io->writes[i - io->num_reads];
        t->accesses[i].buffer = t->numbers[t->accesses[i].buffer];
    }
    return copy;
}

static void touch(touching *t, const dbo_op_io *given, dbo_op_id id, uint16_t index)
{
    uint32_t kind = dbo_op_id_kind(id);
    if (!given) {
        dbo_writer w;
        init_writer(t, &w, dbo_op_id_ubatch(id));
        if (kind != DBO_KIND_SYNTHETIC && kind != DBO_KIND_CUSTOM)
            dbo_writer_touch(&w, (dbo_op_kind)kind, index, 1);
        return;
    }
    const dbo_op_io io = renumbered(t, given);
    if (kind == DBO_KIND_DISPATCH || kind == DBO_KIND_COMBINE)
        dbo_program_set_post_io(&t->out, index, &io);
    else
        dbo_program_set_op_io(&t->out, index, &io);
}

static size_t longest(const dbo_program *p)
{
    size_t most = 0;
    for (uint32_t i = 0; i < p->num_ops + p->num_posts; i++) {
        const dbo_op_io *io = i < p->num_ops ? p->ops[i].io : p->posts[i - p->num_ops].io;
        size_t count = io ? (size_t)io->num_reads + io->num_writes : 0;
        most = count > most ? count : most;
    }
    return most;
}

static void touch_all(touching *t)
{
    dbo_program *p = &t->out.program;
    for (uint32_t i = 0; i < p->num_ops; i++)
        touch(t, t->from->ops[i].io, p->ops[i].id_bits, (uint16_t)i);
    for (uint32_t i = 0; i < p->num_posts; i++)
        touch(t, t->from->posts[i].io, p->posts[i].id_bits, (uint16_t)i);
    for (uint32_t u = 0; u < p->num_ubatches; u++)
        for (uint32_t i = 0; i < p->num_instrs[u]; i++) {
            dbo_instr *instr = &p->instrs[u][i];
            if (is_memory(instr) || instr->code == DBO_CODE_RECORD_STREAM)
                instr->index = t->numbers[instr->index];
        }
}

/* ---- the whole ---- */

/* The program but for buffers and texts goes over to the builder. */
static void take_program(touching *t, dbo_program *program)
{
    const dbo_program built = t->out.program;
    t->out.program = *program;
    t->out.program.num_buffers = built.num_buffers;
    t->out.program.buffers = built.buffers;
    t->out.program.texts = built.texts;
    program->num_ops = program->num_posts = 0;
    program->ops = NULL;
    program->posts = NULL;
    memset(program->instrs, 0, sizeof program->instrs);
}

dbo_status dbo_template_touch(dbo_program *program, const dbo_layer_costs *costs,
                              const dbo_build_options *options, dbo_error *err)
{
    const dbo_program from = *program;
    touching t = {.from = &from, .options = *options};
    t.options.memory = true;
    t.costs = calloc(from.num_ubatches, sizeof *t.costs);
    t.numbers = calloc((size_t)from.num_buffers + 1, sizeof *t.numbers);
    t.accesses = calloc(longest(&from) + 1, sizeof *t.accesses);
    dbo_program_builder_init(&t.out, from.name, from.num_ubatches);
    if (!t.costs || !t.numbers || !t.accesses) {
        t.out.status = dbo_fail_memory(&t.out.error, "a schedule's accesses");
    } else {
        note_steps(&t, costs);
        add_buffers(&t);
    }
    if (t.out.status == DBO_OK) {
        take_program(&t, program);
        touch_all(&t);
    }
    dbo_program made;
    dbo_status status = dbo_program_builder_finish(&t.out, &made, err);
    dbo_program_fini(program);
    if (status == DBO_OK)
        *program = made;
    free(t.costs);
    free(t.numbers);
    free(t.accesses);
    return status;
}
