/* stepper.h: a simulated step, hand-off by hand-off, as text: whose turn it is, what it issues,
 * what has been issued so far on the timeline.
 *
 * Each step waits for a key: on a terminal any key goes on and q ends; on anything else a line goes
 * on, and a line that begins with q ends, so that it can be driven by a pipe. The end of the input
 * ends it. The terminal is put back as it was, whatever happens.
 *
 *     dbo_layers all = {0};
 *     DBO_TRY(dbo_step_through(&outcome, &all, style, STDIN_FILENO, stdout, cancelled, err));
 */
#ifndef DBO_APP_STEPPER_H
#define DBO_APP_STEPPER_H

#include "lab/world/outcome.h"
#include "viz/text/layers.h"
#include "viz/text/text.h"

#include <stdio.h>

/* Goes through the step as it was decided, on the outcome's rank; turns that issue nothing of
 * `layers` are left out. A step that replays a graph took no turns: those of its capture are shown.
 * DBO_CANCELLED once `cancelled` (may be NULL) says so. */
dbo_status dbo_step_through(const dbo_outcome *outcome, const dbo_layers *layers,
                            dbo_text_style style, int in_fd, FILE *out,
                            bool (*cancelled)(void *unused), dbo_error *err);

#endif
