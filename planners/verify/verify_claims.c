/* verify_claims.c -- checks a plan's claims: its bound, optimality, cost. See verify.h. */
#include "planners/verify/verify_priv.h"

#include <stdlib.h>

#define MOST_COMPARED (UINT64_C(1) << 28) /* gaps of pairs of a witness, in all */

typedef struct claims {
    mpl_ctx *ctx;
    const mpl_problem *p;
    const mpl_plan *plan;
    uint64_t peak_bytes; /* where pool 0 ends */
} claims;

/* A buffer starts or stops being needed. */
struct event {
    uint32_t step;
    bool begins;
};

/* Within one step, ends come first. */
static int by_step(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (int)x->begins - (int)y->begins;
}

/* Whether some step needs every buffer of the witness. */
static mpl_status share_a_step(const claims *self, bool *yes)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    struct event *event = NULL;
    size_t n = 0, room = 2 * (size_t)self->plan->n_witness;
    uint32_t needed = 0;

    for (uint32_t i = 0; i < self->plan->n_witness; i++)
        room += 2 * (size_t)mpl_verify_gaps(p, self->plan->witness[i]);
    MPL_TRY(mpl_new(self->ctx, event, room));
    for (uint32_t i = 0; i < self->plan->n_witness; i++) {
        mpl_buffer b = self->plan->witness[i];

        event[n++] = (struct event){p->birth[b], true};
        event[n++] = (struct event){p->death[b], false};
        for (uint32_t k = 0; k < mpl_verify_gaps(p, b); k++) {
            event[n++] = (struct event){p->gap_from[p->gap_begin[b] + k], false};
            event[n++] = (struct event){p->gap_to[p->gap_begin[b] + k], true};
        }
    }
    qsort(event, n, sizeof *event, by_step);
    for (size_t i = 0; i < n && needed < self->plan->n_witness; i++)
        needed = event[i].begins ? needed + 1 : needed - 1;
    *yes = needed == self->plan->n_witness;
out:
    mpl_free(self->ctx, event);
    return st;
}

static mpl_status refuse_witness(const claims *self, mpl_buffer a, mpl_buffer b)
{
    char text_a[24], text_b[24];

    return MPL_ERROR(self->ctx, MPL_EINVALID,
                     "the certificate names '%.100s' and '%.100s', which can share memory",
                     mpl_buffer_label(self->p, a, text_a), mpl_buffer_label(self->p, b, text_b));
}

/* Partial order: checks that no member of members[] is before another. */
static mpl_status check_antichain(const claims *self, const uint64_t *members)
{
    const mpl_before *before = self->p->before;

    for (uint32_t i = 0; i < self->plan->n_witness; i++)
        for (uint32_t w = 0; w < before->n_words; w++) {
            mpl_buffer a = self->plan->witness[i];
            uint64_t behind = before->row[(size_t)a * before->n_words + w] & members[w];

            if (behind != 0)
                MPL_PASS(refuse_witness(self, a, w * 64 + (uint32_t)__builtin_ctzll(behind)));
        }
    return MPL_OK;
}

/* Serial: checks that each two buffers of the witness are needed at a common step. */
static mpl_status check_clique(const claims *self)
{
    const mpl_buffer *b = self->plan->witness;
    uint64_t n = self->plan->n_witness, n_pieces = 0;
    bool at_once;

    MPL_PASS(share_a_step(self, &at_once));
    for (uint32_t i = 0; i < n; i++)
        n_pieces += 1 + (uint64_t)mpl_verify_gaps(self->p, b[i]);
    if (!at_once && n_pieces > MOST_COMPARED / n)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "the certificate's %" PRIu64
                         " buffers, which no step needs all, take more than 2^28 "
                         "comparisons",
                         n);
    for (uint32_t i = 0; i < n && !at_once; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!mpl_verify_conflict(self->p, b[k], b[i]))
                MPL_PASS(refuse_witness(self, b[k], b[i]));
    return MPL_OK;
}

/* Checks that no two of members[], the witness, can share a byte: in conflict, no in-place pair. */
static mpl_status check_apart(const claims *self, const uint64_t *members)
{
    const mpl_problem *p = self->p;

    for (uint32_t k = 0; k < p->n_in_place; k++)
        if (mpl_bit_has(members, p->in_place_in[k]) && mpl_bit_has(members, p->in_place_out[k]))
            MPL_PASS(refuse_witness(self, p->in_place_in[k], p->in_place_out[k]));
    return p->before != NULL ? check_antichain(self, members) : check_clique(self);
}

/* Whether pool 0 can end in [low, bytes] with some buffer at a multiple of its alignment. */
static bool ends_between(const mpl_problem *p, uint64_t low, uint64_t bytes)
{
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t above = low > p->bytes[b] ? low - p->bytes[b] : 0;

        above += (p->align[b] - above % p->align[b]) % p->align[b];
        if (p->pool[b] == 0 && p->bytes[b] + above <= bytes)
            return true;
    }
    return false;
}

/* Checks the witness of the bound: buffers of pool 0 that conflict pairwise and add up to it. Sizes
 * count in slots of the least alignment, less the largest unused rest of a last slot, since the
 * topmost buffer needs no rest. The bound may exceed this sum if the pool cannot end between the
 * two. */
static mpl_status check_witness(const claims *self)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    uint64_t grain = UINT64_C(1) << 31, sum = 0, rest = 0, *members = NULL;
    char text[24];

    MPL_TRY(mpl_new(self->ctx, members, p->n / 64 + 1));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0 && p->align[b] < grain)
            grain = p->align[b];
    for (uint32_t i = 0; i < self->plan->n_witness; i++) {
        mpl_buffer b = self->plan->witness[i];
        uint64_t slots;

        if (b >= p->n || (i > 0 && b <= self->plan->witness[i - 1]))
            MPL_FAIL(self->ctx, MPL_EINVALID, "the certificate's buffers do not ascend below %u",
                     p->n);
        if (p->pool[b] != 0)
            MPL_FAIL(self->ctx, MPL_EINVALID,
                     "the certificate names '%.100s' of pool '%.60s', the bound is of pool '%.60s'",
                     mpl_buffer_label(p, b, text), p->pool_name[p->pool[b]], p->pool_name[0]);
        mpl_bit_add(members, b);
        slots = (p->bytes[b] + grain - 1) / grain * grain;
        sum += slots; /* at most the plan's height, if they are disjoint */
        rest = mpl_max_u64(rest, slots - p->bytes[b]);
    }
    MPL_TRY(check_apart(self, members));
    if (self->plan->bound_bytes < sum - rest ||
        (self->plan->bound_bytes > sum - rest &&
         ends_between(p, sum - rest, self->plan->bound_bytes - 1)))
        MPL_FAIL(self->ctx, MPL_EINVALID,
                 "the certificate's buffers prove %" PRIu64 " bytes, the plan claims %" PRIu64,
                 sum - rest, self->plan->bound_bytes);
out:
    mpl_free(self->ctx, members);
    return st;
}

/* Checks the cost of a plan over several memories, which has no bound in bytes. */
static mpl_status check_cost(const claims *self)
{
    const mpl_spread *spread = &self->plan->spread;
    uint64_t cost = 0, one;

    if (self->plan->bound_bytes != 0 || self->plan->n_witness != 0)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "a plan over several memories claims a bound on bytes");
    for (mpl_buffer b = 0; b < self->p->n; b++)
        if (self->p->pool[b] == 0 &&
            (!mpl_mul_bytes(self->p->bytes[b], spread->price[spread->memory[b]], &one) ||
             !mpl_add_bytes(cost, one, &cost)))
            return MPL_ERROR(self->ctx, MPL_EINVALID, "the plan's cost passes 2^64");
    if (cost != spread->cost)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "the plan costs %" PRIu64 ", and claims to cost %" PRIu64, cost,
                         spread->cost);
    if (cost < spread->cost_bound ||
        (self->plan->claim == MPL_OPTIMAL && cost != spread->cost_bound))
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "the plan costs %" PRIu64
                         " and claims to be %s, and nobody to pay less than %" PRIu64,
                         cost, mpl_claim_name(self->plan->claim), spread->cost_bound);
    return MPL_OK;
}

static mpl_status check_claims(const claims *self)
{
    uint64_t peak = self->peak_bytes, bound = self->plan->bound_bytes;

    if (self->plan->spread.n > 0)
        return check_cost(self);
    if (peak < bound)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "the plan needs %" PRIu64 " bytes, less than the %" PRIu64
                         " that it claims nobody can do without",
                         peak, bound);
    if (self->plan->claim == MPL_OPTIMAL && peak != bound)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "the plan claims to be optimal with %" PRIu64
                         " bytes, and its bound is %" PRIu64,
                         peak, bound);
    return MPL_OK;
}

mpl_status mpl_verify_claims(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                             uint64_t peak_bytes)
{
    claims c = {ctx, p, plan, peak_bytes};
    mpl_status st = check_claims(&c);

    return st == MPL_OK && plan->n_witness > 0 ? check_witness(&c) : st;
}
