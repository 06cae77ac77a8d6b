/* audit.c -- compares what rows claim with what rows planned. See audit.h.
 *
 * Idea     Plans are sorted by what is held, then by freedom, alignment and budget. Those that
 *          differ in nothing but the budget are a group; the groups of one scope stand together and
 *          are few. A claim looks into each group of its scope once: the plans within its budget
 *          are the first of the group, and the least of them is known. */
#include <stdlib.h>

#include "harness/audit/audit.h"

typedef struct judge {
    mpl_ctx *ctx;
    mpl_audit *audit;
    uint32_t *least;  /* [plans] index of the least plan of the group up to this one */
    uint32_t *covers; /* [plans] claims that this plan and the group's before it are held to */
    uint32_t *own;    /* [plans] claims of its own row that it is held to */
    uint32_t *own_of; /* [claims] plans of its own row that it is held against */
    uint32_t *origin; /* [plans] index before sorting */
} judge;

/* ---- scopes ---- */

bool mpl_scope_contains(const mpl_scope *scope, const mpl_scope *other)
{
    return (other->free & ~scope->free) == 0 && other->align >= scope->align &&
           other->within <= scope->within && strcmp(scope->subject, other->subject) == 0;
}

const char *mpl_scope_text(const mpl_scope *scope, char *text, size_t size)
{
    static const char *const name[] = {"other orders",
                                       "shared concats",
                                       "copied splits",
                                       "in-place pairs",
                                       "views",
                                       "copied views",
                                       "",
                                       "storage in parts"};
    int n = snprintf(text, size, "%s", scope->subject);
    const char *before = "; with";

    if (scope->align == 0)
        return text;
    for (size_t i = 0; i < sizeof name / sizeof *name && n < (int)size; i++)
        if ((scope->free >> i & 1) != 0 && name[i][0] != '\0') {
            n += snprintf(text + n, size - (size_t)n, "%s %s", before, name[i]);
            before = ",";
        }
    if (n < (int)size)
        snprintf(text + n, size - (size_t)n, "; %s, aligned to %" PRIu32,
                 (scope->free & MPL_FREE_SERIAL) != 0 ? "serial" : "parallel", scope->align);
    return text;
}

static int by_number(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Whether two plans are of one group (0), or which one's group is first. */
static int by_group(const mpl_statement *a, const mpl_statement *b)
{
    int order = strcmp(a->scope.subject, b->scope.subject);

    if (order == 0)
        order = by_number(a->scope.free, b->scope.free);
    return order != 0 ? order : by_number(a->scope.align, b->scope.align);
}

typedef struct placed {
    mpl_statement plan;
    uint32_t origin;
} placed;

static int by_place(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    int order = by_group(&x->plan, &y->plan);

    if (order == 0)
        order = by_number(x->plan.scope.within, y->plan.scope.within);
    return order != 0 ? order : by_number(x->origin, y->origin);
}

/* ---- concats that are known to be copied ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_known(const mpl_audit *audit, const char *text)
{
    return audit->n_copied > 0 &&
           bsearch(&text, audit->copied, audit->n_copied, sizeof *audit->copied, by_text) != NULL;
}

/* Whether no concat shares in the problem of a row, as another row says. */
static mpl_status copies(mpl_ctx *ctx, const mpl_audit *audit, uint32_t row, bool *known)
{
    mpl_status st = MPL_OK;
    const char *graph = audit->row[row].graph_hash, *problem = audit->row[row].problem_hash;
    size_t size = strlen(graph) + strlen(problem) + 2;
    char *text = NULL;

    MPL_TRY(mpl_new(ctx, text, size));
    snprintf(text, size, "%s ", graph);
    *known = is_known(audit, text);
    snprintf(text, size, "%s %s", graph, problem);
    *known = *known || is_known(audit, text);
out:
    mpl_free(ctx, text);
    return st;
}

/* Takes concats out of what a plan is free to do where it is known that none shares. Drops claims
 * that hold only then, where it is not known. */
static mpl_status settle(mpl_ctx *ctx, mpl_audit *audit, mpl_statements *list, bool drop)
{
    uint32_t n = 0;
    bool known = false;

    for (uint32_t i = 0; i < list->n; i++) {
        mpl_statement *statement = &list->item[i];

        if (statement->if_copied)
            MPL_PASS(copies(ctx, audit, statement->row, &known));
        if (statement->if_copied && known)
            statement->scope.free &= ~(unsigned)MPL_FREE_SHARE;
        if (!statement->if_copied || known || !drop)
            list->item[n++] = *statement;
    }
    list->n = n;
    return MPL_OK;
}

/* ---- comparisons ---- */

/* Counts what stands in one row: a row's own plans do not make a claim compared. Statements are
 * still in the order of rows. */
static void count_own(judge *self)
{
    const mpl_statements *claims = &self->audit->claims, *plans = &self->audit->plans;
    uint32_t first = 0;

    for (uint32_t c = 0; c < claims->n; c++) {
        const mpl_statement *claim = &claims->item[c];

        while (first < plans->n && plans->item[first].row < claim->row)
            first++;
        for (uint32_t p = first; p < plans->n && plans->item[p].row == claim->row; p++)
            if (mpl_scope_contains(&claim->scope, &plans->item[p].scope)) {
                self->own_of[c]++;
                self->own[p]++;
            }
    }
}

static mpl_status sort_plans(judge *self)
{
    mpl_status st = MPL_OK;
    mpl_statements *plans = &self->audit->plans;
    placed *place = NULL;

    MPL_TRY(mpl_new(self->ctx, place, plans->n));
    for (uint32_t p = 0; p < plans->n; p++)
        place[p] = (placed){plans->item[p], p};
    qsort(place, plans->n, sizeof *place, by_place);
    for (uint32_t p = 0; p < plans->n; p++) {
        plans->item[p] = place[p].plan;
        self->origin[p] = place[p].origin;
        self->least[p] = p;
        if (p > 0 && by_group(&plans->item[p - 1], &plans->item[p]) == 0 &&
            plans->item[self->least[p - 1]].amount <= plans->item[p].amount)
            self->least[p] = self->least[p - 1];
    }
out:
    mpl_free(self->ctx, place);
    return st;
}

/* The first plan from `from` on that does not stand before what `probe` would be. */
static uint32_t first_not_before(const judge *self, uint32_t from, const mpl_statement *probe,
                                 int (*order)(const mpl_statement *, const mpl_statement *))
{
    uint32_t low = from, high = self->audit->plans.n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (order(&self->audit->plans.item[mid], probe) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int by_subject(const mpl_statement *a, const mpl_statement *b)
{
    return strcmp(a->scope.subject, b->scope.subject);
}

/* Equal groups stand before the probe: finds where the group ends. */
static int up_to_group(const mpl_statement *a, const mpl_statement *b)
{
    return by_group(a, b) <= 0 ? -1 : 1;
}

/* Likewise: finds where the plans of the group within a budget end. */
static int up_to_budget(const mpl_statement *a, const mpl_statement *b)
{
    int order = by_group(a, b);

    return order < 0 || (order == 0 && a->scope.within <= b->scope.within) ? -1 : 1;
}

static bool is_below(const mpl_statement *plan, const mpl_statement *claim)
{
    uint64_t amount;

    return mpl_align_bytes(plan->amount, claim->slot, &amount) && amount < claim->amount;
}

/* Compares a claim with the plans of each group within its scope. */
static mpl_status compare(judge *self, uint32_t c)
{
    mpl_audit *audit = self->audit;
    mpl_statement claim = audit->claims.item[c], probe;
    const mpl_statement *plan = audit->plans.item, *least = NULL;
    uint32_t at = first_not_before(self, 0, &claim, by_subject), within;
    uint64_t n = 0;

    for (; at < audit->plans.n && by_subject(&plan[at], &claim) == 0;
         at = first_not_before(self, at, &probe, up_to_group)) {
        probe = plan[at];
        probe.scope.within = claim.scope.within;
        within = first_not_before(self, at, &probe, up_to_budget);
        if (within == at || !mpl_scope_contains(&claim.scope, &probe.scope))
            continue;
        n += within - at;
        self->covers[within - 1]++;
        if (least == NULL || plan[self->least[within - 1]].amount < least->amount)
            least = &plan[self->least[within - 1]];
    }
    n -= self->own_of[c];
    audit->n_comparisons += n;
    audit->n_claims_compared += n > 0;
    if (least == NULL || !is_below(least, &claim))
        return MPL_OK;
    MPL_PASS(mpl_reserve(self->ctx, audit->beaten, audit->beaten_cap, (size_t)audit->n_beaten + 1));
    audit->beaten[audit->n_beaten++] = (mpl_beaten){claim, *least};
    return MPL_OK;
}

/* Counts the rows with a plan that a claim of another row was compared with. */
static mpl_status count_rows(judge *self)
{
    mpl_status st = MPL_OK;
    mpl_audit *audit = self->audit;
    const mpl_statement *plan = audit->plans.item;
    uint8_t *seen = NULL;
    uint32_t covers = 0;

    MPL_TRY(mpl_new(self->ctx, seen, audit->n_rows));
    for (uint32_t p = audit->plans.n; p-- > 0;) {
        bool last = p + 1 == audit->plans.n || by_group(&plan[p], &plan[p + 1]) != 0;

        covers = (last ? 0 : covers) + self->covers[p];
        if (covers > self->own[self->origin[p]])
            seen[plan[p].row] = 1;
    }
    for (uint32_t i = 0; i < audit->n_rows; i++)
        audit->n_rows_compared += seen[i];
out:
    mpl_free(self->ctx, seen);
    return st;
}

mpl_status mpl_audit_judge(mpl_ctx *ctx, mpl_audit *audit)
{
    mpl_status st = MPL_OK;
    judge j = {.ctx = ctx, .audit = audit};

    if (audit->n_copied > 0)
        qsort(audit->copied, audit->n_copied, sizeof *audit->copied, by_text);
    MPL_TRY(settle(ctx, audit, &audit->claims, true));
    MPL_TRY(settle(ctx, audit, &audit->plans, false));
    MPL_TRY(mpl_new_each(ctx, audit->plans.n, j.least, j.covers, j.own, j.origin));
    MPL_TRY(mpl_new(ctx, j.own_of, audit->claims.n));
    count_own(&j);
    MPL_TRY(sort_plans(&j));
    for (uint32_t c = 0; c < audit->claims.n; c++)
        MPL_TRY(compare(&j, c));
    MPL_TRY(count_rows(&j));
out:
    mpl_free_each(ctx, j.least, j.covers, j.own, j.origin, j.own_of);
    return st;
}

/* ---- files ---- */

typedef struct source {
    mpl_ctx *ctx;
    mpl_audit *audit;
    const char *path;
} source;

static mpl_status take_row(void *arg, uint32_t line, mpl_record **row)
{
    source *s = arg;

    return mpl_audit_row(s->ctx, s->audit, s->path, line, *row);
}

mpl_status mpl_audit_file(mpl_ctx *ctx, mpl_audit *audit, const char *path)
{
    source s = {ctx, audit, path};

    return mpl_rows_each(ctx, path, take_row, &s);
}

void mpl_audit_fini(mpl_ctx *ctx, mpl_audit *audit)
{
    for (uint32_t i = 0; i < audit->n_texts; i++)
        mpl_free(ctx, audit->text[i]);
    mpl_free_each(ctx, audit->text, audit->row, audit->claims.item, audit->plans.item,
                  audit->copied, audit->beaten);
    memset(audit, 0, sizeof *audit);
}
