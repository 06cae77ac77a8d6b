/* sized_text.h -- graphs as text whose numbers depend on symbols. */
#pragma once

#include "graphs/symbols/sym_graph.h"
#include "tests/support/test.h"

/* A number in a text stands as {EXPRESSION}. */
static inline mpl_status read_text(mpl_ctx *ctx, void *arg, const mpl_exprs *x,
                                   const int64_t *value, mpl_graph **out)
{
    const char *at = arg;
    char text[2048];
    size_t n = (size_t)snprintf(text, sizeof text, "graph test\n");

    for (; *at != '\0'; at++) {
        char part[100];
        int64_t number;
        mpl_expr e;

        if (*at != '{') {
            text[n++] = *at;
            continue;
        }
        snprintf(part, sizeof part, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        at = strchr(at, '}');
        MPL_PASS(mpl_expr_read(ctx, (mpl_exprs *)x, part, &e));
        assert_true(mpl_expr_eval(x, e, value, &number));
        n += (size_t)snprintf(text + n, sizeof text - n, "%" PRId64, number);
    }
    return mpl_text_read_memory(ctx, "test", text, n, out);
}
