/* explain_text.c -- an explanation as text for a terminal. See explain.h. */
#include "graphs/core/size.h"
#include "graphs/core/text.h"
#include "harness/explain/explain.h"
#include "harness/report/grid.h"

enum { SHOWN = 12 }; /* buffers, and suggestions: the rest is in --json */

static const char *op_name(const mpl_explained *explained, mpl_op op)
{
    return op == MPL_NONE ? NULL : explained->made.job.source.graph->op_name[op];
}

/* "f32 [1,64,56,56]", or "". */
static void shape_text(const mpl_explained *explained, mpl_buffer b, char *text, size_t size)
{
    const mpl_graph *g = explained->made.job.source.graph;
    mpl_value v = explained->keeper[b].value;
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
static void print_buffer(FILE *to, const mpl_explained *explained, const mpl_portion *part)
{
    const mpl_problem *p = explained->made.job.problem;
    mpl_buffer b = part->buffer;
    const char *by = op_name(explained, explained->keeper[b].made_by),
               *until = op_name(explained, explained->keeper[b].kept_by);
    char label[24], shape[200];

    shape_text(explained, b, shape, sizeof shape);
    fprintf(to, "  %-9s %12" PRIu64 " bytes %5.1f %%  %s%s%s", mpl_portion_name[part->kind],
            part->bytes, percent(part->bytes, explained->made.plan->peak_bytes),
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
static bool is_larger(const mpl_highest *highest, uint32_t a, uint32_t b)
{
    return highest->portion[a].bytes > highest->portion[b].bytes ||
           (highest->portion[a].bytes == highest->portion[b].bytes && a < b);
}

/* Prints the buffers of an arena, largest first, then what lies between them. */
static void print_portions(FILE *to, const mpl_explained *explained, const mpl_highest *highest)
{
    uint64_t between[MPL_N_PORTIONS] = {0}, rest = 0;
    uint32_t n = 0, last = highest->n, n_rest = 0;

    for (uint32_t i = 0; i < highest->n; i++) {
        n += highest->portion[i].kind < MPL_PORTION_alignment;
        between[highest->portion[i].kind] += highest->portion[i].bytes;
    }
    for (uint32_t k = 0; k < n && k < SHOWN; k++) {
        uint32_t best = highest->n;

        for (uint32_t i = 0; i < highest->n; i++)
            if (highest->portion[i].kind < MPL_PORTION_alignment &&
                (last == highest->n || is_larger(highest, last, i)) &&
                (best == highest->n || is_larger(highest, i, best)))
                best = i;
        print_buffer(to, explained, &highest->portion[last = best]);
    }
    for (uint32_t i = 0; i < highest->n && n > SHOWN; i++)
        if (highest->portion[i].kind < MPL_PORTION_alignment && is_larger(highest, last, i)) {
            rest += highest->portion[i].bytes;
            n_rest++;
        }
    if (n_rest > 0)
        fprintf(to, "  %-9s %12" PRIu64 " bytes %5.1f %%  %" PRIu32 " smaller ones\n", "others",
                rest, percent(rest, highest->arena_bytes), n_rest);
    for (int k = MPL_PORTION_alignment; k < MPL_N_PORTIONS; k++)
        fprintf(to, "  %-9s %12" PRIu64 " bytes %5.1f %%\n", mpl_portion_name[k], between[k],
                percent(between[k], highest->arena_bytes));
}

static void print_arena(FILE *to, const mpl_explained *explained, const mpl_highest *highest)
{
    const mpl_job *job = &explained->made.job;
    const mpl_graph *g = job->source.graph;

    fprintf(to, "%-8s %12" PRIu64 " bytes  %14s",
            highest->pool == 0 && explained->made.plan->spread.n > 0 ? "memory"
            : highest->pool == 0                                     ? "arena"
                                                                     : "pool",
            highest->arena_bytes, mpl_sized(highest->arena_bytes).text);
    if (highest->pool > 0)
        fprintf(to, "  %s", mpl_shown(job->problem->pool_name[highest->pool]));
    if (highest->step == MPL_NONE) {
        fprintf(to, "%s\n", highest->n > 0 ? "  any two of these may be alive at once" : "");
        return;
    }
    fprintf(to, "  highest at step %" PRIu32, highest->step);
    for (mpl_op op = 0; g != NULL && op < g->n_ops; op++)
        if (job->map->step_of[op] == highest->step)
            fprintf(to, ", %s (%s)", mpl_shown(g->op_name[op]), mpl_op_table[g->op_kind[op]].name);
    fputc('\n', to);
}

static void print_height(FILE *to, const mpl_explained *explained)
{
    static const char *const text[] = {
        "proved by these, which conflict pairwise:",
        "proved by a search; here it is a chain, from the top down:",
        "not proved; here it is a chain, each above the next, with which it conflicts:"};
    const mpl_height *height = &explained->height;
    uint32_t column;
    char label[24];

    if (height->n == 0)
        return;
    column = (uint32_t)fprintf(to, "height   %s", text[height->by]);
    for (uint32_t i = 0; i < height->n && i < 4 * SHOWN; i++) {
        const char *name =
            mpl_shown(mpl_buffer_label(explained->made.job.problem, height->buffer[i], label));

        if (column + strlen(name) > 98)
            column = (uint32_t)fprintf(to, "\n        ") - 1;
        column += (uint32_t)fprintf(to, " %s", name);
    }
    fprintf(to, "%s\n", height->n > 4 * SHOWN ? " .." : "");
}

static void print_costs(FILE *to, const mpl_explained *explained)
{
    uint64_t now = explained->made.plan->peak_bytes;
    uint64_t least =
        mpl_max_u64(explained->made.job.bound_bytes, explained->made.plan->bound_bytes);
    bool parallel = explained->made.job.problem->before != NULL;
    uint64_t other = explained->safety.planned_bytes;

    if (explained->made.plan->spread.n == 0)
        fprintf(to, "costs    placement %12" PRIu64 " bytes above what is proved to be needed\n",
                now > least ? now - least : 0);
    if (explained->safety.known)
        fprintf(to, "         safety    %12" PRIu64 " bytes: %s takes %" PRIu64 "\n",
                parallel ? (now > other ? now - other : 0) : (other > now ? other - now : 0),
                parallel ? "serial" : "parallel", other);
    if (explained->order.known)
        fprintf(to, "         order     %12" PRIu64 " bytes above the best order tried\n",
                now > explained->order.planned_bytes ? now - explained->order.planned_bytes : 0);
    if (explained->made.job.map != NULL)
        fprintf(to,
                "pinned   %12" PRIu64 " bytes outside of the arena, %" PRIu64
                " of them the optimiser's state\n",
                explained->made.job.map->pinned_bytes, explained->state_bytes);
}

static void print_advice(FILE *to, const mpl_explained *explained)
{
    uint64_t now = explained->made.plan->peak_bytes;
    bool some = false;

    if (explained->graph == NULL) {
        fprintf(to, "missing  what would lower it: %s\n", mpl_shown(explained->why));
        return;
    }
    fprintf(to, "%s\n",
            explained->n_advice > 0 ? "lower    with" : "lower    nothing that was tried");
    for (uint32_t i = 0; i < explained->n_advice && i < SHOWN; i++) {
        const mpl_advice *advice = &explained->advice[i];

        fprintf(to, "  %-10s %12" PRIu64 " bytes %6.1f %%  %s\n", mpl_advice_name[advice->kind],
                advice->planned_bytes, percent(advice->planned_bytes, now) - 100,
                mpl_shown(advice->command));
        if (advice->what[0] != '\0')
            fprintf(to, "  %33s%s\n", "", mpl_shown(advice->what));
    }
    if (explained->n_advice > SHOWN)
        fprintf(to, "  .. and %" PRIu32 " more (--json)\n", explained->n_advice - SHOWN);
    for (int k = 0; k < MPL_N_ADVICE; k++)
        if (explained->missing[k]) {
            fprintf(to, "%s%s",
                    some ? ", " : "missing  not worked out within the time: ", mpl_advice_name[k]);
            some = true;
        }
    fputs(some ? "\n" : "", to);
}

void mpl_explained_print(FILE *to, const mpl_explained *explained)
{
    const mpl_job *job = &explained->made.job;

    fprintf(
        to, "graph    %s: %" PRIu32 " buffers, %s, by %s, %s\n",
        mpl_shown(explained->graph != NULL ? explained->graph : job->text), job->problem->n,
        job->safety.text,
        mpl_shown(mpl_record_text_or(explained->made.row, MPL_FIELD_planner, "another planner")),
        mpl_claim_name(explained->made.plan->claim));
    for (uint32_t k = 0; k < explained->n_arenas; k++) {
        print_arena(to, explained, &explained->highest[k]);
        if (explained->highest[k].n > 0)
            print_portions(to, explained, &explained->highest[k]);
    }
    print_height(to, explained);
    print_costs(to, explained);
    print_advice(to, explained);
}
