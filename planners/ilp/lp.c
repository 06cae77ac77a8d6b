/* lp.c -- mixed integer programs through GLPK. See lp.h. The program lives in our own arrays; GLPK
 * holds it only during one call. GLPK ends the process on an internal error or without memory,
 * unless its hook does not return. Our hook jumps back into guarded(), which then frees GLPK's
 * environment, as its manual demands. Between hook setup and jump we allocate and free no memory of
 * our own. */
#include "planners/ilp/lp.h"

#include "graphs/core/file.h"
#include "mpl_config.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#if MPL_HAVE_GLPK
#include <glpk.h>
#endif

typedef struct column {
    double low, high, cost;
    uint32_t a, b;
    char letter;
    bool integer;
} column;

struct mpl_lp {
    mpl_ctx *ctx;
    char *name;
    column *col;
    double *row_low;
    size_t *row_begin; /* [n_rows + 1] into the entries, which start at 1 like GLPK's lists */
    int *entry_col;    /* from 1 */
    double *entry_value;
    uint32_t n_cols, n_rows;
    size_t n_entries;
    size_t col_room, low_room, begin_room, entry_col_room, entry_value_room;
};

mpl_status mpl_lp_new(mpl_ctx *ctx, const char *name, mpl_lp **out)
{
    mpl_status st = MPL_OK;
    mpl_lp *lp = NULL;

    MPL_TRY(mpl_new(ctx, lp, 1));
    lp->ctx = ctx;
    MPL_TRY(mpl_copy_text(ctx, lp->name, name));
    MPL_TRY(mpl_reserve(ctx, lp->row_begin, lp->begin_room, 1));
    lp->row_begin[0] = lp->n_entries = 1;
    *out = lp, lp = NULL;
out:
    mpl_lp_free(ctx, lp);
    return st;
}

void mpl_lp_free(mpl_ctx *ctx, mpl_lp *lp)
{
    if (lp == NULL)
        return;
    mpl_free_each(ctx, lp->name, lp->col, lp->row_low, lp->row_begin, lp->entry_col,
                  lp->entry_value, lp);
}

mpl_status mpl_lp_add_column(mpl_lp *lp, bool integer, double low, double high, double cost,
                             char letter, uint32_t a, uint32_t b, uint32_t *column_id)
{
    mpl_assert(low <= high && isfinite(low) && isfinite(high));
    MPL_PASS(mpl_reserve(lp->ctx, lp->col, lp->col_room, (size_t)lp->n_cols + 1));
    lp->col[lp->n_cols] = (column){low, high, cost, a, b, letter, integer};
    *column_id = lp->n_cols++;
    return MPL_OK;
}

mpl_status mpl_lp_add_row(mpl_lp *lp, double low, uint32_t n, const uint32_t *col,
                          const double *value)
{
    size_t at = lp->n_entries;

    MPL_PASS(mpl_reserve(lp->ctx, lp->row_low, lp->low_room, (size_t)lp->n_rows + 1));
    MPL_PASS(mpl_reserve(lp->ctx, lp->row_begin, lp->begin_room, (size_t)lp->n_rows + 2));
    MPL_PASS(mpl_reserve(lp->ctx, lp->entry_col, lp->entry_col_room, at + n));
    MPL_PASS(mpl_reserve(lp->ctx, lp->entry_value, lp->entry_value_room, at + n));
    for (uint32_t i = 0; i < n; i++)
        if (value[i] != 0) {
            lp->entry_col[at] = (int)col[i] + 1;
            lp->entry_value[at++] = value[i];
        }
    lp->row_low[lp->n_rows++] = low;
    lp->row_begin[lp->n_rows] = lp->n_entries = at;
    return MPL_OK;
}

uint32_t mpl_lp_rows(const mpl_lp *lp)
{
    return lp->n_rows;
}

uint32_t mpl_lp_columns(const mpl_lp *lp)
{
    return lp->n_cols;
}

#if MPL_HAVE_GLPK

/* ---- one call into GLPK ---- */

typedef struct call {
    mpl_lp *lp;
    uint32_t max_mib;
    int scaling;  /* GLPK's scaling flags, of a solution */
    bool gave_up; /* an internal error of GLPK other than memory */
    jmp_buf back;
    char said[200]; /* last message of GLPK, without its source location */
    glp_prob *prob;
    mpl_status st;
    /* of a solution */
    const mpl_lp_limits *limits;
    mpl_lp_answer *answer;
    double *x;
    /* of a file */
    const char *path, *file; /* the user's name; GLPK's name */
} call;

static int keep_line(void *info, const char *text)
{
    call *c = info;

    if (text[0] != '\0' && text[0] != '\n' && strncmp(text, "Error detected", 14) != 0)
        snprintf(c->said, sizeof c->said, "%s", text);
    return 1; /* suppresses printing */
}

static void jump_back(void *info)
{
    call *c = info;

    longjmp(c->back, 1);
}

/* Tells the cause of the hook's call: out of memory, or an internal error of GLPK. */
static mpl_status failure(call *self)
{
    self->said[strcspn(self->said, "\n")] = '\0';
    if (strstr(self->said, "memory") != NULL)
        return MPL_ERROR(self->lp->ctx, MPL_EMEM, "out of memory in GLPK");
    self->gave_up = true;
    return MPL_ERROR(self->lp->ctx, MPL_ELIMIT, "GLPK gave up: %s", self->said);
}

static void load(call *self)
{
    const mpl_lp *lp = self->lp;
    char name[40];

    self->prob = glp_create_prob();
    glp_set_prob_name(self->prob, lp->name);
    glp_set_obj_dir(self->prob, GLP_MIN);
    if (lp->n_cols > 0)
        glp_add_cols(self->prob, (int)lp->n_cols);
    for (uint32_t j = 0; j < lp->n_cols; j++) {
        const column *col = &lp->col[j];

        if (col->b != MPL_NONE)
            snprintf(name, sizeof name, "%c%u_%u", col->letter, col->a, col->b);
        else
            snprintf(name, sizeof name, "%c%u", col->letter, col->a);
        glp_set_col_name(self->prob, (int)j + 1, name);
        glp_set_col_kind(self->prob, (int)j + 1, col->integer ? GLP_IV : GLP_CV);
        glp_set_col_bnds(self->prob, (int)j + 1, col->low == col->high ? GLP_FX : GLP_DB, col->low,
                         col->high);
        glp_set_obj_coef(self->prob, (int)j + 1, col->cost);
    }
    if (lp->n_rows > 0)
        glp_add_rows(self->prob, (int)lp->n_rows);
    for (uint32_t i = 0; i < lp->n_rows; i++) {
        size_t begin = lp->row_begin[i];

        glp_set_row_bnds(self->prob, (int)i + 1, GLP_LO, lp->row_low[i], 0);
        glp_set_mat_row(self->prob, (int)i + 1, (int)(lp->row_begin[i + 1] - begin),
                        lp->entry_col + begin - 1, lp->entry_value + begin - 1);
    }
}

/* Runs body between loading and deleting, with our hooks installed in GLPK. */
static mpl_status guarded(call *self, void (*body)(call *self))
{
    int was_there = glp_init_env(); /* 1: another library of this process uses it */

    if (was_there > 1)
        return MPL_ERROR(self->lp->ctx, MPL_EMEM, "GLPK cannot start");
    glp_term_hook(keep_line, self);
    glp_error_hook(jump_back, self);
    if (setjmp(self->back) == 0) {
        glp_mem_limit((int)mpl_min_u64(self->max_mib, INT_MAX));
        load(self);
        body(self);
        glp_delete_prob(self->prob);
    } else {
        glp_free_env(); /* required after an error; frees the problem too */
        return failure(self);
    }
    glp_term_hook(NULL, NULL);
    glp_error_hook(NULL, NULL);
    if (was_there == 0)
        glp_free_env();
    return self->st;
}

/* ---- solving ---- */

/* Milliseconds left for GLPK's own limits, at least one. */
static int time_left(const call *self)
{
    int64_t left;

    if (self->limits->deadline_ns == INT64_MAX)
        return INT_MAX;
    left = (self->limits->deadline_ns - mpl_clock_ns()) / 1000000;
    return left < 1 ? 1 : left > INT_MAX ? INT_MAX : (int)left;
}

static bool late(const call *self)
{
    return self->limits->deadline_ns != INT64_MAX && mpl_clock_ns() >= self->limits->deadline_ns;
}

static uint64_t pivots(const call *self)
{
    return (uint64_t)glp_get_it_cnt(self->prob);
}

/* GLPK's callback, called several times in each node. */
static void watch(glp_tree *tree, void *info)
{
    call *c = info;
    mpl_lp_answer *answer = c->answer;
    int best = glp_ios_best_node(tree);

    answer->n_pivots = pivots(c); /* pivots known so far, in case GLPK fails */
    if (best != 0)
        answer->bound = fmax(answer->bound, glp_ios_node_bound(tree, best));
    if (glp_ios_reason(tree) == GLP_IPREPRO)
        answer->n_nodes++;
    if (glp_ios_reason(tree) == GLP_IBINGO &&
        glp_get_obj_val(glp_ios_get_prob(tree)) <= c->limits->enough)
        glp_ios_terminate(tree);
    if (answer->n_nodes > c->limits->max_nodes || pivots(c) >= c->limits->max_pivots) {
        glp_ios_terminate(tree);
    } else if (late(c)) {
        answer->stopped_by_clock = true;
        glp_ios_terminate(tree);
    }
}

/* Solves the relaxation. False: no branching needed. */
static bool relax(call *self)
{
    glp_smcp param;
    int code;

    glp_init_smcp(&param);
    param.msg_lev = GLP_MSG_ERR;
    param.meth = GLP_DUALP;
    param.tm_lim = time_left(self);
    param.it_lim = (int)mpl_min_u64(self->limits->max_pivots, INT_MAX);
    glp_scale_prob(self->prob, self->scaling);
    glp_adv_basis(self->prob, 0);
    code = glp_simplex(self->prob, &param);
    if (code == 0 && glp_get_status(self->prob) == GLP_OPT) {
        self->answer->bound = glp_get_obj_val(self->prob);
        return true;
    }
    if (code == 0 && glp_get_status(self->prob) == GLP_NOFEAS)
        self->answer->state = MPL_LP_INFEASIBLE;
    self->answer->stopped_by_clock = code == GLP_ETMLIM;
    return false;
}

static void solve(call *self)
{
    mpl_lp_answer *answer = self->answer;
    glp_iocp param;
    int code, status;
    bool relaxed = relax(self);

    answer->n_pivots = pivots(self);
    if (!relaxed)
        return;
    glp_init_iocp(&param);
    param.msg_lev = GLP_MSG_ERR;
    param.br_tech = GLP_BR_PCH;
    param.bt_tech = GLP_BT_BLB;
    if (self->limits->cuts)
        param.presolve = param.cov_cuts = param.mir_cuts = GLP_ON;
    param.cb_func = watch;
    param.cb_info = self;
    code = glp_intopt(self->prob, &param);
    answer->n_pivots = pivots(self);
    status = glp_mip_status(self->prob);
    if (code != 0 && code != GLP_ESTOP && code != GLP_EMIPGAP && code != GLP_ETMLIM)
        status = GLP_UNDEF; /* the basis cannot be factorised: no verdict */
    if (status == GLP_OPT || status == GLP_FEAS) {
        answer->objective = glp_mip_obj_val(self->prob);
        for (uint32_t j = 0; j < self->lp->n_cols; j++)
            self->x[j] = glp_mip_col_val(self->prob, (int)j + 1);
        answer->state = status == GLP_OPT || answer->objective <= self->limits->enough
                            ? MPL_LP_OPTIMAL
                            : MPL_LP_FEASIBLE;
    } else if (code == 0 && status == GLP_NOFEAS) {
        answer->state = MPL_LP_INFEASIBLE;
    }
    if (status == GLP_OPT)
        answer->bound = answer->objective;
    if (status == GLP_FEAS) /* the open nodes may be worse than x[] */
        answer->bound = fmin(answer->bound, answer->objective);
}

/* GLPK's dual simplex hits an assertion when coefficients of very different size were scaled by
 * rounded factors. Powers of two avoid that. Without scaling, the tolerances are those of the
 * original program. */
static const int scalings[] = {GLP_SF_AUTO, GLP_SF_GM | GLP_SF_EQ | GLP_SF_2N, GLP_SF_SKIP};

mpl_status mpl_lp_solve(mpl_lp *lp, const mpl_lp_limits *limits, mpl_lp_answer *answer, double *x)
{
    mpl_status st = MPL_OK;
    uint64_t n_nodes = 0, n_pivots = 0;

    for (size_t i = 0; i < sizeof scalings / sizeof *scalings; i++) {
        call c = {.lp = lp, .max_mib = limits->max_mib, .scaling = scalings[i], .limits = limits};

        c.answer = answer;
        c.x = x;
        *answer = (mpl_lp_answer){.state = MPL_LP_NOTHING, .bound = -INFINITY};
        st = guarded(&c, solve);
        answer->n_nodes = n_nodes += answer->n_nodes;
        answer->n_pivots = n_pivots += answer->n_pivots;
        if (!c.gave_up)
            return st;
    }
    answer->state = MPL_LP_NOTHING;
    answer->gave_up = true;
    return MPL_OK;
}

/* ---- files ---- */

static void write_file(call *self)
{
    if (glp_write_lp(self->prob, NULL, self->file) != 0)
        self->st = MPL_REFUSE(self->lp->ctx, "%s: the program cannot be written", self->path);
}

/* Passes the file's descriptor as its name: GLPK aborts on names longer than a terminal line. */
mpl_status mpl_lp_write(mpl_lp *lp, uint32_t max_mib, const char *path)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};
    char name[32];
    call c = {.lp = lp, .max_mib = max_mib, .path = path, .file = name};

    MPL_TRY(mpl_file_begin(lp->ctx, path, &file));
    snprintf(name, sizeof name, "/dev/fd/%d", fileno(file.stream));
    MPL_TRY(guarded(&c, write_file));
    MPL_TRY(mpl_file_commit(lp->ctx, &file));
out:
    mpl_file_end(lp->ctx, &file);
    return st;
}

#else

static mpl_status absent(mpl_ctx *ctx)
{
    return MPL_ERROR(ctx, MPL_EUNAVAIL, "GLPK is not in this build");
}

mpl_status mpl_lp_solve(mpl_lp *lp, const mpl_lp_limits *limits, mpl_lp_answer *answer, double *x)
{
    (void)limits, (void)answer, (void)x;
    return absent(lp->ctx);
}

mpl_status mpl_lp_write(mpl_lp *lp, uint32_t max_mib, const char *path)
{
    (void)max_mib, (void)path;
    return absent(lp->ctx);
}

#endif
