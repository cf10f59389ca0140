/* batch_numbers.h: fills the numbers of a described batch without a script. */
#ifndef DBO_TEST_BATCH_NUMBERS_H
#define DBO_TEST_BATCH_NUMBERS_H

#include "lab/experiment/workload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* numbers[index] = number; index is one of them, or the next. */
static inline void put_number(dbo_per_rank *numbers, uint32_t index, uint32_t number)
{
    if (index == numbers->count) {
        numbers->values = realloc(numbers->values, ++numbers->count * sizeof *numbers->values);
        assert_non_null(numbers->values);
    }
    numbers->values[index] = number;
}

#endif
