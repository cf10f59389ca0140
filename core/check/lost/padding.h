/* padding.h: a step without the rows of padding that it has sent. Private to core/check/.
 *
 * A dispatch says how many rows a rank sends for an ubatch; whoever asks says how many tokens are
 * real. Padding stands behind them, so the last ubatches have it. Transfers, and what works on
 * routed rows, have then less to do: how much less is the machine's to say.
 *
 *     if (dbo_padding_leave_out(&course, about, &padding))   // the course is one without it now
 *         DBO_TRY(dbo_course_play(&course, &(dbo_play_rules){0}, rank, &played, err));
 */
#ifndef DBO_CHECK_PADDING_H
#define DBO_CHECK_PADDING_H

#include "core/check/lost/course.h"
#include "core/check/lost/perf_about.h"

typedef struct dbo_padding { /* of the rank with the most */
    uint32_t rank;
    uint64_t sent, real; /* rows that each layer dispatches, all ubatches together */
} dbo_padding;

/* Does a kernel of this kind work on rows that have been routed? */
bool dbo_padding_goes(dbo_op_id id);

/* Takes the padding of all ranks out of the course; false: there is none. */
bool dbo_padding_leave_out(dbo_course *course, const dbo_perf_about *about, dbo_padding *out);

#endif
