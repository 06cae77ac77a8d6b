/* explain_json.c -- an explanation as one JSON object. See explain.h. */
#include <stdlib.h>

#include "graphs/core/text.h"
#include "harness/explain/explain.h"

/* A JSON object being written; a failure is kept until the end. */
typedef struct writer {
    mpl_ctx *ctx;
    FILE *to;
    mpl_status st;
    const mpl_explained *explained;
} writer;

/* Writes `before` and a text; null for NULL. Text that is not UTF-8 is cleaned. */
static void put_text(writer *out, const char *before, const char *text)
{
    char *quoted = NULL, *clean = NULL;

    fputs(before, out->to);
    if (text == NULL) {
        fputs("null", out->to);
        return;
    }
    if (mpl_json_quote(out->ctx, text, &quoted) != MPL_OK &&
        (clean = mpl_strdup(out->ctx, text)) != NULL) {
        mpl_text_clean(clean);
        out->st = mpl_json_quote(out->ctx, clean, &quoted);
    }
    if (quoted == NULL && out->st == MPL_OK)
        out->st = MPL_EMEM;
    fputs(quoted != NULL ? quoted : "null", out->to);
    mpl_free_each(out->ctx, quoted, clean);
}

static void put_op(writer *out, const char *before, mpl_op op)
{
    const mpl_graph *g = out->explained->made.job.source.graph;

    put_text(out, before, g != NULL && op != MPL_NONE ? g->op_name[op] : NULL);
}

static void put_shape(writer *out, mpl_value v)
{
    const mpl_graph *g = out->explained->made.job.source.graph;

    if (g == NULL || v == MPL_NONE)
        return;
    fprintf(out->to, ", \"type\": \"%s\", \"shape\": [", mpl_type_name((mpl_type)g->value_type[v]));
    for (uint32_t k = 0; k < g->value_shape[v].rank; k++)
        fprintf(out->to, "%s%" PRId64, k > 0 ? ", " : "", g->value_shape[v].dim[k]);
    fputc(']', out->to);
}

static void put_buffer(writer *out, mpl_buffer b)
{
    const mpl_problem *p = out->explained->made.job.problem;
    const mpl_keeper *keeper = &out->explained->keeper[b];

    put_shape(out, keeper->value);
    put_op(out, ", \"made_by\": ", keeper->made_by);
    put_op(out, ", \"kept_by\": ", keeper->kept_by);
    if (p->before == NULL)
        fprintf(out->to, ", \"from\": %" PRIu32 ", \"until\": %" PRIu32, p->birth[b], p->death[b]);
}

/* "below NAME" of what is free: the buffer above it. */
static void put_portion(writer *out, const mpl_portion *part, uint32_t memory)
{
    const mpl_problem *p = out->explained->made.job.problem;
    bool used = part->kind < MPL_PORTION_alignment;
    char label[24], name[600];

    snprintf(name, sizeof name, "below %s", mpl_buffer_label(p, part->buffer, label));
    fprintf(out->to, "{\"kind\": \"%s\"", mpl_portion_name[part->kind]);
    put_text(out, ", \"name\": ", used ? mpl_buffer_label(p, part->buffer, label) : name);
    fprintf(out->to, ", \"bytes\": %" PRIu64 ", \"offset\": %" PRIu64, part->bytes, part->offset);
    if (out->explained->made.plan->spread.n > 0)
        fprintf(out->to, ", \"memory\": %" PRIu32, memory);
    if (used)
        put_buffer(out, part->buffer);
    fputc('}', out->to);
}

/* The portions of arenas [from, end). */
static void put_portions(writer *out, uint32_t from, uint32_t end)
{
    const char *between = "";

    fputs("\"parts\": [", out->to);
    for (uint32_t k = from; k < end; k++)
        for (uint32_t i = 0; i < out->explained->highest[k].n; i++) {
            fputs(between, out->to);
            between = ",\n ";
            put_portion(out, &out->explained->highest[k].portion[i],
                        out->explained->highest[k].memory);
        }
    fputc(']', out->to);
}

static void put_step(writer *out, const mpl_highest *highest)
{
    const mpl_job *job = &out->explained->made.job;
    mpl_op op = MPL_NONE;

    if (highest->step == MPL_NONE) {
        fputs(",\n\"step\": null, \"operation\": null", out->to);
        return;
    }
    for (mpl_op i = 0; job->map != NULL && i < job->source.graph->n_ops; i++)
        op = job->map->step_of[i] == highest->step ? i : op;
    fprintf(out->to, ",\n\"step\": %" PRIu32, highest->step);
    put_op(out, ", \"operation\": ", op);
}

static void put_height(writer *out)
{
    const mpl_height *height = &out->explained->height;
    const mpl_problem *p = out->explained->made.job.problem;
    char label[24];

    fprintf(out->to, ",\n\"height\": {\"by\": \"%s\", \"bytes\": %" PRIu64 ", \"buffers\": [",
            mpl_height_name[height->by], height->bytes);
    for (uint32_t i = 0; i < height->n; i++)
        put_text(out, i > 0 ? ", " : "", mpl_buffer_label(p, height->buffer[i], label));
    fputs("]}", out->to);
}

static void put_price(writer *out, const char *kind, const mpl_price *price, uint64_t bytes)
{
    if (!price->known)
        return;
    fprintf(out->to, ",\n {\"kind\": \"%s\", \"bytes\": %" PRIu64 ", \"planned_bytes\": %" PRIu64,
            kind, bytes, price->planned_bytes);
    put_text(out, ", \"command\": ", price->command);
    fputc('}', out->to);
}

static uint64_t above(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void put_costs(writer *out)
{
    const mpl_explained *explained = out->explained;
    uint64_t now = explained->made.plan->peak_bytes;
    uint64_t least =
        mpl_max_u64(explained->made.job.bound_bytes, explained->made.plan->bound_bytes);
    bool parallel = explained->made.job.problem->before != NULL;

    fprintf(out->to, ",\n\"costs\": [{\"kind\": \"placement\", \"bytes\": %" PRIu64 "}",
            explained->made.plan->spread.n > 0 ? 0 : above(now, least));
    put_price(out, "safety", &explained->safety,
              parallel ? above(now, explained->safety.planned_bytes)
                       : above(explained->safety.planned_bytes, now));
    put_price(out, "order", &explained->order, above(now, explained->order.planned_bytes));
    fputc(']', out->to);
}

static void put_advice(writer *out)
{
    const mpl_explained *explained = out->explained;
    const char *between = "";

    fputs(",\n\"suggestions\": [", out->to);
    for (uint32_t i = 0; i < explained->n_advice; i++) {
        const mpl_advice *advice = &explained->advice[i];

        fprintf(out->to, "%s{\"kind\": \"%s\"", i > 0 ? ",\n " : "", mpl_advice_name[advice->kind]);
        put_text(out, ", \"command\": ", advice->command);
        fprintf(out->to, ", \"planned_bytes\": %" PRIu64 ", \"pinned_bytes\": %" PRIu64,
                advice->planned_bytes, advice->pinned_bytes);
        put_text(out, ", \"what\": ", advice->what);
        fputc('}', out->to);
    }
    fputs("],\n\"missing\": [", out->to);
    for (int k = 0; k < MPL_N_ADVICE; k++)
        if (explained->missing[k] || explained->graph == NULL) {
            fprintf(out->to, "%s\"%s\"", between, mpl_advice_name[k]);
            between = ", ";
        }
    fputs("]}", out->to);
}

static void put_head(writer *out)
{
    const mpl_explained *explained = out->explained;
    const mpl_job *job = &explained->made.job;

    put_text(out, "{\"graph\": ", explained->graph != NULL ? explained->graph : job->text);
    put_text(out, ", \"planner\": ", mpl_record_get_text(explained->made.row, MPL_FIELD_planner));
    put_text(out, ", \"order\": ", mpl_record_get_text(explained->made.row, MPL_FIELD_order));
    fprintf(out->to,
            ", \"safety\": \"%s\", \"claim\": \"%s\",\n\"arena_bytes\": %" PRIu64
            ", \"bound_bytes\": %" PRIu64 ", \"pinned_bytes\": %" PRIu64
            ", \"state_bytes\": %" PRIu64,
            job->safety.text, mpl_claim_name(explained->made.plan->claim),
            explained->made.plan->peak_bytes,
            mpl_max_u64(job->bound_bytes, explained->made.plan->bound_bytes),
            job->map != NULL ? job->map->pinned_bytes : 0, explained->state_bytes);
}

static void put_all(writer *out)
{
    const mpl_explained *explained = out->explained;
    const mpl_problem *p = explained->made.job.problem;

    put_head(out);
    put_step(out, &explained->highest[0]);
    fputs(",\n", out->to);
    put_portions(out, 0, explained->n_first);
    fputs(",\n\"pools\": [", out->to);
    for (uint32_t k = explained->n_first; k < explained->n_arenas; k++) {
        put_text(out, k > explained->n_first ? ",\n{\"name\": " : "{\"name\": ",
                 p->pool_name[explained->highest[k].pool]);
        fprintf(out->to, ", \"arena_bytes\": %" PRIu64 ", ", explained->highest[k].arena_bytes);
        put_portions(out, k, k + 1);
        fputc('}', out->to);
    }
    fputc(']', out->to);
    put_height(out);
    put_costs(out);
    put_advice(out);
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
