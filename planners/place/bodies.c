/* bodies.c -- builds a general conflict relation. See bodies.h. */
#include "planners/place/bodies.h"

#include "graphs/problem/before.h"

#define MAX_LENGTH (UINT64_C(1) << 60)

/* The largest number that divides all sizes and fixed offsets and that each alignment divides or is
 * a multiple of: offsets of a pushed-down plan are sums of sizes, fixed offsets and alignments. */
static void find_unit(mpl_bodies *bodies)
{
    uint64_t before;

    bodies->unit = 0;
    bodies->plain = bodies->n == bodies->n_members && bodies->fixed == NULL;
    for (uint32_t m = 0; m < bodies->n_members; m++)
        bodies->unit = mpl_divisor(bodies->unit, bodies->member_size[m]);
    for (uint32_t i = 0; bodies->fixed != NULL && i < bodies->n; i++)
        if (bodies->fixed[i] != MPL_UNFIXED)
            bodies->unit = mpl_divisor(bodies->unit, bodies->fixed[i]);
    do {
        before = bodies->unit;
        for (uint32_t i = 0; i < bodies->n; i++)
            if (bodies->unit % bodies->align[i] != 0) {
                bodies->unit = mpl_divisor(bodies->unit, bodies->align[i]);
                bodies->plain = false;
            }
    } while (bodies->unit != before);
}

static mpl_status fill_members(mpl_ctx *ctx, const mpl_problem *p, const mpl_buffer *buffer,
                               const uint32_t *body, mpl_bodies *bodies)
{
    uint64_t grain = UINT64_C(1) << 32, sum = 0;

    MPL_PASS(mpl_new_each(ctx, bodies->n_members, bodies->body, bodies->buffer, bodies->member_size,
                          bodies->member_bytes));
    for (uint32_t m = 0; m < bodies->n_members; m++)
        grain = mpl_min_u64(grain, p->align[buffer[m]]);
    for (uint32_t m = 0; m < bodies->n_members; m++) {
        bodies->body[m] = body[m];
        bodies->buffer[m] = buffer[m];
        bodies->n = body[m] >= bodies->n ? body[m] + 1 : bodies->n;
        bodies->member_bytes[m] = p->bytes[buffer[m]];
        if (bodies->member_bytes[m] > MAX_LENGTH)
            sum = MAX_LENGTH;
        bodies->member_size[m] = mpl_align_up(bodies->member_bytes[m], grain);
        sum += bodies->member_size[m] + p->align[buffer[m]];
        if (sum > MAX_LENGTH)
            return MPL_REFUSE(ctx, "problem '%s': its bytes add up to more than a search can count",
                              p->name);
    }
    return MPL_OK;
}

static mpl_status fill_bodies(mpl_ctx *ctx, const mpl_problem *p, mpl_bodies *bodies)
{
    MPL_PASS(mpl_new_each(ctx, bodies->n, bodies->size, bodies->bytes, bodies->align));
    for (uint32_t m = 0; m < bodies->n_members; m++) {
        mpl_buffer from = bodies->buffer[m];
        uint32_t i = bodies->body[m];

        bodies->size[i] = mpl_max_u64(bodies->size[i], bodies->member_size[m]);
        bodies->bytes[i] = mpl_max_u64(bodies->bytes[i], bodies->member_bytes[m]);
        bodies->align[i] = mpl_max_u64(bodies->align[i], p->align[from]);
        if (p->fixed == NULL || p->fixed[from] == MPL_UNFIXED)
            continue;
        if (p->fixed[from] > MAX_LENGTH)
            return MPL_REFUSE(ctx, "problem '%s': a fixed place beyond what a search can count",
                              p->name);
        if (bodies->fixed == NULL) {
            MPL_PASS(mpl_new(ctx, bodies->fixed, bodies->n));
            for (uint32_t k = 0; k < bodies->n; k++)
                bodies->fixed[k] = MPL_UNFIXED;
        }
        mpl_assert(bodies->fixed[i] == MPL_UNFIXED || bodies->fixed[i] == p->fixed[from]);
        bodies->fixed[i] = p->fixed[from];
    }
    return MPL_OK;
}

/* Derives rivals and distances of bodies from those of their members. */
static mpl_status fill_relation(mpl_ctx *ctx, mpl_bodies *bodies)
{
    MPL_PASS(mpl_new(ctx, bodies->rival, (size_t)bodies->n * bodies->n_words));
    if (bodies->n < bodies->n_members)
        MPL_PASS(mpl_new(ctx, bodies->dist, (size_t)bodies->n * bodies->n));
    for (uint32_t m = 0; m < bodies->n_members; m++)
        for (uint32_t w = 0; w < bodies->n_member_words; w++)
            for (uint64_t bits = bodies->member_rival[(size_t)m * bodies->n_member_words + w];
                 bits != 0; bits &= bits - 1) {
                uint32_t i = bodies->body[m],
                         j = bodies->body[w * 64 + (uint32_t)__builtin_ctzll(bits)];

                mpl_assert(i != j);
                mpl_bit_add(bodies->rival + (size_t)i * bodies->n_words, j);
                if (bodies->dist != NULL)
                    bodies->dist[(size_t)i * bodies->n + j] = mpl_max_u64(
                        bodies->dist[(size_t)i * bodies->n + j], bodies->member_size[m]);
            }
    return MPL_OK;
}

/* Whether the relations are symmetric and no two members of one body are rivals. */
static bool relations_ok(const mpl_bodies *bodies)
{
    for (uint32_t i = 0; i < bodies->n; i++)
        for (uint32_t j = 0; j <= i; j++)
            if (mpl_rivals(bodies, i, j) != mpl_rivals(bodies, j, i) ||
                (i == j && mpl_rivals(bodies, i, j)))
                return false;
    return true;
}

mpl_status mpl_bodies_new_take(mpl_ctx *ctx, const mpl_problem *p, const mpl_buffer *buffer,
                               const uint32_t *body, uint32_t n_members, uint64_t **rival,
                               mpl_bodies **out)
{
    mpl_status st = MPL_OK;
    mpl_bodies *bodies = NULL;

    MPL_TRY(mpl_new(ctx, bodies, 1));
    bodies->n_members = n_members;
    bodies->n_member_words = n_members / 64 + (n_members % 64 != 0);
    bodies->member_rival = *rival, *rival = NULL;
    MPL_TRY(fill_members(ctx, p, buffer, body, bodies));
    bodies->n_words = bodies->n / 64 + (bodies->n % 64 != 0);
    MPL_TRY(fill_bodies(ctx, p, bodies));
    MPL_TRY(fill_relation(ctx, bodies));
    find_unit(bodies);
    mpl_assert_slow(relations_ok(bodies));
    *out = bodies, bodies = NULL;
out:
    mpl_bodies_free(ctx, bodies);
    return st;
}

mpl_status mpl_bodies_of_pool(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, mpl_bodies **out)
{
    mpl_status st = MPL_OK;
    mpl_buffer *buffer = NULL;
    uint32_t *body = NULL, n = 0, n_words;
    uint64_t *rival = NULL, *all = NULL;

    MPL_TRY(mpl_new_each(ctx, p->n, buffer, body));
    if (p->before != NULL)
        MPL_TRY(mpl_conflict_rows(ctx, p, &all));
    for (mpl_buffer i = 0; i < p->n; i++)
        if (p->pool[i] == pool)
            body[n] = n, buffer[n++] = i;
    n_words = n / 64 + (n % 64 != 0);
    if (all != NULL && n == p->n) {
        rival = all, all = NULL;
    } else {
        MPL_TRY(mpl_new(ctx, rival, (size_t)n * n_words));
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                if (i != j && mpl_conflict(p, buffer[i], buffer[j]))
                    mpl_bit_add(rival + (size_t)i * n_words, j);
    }
    MPL_TRY(mpl_bodies_new_take(ctx, p, buffer, body, n, &rival, out));
out:
    mpl_free_each(ctx, buffer, body, rival, all);
    return st;
}

mpl_status mpl_bodies_subset(mpl_ctx *ctx, const mpl_problem *p, const mpl_bodies *from,
                             const uint32_t *id, uint32_t n, mpl_bodies **out)
{
    mpl_status st = MPL_OK;
    mpl_buffer *buffer = NULL;
    uint32_t *body = NULL, *member = NULL, *place = NULL, n_members = 0, n_words;
    uint64_t *rival = NULL;

    MPL_TRY(mpl_new_each(ctx, from->n_members, buffer, body, member));
    MPL_TRY(mpl_new(ctx, place, from->n));
    for (uint32_t i = 0; i < n; i++)
        place[id[i]] = i + 1;
    for (uint32_t m = 0; m < from->n_members; m++)
        if (place[from->body[m]] != 0) {
            buffer[n_members] = from->buffer[m];
            body[n_members] = place[from->body[m]] - 1;
            member[n_members++] = m;
        }
    n_words = n_members / 64 + (n_members % 64 != 0);
    MPL_TRY(mpl_new(ctx, rival, (size_t)n_members * n_words));
    for (uint32_t i = 0; i < n_members; i++)
        for (uint32_t j = 0; j < n_members; j++)
            if (mpl_bit_has(from->member_rival + (size_t)member[i] * from->n_member_words,
                            member[j]))
                mpl_bit_add(rival + (size_t)i * n_words, j);
    MPL_TRY(mpl_bodies_new_take(ctx, p, buffer, body, n_members, &rival, out));
out:
    mpl_free_each(ctx, buffer, body, member, place, rival);
    return st;
}

void mpl_bodies_free(mpl_ctx *ctx, mpl_bodies *bodies)
{
    if (bodies == NULL)
        return;
    mpl_free_each(ctx, bodies->rival, bodies->size, bodies->bytes, bodies->align, bodies->fixed,
                  bodies->dist, bodies->body, bodies->buffer, bodies->member_size,
                  bodies->member_bytes, bodies->member_rival, bodies);
}

uint64_t mpl_bodies_height(const mpl_bodies *bodies, const uint64_t *offset)
{
    uint64_t height = 0;

    for (uint32_t i = 0; i < bodies->n; i++)
        height = mpl_max_u64(height, offset[i] + bodies->bytes[i]);
    return height;
}

bool mpl_is_pair(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if ((p->in_place_in[i] == a && p->in_place_out[i] == b) ||
            (p->in_place_in[i] == b && p->in_place_out[i] == a))
            return true;
    return false;
}
