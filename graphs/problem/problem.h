/* problem.h -- what a planner sees: buffers, the conflict relation, in-place pairs, fixed places, pools.
 *
 * Made from a graph and an order (mpl_problem_from_graph), or read from a file; const from then on. */
#ifndef MPL_PROBLEM_H
#define MPL_PROBLEM_H

#include "graphs/core/base.h"
#include "graphs/ir/strided.h"

typedef uint32_t mpl_buffer; /* index into the arrays of one mpl_problem */

#define MPL_UNFIXED     UINT64_MAX /* fixed[]: the planner chooses */
#define MPL_NO_CAPACITY UINT64_MAX /* pool_capacity[]: as much as is needed */

/* "a is before b": every last use of a strictly precedes every first use of b in the partial order of the graph.
 * The transitive closure as bit rows; row a has bit b set when a is before b. */
typedef struct mpl_before {
    uint32_t n;
    uint32_t n_words;    /* 64-bit words a row: (n + 63) / 64 */
    uint64_t *row;       /* [n * n_words] */
    uint32_t *red_begin; /* [n + 1] into red_item: the transitive reduction, successors ascending */
    uint32_t *red_item;
} mpl_before;

/* Events of a graph and which buffers touch them, for the planners that measure distance in time (NNC's hop).
 * Events are the operations, ids in program order; edges go from lower to higher ids. */
typedef struct mpl_access {
    uint32_t n_events;
    uint32_t *edge_begin; /* [n_events + 1] into edge_item: successors */
    uint32_t *edge_item;
    uint32_t
        *first_begin; /* [n + 1] into first_item: first events of each buffer (no other of it is before) */
    uint32_t *first_item;
    uint32_t *last_begin; /* [n + 1] into last_item: its last events */
    uint32_t *last_item;
} mpl_access;

typedef struct mpl_problem {
    char *name;       /* of the graph or file; for messages */
    uint32_t n;       /* buffers */
    uint32_t n_steps; /* every death is <= n_steps; 0 when before != NULL */

    char **buffer_name; /* [n] NULL: none have names */
    uint64_t *bytes;    /* [n] > 0; not rounded to align. [byte] */
    uint32_t *align;    /* [n] power of two. [byte] */
    uint32_t *pool;     /* [n] index into pool_*; buffers of different pools never share */
    uint32_t *birth;    /* [n] first step that needs it [step] */
    uint32_t *death;    /* [n] first step that does not; > birth [step] */
    /* Serial: steps within [birth, death) at which it is not needed after all (what lives in a loop or in branches):
     * half-open, ascending, apart, inside. Other buffers may use its bytes there. NULL: none has any. */
    uint32_t *gap_begin; /* [n + 1] into gap_from and gap_to */
    uint32_t *gap_from;
    uint32_t *gap_to;
    const mpl_before
        *before; /* NULL: serial, lifetimes decide; else parallel, the partial order decides. Owned. */

    uint32_t n_pools;
    char **pool_name;
    uint64_t *pool_capacity; /* [byte] or MPL_NO_CAPACITY */

    /* In-place pairs: `out`, born at `step`, may lie at the very offset of `in`, born earlier, whose last use is at `step`;
     * bytes[out] <= bytes[in]. Sorted by (step, out, in). Without the same offset they conflict like any two.
     * Under a partial order, as where one operation reads `in` last and writes `out` first: neither is before the other; what comes
     * after `out`, and what may overwrite it in turn, comes after `in`; what is before `in` is before `out`. So buffers that
     * overwrite one another are ordered as a whole by the first and the last of them. */
    uint32_t n_in_place;
    mpl_buffer *in_place_in;
    mpl_buffer *in_place_out;
    uint32_t *in_place_step;

    /* Families (DESIGN's inside(a, b, k)): buffer b lies inside_at[b] bytes behind buffer inside[b], the lowest of its family,
     * which lies 0 behind itself. Each has its own size and lifetime, so that a family takes up memory part by part, as its parts
     * come and go; two of its parts that conflict do not overlap. One that is in no family: itself, at 0. NULL: there is none. */
    mpl_buffer *inside;  /* [n] */
    uint64_t *inside_at; /* [n] [byte] */

    uint64_t *
        fixed; /* [n] offset that is already decided, or MPL_UNFIXED (all parts of families); NULL: none is */
    uint32_t *type_id;  /* [n] opaque: equal ids, equal element types; NULL: unknown */
    uint32_t *shape_id; /* [n] opaque: equal ids, equal dims; NULL: unknown */
    uint8_t *no_reuse;  /* [n] 1: block planners give it memory of its own (Owl's scalars); NULL: none */
    const mpl_access *access; /* NULL: unknown, planners fall back to chains of buffers. Owned. */
} mpl_problem;

/* Where a value lies, where that depends on how control flows (DESIGN's bindings). A place is evaluated when the value is used,
 * from the round that each loop is in (behind the loop: how many there were) and the branch that each case took last. */
typedef enum mpl_place_kind {
    MPL_PLACE_BUFFER, /* buffer `of` of the problem */
    MPL_PLACE_PINNED, /* the pinned storage of value `of`, a root */
    MPL_PLACE_CYCLE, /* in round r of block `of`: item r while r < n_first, then item n_first + (r - n_first) % the others */
    MPL_PLACE_FINAL, /* behind `while` operation `of`: item 0 if it ran no round, else item 1 as it was in the last round */
    MPL_PLACE_BRANCH, /* item k when case `of` took branch k; the last item when it took none */
    MPL_PLACE_SLICE, /* item 0, and round (reversed: most rounds - 1 - round) of block `of` times `bytes` behind its start */
} mpl_place_kind;

typedef struct mpl_place {
    uint8_t kind;     /* mpl_place_kind */
    uint8_t reversed; /* of a slice */
    uint32_t of;
    uint32_t begin, n; /* into places.item: places with lower ids */
    uint32_t n_first;  /* of a cycle */
    uint64_t bytes;    /* of a slice [byte] */
} mpl_place;

/* What control flow adds to a value map. */
typedef struct mpl_places {
    uint32_t n;
    mpl_place *place;      /* [n] */
    uint32_t *item;        /* ids of places */
    uint32_t *value_place; /* [n_values] of a root; MPL_NONE: it lies in its buffer, or pinned, for good */
    /* What has to be copied since it does not lie where it is needed. By index into op_in, of while and case alone: a carried value's
     * first, on entry; a scan's slice, each round; a bypass value, when no branch runs. By index into block_result: what is
     * carried, at the end of each round (also of the last: behind the loop the value is where the parameter is), all of a round
     * as if at once; a row, at the end of each round; a branch's result, at its end. */
    uint8_t *in_copied;     /* [op_in_begin[n_ops]] */
    uint8_t *result_copied; /* results of all blocks */
    mpl_buffer
        *staging; /* [n_blocks] buffer for values that are copied crosswise; MPL_NONE: none is needed */
} mpl_places;

/* Whether v is an output of a case, or a carried one of a while: it lies where control flow left it, so it is planned even where
 * outputs are pinned; one that nobody reads lies nowhere. */
bool mpl_is_chosen(const mpl_graph *g, mpl_value v);

/* Which buffer holds which value. A view has its root's buffer; storage that is needed part by part is a family of buffers. MPL_NONE: pinned (weights, inputs, outputs), or
 * the value is not a value of the graph's order (dead). Kept beside the problem; planners never see it. */
typedef struct mpl_value_map {
    uint32_t n_values;
    mpl_buffer *value_buffer; /* [n_values] or MPL_NONE; of several, the lowest */
    uint32_t
        *value_buffers; /* [n_values] in how many it lies, with consecutive ids, end to end; NULL: one each */
    mpl_value *value_root;  /* [n_values] the value whose storage it lies in; itself when it is no view */
    uint64_t *value_offset; /* [n_values] where in that storage it begins; 0 of a root [byte] */
    mpl_strided *
        value_box; /* [n_values] of a value whose elements lie between others': the elements of its root, row-major, that
                               * they are, whatever layout the root has; of others without dims. NULL: there is none such */
    uint8_t *op_nothing;      /* [n_ops] 1: its outputs lie where it would put them; it need not run */
    mpl_buffer *op_workspace; /* [n_ops] its workspace's buffer, or MPL_NONE */
    uint32_t *
        step_of; /* [n_ops] step of the operation: its position in the order, and behind the steps at which blocks begin
                         * and end (mpl_program) */
    uint64_t pinned_bytes; /* storage of pinned values, aligned. [byte] */
    mpl_places *places;    /* NULL: no control flow. Owned. */
} mpl_value_map;

static inline bool mpl_value_strided(const mpl_value_map *map, mpl_value v)
{
    return map->value_box != NULL && map->value_box[v].shape.rank > 0;
}

/* What control flow copies, since it does not lie where it is needed: all that a plan with these places ever moves, but for
 * operations of the graph. A copy whose two sides turn out to be at one address in some round is not made then. */
typedef enum mpl_copy_when {
    MPL_COPY_ENTRY,   /* a carried value's first, once on entry to loop body `block` */
    MPL_COPY_SLICE,   /* a slice of a scan, as each round of `block` begins */
    MPL_COPY_CARRIED, /* a carried value, as each round of `block` ends */
    MPL_COPY_ROW,     /* a row, to where it is stacked, as each round of `block` ends */
    MPL_COPY_BRANCH,  /* a result, as branch `block` ends */
    MPL_COPY_BYPASS,  /* what a case in `block` hands on when no branch runs */
} mpl_copy_when;
typedef struct mpl_copy {
    mpl_copy_when when;
    uint32_t block;
    mpl_value from, to;
    uint64_t bytes; /* each time [byte] */
} mpl_copy;
/* *list, in the order of the operations, is the caller's (mpl_free); *n = 0 without control flow. O(size). */
mpl_status mpl_copies_of(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map, mpl_copy **list,
                         uint32_t *n);
const char *mpl_copy_name(mpl_copy_when when); /* "entry", "slice", "carried", "row", "branch", "bypass" */

/* Operands of a concat: copied into its result, or made inside it: where their bytes follow one another there, as parts that come and
 * go (`inside`); else as boxes of its elements, and the whole is there from the first operand on. */
typedef enum mpl_concat {
    MPL_CONCAT_AUTO, /* those made inside that do not raise the bound (peak live bytes, or the heaviest antichain) above that of copying
                      * all; of a few, the choice of the lowest bound, then of the fewest bytes copied, all of them looked at */
    MPL_CONCAT_SHARE, /* all that can be */
    MPL_CONCAT_COPY,
} mpl_concat;

typedef struct mpl_problem_options {
    bool in_place; /* offer in-place pairs */
    bool
        views; /* a view, and a piece of a split or slice that is one run of bytes, takes no memory; false: each is copied,
                    * operands of concats too */
    mpl_concat concat;
    const uint8_t *
        concat_shared; /* [n_ops] with MPL_CONCAT_AUTO: 1 what shares, if it can: decided before; NULL: by bounds */
    bool boxes; /* operands of concats may be boxes of the result, strided; false: runs of its bytes alone */
    bool pin_weights, pin_inputs, pin_outputs;
    unsigned
        own_pools;  /* bit k: values that are mpl_part k are planned, pinned or not, in a pool of their own */
    uint32_t align; /* of every buffer. [byte] power of two */
    uint64_t capacity;    /* of the value pool, or MPL_NO_CAPACITY */
    bool parallel;        /* safe in every execution of the graph: `before` decides, lifetimes are 0 */
    bool plan_workspaces; /* workspaces join the value pool instead of having their own */
    bool loop_copy;       /* every carried value is copied from round to round: the baseline */
    const uint64_t *op_workspace_bytes; /* [n_ops] or NULL: none */
} mpl_problem_options;

/* DESIGN's defaults: in-place and views on, weights, inputs and outputs pinned, 64-byte alignment, no capacity. */
mpl_problem_options mpl_problem_options_default(void);

/* An order as it is run: operations, and where blocks begin and end. Without control flow one step an operation. Steps of a block
 * stand in one piece before its owner's; those of a case's branches follow one another. Control goes from a step to the next,
 * but: before a `while`'s BEGIN, also to the owner (no round); from its END back to BEGIN, and to the owner; from an
 * exit test also to the owner; before a case's first BEGIN, to each BEGIN and to the owner; from its ENDs to the owner only. */
typedef enum mpl_step_kind { MPL_STEP_OP, MPL_STEP_BEGIN, MPL_STEP_END } mpl_step_kind;
typedef struct mpl_program {
    uint32_t n_steps;
    uint8_t *kind;        /* [n_steps] mpl_step_kind */
    uint32_t *of;         /* [n_steps] the operation, or the block */
    uint32_t *op_step;    /* [n_ops] */
    uint32_t *begin_step; /* [n_blocks] of BEGIN; block 0: 0 */
    uint32_t *end_step;   /* [n_blocks] of END; block 0: n_steps */
} mpl_program;
/* MPL_EINPUT when `order` is no permutation of the operations, or tears blocks apart; that each comes after what it reads is not
 * looked at. O(size). */
mpl_status mpl_program_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order, mpl_program **out);
void mpl_program_free(mpl_ctx *ctx, mpl_program *program);

/* Liveness as data flow over the order, then one buffer for each value that needs memory. order[n_ops] is a permutation
 * that respects the graph (MPL_EINPUT if it does not). A value that nobody uses lives for its one step. Pool 0
 * is "value"; then come options->own_pools by their names, those that have values; the last one, if operations have workspaces of
 * their own pool, is "workspace". What lies in a pool of its own shares no storage with others: no operand outside is overwritten.
 * Zero-byte values get no buffer. With options->parallel the order only numbers the steps of in-place pairs: the relation comes from the graph.
 * O(size log size); parallel O(ops * edges / 64 + buffers^2), buffers^2 / 8 bytes. */
mpl_status mpl_problem_from_graph(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                                  const mpl_problem_options *options, mpl_problem **problem,
                                  mpl_value_map **map);
void mpl_problem_free(mpl_ctx *ctx, mpl_problem *p);
void mpl_before_free(mpl_ctx *ctx, mpl_before *before);
void mpl_access_free(mpl_ctx *ctx, mpl_access *access);
void mpl_value_map_free(mpl_ctx *ctx, mpl_value_map *map);

/* A problem of n buffers without names in one pool "value", 1-byte aligned, all arrays above that are not optional
 * allocated; the caller fills bytes, birth, death. */
mpl_status mpl_problem_new(mpl_ctx *ctx, const char *name, uint32_t n, mpl_problem **out);

/* Births and deaths from times, birth[b] < death[b]: the times themselves, or their ranks among all times where these are
 * sparse, so that no two lifetimes come to meet or part. Sets n_steps. O(n log n), 16 n bytes of scratch. */
mpl_status mpl_problem_set_times(mpl_ctx *ctx, const uint64_t *birth, const uint64_t *death, mpl_problem *p);

/* Checks ranges: bytes > 0, birth < death <= n_steps, align a power of two, pools, pairs. MPL_EINPUT naming the buffer. */
mpl_status mpl_problem_check(mpl_ctx *ctx, const mpl_problem *p);

/* ---- which concats share ----------------------------------------------------------------------------------------- */

/* How that was decided; by exact plans: planners/search/concat.h. */
typedef enum mpl_concat_by {
    MPL_CONCAT_BY_NOTHING, /* there was nothing to decide */
    MPL_CONCAT_BY_GREEDY,  /* by what stands at the peak, again and again */
    MPL_CONCAT_BY_BOUND,   /* by the bound of every choice */
    MPL_CONCAT_BY_EXACT,   /* by the least bytes of every choice that its bound does not exclude */
} mpl_concat_by;

typedef struct mpl_concat_choice {
    uint64_t bytes;        /* its bound, or what its best plan needs [byte] */
    uint64_t shared_bytes; /* of the results of those that share [byte] */
    uint32_t set;          /* bit i: op[i] shares */
} mpl_concat_choice;

typedef struct mpl_concats {
    uint32_t n;                /* that can share */
    uint8_t *shared;           /* [n_ops] what the options, or the bounds, choose */
    mpl_concat_by by;          /* those two are there for an open MPL_CONCAT_AUTO only: */
    mpl_op *op;                /* [n] ascending */
    uint32_t n_choices;        /* 2^n, or 0: too many to look at each */
    mpl_concat_choice *choice; /* [n_choices] by set, with their bounds */
} mpl_concats;

mpl_status mpl_concats_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                           const mpl_problem_options *options, mpl_concats **out);
void mpl_concats_free(mpl_ctx *ctx, mpl_concats *concats);
/* Fewer bytes; of as many, more that need no copy; then the lower set. */
bool mpl_concat_better(const mpl_concat_choice *a, const mpl_concat_choice *b);
const char *mpl_concat_by_name(mpl_concat_by by); /* "the bounds of all choices", .. */

/* A name for the contents: all that decides which plans are valid. Left out are names and what only guides planners
 * (type and shape ids, no_reuse, access), so that a plan file, which embeds no more, can be checked against it. */
uint64_t mpl_problem_hash(const mpl_problem *p);

/* Whether a and b may never overlap in memory, in-place pairs aside: overlapping lifetimes, or, under parallel, neither
 * before the other. Buffers of different pools do not conflict. O(1). */
bool mpl_conflict(const mpl_problem *p, mpl_buffer a, mpl_buffer b);

/* The families of a problem with p->inside: item[begin[b] .. begin[b + 1]) are the parts of the family whose lowest is b, ascending,
 * b among them; of any other b there are none. One that is in no family is one of one part. */
typedef struct mpl_families {
    uint32_t *begin; /* [n + 1] */
    mpl_buffer *item;
} mpl_families;
mpl_status mpl_families_new(mpl_ctx *ctx, const mpl_problem *p, mpl_families *out);
void mpl_families_free(mpl_ctx *ctx, mpl_families *families);

/* The problem as planners see it that know no families: each is one buffer of all its bytes, alive from its first part's birth to its
 * last part's death, without gaps; under a partial order it is before what all its parts are before. In-place pairs of parts, the
 * access graph and gaps of parts are left out. into[n]: the buffer of *out that each buffer lies in, inside_at[] behind its start;
 * every plan of *out is one of p. O(n), under a partial order O(n^2). */
mpl_status mpl_problem_hull(mpl_ctx *ctx, const mpl_problem *p, mpl_problem **out, uint32_t *into);

/* Name of a buffer for messages: its own, else "#id". text holds at least 24 bytes. */
const char *mpl_buffer_label(const mpl_problem *p, mpl_buffer b, char *text);

/* Time runs backwards: lifetimes are mirrored in [0, n_steps]. Every plan remains one; twice gives the original. MPL_EINPUT: a
 * partial order, in-place pairs or operations, which have a direction. */
mpl_status mpl_problem_reverse(mpl_ctx *ctx, mpl_problem *p);
/* Renumbers the buffers at random, names and all; offset[n] (may be NULL), a plan, goes along. MPL_EINPUT as above. */
mpl_status mpl_problem_shuffle(mpl_ctx *ctx, mpl_problem *p, uint64_t seed, uint64_t *offset);

/* A buffer list of n buffers for tests and measurements of speed: one birth a step, lifetimes uniform in [1, 2 * alive), so
 * that about `alive` buffers are alive at a time, sizes of 64 bytes to 1 MiB spread over the powers of two. The same on every
 * machine. n > 0, alive > 0. */
mpl_status mpl_problem_synthetic(mpl_ctx *ctx, uint32_t n, uint32_t alive, uint64_t seed, mpl_problem **out);

/* n buffers that fill 1,024 steps times 1 MiB (in units of 1 KiB) without a gap: a rectangle cut n - 1 times at random. Their
 * least height is 1,048,576 bytes. The same on every machine. 0 < n <= 100,000; O(n^2). */
mpl_status mpl_problem_synthetic_guillotine(mpl_ctx *ctx, uint32_t n, uint64_t seed, mpl_problem **out);

/* ---- orders ---------------------------------------------------------------------------------------------- */

/* One call of an order that searches: what the caller asks, and what was found. */
typedef struct mpl_order_run {
    mpl_ctx *ctx;
    const mpl_problem_options *options; /* what counts as live; NULL: the defaults. Always read as serial */
    uint64_t seed;
    uint64_t budget_ticks; /* operations run or tried; UINT64_MAX: the order's own default */
    int64_t deadline_ns;   /* mpl_clock_ns() after which it stops; INT64_MAX: none */
    uint32_t n_params;     /* key=value pairs of the command line */
    const char *const *param_key;
    const char *const *param_value;

    /* Written. In bytes of pool 0 that are live at once, every buffer in whole multiples of the alignment, an output that may
     * overwrite an input counted with it: mpl_peak_live of the order's problem, but for the rest of one last slot. */
    uint64_t live_bytes;  /* the order's peak */
    uint64_t bound_bytes; /* proved: no order has less; 0: nothing is */
    uint64_t ticks;
    bool stopped_by_clock;
    const char *method; /* what proved the bound: "cut", "series", "search"; NULL: nothing */
} mpl_order_run;

void mpl_order_run_init(mpl_order_run *run, mpl_ctx *ctx); /* seed 1, no limits, default options */

typedef struct mpl_order_kind {
    const char *name;
    const char *about;                                                   /* one line */
    mpl_status (*make)(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order); /* order[n_ops] to be written */
    const char *params; /* "width=N,..": what it takes, for help and checks; NULL: it does not search */
    mpl_status (*search)(mpl_order_run *run, const mpl_graph *g, mpl_op *order); /* NULL with params */
} mpl_order_kind;

/* Any order, by search where the kind searches. A graph with control flow gets an order for each block, as if it stood alone
 * (nothing is proved for the whole), the blocks of an operation right before it, and exit tests as early as can be; `given`
 * stays as it is. MPL_EINPUT: a parameter that the kind has not. */
mpl_status mpl_order_make(mpl_order_run *run, const mpl_order_kind *kind, const mpl_graph *g, mpl_op *order);
/* The same with nothing asked for. */
mpl_status mpl_order_of(mpl_ctx *ctx, const mpl_graph *g, const mpl_order_kind *kind, mpl_op *order);

/* A topological order drawn from the seed: at each step, one of the ready operations. O(size). */
mpl_status mpl_order_random(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed, mpl_op *order);
/* Draws the order of the outermost operations anew; what stands in blocks goes along with its owner, in the order that it has. */
mpl_status mpl_order_shuffle(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed, mpl_op *order);

extern const mpl_order_kind *const mpl_orders[];        /* NULL-terminated, made from analysis/orders.def */
const mpl_order_kind *mpl_order_find(const char *name); /* NULL: there is none */

/* ---- bounds ---------------------------------------------------------------------------------------------- */

/* Peak live bytes of one pool of a serial problem: max over steps of the live bytes, where an output counts together with at
 * most one input that it may overwrite at that step, at the largest saving. Sizes are rounded up to the pool's least
 * alignment, less the largest rest among the live ones, since a plan ends where its topmost buffer ends. No valid plan
 * needs less. live[n_steps] (may be NULL) receives each step's figure, *peak_step (may be NULL) the first step that
 * reaches the peak. MPL_EINPUT: a sum passes 2^63, or the problem has a partial order. O(n log n + n_steps). */
mpl_status mpl_peak_live(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *peak, uint64_t *live,
                         uint32_t *peak_step);

/* The bound of either safety: peak live bytes, or the heaviest antichain, raised to the next end that alignments allow: a pool ends
 * where one of its buffers does, and that begins at a multiple of its alignment. member[n] (may be NULL) receives 1 for a set
 * of pairwise conflicting buffers whose sizes add up to it before it is raised, the witness: sizes in whole slots of the pool's least alignment, less
 * the largest rest of a last slot among them. All 0 where one operation may overwrite fewer inputs than it has outputs to
 * put there: then pairs remain among the live, and the bound stands without a witness. */
mpl_status mpl_lower_bound(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes,
                           uint8_t *member);

/* The same before it is raised. */
mpl_status mpl_witness_bound(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes,
                             uint8_t *member);

/* Sum of all buffers of one pool, each rounded up to its alignment: nothing shared. [byte] */
mpl_status mpl_naive_bytes(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes);

/* ---- files ------------------------------------------------------------------------------------------------ */

/* MiniMalloc CSV: a header that names columns (id, lower or begin, upper or end, size, and alignment, offset if
 * there), one buffer a row, lifetimes half-open. The ids become names. offset (may be NULL): *offset receives an array of
 * the offsets where the file has them, else NULL. Times past 2^22 are renumbered to their ranks. MPL_EINPUT with one line
 * `FILE:LINE: ..`. Writing gives the buffers of pool 0, by name where every name can stand in a row, else by id, and each
 * family as one buffer (mpl_problem_hull): a plan with offsets may overlap there in parts that are not needed at once. */
mpl_status mpl_csv_read(mpl_ctx *ctx, const char *path, mpl_problem **out, uint64_t **offset);
/* A recorded problem with a partial order: NAME.tensors.csv (`id,bytes[,buffer,offset]`) with NAME.before.csv (`a,b`, arcs)
 * beside it, as libnnc's were recorded. record (may be NULL) receives the production plan: block and offset within
 * it per tensor. Alignment 64, as libnnc's on CPU. */
typedef struct mpl_nnc_record {
    bool has_plan;
    uint64_t *block;
    uint64_t *offset; /* within the block [byte] */
} mpl_nnc_record;
mpl_status mpl_nnc_read(mpl_ctx *ctx, const char *path, mpl_problem **out, mpl_nnc_record *record);
void mpl_nnc_record_fini(mpl_ctx *ctx, mpl_nnc_record *record);
mpl_status mpl_csv_write(mpl_ctx *ctx, const char *path, const mpl_problem *p, const uint64_t *offset);

#endif
