/* ref_routes.c: which access of a transfer is which tensor, and how many rows there are. */
#include "core/ref/ref_routes.h"

#include <string.h>

int32_t dbo_ref_find(const dbo_access *accesses, uint32_t count, dbo_buffer_role role)
{
    for (uint32_t i = 0; i < count; i++)
        if (dbo_layer_buffer_role(accesses[i].buffer) == role)
            return (int32_t)i;
    return -1;
}

static uint8_t read_number(const dbo_op_io *io, dbo_buffer_role role)
{
    int32_t at = dbo_ref_find(io->reads, io->num_reads, role);
    return at < 0 ? DBO_ROUTE_NONE : (uint8_t)at;
}

static uint8_t write_number(const dbo_op_io *io, dbo_buffer_role role)
{
    int32_t at = dbo_ref_find(io->writes, io->num_writes, role);
    return at < 0 ? DBO_ROUTE_NONE : (uint8_t)at;
}

static uint64_t read_bytes(const dbo_op_io *io, uint8_t number)
{
    return number == DBO_ROUTE_NONE ? 0 : io->reads[number].bytes;
}

static uint64_t write_bytes(const dbo_op_io *io, uint8_t number)
{
    return number == DBO_ROUTE_NONE ? 0 : io->writes[number].bytes;
}

/* R rows at the receiver, as the route counts them. */
static void set_capacity(dbo_route *route, uint64_t rows)
{
    route->capacity = (uint32_t)(route->low_latency ? rows / route->num_experts : rows);
}

static void dispatch(const dbo_op_io *io, dbo_route *route)
{
    uint8_t *reads = route->reads, *writes = route->writes;
    reads[DBO_ROUTE_ROWS] = read_number(io, DBO_BUFFER_TOKENS);
    route->quantise = false;
    if (reads[DBO_ROUTE_ROWS] == DBO_ROUTE_NONE) {
        reads[DBO_ROUTE_ROWS] = read_number(io, DBO_BUFFER_FFN_IN);
        route->quantise = route->wire == DBO_FP8;
    }
    reads[DBO_ROUTE_SCALES] = read_number(io, DBO_BUFFER_SCALES);
    reads[DBO_ROUTE_IDS] = read_number(io, DBO_BUFFER_TOPK_IDS);
    reads[DBO_ROUTE_WEIGHTS] = read_number(io, DBO_BUFFER_TOPK_WEIGHTS);
    reads[DBO_ROUTE_FLAGS] = read_number(io, DBO_BUFFER_LAYOUT);
    writes[DBO_ROUTE_ROWS] = write_number(io, DBO_BUFFER_RECV_TOKENS);
    writes[DBO_ROUTE_SCALES] = write_number(io, DBO_BUFFER_RECV_SCALES);
    writes[DBO_ROUTE_IDS] = write_number(io, DBO_BUFFER_RECV_IDS);
    writes[DBO_ROUTE_WEIGHTS] = write_number(io, DBO_BUFFER_RECV_WEIGHTS);
    writes[DBO_ROUTE_HANDLE] = write_number(io, DBO_BUFFER_HANDLE);
    writes[DBO_ROUTE_COUNTS] = write_number(io, DBO_BUFFER_COUNTS);
    uint64_t row = route->hidden * (uint64_t)(route->wire == DBO_FP8 ? 1 : 4);
    route->tokens = (uint32_t)(read_bytes(io, reads[DBO_ROUTE_IDS]) / (8 * (uint64_t)route->topk));
    set_capacity(route, write_bytes(io, writes[DBO_ROUTE_ROWS]) / row);
}

static void combine(const dbo_op_io *io, dbo_route *route)
{
    uint64_t row = 4 * (uint64_t)route->hidden;
    uint8_t to = write_number(io, DBO_BUFFER_COMBINED);
    route->reads[DBO_ROUTE_ROWS] = read_number(io, DBO_BUFFER_EXPERT_OUT);
    route->reads[DBO_ROUTE_HANDLE] = read_number(io, DBO_BUFFER_HANDLE);
    route->reads[DBO_ROUTE_IDS] = read_number(io, DBO_BUFFER_TOPK_IDS);
    route->reads[DBO_ROUTE_WEIGHTS] = read_number(io, DBO_BUFFER_TOPK_WEIGHTS);
    route->writes[DBO_ROUTE_ROWS] = to == DBO_ROUTE_NONE ? write_number(io, DBO_BUFFER_HIDDEN) : to;
    route->tokens = (uint32_t)(write_bytes(io, route->writes[DBO_ROUTE_ROWS]) / row);
    set_capacity(route, read_bytes(io, route->reads[DBO_ROUTE_ROWS]) / row);
}

void dbo_ref_route(const dbo_model_spec *spec, uint32_t num_ranks, bool low_latency, bool combining,
                   const dbo_op_io *io, dbo_route *out)
{
    *out = (dbo_route){.low_latency = low_latency,
                       .combine = combining,
                       .wire = spec->dispatch_dtype == DBO_FP8 ? DBO_FP8 : DBO_FP32,
                       .num_ranks = num_ranks,
                       .num_experts = spec->num_experts,
                       .topk = spec->topk,
                       .hidden = spec->hidden};
    memset(out->reads, DBO_ROUTE_NONE, sizeof out->reads);
    memset(out->writes, DBO_ROUTE_NONE, sizeof out->writes);
    if (combining)
        combine(io, out);
    else
        dispatch(io, out);
}
