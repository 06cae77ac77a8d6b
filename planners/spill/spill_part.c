/* spill_part.c -- connected buffers, and which memory has room for one more. See spill_priv.h.
 *
 * Idea     A memory keeps a packing of its members, which stays valid when a member leaves. A new
 *          member takes the lowest free place. If there is none, all members are packed anew, by
 *          size and finally by the exact planner, which may also prove that no packing exists. A
 *          rejected set rejects all of its supersets. */
#include "planners/spill/spill_priv.h"

#include "graphs/problem/before.h"
#include "graphs/problem/subset.h"
#include "planners/exact/exact.h"
#include "planners/place/placement.h"
#include "planners/place/sort.h"

enum { MAX_CLIQUES = 64, MAX_SUMS = 1024, PACK_TICKS = 32 }; /* ticks of packing one member anew */

static const uint64_t PROVED = UINT64_MAX;

/* ---- problems of some buffers ---- */

mpl_status mpl_spill_problem(mpl_ctx *ctx, const mpl_problem *p, const mpl_buffer *buffer,
                             uint32_t n, uint64_t capacity, mpl_problem **out)
{
    mpl_status st = MPL_OK;
    mpl_problem *q = NULL;
    uint32_t first = UINT32_MAX, *begin = NULL;

    MPL_TRY(mpl_new(ctx, begin, (size_t)n + 1));
    mpl_ids_ascending(n + 1, begin);
    MPL_TRY(mpl_problem_subset(ctx, p, &(mpl_members){n, begin, buffer},
                               MPL_KEEP_ORDER | MPL_KEEP_PAIRS, NULL, &q));
    q->pool_capacity[0] = capacity;
    q->n_steps = 0;
    for (uint32_t i = 0; i < n; i++)
        first = q->birth[i] < first ? q->birth[i] : first;
    for (uint32_t i = 0; i < n && q->before == NULL; i++) { /* count steps from the first birth */
        q->birth[i] -= first;
        q->death[i] -= first;
        q->n_steps = q->death[i] > q->n_steps ? q->death[i] : q->n_steps;
    }
    for (uint32_t i = 0; i < q->n_in_place && q->before == NULL; i++)
        q->in_place_step[i] -= first;
    *out = q, q = NULL;
out:
    mpl_free(ctx, begin);
    mpl_problem_free(ctx, q);
    return st;
}

/* ---- parts ---- */

/* Large members first, so that decisions come early; interchangeable candidates side by side. */
static mpl_status sort_members(mpl_spill_part *part)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = part->spill->p;
    mpl_ctx *ctx = part->spill->run->ctx;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new(ctx, key, p->n));
    for (uint32_t i = 0; i < part->n; i++)
        key[part->buffer[i]] =
            (uint64_t)p->birth[part->buffer[i]] << 32 | p->death[part->buffer[i]];
    MPL_TRY(mpl_sort_ids(ctx, part->n, part->buffer, key));
    for (uint32_t i = 0; i < part->n; i++)
        key[part->buffer[i]] = p->align[part->buffer[i]];
    MPL_TRY(mpl_sort_ids(ctx, part->n, part->buffer, key));
    for (uint32_t i = 0; i < part->n; i++)
        key[part->buffer[i]] = UINT64_MAX - p->bytes[part->buffer[i]];
    MPL_TRY(mpl_sort_ids(ctx, part->n, part->buffer, key));
    for (uint32_t i = 0; i < part->n; i++) {
        key[i] = part->buffer[i];
        part->bytes[i] = p->bytes[part->buffer[i]];
        while (part->least[i] < part->spill->n &&
               part->bytes[i] > part->spill->capacity[part->least[i]])
            part->least[i]++;
    }
    mpl_ids_ascending(part->n, part->by_id);
    MPL_TRY(mpl_sort_ids(ctx, part->n, part->by_id, key));
out:
    mpl_free(ctx, key);
    return st;
}

static mpl_status list_rivals(mpl_spill_part *part)
{
    const mpl_problem *p = part->spill->p;
    mpl_ctx *ctx = part->spill->run->ctx;
    size_t room = 0;
    uint32_t n = 0;

    MPL_PASS(mpl_new(ctx, part->rival_begin, (size_t)part->n + 1));
    for (uint32_t i = 0; i < part->n; i++) {
        for (uint32_t j = 0; j < part->n; j++) {
            if (i == j || !mpl_conflict(p, part->buffer[i], part->buffer[j]))
                continue;
            MPL_PASS(mpl_reserve(ctx, part->rival, room, (size_t)n + 1));
            part->rival[n++] = j;
        }
        part->rival_begin[i + 1] = n;
    }
    return MPL_OK;
}

/* Whether members i - 1 and i are interchangeable in every plan. */
static bool are_twins(const mpl_spill_part *part, uint32_t i)
{
    const mpl_problem *p = part->spill->p;
    mpl_buffer a = part->buffer[i - 1], b = part->buffer[i];
    uint32_t at = part->rival_begin[i - 1], n = part->rival_begin[i] - at,
             other = part->rival_begin[i];
    uint32_t k = 0, m = 0;

    if (p->bytes[a] != p->bytes[b] || p->align[a] != p->align[b] || part->paired[i - 1] ||
        part->paired[i] || part->rival_begin[i + 1] - other != n || !mpl_conflict(p, a, b))
        return false;
    /* both lists ascend; each contains the other member, which is skipped */
    for (; k < n || m < n; k++, m++) {
        k += k < n && part->rival[at + k] == i;
        m += m < n && part->rival[other + m] == i - 1;
        if ((k < n) != (m < n) || (k < n && part->rival[at + k] != part->rival[other + m]))
            return false;
    }
    return true;
}

static void find_twins(mpl_spill_part *part)
{
    const mpl_problem *p = part->spill->p;

    for (uint32_t i = 0; i < part->n; i++)
        for (uint32_t k = 0; k < p->n_in_place; k++)
            part->paired[i] |=
                p->in_place_in[k] == part->buffer[i] || p->in_place_out[k] == part->buffer[i];
    for (uint32_t i = 0; i < part->n; i++)
        part->twin[i] = i > 0 && are_twins(part, i) ? i - 1 : MPL_NONE;
}

/* ---- sections ---- */

/* Finds the steps at which live bytes may be maximal. A buffer that may overwrite another counts
 * only from its second step. */
static mpl_status cut_steps(mpl_spill_part *part)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = part->spill->p;
    mpl_ctx *ctx = part->spill->run->ctx;
    uint8_t *ends = NULL, *born = NULL;
    uint32_t *rank = NULL, n_kept = 0, first = UINT32_MAX, last = 0;
    bool open = false;

    for (uint32_t i = 0; i < part->n; i++) {
        part->begin[i] = p->birth[part->buffer[i]];
        part->end[i] = p->death[part->buffer[i]];
        first = part->begin[i] < first ? part->begin[i] : first;
        last = part->end[i] > last ? part->end[i] : last;
        for (uint32_t k = 0; part->paired[i] && k < p->n_in_place; k++)
            if (p->in_place_out[k] == part->buffer[i])
                part->begin[i] = p->birth[part->buffer[i]] + 1;
    }
    MPL_TRY(mpl_new_each(ctx, (size_t)(last - first) + 1, ends, born, rank));
    for (uint32_t i = 0; i < part->n; i++)
        if (part->begin[i] < part->end[i])
            born[part->begin[i] - first] = ends[part->end[i] - first] = 1;
    /* rank[t]: sections that end by t. A section ends where a member dies that has been alive since
     * a birth not yet counted */
    for (uint32_t t = 0; t <= last - first; t++) {
        if (ends[t] && open)
            n_kept++, open = false;
        open |= born[t];
        rank[t] = n_kept;
    }
    for (uint32_t i = 0; i < part->n; i++) {
        bool empty = part->begin[i] >= part->end[i];
        uint32_t begin = part->begin[i], end = part->end[i];

        part->begin[i] = empty ? 0 : rank[begin - first];
        part->end[i] = empty ? 0 : rank[end - first];
    }
    part->n_sections = n_kept;
out:
    mpl_free_each(ctx, ends, born, rank);
    return st;
}

/* Takes heaviest sets of pairwise unordered members, each from what the previous ones left. */
static mpl_status cut_cliques(mpl_spill_part *part)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = part->spill->run->ctx;
    mpl_problem *rest = NULL;
    mpl_buffer *buffer = NULL;
    uint32_t *member = NULL, n = 0;
    uint8_t *chosen = NULL;
    uint64_t bytes, weight;

    MPL_TRY(mpl_new_each(ctx, part->n, buffer, member, chosen));
    for (uint32_t k = 0; k < part->n; k++) {
        member[n] = part->by_id[k];
        buffer[n++] = part->buffer[part->by_id[k]];
    }
    while (n > 0 && part->n_sections < MAX_CLIQUES) {
        uint32_t n_left = 0;

        mpl_problem_free(ctx, rest);
        rest = NULL;
        MPL_TRY(mpl_spill_problem(ctx, part->spill->p, buffer, n, MPL_NO_CAPACITY, &rest));
        MPL_TRY(mpl_antichain(ctx, rest, 0, &bytes, chosen));
        weight = 0;
        for (uint32_t k = 0; k < n; k++)
            weight += chosen[k] ? part->bytes[member[k]] : 0;
        if (weight <= part->spill->capacity[0])
            break; /* no constraint */
        for (uint32_t k = 0; k < n; k++) {
            if (chosen[k]) {
                part->begin[member[k]] = part->n_sections;
                part->end[member[k]] = part->n_sections + 1;
                continue;
            }
            member[n_left] = member[k];
            buffer[n_left++] = buffer[k];
        }
        part->n_sections++;
        n = n_left;
    }
out:
    mpl_problem_free(ctx, rest);
    mpl_free_each(ctx, buffer, member, chosen);
    return st;
}

static mpl_status fill_sections(mpl_spill_part *part)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = part->spill->run->ctx;
    uint32_t *order = NULL;
    uint64_t *key = NULL, n = 0;

    MPL_TRY(mpl_new_each(ctx, part->n, order, key));
    MPL_TRY(mpl_new(ctx, part->section_begin, (size_t)part->n_sections + 1));
    for (uint32_t i = 0; i < part->n; i++) {
        key[i] = UINT64_MAX - part->end[i];
        n += part->end[i] - part->begin[i];
        for (uint32_t t = part->begin[i]; t < part->end[i]; t++)
            part->section_begin[t + 1]++;
    }
    for (uint32_t t = 0; t < part->n_sections; t++)
        part->section_begin[t + 1] += part->section_begin[t];
    MPL_TRY(mpl_new(ctx, part->inside, n));
    mpl_ids_ascending(part->n, order);
    MPL_TRY(mpl_sort_ids(ctx, part->n, order, key));
    for (uint32_t k = part->n; k-- > 0;)
        for (uint32_t i = order[k], t = part->begin[i]; t < part->end[i]; t++)
            part->inside[part->section_begin[t + 1] - 1 - (uint32_t)part->load[t]++] =
                i; /* from the back; load is a counter here */
    memset(part->load, 0, part->n_sections * sizeof *part->load);
out:
    mpl_free_each(ctx, order, key);
    return st;
}

/* Most bytes of section t that fit into memory k: the largest subset sum of sizes within its
 * capacity. sum[2 * MAX_SUMS]: scratch. */
static uint64_t largest_sum(const mpl_spill_part *part, uint32_t t, uint32_t k, uint64_t *sum)
{
    uint64_t capacity = part->spill->capacity[k], all = 0, *next = sum + MAX_SUMS;
    uint32_t n = 1;

    sum[0] = 0;
    for (uint32_t m = part->section_begin[t]; m < part->section_begin[t + 1]; m++) {
        uint64_t bytes = part->bytes[part->inside[m]];
        uint32_t n_next = 0;

        if (bytes > capacity)
            continue;
        all += bytes;
        /* merges two ascending lists: sums with the member, and without */
        for (uint32_t a = 0, b = 0; a < n && n_next < MAX_SUMS;) {
            uint64_t least = b < n && sum[b] + bytes < sum[a] ? sum[b] + bytes : sum[a];

            a += least == sum[a];
            b += b < n && least == sum[b] + bytes;
            next[n_next++] = least;
        }
        for (uint32_t b = 0; b < n && n_next < MAX_SUMS; b++)
            if (sum[b] + bytes > next[n_next - 1] && sum[b] + bytes <= capacity)
                next[n_next++] = sum[b] + bytes;
        if (n_next == MAX_SUMS) { /* too many sums to decide */
            for (m++; m < part->section_begin[t + 1]; m++)
                all += part->bytes[part->inside[m]];
            return mpl_min_u64(all, capacity);
        }
        memcpy(sum, next, n_next * sizeof *sum);
        n = n_next;
    }
    return sum[n - 1];
}

static mpl_status find_rooms(mpl_spill_part *part)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = part->spill->run->ctx;
    uint64_t *sum = NULL;

    MPL_TRY(mpl_new(ctx, sum, 2 * MAX_SUMS));
    for (uint32_t t = 0; t < part->n_sections; t++) {
        uint64_t before = 0, all = 0;

        for (uint32_t m = part->section_begin[t]; m < part->section_begin[t + 1]; m++)
            all += part->bytes[part->inside[m]];
        for (uint32_t k = 0; k < part->spill->n; k++) {
            before = mpl_min_u64(all, before + largest_sum(part, t, k, sum));
            part->room[(size_t)k * part->n_sections + t] = before;
        }
    }
out:
    mpl_free(ctx, sum);
    return st;
}

mpl_status mpl_spill_part_init(mpl_spill *spill, mpl_buffer *buffer, uint32_t n,
                               mpl_spill_part *part)
{
    mpl_ctx *ctx = spill->run->ctx;

    *part = (mpl_spill_part){.spill = spill, .n = n, .n_words = (n + 63) / 64, .buffer = buffer};
    part->rng = mpl_rng_of(spill->run->seed);
    if (n > MPL_SPILL_MEMBERS)
        return MPL_ERROR(ctx, MPL_ELIMIT,
                         "planner spill: %u buffers depend on each other; %u are possible", n,
                         MPL_SPILL_MEMBERS);
    MPL_PASS(mpl_new_each(ctx, n, part->bytes, part->by_id, part->least, part->twin, part->paired,
                          part->begin, part->end, part->memory));
    MPL_PASS(mpl_new_each(ctx, n, part->offset, part->spare, part->met, part->best_memory,
                          part->best_offset));
    MPL_PASS(mpl_new(ctx, part->wanted, part->n_words));
    MPL_PASS(sort_members(part));
    MPL_PASS(list_rivals(part));
    find_twins(part);
    MPL_PASS(spill->p->before == NULL ? cut_steps(part) : cut_cliques(part));
    MPL_PASS(mpl_new(ctx, part->load, (size_t)spill->n * part->n_sections + 1));
    MPL_PASS(fill_sections(part));
    MPL_PASS(mpl_new(ctx, part->room, (size_t)spill->n * part->n_sections + 1));
    MPL_PASS(find_rooms(part));
    for (uint32_t i = 0; i < n; i++)
        part->memory[i] = MPL_NONE;
    return MPL_OK;
}

void mpl_spill_part_fini(mpl_spill_part *part)
{
    if (part->spill != NULL)
        mpl_free_each(part->spill->run->ctx, part->buffer, part->bytes, part->by_id, part->least,
                      part->twin, part->rival_begin, part->rival, part->paired, part->begin,
                      part->end, part->inside, part->section_begin, part->room, part->memory,
                      part->offset, part->load, part->spare, part->met, part->wanted,
                      part->best_memory, part->best_offset, part->refused, part->refused_within,
                      part->refused_ticks);
    *part = (mpl_spill_part){0};
}

/* ---- room for one more ---- */

static void add_load(mpl_spill_part *part, uint32_t i, bool comes)
{
    uint64_t *load = part->load + (size_t)part->memory[i] * part->n_sections;

    for (uint32_t t = part->begin[i]; t < part->end[i]; t++)
        load[t] = comes ? load[t] + part->bytes[i] : load[t] - part->bytes[i];
    part->spill->ticks += part->end[i] - part->begin[i];
}

static bool load_fits(const mpl_spill_part *part, uint32_t i, uint32_t k)
{
    const uint64_t *load = part->load + (size_t)k * part->n_sections;

    for (uint32_t t = part->begin[i]; t < part->end[i]; t++)
        if (load[t] + part->bytes[i] > part->spill->capacity[k])
            return false;
    return true;
}

/* The lowest free place among the packed members of memory k. */
static bool place_lowest(mpl_spill_part *part, uint32_t i, uint32_t k)
{
    uint64_t at = 0, align = part->spill->p->align[part->buffer[i]];
    uint32_t n = 0;

    part->spill->ticks += part->rival_begin[i + 1] - part->rival_begin[i] + 1;
    for (uint32_t r = part->rival_begin[i]; r < part->rival_begin[i + 1]; r++) {
        uint32_t j = part->rival[r], m = n;

        if (part->memory[j] != k)
            continue;
        for (n++; m > 0 && part->offset[part->met[m - 1]] > part->offset[j]; m--)
            part->met[m] = part->met[m - 1];
        part->met[m] = j;
    }
    for (uint32_t m = 0; m < n && part->offset[part->met[m]] < at + part->bytes[i]; m++)
        at = mpl_max_u64(at, (part->offset[part->met[m]] + part->bytes[part->met[m]] + align - 1) /
                                 align * align);
    if (at + part->bytes[i] > part->spill->capacity[k])
        return false;
    part->offset[i] = at;
    return true;
}

/* The recorded verdict on the set being tested. */
static mpl_spill_verdict recall(const mpl_spill_part *part, uint64_t capacity)
{
    mpl_spill_verdict verdict = MPL_SPILL_FITS;

    for (uint32_t k = 0; k < part->n_refused; k++) {
        const uint64_t *set = part->refused + (size_t)k * part->n_words;
        bool within = true, equal = true;

        for (uint32_t w = 0; w < part->n_words && within; w++) {
            within = (set[w] & ~part->wanted[w]) == 0;
            equal &= set[w] == part->wanted[w];
        }
        if (within && part->refused_ticks[k] == PROVED && part->refused_within[k] >= capacity)
            return MPL_SPILL_NEVER;
        if (within && equal && part->refused_within[k] == capacity &&
            part->refused_ticks[k] >= part->spill->call_limit)
            verdict = MPL_SPILL_UNKNOWN;
    }
    return verdict;
}

static mpl_status remember(mpl_spill_part *part, uint64_t capacity, uint64_t ticks)
{
    mpl_ctx *ctx = part->spill->run->ctx;
    uint32_t k = part->next_refused;

    MPL_PASS(
        mpl_reserve(ctx, part->refused, part->refused_room[0], ((size_t)k + 1) * part->n_words));
    MPL_PASS(mpl_reserve(ctx, part->refused_within, part->refused_room[1], (size_t)k + 1));
    MPL_PASS(mpl_reserve(ctx, part->refused_ticks, part->refused_room[2], (size_t)k + 1));
    memcpy(part->refused + (size_t)k * part->n_words, part->wanted,
           part->n_words * sizeof *part->wanted);
    part->refused_within[k] = capacity;
    part->refused_ticks[k] = ticks;
    part->n_refused += part->n_refused == k;
    part->next_refused = (k + 1) % MPL_SPILL_REFUSED;
    return MPL_OK;
}

/* Asks the exact planner. */
static mpl_status decide(mpl_spill *spill, const mpl_problem *q, mpl_plan *plan,
                         mpl_spill_verdict *verdict)
{
    mpl_status st = MPL_OK;
    mpl_watch quiet = {.stop = spill->run->watch != NULL ? spill->run->watch->stop : NULL};
    mpl_run run = *spill->run;

    run.watch = &quiet;
    run.n_threads = 1;
    run.start_offsets = NULL; /* they belong to another problem */
    run.ticks = 0;
    run.stopped_by_clock = false;
    run.budget_ticks = mpl_min_u64(spill->call_limit, spill->tick_limit - spill->ticks);
    st = mpl_exact_plan(&run, q, &(mpl_exact_options){0}, plan);
    spill->ticks += run.ticks;
    spill->by_clock |= run.stopped_by_clock;
    if (st == MPL_OK)
        *verdict = plan->claim == MPL_INFEASIBLE ? MPL_SPILL_NEVER : MPL_SPILL_FITS;
    else if (st == MPL_ELIMIT)
        *verdict = MPL_SPILL_UNKNOWN, st = MPL_OK;
    return st;
}

/* Packs the members of memory k and i anew. */
static mpl_status pack(mpl_spill_part *part, uint32_t i, uint32_t k, bool search,
                       mpl_spill_verdict *verdict)
{
    mpl_status st = MPL_OK;
    mpl_spill *spill = part->spill;
    mpl_ctx *ctx = spill->run->ctx;
    mpl_buffer *buffer = NULL;
    uint32_t *member = NULL, n = 0;
    uint64_t *key = NULL, height = 0;
    mpl_problem *q = NULL;
    mpl_plan *plan = NULL;

    MPL_TRY(mpl_new_each(ctx, part->n, buffer, member, key));
    for (uint32_t m = 0; m < part->n; m++)
        if (part->by_id[m] == i || part->memory[part->by_id[m]] == k) {
            member[n] = part->by_id[m];
            buffer[n++] = part->buffer[part->by_id[m]];
        }
    MPL_TRY(mpl_spill_problem(ctx, spill->p, buffer, n, spill->capacity[k], &q));
    MPL_TRY(mpl_plan_new(ctx, q, &plan));
    for (uint32_t m = 0; m < n; m++) { /* buffer[] now holds an order by size */
        buffer[m] = m;
        key[m] = member[m];
    }
    MPL_TRY(mpl_sort_ids(ctx, n, buffer, key));
    MPL_TRY(mpl_place_all(spill->run, q, buffer, MPL_FIT_LOWEST, plan));
    spill->ticks += PACK_TICKS * (uint64_t)(n + PACK_TICKS);
    for (uint32_t m = 0; m < n; m++)
        height = mpl_max_u64(height, plan->offset[m] + q->bytes[m]);
    *verdict = height <= spill->capacity[k] ? MPL_SPILL_FITS : MPL_SPILL_UNKNOWN;
    if (*verdict == MPL_SPILL_UNKNOWN && search && !mpl_spill_over(spill))
        MPL_TRY(decide(spill, q, plan, verdict));
    for (uint32_t m = 0; m < n && *verdict == MPL_SPILL_FITS; m++)
        part->offset[member[m]] = plan->offset[m];
out:
    mpl_plan_free(ctx, plan);
    mpl_problem_free(ctx, q);
    mpl_free_each(ctx, buffer, member, key);
    return st;
}

static mpl_status ask(mpl_spill_part *part, uint32_t i, uint32_t k, bool search,
                      mpl_spill_verdict *verdict)
{
    uint64_t capacity = part->spill->capacity[k];

    *verdict = MPL_SPILL_NEVER;
    if (k < part->least[i] || !load_fits(part, i, k))
        return MPL_OK;
    *verdict = MPL_SPILL_FITS;
    if (capacity == MPL_NO_CAPACITY || place_lowest(part, i, k))
        return MPL_OK;
    memset(part->wanted, 0, part->n_words * sizeof *part->wanted);
    for (uint32_t j = 0; j < part->n; j++)
        if (j == i || part->memory[j] == k)
            mpl_bit_add(part->wanted, j);
    *verdict = recall(part, capacity);
    if (*verdict == MPL_SPILL_NEVER || (*verdict == MPL_SPILL_UNKNOWN && search))
        return MPL_OK;
    MPL_PASS(pack(part, i, k, search, verdict));
    if (*verdict != MPL_SPILL_FITS && search)
        MPL_PASS(remember(part, capacity,
                          *verdict == MPL_SPILL_NEVER ? PROVED : part->spill->call_limit));
    return MPL_OK;
}

mpl_status mpl_spill_put(mpl_spill_part *part, uint32_t i, uint32_t k, bool search,
                         mpl_spill_verdict *verdict)
{
    mpl_assert(part->memory[i] == MPL_NONE);
    MPL_PASS(ask(part, i, k, search, verdict));
    if (*verdict == MPL_SPILL_FITS) {
        part->memory[i] = k;
        add_load(part, i, true);
    }
    return MPL_OK;
}

void mpl_spill_leave(mpl_spill_part *part, uint32_t i)
{
    add_load(part, i, false);
    part->memory[i] = MPL_NONE;
}

void mpl_spill_clear(mpl_spill_part *part)
{
    for (uint32_t i = 0; i < part->n; i++)
        part->memory[i] = MPL_NONE;
    memset(part->load, 0, (size_t)part->spill->n * part->n_sections * sizeof *part->load);
}
