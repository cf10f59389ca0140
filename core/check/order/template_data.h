/* template_data.h: does a schedule do a layer's work, all of it, on data that is there?
 *
 *     DBO_TRY(dbo_check_template_data(t, 1u << DBO_KIND_A0 | 1u << DBO_KIND_MLP, err));
 */
#ifndef DBO_TEMPLATE_DATA_H
#define DBO_TEMPLATE_DATA_H

#include "core/program/template.h"

/* Is it a whole layer? `kinds` has a bit (1u << kind) for each of A0, A1, DISPATCH, MLP, COMBINE
 * and SHARED that the layer at hand has. DBO_REFUSED, with a sentence, unless for every ubatch
 * - each of these is there, once a layer, whoever's turn it is in;
 * - they are issued in the order of the data: A0, A1, DISPATCH, MLP, COMBINE, with SHARED after A1
 *   and before the next A0; turns are played as above;
 * - the device cannot run one before what it reads has been computed or has arrived: streams,
 *   events, finishes and hooks are looked at by the checker (check.h). */
dbo_status dbo_check_template_data(const dbo_template *t, uint32_t kinds, dbo_error *err);

#endif
