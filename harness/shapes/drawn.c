/* drawn.c -- shapes drawn of a range, and what they show. See template_job.h. */
#include "harness/shapes/template_job.h"

void mpl_drawn_add(mpl_drawn *d, uint32_t n_symbols, const int64_t *value, uint64_t bytes,
                   uint64_t bound, int64_t ns)
{
    double regret = bound > 0 ? (double)bytes / (double)bound : 1;

    d->ns[d->n] = ns;
    if (d->n == 0 || regret > d->worst) {
        d->worst = regret;
        memcpy(d->worst_at, value, n_symbols * sizeof *value);
    }
    d->least_bytes = d->n == 0 ? bytes : mpl_min_u64(d->least_bytes, bytes);
    d->most_bytes = mpl_max_u64(d->most_bytes, bytes);
    d->sum += regret;
    d->n++;
}

int64_t mpl_drawn_ns(const mpl_drawn *d)
{
    mpl_sort_i64(d->ns, d->n);
    return d->n > 0 ? d->ns[d->n / 2] : 0;
}

const char *mpl_shape_words(const mpl_exprs *x, const int64_t *value, char *text)
{
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < mpl_exprs_n_symbols(x) && n < MPL_SHAPE_TEXT; i++)
        n += (size_t)snprintf(text + n, MPL_SHAPE_TEXT - n, "%s%s=%" PRId64, i > 0 ? "," : "",
                              mpl_exprs_symbol(x, i)->name, value[i]);
    return text;
}

void mpl_drawn_fields(const mpl_drawn *d, const mpl_exprs *x, mpl_record *row)
{
    char text[MPL_SHAPE_TEXT];

    if (d->corner > 0)
        mpl_record_real(row, MPL_FIELD_regret_corner, d->corner);
    if (d->n == 0)
        return;
    mpl_record_int(row, MPL_FIELD_drawn, d->n);
    mpl_record_real(row, MPL_FIELD_drawn_worst, d->worst);
    mpl_record_text(row, MPL_FIELD_drawn_worst_at, mpl_shape_words(x, d->worst_at, text));
    mpl_record_real(row, MPL_FIELD_drawn_mean, d->sum / d->n);
}

void mpl_regret_fields(const mpl_template *t, mpl_record *row)
{
    char text[MPL_SHAPE_TEXT];
    uint32_t worst = 0;
    uint64_t most = mpl_template_most(t, &worst);
    const mpl_regret *r = &t->cell[worst].regret;

    if (r->at != NULL && r->bound > 0) {
        mpl_record_real(row, MPL_FIELD_regret_least, (double)r->arena / (double)r->bound);
        mpl_record_text(row, MPL_FIELD_regret_at, mpl_shape_words(t->problem->x, r->at, text));
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
