/* malloced.c -- a run with one malloc and free for each buffer. See malloced.h.
 *
 * Buffers that share bytes while both live (parts of a concat in its result) are one piece, as in a
 * framework that makes them in place. An in-place pair is two pieces, because there is no plan. An
 * address in a piece is found by its distance from the piece's first byte in the plan. */
#include "runtime/exec/malloced.h"

#include <stdlib.h>

#include "runtime/exec/exec_priv.h"

typedef struct piece {
    uint64_t from, to;     /* in the slab [byte] */
    uint32_t birth, death; /* [step] */
    uint32_t begin;        /* its first slot */
    void *memory;          /* NULL: not alive */
} piece;

/* A pointer of an operand or workspace into a piece. */
typedef struct slot {
    void **at;
    void *home; /* its address in the arena */
    uint32_t piece;
    uint64_t distance; /* from the piece's first byte [byte] */
} slot;

struct mpl_malloced {
    mpl_exec *exec;
    uint32_t n_pieces, n_slots;
    piece *piece;
    slot *slot;                    /* sorted by piece */
    uint32_t *by_birth, *by_death; /* [n_pieces] */
    uint64_t peak_bytes;
    size_t align;
};

/* ---- pieces ---- */

static uint32_t root_of(uint32_t *parent, uint32_t b)
{
    while (parent[b] != b)
        b = parent[b] = parent[parent[b]];
    return b;
}

static void join(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = root_of(parent, a), b = root_of(parent, b);
    if (a != b)
        parent[a > b ? a : b] = a > b ? b : a;
}

static bool is_planned(const mpl_exec *exec, uint32_t b)
{
    return b != MPL_NONE && exec->block[b].slab < exec->n_memories &&
           exec->block[b].birth != MPL_NONE && exec->block[b].bytes > 0;
}

/* Both are alive, they share a byte, and neither takes the other's place. */
static bool shares(const mpl_exec *exec, uint32_t i, uint32_t j)
{
    const mpl_block *block = &exec->block[i], *b = &exec->block[j];

    return block->slab == b->slab && block->over != j && b->over != i && block->birth < b->death &&
           b->birth < block->death && block->offset < b->offset + b->bytes &&
           b->offset < block->offset + block->bytes;
}

/* A skipped operation relies on its operands overlapping. */
static void join_operands(const mpl_exec *exec, uint32_t *parent, mpl_op op)
{
    const mpl_graph *g = exec->g;
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op],
             n = n_in + g->op_out_begin[op + 1] - g->op_out_begin[op], first = MPL_NONE;

    for (uint32_t i = 0; i < n; i++) {
        mpl_value v =
            i < n_in ? g->op_in[g->op_in_begin[op] + i] : g->op_out[g->op_out_begin[op] + i - n_in];

        if (v == MPL_NONE || !is_planned(exec, exec->value_block[v]))
            continue;
        first = first == MPL_NONE ? exec->value_block[v] : first;
        if (exec->block[first].slab == exec->value_slab[v])
            join(parent, first, exec->value_block[v]);
    }
}

static void join_blocks(const mpl_exec *exec, uint32_t *parent)
{
    const mpl_graph *g = exec->g;

    for (uint32_t i = 0; i < exec->n_blocks; i++)
        for (uint32_t j = 0; j < i && is_planned(exec, i); j++)
            if (is_planned(exec, j) && shares(exec, i, j))
                join(parent, i, j);
    for (mpl_value v = 0; v < g->n_values; v++)
        for (uint32_t k = 1; exec->value_blocks != NULL && k < exec->value_blocks[v]; k++)
            join(parent, exec->value_block[v], exec->value_block[v] + k);
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (exec->op_skipped[op])
            join_operands(exec, parent, op);
}

/* piece_of[b] of each block; MPL_NONE: not planned. */
static mpl_status make_pieces(mpl_ctx *ctx, mpl_malloced *malloced, uint32_t *piece_of)
{
    mpl_status st = MPL_OK;
    const mpl_exec *exec = malloced->exec;
    uint32_t *parent = NULL;

    MPL_TRY(mpl_new(ctx, parent, exec->n_blocks));
    for (uint32_t b = 0; b < exec->n_blocks; b++)
        parent[b] = b, piece_of[b] = MPL_NONE;
    join_blocks(exec, parent);
    MPL_TRY(mpl_new(ctx, malloced->piece, exec->n_blocks));
    for (uint32_t b = 0; b < exec->n_blocks; b++) {
        const mpl_block *block = &exec->block[b];
        uint32_t root = root_of(parent, b);
        piece *p;

        if (!is_planned(exec, b))
            continue;
        if (piece_of[root] == MPL_NONE) {
            malloced->piece[malloced->n_pieces] =
                (piece){.from = block->offset, .birth = block->birth};
            piece_of[root] = malloced->n_pieces++;
        }
        piece_of[b] = piece_of[root];
        p = &malloced->piece[piece_of[b]];
        p->from = mpl_min_u64(p->from, block->offset);
        p->to = mpl_max_u64(p->to, block->offset + block->bytes);
        p->birth = block->birth < p->birth ? block->birth : p->birth;
        p->death = block->death > p->death ? block->death : p->death;
    }
out:
    mpl_free(ctx, parent);
    return st;
}

static void add_slot(mpl_malloced *malloced, void **at, uint32_t piece_id, uint64_t offset)
{
    malloced->slot[malloced->n_slots++] =
        (slot){at, *at, piece_id, offset - malloced->piece[piece_id].from};
}

static void add_operands(mpl_malloced *malloced, const uint32_t *piece_of, const mpl_value *value,
                         mpl_tensor *operand, uint32_t n)
{
    const mpl_exec *exec = malloced->exec;

    for (uint32_t i = 0; i < n; i++)
        if (value[i] != MPL_NONE && exec->value_block[value[i]] != MPL_NONE &&
            piece_of[exec->value_block[value[i]]] != MPL_NONE)
            add_slot(malloced, &operand[i].data, piece_of[exec->value_block[value[i]]],
                     exec->value_offset[value[i]]);
}

static int by_piece(const void *a, const void *b)
{
    const slot *x = a, *y = b;

    return x->piece != y->piece ? (x->piece < y->piece ? -1 : 1)
                                : (x->at > y->at) - (x->at < y->at);
}

static mpl_status make_slots(mpl_ctx *ctx, mpl_malloced *malloced, const uint32_t *piece_of)
{
    mpl_exec *exec = malloced->exec;
    const mpl_graph *g = exec->g;
    uint32_t n_in = g->op_in_begin[g->n_ops], n_out = g->op_out_begin[g->n_ops];

    MPL_PASS(mpl_new(ctx, malloced->slot, (size_t)n_in + n_out + g->n_ops + 1));
    add_operands(malloced, piece_of, g->op_in, exec->in, n_in);
    add_operands(malloced, piece_of, g->op_out, exec->out, n_out);
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (exec->op_block[op] != MPL_NONE && piece_of[exec->op_block[op]] != MPL_NONE)
            add_slot(malloced, &exec->call[op].workspace, piece_of[exec->op_block[op]],
                     exec->block[exec->op_block[op]].offset);
    qsort(malloced->slot, malloced->n_slots, sizeof *malloced->slot, by_piece);
    for (uint32_t i = malloced->n_slots; i > 0; i--)
        malloced->piece[malloced->slot[i - 1].piece].begin = i - 1;
    return MPL_OK;
}

/* Sorts births and deaths by step, then piece, and finds the peak of requested bytes. O(pieces^2)
 * at worst. */
static mpl_status make_calendar(mpl_ctx *ctx, mpl_malloced *malloced)
{
    uint64_t live = 0;
    uint32_t born = 0, dead = 0;

    MPL_PASS(mpl_new_each(ctx, malloced->n_pieces, malloced->by_birth, malloced->by_death));
    for (uint32_t s = 0; s <= malloced->exec->g->n_ops; s++)
        for (uint32_t p = 0; p < malloced->n_pieces; p++) {
            if (malloced->piece[p].birth == s)
                malloced->by_birth[born++] = p;
            if (malloced->piece[p].death == s)
                malloced->by_death[dead++] = p;
        }
    mpl_assert(born == malloced->n_pieces && dead == malloced->n_pieces);
    for (uint32_t b = 0, d = 0; b < malloced->n_pieces; b++) {
        const piece *p = &malloced->piece[malloced->by_birth[b]];

        for (; malloced->piece[malloced->by_death[d]].death <= p->birth; d++)
            live -= malloced->piece[malloced->by_death[d]].to -
                    malloced->piece[malloced->by_death[d]].from;
        live += p->to - p->from;
        malloced->peak_bytes = mpl_max_u64(malloced->peak_bytes, live);
    }
    return MPL_OK;
}

mpl_status mpl_malloced_new(mpl_ctx *ctx, mpl_exec *exec, mpl_malloced **out)
{
    mpl_status st = MPL_OK;
    mpl_malloced *malloced = NULL;
    uint32_t *piece_of = NULL;

    if (exec->control != NULL || exec->options.checked || exec->n_arrivals > 0 ||
        exec->backend->replay != NULL)
        MPL_FAIL(ctx, MPL_EUNAVAIL,
                 "graph '%s': a run with one malloc a buffer needs host memory, pinned inputs, and "
                 "neither "
                 "control "
                 "flow nor --checked",
                 exec->g->name);
    MPL_TRY(mpl_new(ctx, malloced, 1));
    malloced->exec = exec;
    malloced->align = exec->backend->align > sizeof(void *) ? exec->backend->align : sizeof(void *);
    MPL_TRY(mpl_new(ctx, piece_of, exec->n_blocks));
    MPL_TRY(make_pieces(ctx, malloced, piece_of));
    MPL_TRY(make_slots(ctx, malloced, piece_of));
    MPL_TRY(make_calendar(ctx, malloced));
    *out = malloced, malloced = NULL;
out:
    mpl_free(ctx, piece_of);
    mpl_malloced_free(ctx, malloced);
    return st;
}

void mpl_malloced_free(mpl_ctx *ctx, mpl_malloced *malloced)
{
    if (malloced == NULL)
        return;
    mpl_free_each(ctx, malloced->piece, malloced->slot, malloced->by_birth, malloced->by_death,
                  malloced);
}

/* ---- running ---- */

/* Not mpl_alloc, which counts and zeroes: the allocator itself is measured. */
static mpl_status take_memory(mpl_malloced *malloced, uint32_t id)
{
    piece *p = &malloced->piece[id];

    if (posix_memalign(&p->memory, malloced->align, p->to - p->from) != 0) {
        p->memory = NULL;
        return MPL_ERROR(malloced->exec->ctx, MPL_EMEM,
                         "out of memory: a buffer of %" PRIu64 " bytes", p->to - p->from);
    }
    for (uint32_t i = p->begin; i < malloced->n_slots && malloced->slot[i].piece == id; i++)
        *malloced->slot[i].at = (char *)p->memory + malloced->slot[i].distance;
    return MPL_OK;
}

static void give_back(piece *self)
{
    free(self->memory);
    self->memory = NULL;
}

mpl_status mpl_malloced_run(mpl_malloced *malloced, int64_t *ns)
{
    mpl_status st = MPL_OK;
    mpl_exec *exec = malloced->exec;
    uint32_t born = 0, dead = 0;
    int64_t begin;

    MPL_TRY(mpl_exec_renew(exec));
    begin = mpl_clock_ns();
    for (uint32_t s = 0; s < exec->g->n_ops; s++) {
        for (; born < malloced->n_pieces && malloced->piece[malloced->by_birth[born]].birth == s;
             born++)
            MPL_TRY(take_memory(malloced, malloced->by_birth[born]));
        MPL_TRY(mpl_exec_run_op(exec, exec->order[s]));
        for (;
             dead < malloced->n_pieces && malloced->piece[malloced->by_death[dead]].death == s + 1;
             dead++)
            give_back(&malloced->piece[malloced->by_death[dead]]);
    }
    MPL_TRY(exec->backend->wait(exec->dev));
    if (ns != NULL)
        *ns = mpl_clock_ns() - begin;
out:
    for (uint32_t p = 0; p < malloced->n_pieces; p++)
        give_back(&malloced->piece[p]);
    for (uint32_t i = 0; i < malloced->n_slots; i++)
        *malloced->slot[i].at = malloced->slot[i].home;
    return st;
}

void mpl_malloced_facts(const mpl_malloced *malloced, uint32_t *n_calls, uint64_t *peak_bytes)
{
    *n_calls = malloced->n_pieces;
    *peak_bytes = malloced->peak_bytes;
}
