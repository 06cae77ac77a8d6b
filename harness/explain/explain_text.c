/* explain_text.c -- an explanation as text for a terminal. See explain.h. */
#include "graphs/core/size.h"
#include "graphs/core/text.h"
#include "harness/explain/explain.h"
#include "harness/report/grid.h"

enum { SHOWN = 12 }; /* buffers, and suggestions: the rest is in --json */

static const char *op_name(const mpl_explained *e, mpl_op op)
{
    return op == MPL_NONE ? NULL : e->made.job.source.graph->op_name[op];
}

/* "f32 [1,64,56,56]", or "". */
static void shape_text(const mpl_explained *e, mpl_buffer b, char *text, size_t size)
{
    const mpl_graph *g = e->made.job.source.graph;
    mpl_value v = e->keeper[b].value;
    int n;

    text[0] = '\0';
    if (g == NULL || v == MPL_NONE)
        return;
    n = snprintf(text, size, "%s [", mpl_type_name((mpl_type)g->value_type[v]));
    for (uint32_t k = 0; k < g->value_shape[v].rank && n < (int)size; k++)
        n += snprintf(text + n, size - (size_t)n, "%s%" PRId64, k > 0 ? "," : "",
                      g->value_shape[v].dim[k]);
    if (n < (int)size)
        snprintf(text + n, size - (size_t)n, "]");
}

static double percent(uint64_t part, uint64_t whole)
{
    return 100 * (double)part / (double)mpl_max_u64(whole, 1);
}

/* What a buffer is, and which operations make it and need it last. */
static void print_buffer(FILE *to, const mpl_explained *e, const mpl_portion *part)
{
    const mpl_problem *p = e->made.job.problem;
    mpl_buffer b = part->buffer;
    const char *by = op_name(e, e->keeper[b].made_by), *until = op_name(e, e->keeper[b].kept_by);
    char label[24], shape[200];

    shape_text(e, b, shape, sizeof shape);
    fprintf(to, "  %-9s %12" PRIu64 " bytes %5.1f %%  %s%s%s", mpl_portion_name[part->kind],
            part->bytes, percent(part->bytes, e->made.plan->peak_bytes),
            mpl_shown(mpl_buffer_label(p, b, label)), shape[0] != '\0' ? ", " : "", shape);
    if (by != NULL)
        fprintf(to, "; made by %s", mpl_shown(by));
    if (until != NULL)
        fprintf(to, "; kept for %s", mpl_shown(until));
    if (p->before == NULL)
        fprintf(to, "; steps [%" PRIu32 ", %" PRIu32 ")", p->birth[b], p->death[b]);
    fputc('\n', to);
}

/* Whether a comes before b among the portions that are printed: larger first. */
static bool is_larger(const mpl_highest *h, uint32_t a, uint32_t b)
{
    return h->portion[a].bytes > h->portion[b].bytes ||
           (h->portion[a].bytes == h->portion[b].bytes && a < b);
}

/* Prints the buffers of an arena, largest first, then what lies between them. */
static void print_portions(FILE *to, const mpl_explained *e, const mpl_highest *h)
{
    uint64_t between[MPL_N_PORTIONS] = {0}, rest = 0;
    uint32_t n = 0, last = h->n, n_rest = 0;

    for (uint32_t i = 0; i < h->n; i++) {
        n += h->portion[i].kind < MPL_PORTION_alignment;
        between[h->portion[i].kind] += h->portion[i].bytes;
    }
    for (uint32_t k = 0; k < n && k < SHOWN; k++) {
        uint32_t best = h->n;

        for (uint32_t i = 0; i < h->n; i++)
            if (h->portion[i].kind < MPL_PORTION_alignment &&
                (last == h->n || is_larger(h, last, i)) && (best == h->n || is_larger(h, i, best)))
                best = i;
        print_buffer(to, e, &h->portion[last = best]);
    }
    for (uint32_t i = 0; i < h->n && n > SHOWN; i++)
        if (h->portion[i].kind < MPL_PORTION_alignment && is_larger(h, last, i)) {
            rest += h->portion[i].bytes;
            n_rest++;
        }
    if (n_rest > 0)
        fprintf(to, "  %-9s %12" PRIu64 " bytes %5.1f %%  %" PRIu32 " smaller ones\n", "others",
                rest, percent(rest, h->arena_bytes), n_rest);
    for (int k = MPL_PORTION_alignment; k < MPL_N_PORTIONS; k++)
        fprintf(to, "  %-9s %12" PRIu64 " bytes %5.1f %%\n", mpl_portion_name[k], between[k],
                percent(between[k], h->arena_bytes));
}

static void print_arena(FILE *to, const mpl_explained *e, const mpl_highest *h)
{
    const mpl_job *job = &e->made.job;
    const mpl_graph *g = job->source.graph;

    fprintf(to, "%-8s %12" PRIu64 " bytes  %14s",
            h->pool == 0 && e->made.plan->spread.n > 0 ? "memory"
            : h->pool == 0                             ? "arena"
                                                       : "pool",
            h->arena_bytes, mpl_sized(h->arena_bytes).text);
    if (h->pool > 0)
        fprintf(to, "  %s", mpl_shown(job->problem->pool_name[h->pool]));
    if (h->step == MPL_NONE) {
        fprintf(to, "%s\n", h->n > 0 ? "  any two of these may be alive at once" : "");
        return;
    }
    fprintf(to, "  highest at step %" PRIu32, h->step);
    for (mpl_op op = 0; g != NULL && op < g->n_ops; op++)
        if (job->map->step_of[op] == h->step)
            fprintf(to, ", %s (%s)", mpl_shown(g->op_name[op]), mpl_op_table[g->op_kind[op]].name);
    fputc('\n', to);
}

static void print_height(FILE *to, const mpl_explained *e)
{
    static const char *const text[] = {
        "proved by these, which conflict pairwise:",
        "proved by a search; here it is a chain, from the top down:",
        "not proved; here it is a chain, each above the next, with which it conflicts:"};
    const mpl_height *h = &e->height;
    uint32_t column;
    char label[24];

    if (h->n == 0)
        return;
    column = (uint32_t)fprintf(to, "height   %s", text[h->by]);
    for (uint32_t i = 0; i < h->n && i < 4 * SHOWN; i++) {
        const char *name = mpl_shown(mpl_buffer_label(e->made.job.problem, h->buffer[i], label));

        if (column + strlen(name) > 98)
            column = (uint32_t)fprintf(to, "\n        ") - 1;
        column += (uint32_t)fprintf(to, " %s", name);
    }
    fprintf(to, "%s\n", h->n > 4 * SHOWN ? " .." : "");
}

static void print_costs(FILE *to, const mpl_explained *e)
{
    uint64_t now = e->made.plan->peak_bytes;
    uint64_t least = mpl_max_u64(e->made.job.bound_bytes, e->made.plan->bound_bytes);
    bool parallel = e->made.job.problem->before != NULL;
    uint64_t other = e->safety.planned_bytes;

    if (e->made.plan->spread.n == 0)
        fprintf(to, "costs    placement %12" PRIu64 " bytes above what is proved to be needed\n",
                now > least ? now - least : 0);
    if (e->safety.known)
        fprintf(to, "         safety    %12" PRIu64 " bytes: %s takes %" PRIu64 "\n",
                parallel ? (now > other ? now - other : 0) : (other > now ? other - now : 0),
                parallel ? "serial" : "parallel", other);
    if (e->order.known)
        fprintf(to, "         order     %12" PRIu64 " bytes above the best order tried\n",
                now > e->order.planned_bytes ? now - e->order.planned_bytes : 0);
    if (e->made.job.map != NULL)
        fprintf(to,
                "pinned   %12" PRIu64 " bytes outside of the arena, %" PRIu64
                " of them the optimiser's state\n",
                e->made.job.map->pinned_bytes, e->state_bytes);
}

static void print_advice(FILE *to, const mpl_explained *e)
{
    uint64_t now = e->made.plan->peak_bytes;
    bool some = false;

    if (e->graph == NULL) {
        fprintf(to, "missing  what would lower it: %s\n", mpl_shown(e->why));
        return;
    }
    fprintf(to, "%s\n", e->n_advice > 0 ? "lower    with" : "lower    nothing that was tried");
    for (uint32_t i = 0; i < e->n_advice && i < SHOWN; i++) {
        const mpl_advice *a = &e->advice[i];

        fprintf(to, "  %-10s %12" PRIu64 " bytes %6.1f %%  %s\n", mpl_advice_name[a->kind],
                a->planned_bytes, percent(a->planned_bytes, now) - 100, mpl_shown(a->command));
        if (a->what[0] != '\0')
            fprintf(to, "  %33s%s\n", "", mpl_shown(a->what));
    }
    if (e->n_advice > SHOWN)
        fprintf(to, "  .. and %" PRIu32 " more (--json)\n", e->n_advice - SHOWN);
    for (int k = 0; k < MPL_N_ADVICE; k++)
        if (e->missing[k]) {
            fprintf(to, "%s%s",
                    some ? ", " : "missing  not worked out within the time: ", mpl_advice_name[k]);
            some = true;
        }
    fputs(some ? "\n" : "", to);
}

void mpl_explained_print(FILE *to, const mpl_explained *e)
{
    const mpl_job *job = &e->made.job;

    fprintf(to, "graph    %s: %" PRIu32 " buffers, %s, by %s, %s\n",
            mpl_shown(e->graph != NULL ? e->graph : job->text), job->problem->n, job->safety.text,
            mpl_shown(mpl_record_text_or(e->made.row, MPL_FIELD_planner, "another planner")),
            mpl_claim_name(e->made.plan->claim));
    for (uint32_t k = 0; k < e->n_arenas; k++) {
        print_arena(to, e, &e->highest[k]);
        if (e->highest[k].n > 0)
            print_portions(to, e, &e->highest[k]);
    }
    print_height(to, e);
    print_costs(to, e);
    print_advice(to, e);
}
