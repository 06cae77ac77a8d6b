/* timeline.c -- the free bytes of any live range: a tree over time whose nodes know the occupied
 * bytes.
 *
 * Time counts in births: two buffers are alive together iff both are alive at the later birth.
 * Neighbouring births form groups, the leaves of a binary tree. Each node holds sorted disjoint
 * byte ranges: those that any buffer alive in its time occupies (`all`), and those occupied during
 * all of its time by buffers that do not fill its parent's time (`cover`). A leaf lists the buffers
 * alive in only part of it (`guest`). Nodes longer than any live range are never queried and stay
 * empty.
 *
 * The bytes in a buffer's way are the union of few lists: `all` of the nodes that make up its live
 * range, `cover` of their ancestors, and the guests of the groups where it begins and ends. A
 * candidate offset rises through these lists in parallel and stops at the first gap. Touching
 * ranges merge, so a better packing has shorter lists. This and the early stop avoid a look at
 * every conflicting buffer. */
#include "planners/place/placement.h"
#include "planners/place/sort.h"

enum {
    GROUP_EVENTS = 128,     /* births and deaths in a group, unless one birth has more */
    MAX_LISTS = 4 * 32 + 2, /* at most four a level, and the guests of two groups */
};

typedef struct guest {
    uint32_t from, to; /* [birth index] */
    mpl_span span;
} guest;

typedef struct cursor {
    const mpl_span *item;
    uint32_t n, at;
} cursor;

struct mpl_space {
    uint32_t n_births;
    uint32_t *from; /* [n_members] by slot: index of the birth */
    uint32_t *to;   /* [n_members] by slot: first birth at or after the death */
    uint32_t n_groups;
    uint32_t *group_birth; /* [n_groups + 1] first birth index of each group */
    uint32_t *group_reach; /* [n_groups] last end of a buffer alive at its first birth */
    uint32_t *group_guest; /* [n_groups + 1] into guest */
    uint32_t *n_guests;    /* [n_groups] */
    guest *guest;          /* by group, each by span.begin */
    mpl_spans *all;        /* [2 * n_groups - 1] node, left subtree, right subtree */
    mpl_spans *cover;
    mpl_span *filtered; /* space for the guests of two groups */
    uint32_t n_filtered;
    cursor list[MAX_LISTS];
    uint32_t n_lists;
};

/* A node of the tree: its groups [first, last). */
typedef struct node {
    uint32_t id, first, last;
} node;

static node left_child(node v)
{
    return (node){v.id + 1, v.first, v.first + (v.last - v.first) / 2};
}

static node right_child(node v)
{
    uint32_t middle = v.first + (v.last - v.first) / 2;

    return (node){v.id + 2 * (middle - v.first), middle, v.last};
}

/* Whether some live range contains all of v. Otherwise v's lists are never queried and stay
 * empty. */
static bool is_used(const mpl_space *space, node v)
{
    return space->group_reach[v.first] >= space->group_birth[v.last];
}

/* ---- creation ---- */

static void timeline_close(mpl_placement *placement)
{
    mpl_ctx *ctx = placement->run->ctx;
    mpl_space *space = placement->space;

    if (space == NULL)
        return;
    for (uint32_t i = 0; i + 1 < 2 * space->n_groups; i++) {
        if (space->all != NULL)
            mpl_free(ctx, space->all[i].item);
        if (space->cover != NULL)
            mpl_free(ctx, space->cover[i].item);
    }
    mpl_free_each(ctx, space->from, space->to, space->group_birth, space->group_reach,
                  space->group_guest, space->n_guests, space->guest, space->all, space->cover,
                  space->filtered, space);
    placement->space = NULL;
}

/* Numbers the births. events[index] counts the births there and the deaths just before. */
static mpl_status index_time(mpl_placement *placement, uint32_t *events)
{
    mpl_status st = MPL_OK;
    mpl_space *space = placement->space;
    const mpl_problem *p = placement->p;
    uint32_t *slot = NULL, n = placement->n_members, index = 0, at = 0;
    uint64_t *key = NULL;
    uint32_t *step = NULL;

    MPL_TRY(mpl_new_each(placement->run->ctx, n, slot, key, step));
    mpl_ids_ascending(n, slot);
    for (uint32_t i = 0; i < n; i++)
        key[i] = p->birth[placement->member[i]];
    MPL_TRY(mpl_sort_ids(placement->run->ctx, n, slot, key));
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && key[slot[i]] != key[slot[i - 1]])
            index++;
        step[index] = (uint32_t)key[slot[i]];
        space->from[slot[i]] = index;
        events[index]++;
    }
    space->n_births = index + 1;
    for (uint32_t i = 0; i < n; i++)
        key[i] = p->death[placement->member[i]];
    MPL_TRY(mpl_sort_ids(placement->run->ctx, n, slot, key));
    for (uint32_t i = 0; i < n; i++) {
        while (at < space->n_births && step[at] < key[slot[i]])
            at++;
        space->to[slot[i]] = at;
        if (at < space->n_births)
            events[at]++;
    }
out:
    mpl_free_each(placement->run->ctx, slot, key, step);
    return st;
}

/* Sets group_reach: no live range extends further from a group's first birth. */
static mpl_status measure_reach(mpl_placement *placement)
{
    mpl_status st = MPL_OK;
    mpl_space *space = placement->space;
    uint32_t *reach = NULL, most = 0;

    MPL_TRY(mpl_new(placement->run->ctx, space->group_reach, space->n_groups));
    MPL_TRY(mpl_new(placement->run->ctx, reach, space->n_births));
    for (uint32_t i = 0; i < placement->n_members; i++)
        if (reach[space->from[i]] < space->to[i])
            reach[space->from[i]] = space->to[i];
    for (uint32_t group = 0, i = 0; group < space->n_groups; group++) {
        for (; i <= space->group_birth[group]; i++)
            most = reach[i] > most ? reach[i] : most;
        space->group_reach[group] = most;
    }
out:
    mpl_free(placement->run->ctx, reach);
    return st;
}

/* Cuts births into groups. A guest is born or dies in its group, so events bound the guests. */
static mpl_status make_groups(mpl_placement *placement, const uint32_t *events)
{
    mpl_ctx *ctx = placement->run->ctx;
    mpl_space *space = placement->space;
    uint32_t total = 0, inside = 0, largest = 0;

    MPL_PASS(
        mpl_new_each(ctx, (size_t)space->n_births + 1, space->group_birth, space->group_guest));
    for (uint32_t i = 0; i < space->n_births; i++) {
        if (inside > 0 && inside + events[i] > GROUP_EVENTS) {
            space->n_groups++;
            inside = 0;
        }
        if (inside == 0) {
            space->group_birth[space->n_groups] = i;
            space->group_guest[space->n_groups] = total;
        }
        inside += events[i];
        total += events[i];
        largest = inside > largest ? inside : largest;
    }
    space->n_groups++;
    space->group_birth[space->n_groups] = space->n_births;
    space->group_guest[space->n_groups] = total;
    MPL_PASS(mpl_new(ctx, space->n_guests, space->n_groups));
    MPL_PASS(mpl_new(ctx, space->guest, total));
    return mpl_new(ctx, space->filtered, 2 * (size_t)largest + 1);
}

static mpl_status timeline_open(mpl_placement *placement)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = placement->run->ctx;
    uint32_t *events = NULL;
    size_t n_nodes;

    MPL_TRY(mpl_new(ctx, placement->space, 1));
    MPL_TRY(mpl_new_each(ctx, placement->n_members, placement->space->from, placement->space->to,
                         events));
    MPL_TRY(index_time(placement, events));
    MPL_TRY(make_groups(placement, events));
    MPL_TRY(measure_reach(placement));
    n_nodes = 2 * (size_t)placement->space->n_groups - 1;
    MPL_TRY(mpl_new_each(ctx, n_nodes, placement->space->all, placement->space->cover));
out:
    mpl_free(ctx, events);
    return st;
}

/* ---- placing ---- */

static void add_guest(mpl_space *space, uint32_t group, guest new)
{
    guest *list = space->guest + space->group_guest[group];
    uint32_t n = space->n_guests[group]++, at = n;

    while (at > 0 && list[at - 1].span.begin > new.span.begin)
        at--;
    memmove(list + at + 1, list + at, (n - at) * sizeof *list);
    list[at] = new;
}

static mpl_status add(mpl_ctx *ctx, mpl_space *space, node v, const guest *new)
{
    const uint32_t *birth = space->group_birth;

    if (is_used(space, v))
        MPL_PASS(mpl_spans_add(ctx, &space->all[v.id], new->span));
    if (new->from <= birth[v.first] && birth[v.last] <= new->to) {
        MPL_PASS(mpl_spans_add(ctx, &space->cover[v.id], new->span));
    } else if (v.last - v.first == 1) {
        add_guest(space, v.first, *new);
    } else {
        node left = left_child(v), right = right_child(v);

        if (new->from < birth[left.last])
            MPL_PASS(add(ctx, space, left, new));
        if (birth[right.first] < new->to)
            MPL_PASS(add(ctx, space, right, new));
    }
    return MPL_OK;
}

static mpl_status timeline_insert(mpl_placement *placement, mpl_buffer b, mpl_buffer partner)
{
    mpl_space *space = placement->space;
    uint32_t slot = placement->slot[b];
    guest new = {space->from[slot],
                 space->to[slot],
                 {placement->offset[b], mpl_placement_end(placement, b, placement->offset[b])}};

    (void)partner;
    return add(placement->run->ctx, space, (node){0, 0, space->n_groups}, &new);
}

/* ---- queries ---- */

static void use_list(mpl_space *space, const mpl_span *item, uint32_t n)
{
    if (n > 0)
        space->list[space->n_lists++] = (cursor){item, n, 0};
}

/* Lists the guests of a group that are alive in [from, to). Guests may overlap. Stretching each
 * range to the farthest end so far keeps the union and makes the ends ascend, as the search needs.
 * The loop has no data-dependent branch, because matches are unpredictable. */
static void use_guests(mpl_space *space, uint32_t group, uint32_t from, uint32_t to)
{
    const guest *list = space->guest + space->group_guest[group];
    mpl_span *item = space->filtered + space->n_filtered;
    uint32_t n = 0, n_guests = space->n_guests[group];
    uint64_t end = 0;

    for (uint32_t i = 0; i < n_guests; i++) {
        uint32_t meets = (uint32_t)(list[i].from < to) & (uint32_t)(from < list[i].to);
        uint64_t farther = list[i].span.end > end ? list[i].span.end : end;

        end = meets != 0 ? farther : end;
        item[n].begin = list[i].span.begin;
        item[n].end = end;
        n += meets;
    }
    space->n_filtered += n;
    use_list(space, item, n);
}

static void use_node(mpl_space *space, node v, uint32_t from, uint32_t to)
{
    const uint32_t *birth = space->group_birth;

    if (is_used(space, v) && space->all[v.id].n == 0)
        return;
    if (from <= birth[v.first] && birth[v.last] <= to) {
        use_list(space, space->all[v.id].item, space->all[v.id].n);
        return;
    }
    if (is_used(space, v))
        use_list(space, space->cover[v.id].item, space->cover[v.id].n);
    if (v.last - v.first == 1) {
        use_guests(space, v.first, from, to);
    } else {
        node left = left_child(v), right = right_child(v);

        if (from < birth[left.last])
            use_node(space, left, from, to);
        if (birth[right.first] < to)
            use_node(space, right, from, to);
    }
}

/* Collects the lists whose union is occupied at some time in [from, to). */
static void use_time(mpl_space *space, uint32_t from, uint32_t to)
{
    space->n_lists = 0;
    space->n_filtered = 0;
    if (from < to)
        use_node(space, (node){0, 0, space->n_groups}, from, to);
}

/* Moves to the first range that ends above `at`, by galloping, then bisection. */
static void move_on(cursor *list, uint64_t at)
{
    uint32_t low = list->at, step = 1, high;

    if (low == list->n || list->item[low].end > at)
        return;
    while (low + step < list->n && list->item[low + step].end <= at) {
        low += step;
        step *= 2;
    }
    high = low + step < list->n ? low + step : list->n; /* low ends too early, high not */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (list->item[middle].end <= at)
            low = middle;
        else
            high = middle;
    }
    list->at = high;
}

/* The lowest multiple of align at or above `at` where `bytes` are free in all lists. */
static uint64_t next_free(mpl_placement *placement, uint64_t at, uint64_t bytes, uint64_t align)
{
    mpl_space *space = placement->space;
    uint32_t i = 0;

    at = mpl_align_up(at, align);
    for (uint32_t quiet = 0; quiet < space->n_lists; quiet++) {
        cursor *list = &space->list[i];

        for (;;) {
            move_on(list, at);
            placement->run->ticks++;
            if (list->at == list->n || list->item[list->at].begin >= at + bytes)
                break;
            at = mpl_align_up(list->item[list->at].end, align);
            quiet = 0;
        }
        i = i + 1 < space->n_lists ? i + 1 : 0;
    }
    return at;
}

/* The end of the gap that next_free found. */
static uint64_t gap_end(const mpl_space *space)
{
    uint64_t end = UINT64_MAX;

    for (uint32_t i = 0; i < space->n_lists; i++)
        if (space->list[i].at < space->list[i].n)
            end = mpl_min_u64(end, space->list[i].item[space->list[i].at].begin);
    return end;
}

static mpl_status timeline_find(mpl_placement *placement, mpl_buffer b, mpl_gap *gap)
{
    uint64_t bytes = placement->p->bytes[b], at = 0, end;

    use_time(placement->space, placement->space->from[placement->slot[b]],
             placement->space->to[placement->slot[b]]);
    do {
        at = next_free(placement, at, bytes, placement->p->align[b]);
        end = placement->fit == MPL_FIT_LOWEST ? UINT64_MAX : gap_end(placement->space);
        if (mpl_placement_offer(placement, (mpl_gap){at, end - at - bytes}, gap))
            break;
        at = end;
    } while (end != UINT64_MAX);
    return MPL_OK;
}

static bool is_free(mpl_placement *placement, uint32_t from, uint32_t to, uint64_t at,
                    uint64_t bytes)
{
    if (bytes == 0)
        return true;
    use_time(placement->space, from, to);
    return next_free(placement, at, bytes, 1) == at;
}

/* b's inputs share only its first step, its outputs only its last. In those steps each buffer on
 * the partner's bytes is a partner of the partner, at the same offset. It may stay if it is also
 * b's partner. So the rest of b's live range must be free, and in its last step the bytes above
 * outputs. */
static bool timeline_may_join(mpl_placement *placement, mpl_buffer b, mpl_buffer partner)
{
    const mpl_problem *p = placement->p;
    uint64_t at = placement->offset[partner], end = mpl_placement_end(placement, b, at),
             output_end = at;
    uint32_t from = placement->space->from[placement->slot[b]],
             to = placement->space->to[placement->slot[b]];
    bool has_input = false;

    for (uint32_t i = placement->partner_begin[b]; i < placement->partner_begin[b + 1]; i++) {
        mpl_buffer q = placement->partner[i];

        if (!placement->placed[q] || placement->offset[q] != at)
            continue;
        if (p->death[q] - 1 == p->birth[b])
            has_input = true;
        else
            output_end = mpl_max_u64(output_end, mpl_placement_end(placement, q, at));
        for (uint32_t j = placement->partner_begin[q]; j < placement->partner_begin[q + 1]; j++) {
            mpl_buffer c = placement->partner[j];

            if (placement->placed[c] && placement->offset[c] == at && mpl_conflict(p, b, c) &&
                !mpl_placement_partners(placement, b, c))
                return false;
        }
    }
    if (has_input)
        from++;
    if (output_end > at) {
        to--;
        if (output_end < end && !is_free(placement, to, to + 1, output_end, end - output_end))
            return false;
    }
    return is_free(placement, from, to, at, end - at);
}

const mpl_space_kind mpl_space_timeline = {
    .open = timeline_open,
    .close = timeline_close,
    .find = timeline_find,
    .may_join = timeline_may_join,
    .insert = timeline_insert,
};
