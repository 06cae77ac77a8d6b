/* drawn.c -- shapes drawn of a range, and what they show. See template_job.h. */
#include "harness/shapes/template_job.h"

void mpl_drawn_add(mpl_drawn *drawn, uint32_t n_symbols, const int64_t *value, uint64_t bytes,
                   uint64_t bound, int64_t ns)
{
    double regret = bound > 0 ? (double)bytes / (double)bound : 1;

    drawn->ns[drawn->n] = ns;
    if (drawn->n == 0 || regret > drawn->worst) {
        drawn->worst = regret;
        memcpy(drawn->worst_at, value, n_symbols * sizeof *value);
    }
    drawn->least_bytes = drawn->n == 0 ? bytes : mpl_min_u64(drawn->least_bytes, bytes);
    drawn->most_bytes = mpl_max_u64(drawn->most_bytes, bytes);
    drawn->sum += regret;
    drawn->n++;
}

int64_t mpl_drawn_ns(const mpl_drawn *drawn)
{
    mpl_sort_i64(drawn->ns, drawn->n);
    return drawn->n > 0 ? drawn->ns[drawn->n / 2] : 0;
}

const char *mpl_shape_words(const mpl_exprs *exprs, const int64_t *value, char *text)
{
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < mpl_exprs_n_symbols(exprs) && n < MPL_SHAPE_TEXT; i++)
        n += (size_t)snprintf(text + n, MPL_SHAPE_TEXT - n, "%s%s=%" PRId64, i > 0 ? "," : "",
                              mpl_exprs_symbol(exprs, i)->name, value[i]);
    return text;
}

void mpl_drawn_fields(const mpl_drawn *drawn, const mpl_exprs *exprs, mpl_record *row)
{
    char text[MPL_SHAPE_TEXT];

    if (drawn->corner > 0)
        mpl_record_real(row, MPL_FIELD_regret_corner, drawn->corner);
    if (drawn->n == 0)
        return;
    mpl_record_int(row, MPL_FIELD_drawn, drawn->n);
    mpl_record_real(row, MPL_FIELD_drawn_worst, drawn->worst);
    mpl_record_text(row, MPL_FIELD_drawn_worst_at, mpl_shape_words(exprs, drawn->worst_at, text));
    mpl_record_real(row, MPL_FIELD_drawn_mean, drawn->sum / drawn->n);
}

void mpl_regret_fields(const mpl_template *tmpl, mpl_record *row)
{
    char text[MPL_SHAPE_TEXT];
    uint32_t worst = 0;
    uint64_t most = mpl_template_most(tmpl, &worst);
    const mpl_regret *regret = &tmpl->cell[worst].regret;

    if (regret->at != NULL && regret->bound > 0) {
        mpl_record_real(row, MPL_FIELD_regret_least, (double)regret->arena / (double)regret->bound);
        mpl_record_text(row, MPL_FIELD_regret_at,
                        mpl_shape_words(tmpl->problem->exprs, regret->at, text));
    }
    if (most != UINT64_MAX)
        mpl_record_real(row, MPL_FIELD_regret_most, (double)most / (double)MPL_REGRET_ONE);
}

mpl_status mpl_shapes_count(mpl_ctx *ctx, const mpl_options *options, uint32_t *n)
{
    uint64_t count = 0;

    if (options->shapes != NULL)
        MPL_PASS(mpl_parse_count(ctx, "--shapes", options->shapes, 1, 1000000, &count));
    *n = (uint32_t)count;
    return MPL_OK;
}
