/* describe.h: an experiment in four lines: model, cluster, batch, config.
 *
 *     dbo_experiment_describe(&experiment, 80, &text);    // "Model    DeepSeek-V3, 61 layers ..."
 */
#ifndef DBO_APP_DESCRIBE_H
#define DBO_APP_DESCRIBE_H

#include "core/base/strbuf.h"
#include "lab/experiment/experiment.h"

/* Appends four lines, each "Heading  text\n", of a finished experiment; ASCII only. */
void dbo_experiment_describe(const dbo_experiment *experiment, uint32_t width, dbo_strbuf *out);

#endif
