/* fixed_costs.c: us of a person to ns of ops. */
#include "lab/experiment/fixed_costs.h"

#include "core/base/units.h"

void dbo_fixed_costs_use(const dbo_fixed_costs *f, uint32_t ubatches, dbo_layer_costs *out,
                         dbo_hardware *hardware)
{
    int64_t ns[DBO_KIND_COUNT];
    for (uint32_t k = 0; k < DBO_KIND_COUNT; k++)
        ns[k] = -1;
    ns[DBO_KIND_A0] = dbo_ns_from_us(f->a0_us);
    ns[DBO_KIND_A1] = dbo_ns_from_us(f->a1_us);
    ns[DBO_KIND_DISPATCH] = dbo_ns_from_us(f->d_us);
    ns[DBO_KIND_MLP] = dbo_ns_from_us(f->m_us);
    ns[DBO_KIND_COMBINE] = dbo_ns_from_us(f->c_us);
    ns[DBO_KIND_SHARED] = dbo_ns_from_us(f->s_us);
    ns[DBO_KIND_COPY] = dbo_ns_from_us(f->copy_us);
    ns[DBO_KIND_QUANT] = f->quant_us > 0 ? dbo_ns_from_us(f->quant_us) : -1;
    ns[DBO_KIND_LAYOUT] = f->layout_us > 0 ? dbo_ns_from_us(f->layout_us) : -1;
    ns[DBO_KIND_H2D] = f->h2d_us > 0 ? dbo_ns_from_us(f->h2d_us) : -1;
    ns[DBO_KIND_REDUCE] = f->reduce_us > 0 ? dbo_ns_from_us(f->reduce_us) : -1;
    for (uint32_t k = 0; k < DBO_KIND_COUNT; k++)
        ns[k] = ns[k] > 0 ? ns[k] * ubatches : ns[k];
    dbo_layer_costs_fixed(ns, 0, out);
    double *host_ns = hardware->host_ns;
    host_ns[DBO_CHARGE_LAUNCH] = f->launch_us * 1000;
    host_ns[DBO_CHARGE_EVENT] = f->event_us * 1000;
    host_ns[DBO_CHARGE_HANDOFF] = f->handoff_us * 1000;
    host_ns[DBO_CHARGE_REPLAY] = f->replay_us * 1000;
    host_ns[DBO_CHARGE_POST] = f->post_us * 1000;
    host_ns[DBO_CHARGE_METADATA] = f->metadata_us * 1000;
    host_ns[DBO_CHARGE_STEP] = f->step_us * 1000;
}
