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

static uint8_t *state_of(pairs *s, uint32_t i, uint32_t j)
{
    return &s->state[(size_t)i * s->n + j];
}

static void set_state(pairs *s, uint32_t i, uint32_t j, uint8_t state)
{
    *state_of(s, i, j) = *state_of(s, j, i) = state;
}

static uint64_t fixed_at(const pairs *s, uint32_t i)
{
    return s->p->fixed != NULL ? s->p->fixed[s->buffer[i]] : MPL_UNFIXED;
}

/* Whether i and j break a rule at one offset. */
static bool clash(pairs *s, uint32_t i, uint32_t j)
{
    uint8_t state = *state_of(s, i, j);
    uint64_t a = fixed_at(s, i), b = fixed_at(s, j);

    if (mpl_bit_has(s->rival + (size_t)i * s->n_words, j) && state != OPEN && state != TAKEN)
        return true;
    return (a != MPL_UNFIXED && b != MPL_UNFIXED && a != b) ||
           (a != MPL_UNFIXED && a % s->p->align[s->buffer[j]] != 0) ||
           (b != MPL_UNFIXED && b % s->p->align[s->buffer[i]] != 0);
}

/* Groups buffers that taken pairs connect into body[], dense from 0; false: two of a body clash. */
static bool group(pairs *s)
{
    uint32_t n_bodies = 0;

    for (uint32_t i = 0; i < s->n; i++)
        s->body[i] = MPL_NONE;
    for (uint32_t first = 0; first < s->n; first++) {
        bool grown = s->body[first] == MPL_NONE;

        if (!grown)
            continue;
        s->body[first] = n_bodies;
        while (grown) {
            grown = false;
            for (uint32_t i = first; i < s->n; i++)
                for (uint32_t j = first; s->body[i] == n_bodies && j < s->n; j++)
                    if (s->body[j] == MPL_NONE && *state_of(s, i, j) == TAKEN) {
                        s->body[j] = n_bodies;
                        grown = true;
                    }
        }
        n_bodies++;
    }
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (s->body[i] == s->body[j] && clash(s, i, j))
                return false;
    return true;
}

/* Makes the relaxation of the node. */
static mpl_status relax(pairs *s, mpl_bodies **out)
{
    mpl_status st = MPL_OK;
    uint64_t *rival = NULL;

    MPL_TRY(mpl_new(s->ctx, rival, (size_t)s->n * s->n_words));
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = 0; j < s->n; j++)
            if (mpl_bit_has(s->rival + (size_t)i * s->n_words, j) && s->body[i] != s->body[j] &&
                *state_of(s, i, j) != OPEN)
                mpl_bit_add(rival + (size_t)i * s->n_words, j);
    MPL_TRY(mpl_bodies_new_take(s->ctx, s->p, s->buffer, s->body, s->n, &rival, out));
out:
    mpl_free(s->ctx, rival);
    return st;
}

/* Finds the open pair of most bytes that overlaps at two offsets; false: none. */
static bool find_broken(pairs *s, const mpl_bodies *b, const uint64_t *place, uint32_t *left,
                        uint32_t *right)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = 0; j < i; j++) {
            uint64_t x = place[b->body[i]], y = place[b->body[j]];
            uint64_t least = mpl_min_u64(b->member_bytes[i], b->member_bytes[j]);

            if (*state_of(s, i, j) == OPEN && x != y && x < y + b->member_bytes[j] &&
                y < x + b->member_bytes[i] && least > most) {
                most = least;
                *left = i, *right = j;
            }
        }
    return most > 0;
}

static bool done(const pairs *s)
{
    return s->height <= mpl_max_u64(s->bound, s->enough) || s->bound > s->most;
}

static mpl_status search(pairs *s, bool root)
{
    mpl_status st = MPL_OK;
    mpl_bodies *b = NULL;
    uint64_t *place = NULL, height = UINT64_MAX, bound = 0;
    uint32_t i = 0, j = 0;
    bool broken;

    if (!group(s))
        return MPL_OK;
    if (s->effort->by_clock || s->effort->ticks >= s->effort->tick_limit) {
        s->proved = false;
        return MPL_OK;
    }
    s->effort->ticks += (uint64_t)s->n * s->n / 2; /* the relation is rebuilt */
    MPL_TRY(relax(s, &b));
    MPL_TRY(mpl_new(s->ctx, place, b->n));
    MPL_TRY(mpl_general_solve(s->ctx, s->p, b, mpl_max_u64(s->bound, s->enough), s->height - 1,
                              s->effort, place, &height, &bound));
    if (root)
        s->bound = mpl_max_u64(s->bound, mpl_min_u64(bound, s->height));
    if (bound >= s->height || done(s))
        goto out;
    if (height >= s->height) {
        s->proved = false;
        goto out;
    }
    broken = find_broken(s, b, place, &i, &j);
    if (!broken) {
        s->height = height;
        for (uint32_t m = 0; m < s->n; m++)
            s->offset[s->buffer[m]] = place[b->body[m]];
        s->proved = s->proved && (height == bound || done(s));
        goto out;
    }
    for (uint8_t state = TAKEN; state <= APART && !done(s); state++) {
        set_state(s, i, j, state);
        MPL_TRY(search(s, false));
    }
    set_state(s, i, j, OPEN);
out:
    mpl_bodies_free(s->ctx, b);
    mpl_free(s->ctx, place);
    return st;
}

static mpl_status pairs_init(pairs *s, uint32_t pool)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = s->p;
    uint32_t *place = NULL;

    MPL_TRY(mpl_new_each(s->ctx, p->n, s->buffer, place));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == pool)
            place[b] = s->n, s->buffer[s->n++] = b;
    if (s->n > MPL_EXACT_PAIRS_MOST)
        goto out;
    s->n_words = s->n / 64 + (s->n % 64 != 0);
    MPL_TRY(mpl_new(s->ctx, s->rival, (size_t)s->n * s->n_words));
    MPL_TRY(mpl_new(s->ctx, s->state, (size_t)s->n * s->n));
    MPL_TRY(mpl_new(s->ctx, s->body, s->n));
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = 0; j < s->n; j++)
            if (i != j && mpl_conflict(p, s->buffer[i], s->buffer[j]))
                mpl_bit_add(s->rival + (size_t)i * s->n_words, j);
    for (uint32_t k = 0; k < p->n_in_place; k++)
        if (p->pool[p->in_place_in[k]] == pool)
            set_state(s, place[p->in_place_in[k]], place[p->in_place_out[k]], OPEN);
out:
    mpl_free(s->ctx, place);
    return st;
}

static void pairs_fini(pairs *s)
{
    mpl_free_each(s->ctx, s->buffer, s->rival, s->state, s->body);
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
static uint32_t find_clash(pairs *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (s->body[i] == s->body[j] && clash(s, i, j))
                return i;
    return 0;
}

/* Writes a refutation of the node within s->most bytes: of its relaxation, or of both branches,
 * with a pair taken and with that pair apart. *done: whether one was found within the effort. */
static mpl_status refute(pairs *s, mpl_proof *proof, bool *done)
{
    mpl_status st = MPL_OK;
    mpl_bodies *b = NULL;
    uint64_t *place = NULL, height = UINT64_MAX, bound = 0;
    mpl_exact_verdict verdict = MPL_EXACT_STOPPED;
    uint32_t i = 0, j = 0;

    *done = false;
    if (!group(s)) {
        mpl_proof_add(proof, 'z', s->buffer[find_clash(s)], 0, 0);
        *done = true;
        return MPL_OK;
    }
    s->effort->ticks += (uint64_t)s->n * s->n / 2;
    MPL_TRY(relax(s, &b));
    MPL_TRY(mpl_new(s->ctx, place, b->n));
    MPL_TRY(
        mpl_general_solve(s->ctx, s->p, b, s->most, s->most, s->effort, place, &height, &bound));
    if (bound > s->most)
        MPL_TRY(mpl_general_refute(s->ctx, s->p, b, s->most, NULL, s->effort, proof, &verdict));
    *done = verdict == MPL_EXACT_FAILED;
    if (*done || height > s->most || !find_broken(s, b, place, &i, &j))
        goto out;
    mpl_proof_add(proof, 's', s->buffer[i], s->buffer[j], 0);
    *done = true;
    for (uint8_t state = TAKEN; state <= APART && *done; state++) {
        set_state(s, i, j, state);
        MPL_TRY(refute(s, proof, done));
    }
    set_state(s, i, j, OPEN);
out:
    mpl_bodies_free(s->ctx, b);
    mpl_free(s->ctx, place);
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
