/* least_row.c -- what was free and held, and the waterfall, as a row and as text. See
 * least_job.h. */
#include "harness/least/least_job.h"

#include "graphs/core/size.h"
#include "graphs/core/text.h"
#include "harness/report/grid.h"

/* Whether the plan is proved to be the lowest over all that was free. */
static bool is_optimal(const mpl_lowest *lowest)
{
    return lowest->n_freedoms == 0 && !mpl_lowest_moves(lowest) && lowest->bound_bytes > 0 &&
           lowest->plan->peak_bytes == lowest->bound_bytes;
}

/* ---- what was free, and what was held ---- */

enum { MOST_PRICE = 400 };
enum { MOST_WORDS = 10 + MPL_MOST_FREEDOMS };

typedef struct words {
    uint32_t n;
    const char *word[MOST_WORDS];
    char store[3][120];
} words;

static void add(words *self, bool is_there, const char *word)
{
    if (is_there)
        self->word[self->n++] = word;
}

/* Whether there are loops or branches, under which concats and splits are copies. */
static bool has_blocks(const mpl_lowest *lowest)
{
    return lowest->job.source.graph->n_blocks > 1;
}

/* The options that were asked for: the plan's, but for views and pairs, which a plan may leave. */
static void list_free(const mpl_lowest *lowest, const mpl_options *asked, words *w)
{
    add(w, true, "order");
    add(w, asked->views && asked->concat == MPL_concat_auto && !has_blocks(lowest), "concats");
    add(w, asked->views && !has_blocks(lowest), "splits");
    add(w, asked->in_place, "in-place pairs");
    add(w, asked->views, "views");
    add(w, true, "placement");
    for (uint32_t i = 0; i < lowest->n_freedoms; i++)
        add(w, true, lowest->freedom[i].text);
    add(w, asked->memories != NULL, "residency");
}

static bool is_asked(const mpl_lowest *lowest, mpl_option_id option)
{
    for (uint32_t i = 0; i < lowest->n_freedoms; i++)
        if (lowest->freedom[i].kind->option == option)
            return true;
    return false;
}

/* "optimise LIST", "optimise off". */
static void add_option(words *self, const mpl_lowest *lowest, mpl_option_id option,
                       const char *what, const char *value, char *store)
{
    snprintf(store, sizeof self->store[0], "%s %s", what,
             strcmp(value, "none") == 0 ? "off" : value);
    add(self, !is_asked(lowest, option), store);
}

static void list_held(const mpl_lowest *lowest, const mpl_options *asked, words *w)
{
    add(w, !asked->in_place, "in-place pairs off");
    add(w, !asked->views, "views off");
    add(w, !asked->views || asked->concat == MPL_concat_copy || has_blocks(lowest),
        "concats copied");
    add(w, asked->views && asked->concat == MPL_concat_share && !has_blocks(lowest),
        "concats shared");
    add(w, has_blocks(lowest), "splits copied");
    add(w, asked->loop == MPL_loop_copy && mpl_graph_has_loop(lowest->job.source.graph),
        "carried values copied");
    add(w, asked->safety.kind == MPL_safety_streams, "streams of the given order");
    add_option(w, lowest, MPL_OPT_optimise, "optimisation", asked->optimise, w->store[0]);
    add_option(w, lowest, MPL_OPT_layout, "layout", mpl_word_text[asked->layout], w->store[1]);
    add_option(w, lowest, MPL_OPT_recompute, "recomputation", asked->recompute, w->store[2]);
}

/* ---- the row ---- */

/* "3.508 MiB moved, 20.912 MiB used in slow memory, cost 179092736, at least 179092736 by search,
 * gap 0". */
static void moves_text(const mpl_fall *fall, char *text, size_t size)
{
    const mpl_residency_plan *plan = fall->moves->plan;
    size_t n = (size_t)snprintf(text, size, "%s moved", mpl_sized(plan->moved_bytes).text);
    char gap[32];

    if (plan->slow_bytes > 0 && n < size)
        n += (size_t)snprintf(text + n, size - n, ", %s used in slow memory",
                              mpl_sized(plan->slow_bytes).text);
    if (n < size)
        n += (size_t)snprintf(text + n, size - n,
                              ", cost %" PRIu64 ", at least %" PRIu64 " by %s, gap %s", plan->cost,
                              plan->bound, mpl_residency_proof(plan),
                              mpl_gap_text(plan->cost, plan->bound, gap));
    if (fall->moves->p->bandwidth > 0 && n < size)
        n += (size_t)snprintf(text + n, size - n,
                              "; stall %" PRIu64 " ns, at least %" PRIu64 " by %s", plan->stall_ns,
                              plan->stall_bound, plan->stall_searched ? "search" : "prices");
    if (fall->is_elsewhere && n < size)
        snprintf(text + n, size - n, "; in the graph of %s", fall->of);
}

/* "12.5 % more work, 3 operations run again". */
static void price_text(const mpl_fall *fall, char *text, size_t size)
{
    size_t n = 0;
    double part = fall->work_before > 0 ? (double)fall->work / (double)fall->work_before - 1 : 0;

    text[0] = '\0';
    if (fall->moves != NULL) {
        moves_text(fall, text, size);
        return;
    }
    if (fall->n_ops != fall->n_ops_before)
        n += (size_t)snprintf(text + n, size - n, "%" PRIu32 " operations, %" PRIu32 " before",
                              fall->n_ops, fall->n_ops_before);
    if (fall->n_again > 0 && n < size)
        n += (size_t)snprintf(text + n, size - n, "%s%" PRIu32 " of them again", n > 0 ? ", " : "",
                              fall->n_again);
    if (fall->work != fall->work_before && n < size)
        n += (size_t)snprintf(text + n, size - n, "%s%.2f %% %s work", n > 0 ? ", " : "",
                              part < 0 ? -100 * part : 100 * part, part < 0 ? "less" : "more");
    if (fall->reordered_bytes > 0 && n < size)
        n += (size_t)snprintf(text + n, size - n, "%s%s reordered", n > 0 ? ", " : "",
                              mpl_sized(fall->reordered_bytes).text);
    if (n == 0)
        snprintf(text, size, "nothing");
}

static void put_added(const mpl_fall *fall, mpl_record *row)
{
    const mpl_field field = MPL_FIELD_waterfall;
    char text[MOST_PRICE];

    mpl_record_last_bool(row, field, "kept", fall->is_kept);
    if (fall->why[0] != '\0') {
        mpl_record_last_text(row, field, "why", fall->why);
        return;
    }
    price_text(fall, text, sizeof text);
    mpl_record_last_text(row, field, "price", text);
    mpl_record_last_int(row, field, "tried_bytes", fall->tried_bytes);
    if (fall->moves != NULL) { /* the fields of the row have the rest */
        mpl_record_last_text(row, field, "of", fall->of);
        return;
    }
    mpl_record_last_int(row, field, "work_before", fall->work_before);
    mpl_record_last_int(row, field, "work", fall->work);
    mpl_record_last_int(row, field, "reordered_bytes", fall->reordered_bytes);
}

static void put_falls(const mpl_lowest *lowest, mpl_record *row)
{
    const mpl_field field = MPL_FIELD_waterfall;

    for (uint32_t i = 0; i < lowest->n_falls; i++) {
        const mpl_fall *fall = &lowest->fall[i];

        mpl_record_item_object(row, field);
        mpl_record_last_text(row, field, "step", fall->step);
        mpl_record_last_int(row, field, "bytes", fall->bytes);
        if (!fall->is_added && (i + 1 == lowest->n_falls || fall[1].is_added) &&
            lowest->bound_bytes > 0)
            mpl_record_last_int(row, field, "bound_bytes", lowest->bound_bytes);
        if (fall->is_added)
            put_added(fall, row);
    }
}

/* The claim and the bound over all that was free, in place of those of the one problem. */
static void put_proof(const mpl_lowest *lowest, mpl_record *row)
{
    bool proved = lowest->n_freedoms == 0 && !mpl_lowest_moves(lowest) && lowest->bound_bytes > 0;

    mpl_record_text(row, MPL_FIELD_claim, is_optimal(lowest) ? "optimal" : "feasible");
    mpl_record_null(row, MPL_FIELD_bound_bytes);
    mpl_record_null(row, MPL_FIELD_bound_kind);
    if (proved) {
        mpl_record_int(row, MPL_FIELD_bound_bytes, lowest->bound_bytes);
        mpl_record_text(row, MPL_FIELD_bound_kind, lowest->bound_by);
    }
    mpl_record_text(row, MPL_FIELD_proof,
                    proved ? "none: a bound over orders has no certificate" : NULL);
}

mpl_status mpl_lowest_row(mpl_ctx *ctx, const mpl_options *asked, const mpl_lowest *lowest,
                          mpl_record **out)
{
    mpl_status st = MPL_OK;
    mpl_record *row = NULL;
    words free_words = {0}, held = {0};

    if (mpl_lowest_moves(lowest)) {
        MPL_TRY(mpl_record_copy(ctx, lowest->residency.made.row, &row));
    } else {
        MPL_TRY(mpl_job_row(ctx, &lowest->options, &lowest->job, NULL, &row));
        MPL_TRY(mpl_job_plan_fields(ctx, &lowest->job, lowest->plan, row));
    }
    mpl_record_text(row, MPL_FIELD_order, MPL_ORDER_LEAST);
    mpl_record_text(row, MPL_FIELD_planner, "least");
    mpl_record_int(row, MPL_FIELD_naive_bytes, lowest->fall[0].bytes);
    put_proof(lowest, row);
    list_free(lowest, asked, &free_words);
    list_held(lowest, asked, &held);
    for (uint32_t i = 0; i < free_words.n; i++)
        mpl_record_item_text(row, MPL_FIELD_free, free_words.word[i]);
    for (uint32_t i = 0; i < held.n; i++)
        mpl_record_item_text(row, MPL_FIELD_held, held.word[i]);
    put_falls(lowest, row);
    mpl_record_text(row, MPL_FIELD_stopped,
                    lowest->by_caller                ? "interrupt"
                    : lowest->by_clock               ? "clock"
                    : lowest->ticks >= asked->budget ? "ticks"
                                                     : "done");
    mpl_record_int(row, MPL_FIELD_ticks, lowest->ticks);
    mpl_record_int(row, MPL_FIELD_plan_ns, (uint64_t)lowest->ns);
    *out = row, row = NULL;
out:
    mpl_record_free(ctx, row);
    return st;
}

/* ---- text ---- */

static void print_words(const char *what, const words *w)
{
    printf("%-8s", what);
    for (uint32_t i = 0; i < w->n; i++)
        printf(" %s%s", w->word[i], i + 1 < w->n ? "," : "");
    printf("%s\n", w->n == 0 ? " nothing" : "");
}

static void print_bound(const mpl_lowest *lowest)
{
    uint64_t planned = lowest->plan->peak_bytes;
    char gap[32];

    if (lowest->bound_bytes == 0)
        printf("bound    none proved over orders\n");
    else if (lowest->n_freedoms > 0 || mpl_lowest_moves(lowest))
        printf("bound    none over the added freedoms; %" PRIu64 " bytes without them, by %s\n",
               lowest->bound_bytes, lowest->bound_by);
    else
        printf("bound    %12" PRIu64 " bytes  %14s  over all that was free, by %s, gap %s\n",
               lowest->bound_bytes, mpl_sized(lowest->bound_bytes).text, lowest->bound_by,
               mpl_gap_text(planned, lowest->bound_bytes, gap));
}

static void print_falls(const mpl_lowest *lowest)
{
    char price[MOST_PRICE];

    printf("waterfall\n");
    for (uint32_t i = 0; i < lowest->n_falls; i++) {
        const mpl_fall *fall = &lowest->fall[i];

        printf("  %-18s %12" PRIu64 " bytes  %14s  %5.1f %%", fall->step, fall->bytes,
               mpl_sized(fall->bytes).text,
               lowest->fall[0].bytes > 0 ? 100 * (double)fall->bytes / (double)lowest->fall[0].bytes
                                         : 100.0);
        if (fall->why[0] != '\0')
            printf("  not tried: %s", mpl_shown(fall->why));
        else if (fall->is_added)
            price_text(fall, price, sizeof price);
        if (fall->is_added && fall->why[0] == '\0' && fall->is_kept)
            printf("  price: %s", price);
        else if (fall->is_added && fall->why[0] == '\0')
            printf("  not kept: %" PRIu64 " bytes; price: %s", fall->tried_bytes, price);
        printf("\n");
    }
}

void mpl_lowest_print(const mpl_options *asked, const mpl_lowest *lowest, const mpl_record *row)
{
    const mpl_job *job = &lowest->job;
    const mpl_residency_plan *moves = lowest->residency.found.plan;
    uint64_t planned = moves != NULL ? moves->fast_bytes : lowest->plan->peak_bytes;
    const char *by = mpl_record_text_or(row, MPL_FIELD_stopped, "done");
    words free_words = {0}, held = {0};

    list_free(lowest, asked, &free_words);
    list_held(lowest, asked, &held);
    printf("graph    %s: %" PRIu32 " operations, %" PRIu32 " buffers, %s\n", mpl_shown(job->text),
           job->source.graph->n_ops, job->problem->n, job->safety.text);
    print_words("free", &free_words);
    print_words("held", &held);
    printf("planned  %12" PRIu64 " bytes  %14s  %sverified, %s\n", planned, mpl_sized(planned).text,
           moves != NULL ? "of fast memory, " : "",
           is_optimal(lowest) ? "optimal over all that was free" : "feasible");
    if (moves != NULL)
        printf("slow     %12" PRIu64 " bytes  %14s\n", moves->slow_arena,
               mpl_sized(moves->slow_arena).text);
    print_bound(lowest);
    for (uint32_t k = 1; moves == NULL && k < lowest->plan->n_pools; k++)
        printf("pool     %12" PRIu64 " bytes  %14s  %s\n", lowest->plan->pool_bytes[k],
               mpl_sized(lowest->plan->pool_bytes[k]).text, mpl_shown(job->problem->pool_name[k]));
    print_falls(lowest);
    if (strcmp(by, "done") != 0)
        printf("stopped  by the %s\n", strcmp(by, "ticks") == 0 ? "budget" : by);
    printf("time     %.3f s\n", (double)lowest->ns / 1e9);
}
