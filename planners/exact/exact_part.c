/* exact_part.c -- one connected part of a pool: its units, its two directions of time, and the
 * schedule of its searches.
 *
 * Idea     A search that goes wrong early rarely recovers, but another order of candidates often
 *          succeeds at once. So members (order, choice of cell, direction) take turns with small
 *          limits that grow from lap to lap. They share the states that failed. A member that ends
 *          below its limit has proved that there is no plan. */
#include "planners/exact/exact_priv.h"

#include "graphs/core/rng.h"
#include "planners/place/sort.h"

#define NODES_PER_ITEM 3 /* in lap 0; grows by half each lap */
#define NOISE_PER_LAP  4 /* places that candidates move at random */
#define MAX_LENGTH     (INT64_C(1) << 60)

enum { ORDER_WAT, ORDER_TAW, ORDER_AWT, ORDER_ZAW };

static const struct member {
    uint8_t order, pick, mirrored;
} members[] = {
    {ORDER_WAT, MPL_PICK_LOW, 0},         {ORDER_WAT, MPL_PICK_LOW, 1},
    {ORDER_TAW, MPL_PICK_TIGHT, 0},       {ORDER_WAT, MPL_PICK_SCORE_HIGH, 0},
    {ORDER_TAW, MPL_PICK_TIGHT, 1},       {ORDER_WAT, MPL_PICK_SCORE_HIGH, 1},
    {ORDER_AWT, MPL_PICK_SCORE_TIGHT, 0}, {ORDER_AWT, MPL_PICK_SCORE_TIGHT, 1},
    {ORDER_WAT, MPL_PICK_TIGHT, 0},       {ORDER_ZAW, MPL_PICK_LOW, 0},
    {ORDER_WAT, MPL_PICK_TIGHT, 1},       {ORDER_ZAW, MPL_PICK_LOW, 1},
};

/* ---- units ---- */

/* The largest unit that divides all sizes (rounded up to the least alignment) and for which every
 * alignment and fixed offset is a multiple or has no effect. A pushed-down plan has only offsets
 * that are its multiples. */
static uint64_t find_unit(const mpl_problem *p, const mpl_buffer *buffer, uint32_t n)
{
    uint64_t grain = UINT64_MAX, unit = 0, before;

    for (uint32_t i = 0; i < n; i++)
        grain = mpl_min_u64(grain, p->align[buffer[i]]);
    for (uint32_t i = 0; i < n; i++) {
        unit = mpl_divisor(unit, (p->bytes[buffer[i]] + grain - 1) / grain * grain);
        if (p->fixed != NULL && p->fixed[buffer[i]] != MPL_UNFIXED)
            unit = mpl_divisor(unit, p->fixed[buffer[i]]);
    }
    do {
        before = unit;
        for (uint32_t i = 0; i < n; i++)
            if (unit % p->align[buffer[i]] != 0)
                unit = mpl_divisor(unit, p->align[buffer[i]]);
    } while (unit != before);
    return unit;
}

/* Bytes that the unit adds to an item, which the topmost item does not need. [byte] */
static uint64_t rest_of(const mpl_exact_part *part, uint32_t item)
{
    return (uint64_t)part->item[item].size * part->unit - part->item[item].bytes;
}

/* Live sums over time minus the largest rest of a live item (of any item in a vast part). */
static mpl_status find_bound(mpl_exact_part *part, const mpl_exact_case *exact_case)
{
    mpl_status st = MPL_OK;
    mpl_len *change = NULL, live = 0;
    uint64_t largest = 0;

    MPL_TRY(mpl_new(part->ctx, change, (size_t)exact_case->n_sections + 1));
    for (int32_t i = 0; i < exact_case->n; i++) {
        change[exact_case->left[i]] += exact_case->size[i];
        change[exact_case->right[i]] -= exact_case->size[i];
        largest = mpl_max_u64(largest, rest_of(part, exact_case->item[i]));
    }
    for (int32_t s = 0; s < exact_case->n_sections; s++) {
        uint64_t rest = part->vast ? largest : 0;

        live += change[s];
        for (int32_t k = exact_case->begin[s]; k < exact_case->begin[s + 1] && rest < largest; k++)
            rest = mpl_max_u64(rest, rest_of(part, exact_case->item[exact_case->member[k]]));
        part->bound = mpl_max_u64(part->bound, (uint64_t)live * part->unit - rest);
    }
    for (uint32_t i = 0; i < part->n; i++)
        part->bound = mpl_max_u64(part->bound,
                                  (uint64_t)part->item[i].start * part->unit + part->item[i].bytes);
out:
    mpl_free(part->ctx, change);
    return st;
}

mpl_status mpl_exact_part_init(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer *buffer, uint32_t n,
                               mpl_exact_part *part)
{
    uint64_t sum = 0;

    *part = (mpl_exact_part){.ctx = ctx, .n = n, .buffer = buffer, .memo.ctx = ctx};
    part->tick_limit = UINT64_MAX;
    part->node_limit = (uint64_t)NODES_PER_ITEM * n;
    part->n_members = sizeof members / sizeof *members;
    part->unit = find_unit(p, buffer, n);
    MPL_PASS(mpl_new_each(ctx, n, part->item, part->offset));
    for (uint32_t i = 0; i < n; i++) {
        mpl_buffer b = buffer[i];
        uint64_t fixed = p->fixed != NULL && p->fixed[b] != MPL_UNFIXED ? p->fixed[b] : 0;

        part->item[i] = (mpl_exact_item){
            .birth = p->birth[b],
            .death = p->death[b],
            .size = (mpl_len)((p->bytes[b] + part->unit - 1) / part->unit),
            .align = p->align[b] > part->unit ? (mpl_len)(p->align[b] / part->unit) : 1,
            .start = (mpl_len)(fixed / part->unit),
            .bytes = p->bytes[b],
            .fixed = p->fixed != NULL && p->fixed[b] != MPL_UNFIXED,
            .given_align = p->align[b],
        };
        sum += (uint64_t)part->item[i].size + (uint64_t)part->item[i].align;
        if (sum > MAX_LENGTH || (uint64_t)part->item[i].start > MAX_LENGTH)
            return MPL_REFUSE(ctx, "problem '%s': its bytes add up to more than a search can count",
                              p->name);
    }
    MPL_PASS(mpl_exact_case_new(ctx, part->item, n, false, &part->side[0].exact_case));
    part->vast = part->side[0].exact_case->member == NULL;
    return find_bound(part, part->side[0].exact_case);
}

mpl_status mpl_exact_part_made(mpl_ctx *ctx, uint64_t unit, uint64_t cap, uint32_t most,
                               mpl_exact_part *part)
{
    *part = (mpl_exact_part){.ctx = ctx, .unit = unit, .bound = cap, .memo.ctx = ctx};
    MPL_PASS(mpl_new(ctx, part->item, most));
    return mpl_new(ctx, part->offset, most);
}

void mpl_exact_part_add(mpl_exact_part *part, uint32_t birth, uint32_t death, mpl_len size)
{
    part->item[part->n++] = (mpl_exact_item){.birth = birth,
                                             .death = death,
                                             .size = size,
                                             .align = 1,
                                             .bytes = (uint64_t)size * part->unit};
}

static void side_fini(mpl_ctx *ctx, mpl_exact_side *side)
{
    mpl_exact_search_fini(&side->search);
    mpl_exact_state_free(ctx, side->state);
    mpl_exact_case_free(ctx, side->exact_case);
    for (int k = 0; k < MPL_EXACT_ORDERS; k++)
        mpl_free(ctx, side->rank[k]);
    mpl_free(ctx, side->noisy);
}

void mpl_exact_part_fini(mpl_exact_part *part)
{
    if (part->ctx == NULL)
        return;
    side_fini(part->ctx, &part->side[0]);
    side_fini(part->ctx, &part->side[1]);
    mpl_exact_memo_fini(&part->memo);
    mpl_free_each(part->ctx, part->buffer, part->item, part->offset);
}

uint64_t mpl_exact_part_height_above(const mpl_exact_part *part, uint64_t bytes)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < part->n; i++) {
        uint64_t rest = part->item[i].bytes % part->unit;

        least = mpl_min_u64(least,
                            bytes <= rest
                                ? rest
                                : (bytes - rest + part->unit - 1) / part->unit * part->unit + rest);
    }
    return least;
}

uint64_t mpl_exact_part_height_below(const mpl_exact_part *part, uint64_t bytes)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < part->n; i++) {
        uint64_t rest = part->item[i].bytes % part->unit;

        if (bytes >= rest)
            largest = mpl_max_u64(largest, (bytes - rest) / part->unit * part->unit + rest);
    }
    return largest;
}

/* ---- members ---- */

/* rank[n] of the items, descending by three of W lifetime, A area, T heaviest section, Z size. */
static mpl_status make_ranks(mpl_ctx *ctx, mpl_exact_side *side)
{
    enum { WIDTH, AREA, TOP, SIZE, N_KEYS };
    static const uint8_t by[MPL_EXACT_ORDERS][3] = {[ORDER_WAT] = {WIDTH, AREA, TOP},
                                                    [ORDER_TAW] = {TOP, AREA, WIDTH},
                                                    [ORDER_AWT] = {AREA, WIDTH, TOP},
                                                    [ORDER_ZAW] = {SIZE, AREA, WIDTH}};
    mpl_status st = MPL_OK;
    const mpl_exact_case *exact_case = side->exact_case;
    uint32_t n = (uint32_t)exact_case->n, *sorted = NULL;
    uint64_t *key[N_KEYS] = {NULL}; /* largest first */
    mpl_len *load = NULL;

    MPL_TRY(mpl_new(ctx, sorted, n));
    MPL_TRY(mpl_new(ctx, load, (size_t)exact_case->n_sections));
    for (int k = 0; k < N_KEYS; k++)
        MPL_TRY(mpl_new(ctx, key[k], n));
    for (int32_t s = 0; s < exact_case->n_sections; s++)
        for (int32_t k = exact_case->begin[s]; k < exact_case->begin[s + 1]; k++)
            load[s] += exact_case->size[exact_case->member[k]];
    for (uint32_t i = 0; i < n; i++) {
        mpl_len width = exact_case->duration[i], top = 0;

        for (int32_t s = exact_case->left[i]; s < exact_case->right[i]; s++)
            top = load[s] > top ? load[s] : top;
        key[WIDTH][i] = ~(uint64_t)width;
        key[AREA][i] = ~(uint64_t)((exact_case->size[i] < INT64_MAX / width ? exact_case->size[i]
                                                                            : INT64_MAX / width) *
                                   width);
        key[TOP][i] = ~(uint64_t)top;
        key[SIZE][i] = ~(uint64_t)exact_case->size[i];
    }
    for (int order = 0; order < MPL_EXACT_ORDERS; order++) {
        MPL_TRY(mpl_new(ctx, side->rank[order], n));
        mpl_ids_ascending(n, sorted);
        for (int k = 3; k-- > 0;)
            MPL_TRY(mpl_sort_ids(ctx, n, sorted, key[by[order][k]]));
        for (uint32_t i = 0; i < n; i++)
            side->rank[order][sorted[i]] = i;
    }
out:
    for (int k = 0; k < N_KEYS; k++)
        mpl_free(ctx, key[k]);
    mpl_free_each(ctx, sorted, load);
    return st;
}

static mpl_status side_open(mpl_exact_part *part, int mirrored)
{
    mpl_exact_side *side = &part->side[mirrored];

    if (side->noisy != NULL)
        return MPL_OK;
    if (side->exact_case == NULL)
        MPL_PASS(
            mpl_exact_case_new(part->ctx, part->item, part->n, mirrored != 0, &side->exact_case));
    if (side->state == NULL)
        MPL_PASS(mpl_exact_state_new(part->ctx, side->exact_case, &side->state));
    if (side->search.x == NULL)
        MPL_PASS(mpl_exact_search_init(&side->search, side->state));
    if (side->rank[MPL_EXACT_ORDERS - 1] == NULL)
        MPL_PASS(make_ranks(part->ctx, side));
    mpl_exact_case_limit(side->exact_case, part->item, part->unit, part->cap);
    return mpl_new(part->ctx, side->noisy, part->n);
}

static void set_cap(mpl_exact_part *part, uint64_t cap)
{
    if (part->cap == cap)
        return;
    part->cap = cap;
    mpl_exact_memo_clear(&part->memo);
    for (int k = 0; k < 2; k++)
        if (part->side[k].exact_case != NULL)
            mpl_exact_case_limit(part->side[k].exact_case, part->item, part->unit, cap);
}

static void make_noise(mpl_exact_side *side, int order, uint32_t places, mpl_rng *rng)
{
    for (int32_t i = 0; i < side->exact_case->n; i++)
        side->noisy[i] = side->rank[order][i] + (uint32_t)mpl_rng_below(rng, (uint64_t)places + 1);
}

static void keep(mpl_exact_part *part, const mpl_exact_side *side)
{
    part->height = 0;
    for (int32_t i = 0; i < side->exact_case->n; i++) {
        uint32_t item = side->exact_case->item[i];

        part->offset[item] = (uint64_t)side->state->est[i] * part->unit;
        part->height = mpl_max_u64(part->height, part->offset[item] + part->item[item].bytes);
    }
}

static mpl_status try_member(mpl_exact_part *part, const struct member *member, uint32_t lap,
                             mpl_rng *rng, mpl_exact_effort *effort, mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    mpl_exact_side *side = &part->side[member->mirrored];
    mpl_exact_search *search = &side->search;
    uint64_t nodes = part->node_limit;

    MPL_TRY(side_open(part, member->mirrored));
    for (uint32_t k = 0; k < lap && nodes < UINT64_MAX / 4; k++)
        nodes += nodes / 2;
    make_noise(side, member->order,
               mpl_exact_uses(effort->without, MPL_RULE_noise) ? NOISE_PER_LAP * lap : 0, rng);
    mpl_exact_state_reset(side->state);
    side->state->ticks = 0;
    side->state->filter_sweeps = lap % 2 == 0 ? 1 : 4; /* cheap nodes, or few */
    if (!mpl_exact_uses(effort->without, MPL_RULE_fill))
        side->state->filter_slack = -1;
    search->memo = mpl_exact_uses(effort->without, MPL_RULE_memo) ? &part->memo : NULL;
    search->without = effort->without;
    search->rank = side->noisy;
    search->pick = (mpl_exact_pick)member->pick;
    search->nodes = 0;
    search->node_limit = nodes;
    search->tick_limit = mpl_min_u64(part->tick_limit, effort->tick_limit - effort->ticks);
    search->deadline_ns = effort->deadline_ns;
    search->watch = effort->watch;
    *verdict = mpl_exact_search_run(search);
    effort->ticks += side->state->ticks;
    part->search_ticks += side->state->ticks;
    effort->by_clock = effort->by_clock || search->by_clock;
    if (side->state->no_memory)
        st = MPL_EMEM;
    else if (*verdict == MPL_EXACT_FOUND)
        keep(part, side);
out:
    return st;
}

mpl_status mpl_exact_part_try(mpl_exact_part *part, uint64_t cap, uint32_t lap,
                              mpl_exact_effort *effort, mpl_exact_verdict *verdict)
{
    mpl_rng rng;

    *verdict = MPL_EXACT_FAILED;
    if (cap < part->bound)
        return MPL_OK;
    set_cap(part, cap);
    rng = mpl_rng_of(effort->seed + lap * UINT64_C(0x632be59bd9b4e019) + cap);
    *verdict = MPL_EXACT_STOPPED;
    for (size_t k = 0; !part->vast && k < part->n_members && *verdict == MPL_EXACT_STOPPED; k++) {
        if (effort->by_clock || effort->ticks >= effort->tick_limit)
            break;
        if (members[k].mirrored && !mpl_exact_uses(effort->without, MPL_RULE_mirror))
            continue;
        MPL_PASS(try_member(part, &members[k], lap, &rng, effort, verdict));
    }
    if (*verdict == MPL_EXACT_FAILED)
        part->bound = mpl_exact_part_height_above(part, cap + 1);
    return MPL_OK;
}

/* ---- beams ---- */

#define BEAM_WIDTH        16
#define BEAM_PROBES       48
#define BEAM_FILTER_SLACK 10 /* [unit] */
#define BEAM_LARGEST_N    5000
#define BEAM_NUMBERS      (UINT64_C(1) << 26) /* most numbers in the rows of a level */
#define BEAM_STAGES       16

/* The k-th kind of beam, beginning with the one that came deepest in the last stage. */
static uint32_t kind_of(const mpl_exact_part *part, uint32_t k)
{
    uint32_t deepest = 0;

    for (uint32_t i = 1; i < MPL_EXACT_BEAMS; i++)
        if (part->beam_depth[i] > part->beam_depth[deepest])
            deepest = i;
    return (deepest + k) % MPL_EXACT_BEAMS;
}

static mpl_status run_beam(mpl_exact_part *part, uint32_t kind, uint64_t width,
                           mpl_exact_effort *effort, mpl_exact_verdict *verdict)
{
    mpl_exact_side *side = &part->side[kind % 2];
    mpl_exact_beam beam = {
        .width = (uint32_t)width, .probes = BEAM_PROBES, .weighted = kind / 2 != 0};
    mpl_exact_beam_result result;

    MPL_PASS(side_open(part, kind % 2));
    beam.filter_slack = mpl_exact_uses(effort->without, MPL_RULE_fill) ? BEAM_FILTER_SLACK : -1;
    beam.without = effort->without;
    beam.rank = (const uint32_t *const *)side->rank;
    beam.seed = effort->seed;
    beam.tick_limit = effort->tick_limit - effort->ticks;
    beam.deadline_ns = effort->deadline_ns;
    beam.watch = effort->watch;
    beam.n_threads = effort->n_threads;
    result.est = side->state->est;
    MPL_PASS(mpl_exact_beam_run(part->ctx, side->exact_case, &beam, &result));
    part->beam_depth[kind] = result.depth;
    effort->ticks += result.ticks;
    effort->by_clock = effort->by_clock || result.by_clock;
    *verdict = result.verdict;
    if (*verdict == MPL_EXACT_FOUND)
        keep(part, side);
    return MPL_OK;
}

/* Beams are lost among fixed buffers: at their ends, any waste is possible. */
static bool has_fixed(const mpl_exact_part *part)
{
    bool has = false;

    for (uint32_t i = 0; i < part->n; i++)
        has |= part->item[i].fixed;
    return has;
}

mpl_status mpl_exact_part_beam(mpl_exact_part *part, uint64_t cap, uint32_t stage,
                               mpl_exact_effort *effort, mpl_exact_verdict *verdict)
{
    uint64_t width = (uint64_t)BEAM_WIDTH << (stage < BEAM_STAGES ? stage : BEAM_STAGES);
    uint32_t order[MPL_EXACT_BEAMS];

    *verdict = MPL_EXACT_STOPPED;
    if (!mpl_exact_uses(effort->without, MPL_RULE_beam))
        return MPL_OK;
    if (part->vast || has_fixed(part) || part->n > BEAM_LARGEST_N || width * part->n > BEAM_NUMBERS)
        return MPL_OK;
    set_cap(part, cap);
    for (uint32_t k = 0; k < MPL_EXACT_BEAMS; k++)
        order[k] = kind_of(part, k);
    for (uint32_t k = 0; k < MPL_EXACT_BEAMS && *verdict == MPL_EXACT_STOPPED; k++) {
        if (effort->by_clock || effort->ticks >= effort->tick_limit)
            break;
        MPL_PASS(run_beam(part, order[k], width, effort, verdict));
    }
    return MPL_OK;
}
