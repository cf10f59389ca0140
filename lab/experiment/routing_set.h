/* routing_set.h: how tokens choose experts, as a person says it, and the routings that follow.
 *
 *     routing = "random"                                     -- drawn; else as is expected
 *     routing = { load = "zipf", exponent = 0.5, placement = "eplb", redundant_experts = 32 }
 *     routing = { load = { {812, 40, ...}, ... } }           -- counts of experts, a row a layer
 *
 *     balanced   every expert is as likely as any other
 *     zipf       the n-th busiest of a layer's experts has 1 / n^exponent of the first's load
 *     lognormal  loads are e^(sigma x), x normal
 *     a list     loads as counted; rows for the layers with experts, in turn
 *
 * Which experts are the busy ones is drawn for each layer from the seed. `random`: tokens are
 * drawn, too, so that even balanced loads differ from rank to rank.
 *
 *     dbo_routing_spec spec;
 *     dbo_routing_spec_init(&spec);
 *     DBO_TRY(dbo_routing_spec_set(&spec, &value, err));
 *     dbo_routings routings;
 *     DBO_TRY(dbo_routings_build(&routings, &spec, &group, err));
 *     dbo_routings_fini(&routings);
 *     dbo_routing_spec_fini(&spec);
 */
#ifndef DBO_LAB_ROUTING_SET_H
#define DBO_LAB_ROUTING_SET_H

#include "core/layer/model_spec.h"
#include "core/layer/routing.h"
#include "lab/experiment/setting.h"

typedef enum dbo_load_kind {
    DBO_LOAD_BALANCED,
    DBO_LOAD_ZIPF,
    DBO_LOAD_LOGNORMAL,
    DBO_LOAD_COUNTED
} dbo_load_kind;

typedef enum dbo_placement_kind { DBO_PLACEMENT_LINEAR, DBO_PLACEMENT_EPLB } dbo_placement_kind;

#define DBO_MAX_REDUNDANT_EXPERTS 4096u

typedef struct dbo_routing_spec {
    dbo_load_kind load;
    double exponent, sigma; /* of a zipf and of a lognormal load */
    bool random;
    dbo_placement_kind placement;
    uint32_t redundant_experts;
    uint32_t num_rows, row_length; /* COUNTED */
    double *counts;                /* (num_rows, row_length) */
} dbo_routing_spec;

/* Who routes, to whom. */
typedef struct dbo_routing_group {
    const dbo_model_spec *model;
    uint32_t num_layers;                             /* that run */
    uint32_t ep_size, gpus_per_domain, num_ubatches; /* ep_size 1: nothing is dispatched */
    bool low_latency;
    uint32_t seed;
} dbo_routing_group;

/* Of the layers with experts, which take them in turn; count 0: all experts are alike, everywhere.
 */
typedef struct dbo_routings {
    uint32_t count;
    dbo_routing **items;
} dbo_routings;

/* All experts alike; 1 for the exponent and for sigma, as long as nobody says another. */
void dbo_routing_spec_init(dbo_routing_spec *spec);
/* A name of a load, or a table: changes the keys that it has. On failure the spec is still fit for
 * _fini. */
dbo_status dbo_routing_spec_set(dbo_routing_spec *spec, const dbo_value *value, dbo_error *err);
void dbo_routing_spec_fini(dbo_routing_spec *spec);
dbo_settings dbo_routing_settings(void);

/* DBO_INVALID when counts are not those of the model's experts or layers, DBO_LIMIT when there are
 * too many. On failure nothing is left to free. */
dbo_status dbo_routings_build(dbo_routings *out, const dbo_routing_spec *spec,
                              const dbo_routing_group *group, dbo_error *err);
void dbo_routings_fini(dbo_routings *routings); /* of a zeroed one is fine */
size_t dbo_routings_bytes(const dbo_routings *routings);

/* Of `tokens` on all ranks: the most rows that one GPU of ep_size gets in a layer, over the mean of
 * them all. Some routings. */
double dbo_routings_max_rows(const dbo_routings *routings, uint32_t ep_size, double tokens);

#endif
