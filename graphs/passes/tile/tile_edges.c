/* tile_edges.c -- what the search chooses from: each operation as it is, and each region with every
 * size of a list of patches. */
#include "graphs/passes/tile/tile_priv.h"

/* Programs of more steps, and regions that alone do more work than so many whole graphs, are no
 * candidates. */
enum { MOST_STEPS = 60000, MOST_SIZES = 12, MOST_FACTOR = 3 };

typedef struct maker {
    mpl_ctx *ctx;
    const mpl_graph *g;
    tile_edges *edges;
    tile_rule *rule;
    tile_program program;
    mpl_value *root;  /* [n_values] through views */
    mpl_op *last;     /* [n_values] last reader of a root; MPL_NONE: pinned, or none */
    uint64_t *across; /* [n_ops + 1] live bytes between operations */
    uint64_t *cost;   /* [n_ops] live bytes while an operation runs as it is */
    uint64_t *bound;  /* [n_ops + 1] live bytes of any way to here, whatever the patches */
    uint64_t patches;
} maker;

/* ---- the graph as it is ---- */

static uint64_t tile_bytes(const mpl_graph *g, mpl_value v)
{
    return tile_slots(g->value_bytes[v]);
}

static bool is_planned(const maker *self, mpl_value root)
{
    return self->last[root] != MPL_NONE;
}

static void find_lives(maker *self)
{
    const mpl_graph *g = self->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_op op = g->value_op[v];
        bool view = op != MPL_NONE && (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0;

        self->root[v] = view ? self->root[mpl_op_input(g, op, 0)] : v;
        self->last[v] = op != MPL_NONE && !view ? op : MPL_NONE;
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++)
            if (self->last[self->root[v]] != MPL_NONE &&
                g->value_use[k] > self->last[self->root[v]])
                self->last[self->root[v]] = g->value_use[k];
    for (uint32_t i = 0; i < g->n_outputs; i++)
        self->last[self->root[g->output[i]]] = MPL_NONE;
}

/* Bytes that the results of `op` lie on. */
static uint64_t reused(const maker *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    mpl_value out = mpl_op_output(g, op, 0);
    bool joins = g->op_kind[op] == MPL_OP_concat && self->rule[op].kind == TILE_JOIN &&
                 g->value_shape[out].dim[0] == 1;
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < mpl_op_n_in(g, op) && out != MPL_NONE; k++) {
        mpl_value v = mpl_op_input(g, op, k);

        if (v == MPL_NONE || !is_planned(self, self->root[v]) || self->last[self->root[v]] != op)
            continue;
        if (joins)
            bytes += tile_bytes(g, v);
        else if (mpl_op_overwrites(g, op, k) && mpl_same_form(g, v, out))
            return tile_bytes(g, out);
    }
    return mpl_min_u64(bytes, out != MPL_NONE ? tile_bytes(g, out) : 0);
}

static void find_costs(maker *self)
{
    const mpl_graph *g = self->g;
    uint64_t live = 0;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint64_t made = 0;

        self->across[op] = live;
        for (uint32_t i = 0; i < mpl_op_n_out(g, op); i++) {
            mpl_value v = mpl_op_output(g, op, i);

            if (v != MPL_NONE && self->root[v] == v && is_planned(self, v))
                made += tile_bytes(g, v);
        }
        self->cost[op] = live + made - mpl_min_u64(reused(self, op), made);
        live += made;
        for (mpl_value v = 0; v < g->n_values; v++)
            if (self->root[v] == v && self->last[v] == op)
                live -= tile_bytes(g, v);
    }
    self->across[g->n_ops] = live;
}

static mpl_status add_edge(maker *self, const tile_edge *edge)
{
    MPL_PASS(mpl_reserve(self->ctx, self->edges->edge, self->edges->cap, self->edges->n + 1));
    self->edges->edge[self->edges->n++] = *edge;
    return MPL_OK;
}

/* ---- regions ---- */

/* Whether a region may begin or end before `op`: not between a result and what only changes its
 * numbers. */
static bool is_cut(const maker *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    mpl_value v = op > 0 && op < g->n_ops ? mpl_op_output(g, op - 1, 0) : MPL_NONE;

    return v == MPL_NONE || self->rule[op].kind != TILE_POINT || mpl_op_input(g, op, 0) != v ||
           g->value_use_begin[v + 1] - g->value_use_begin[v] > 1 || mpl_op_n_in(g, op) > 6;
}

/* `all` in so many parts, rounded up; each once. */
static uint32_t sizes(int64_t all, int64_t size[MOST_SIZES])
{
    static const int64_t parts[] = {1, 2, 3, 4, 6, 8, 12, 18, 36};
    uint32_t n = 0;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int64_t one = (all + parts[i] - 1) / parts[i];

        if (n == 0 || size[n - 1] != one)
            size[n++] = one;
    }
    return n;
}

typedef struct candidate {
    mpl_tile_region r;
    uint64_t base; /* live bytes of what the region does not read */
    const uint64_t *bytes;
    const bool *later;
    bool pinned;
} candidate;

/* One choice of patches for a region. */
static mpl_status try_patch(maker *self, const candidate *c, const mpl_tile_region *region)
{
    tile_edge edge = {.r = *region};

    MPL_PASS(tile_walk(&self->program, region));
    if (self->program.n_steps > 0)
        MPL_PASS(tile_peak(&self->program, c->bytes, c->later, c->pinned, &edge.peak));
    edge.peak += c->base;
    edge.work = self->program.work;
    edge.n_patches = self->program.n_patches;
    if (self->program.n_steps > 0 && edge.peak < self->edges->plain_peak)
        MPL_PASS(add_edge(self, &edge));
    return MPL_OK;
}

/* Of the edges of one region, those that no other between the same forms beats in both peak and
 * work. */
static void keep_best(maker *self, size_t first)
{
    tile_edge *edge = self->edges->edge;
    size_t kept = first;

    for (size_t i = first; i < self->edges->n; i++) {
        bool beaten = false;

        for (size_t k = first; k < self->edges->n && !beaten; k++) {
            bool same = edge[k].peak == edge[i].peak && edge[k].work == edge[i].work;

            beaten = k != i && tile_from(&edge[k]) == tile_from(&edge[i]) &&
                     tile_to(&edge[k]) == tile_to(&edge[i]) && edge[k].peak <= edge[i].peak &&
                     edge[k].work <= edge[i].work &&
                     (!same || edge[k].n_patches < edge[i].n_patches ||
                      (edge[k].n_patches == edge[i].n_patches && k < i));
        }
        edge[i].r.patch.columns *= beaten ? -1 : 1; /* marked; removed below */
    }
    for (size_t i = first; i < self->edges->n; i++)
        if (edge[i].r.patch.columns > 0)
            edge[kept++] = edge[i];
    self->edges->n = kept;
}

/* The least number of channels whose parts of all operands begin where a view may. */
static int64_t channel_unit(const maker *self, const mpl_tile_region *region)
{
    const mpl_graph *g = self->g;
    int64_t unit = 1;

    for (mpl_op op = region->begin; op < region->end; op++)
        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++) {
            mpl_value v = mpl_op_input(g, op, i);
            uint32_t axis;

            if (v == MPL_NONE || tile_is_image(&self->rule[op], i))
                continue;
            axis = tile_channel_axis(g, op, i);
            if (axis != MPL_NONE) {
                uint64_t item = g->value_bytes[v] / (uint64_t)g->value_shape[v].dim[axis];
                int64_t one = (int64_t)(TILE_SLOT / mpl_divisor(TILE_SLOT, item));

                unit = one > unit ? one : unit; /* powers of two */
            }
        }
    return unit;
}

static mpl_status try_sizes(maker *self, const candidate *c, mpl_patch patch)
{
    const mpl_shape *shape = &self->g->value_shape[mpl_tile_result(self->g, &c->r)];
    mpl_tile_region r = {c->r.begin, c->r.end, patch, c->r.band, c->r.banded};
    int64_t n = ((shape->dim[1] + patch.channels - 1) / patch.channels) *
                ((shape->dim[2] + patch.rows - 1) / patch.rows) *
                ((shape->dim[3] + patch.columns - 1) / patch.columns);

    if (n == 1 || n * (r.end - r.begin) * 2 > MOST_STEPS)
        return MPL_OK;
    return try_patch(self, c, &r);
}

static mpl_status try_channels(maker *self, const candidate *c, const mpl_shape *shape)
{
    int64_t size[MOST_SIZES], unit = channel_unit(self, &c->r);
    uint32_t n = sizes(shape->dim[1], size);

    for (uint32_t i = 1; i < n; i++) {
        size[i] = (size[i] + unit - 1) / unit * unit;
        if (size[i] < shape->dim[1] && size[i] != size[i - 1])
            MPL_PASS(try_sizes(self, c,
                               (mpl_patch){.channels = size[i],
                                           .rows = shape->dim[2],
                                           .columns = shape->dim[3],
                                           .keep = MPL_KEEP_NONE}));
    }
    return MPL_OK;
}

/* Patches of rows and columns, of channels, or what was asked for. Narrow strips of several kept
 * rows are left out, and patches much wider than high, or higher than wide. */
static mpl_status try_patches(maker *self, const candidate *c)
{
    static const mpl_patch ways[] = {{.keep = MPL_KEEP_NONE},
                                     {.keep = MPL_KEEP_ALL},
                                     {.keep = MPL_KEEP_ALL, .shift = true},
                                     {.keep = MPL_KEEP_NARROW}};
    const mpl_shape *shape = &self->g->value_shape[mpl_tile_result(self->g, &c->r)];
    int64_t rows[2][MOST_SIZES], columns[MOST_SIZES], parts = (int64_t)self->patches;
    uint32_t n_columns = sizes(shape->dim[3], columns),
             n_rows[2] = {sizes(shape->dim[2], rows[0]), 0};
    size_t first = self->edges->n;

    for (int64_t n = 1; n <= 4 && n <= shape->dim[2]; n *= 2)
        rows[1][n_rows[1]++] = n;
    for (uint32_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        mpl_patch patch = ways[way];
        bool kept = patch.keep != MPL_KEEP_NONE;

        patch.channels = shape->dim[1], patch.columns = shape->dim[3];
        patch.rows = (shape->dim[2] + parts - 1) / (parts > 0 ? parts : 1);
        if (parts > 0)
            MPL_PASS(try_sizes(self, c, patch));
        for (uint32_t i = 0; i < n_rows[kept] && parts == 0; i++)
            for (uint32_t k = 0; k < n_columns; k++) {
                patch.rows = rows[kept][i], patch.columns = columns[k];
                if (k == 0 ||
                    (kept ? i == 0 || patch.keep == MPL_KEEP_NARROW : i <= k + 2 && k <= i + 2))
                    MPL_PASS(try_sizes(self, c, patch));
            }
    }
    if (parts == 0)
        MPL_PASS(try_channels(self, c, shape));
    keep_best(self, first);
    return MPL_OK;
}

/* Patches that read bands, or make some: strips of as many rows as a band that is read, half or
 * twice as many, each as a whole or in patches that go across. */
static mpl_status try_bands(maker *self, const candidate *c)
{
    static const mpl_patch ways[] = {
        {.columns = 1, .keep = MPL_KEEP_ALL, .across = true},
        {.columns = 1, .keep = MPL_KEEP_ALL, .shift = true, .across = true},
        {.columns = 1, .keep = MPL_KEEP_NARROW, .across = true},
        {.columns = 2, .keep = MPL_KEEP_NARROW, .across = true},
        {.columns = 4, .keep = MPL_KEEP_NARROW, .across = true},
        {.keep = MPL_KEEP_ALL},
        {.keep = MPL_KEEP_ALL, .shift = true},
        {.keep = MPL_KEEP_NARROW}};
    const mpl_shape *shape = &self->g->value_shape[mpl_tile_result(self->g, &c->r)];
    size_t first = self->edges->n;

    for (uint32_t form = 1; form < TILE_FORMS; form++)
        for (uint32_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            mpl_patch patch = ways[way];

            patch.channels = shape->dim[1], patch.rows = tile_form_rows[form];
            patch.columns = patch.across ? patch.columns : shape->dim[3];
            if (patch.rows < shape->dim[2] && patch.columns <= shape->dim[3] &&
                (c->r.band == 0 || c->r.band * 2 == patch.rows || c->r.band == patch.rows ||
                 c->r.band == 2 * patch.rows))
                MPL_PASS(try_sizes(self, c, patch));
        }
    keep_best(self, first);
    return MPL_OK;
}

/* A region with its operand and result in given forms, if these leave room below the peak. */
static mpl_status try_form(maker *self, mpl_tile_region r, uint64_t highest)
{
    mpl_status st = MPL_OK;
    mpl_value y = mpl_tile_result(self->g, &r);
    uint64_t base = self->across[r.begin], *bytes = NULL, made;
    bool *later = NULL, pinned = !is_planned(self, self->root[y]), bands = r.band > 0 || r.banded;
    uint32_t n;

    made = pinned ? 0 : tile_bytes(self->g, y);
    if ((bands ? mpl_max_u64(made, base) : base + made) >= highest || (pinned && r.banded))
        return MPL_OK;
    r.patch = (mpl_patch){.channels = self->g->value_shape[y].dim[1],
                          .rows = self->g->value_shape[y].dim[2],
                          .columns = self->g->value_shape[y].dim[3]};
    MPL_TRY(tile_walk(&self->program, &r));
    n = self->program.n_outside;
    MPL_TRY(mpl_new(self->ctx, bytes, n));
    MPL_TRY(mpl_new(self->ctx, later, n));
    for (uint32_t i = 0; i < n; i++) {
        const tile_value *value = &self->program.value[i];
        mpl_value v = self->root[value->of];
        bool planned = is_planned(self, v), first = i == 0 || value[-1].of != value->of;

        bytes[i] = !planned ? 0
                   : r.band > 0 && value->of == self->g->op_out[self->g->op_out_begin[r.begin - 1]]
                       ? value->bytes
                       : tile_bytes(self->g, v);
        later[i] = planned && self->last[v] >= r.end;
        base -= planned && first ? tile_bytes(self->g, v) : 0;
    }
    MPL_TRY((bands ? try_bands : try_patches)(self, &(candidate){r, base, bytes, later, pinned}));
out:
    mpl_free_each(self->ctx, bytes, later);
    return st;
}

/* What bands save at most: of what is read and what is made, the smaller need not be there in
 * whole. Bands that only the next region reads save nothing here, but there at most all of them. */
static uint64_t saved_by_bands(const maker *self, const mpl_tile_region *region)
{
    uint64_t made = tile_bytes(self->g, mpl_tile_result(self->g, region));

    if (region->band == 0)
        return made;
    return mpl_min_u64(
        made, tile_bytes(self->g, self->g->op_out[self->g->op_out_begin[region->begin - 1]]));
}

/* Planned bytes of what the region reads last; each once. */
static uint64_t read_last(const maker *self, const mpl_tile_region *region)
{
    uint64_t bytes = 0;

    for (mpl_value v = 0; v < self->g->n_values; v++)
        if (self->root[v] == v && is_planned(self, v) && self->last[v] >= region->begin &&
            self->last[v] < region->end &&
            (self->g->value_op[v] < region->begin || self->g->value_op[v] >= region->end))
            bytes += tile_bytes(self->g, v);
    return bytes;
}

/* Bytes of a piece that operation op reads while it makes the element in the middle, if the region
 * makes that operand, too. */
static uint64_t least_pieces(const maker *self, const mpl_tile_region *region, mpl_op op)
{
    const tile_rule *rule = &self->rule[op];
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < mpl_op_n_in(self->g, op); i++) {
        mpl_value v = mpl_op_input(self->g, op, i);
        const mpl_shape *shape = &self->g->value_shape[v];
        uint64_t n, one = 0;

        if (!tile_is_image(rule, i) || self->g->value_op[v] == MPL_NONE ||
            self->g->value_op[v] < region->begin)
            continue;
        n = (uint64_t)(shape->dim[0] * (rule->mixes || rule->joint ? shape->dim[1] : 1));
        for (uint32_t axis = TILE_ROWS; axis < TILE_AXES; axis++) {
            int64_t at = self->g->value_shape[mpl_op_output(self->g, op, 0)].dim[1 + axis] / 2;
            tile_span back = tile_back(self->g, op, rule, i, axis, (tile_span){at, at + 1});

            n *= (uint64_t)(back.high - back.low);
        }
        (void)mpl_type_size((mpl_type)self->g->value_type[v], n, &one);
        bytes = mpl_max_u64(bytes, tile_slots(one));
    }
    return bytes;
}

/* Live bytes that the region needs whatever its patches: first all that it reads, in the end all
 * that it makes, between them what one element is made of. */
static uint64_t region_bound(const maker *self, const mpl_tile_region *region)
{
    mpl_value y = mpl_tile_result(self->g, region);
    uint64_t made = is_planned(self, self->root[y]) ? tile_bytes(self->g, y) : 0, pieces = 0;
    uint64_t read = read_last(self, region), stays = self->across[region->begin] - read;

    for (mpl_op op = region->begin + 1; op < region->end; op++)
        pieces = mpl_max_u64(pieces, least_pieces(self, region, op));
    return stays + mpl_max_u64(mpl_max_u64(read, made), pieces);
}

/* In one piece from hand to hand; and in bands, where these may save a part of the peak. */
static mpl_status try_region(maker *self, mpl_op begin, mpl_op end)
{
    enum { PART = 16 };
    uint64_t highest = 0, least = UINT64_MAX, bound;
    mpl_op last = self->last[self->root[self->g->op_out[self->g->op_out_begin[end - 1]]]];
    bool in = tile_reads_bands(self->g, self->rule, begin, end);
    bool out = end < self->g->n_ops && tile_reads_bands(self->g, self->rule, end, last + 1);
    mpl_tile_region r = {.begin = begin, .end = end};
    size_t first = self->edges->n;

    bound = mpl_max_u64(self->bound[begin], region_bound(self, &r));
    self->bound[end] = mpl_min_u64(self->bound[end], bound);
    for (mpl_op op = begin; op < end; op++)
        highest = mpl_max_u64(highest, self->cost[op]);
    MPL_PASS(try_form(self, r, highest));
    for (size_t i = first; i < self->edges->n; i++)
        least = mpl_min_u64(least, self->edges->edge[i].peak);
    for (uint32_t form = 0; form < (in ? TILE_FORMS : 1) && self->patches == 0; form++)
        for (int banded = form == 0; banded < (out ? 2 : 1); banded++) {
            r.band = tile_form_rows[form], r.banded = banded != 0;
            if (saved_by_bands(self, &r) >= least / PART)
                MPL_PASS(try_form(self, r, highest));
        }
    return MPL_OK;
}

/* Bytes that a planner may leave out behind the last buffer of an arena. */
static uint64_t slack(const maker *self)
{
    uint64_t most = 0;

    for (mpl_value v = 0; v < self->g->n_values; v++)
        if (self->root[v] == v && is_planned(self, v))
            most = mpl_max_u64(most, tile_bytes(self->g, v) - self->g->value_bytes[v]);
    return most;
}

static mpl_status fill(maker *self)
{
    const mpl_graph *g = self->g;

    memset(self->bound + 1, 0xff, g->n_ops * sizeof *self->bound);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        self->edges->plain_peak = mpl_max_u64(self->edges->plain_peak, self->cost[op]);
        self->edges->plain_work += tile_products(g, op);
    }
    self->program.most_work = MOST_FACTOR * self->edges->plain_work;
    for (mpl_op begin = 0; begin < g->n_ops; begin++) {
        MPL_PASS(add_edge(self, &(tile_edge){.r = {.begin = begin, .end = begin + 1},
                                             .peak = self->cost[begin],
                                             .work = tile_products(g, begin)}));
        self->bound[begin + 1] =
            mpl_min_u64(self->bound[begin + 1], mpl_max_u64(self->bound[begin], self->cost[begin]));
        for (mpl_op end = begin + 1; end <= g->n_ops && self->rule[end - 1].kind != TILE_NOT; end++)
            if (is_cut(self, begin) && is_cut(self, end) &&
                tile_is_region(g, self->rule, begin, end))
                MPL_PASS(try_region(self, begin, end));
    }
    self->edges->bound = self->bound[g->n_ops] - mpl_min_u64(self->bound[g->n_ops], slack(self));
    return MPL_OK;
}

mpl_status tile_edges_new(mpl_ctx *ctx, const mpl_graph *g, uint64_t patches, tile_edges *out)
{
    mpl_status st = MPL_OK;
    maker m = {.ctx = ctx, .g = g, .edges = out, .patches = patches};

    *out = (tile_edges){.g = g};
    MPL_TRY(tile_rules_new(ctx, g, &m.rule));
    MPL_TRY(tile_program_new(ctx, g, m.rule, &m.program));
    m.program.sample = true;
    MPL_TRY(mpl_new_each(ctx, g->n_values, m.root, m.last));
    MPL_TRY(mpl_new_each(ctx, (size_t)g->n_ops + 1, m.across, m.cost, m.bound));
    find_lives(&m);
    find_costs(&m);
    MPL_TRY(fill(&m));
out:
    tile_program_fini(&m.program);
    mpl_free_each(ctx, m.rule, m.root, m.last, m.across, m.cost, m.bound);
    return st;
}
