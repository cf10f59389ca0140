/* test_sm_control.c: which SMs transfers get, what is left for compute, and what is said when a
 * device does not do it. The machine is the two tables that are asked. */
#include "core/step/sm_control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static uint32_t sms, most, comm, compute;
static dbo_status outcome;

static uint32_t total_sms(void *self)
{
    (void)self;
    return sms;
}
static dbo_status set_compute_sms(void *self, uint32_t count)
{
    (void)self;
    compute = count;
    return outcome;
}
static dbo_status device_status(void *self, dbo_error *err)
{
    (void)self;
    return dbo_fail(err, DBO_DEVICE, NULL, "the device keeps its SMs");
}
static void caps(void *self, dbo_a2a_caps *out)
{
    (void)self;
    *out = (dbo_a2a_caps){.max_sms = most};
}
static uint32_t set_sms(void *self, uint32_t count)
{
    (void)self;
    comm = count;
    return count < most ? count : most;
}

static const dbo_device_ops device = {
    .total_sms = total_sms, .set_compute_sms = set_compute_sms, .status = device_status};
static const dbo_a2a_ops a2a = {.caps = caps, .set_sms = set_sms};

/* Of a GPU of `total` SMs whose transfers take at most `largest`. */
static dbo_status init(dbo_sm_control *control, dbo_rank *rank, uint32_t total, uint32_t largest,
                       uint32_t asked, bool is_set, dbo_error *err)
{
    dbo_config config;
    dbo_config_init(&config);
    config.dbo_comm_sms = asked;
    config.dbo_comm_sms_is_set = is_set;
    sms = total, most = largest, comm = compute = 0, outcome = DBO_OK;
    *rank = (dbo_rank){.seam = {.device = &device, .a2a = &a2a}};
    return dbo_sm_control_init(control, rank, &config, false, err);
}

static void expect(uint32_t total, uint32_t largest, uint32_t asked, uint32_t get, uint32_t leave)
{
    dbo_sm_control control;
    dbo_rank rank;
    assert_int_equal(init(&control, &rank, total, largest, asked, false, NULL), DBO_OK);
    assert_int_equal(dbo_sm_control_enter(&control, NULL), DBO_OK);
    assert_int_equal(comm, get);
    assert_int_equal(compute, leave);
    if (get == 0)
        return;
    assert_int_equal(control.effective, get < largest ? get : largest);
    assert_int_equal(dbo_sm_control_exit(&control, NULL), DBO_OK);
    assert_int_equal(comm, total);
    assert_int_equal(compute, total);
}

static void transfers_get_an_even_number(void **state)
{
    (void)state;
    expect(31, 64, 8, 8, 23);
    expect(31, 6, 8, 8, 23); /* the back end takes fewer; compute leaves what was asked */
    expect(31, 64, 9, 8, 23);
    expect(31, 64, 31, 30, 1);
    expect(31, 64, 77, 30, 1);
    expect(31, 0, 8, 0, 0); /* its transfers use none */
    expect(31, 64, 0, 0, 0);
    expect(0, 64, 8, 0, 0);
}

static void what_was_set_must_fit(void **state)
{
    (void)state;
    dbo_sm_control control;
    dbo_rank rank;
    dbo_error err = {0};
    assert_int_equal(init(&control, &rank, 31, 64, 8, true, &err), DBO_OK);
    assert_int_equal(init(&control, &rank, 31, 64, 9, true, &err), DBO_INVALID);
    assert_string_equal(err.message, "dbo_comm_sms is 9, the GPU has 31 SMs");
    assert_int_equal(init(&control, &rank, 32, 64, 32, true, &err), DBO_INVALID);
    assert_int_equal(init(&control, &rank, 33, 64, 32, true, &err), DBO_OK);
}

static void a_device_that_refuses_is_said(void **state)
{
    (void)state;
    dbo_sm_control control;
    dbo_rank rank;
    dbo_error err = {0};
    assert_int_equal(init(&control, &rank, 31, 64, 8, false, &err), DBO_OK);
    outcome = DBO_DEVICE;
    assert_int_equal(dbo_sm_control_enter(&control, &err), DBO_DEVICE);
    assert_non_null(strstr(err.message, "the device keeps its SMs"));
    err = (dbo_error){0};
    assert_int_equal(dbo_sm_control_exit(&control, &err), DBO_DEVICE);
    assert_non_null(strstr(err.message, "the device keeps its SMs"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transfers_get_an_even_number),
        cmocka_unit_test(what_was_set_must_fit),
        cmocka_unit_test(a_device_that_refuses_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
