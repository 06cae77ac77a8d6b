/* hlo_shape.c -- shapes of HLO text and the bytes of their arrays. See hlo_priv.h.
 *
 * A shape is `type[dims]{layout}` or `(shape, ..)`. A dim `<=N` is planned at its bound. Of a
 * layout, tiles pad an array to whole tiles, and E(bits) packs elements; the order of dims, memory
 * spaces and the rest take no bytes. Source: openxla.org/xla/shapes, openxla.org/xla/tiled_layout.
 */
#include "graphs/io/hlo/hlo_priv.h"

enum { MOST_DIMS = 64, MOST_NESTED = 50 };

static const struct {
    const char *name;
    uint32_t bits; /* 0: no data, such as a token */
    mpl_type type, packed;
} types[] = {
#define TYPE(name, bits, type, packed) {#name, bits, MPL_TYPE_##type, MPL_TYPE_##packed},
#include "graphs/io/hlo/hlo_types.def"
#undef TYPE
};
enum { N_TYPES = sizeof types / sizeof *types };

/* Dims from the outermost in memory to the innermost. */
typedef struct dims {
    uint32_t n;
    int64_t item[MOST_DIMS];
} dims;

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static mpl_status parse_dims(hlo_module *module, const char **at, dims *out)
{
    const char *s = hlo_skip(module, *at + 1);

    out->n = 0;
    while (!hlo_at(module, s, ']')) {
        if (module->end - s > 2 && s[0] == '<' && s[1] == '=')
            s += 2;
        if (out->n == MOST_DIMS)
            return hlo_refuse(module, s, "more than %d dims", MOST_DIMS);
        if (!hlo_number(module, &s, &out->item[out->n]) || out->item[out->n++] < 0)
            return hlo_refuse(module, s, "a dim is a number, or <= and a bound%s",
                              hlo_at(module, s, '?') ? "; one without a bound cannot be planned"
                                                     : "");
        s = hlo_skip(module, s);
        if (hlo_at(module, s, ','))
            s = hlo_skip(module, s + 1);
        else if (!hlo_at(module, s, ']'))
            return hlo_refuse(module, s, "dims end with ']'");
    }
    *at = s + 1;
    return MPL_OK;
}

/* Numbers between brackets, such as a tile; stops behind the closing one. */
static bool take_list(const hlo_module *module, const char **at, char close, dims *out)
{
    const char *s = hlo_skip(module, *at + 1);

    for (out->n = 0; !hlo_at(module, s, close); out->n++) {
        if (out->n == MOST_DIMS || !hlo_number(module, &s, &out->item[out->n]))
            return false;
        s = hlo_skip(module, s);
        if (hlo_at(module, s, ','))
            s = hlo_skip(module, s + 1);
    }
    *at = s + 1;
    return true;
}

/* Cuts the innermost dims into tiles: [ceil(d / t).., t..]. False: too many dims. */
static bool apply_tile(dims *self, const dims *tile)
{
    dims cut = {0};
    uint32_t missing = tile->n > self->n ? tile->n - self->n : 0,
             kept = self->n + missing - tile->n;

    if (kept + 2 * tile->n > MOST_DIMS)
        return false;
    for (uint32_t i = 0; i < kept + tile->n; i++) {
        int64_t dim = i < missing ? 1 : self->item[i - missing];
        int64_t t = i < kept ? 1 : tile->item[i - kept];

        if (t <= 0)
            return false;
        cut.item[i] = dim / t + (dim % t != 0);
    }
    memcpy(cut.item + kept + tile->n, tile->item, tile->n * sizeof *tile->item);
    cut.n = kept + 2 * tile->n;
    *self = cut;
    return true;
}

/* What a layout says. */
typedef struct layout {
    dims laid;    /* of the array as stored, tiles included */
    bool tiled;   /* laid is not the dims alone */
    int64_t bits; /* of a packed element; 0: not packed */
} layout;

/* The dims in the order of memory; false: minor_to_major is no permutation of them. */
static bool lay(const dims *logical, const dims *minor_to_major, dims *out)
{
    uint64_t seen = 0;

    *out = *logical;
    for (uint32_t i = 0; i < minor_to_major->n; i++) {
        int64_t k = minor_to_major->item[i];

        if (minor_to_major->n != logical->n || k < 0 || k >= logical->n || (seen >> k & 1) != 0)
            return false;
        seen |= UINT64_C(1) << k;
        out->item[logical->n - 1 - i] = logical->item[k];
    }
    return true;
}

/* Skips a group in brackets that has no bytes here, such as S(1). */
static const char *skip_group(const hlo_module *module, const char *s)
{
    int depth = 0;

    do {
        depth += hlo_at(module, s, '(') - hlo_at(module, s, ')');
        s++;
    } while (s < module->end && depth > 0 && *s != '\n');
    return s;
}

/* The part of a layout behind the order of dims: T(8,128)(2,1)E(4)S(1).. */
static mpl_status parse_tail(hlo_module *module, const char **at, layout *l)
{
    const char *s = *at;
    char kind = ' ';

    while (s < module->end && *s != '}' && *s != '\n') {
        const char *group = s;
        dims list;

        if (*s != '(') {
            kind = *s++;
            continue;
        }
        if ((kind == 'T' || kind == 'E') && !take_list(module, &s, ')', &list))
            s = skip_group(module, group); /* tiles that join dims (*) are read as none */
        else if (kind == 'T' && !apply_tile(&l->laid, &list))
            return hlo_refuse(module, group,
                              "a tile has sizes above 0, and at most %d dims come of it",
                              MOST_DIMS);
        else if (kind == 'E' && (list.n != 1 || list.item[0] < 0 || list.item[0] > 128))
            return hlo_refuse(module, group, "E(bits) is the size of a packed element");
        else if (kind == 'T')
            l->tiled = true;
        else if (kind == 'E')
            l->bits = list.item[0];
        else
            s = skip_group(module, group);
    }
    *at = s;
    return MPL_OK;
}

/* Parses {minor_to_major:tail} if it stands there. *form: the hash so far; it changes unless the
 * array is plain, row-major. */
static mpl_status parse_layout(hlo_module *module, const char **at, const dims *d, layout *l,
                               uint64_t *form)
{
    const char *s = *at, *begin;
    dims order = {0};
    bool plain = true; /* row-major, and nothing else is said */

    l->laid = *d;
    if (!hlo_at(module, s, '{') || module->end - s < 2 ||
        !(s[1] == '}' || s[1] == ':' || (s[1] >= '0' && s[1] <= '9')))
        return MPL_OK;
    begin = s + 1;
    for (s = begin; s < module->end && *s != ':' && *s != '}' && *s != '\n';) {
        if (order.n == MOST_DIMS || !hlo_number(module, &s, &order.item[order.n]))
            return hlo_refuse(module, s, "a layout is the dims from the innermost, such as {1,0}");
        plain = plain && order.item[order.n] == (int64_t)d->n - 1 - order.n;
        order.n++;
        s += hlo_at(module, s, ',');
    }
    if (!lay(d, &order, &l->laid))
        return hlo_refuse(module, begin, "a layout names each of %u dims once", d->n);
    plain = plain && !hlo_at(module, s, ':');
    if (hlo_at(module, s, ':'))
        MPL_PASS(parse_tail(module, &s, l));
    if (!hlo_at(module, s, '}'))
        return hlo_refuse(module, s, "a layout ends with '}'");
    if (!plain)
        *form = mpl_hash(*form, begin, (size_t)(s - begin));
    *at = s + 1;
    return MPL_OK;
}

static bool product(const dims *self, uint32_t n, uint64_t *out)
{
    uint64_t count = 1;

    for (uint32_t i = 0; i < n; i++)
        if (self->item[i] == 0)
            return *out = 0, true;
    for (uint32_t i = 0; i < n; i++)
        if (!mpl_mul_bytes(count, (uint64_t)self->item[i], &count))
            return false;
    *out = count;
    return count <= INT64_MAX;
}

/* The dims, or, where more bytes or packed ones are stored, a row of bytes. Outer dims beyond the
 * rank that a value can have are multiplied. */
static bool shape_of(const dims *self, const layout *l, uint32_t type, hlo_leaf *out)
{
    uint32_t fold = self->n > MPL_MAX_RANK ? self->n - MPL_MAX_RANK : 0, kept = self->n - fold;
    uint64_t stored, count, bits = types[type].bits, bytes;
    mpl_type ours = l->bits != 0 ? types[type].packed : types[type].type;

    if (!product(&l->laid, l->laid.n, &stored) || !product(self, self->n, &count) ||
        !mpl_type_size(ours, count, &bytes) || bytes > INT64_MAX)
        return false;
    bits = l->bits != 0 && bits != 0 ? (uint64_t)l->bits : (bits + 7) / 8 * 8;
    out->type = ours;
    if (bits != mpl_type_bits(ours) || stored != count) {
        if (!mpl_mul_bytes(stored, bits, &bytes) || bytes > INT64_MAX - 7)
            return false;
        out->type = MPL_TYPE_u8;
        out->shape = (mpl_shape){.rank = 1, .dim = {(int64_t)((bytes + 7) / 8)}};
        return true;
    }
    out->shape = (mpl_shape){.rank = kept};
    for (uint32_t i = 0; i < kept; i++)
        out->shape.dim[i] = self->item[fold + i];
    if (fold > 0 && !product(self, fold + 1, &count))
        return false;
    if (fold > 0)
        out->shape.dim[0] = (int64_t)count;
    return true;
}

static uint32_t find_type(const char *at, size_t n)
{
    for (uint32_t i = 0; i < N_TYPES; i++)
        if (strlen(types[i].name) == n && memcmp(types[i].name, at, n) == 0)
            return i;
    return N_TYPES;
}

static mpl_status parse_array(hlo_module *module, const char **at)
{
    const char *s = *at, *begin = s;
    hlo_leaf leaf;
    layout l = {0};
    uint32_t type;
    dims d;

    while (s < module->end && is_letter(*s))
        s++;
    type = find_type(begin, (size_t)(s - begin));
    if (type == N_TYPES || !hlo_at(module, s, '['))
        return hlo_refuse(module, begin,
                          "'%.*s' where a shape should stand, such as f32[2,3] or (f32[], s8[4])",
                          (int)(s - begin < 30 ? s - begin : 30), begin);
    MPL_PASS(parse_dims(module, &s, &d));
    leaf.form = mpl_hash(mpl_hash(MPL_HASH_SEED, &type, sizeof type), d.item, d.n * sizeof *d.item);
    MPL_PASS(parse_layout(module, &s, &d, &l, &leaf.form));
    if (!shape_of(&d, &l, type, &leaf))
        return hlo_refuse(module, begin, "an array of more than 2^63 bytes");
    HLO_APPEND(module, module->leaf, leaf);
    HLO_APPEND(module, module->node, ((hlo_node){1, 1}));
    *at = s;
    return MPL_OK;
}

static mpl_status parse_nested(hlo_module *module, const char **at, int left)
{
    const char *s = hlo_skip(module, *at);
    size_t node = module->node.n, leaf = module->leaf.n;

    if (!hlo_at(module, s, '(')) {
        *at = s;
        return parse_array(module, at);
    }
    if (left == 0)
        return hlo_refuse(module, s, "tuples nest deeper than %d", MOST_NESTED);
    HLO_APPEND(module, module->node, ((hlo_node){1, 0}));
    for (s = hlo_skip(module, s + 1); !hlo_at(module, s, ')');) {
        MPL_PASS(parse_nested(module, &s, left - 1));
        s = hlo_skip(module, s);
        if (hlo_at(module, s, ','))
            s = hlo_skip(module, s + 1);
        else if (!hlo_at(module, s, ')'))
            return hlo_refuse(module, s, "a tuple's shape ends with ')'");
    }
    module->node.item[node] =
        (hlo_node){(uint32_t)(module->node.n - node), (uint32_t)(module->leaf.n - leaf)};
    *at = s + 1;
    return MPL_OK;
}

mpl_status hlo_shape_parse(hlo_module *module, const char **at, hlo_shape *out)
{
    size_t node = module->node.n, leaf = module->leaf.n;

    MPL_PASS(parse_nested(module, at, MOST_NESTED));
    *out = (hlo_shape){(uint32_t)node, (uint32_t)leaf, (uint32_t)(module->leaf.n - leaf)};
    return MPL_OK;
}

bool hlo_element(const hlo_module *module, hlo_shape shape, int64_t k, hlo_shape *out)
{
    const hlo_node *node = module->node.item + shape.node;
    uint32_t at = 1, leaf = 0;

    if (k < 0 || (node->n_nodes == 1 && node->n_leaves == 1))
        return false;
    if (node->n_nodes == node->n_leaves + 1 && k < node->n_leaves) /* of arrays alone */
        return *out = (hlo_shape){shape.node + 1 + (uint32_t)k, shape.leaf + (uint32_t)k, 1}, true;
    for (; at < node->n_nodes && k > 0; k--) {
        leaf += node[at].n_leaves;
        at += node[at].n_nodes;
    }
    if (at >= node->n_nodes)
        return false;
    *out = (hlo_shape){shape.node + at, shape.leaf + leaf, node[at].n_leaves};
    return true;
}

bool hlo_descend(const hlo_module *module, hlo_shape shape, const uint32_t *path, uint32_t n,
                 hlo_shape *out)
{
    for (uint32_t i = 0; i < n; i++)
        if (!hlo_element(module, shape, path[i], &shape))
            return false;
    *out = shape;
    return true;
}
