/* least_row.c -- what was free and held, and the waterfall, as a row and as text. See
 * least_job.h. */
#include "harness/least/least_job.h"

#include "graphs/core/size.h"
#include "graphs/core/text.h"
#include "harness/report/grid.h"

/* Whether the plan is proved to be the lowest over all that was free. */
static bool is_optimal(const mpl_lowest *x)
{
    return x->n_freedoms == 0 && !mpl_lowest_moves(x) && x->bound_bytes > 0 &&
           x->plan->peak_bytes == x->bound_bytes;
}

/* ---- what was free, and what was held ---- */

enum { MOST_PRICE = 400 };
enum { MOST_WORDS = 10 + MPL_MOST_FREEDOMS };

typedef struct words {
    uint32_t n;
    const char *word[MOST_WORDS];
    char store[3][120];
} words;

static void add(words *w, bool is_there, const char *word)
{
    if (is_there)
        w->word[w->n++] = word;
}

/* Whether there are loops or branches, under which concats and splits are copies. */
static bool has_blocks(const mpl_lowest *x)
{
    return x->job.source.graph->n_blocks > 1;
}

/* The options that were asked for: the plan's, but for views and pairs, which a plan may leave. */
static void list_free(const mpl_lowest *x, const mpl_options *asked, words *w)
{
    add(w, true, "order");
    add(w, asked->views && asked->concat == MPL_concat_auto && !has_blocks(x), "concats");
    add(w, asked->views && !has_blocks(x), "splits");
    add(w, asked->in_place, "in-place pairs");
    add(w, asked->views, "views");
    add(w, true, "placement");
    for (uint32_t i = 0; i < x->n_freedoms; i++)
        add(w, true, x->freedom[i].text);
    add(w, asked->memories != NULL, "residency");
}

static bool is_asked(const mpl_lowest *x, mpl_option_id option)
{
    for (uint32_t i = 0; i < x->n_freedoms; i++)
        if (x->freedom[i].kind->option == option)
            return true;
    return false;
}

/* "optimise LIST", "optimise off". */
static void add_option(words *w, const mpl_lowest *x, mpl_option_id option, const char *what,
                       const char *value, char *store)
{
    snprintf(store, sizeof w->store[0], "%s %s", what, strcmp(value, "none") == 0 ? "off" : value);
    add(w, !is_asked(x, option), store);
}

static void list_held(const mpl_lowest *x, const mpl_options *asked, words *w)
{
    add(w, !asked->in_place, "in-place pairs off");
    add(w, !asked->views, "views off");
    add(w, !asked->views || asked->concat == MPL_concat_copy || has_blocks(x), "concats copied");
    add(w, asked->views && asked->concat == MPL_concat_share && !has_blocks(x), "concats shared");
    add(w, has_blocks(x), "splits copied");
    add(w, asked->loop == MPL_loop_copy && mpl_graph_has_loop(x->job.source.graph),
        "carried values copied");
    add(w, asked->safety.kind == MPL_safety_streams, "streams of the given order");
    add_option(w, x, MPL_OPT_optimise, "optimisation", asked->optimise, w->store[0]);
    add_option(w, x, MPL_OPT_layout, "layout", mpl_word_text[asked->layout], w->store[1]);
    add_option(w, x, MPL_OPT_recompute, "recomputation", asked->recompute, w->store[2]);
}

/* ---- the row ---- */

/* "3.508 MiB moved, 20.912 MiB used in slow memory, cost 179092736, at least 179092736 by search,
 * gap 0". */
static void moves_text(const mpl_fall *f, char *text, size_t size)
{
    const mpl_residency_plan *m = f->moves->plan;
    size_t n = (size_t)snprintf(text, size, "%s moved", mpl_sized(m->moved_bytes).text);
    char gap[32];

    if (m->slow_bytes > 0 && n < size)
        n += (size_t)snprintf(text + n, size - n, ", %s used in slow memory",
                              mpl_sized(m->slow_bytes).text);
    if (n < size)
        n += (size_t)snprintf(
            text + n, size - n, ", cost %" PRIu64 ", at least %" PRIu64 " by %s, gap %s", m->cost,
            m->bound, mpl_residency_proof(m), mpl_gap_text(m->cost, m->bound, gap));
    if (f->moves->p->bandwidth > 0 && n < size)
        n += (size_t)snprintf(text + n, size - n,
                              "; stall %" PRIu64 " ns, at least %" PRIu64 " by %s", m->stall_ns,
                              m->stall_bound, m->stall_searched ? "search" : "prices");
    if (f->is_elsewhere && n < size)
        snprintf(text + n, size - n, "; in the graph of %s", f->of);
}

/* "12.5 % more work, 3 operations run again". */
static void price_text(const mpl_fall *f, char *text, size_t size)
{
    size_t n = 0;
    double part = f->work_before > 0 ? (double)f->work / (double)f->work_before - 1 : 0;

    text[0] = '\0';
    if (f->moves != NULL) {
        moves_text(f, text, size);
        return;
    }
    if (f->n_ops != f->n_ops_before)
        n += (size_t)snprintf(text + n, size - n, "%" PRIu32 " operations, %" PRIu32 " before",
                              f->n_ops, f->n_ops_before);
    if (f->n_again > 0 && n < size)
        n += (size_t)snprintf(text + n, size - n, "%s%" PRIu32 " of them again", n > 0 ? ", " : "",
                              f->n_again);
    if (f->work != f->work_before && n < size)
        n += (size_t)snprintf(text + n, size - n, "%s%.2f %% %s work", n > 0 ? ", " : "",
                              part < 0 ? -100 * part : 100 * part, part < 0 ? "less" : "more");
    if (f->reordered_bytes > 0 && n < size)
        n += (size_t)snprintf(text + n, size - n, "%s%s reordered", n > 0 ? ", " : "",
                              mpl_sized(f->reordered_bytes).text);
    if (n == 0)
        snprintf(text, size, "nothing");
}

static void put_added(const mpl_fall *f, mpl_record *row)
{
    const mpl_field field = MPL_FIELD_waterfall;
    char text[MOST_PRICE];

    mpl_record_last_bool(row, field, "kept", f->is_kept);
    if (f->why[0] != '\0') {
        mpl_record_last_text(row, field, "why", f->why);
        return;
    }
    price_text(f, text, sizeof text);
    mpl_record_last_text(row, field, "price", text);
    mpl_record_last_int(row, field, "tried_bytes", f->tried_bytes);
    if (f->moves != NULL) { /* the fields of the row have the rest */
        mpl_record_last_text(row, field, "of", f->of);
        return;
    }
    mpl_record_last_int(row, field, "work_before", f->work_before);
    mpl_record_last_int(row, field, "work", f->work);
    mpl_record_last_int(row, field, "reordered_bytes", f->reordered_bytes);
}

static void put_falls(const mpl_lowest *x, mpl_record *row)
{
    const mpl_field field = MPL_FIELD_waterfall;

    for (uint32_t i = 0; i < x->n_falls; i++) {
        const mpl_fall *f = &x->fall[i];

        mpl_record_item_object(row, field);
        mpl_record_last_text(row, field, "step", f->step);
        mpl_record_last_int(row, field, "bytes", f->bytes);
        if (!f->is_added && (i + 1 == x->n_falls || f[1].is_added) && x->bound_bytes > 0)
            mpl_record_last_int(row, field, "bound_bytes", x->bound_bytes);
        if (f->is_added)
            put_added(f, row);
    }
}

/* The claim and the bound over all that was free, in place of those of the one problem. */
static void put_proof(const mpl_lowest *x, mpl_record *row)
{
    bool proved = x->n_freedoms == 0 && !mpl_lowest_moves(x) && x->bound_bytes > 0;

    mpl_record_text(row, MPL_FIELD_claim, is_optimal(x) ? "optimal" : "feasible");
    mpl_record_null(row, MPL_FIELD_bound_bytes);
    mpl_record_null(row, MPL_FIELD_bound_kind);
    if (proved) {
        mpl_record_int(row, MPL_FIELD_bound_bytes, x->bound_bytes);
        mpl_record_text(row, MPL_FIELD_bound_kind, x->bound_by);
    }
    mpl_record_text(row, MPL_FIELD_proof,
                    proved ? "none: a bound over orders has no certificate" : NULL);
}

mpl_status mpl_lowest_row(mpl_ctx *ctx, const mpl_options *asked, const mpl_lowest *x,
                          mpl_record **out)
{
    mpl_status st = MPL_OK;
    mpl_record *row = NULL;
    words free_words = {0}, held = {0};

    if (mpl_lowest_moves(x)) {
        MPL_TRY(mpl_record_copy(ctx, x->residency.made.row, &row));
    } else {
        MPL_TRY(mpl_job_row(ctx, &x->options, &x->job, NULL, &row));
        MPL_TRY(mpl_job_plan_fields(ctx, &x->job, x->plan, row));
    }
    mpl_record_text(row, MPL_FIELD_order, MPL_ORDER_LEAST);
    mpl_record_text(row, MPL_FIELD_planner, "least");
    mpl_record_int(row, MPL_FIELD_naive_bytes, x->fall[0].bytes);
    put_proof(x, row);
    list_free(x, asked, &free_words);
    list_held(x, asked, &held);
    for (uint32_t i = 0; i < free_words.n; i++)
        mpl_record_item_text(row, MPL_FIELD_free, free_words.word[i]);
    for (uint32_t i = 0; i < held.n; i++)
        mpl_record_item_text(row, MPL_FIELD_held, held.word[i]);
    put_falls(x, row);
    mpl_record_text(row, MPL_FIELD_stopped,
                    x->by_caller                ? "interrupt"
                    : x->by_clock               ? "clock"
                    : x->ticks >= asked->budget ? "ticks"
                                                : "done");
    mpl_record_int(row, MPL_FIELD_ticks, x->ticks);
    mpl_record_int(row, MPL_FIELD_plan_ns, (uint64_t)x->ns);
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

static void print_bound(const mpl_lowest *x)
{
    uint64_t planned = x->plan->peak_bytes;
    char gap[32];

    if (x->bound_bytes == 0)
        printf("bound    none proved over orders\n");
    else if (x->n_freedoms > 0 || mpl_lowest_moves(x))
        printf("bound    none over the added freedoms; %" PRIu64 " bytes without them, by %s\n",
               x->bound_bytes, x->bound_by);
    else
        printf("bound    %12" PRIu64 " bytes  %14s  over all that was free, by %s, gap %s\n",
               x->bound_bytes, mpl_sized(x->bound_bytes).text, x->bound_by,
               mpl_gap_text(planned, x->bound_bytes, gap));
}

static void print_falls(const mpl_lowest *x)
{
    char price[MOST_PRICE];

    printf("waterfall\n");
    for (uint32_t i = 0; i < x->n_falls; i++) {
        const mpl_fall *f = &x->fall[i];

        printf("  %-18s %12" PRIu64 " bytes  %14s  %5.1f %%", f->step, f->bytes,
               mpl_sized(f->bytes).text,
               x->fall[0].bytes > 0 ? 100 * (double)f->bytes / (double)x->fall[0].bytes : 100.0);
        if (f->why[0] != '\0')
            printf("  not tried: %s", mpl_shown(f->why));
        else if (f->is_added)
            price_text(f, price, sizeof price);
        if (f->is_added && f->why[0] == '\0' && f->is_kept)
            printf("  price: %s", price);
        else if (f->is_added && f->why[0] == '\0')
            printf("  not kept: %" PRIu64 " bytes; price: %s", f->tried_bytes, price);
        printf("\n");
    }
}

void mpl_lowest_print(const mpl_options *asked, const mpl_lowest *x, const mpl_record *row)
{
    const mpl_job *job = &x->job;
    const mpl_residency_plan *moves = x->residency.found.plan;
    uint64_t planned = moves != NULL ? moves->fast_bytes : x->plan->peak_bytes;
    const char *by = mpl_record_text_or(row, MPL_FIELD_stopped, "done");
    words free_words = {0}, held = {0};

    list_free(x, asked, &free_words);
    list_held(x, asked, &held);
    printf("graph    %s: %" PRIu32 " operations, %" PRIu32 " buffers, %s\n", mpl_shown(job->text),
           job->source.graph->n_ops, job->problem->n, job->safety.text);
    print_words("free", &free_words);
    print_words("held", &held);
    printf("planned  %12" PRIu64 " bytes  %14s  %sverified, %s\n", planned, mpl_sized(planned).text,
           moves != NULL ? "of fast memory, " : "",
           is_optimal(x) ? "optimal over all that was free" : "feasible");
    if (moves != NULL)
        printf("slow     %12" PRIu64 " bytes  %14s\n", moves->slow_arena,
               mpl_sized(moves->slow_arena).text);
    print_bound(x);
    for (uint32_t k = 1; moves == NULL && k < x->plan->n_pools; k++)
        printf("pool     %12" PRIu64 " bytes  %14s  %s\n", x->plan->pool_bytes[k],
               mpl_sized(x->plan->pool_bytes[k]).text, mpl_shown(job->problem->pool_name[k]));
    print_falls(x);
    if (strcmp(by, "done") != 0)
        printf("stopped  by the %s\n", strcmp(by, "ticks") == 0 ? "budget" : by);
    printf("time     %.3f s\n", (double)x->ns / 1e9);
}
