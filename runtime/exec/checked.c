/* checked.c -- --checked: dead bytes of every slab hold a pattern, live blocks have a checksum,
 * slabs have guards.
 *
 * Before a step, the blocks born in it are filled with the pattern (NaN in every floating type),
 * unless they take over a place in place. After it, every byte that the step may not write must be
 * unchanged, and blocks that die are filled again. So a wrong lifetime or offset shows as a message
 * here, or as a NaN in the outputs. It uses only the backend's copies, so it works on any device.
 * Cost: each step reads all slabs but the weights. */
#include "runtime/exec/exec_priv.h"

#include <stdlib.h>

#define DEAD        0xff
#define GUARD       0xab
#define STAGE_BYTES ((uint64_t)MPL_STAGE_BYTES)
#define BEFORE_ALL  MPL_NONE /* before the first step */

static int compare_place(const void *x, const void *y, void *exec)
{
    uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
    const mpl_block *block = ((const mpl_exec *)exec)->block, *a = &block[i], *b = &block[k];

    if (a->slab != b->slab)
        return a->slab < b->slab ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (i > k) - (i < k);
}

bool mpl_checked_is_weights(const mpl_exec *exec, uint32_t slab)
{
    return slab == exec->n_pools + MPL_SLAB_WEIGHTS || slab == exec->n_pools + MPL_SLAB_STATE;
}

/* An input that is present before the run begins. */
static bool is_given(const mpl_exec *exec, const mpl_block *block)
{
    return block->slab == exec->n_pools + MPL_SLAB_PINNED && block->value != MPL_NONE &&
           exec->g->value_role[block->value] == MPL_INPUT;
}

static bool is_alive(const mpl_exec *exec, const mpl_block *block, uint32_t step)
{
    if (step == BEFORE_ALL)
        return is_given(exec, block);
    return block->birth != MPL_NONE && block->birth <= step && step < block->death;
}

static uint64_t mix(uint64_t sum, const char *data, uint64_t bytes)
{
    uint64_t i = 0, word;

    for (; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, data + i, sizeof word);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    return mpl_hash(sum, data + i, bytes - i);
}

mpl_status mpl_checked_sum(mpl_exec *exec, const char *at, uint64_t bytes, uint64_t *out)
{
    uint64_t sum = MPL_HASH_SEED;

    for (uint64_t i = 0; i < bytes; i += STAGE_BYTES) {
        uint64_t n = mpl_min_u64(STAGE_BYTES, bytes - i);

        MPL_PASS(exec->backend->download(exec->dev, exec->stage, at + i, n));
        sum = mix(sum, exec->stage, n);
    }
    *out = sum;
    return MPL_OK;
}

static mpl_status sum_block(mpl_exec *exec, const mpl_block *block, uint64_t *out)
{
    return mpl_checked_sum(exec, mpl_exec_at(exec, block->slab, block->offset), block->bytes, out);
}

/* *where: the first of `bytes` bytes that is not `want`, or `bytes`. */
static mpl_status find_other(mpl_exec *exec, const char *at, uint64_t bytes, unsigned char want,
                             uint64_t *where)
{
    for (uint64_t i = 0; i < bytes; i += STAGE_BYTES) {
        uint64_t n = mpl_min_u64(STAGE_BYTES, bytes - i);

        MPL_PASS(exec->backend->download(exec->dev, exec->stage, at + i, n));
        if ((unsigned char)exec->stage[0] == want &&
            memcmp(exec->stage, exec->stage + 1, n - 1) == 0)
            continue; /* nearly always all bytes are equal: one fast comparison */
        for (uint64_t k = 0; k < n; k++)
            if ((unsigned char)exec->stage[k] != want) {
                *where = i + k;
                return MPL_OK;
            }
    }
    *where = bytes;
    return MPL_OK;
}

mpl_status mpl_checked_fill(mpl_exec *exec, uint32_t slab, uint64_t from, uint64_t to)
{
    return from < to
               ? exec->backend->fill(exec->dev, mpl_exec_at(exec, slab, from), DEAD, to - from)
               : MPL_OK;
}

const char *mpl_checked_slab(const mpl_exec *exec, uint32_t slab, char text[32])
{
    static const char *const fixed[] = {"the pinned values", "the weights", "the workspaces"};

    if (slab >= exec->n_pools)
        return fixed[slab - exec->n_pools];
    snprintf(text, 32, "pool %u", slab);
    return text;
}

static const char *block_label(const mpl_exec *exec, const mpl_block *block)
{
    return block->value != MPL_NONE ? exec->g->value_name[block->value]
           : block->op != MPL_NONE  ? exec->g->op_name[block->op]
                                    : "?";
}

mpl_status mpl_checked_dead(mpl_exec *exec, uint32_t slab, uint64_t from, uint64_t to,
                            uint32_t step, const char *who)
{
    uint64_t where;
    char text[32];

    if (from >= to)
        return MPL_OK;
    MPL_PASS(find_other(exec, mpl_exec_at(exec, slab, from), to - from, DEAD, &where));
    if (where < to - from)
        return MPL_ERROR(exec->ctx, MPL_EINVALID,
                         "step %u, %s wrote to byte %" PRIu64 " of %s, where nothing is alive",
                         step, who, from + where, mpl_checked_slab(exec, slab, text));
    return MPL_OK;
}

static const char *op_text(const mpl_exec *exec, uint32_t step, char text[160])
{
    mpl_op op = mpl_exec_op_of(exec, step);

    snprintf(text, 160, "operation '%.140s'", op != MPL_NONE ? exec->g->op_name[op] : "none");
    return text;
}

/* Fills (before all) or checks (after a step) what no living block covers. */
static mpl_status visit_uncovered(mpl_exec *exec, uint32_t step, const char *who)
{
    uint32_t k = 0;

    for (uint32_t slab = 0; slab < exec->n_slabs; slab++) {
        uint64_t end = 0;

        for (; k < exec->n_blocks && exec->block[exec->by_place[k]].slab == slab; k++) {
            const mpl_block *block = &exec->block[exec->by_place[k]];

            if (!is_alive(exec, block, step))
                continue;
            MPL_PASS(step == BEFORE_ALL
                         ? mpl_checked_fill(exec, slab, end, block->offset)
                         : mpl_checked_dead(exec, slab, end, block->offset, step, who));
            end = mpl_max_u64(end, block->offset + block->bytes);
        }
        if (mpl_checked_is_weights(exec, slab))
            continue;
        MPL_PASS(step == BEFORE_ALL
                     ? mpl_checked_fill(exec, slab, end, exec->slab[slab].bytes)
                     : mpl_checked_dead(exec, slab, end, exec->slab[slab].bytes, step, who));
    }
    return MPL_OK;
}

mpl_status mpl_checked_init(mpl_exec *exec)
{
    const mpl_slab *weights = &exec->slab[exec->n_pools + MPL_SLAB_WEIGHTS];

    MPL_PASS(mpl_new(exec->ctx, exec->stage, STAGE_BYTES));
    MPL_PASS(mpl_new(exec->ctx, exec->by_place, exec->n_blocks));
    for (uint32_t i = 0; i < exec->n_blocks; i++)
        exec->by_place[i] = i;
    qsort_r(exec->by_place, exec->n_blocks, sizeof *exec->by_place, compare_place, exec);
    return mpl_checked_sum(exec, weights->base, weights->bytes, &exec->weights_sum);
}

mpl_status mpl_checked_begin(mpl_exec *exec)
{
    for (uint32_t i = 0; i < exec->n_slabs; i++) {
        const mpl_slab *slab = &exec->slab[i];

        MPL_PASS(exec->backend->fill(exec->dev, slab->base - slab->guard, GUARD, slab->guard));
        MPL_PASS(exec->backend->fill(exec->dev, slab->base + slab->bytes, GUARD, slab->guard));
    }
    MPL_PASS(visit_uncovered(exec, BEFORE_ALL, NULL));
    for (uint32_t i = 0; i < exec->n_blocks; i++)
        if (is_given(exec, &exec->block[i]))
            MPL_PASS(sum_block(exec, &exec->block[i], &exec->block[i].sum));
    return MPL_OK;
}

/* Block number i that the operation of a step writes to: those of its outputs, of its workspace, of
 * staged operands. False after the last one. */
static bool written_block(const mpl_exec *exec, uint32_t step, uint32_t i, uint32_t *block)
{
    const mpl_graph *g = exec->g;
    mpl_op op = mpl_exec_op_of(exec, step);

    if (op == MPL_NONE || !mpl_layout_touches(exec, op))
        return false;
    for (uint32_t at = g->op_out_begin[op]; at < g->op_out_begin[op + 1]; at++) {
        mpl_value v = g->op_out[at];
        uint32_t n = v != MPL_NONE ? mpl_exec_n_blocks(exec, v) : 1;

        if (i < n) {
            *block = v == MPL_NONE || exec->value_block[v] == MPL_NONE ? MPL_NONE
                                                                       : exec->value_block[v] + i;
            return true;
        }
        i -= n;
    }
    if (i > 0)
        return mpl_stage_block(exec, op, i - 1, block);
    *block = exec->op_block[op];
    return true;
}

/* Whether a block's contents arrived: an update reads what it overwrites. */
static bool has_arrived(const mpl_exec *exec, const mpl_block *block)
{
    return block->value != MPL_NONE && exec->g->value_op[block->value] == MPL_NONE;
}

mpl_status mpl_checked_before(mpl_exec *exec, uint32_t step)
{
    uint32_t id;

    for (uint32_t i = 0; written_block(exec, step, i, &id); i++) {
        const mpl_block *block = &exec->block[id == MPL_NONE ? 0 : id];

        if (id != MPL_NONE && block->birth == step && block->over == MPL_NONE &&
            !has_arrived(exec, block))
            MPL_PASS(
                mpl_checked_fill(exec, block->slab, block->offset, block->offset + block->bytes));
    }
    for (uint32_t i = 0; i < exec->n_arrivals; i++) { /* all that arrived just now */
        mpl_block *block = &exec->block[exec->value_block[exec->arrival_value[i]]];

        if (block->birth == step)
            MPL_PASS(sum_block(exec, block, &block->sum));
    }
    return MPL_OK;
}

mpl_status mpl_checked_guards(mpl_exec *exec, uint32_t step, const char *who)
{
    for (uint32_t i = 0; i < exec->n_slabs; i++) {
        const mpl_slab *slab = &exec->slab[i];
        uint64_t low, high;
        char text[32];

        MPL_PASS(find_other(exec, slab->base - slab->guard, slab->guard, GUARD, &low));
        MPL_PASS(find_other(exec, slab->base + slab->bytes, slab->guard, GUARD, &high));
        if (low < slab->guard || high < slab->guard)
            return MPL_ERROR(exec->ctx, MPL_EINVALID,
                             "step %u, %s wrote outside of %s, %s its %" PRIu64 " bytes", step, who,
                             mpl_checked_slab(exec, i, text),
                             low < slab->guard ? "before" : "behind", slab->bytes);
    }
    return MPL_OK;
}

/* Whether the step writes to block `id`, or to one that takes over its place. */
static bool is_written(const mpl_exec *exec, uint32_t step, uint32_t id)
{
    uint32_t other;

    for (uint32_t i = 0; written_block(exec, step, i, &other); i++)
        if (other != MPL_NONE &&
            (other == id || (exec->block[other].over == id && exec->block[other].birth == step)))
            return true;
    return false;
}

/* Reports a living block that the step must not change, and its own block that overlaps it. */
static mpl_status report(mpl_exec *exec, uint32_t step, const mpl_block *block)
{
    uint32_t id;
    const char *culprit = NULL;
    char text[32], overlap[128] = "", who[160];

    for (uint32_t i = 0; culprit == NULL && written_block(exec, step, i, &id); i++) {
        const mpl_block *other = &exec->block[id == MPL_NONE ? 0 : id];

        if (id != MPL_NONE && other->slab == block->slab &&
            other->offset < block->offset + block->bytes &&
            block->offset < other->offset + other->bytes)
            culprit = block_label(exec, other);
    }
    if (culprit != NULL)
        snprintf(overlap, sizeof overlap, ", which its '%.100s' overlaps", culprit);
    return MPL_ERROR(exec->ctx, MPL_EINVALID,
                     "step %u, %s changed buffer '%.100s'%s: bytes [%" PRIu64 ", %" PRIu64
                     ") of %s, alive in steps [%u, %u)",
                     step, op_text(exec, step, who), block_label(exec, block), overlap,
                     block->offset, block->offset + block->bytes,
                     mpl_checked_slab(exec, block->slab, text), block->birth, block->death);
}

static mpl_status check_living(mpl_exec *exec, uint32_t step)
{
    for (uint32_t i = 0; i < exec->n_blocks; i++) {
        mpl_block *block = &exec->block[i];
        uint64_t sum;

        if (!is_alive(exec, block, step))
            continue;
        MPL_PASS(sum_block(exec, block, &sum));
        if (sum != block->sum && !is_written(exec, step, i))
            MPL_PASS(report(exec, step, block));
        block->sum = sum;
    }
    return MPL_OK;
}

uint64_t mpl_checked_inherited(const mpl_exec *exec, uint32_t step, uint32_t id)
{
    uint64_t bytes = 0;
    uint32_t other;

    for (uint32_t i = 0; written_block(exec, step, i, &other); i++)
        if (other != MPL_NONE && exec->block[other].over == id && exec->block[other].birth == step)
            bytes = mpl_max_u64(bytes, exec->block[other].bytes);
    return bytes;
}

mpl_status mpl_checked_after(mpl_exec *exec, uint32_t step)
{
    char who[160];

    MPL_PASS(mpl_checked_guards(exec, step, op_text(exec, step, who)));
    MPL_PASS(check_living(exec, step));
    MPL_PASS(visit_uncovered(exec, step, who));
    for (uint32_t i = 0; i < exec->n_blocks; i++) {
        const mpl_block *block = &exec->block[i];

        if (block->birth != MPL_NONE && block->death == step + 1 &&
            block->death < mpl_exec_n_steps(exec))
            MPL_PASS(mpl_checked_fill(exec, block->slab,
                                      block->offset + mpl_checked_inherited(exec, step, i),
                                      block->offset + block->bytes));
    }
    return MPL_OK;
}

mpl_status mpl_checked_rest(mpl_exec *exec)
{
    return visit_uncovered(exec, mpl_exec_n_steps(exec) - 1, "or one before it, an operation");
}

mpl_status mpl_checked_end(mpl_exec *exec)
{
    const mpl_slab *weights = &exec->slab[exec->n_pools + MPL_SLAB_WEIGHTS];
    uint64_t sum;

    MPL_PASS(mpl_checked_sum(exec, weights->base, weights->bytes, &sum));
    if (sum != exec->weights_sum)
        return MPL_ERROR(exec->ctx, MPL_EINVALID, "graph '%s': a weight was changed by the run",
                         exec->g->name);
    return MPL_OK;
}
