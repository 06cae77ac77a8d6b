/* placements.h -- the least arena of a small problem, by brute force: every buffer or family at
 * every multiple of the slot, what no longer fits left out. Shares no code with planners or the
 * verifier. */
#pragma once

#include "tests/support/test.h"

enum { PLACEMENTS_PARTS = 40, PLACEMENTS_SLOTS = 64 };

/* Pool 0 of a problem in slots. A group is a family or a buffer in none. */
typedef struct placements {
    const mpl_problem *p;
    uint64_t unit; /* divides all sizes in whole slots of the alignment, and distances [byte] */
    uint32_t n, n_groups;
    mpl_buffer part[PLACEMENTS_PARTS];
    uint32_t group[PLACEMENTS_PARTS];
    int at[PLACEMENTS_PARTS], size[PLACEMENTS_PARTS]; /* from the group's start [unit] */
    bool apart[PLACEMENTS_PARTS][PLACEMENTS_PARTS];   /* they may not overlap */
    bool pair[PLACEMENTS_PARTS][PLACEMENTS_PARTS];    /* but may begin together */
    uint64_t top[PLACEMENTS_PARTS];                   /* [n_groups] where it ends [byte] */
    uint32_t place[PLACEMENTS_PARTS];                 /* [n_groups] [unit] */
    uint64_t nodes, most_nodes;
    bool gave_up; /* out of nodes, or out of slots */
} placements;

static inline uint64_t placements_slots(const mpl_problem *p, mpl_buffer b)
{
    return (p->bytes[b] + p->align[b] - 1) / p->align[b] * p->align[b];
}

static inline uint64_t placements_divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : placements_divisor(b, a % b);
}

/* Whether b is needed at step s of a serial problem. */
static inline bool placements_needed(const mpl_problem *p, mpl_buffer b, uint32_t s)
{
    bool needed = p->birth[b] <= s && s < p->death[b];

    for (uint32_t i = p->gap_begin != NULL ? p->gap_begin[b] : 0;
         p->gap_begin != NULL && i < p->gap_begin[b + 1]; i++)
        needed = needed && (s < p->gap_from[i] || p->gap_to[i] <= s);
    return needed;
}

static inline bool placements_apart(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    for (uint32_t s = 0; p->before == NULL && s <= p->n_steps; s++)
        if (s == p->n_steps)
            return false;
        else if (placements_needed(p, a, s) && placements_needed(p, b, s))
            return true;
    for (int turn = 0; turn < 2; turn++) {
        mpl_buffer x = turn ? b : a, y = turn ? a : b;

        if (p->before->row[(size_t)x * p->before->n_words + y / 64] >> (y % 64) & 1)
            return false;
    }
    return true;
}

/* Live bytes in whole slots, the most over all steps of a serial problem. What may overwrite
 * another buffer counts with it. *least: the same without the padding of one buffer, which no
 * placement can be below. */
static inline uint64_t placements_live(const mpl_problem *p, uint64_t *least)
{
    uint64_t peak = 0;

    *least = 0;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        uint64_t live = 0, rest = 0;

        for (mpl_buffer b = 0; b < p->n; b++) {
            bool over = p->pool[b] != 0 || !placements_needed(p, b, s);

            for (uint32_t i = 0; i < p->n_in_place; i++)
                over = over || (p->in_place_step[i] == s && p->in_place_out[i] == b);
            live += over ? 0 : placements_slots(p, b);
            if (!over && placements_slots(p, b) - p->bytes[b] > rest)
                rest = placements_slots(p, b) - p->bytes[b];
        }
        peak = live > peak ? live : peak;
        *least = live - rest > *least ? live - rest : *least;
    }
    return peak;
}

static inline void placements_init(const mpl_problem *p, placements *s)
{
    uint32_t group_of[PLACEMENTS_PARTS];

    *s = (placements){.p = p};
    assert_true(p->n <= PLACEMENTS_PARTS && p->fixed == NULL);
    for (mpl_buffer b = 0; b < p->n; b++) {
        bool first = p->inside == NULL || p->inside[b] == b;

        if (p->pool[b] != 0)
            continue;
        assert_int_equal(p->align[b], p->align[0]);
        group_of[b] = first ? s->n_groups++ : group_of[p->inside[b]];
        s->part[s->n] = b;
        s->group[s->n++] = group_of[b];
        s->unit = placements_divisor(s->unit, placements_slots(p, b));
        s->unit = placements_divisor(s->unit, p->inside == NULL ? 0 : p->inside_at[b]);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        mpl_buffer b = s->part[i];
        uint64_t at = p->inside == NULL ? 0 : p->inside_at[b], *top = &s->top[s->group[i]];

        s->at[i] = (int)(at / s->unit);
        s->size[i] = (int)(placements_slots(p, b) / s->unit);
        *top = at + p->bytes[b] > *top ? at + p->bytes[b] : *top;
        for (uint32_t k = 0; k < s->n; k++) {
            s->apart[i][k] = s->group[i] != s->group[k] && placements_apart(p, b, s->part[k]);
            s->pair[i][k] = is_offered(p, b, s->part[k]) || is_offered(p, s->part[k], b);
        }
    }
}

/* Bits [from, to) of the places of a group. */
static inline uint64_t placements_range(int from, int to)
{
    uint64_t below_to = to <= 0 ? 0 : to >= 64 ? UINT64_MAX : (UINT64_C(1) << to) - 1;
    uint64_t below_from = from <= 0 ? 0 : from >= 64 ? UINT64_MAX : (UINT64_C(1) << from) - 1;

    return below_to & ~below_from;
}

/* Removes the places of other groups that overlap group g; false if one has none left. */
static inline bool placements_narrow(const placements *s, uint32_t g, uint64_t placed,
                                     uint64_t *places)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; s->group[i] == g && k < s->n; k++) {
            int begin = (int)s->place[g] + s->at[i] - s->at[k];
            uint64_t taken;

            if (!s->apart[i][k] || (placed >> s->group[k] & 1) != 0)
                continue;
            taken = placements_range(begin - s->size[k] + 1, begin + s->size[i]);
            if (s->pair[i][k])
                taken &= ~placements_range(begin, begin + 1);
            places[s->group[k]] &= ~taken;
            if (places[s->group[k]] == 0)
                return false;
        }
    return true;
}

/* Places the groups left, that with the fewest places first. */
static inline bool placements_search(placements *s, uint64_t placed, const uint64_t *places)
{
    uint64_t next[PLACEMENTS_PARTS];
    uint32_t g = s->n_groups;
    int fewest = 65;

    for (uint32_t i = 0; i < s->n_groups; i++) {
        int n = __builtin_popcountll(places[i]);

        if ((placed >> i & 1) == 0 && n < fewest)
            g = i, fewest = n;
    }
    if (g == s->n_groups)
        return true;
    if (s->gave_up || ++s->nodes > s->most_nodes) {
        s->gave_up = true;
        return false;
    }
    for (uint32_t at = 0; at < PLACEMENTS_SLOTS; at++) {
        if ((places[g] >> at & 1) == 0)
            continue;
        memcpy(next, places, s->n_groups * sizeof *next);
        s->place[g] = at;
        if (placements_narrow(s, g, placed | UINT64_C(1) << g, next) &&
            placements_search(s, placed | UINT64_C(1) << g, next))
            return true;
    }
    return false;
}

/* Whether all fits into `bytes`; if so, *end is where the placement found ends. */
static inline bool placements_fit(placements *s, uint64_t bytes, uint64_t *end)
{
    uint64_t places[PLACEMENTS_PARTS];
    bool all_places = true;

    for (uint32_t g = 0; g < s->n_groups; g++) {
        if (s->top[g] > bytes)
            return false;
        all_places = all_places && (bytes - s->top[g]) / s->unit < PLACEMENTS_SLOTS;
        places[g] = placements_range(0, (int)((bytes - s->top[g]) / s->unit) + 1);
    }
    if (!placements_search(s, 0, places)) {
        s->gave_up = s->gave_up || !all_places;
        return false;
    }
    *end = 0;
    for (uint32_t g = 0; g < s->n_groups; g++)
        if (s->place[g] * s->unit + s->top[g] > *end)
            *end = s->place[g] * s->unit + s->top[g];
    return true;
}

/* The most bytes of parts that may not overlap each other, in the clique so far or also in parts
 * from `from` on; without the padding of one of them. */
static inline uint64_t placements_clique(const placements *s, uint32_t from, uint64_t clique,
                                         uint64_t bytes, uint64_t rest)
{
    uint64_t most = bytes - rest;

    for (uint32_t i = from; i < s->n; i++) {
        uint64_t slots = (uint64_t)s->size[i] * s->unit, more = slots - s->p->bytes[s->part[i]];
        bool apart = true;

        for (uint32_t k = 0; k < i; k++)
            apart = apart && ((clique >> k & 1) == 0 ||
                              (placements_apart(s->p, s->part[i], s->part[k]) && !s->pair[i][k]));
        if (apart)
            more = placements_clique(s, i + 1, clique | UINT64_C(1) << i, bytes + slots,
                                     more > rest ? more : rest);
        most = apart && more > most ? more : most;
    }
    return most;
}

/* The least arena of pool 0 if it is below `best`, else `best`. MPL_UNFIXED: too many nodes or
 * slots. At least one optimal placement has
 * all groups at multiples of the unit: move groups down as long as one can move; then each is at
 * the bottom, on another one, or joined to one in place. */
static inline uint64_t placements_least(const mpl_problem *p, uint64_t best, uint64_t most_nodes,
                                        uint64_t *nodes)
{
    placements s;
    uint64_t least = 0, all = 0, end = 0;

    if (p->before == NULL)
        placements_live(p, &least);
    if (least >= best)
        return best;
    placements_init(p, &s);
    s.most_nodes = most_nodes;
    for (uint32_t g = 0; g < s.n_groups; g++) {
        all += (s.top[g] + s.unit - 1) / s.unit * s.unit;
    }
    if (all < best)
        best = all;
    if (p->before != NULL)
        least = placements_clique(&s, 0, 0, 0, 0);
    if (least < best && placements_fit(&s, least, &end))
        best = end;
    while (best > least && placements_fit(&s, best - 1, &end))
        best = end;
    *nodes += s.nodes;
    return s.gave_up ? MPL_UNFIXED : best;
}
