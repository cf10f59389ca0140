/* protocol_scenes.h: small programs for the protocol's explorer, and what its tests ask of it. */
#ifndef DBO_TESTS_PROTOCOL_SCENES_H
#define DBO_TESTS_PROTOCOL_SCENES_H

#include "core/check/turns/protocol_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* w works, y yields, h sets a hook on the next, r runs its own, f fails. */
static const char protocol_letters[] = "wyhrf";
/* A layer and a half as LL has it: hooks cross over, the last runs at the exit. */
#define LL "wrhywrhy"

static inline dbo_protocol_options scene(uint32_t count, const char *first, const char *second,
                                         const char *third)
{
    const char *programs[] = {first, second, third};
    dbo_protocol_options o = {.num_ubatches = count, .started = count};
    for (uint32_t i = 0; i < count; i++)
        for (const char *p = programs[i]; *p; p++)
            assert_int_equal(
                dbo_protocol_add(&o.programs[i], (dbo_protocol_code)(strchr(protocol_letters, *p) -
                                                                     protocol_letters)),
                DBO_OK);
    return o;
}

static inline uint32_t bit(uint32_t i)
{
    return 1u << i;
}

/* Explores; no finding, and the run returns `status`. */
static inline void holds(const dbo_protocol_options *o, dbo_status status)
{
    dbo_protocol_result r;
    dbo_error err = {0};
    assert_int_equal(dbo_protocol_explore(o, &r, &err), DBO_OK);
    if (r.finding != DBO_PROTOCOL_SOUND) {
        dbo_strbuf out = {0};
        dbo_protocol_print(o, &r, &out);
        print_error("%s", dbo_strbuf_text(&out));
        dbo_strbuf_fini(&out);
    }
    assert_int_equal(r.finding, DBO_PROTOCOL_SOUND);
    assert_int_equal(r.status, status);
    assert_int_equal(r.num_steps, 0);
    assert_true(r.final_states == 1); /* all orders end alike */
    dbo_protocol_result_fini(&r);
}

/* Every step of a counterexample is possible, in this order, and leads where it says. */
static inline void is_an_interleaving(const dbo_protocol_options *o, const dbo_protocol_result *r)
{
    protocol_state s;
    dbo_protocol_finding found = DBO_PROTOCOL_SOUND;
    dbo_protocol_start(o, &s);
    for (uint32_t i = 0; i < r->num_steps; i++) {
        const dbo_protocol_step *step = &r->steps[i];
        assert_int_equal(found, DBO_PROTOCOL_SOUND); /* the shortest: nothing wrong before */
        assert_int_equal(s.place[step->thread], step->place);
        found = DBO_PROTOCOL_SOUND;
        assert_true(dbo_protocol_move(o, &s, step->thread, step->spurious, &found));
        assert_int_equal(s.event, step->event);
        assert_int_equal(s.done, step->done);
        assert_int_equal(s.lock, step->lock);
        assert_int_equal(s.aborted, step->aborted);
    }
    if (found == DBO_PROTOCOL_SOUND && s.place[o->num_ubatches] != AT_RETURNED)
        found = dbo_protocol_standstill(o, &s);
    assert_int_equal(found, r->finding);
}

#endif
