/* cmd_show.c -- memplan show: contents of a graph or a list of buffers, its bounds, its live bytes
 * over time. */
#include <langinfo.h>
#include <stdlib.h>
#include <unistd.h>

#include "graphs/problem/before.h"
#include "graphs/core/size.h"
#include "graphs/problem/bounds/bounds.h"
#include "harness/cli/command.h"
#include "harness/report/grid.h"
#include "harness/job/measure.h"
#include "harness/job/program.h"
#include "harness/view/live_sets.h"

enum { WIDTH = 64, HEIGHT = 8, LARGEST = 5 };

/* Operations of one kind; of opaque ones, of one name in the file they come from. */
typedef struct kind {
    uint16_t op_kind;
    const char *name;
    uint32_t n;
} kind;

static int by_name(const void *left, const void *right)
{
    const kind *x = left, *y = right;

    return x->op_kind != y->op_kind ? (x->op_kind < y->op_kind ? -1 : 1) : strcmp(x->name, y->name);
}

static int by_number(const void *left, const void *right)
{
    const kind *x = left, *y = right;

    return x->n != y->n ? (x->n > y->n ? -1 : 1) : by_name(left, right);
}

/* Prints operations by kind, most frequent first. */
static mpl_status show_kinds(mpl_ctx *ctx, const mpl_graph *g)
{
    uint32_t n = 0;
    kind *k = NULL;

    MPL_PASS(mpl_new(ctx, k, (size_t)g->n_ops + 1));
    for (mpl_op op = 0; op < g->n_ops; op++) {
        const char *usual = mpl_op_table[g->op_kind[op]].name;

        k[op] = (kind){g->op_kind[op], mpl_attr_text(g, op, MPL_ATTR_opcode, usual), 1};
    }
    qsort(k, g->n_ops, sizeof *k, by_name);
    for (uint32_t i = 0; i < g->n_ops; i++)
        if (n > 0 && by_name(&k[n - 1], &k[i]) == 0)
            k[n - 1].n++;
        else
            k[n++] = k[i];
    qsort(k, n, sizeof *k, by_number);
    printf("operations   %" PRIu32 ":", g->n_ops);
    for (uint32_t i = 0; i < n; i++)
        printf(" %s %" PRIu32, mpl_shown(k[i].name), k[i].n);
    printf("\n");
    mpl_free(ctx, k);
    return MPL_OK;
}

static mpl_status show_graph(mpl_ctx *ctx, const mpl_graph *g)
{
    uint32_t n_role[MPL_N_ROLES] = {0};
    uint64_t role_bytes[MPL_N_ROLES] = {0};
    static const char *const role[] = {"inputs", "weights", "temporaries", "outputs", "parameters"};

    MPL_PASS(show_kinds(ctx, g));
    for (mpl_value v = 0; v < g->n_values; v++) {
        n_role[g->value_role[v]]++;
        role_bytes[g->value_role[v]] += g->value_bytes[v];
    }
    for (int k = 0; k < MPL_N_ROLES && (k != MPL_PARAMETER || g->n_blocks > 1); k++)
        printf("%-12s %6" PRIu32 "  %14" PRIu64 " bytes  %14s\n", role[k], n_role[k], role_bytes[k],
               mpl_sized(role_bytes[k]).text);
    for (uint32_t i = 0; i < g->n_bound; i++)
        printf("bound        input '%s' decided shapes and was folded\n",
               mpl_shown(g->bound_input[i]));
    return MPL_OK;
}

/* Prints the memory of training: the optimiser's state, counted among the weights, and the
 * gradients that it reads. */
static mpl_status show_training(mpl_ctx *ctx, const mpl_graph *g)
{
    mpl_status st = MPL_OK;
    uint32_t n[MPL_N_PARTS] = {0};
    uint64_t bytes[MPL_N_PARTS] = {0};
    uint8_t *part = NULL;

    MPL_TRY(mpl_new(ctx, part, g->n_values));
    mpl_graph_parts(g, part);
    for (mpl_value v = 0; v < g->n_values; v++) {
        n[part[v]]++;
        bytes[part[v]] += g->value_bytes[v];
    }
    for (mpl_part k = MPL_PART_GRADIENT; k < MPL_N_PARTS; k++)
        if (n[k] > 0)
            printf("%-12s %6" PRIu32 "  %14" PRIu64 " bytes  %14s, %s\n", mpl_part_name(k), n[k],
                   bytes[k], mpl_sized(bytes[k]).text,
                   k == MPL_PART_STATE ? "weights that the optimiser keeps" : "which updates read");
out:
    mpl_free(ctx, part);
    return st;
}

static bool has_workspace_pool(const mpl_problem *p)
{
    return p->n_pools > 1 && strcmp(p->pool_name[p->n_pools - 1], "workspace") == 0;
}

static mpl_status show_pools(mpl_ctx *ctx, const mpl_problem *p)
{
    for (uint32_t k = 1; k < p->n_pools; k++) {
        uint64_t bytes = 0, bound;
        uint32_t n = 0;

        for (mpl_buffer b = 0; b < p->n; b++)
            if (p->pool[b] == k) {
                n++;
                bytes += p->bytes[b];
            }
        MPL_PASS(mpl_lower_bound(ctx, p, k, &bound, NULL));
        printf("pool         %6" PRIu32 "  %14" PRIu64 " bytes  %14s of %s, bound %s\n", n, bytes,
               mpl_sized(bytes).text, mpl_shown(p->pool_name[k]), mpl_sized(bound).text);
    }
    return MPL_OK;
}

/* Prints the counts of each pass of --optimise. */
static void show_passes(const mpl_job *job)
{
    printf("optimised    %6" PRIu32 " operations became %" PRIu32 "\n", job->n_ops_before,
           job->source.graph->n_ops);
    for (int i = 0; i < MPL_N_PASSES; i++) {
        const mpl_pass_count *count = &job->passes[i];

        if (count->places > 0)
            printf("             %-14s %6" PRIu32 " places, %6" PRIi64 " operations and %14" PRIi64
                   " bytes of results less, outputs %s\n",
                   mpl_pass_table[i].name, count->places, count->ops_less, count->bytes_less,
                   mpl_pass_table[i].tolerance > 0 ? "rounded anew" : "the same");
    }
}

/* Prints how much of their tapes loops keep. */
static void show_tapes(const mpl_recompute_found *found)
{
    if (found->n_taped == 0)
        return;
    printf("             %" PRIu32 " of %" PRIu32 " loops with a tape: %" PRIu64
           " bytes of states, before %" PRIu64 "; %" PRIu64
           " rounds forward beyond those reversed; outside loops: off\n",
           found->n_loops, found->n_taped, found->tape_bytes, found->tape_before_bytes,
           found->forward_rounds);
    if (found->why[0] != '\0')
        printf("             %s\n", found->why);
}

static void show_recomputed(const mpl_job *job)
{
    const mpl_recompute_found *found = &job->recomputed;

    printf("recomputed   %6" PRIu32
           " operations run again, %.3f of a forward part more; peak live %" PRIu64
           " bytes, before %" PRIu64 " (%.2f times less)\n",
           found->facts.n_again,
           (double)found->facts.extra_work / (double)mpl_max_u64(found->facts.forward_work, 1),
           found->peak_bytes, found->before_bytes,
           (double)found->before_bytes / (double)mpl_max_u64(found->peak_bytes, 1));
    show_tapes(found);
    if (found->claim == MPL_RECOMPUTE_OPTIMAL)
        printf("             no choice of repeats does less work within the budget (proved in "
               "doubles)\n");
    else if (found->has_bound)
        printf("             less than %.3f of a forward part is not enough within the budget "
               "(proved in "
               "doubles)\n",
               (double)found->bound_work / (double)mpl_max_u64(found->facts.forward_work, 1));
    if (found->n_regions > 0)
        printf("             composed of %" PRIu32 " regions, %" PRIu32
               " of them not searched (nothing runs again, or all of them)%s\n",
               found->n_regions, found->n_plain,
               found->claim == MPL_RECOMPUTE_REGIONS ? "; no composition does less work" : "");
}

/* Draws blocks on a UTF-8 terminal, '#' elsewhere. */
static void show_curve(const uint64_t *live, uint32_t n_steps, uint64_t peak)
{
    static const char *const eighth[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    bool unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    uint32_t columns = n_steps < WIDTH ? n_steps : WIDTH;

    printf("\nlive bytes over %" PRIu32 " steps\n", n_steps);
    for (uint32_t row = HEIGHT; row-- > 0;) {
        if (row == HEIGHT - 1)
            printf("%12s |", mpl_sized(peak).text);
        else
            printf("%14s", "|");
        for (uint32_t c = 0; c < columns; c++) {
            uint64_t most = 0;
            uint32_t first = (uint32_t)((uint64_t)c * n_steps / columns),
                     end = (uint32_t)((c + 1ull) * n_steps / columns);
            int filled;

            for (uint32_t s = first; s < end; s++)
                most = live[s] > most ? live[s] : most;
            filled = (int)((double)most / (double)peak * HEIGHT * 8 + 0.5) - (int)row * 8;
            filled = filled < 0 ? 0 : filled > 8 ? 8 : filled;
            fputs(unicode ? eighth[filled] : filled >= 4 ? "#" : " ", stdout);
        }
        printf("\n");
    }
    printf("%14s", "0 +");
    for (uint32_t c = 0; c < columns; c++)
        putchar('-');
    printf("\n");
}

/* Prints the buffers alive at the peak, largest first; ties by id. */
static void show_peak(const mpl_job *job)
{
    const mpl_problem *p = job->problem;
    const mpl_graph *g = job->source.graph;
    mpl_buffer shown[LARGEST];
    uint32_t n = 0, alive = 0;
    char label[24];

    printf("peak         step %" PRIu32, job->peak_step);
    if (g != NULL && job->peak_step < g->n_ops) {
        mpl_op op = job->order[job->peak_step];

        printf(", operation '%s' (%s)", mpl_shown(g->op_name[op]),
               mpl_op_table[g->op_kind[op]].name);
    }
    for (mpl_buffer b = 0; b < p->n; b++)
        alive += p->pool[b] == 0 && p->birth[b] <= job->peak_step && job->peak_step < p->death[b];
    printf(", %" PRIu32 " buffers alive%s\n", alive, alive > LARGEST ? ", the largest:" : ":");
    for (; n < LARGEST && n < alive; n++) {
        mpl_buffer best = MPL_NONE;

        for (mpl_buffer b = 0; b < p->n; b++) {
            bool had =
                p->pool[b] != 0 || p->birth[b] > job->peak_step || job->peak_step >= p->death[b];

            for (uint32_t k = 0; k < n && !had; k++)
                had = shown[k] == b;
            if (!had && (best == MPL_NONE || p->bytes[b] > p->bytes[best]))
                best = b;
        }
        shown[n] = best;
        printf("             %-40s %12" PRIu64 " bytes, steps [%" PRIu32 ", %" PRIu32 ")\n",
               mpl_shown(mpl_buffer_label(p, best, label)), p->bytes[best], p->birth[best],
               p->death[best]);
    }
}

static mpl_status show_serial(mpl_ctx *ctx, const mpl_job *job)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = job->problem;
    uint64_t *live = NULL, peak, span = 0;
    uint32_t longest = 0;

    for (mpl_buffer b = 0; b < p->n; b++) {
        span += p->death[b] - p->birth[b];
        longest = p->death[b] - p->birth[b] > longest ? p->death[b] - p->birth[b] : longest;
    }
    printf("lifetimes    %.1f steps on average, %" PRIu32 " at most, of %" PRIu32 "; %" PRIu32
           " in-place pairs\n",
           p->n > 0 ? (double)span / p->n : 0, longest, p->n_steps, p->n_in_place);
    show_peak(job);
    MPL_TRY(mpl_new(ctx, live, p->n_steps));
    MPL_TRY(mpl_peak_live(ctx, p, 0, &peak, live, NULL));
    if (peak > 0)
        show_curve(live, p->n_steps, peak);
out:
    mpl_free(ctx, live);
    return st;
}

/* Prints the result of an order search and its bound. */
static void show_order(const mpl_options *options, const mpl_job *job)
{
    const mpl_order_found *found = &job->order_found;
    char gap[32];

    printf("order               %14" PRIu64 " bytes  %14s %s %s\n", found->live_bytes,
           mpl_sized(found->live_bytes).text,
           strncmp(options->order, "joint", 5) == 0 ? "placed in" : "live at once in",
           options->order);
    printf("least order         %14" PRIu64 " bytes  %14s, %s over %s, gap %s; %" PRIu64
           " ticks, %.3f s\n",
           found->bound_bytes, mpl_sized(found->bound_bytes).text, mpl_order_proof(job),
           found->scope, mpl_gap_text(found->live_bytes, found->bound_bytes, gap), found->ticks,
           (double)found->ns / 1e9);
}

/* Prints the concats whose operands lie inside their results, and the reason for the choice. */
static void show_concats(const mpl_concat_found *found)
{
    printf("concats      %6" PRIu32 " of %" PRIu32
           " that could do so have their operands in place, by %s",
           found->n_shared, found->n, mpl_concat_by_name(found->by));
    if (found->by == MPL_CONCAT_BY_EXACT)
        printf(" (%" PRIu32 " planned, %" PRIu64 " ticks)", found->n_planned, found->ticks);
    printf("\n");
}

/* Prints the buffers that prove the bound: they conflict pairwise, and their sizes add up to it. */
static mpl_status show_witness(mpl_ctx *ctx, const mpl_problem *p)
{
    mpl_status st = MPL_OK;
    uint8_t *member = NULL;
    uint64_t bytes;
    uint32_t n = 0, column = 0;
    char label[24];

    MPL_TRY(mpl_new(ctx, member, p->n));
    MPL_TRY(mpl_lower_bound(ctx, p, 0, &bytes, member));
    for (mpl_buffer b = 0; b < p->n; b++)
        n += member[b];
    if (n > 0)
        column = (uint32_t)printf("witness      %" PRIu32 " buffers that can share nothing:", n);
    for (mpl_buffer b = 0; b < p->n; b++) {
        const char *name = mpl_shown(mpl_buffer_label(p, b, label));

        if (!member[b])
            continue;
        if (column + strlen(name) > 100)
            column = (uint32_t)printf("\n            ") - 1;
        column += (uint32_t)printf(" %s", name);
    }
    if (n > 0)
        printf("\n");
out:
    mpl_free(ctx, member);
    return st;
}

static mpl_status show_parallel(mpl_ctx *ctx, const mpl_job *job)
{
    mpl_interference facts;

    MPL_PASS(mpl_interference_get(ctx, job->problem, &facts));
    printf("interference %" PRIu64 " pairs, density %.3f, most of one buffer %" PRIu32
           ", widest %" PRIu32 " buffers, heaviest clique %s\n",
           facts.pairs, facts.density, facts.max_degree, facts.width,
           mpl_sized(facts.clique_bytes).text);
    return MPL_OK;
}

/* The bound without workspaces. */
static mpl_status peak_without(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                               uint64_t *peak)
{
    mpl_status st = MPL_OK;
    mpl_problem_options po = mpl_asked_problem(options);
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;

    po.parallel = job->safety.kind == MPL_safety_parallel;
    if (job->streams != NULL)
        mpl_streams_ask(job->streams, &po);
    po.align = (uint32_t)mpl_max_u64(po.align, job->backend->align);
    MPL_TRY(mpl_problem_from_graph(ctx, job->source.graph, job->order, &po, &p, &map));
    MPL_TRY(mpl_lower_bound(ctx, p, 0, peak, NULL));
out:
    mpl_value_map_free(ctx, map);
    mpl_problem_free(ctx, p);
    return st;
}

/* Prints how much of the bound is due to workspaces of the backend's operations. */
static mpl_status show_workspaces(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job)
{
    const mpl_graph *g = job->source.graph;
    uint64_t largest = 0, peak = 0;
    uint32_t n = 0;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        n += job->workspace_bytes[op] > 0;
        largest = mpl_max_u64(largest, job->workspace_bytes[op]);
    }
    if (has_workspace_pool(job->problem))
        MPL_PASS(mpl_lower_bound(ctx, job->problem, job->problem->n_pools - 1, &peak, NULL));
    printf("workspaces   %6" PRIu32 " operations of %s need one, the largest %s", n,
           job->backend->name, mpl_sized(largest).text);
    if (has_workspace_pool(job->problem))
        printf("; their pool %s, %.1f %% of both peaks", mpl_sized(peak).text,
               100 * (double)peak / (double)mpl_max_u64(peak + job->bound_bytes, 1));
    else if (options->workspaces == MPL_workspaces_plan) {
        MPL_PASS(peak_without(ctx, options, job, &peak));
        printf("; the peak is %s without any, they are %.1f %% of it", mpl_sized(peak).text,
               100 * (double)(job->bound_bytes - peak) / (double)mpl_max_u64(job->bound_bytes, 1));
    }
    printf("\n");
    return MPL_OK;
}

/* Prints the copies of loops and branches, largest first; ties in operation order. */
static mpl_status show_copies(mpl_ctx *ctx, const mpl_job *job)
{
    static const char *const when[] = {"on entry to",        "as a round begins in",
                                       "as a round ends in", "as a round ends in",
                                       "as it ends, branch", "where no branch runs, in"};
    mpl_status st = MPL_OK;
    const mpl_graph *g = job->source.graph;
    mpl_copy *copy = NULL;
    uint64_t bytes = 0, carried = 0;
    uint32_t n, n_carried = 0;

    MPL_TRY(mpl_copies_of(ctx, g, job->map, &copy, &n));
    for (uint32_t i = 0; i < n; i++) {
        bytes += copy[i].bytes;
        carried += copy[i].when == MPL_COPY_CARRIED ? copy[i].bytes : 0;
        n_carried += copy[i].when == MPL_COPY_CARRIED;
    }
    printf("copies       %6" PRIu32 "  %14" PRIu64
           " bytes by loops and branches, each time; from round to round %" PRIu32 " of %" PRIu64
           " bytes\n",
           n, bytes, n_carried, carried);
    for (uint32_t shown = 0; shown < LARGEST && shown < n; shown++) {
        uint32_t best = 0;

        for (uint32_t i = 1; i < n; i++)
            best = copy[i].bytes > copy[best].bytes ? i : best;
        printf("             '%s' to '%s', %" PRIu64 " bytes, %s '%s'\n",
               mpl_shown(g->value_name[copy[best].from]), mpl_shown(g->value_name[copy[best].to]),
               copy[best].bytes, when[copy[best].when], mpl_shown(g->block_name[copy[best].block]));
        copy[best].bytes = 0;
    }
out:
    mpl_free(ctx, copy);
    return st;
}

/* Prints the memory that allocators without a plan would take for the same buffers: a model of a
 * framework's, and the device's own. */
static mpl_status show_allocators(mpl_ctx *ctx, const mpl_job *job, mpl_device *dev)
{
    static const char *const names[] = {"cudaMalloc", "cudaMallocAsync"};
    mpl_unplanned a;

    MPL_PASS(mpl_allocators_play(ctx, job->problem, job->backend, dev, &a));
    printf("allocators   a caching one as PyTorch's (a model) would hand out %s and reserve %s\n",
           mpl_sized(a.model.allocated_bytes).text, mpl_sized(a.model.reserved_bytes).text);
    for (int mode = MPL_REPLAY_PLAIN; mode <= MPL_REPLAY_POOL && a.on_device; mode++)
        printf("             %s took %s, its calls %.3f ms\n", names[mode],
               mpl_sized(a.own[mode].peak_bytes).text, (double)a.own[mode].ns / 1e6);
    return MPL_OK;
}

/* Prints each algorithm with its number of operations, in graph order. */
static void show_names(const mpl_ways *ways, const uint32_t *way)
{
    bool first = true;

    for (mpl_op op = 0; op < ways->n_ops; op++) {
        const char *name = ways->name[ways->begin[op] + way[op]];
        uint32_t n = 0;
        bool seen = false;

        for (mpl_op other = 0; other < ways->n_ops; other++) {
            bool same = strcmp(ways->name[ways->begin[other] + way[other]], name) == 0;

            seen |= same && other < op;
            n += same;
        }
        if (!seen)
            printf("%s%" PRIu32 " %s", first ? "computes     " : ", ", n, name);
        first = first && seen;
    }
    printf("\n");
}

/* Prints the backend's choice of algorithms and the alternatives, from the fastest to the least
 * memory. */
static mpl_status show_ways(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                            mpl_device *dev)
{
    mpl_status st = MPL_OK;
    mpl_problem_options po = mpl_asked_problem(options);
    mpl_ways *ways = NULL;
    mpl_ways_point *point = NULL;
    uint32_t *way = NULL, n = 0;

    MPL_TRY(mpl_exec_ways(ctx, job->backend, dev, job->source.graph, &ways));
    MPL_TRY(mpl_new(ctx, way, ways->n_ops));
    MPL_TRY(mpl_job_choose_ways(ctx, options, job->backend, job, ways, way));
    show_names(ways, way);
    if (ways->begin[ways->n_ops] == ways->n_ops)
        goto out;
    po.parallel = job->safety.kind == MPL_safety_parallel;
    if (job->streams != NULL)
        mpl_streams_ask(job->streams, &po);
    po.align = (uint32_t)mpl_max_u64(po.align, job->backend->align);
    MPL_TRY(mpl_ways_curve(
        ctx,
        &(mpl_ways_task){.g = job->source.graph, .order = job->order, .options = &po, .ways = ways},
        &point, &n));
    printf("algorithms   with workspaces among the values, bound by how many operations take "
           "slower ones:\n");
    for (uint32_t i = 0; i < n;
         i += i + 1 < n && n > LARGEST ? (n + LARGEST - 2) / (LARGEST - 1) : 1)
        printf("             %14s  %4" PRIu32 " slower\n", mpl_sized(point[i].bound_bytes).text,
               point[i].n_slower);
out:
    mpl_free_each(ctx, point, way);
    mpl_ways_free(ctx, ways);
    return st;
}

static mpl_status show_device(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job)
{
    mpl_status st = MPL_OK;
    mpl_device_options device = {.n_threads = (uint32_t)options->threads,
                                 .params = options->device};
    mpl_device *dev = NULL;

    if (job->workspace_bytes != NULL)
        MPL_TRY(show_workspaces(ctx, options, job));
    if (job->backend != NULL &&
        (job->backend->limit_workspace != NULL || job->backend->replay != NULL))
        MPL_TRY(job->backend->open(ctx, &device, &dev));
    if (job->workspace_bytes != NULL && dev != NULL)
        MPL_TRY(show_ways(ctx, options, job, dev));
    if (job->problem->before == NULL)
        MPL_TRY(show_allocators(ctx, job, dev));
out:
    if (dev != NULL)
        job->backend->close(dev);
    return st;
}

mpl_status mpl_cmd_show(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_made made = {0};
    const mpl_job *job = &made.job;

    MPL_TRY(mpl_make(ctx, options, options->args.item[0], MPL_TO_PROBLEM, &made));
    if (options->json) {
        mpl_record_int(made.row, MPL_FIELD_naive_bytes, job->naive_bytes);
        mpl_record_int(made.row, MPL_FIELD_bound_bytes, job->bound_bytes);
        mpl_record_text(made.row, MPL_FIELD_bound_kind, job->bound_kind);
        MPL_TRY(mpl_record_write(ctx, made.row, &options->result));
        goto out;
    }
    if (options->live) {
        if (job->source.graph == NULL)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "show --live: %s is a list of buffers, which has no operations", job->text);
        MPL_TRY(mpl_live_sets_show(ctx, job->source.graph, job->order));
        goto out;
    }
    printf("%-12s %s, hash %016" PRIx64 "\n", job->source.graph ? "graph" : "buffers",
           mpl_shown(job->text), job->graph_hash);
    if (job->is_program)
        mpl_program_show(options, &job->ssa);
    if (job->n_ops_before > 0)
        show_passes(job);
    if (job->recompute_ns > 0)
        show_recomputed(job);
    if (job->source.graph != NULL)
        MPL_TRY(show_graph(ctx, job->source.graph));
    if (job->source.graph != NULL)
        MPL_TRY(show_training(ctx, job->source.graph));
    printf("buffers      %6" PRIu32 "  %14" PRIu64 " bytes  %14s if nothing is shared\n",
           job->problem->n, job->naive_bytes, mpl_sized(job->naive_bytes).text);
    printf("bound               %14" PRIu64 " bytes  %14s, %s\n", job->bound_bytes,
           mpl_sized(job->bound_bytes).text, job->bound_kind);
    MPL_TRY(show_pools(ctx, job->problem));
    if (job->order_found.ns > 0)
        show_order(options, job);
    if (job->source.graph != NULL && job->source.graph->n_blocks > 1)
        MPL_TRY(show_copies(ctx, job));
    if (job->concats.n > 0)
        show_concats(&job->concats);
    MPL_TRY(show_witness(ctx, job->problem));
    MPL_TRY(show_device(ctx, options, job));
    MPL_TRY(job->problem->before == NULL ? show_serial(ctx, job) : show_parallel(ctx, job));
out:
    mpl_made_fini(ctx, &made);
    return st;
}
