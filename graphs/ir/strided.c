/* strided.c -- views and their overlap. See strided.h.
 *
 * Two boxes overlap if a sum of bounded multiples of positive strides reaches a target: a bounded
 * knapsack. The search goes by descending stride. What the remaining strides can reach, and their
 * greatest common divisor, leave few multiples to try at each stride. */
#include "graphs/ir/strided.h"

#include <stdlib.h>

enum { DEFAULT_LIMIT = 4096 };

static bool is_empty(const mpl_strided *view)
{
    for (uint32_t i = 0; i < view->shape.rank; i++)
        if (view->shape.dim[i] == 0)
            return true;
    return false;
}

mpl_strided mpl_strided_all(const mpl_shape *shape)
{
    mpl_strided v = {.shape = *shape};
    uint64_t step = 1; /* wraps only if another dim is 0 */

    for (uint32_t i = shape->rank; i-- > 0;) {
        v.stride[i] = (int64_t)step;
        step *= (uint64_t)shape->dim[i];
    }
    return v;
}

bool mpl_strided_equal(const mpl_strided *a, const mpl_strided *b)
{
    if (!mpl_shape_equal(&a->shape, &b->shape))
        return false;
    if (is_empty(a))
        return true;
    for (uint32_t i = 0; i < a->shape.rank; i++)
        if (a->shape.dim[i] > 1 && a->stride[i] != b->stride[i])
            return false;
    return a->offset == b->offset;
}

bool mpl_strided_contiguous(const mpl_strided *view)
{
    mpl_strided plain = mpl_strided_all(&view->shape);

    plain.offset = view->offset;
    return mpl_strided_equal(view, &plain);
}

bool mpl_strided_whole(const mpl_strided *view, uint64_t count)
{
    uint64_t n;

    return mpl_shape_count(&view->shape, &n) && n == count && (n == 0 || view->offset == 0) &&
           mpl_strided_contiguous(view);
}

bool mpl_strided_bounds(const mpl_strided *view, int64_t *least, int64_t *most)
{
    const int64_t limit = INT64_C(1) << 62;
    int64_t low = view->offset, high = view->offset, reach;

    if (is_empty(view) || low < 0 || low >= limit)
        return false;
    for (uint32_t i = 0; i < view->shape.rank; i++) {
        if (view->shape.dim[i] == 1)
            continue;
        if (__builtin_mul_overflow(view->shape.dim[i] - 1, view->stride[i], &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return false;
    }
    *least = low;
    *most = high;
    return low >= 0 && high < limit;
}

/* ---- strides as terms ---- */

typedef struct term {
    int64_t stride; /* > 0 */
    int64_t most;   /* multiples 0 .. most */
} term;

MPL_ORDER_BY(by_stride, term, MPL_FALLING(stride) MPL_RISING(most))

/* Writes the nonzero strides of a nonempty view, made positive and descending; returns their
 * number. */
static uint32_t terms_of(const mpl_strided *view, term *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < view->shape.rank; i++)
        if (view->shape.dim[i] > 1 && view->stride[i] != 0)
            out[n++] = (term){view->stride[i] < 0 ? -view->stride[i] : view->stride[i],
                              view->shape.dim[i] - 1};
    qsort(out, n, sizeof *out, by_stride);
    return n;
}

bool mpl_strided_distinct(const mpl_strided *view)
{
    term all[MPL_MAX_RANK];
    int64_t reach = 0;
    uint32_t n;

    if (is_empty(view))
        return true;
    for (uint32_t i = 0; i < view->shape.rank; i++)
        if (view->shape.dim[i] > 1 && view->stride[i] == 0)
            return false;
    n = terms_of(view, all);
    while (n-- > 0) { /* smallest first: each stride must exceed what the smaller ones reach */
        if (all[n].stride <= reach)
            return false;
        reach += all[n].stride * all[n].most;
    }
    return true;
}

/* ---- views of views ---- */

bool mpl_strided_take(mpl_strided *view, uint32_t axis, int64_t start, int64_t step, int64_t n)
{
    int64_t last;

    if (axis >= view->shape.rank || n < 0)
        return false;
    if (n > 0) {
        if (start < 0 || start >= view->shape.dim[axis] ||
            (n > 1 && (step == 0 || __builtin_mul_overflow(n - 1, step, &last) ||
                       __builtin_add_overflow(last, start, &last) || last < 0 ||
                       last >= view->shape.dim[axis])))
            return false;
        view->offset += start * view->stride[axis];
    }
    if (n > 1)
        view->stride[axis] *= step;
    view->shape.dim[axis] = n;
    return true;
}

static bool select_index(mpl_strided *view, uint32_t axis, int64_t index)
{
    if (!mpl_strided_take(view, axis, index, 1, 1))
        return false;
    view->shape.rank--;
    for (uint32_t i = axis; i < view->shape.rank; i++) {
        view->shape.dim[i] = view->shape.dim[i + 1];
        view->stride[i] = view->stride[i + 1];
    }
    return true;
}

bool mpl_strided_permute(mpl_strided *v, const uint32_t axis[MPL_MAX_RANK])
{
    mpl_strided from = *v;
    uint32_t seen = 0;

    for (uint32_t i = 0; i < v->shape.rank; i++) {
        if (axis[i] >= v->shape.rank || (seen >> axis[i] & 1) != 0)
            return *v = from, false;
        seen |= 1u << axis[i];
        v->shape.dim[i] = from.shape.dim[axis[i]];
        v->stride[i] = from.stride[axis[i]];
    }
    return true;
}

bool mpl_strided_expand(mpl_strided *view, const mpl_shape *to)
{
    mpl_strided out = {.shape = *to, .offset = view->offset};

    if (to->rank < view->shape.rank || to->rank > MPL_MAX_RANK)
        return false;
    for (uint32_t i = 0, lead = to->rank - view->shape.rank; i < view->shape.rank; i++) {
        if (view->shape.dim[i] != to->dim[lead + i] && view->shape.dim[i] != 1)
            return false;
        out.stride[lead + i] = view->shape.dim[i] == to->dim[lead + i] ? view->stride[i] : 0;
    }
    *view = out;
    return true;
}

void mpl_strided_join(const mpl_strided *view, mpl_strided *out)
{
    memset(out, 0, sizeof *out);
    out->offset = view->offset;
    for (uint32_t i = 0; i < view->shape.rank; i++) {
        uint32_t last = out->shape.rank - 1;

        if (view->shape.dim[i] == 1)
            continue;
        if (out->shape.rank > 0 && out->stride[last] == view->stride[i] * view->shape.dim[i]) {
            out->shape.dim[last] *= view->shape.dim[i];
            out->stride[last] = view->stride[i];
        } else {
            out->shape.dim[last + 1] = view->shape.dim[i];
            out->stride[last + 1] = view->stride[i];
            out->shape.rank++;
        }
    }
}

bool mpl_strided_reshape(mpl_strided *view, const mpl_shape *to)
{
    mpl_strided joined, out = {.shape = *to, .offset = view->offset};
    uint64_t had, made;
    int64_t left = 1, stride = 1; /* of the joined dim being split, from its end */
    uint32_t at;

    if (!mpl_shape_count(&view->shape, &had) || !mpl_shape_count(to, &made) || had != made)
        return false;
    if (made == 0) {
        *view = mpl_strided_all(to);
        return true;
    }
    mpl_strided_join(view, &joined);
    at = joined.shape.rank;
    for (uint32_t i = to->rank; i-- > 0;) {
        if (to->dim[i] > 1 && left == 1) { /* element counts are equal: at > 0 */
            left = joined.shape.dim[--at];
            stride = joined.stride[at];
        }
        if (left % to->dim[i] != 0)
            return false;
        out.stride[i] = stride;
        stride *= to->dim[i];
        left /= to->dim[i];
    }
    *view = out;
    return true;
}

/* Converts a step of `steps` elements in the row-major order of `plain` to steps along the axes,
 * largest strides first. Returns the stride in `joined`, and adds `times` such steps to the range
 * low, high of each axis. */
static int64_t real_stride(const mpl_strided *joined, const mpl_strided *plain, int64_t steps,
                           int64_t times, int64_t low[MPL_MAX_RANK], int64_t high[MPL_MAX_RANK])
{
    int64_t real = 0, sign = steps < 0 ? -1 : 1;

    steps *= sign;
    for (uint32_t g = 0; g < joined->shape.rank; g++) {
        int64_t n = sign * (steps / plain->stride[g]);

        steps %= plain->stride[g];
        real += n * joined->stride[g];
        *(n < 0 ? &low[g] : &high[g]) += n * times;
    }
    return real;
}

bool mpl_strided_compose(const mpl_strided *outer, const mpl_strided *inner, mpl_strided *out)
{
    mpl_strided joined, plain, made = {.shape = inner->shape};
    int64_t least, most, low[MPL_MAX_RANK], high[MPL_MAX_RANK], at = inner->offset;
    uint64_t count;

    if (!mpl_shape_count(&outer->shape, &count))
        return false;
    if (is_empty(inner))
        return *out = mpl_strided_all(&inner->shape), true;
    if (!mpl_strided_bounds(inner, &least, &most) || (uint64_t)most >= count)
        return false;
    mpl_strided_join(outer, &joined);
    plain = mpl_strided_all(&joined.shape);
    made.offset = joined.offset;
    for (uint32_t g = 0; g < joined.shape.rank; g++) {
        low[g] = high[g] = at / plain.stride[g];
        made.offset += low[g] * joined.stride[g];
        at %= plain.stride[g];
    }
    for (uint32_t i = 0; i < inner->shape.rank; i++) {
        made.stride[i] = inner->stride[i];
        if (inner->shape.dim[i] > 1)
            made.stride[i] =
                real_stride(&joined, &plain, inner->stride[i], inner->shape.dim[i] - 1, low, high);
    }
    /* If no index leaves its axis, steps along axes equal steps in row-major order. */
    for (uint32_t g = 0; g < joined.shape.rank; g++)
        if (low[g] < 0 || high[g] >= joined.shape.dim[g])
            return false;
    *out = made;
    return true;
}

/* ---- NumPy index ---- */

/* Reads a number at *at, if any. */
static bool take_number(const char **at, int64_t *out)
{
    char *end;
    long long value = strtoll(*at, &end, 10);

    if (end == *at)
        return false;
    *at = end;
    *out = value;
    return true;
}

/* Reads "start:stop:step" for an axis of n elements; each part is optional. */
static bool take_range(const char **at, int64_t n, int64_t *start, int64_t *step, int64_t *count)
{
    bool has_start = take_number(at, start), has_stop = false;
    int64_t stop = 0, span;

    *step = 1;
    if (**at == ':') {
        ++*at;
        has_stop = take_number(at, &stop);
        if (**at == ':') {
            ++*at;
            take_number(at, step);
        }
    }
    if (*step == 0 || *step == INT64_MIN)
        return false;
    if (has_start)
        *start = *start < -n ? -1 : *start < 0 ? *start + n : *start;
    if (has_stop)
        stop = stop < -n ? -1 : stop < 0 ? stop + n : stop;
    if (*step > 0) {
        *start = !has_start || *start < 0 ? 0 : *start > n ? n : *start;
        stop = !has_stop || stop > n ? n : stop < 0 ? 0 : stop;
        span = stop - *start;
    } else {
        *start = !has_start || *start >= n ? n - 1 : *start < 0 ? -1 : *start;
        stop = !has_stop || stop < 0 ? -1 : stop >= n ? n - 1 : stop;
        span = *start - stop;
    }
    *count = span <= 0 ? 0 : (span - 1) / (*step < 0 ? -*step : *step) + 1;
    return true;
}

/* Number of axes that an index consumes; *dots counts "...". */
static uint32_t axes_taken(const char *text, uint32_t *dots)
{
    uint32_t n = 0;

    *dots = 0;
    for (const char *at = text; at != NULL && *at != '\0';) {
        *dots += strncmp(at, "...", 3) == 0;
        n += strncmp(at, "...", 3) != 0 && strncmp(at, "None", 4) != 0;
        at = strchr(at, ',');
        at += at != NULL;
    }
    return n;
}

static bool add_axis(mpl_strided *view, uint32_t axis)
{
    if (view->shape.rank == MPL_MAX_RANK)
        return false;
    for (uint32_t i = view->shape.rank; i > axis; i--) {
        view->shape.dim[i] = view->shape.dim[i - 1];
        view->stride[i] = view->stride[i - 1];
    }
    view->shape.dim[axis] = 1;
    view->stride[axis] = 0;
    view->shape.rank++;
    return true;
}

/* Applies one item of an index at axis *axis. */
static bool take_item(mpl_strided *view, const char **at, uint32_t *axis, uint32_t skipped)
{
    const char *probe = *at;
    int64_t index, step, count;

    if (strncmp(*at, "...", 3) == 0) {
        *at += 3;
        *axis += skipped;
        return true;
    }
    if (strncmp(*at, "None", 4) == 0) {
        *at += 4;
        return add_axis(view, (*axis)++);
    }
    if (*axis >= view->shape.rank)
        return false;
    if (take_number(&probe, &index) && *probe != ':') {
        *at = probe;
        return select_index(view, *axis, index < 0 ? index + view->shape.dim[*axis] : index);
    }
    return **at != ',' && **at != '\0' &&
           take_range(at, view->shape.dim[*axis], &index, &step, &count) &&
           mpl_strided_take(view, (*axis)++, index, step, count);
}

mpl_status mpl_strided_index(mpl_ctx *ctx, mpl_strided *view, const char *text)
{
    mpl_strided out = *view;
    uint32_t axis = 0, dots, taken = axes_taken(text, &dots);
    const char *at = text;
    char dims[200];

    if (dots > 1 || taken > view->shape.rank)
        return MPL_REFUSE(
            ctx, "index '%.80s' has more than one '...', or more items than the %u dims of %s",
            text, view->shape.rank, mpl_shape_text(&view->shape, dims));
    while (*at != '\0') {
        if (!take_item(&out, &at, &axis, view->shape.rank - taken) || (*at != '\0' && *at != ','))
            return MPL_REFUSE(
                ctx,
                "index '%.80s' of %s: at '%.20s' there is no number in range, range a:b:c, "
                "'...' or None",
                text, mpl_shape_text(&view->shape, dims), at);
        at += *at == ',';
    }
    *view = out;
    return MPL_OK;
}

/* ---- overlap ---- */

static int64_t divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

typedef struct search {
    uint32_t n, left;                    /* terms; search steps left */
    term item[2 * MPL_MAX_RANK];         /* descending strides */
    int64_t reach[2 * MPL_MAX_RANK + 1]; /* of terms i and later */
    int64_t unit[2 * MPL_MAX_RANK + 1];  /* divisor of what terms i and later reach; 0: no terms */
} search;

/* Whether the terms from `at` on reach `target`. */
static mpl_meeting reach_target(search *self, uint32_t at, int64_t target)
{
    mpl_meeting found = MPL_APART;
    int64_t least, most;

    if (target < 0 || target > self->reach[at] || (target != 0 && target % self->unit[at] != 0))
        return MPL_APART;
    if (target == 0 || target == self->reach[at] || at + 1 == self->n)
        return MPL_MEET; /* the last term's stride divides the target, which is within reach */
    if (self->left-- == 0)
        return self->left = 0, MPL_UNDECIDED;
    least = target > self->reach[at + 1]
                ? (target - self->reach[at + 1] - 1) / self->item[at].stride + 1
                : 0;
    most = target / self->item[at].stride;
    most = most < self->item[at].most ? most : self->item[at].most;
    for (int64_t k = most; k >= least; k--) {
        mpl_meeting below = reach_target(self, at + 1, target - k * self->item[at].stride);

        if (below != MPL_APART)
            found = below;
        if (below == MPL_MEET || self->left == 0)
            break;
    }
    return found == MPL_APART && self->left == 0 ? MPL_UNDECIDED : found;
}

mpl_meeting mpl_strided_meet(const mpl_strided *a, const mpl_strided *b, uint32_t limit)
{
    search s = {.left = limit != 0 ? limit : DEFAULT_LIMIT};
    int64_t low[2], high[2];
    uint32_t n = 0;

    if (is_empty(a) || is_empty(b))
        return MPL_APART;
    if (!mpl_strided_bounds(a, &low[0], &high[0]) || !mpl_strided_bounds(b, &low[1], &high[1]))
        return MPL_UNDECIDED;
    if (high[0] < low[1] || high[1] < low[0])
        return MPL_APART;
    n = terms_of(a, s.item);
    n += terms_of(b, s.item + n);
    qsort(s.item, n, sizeof *s.item, by_stride);
    for (uint32_t i = 0; i < n; i++) /* merge equal strides: their ranges add up */
        if (s.n > 0 && s.item[s.n - 1].stride == s.item[i].stride)
            s.item[s.n - 1].most += s.item[i].most;
        else
            s.item[s.n++] = s.item[i];
    for (uint32_t i = s.n; i-- > 0;) {
        s.reach[i] = s.reach[i + 1] + s.item[i].stride * s.item[i].most;
        s.unit[i] = divisor(s.item[i].stride, s.unit[i + 1]);
    }
    /* low[0] + x = low[1] + y; substituting high[1] - low[1] - y for y makes all terms positive. */
    return reach_target(&s, 0, high[1] - low[0]);
}

const char *mpl_strided_text(const mpl_strided *view, char *text)
{
    char dims[200], strides[200];

    mpl_shape_text(
        &(mpl_shape){view->shape.rank,
                     {view->stride[0], view->stride[1], view->stride[2], view->stride[3],
                      view->stride[4], view->stride[5], view->stride[6], view->stride[7]}},
        strides);
    sprintf(text, "(%s,%s,%" PRId64 ")", mpl_shape_text(&view->shape, dims), strides, view->offset);
    return text;
}
