/* exact_pairs.c -- complete search over in-place pairs, each taken or not.
 *
 * Idea     In a node each pair is taken (one offset), apart (a conflict like any other) or open.
 *          The relaxation lets the two buffers of an open pair overlap in any way; it is solved as
 *          a general conflict relation. If it is not below the best plan, the node is done. If its
 *          plan overlaps no open pair at two offsets, it is a plan of the problem. Else such a pair
 *          is first taken, then kept apart. Members of one offset keep their sizes: a buffer that
 *          conflicts only with a small output may lie above it, beside the large input. Folding
 *          cannot do that.
 * Source   this project
 * Cost     Exponential in the pairs that matter.
 * Limits   A pool with more than MPL_EXACT_PAIRS_MOST buffers keeps the folded plan. */
#include "planners/exact/exact_general.h"

enum { NO_PAIR, OPEN, TAKEN, APART };

typedef struct pairs {
    mpl_ctx *ctx;
    const mpl_problem *p;
    uint32_t n, n_words;
    mpl_buffer *buffer; /* [n] of the pool */
    uint64_t *rival;    /* [n * n_words] conflicts, pairs or not */
    uint8_t *state;     /* [n * n] state of each two, symmetric */
    uint32_t *body;     /* [n] body of each in the current node */
    mpl_exact_effort *effort;
    uint64_t enough, most;
    uint64_t *offset;       /* of the problem's buffers: the best plan */
    uint64_t height, bound; /* height of the best plan; bound of all plans */
    bool proved;            /* no node was left undecided */
} pairs;

static uint8_t *state_of(pairs *self, uint32_t i, uint32_t j)
{
    return &self->state[(size_t)i * self->n + j];
}

static void set_state(pairs *self, uint32_t i, uint32_t j, uint8_t state)
{
    *state_of(self, i, j) = *state_of(self, j, i) = state;
}

static uint64_t fixed_at(const pairs *self, uint32_t i)
{
    return self->p->fixed != NULL ? self->p->fixed[self->buffer[i]] : MPL_UNFIXED;
}

/* Whether i and j break a rule at one offset. */
static bool clash(pairs *self, uint32_t i, uint32_t j)
{
    uint8_t state = *state_of(self, i, j);
    uint64_t a = fixed_at(self, i), b = fixed_at(self, j);

    if (mpl_bit_has(self->rival + (size_t)i * self->n_words, j) && state != OPEN && state != TAKEN)
        return true;
    return (a != MPL_UNFIXED && b != MPL_UNFIXED && a != b) ||
           (a != MPL_UNFIXED && a % self->p->align[self->buffer[j]] != 0) ||
           (b != MPL_UNFIXED && b % self->p->align[self->buffer[i]] != 0);
}

/* Groups buffers that taken pairs connect into body[], dense from 0; false: two of a body clash. */
static bool group(pairs *self)
{
    uint32_t n_bodies = 0;

    for (uint32_t i = 0; i < self->n; i++)
        self->body[i] = MPL_NONE;
    for (uint32_t first = 0; first < self->n; first++) {
        bool grown = self->body[first] == MPL_NONE;

        if (!grown)
            continue;
        self->body[first] = n_bodies;
        while (grown) {
            grown = false;
            for (uint32_t i = first; i < self->n; i++)
                for (uint32_t j = first; self->body[i] == n_bodies && j < self->n; j++)
                    if (self->body[j] == MPL_NONE && *state_of(self, i, j) == TAKEN) {
                        self->body[j] = n_bodies;
                        grown = true;
                    }
        }
        n_bodies++;
    }
    for (uint32_t i = 0; i < self->n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (self->body[i] == self->body[j] && clash(self, i, j))
                return false;
    return true;
}

/* Makes the relaxation of the node. */
static mpl_status relax(pairs *self, mpl_bodies **out)
{
    mpl_status st = MPL_OK;
    uint64_t *rival = NULL;

    MPL_TRY(mpl_new(self->ctx, rival, (size_t)self->n * self->n_words));
    for (uint32_t i = 0; i < self->n; i++)
        for (uint32_t j = 0; j < self->n; j++)
            if (mpl_bit_has(self->rival + (size_t)i * self->n_words, j) &&
                self->body[i] != self->body[j] && *state_of(self, i, j) != OPEN)
                mpl_bit_add(rival + (size_t)i * self->n_words, j);
    MPL_TRY(
        mpl_bodies_new_take(self->ctx, self->p, self->buffer, self->body, self->n, &rival, out));
out:
    mpl_free(self->ctx, rival);
    return st;
}

/* Finds the open pair of most bytes that overlaps at two offsets; false: none. */
static bool find_broken(pairs *self, const mpl_bodies *bodies, const uint64_t *place,
                        uint32_t *left, uint32_t *right)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < self->n; i++)
        for (uint32_t j = 0; j < i; j++) {
            uint64_t x = place[bodies->body[i]], y = place[bodies->body[j]];
            uint64_t least = mpl_min_u64(bodies->member_bytes[i], bodies->member_bytes[j]);

            if (*state_of(self, i, j) == OPEN && x != y && x < y + bodies->member_bytes[j] &&
                y < x + bodies->member_bytes[i] && least > most) {
                most = least;
                *left = i, *right = j;
            }
        }
    return most > 0;
}

static bool done(const pairs *self)
{
    return self->height <= mpl_max_u64(self->bound, self->enough) || self->bound > self->most;
}

static mpl_status search(pairs *self, bool root)
{
    mpl_status st = MPL_OK;
    mpl_bodies *bodies = NULL;
    uint64_t *place = NULL, height = UINT64_MAX, bound = 0;
    uint32_t i = 0, j = 0;
    bool broken;

    if (!group(self))
        return MPL_OK;
    if (self->effort->by_clock || self->effort->ticks >= self->effort->tick_limit) {
        self->proved = false;
        return MPL_OK;
    }
    self->effort->ticks += (uint64_t)self->n * self->n / 2; /* the relation is rebuilt */
    MPL_TRY(relax(self, &bodies));
    MPL_TRY(mpl_new(self->ctx, place, bodies->n));
    MPL_TRY(mpl_general_solve(self->ctx, self->p, bodies, mpl_max_u64(self->bound, self->enough),
                              self->height - 1, self->effort, place, &height, &bound));
    if (root)
        self->bound = mpl_max_u64(self->bound, mpl_min_u64(bound, self->height));
    if (bound >= self->height || done(self))
        goto out;
    if (height >= self->height) {
        self->proved = false;
        goto out;
    }
    broken = find_broken(self, bodies, place, &i, &j);
    if (!broken) {
        self->height = height;
        for (uint32_t m = 0; m < self->n; m++)
            self->offset[self->buffer[m]] = place[bodies->body[m]];
        self->proved = self->proved && (height == bound || done(self));
        goto out;
    }
    for (uint8_t state = TAKEN; state <= APART && !done(self); state++) {
        set_state(self, i, j, state);
        MPL_TRY(search(self, false));
    }
    set_state(self, i, j, OPEN);
out:
    mpl_bodies_free(self->ctx, bodies);
    mpl_free(self->ctx, place);
    return st;
}

static mpl_status pairs_init(pairs *self, uint32_t pool)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    uint32_t *place = NULL;

    MPL_TRY(mpl_new_each(self->ctx, p->n, self->buffer, place));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == pool)
            place[b] = self->n, self->buffer[self->n++] = b;
    if (self->n > MPL_EXACT_PAIRS_MOST)
        goto out;
    self->n_words = self->n / 64 + (self->n % 64 != 0);
    MPL_TRY(mpl_new(self->ctx, self->rival, (size_t)self->n * self->n_words));
    MPL_TRY(mpl_new(self->ctx, self->state, (size_t)self->n * self->n));
    MPL_TRY(mpl_new(self->ctx, self->body, self->n));
    for (uint32_t i = 0; i < self->n; i++)
        for (uint32_t j = 0; j < self->n; j++)
            if (i != j && mpl_conflict(p, self->buffer[i], self->buffer[j]))
                mpl_bit_add(self->rival + (size_t)i * self->n_words, j);
    for (uint32_t k = 0; k < p->n_in_place; k++)
        if (p->pool[p->in_place_in[k]] == pool)
            set_state(self, place[p->in_place_in[k]], place[p->in_place_out[k]], OPEN);
out:
    mpl_free(self->ctx, place);
    return st;
}

static void pairs_fini(pairs *self)
{
    mpl_free_each(self->ctx, self->buffer, self->rival, self->state, self->body);
}

mpl_status mpl_exact_pairs(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t enough,
                           uint64_t most, mpl_exact_effort *effort, uint64_t *offset,
                           uint64_t *height, uint64_t *bound)
{
    mpl_status st = MPL_OK;
    pairs s = {.ctx = ctx,
               .p = p,
               .effort = effort,
               .enough = enough,
               .most = most,
               .offset = offset,
               .height = *height,
               .bound = *bound,
               .proved = true};

    if (done(&s) || !mpl_exact_uses(effort->without, MPL_RULE_pairs))
        return MPL_OK;
    MPL_TRY(pairs_init(&s, pool));
    if (s.n > MPL_EXACT_PAIRS_MOST)
        goto out;
    MPL_TRY(search(&s, true));
    *height = s.height;
    *bound =
        s.proved && s.bound <= most && s.height > mpl_max_u64(s.bound, enough) ? s.height : s.bound;
out:
    pairs_fini(&s);
    return st;
}

/* ---- refutations ---- */

/* Finds a buffer that breaks a rule with another one of its body. */
static uint32_t find_clash(pairs *self)
{
    for (uint32_t i = 0; i < self->n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (self->body[i] == self->body[j] && clash(self, i, j))
                return i;
    return 0;
}

/* Writes a refutation of the node within self->most bytes: of its relaxation, or of both branches,
 * with a pair taken and with that pair apart. *done: whether one was found within the effort. */
static mpl_status refute(pairs *self, mpl_proof *proof, bool *done)
{
    mpl_status st = MPL_OK;
    mpl_bodies *bodies = NULL;
    uint64_t *place = NULL, height = UINT64_MAX, bound = 0;
    mpl_exact_verdict verdict = MPL_EXACT_STOPPED;
    uint32_t i = 0, j = 0;

    *done = false;
    if (!group(self)) {
        mpl_proof_add(proof, 'z', self->buffer[find_clash(self)], 0, 0);
        *done = true;
        return MPL_OK;
    }
    self->effort->ticks += (uint64_t)self->n * self->n / 2;
    MPL_TRY(relax(self, &bodies));
    MPL_TRY(mpl_new(self->ctx, place, bodies->n));
    MPL_TRY(mpl_general_solve(self->ctx, self->p, bodies, self->most, self->most, self->effort,
                              place, &height, &bound));
    if (bound > self->most)
        MPL_TRY(mpl_general_refute(self->ctx, self->p, bodies, self->most, NULL, self->effort,
                                   proof, &verdict));
    *done = verdict == MPL_EXACT_FAILED;
    if (*done || height > self->most || !find_broken(self, bodies, place, &i, &j))
        goto out;
    mpl_proof_add(proof, 's', self->buffer[i], self->buffer[j], 0);
    *done = true;
    for (uint8_t state = TAKEN; state <= APART && *done; state++) {
        set_state(self, i, j, state);
        MPL_TRY(refute(self, proof, done));
    }
    set_state(self, i, j, OPEN);
out:
    mpl_bodies_free(self->ctx, bodies);
    mpl_free(self->ctx, place);
    return st;
}

mpl_status mpl_exact_pairs_refute(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t cap,
                                  mpl_exact_effort *effort, mpl_proof *proof,
                                  mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    pairs s = {.ctx = ctx, .p = p, .effort = effort, .most = cap};
    bool done = false;

    *verdict = MPL_EXACT_STOPPED;
    MPL_TRY(pairs_init(&s, pool));
    if (s.n <= MPL_EXACT_PAIRS_MOST)
        MPL_TRY(refute(&s, proof, &done));
    if (done)
        *verdict = MPL_EXACT_FAILED;
out:
    pairs_fini(&s);
    return st;
}
