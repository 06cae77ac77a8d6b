/* statements.c -- what one row says: claims and plans, each with its scope. See audit.h. */
#include <math.h>
#include <stdarg.h>

#include "harness/audit/audit.h"
#include "harness/job/job.h"

/* A row that is being read. */
typedef struct reading {
    mpl_ctx *ctx;
    mpl_audit *audit;
    const mpl_record *row;
    uint32_t number;
    unsigned may;  /* freedoms that its plan may have used */
    unsigned sure; /* freedoms that its claims surely cover */
    bool copies;   /* no concat shares; false: unknown */
    uint32_t align;
    bool boxes; /* concats may share strided boxes */
} reading;

#define PAIRED (unsigned)(MPL_FREE_IN_PLACE | MPL_FREE_PARTS)
#define VIEWED (unsigned)(MPL_FREE_VIEWS | MPL_FREE_COPIES)

/* ---- texts ---- */

/* Owns a copy of a text, printf-style, until the audit ends. */
static mpl_status __attribute__((format(printf, 4, 5)))
keep(mpl_ctx *ctx, mpl_audit *audit, const char **out, const char *format, ...)
{
    mpl_status st = MPL_OK;
    char *text = NULL;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    MPL_TRY(mpl_new(ctx, text, (size_t)n + 1));
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    MPL_TRY(mpl_reserve(ctx, audit->text, audit->text_cap, (size_t)audit->n_texts + 1));
    *out = audit->text[audit->n_texts++] = text, text = NULL;
out:
    mpl_free(ctx, text);
    return st;
}

enum { SHOWN = 256 }; /* of a field in a scope; what is longer is odd, and compared with nothing */

static bool show(const reading *self, mpl_field field, char text[SHOWN])
{
    mpl_record_show(self->row, field, text, SHOWN);
    return strlen(text) < SHOWN - 1;
}

static const char *text_of(const reading *self, mpl_field field)
{
    return mpl_record_text_or(self->row, field, "");
}

/* ---- statements ---- */

static mpl_status add(reading *self, mpl_statements *to, mpl_statement s)
{
    s.row = self->number;
    s.slot = s.slot == 0 ? 1 : s.slot;
    MPL_PASS(mpl_reserve(self->ctx, to->item, to->cap, (size_t)to->n + 1));
    to->item[to->n++] = s;
    return MPL_OK;
}

/* Adds the claim of `bound`, or, if `optimal`, of what was found: whichever says more. Fields are
 * of whole numbers; a null one says nothing. */
static mpl_status add_claim(reading *self, mpl_field bound, mpl_field found, bool optimal,
                            mpl_statement s)
{
    uint64_t proved = 0, best = 0;

    mpl_record_get_int(self->row, bound, &proved);
    if (optimal && mpl_record_get_int(self->row, found, &best) && best >= proved) {
        proved = best;
        s.what = "optimal";
    }
    s.amount = proved;
    if (proved > 0)
        MPL_PASS(add(self, &self->audit->claims, s));
    return MPL_OK;
}

static mpl_status add_plan(reading *self, mpl_field field, const char *what, mpl_statement s)
{
    s.what = what;
    if (!mpl_record_get_int(self->row, field, &s.amount))
        return MPL_OK;
    return add(self, &self->audit->plans, s);
}

/* The arena of the row's plan, as it is and with its blocks packed. */
static mpl_status add_arenas(reading *self, mpl_statement s)
{
    if (!mpl_record_is_null(self->row, MPL_FIELD_cost))
        return MPL_OK; /* several memories: their sum is no arena */
    MPL_PASS(add_plan(self, MPL_FIELD_planned_bytes, "planned", s));
    return add_plan(self, MPL_FIELD_packed_bytes, "packed", s);
}

/* ---- one problem ---- */

static mpl_status of_problem(reading *self)
{
    mpl_statement s = {.what = "bound", .unit = "bytes"};
    const char *hash = text_of(self, MPL_FIELD_problem_hash);
    bool optimal = mpl_record_is(self->row, MPL_FIELD_claim, "optimal") &&
                   mpl_record_is_null(self->row, MPL_FIELD_cost);

    if (hash[0] == '\0')
        return MPL_OK;
    MPL_PASS(keep(self->ctx, self->audit, &s.scope.subject, "problem %s", hash));
    MPL_PASS(add_claim(self, MPL_FIELD_bound_bytes, MPL_FIELD_planned_bytes, optimal, s));
    s.what = "optimum";
    MPL_PASS(add_claim(self, MPL_FIELD_optimum_bytes, MPL_FIELD_optimum_bytes, false, s));
    return add_arenas(self, s);
}

/* ---- one problem over several memories ---- */

static mpl_status of_memories(reading *self)
{
    mpl_statement s = {.what = "bound", .unit = "of cost"};
    const char *hash = text_of(self, MPL_FIELD_problem_hash);
    bool optimal = mpl_record_is(self->row, MPL_FIELD_claim, "optimal");
    char capacities[SHOWN], price[SHOWN];

    if (hash[0] == '\0' ||
        !mpl_record_member_show(self->row, MPL_FIELD_params, "capacities", capacities, SHOWN) ||
        !mpl_record_member_show(self->row, MPL_FIELD_params, "cost", price, SHOWN))
        return MPL_OK;
    MPL_PASS(keep(self->ctx, self->audit, &s.scope.subject, "problem %s in memories of %s at %s",
                  hash, capacities, price));
    MPL_PASS(add_claim(self, MPL_FIELD_cost_bound, MPL_FIELD_cost, optimal, s));
    return add_plan(self, MPL_FIELD_cost, "planned", s);
}

/* ---- one graph ---- */

/* Whether the figures of the order are those of arenas, not of live bytes. */
static bool is_joint(const reading *self)
{
    const char *order = text_of(self, MPL_FIELD_order);

    return strncmp(order, "joint", 5) == 0 && (order[5] == '\0' || order[5] == ':');
}

/* Remembers that no concat of the graph shares: in all of its problems, or in this one. */
static mpl_status note_copies(reading *self)
{
    mpl_audit *audit = self->audit;
    const char *graph = text_of(self, MPL_FIELD_graph_hash);
    bool none = mpl_record_is(self->row, MPL_FIELD_order_scope, "all orders");

    if (!none && !self->copies)
        return MPL_OK;
    MPL_PASS(mpl_reserve(self->ctx, audit->copied, audit->copied_cap, (size_t)audit->n_copied + 1));
    MPL_PASS(keep(self->ctx, audit, &audit->copied[audit->n_copied], "%s %s", graph,
                  none ? "" : text_of(self, MPL_FIELD_problem_hash)));
    audit->n_copied++;
    return MPL_OK;
}

/* What each text of order_scope leaves open beside the order. */
static const struct {
    const char *text;
    unsigned free;
    bool shared; /* of plans whose concats share, all that can */
} order_scopes[] = {
    {"all orders", 0, false},
    {"all orders with concats copied", 0, false},
    {"all orders with concats shared", 0, true},
    {"all orders and shared concats", MPL_FREE_SHARE | MPL_FREE_PARTS, false},
    {"all orders, shared concats and splits", MPL_FREE_SHARE | MPL_FREE_SPLIT | MPL_FREE_PARTS,
     false},
    /* with control flow nothing shares and nothing is split */
    {"all orders of every block", MPL_FREE_SHARE | MPL_FREE_SPLIT | MPL_FREE_PARTS, false},
    {"all orders of every block, with concats and splits copied",
     MPL_FREE_SHARE | MPL_FREE_SPLIT | MPL_FREE_PARTS, false},
};

/* What an order that was searched for proves of all orders. */
static mpl_status of_orders(reading *self, const char *held, const char *held_shared)
{
    bool joint = is_joint(self);
    mpl_statement s = {.what = "bound of all orders", .unit = "bytes"}, found;
    size_t k = 0, n = sizeof order_scopes / sizeof *order_scopes;

    while (k < n && !mpl_record_is(self->row, MPL_FIELD_order_scope, order_scopes[k].text))
        k++;
    if (k == n)
        return MPL_OK;
    s.scope.subject = order_scopes[k].shared ? held_shared : held;
    s.scope.align = mpl_problem_options_default().align; /* whatever the backend's */
    s.scope.free = order_scopes[k].free | MPL_FREE_ORDER | MPL_FREE_SERIAL;
    found = s;
    s.scope.free |= self->sure & (PAIRED | VIEWED);
    found.scope.free |= self->may & (PAIRED | VIEWED);
    s.slot = joint ? 1 : s.scope.align;
    MPL_PASS(add_claim(self, MPL_FIELD_order_bound_bytes, MPL_FIELD_order_bound_bytes, false, s));
    if (joint)
        return add_plan(self, MPL_FIELD_order_live_bytes, "planned with its order", found);
    MPL_PASS(keep(self->ctx, self->audit, &s.scope.subject, "live bytes of %s", s.scope.subject));
    found.scope.subject = s.scope.subject;
    MPL_PASS(add_claim(self, MPL_FIELD_order_bound_bytes, MPL_FIELD_order_bound_bytes, false, s));
    return add_plan(self, MPL_FIELD_order_live_bytes, "live in its order", found);
}

/* The bound that memplan least proves over all its free choices. */
static mpl_status of_least(reading *self, mpl_statement s)
{
    static const struct {
        const char *word;
        unsigned free;
    } freedom[] = {
        {"order", MPL_FREE_ORDER},  {"concats", MPL_FREE_SHARE}, {"splits", MPL_FREE_SPLIT},
        {"in-place pairs", PAIRED}, {"views", VIEWED},
    };
    bool optimal = mpl_record_is(self->row, MPL_FIELD_claim, "optimal");

    s.scope.free = self->sure & MPL_FREE_SERIAL;
    for (size_t i = 0; i < sizeof freedom / sizeof *freedom; i++)
        if (mpl_record_has_item(self->row, MPL_FIELD_free, freedom[i].word))
            s.scope.free |= freedom[i].free;
    if (mpl_record_has_item(self->row, MPL_FIELD_held, "splits copied")) /* by control flow */
        s.scope.free |= MPL_FREE_SHARE | MPL_FREE_SPLIT | MPL_FREE_PARTS;
    if ((s.scope.free & VIEWED) == 0) /* held as they are */
        s.scope.free |= self->sure & VIEWED;
    if ((s.scope.free & PAIRED) == 0)
        s.scope.free |= MPL_FREE_PARTS;
    s.what = "bound of all that is free";
    return add_claim(self, MPL_FIELD_bound_bytes, MPL_FIELD_planned_bytes, optimal, s);
}

/* The backend's part in the scope; false: of a backend that is not known here. */
static bool read_backend(reading *self)
{
    const char *name = mpl_record_get_text(self->row, MPL_FIELD_backend);
    const mpl_backend *backend = name != NULL ? mpl_backend_find(name) : NULL;

    self->align = mpl_problem_options_default().align;
    self->boxes = backend == NULL || backend->strided;
    if (backend != NULL)
        self->align = (uint32_t)mpl_max_u64(self->align, backend->align);
    return name == NULL || backend != NULL;
}

/* The row's plan and what is proved of it, in its order. */
static mpl_status of_order(reading *self, mpl_statement s)
{
    bool optimal = mpl_record_is(self->row, MPL_FIELD_claim, "optimal");
    bool searched = mpl_record_is(self->row, MPL_FIELD_order_kept, "searched");
    /* workspaces are the backend's, and an order that was searched for is another in each row */
    bool claims = (self->may & MPL_FREE_ORDER) == 0 &&
                  !mpl_record_is(self->row, MPL_FIELD_workspaces, "plan") &&
                  mpl_record_is_null(self->row, MPL_FIELD_constraints);

    s.scope.free = self->sure;
    if (claims)
        MPL_PASS(add_claim(self, MPL_FIELD_bound_bytes, MPL_FIELD_planned_bytes, optimal, s));
    s.scope.free = self->may;
    MPL_PASS(add_arenas(self, s));
    /* the plan that was not kept is of the other order */
    s.scope.free = (self->may & ~(unsigned)MPL_FREE_ORDER) | (searched ? 0 : MPL_FREE_ORDER);
    return add_plan(self, MPL_FIELD_order_other_bytes, "planned, not kept,", s);
}

/* The fixed choices of the graph as text; *held NULL: the row cannot be compared. The safeties are
 * not comparable if inputs or weights are planned (an unread one takes bytes at the first step
 * under `serial`, and none under `parallel`), nor in loops, where `parallel` may offer in-place
 * pairs that `serial` does not. */
static mpl_status name_held(reading *self, const char *safety, const char **held)
{
    const char *hash = text_of(self, MPL_FIELD_graph_hash);
    bool apart = !mpl_record_is_null(self->row, MPL_FIELD_loop) ||
                 !mpl_record_has_item(self->row, MPL_FIELD_pinned, "inputs") ||
                 !mpl_record_has_item(self->row, MPL_FIELD_pinned, "weights");
    char loop[SHOWN], pinned[SHOWN], pools[SHOWN];

    *held = NULL;
    if (hash[0] == '\0' || !show(self, MPL_FIELD_loop, loop) ||
        !show(self, MPL_FIELD_pinned, pinned) || !show(self, MPL_FIELD_own_pools, pools))
        return MPL_OK;
    return keep(self->ctx, self->audit, held, "graph %s, loop %s, pinned %s, own pools %s%s%s",
                hash, loop, pinned, pools, apart ? ", " : "", apart ? safety : "");
}

/* The same, of plans in which all concats share that can. */
static mpl_status name_shared(reading *self, const char *held, const char **shared)
{
    return keep(self->ctx, self->audit, shared, "%s, concats shared%s", held,
                self->boxes ? "" : " but for boxes");
}

static mpl_status of_graph(reading *self)
{
    mpl_statement s = {.what = "bound", .unit = "bytes", .if_copied = !self->copies};
    const char *serial, *shared;
    bool shares = mpl_record_is(self->row, MPL_FIELD_concat, "share");
    bool workspaces = mpl_record_is(self->row, MPL_FIELD_workspaces, "plan");

    if (mpl_record_is_null(self->row, MPL_FIELD_order) || !read_backend(self))
        return MPL_OK;
    MPL_PASS(name_held(self, "serial", &serial));
    MPL_PASS(name_held(self, text_of(self, MPL_FIELD_safety), &s.scope.subject));
    if (serial == NULL || s.scope.subject == NULL)
        return MPL_OK;
    MPL_PASS(note_copies(self));
    MPL_PASS(name_shared(self, serial, &shared));
    MPL_PASS(of_orders(self, serial, shared));
    s.scope.align = self->align;
    if (!mpl_record_is_null(self->row, MPL_FIELD_free) && !workspaces && !shares)
        MPL_PASS(of_least(self, (mpl_statement){.scope = s.scope, .unit = "bytes"}));
    MPL_PASS(of_order(self, s));
    if (!shares)
        return MPL_OK;
    self->may &= ~(unsigned)MPL_FREE_SHARE; /* what is shared is held there */
    MPL_PASS(name_shared(self, s.scope.subject, &s.scope.subject));
    s.if_copied = false;
    return of_order(self, s);
}

/* ---- what runs again ---- */

/* The budget of live bytes of --recompute; 0: none, or not known. */
static uint64_t budget_of(const reading *self, const mpl_recompute_spec *spec)
{
    uint64_t before = 0;

    if (spec->budget != MPL_LEAST_PEAK)
        return spec->budget;
    mpl_record_get_int(self->row, MPL_FIELD_recompute_before_bytes, &before);
    return spec->part > 0 ? (uint64_t)floor((double)before * spec->part) : 0;
}

/* Whether the method keeps the order of the graph, and so is held to what round proves of it. */
static bool keeps_order(const char *method)
{
    return strcmp(method, "sqrt") == 0 || strcmp(method, "budget") == 0 ||
           strcmp(method, "round") == 0;
}

static mpl_status of_repeats(reading *self)
{
    static const mpl_field held[] = {MPL_FIELD_graph,        MPL_FIELD_optimise,
                                     MPL_FIELD_changed,      MPL_FIELD_dims,
                                     MPL_FIELD_in_place,     MPL_FIELD_views,
                                     MPL_FIELD_concat,       MPL_FIELD_loop,
                                     MPL_FIELD_unroll,       MPL_FIELD_pinned,
                                     MPL_FIELD_own_pools,    MPL_FIELD_all_work,
                                     MPL_FIELD_forward_work, MPL_FIELD_recompute_before_bytes};
    mpl_statement s = {.what = "bound", .unit = "of repeated work"};
    const char *asked = mpl_record_get_text(self->row, MPL_FIELD_recompute);
    bool optimal = mpl_record_is(self->row, MPL_FIELD_recompute_claim, "optimal");
    mpl_recompute_spec spec = {0};
    char text[SHOWN], subject[SHOWN * (sizeof held / sizeof *held + 1)] = "repeats of";

    if (asked == NULL || mpl_recompute_spec_parse(self->ctx, asked, &spec) != MPL_OK ||
        spec.method == NULL || (s.scope.within = budget_of(self, &spec)) == 0)
        return MPL_OK; /* a method or budget that is not known here is held to nothing */
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        if (!show(self, held[i], text))
            return MPL_OK;
        snprintf(subject + strlen(subject), sizeof subject - strlen(subject), "%s %s",
                 i > 0 ? "," : "", text);
    }
    MPL_PASS(
        keep(self->ctx, self->audit, &s.scope.subject, "%s, by %s", subject, spec.method->name));
    MPL_PASS(add_claim(self, MPL_FIELD_extra_work_bound, MPL_FIELD_extra_work, optimal, s));
    MPL_PASS(add_plan(self, MPL_FIELD_extra_work, "found", s));
    if (!keeps_order(spec.method->name))
        return MPL_OK;
    MPL_PASS(keep(self->ctx, self->audit, &s.scope.subject, "%s, in that order", subject));
    MPL_PASS(add_plan(self, MPL_FIELD_extra_work, "found", s));
    if (strcmp(spec.method->name, "round") == 0)
        MPL_PASS(add_claim(self, MPL_FIELD_extra_work_bound, MPL_FIELD_extra_work, optimal, s));
    return MPL_OK;
}

/* ---- a row ---- */

static void read_freedoms(reading *self)
{
    bool pairs = true, views = true;
    bool pairs_known = mpl_record_get_bool(self->row, MPL_FIELD_in_place, &pairs);
    bool views_known = mpl_record_get_bool(self->row, MPL_FIELD_views, &views);
    unsigned viewed = !views_known ? VIEWED : views ? MPL_FREE_VIEWS : MPL_FREE_COPIES;
    bool given = mpl_record_is(self->row, MPL_FIELD_order, "given") ||
                 mpl_record_is(self->row, MPL_FIELD_order_kept, "given");

    self->copies = mpl_record_is(self->row, MPL_FIELD_concat, "copy");
    /* without pairs; loops and branches leave storage whole */
    bool parts = pairs_known && !pairs && mpl_record_is_null(self->row, MPL_FIELD_loop) &&
                 !mpl_record_is_null(self->row, MPL_FIELD_lifetimes);

    self->may = (parts ? MPL_FREE_PARTS : 0) | viewed |
                (mpl_record_is_null(self->row, MPL_FIELD_free) ? 0 : MPL_FREE_SPLIT) |
                (given ? 0 : MPL_FREE_ORDER) | (self->copies ? 0 : MPL_FREE_SHARE) |
                (pairs ? MPL_FREE_IN_PLACE : 0) |
                (mpl_record_is(self->row, MPL_FIELD_safety, "parallel") ? 0 : MPL_FREE_SERIAL);
    self->sure = (pairs_known && !pairs ? MPL_FREE_PARTS : 0) | (views_known ? viewed : 0) |
                 (pairs_known && pairs ? MPL_FREE_IN_PLACE : 0) |
                 (mpl_record_is(self->row, MPL_FIELD_safety, "serial") ? MPL_FREE_SERIAL : 0);
}

static mpl_status name_row(reading *self, const char *file, uint32_t line)
{
    mpl_audit *audit = self->audit;
    mpl_audited_row *row;
    char planner[MPL_PLANNER_LABEL];

    MPL_PASS(mpl_reserve(self->ctx, audit->row, audit->row_cap, (size_t)audit->n_rows + 1));
    row = &audit->row[audit->n_rows];
    *row = (mpl_audited_row){.file = file, .line = line};
    MPL_PASS(keep(self->ctx, audit, &row->graph, "%s", text_of(self, MPL_FIELD_graph)));
    MPL_PASS(keep(self->ctx, audit, &row->graph_hash, "%s", text_of(self, MPL_FIELD_graph_hash)));
    MPL_PASS(
        keep(self->ctx, audit, &row->problem_hash, "%s", text_of(self, MPL_FIELD_problem_hash)));
    MPL_PASS(keep(self->ctx, audit, &row->planner, "%s", mpl_planner_label(self->row, planner)));
    self->number = audit->n_rows++;
    return MPL_OK;
}

mpl_status mpl_audit_row(mpl_ctx *ctx, mpl_audit *audit, const char *file, uint32_t line,
                         const mpl_record *row)
{
    reading r = {.ctx = ctx, .audit = audit, .row = row};
    bool verified = false;

    MPL_PASS(name_row(&r, file, line));
    mpl_record_get_bool(row, MPL_FIELD_verified, &verified);
    if (!verified || !mpl_record_is(row, MPL_FIELD_status, "ok"))
        return MPL_OK;
    read_freedoms(&r);
    MPL_PASS(of_problem(&r));
    MPL_PASS(of_memories(&r));
    MPL_PASS(of_graph(&r));
    return of_repeats(&r);
}
