/* The machine of an experiment: what NVLink joins is as many GPUs as its nodes say. */
#include "lab/experiment/experiment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void nvlink_joins_what_the_nodes_have(void **state)
{
    (void)state;
    dbo_experiment e = {.has_hardware = true, .gpus_per_domain = 4};
    dbo_hardware usual, machine;
    dbo_hardware_init(&usual);
    e.hardware = usual;
    e.hardware.sms = 78;
    assert_int_equal(usual.gpus_per_domain, 8);
    dbo_experiment_machine(&e, &machine);
    assert_int_equal(machine.gpus_per_domain, 4);
    assert_int_equal(machine.sms, 78);
    e.has_hardware = false;
    dbo_experiment_machine(&e, &machine);
    assert_int_equal(machine.gpus_per_domain, 4);
    assert_int_equal(machine.sms, usual.sms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nvlink_joins_what_the_nodes_have)};
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
