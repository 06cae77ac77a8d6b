/* explain_json.c -- an explanation as one JSON object. See explain.h. */
#include <stdlib.h>

#include "graphs/core/text.h"
#include "harness/explain/explain.h"

/* A JSON object being written; a failure is kept until the end. */
typedef struct writer {
    mpl_ctx *ctx;
    FILE *to;
    mpl_status st;
    const mpl_explained *e;
} writer;

/* Writes `before` and a text; null for NULL. Text that is not UTF-8 is cleaned. */
static void put_text(writer *w, const char *before, const char *text)
{
    char *quoted = NULL, *clean = NULL;

    fputs(before, w->to);
    if (text == NULL) {
        fputs("null", w->to);
        return;
    }
    if (mpl_json_quote(w->ctx, text, &quoted) != MPL_OK &&
        (clean = mpl_strdup(w->ctx, text)) != NULL) {
        mpl_text_clean(clean);
        w->st = mpl_json_quote(w->ctx, clean, &quoted);
    }
    if (quoted == NULL && w->st == MPL_OK)
        w->st = MPL_EMEM;
    fputs(quoted != NULL ? quoted : "null", w->to);
    mpl_free_each(w->ctx, quoted, clean);
}

static void put_op(writer *w, const char *before, mpl_op op)
{
    const mpl_graph *g = w->e->made.job.source.graph;

    put_text(w, before, g != NULL && op != MPL_NONE ? g->op_name[op] : NULL);
}

static void put_shape(writer *w, mpl_value v)
{
    const mpl_graph *g = w->e->made.job.source.graph;

    if (g == NULL || v == MPL_NONE)
        return;
    fprintf(w->to, ", \"type\": \"%s\", \"shape\": [", mpl_type_name((mpl_type)g->value_type[v]));
    for (uint32_t k = 0; k < g->value_shape[v].rank; k++)
        fprintf(w->to, "%s%" PRId64, k > 0 ? ", " : "", g->value_shape[v].dim[k]);
    fputc(']', w->to);
}

static void put_buffer(writer *w, mpl_buffer b)
{
    const mpl_problem *p = w->e->made.job.problem;
    const mpl_keeper *k = &w->e->keeper[b];

    put_shape(w, k->value);
    put_op(w, ", \"made_by\": ", k->made_by);
    put_op(w, ", \"kept_by\": ", k->kept_by);
    if (p->before == NULL)
        fprintf(w->to, ", \"from\": %" PRIu32 ", \"until\": %" PRIu32, p->birth[b], p->death[b]);
}

/* "below NAME" of what is free: the buffer above it. */
static void put_portion(writer *w, const mpl_portion *part, uint32_t memory)
{
    const mpl_problem *p = w->e->made.job.problem;
    bool used = part->kind < MPL_PORTION_alignment;
    char label[24], name[600];

    snprintf(name, sizeof name, "below %s", mpl_buffer_label(p, part->buffer, label));
    fprintf(w->to, "{\"kind\": \"%s\"", mpl_portion_name[part->kind]);
    put_text(w, ", \"name\": ", used ? mpl_buffer_label(p, part->buffer, label) : name);
    fprintf(w->to, ", \"bytes\": %" PRIu64 ", \"offset\": %" PRIu64, part->bytes, part->offset);
    if (w->e->made.plan->spread.n > 0)
        fprintf(w->to, ", \"memory\": %" PRIu32, memory);
    if (used)
        put_buffer(w, part->buffer);
    fputc('}', w->to);
}

/* The portions of arenas [from, end). */
static void put_portions(writer *w, uint32_t from, uint32_t end)
{
    const char *between = "";

    fputs("\"parts\": [", w->to);
    for (uint32_t k = from; k < end; k++)
        for (uint32_t i = 0; i < w->e->highest[k].n; i++) {
            fputs(between, w->to);
            between = ",\n ";
            put_portion(w, &w->e->highest[k].portion[i], w->e->highest[k].memory);
        }
    fputc(']', w->to);
}

static void put_step(writer *w, const mpl_highest *h)
{
    const mpl_job *job = &w->e->made.job;
    mpl_op op = MPL_NONE;

    if (h->step == MPL_NONE) {
        fputs(",\n\"step\": null, \"operation\": null", w->to);
        return;
    }
    for (mpl_op i = 0; job->map != NULL && i < job->source.graph->n_ops; i++)
        op = job->map->step_of[i] == h->step ? i : op;
    fprintf(w->to, ",\n\"step\": %" PRIu32, h->step);
    put_op(w, ", \"operation\": ", op);
}

static void put_height(writer *w)
{
    const mpl_height *h = &w->e->height;
    const mpl_problem *p = w->e->made.job.problem;
    char label[24];

    fprintf(w->to, ",\n\"height\": {\"by\": \"%s\", \"bytes\": %" PRIu64 ", \"buffers\": [",
            mpl_height_name[h->by], h->bytes);
    for (uint32_t i = 0; i < h->n; i++)
        put_text(w, i > 0 ? ", " : "", mpl_buffer_label(p, h->buffer[i], label));
    fputs("]}", w->to);
}

static void put_price(writer *w, const char *kind, const mpl_price *price, uint64_t bytes)
{
    if (!price->known)
        return;
    fprintf(w->to, ",\n {\"kind\": \"%s\", \"bytes\": %" PRIu64 ", \"planned_bytes\": %" PRIu64,
            kind, bytes, price->planned_bytes);
    put_text(w, ", \"command\": ", price->command);
    fputc('}', w->to);
}

static uint64_t above(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void put_costs(writer *w)
{
    const mpl_explained *e = w->e;
    uint64_t now = e->made.plan->peak_bytes;
    uint64_t least = mpl_max_u64(e->made.job.bound_bytes, e->made.plan->bound_bytes);
    bool parallel = e->made.job.problem->before != NULL;

    fprintf(w->to, ",\n\"costs\": [{\"kind\": \"placement\", \"bytes\": %" PRIu64 "}",
            e->made.plan->spread.n > 0 ? 0 : above(now, least));
    put_price(w, "safety", &e->safety,
              parallel ? above(now, e->safety.planned_bytes) : above(e->safety.planned_bytes, now));
    put_price(w, "order", &e->order, above(now, e->order.planned_bytes));
    fputc(']', w->to);
}

static void put_advice(writer *w)
{
    const mpl_explained *e = w->e;
    const char *between = "";

    fputs(",\n\"suggestions\": [", w->to);
    for (uint32_t i = 0; i < e->n_advice; i++) {
        const mpl_advice *a = &e->advice[i];

        fprintf(w->to, "%s{\"kind\": \"%s\"", i > 0 ? ",\n " : "", mpl_advice_name[a->kind]);
        put_text(w, ", \"command\": ", a->command);
        fprintf(w->to, ", \"planned_bytes\": %" PRIu64 ", \"pinned_bytes\": %" PRIu64,
                a->planned_bytes, a->pinned_bytes);
        put_text(w, ", \"what\": ", a->what);
        fputc('}', w->to);
    }
    fputs("],\n\"missing\": [", w->to);
    for (int k = 0; k < MPL_N_ADVICE; k++)
        if (e->missing[k] || e->graph == NULL) {
            fprintf(w->to, "%s\"%s\"", between, mpl_advice_name[k]);
            between = ", ";
        }
    fputs("]}", w->to);
}

static void put_head(writer *w)
{
    const mpl_explained *e = w->e;
    const mpl_job *job = &e->made.job;

    put_text(w, "{\"graph\": ", e->graph != NULL ? e->graph : job->text);
    put_text(w, ", \"planner\": ", mpl_record_get_text(e->made.row, MPL_FIELD_planner));
    put_text(w, ", \"order\": ", mpl_record_get_text(e->made.row, MPL_FIELD_order));
    fprintf(w->to,
            ", \"safety\": \"%s\", \"claim\": \"%s\",\n\"arena_bytes\": %" PRIu64
            ", \"bound_bytes\": %" PRIu64 ", \"pinned_bytes\": %" PRIu64
            ", \"state_bytes\": %" PRIu64,
            job->safety.text, mpl_claim_name(e->made.plan->claim), e->made.plan->peak_bytes,
            mpl_max_u64(job->bound_bytes, e->made.plan->bound_bytes),
            job->map != NULL ? job->map->pinned_bytes : 0, e->state_bytes);
}

static void put_all(writer *w)
{
    const mpl_explained *e = w->e;
    const mpl_problem *p = e->made.job.problem;

    put_head(w);
    put_step(w, &e->highest[0]);
    fputs(",\n", w->to);
    put_portions(w, 0, e->n_first);
    fputs(",\n\"pools\": [", w->to);
    for (uint32_t k = e->n_first; k < e->n_arenas; k++) {
        put_text(
            w, k > e->n_first ? ",\n{\"name\": " : "{\"name\": ", p->pool_name[e->highest[k].pool]);
        fprintf(w->to, ", \"arena_bytes\": %" PRIu64 ", ", e->highest[k].arena_bytes);
        put_portions(w, k, k + 1);
        fputc('}', w->to);
    }
    fputc(']', w->to);
    put_height(w);
    put_costs(w);
    put_advice(w);
}

mpl_status mpl_explained_json(mpl_ctx *ctx, const mpl_explained *explained, char **text)
{
    mpl_status st = MPL_OK;
    char *data = NULL;
    size_t size;
    FILE *to = open_memstream(&data, &size);
    writer w = {ctx, to, MPL_OK, explained};

    MPL_TRY(to != NULL ? MPL_OK : MPL_EMEM);
    put_all(&w);
    if (fclose(to) != 0)
        MPL_FAIL(ctx, MPL_EMEM, "out of memory for an explanation");
    MPL_TRY(w.st);
    MPL_TRY(mpl_copy_text(ctx, *text, data));
out:
    free(data);
    return st;
}
