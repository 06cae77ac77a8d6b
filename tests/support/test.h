/* test.h -- what every test file includes: cmocka with what it needs, a fresh context, and visible
 * skips. */
#ifndef MPL_TEST_H
#define MPL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "graphs/core/base.h"

/* What `make data` brings: the Makefile links its folder there. Tests run in the project's root. */
#define MPL_SHARED "build/data"

/* Fails with the context's message when st is not what was expected. */
#define assert_status(ctx, got, want)                                                              \
    do {                                                                                           \
        mpl_status status_got = (got);                                                             \
        if (status_got != (want))                                                                  \
            fail_msg("status '%s' where '%s' was expected: %s", mpl_status_name(status_got),       \
                     mpl_status_name(want), (ctx)->message);                                       \
    } while (0)
#define assert_ok(ctx, got) assert_status(ctx, got, MPL_OK)

/* Skips the test, visibly, where a file of another project is not there. */
#define skip_without(path)                                                                         \
    do {                                                                                           \
        if (access(path, R_OK) != 0) {                                                             \
            print_message("skip: %s: no %s here\n", __func__, path);                               \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

#endif
