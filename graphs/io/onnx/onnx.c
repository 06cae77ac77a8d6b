/* onnx.c -- reads an ONNX model: unpacks it, names its values, walks its nodes. See source.h.
 *
 * Idea     Nodes become operations in the order of the file, with shapes known at once and
 *          constants folded. If a node's shape depends on the contents of an input, the input is
 *          marked and the whole file is read again with that input as a constant. What no output
 *          needs is dropped last.
 * Source   ONNX, onnx.proto and docs/IR.md; https://github.com/onnx/onnx
 * Cost     Linear in the file, times (1 + inputs that decide shapes + loops whose rounds do). */
#include "graphs/core/file.h"
#include "graphs/io/onnx/onnx_priv.h"

#define MAX_NESTING 100        /* of messages; protobuf's own readers have this limit */
#define MOST_NODES  (1U << 18) /* unrolled loops make many nodes of few */

/* ---- messages of the file ---- */

/* Whether messages nest no deeper than `left`. protobuf-c recurses without a limit, so a small file
 * could exhaust the stack. Malformed messages are left for protobuf-c to refuse. */
static bool nests_within(const ProtobufCMessageDescriptor *kind, const uint8_t *at,
                         const uint8_t *end, int left)
{
    onnx_field f;

    while (onnx_next_field(&at, end, &f)) {
        const ProtobufCFieldDescriptor *field =
            f.data != NULL ? protobuf_c_message_descriptor_get_field(kind, f.number) : NULL;

        if (field != NULL && field->type == PROTOBUF_C_TYPE_MESSAGE &&
            (left == 0 || !nests_within(field->descriptor, f.data, f.data + f.size, left - 1)))
            return false;
    }
    return true;
}

static void *message_alloc(void *memory, size_t size)
{
    onnx_memory *m = memory;
    void *p = mpl_alloc(m->ctx, size, 1);

    m->failed = m->failed || p == NULL;
    return p;
}

static void message_free(void *memory, void *p)
{
    mpl_free(((onnx_memory *)memory)->ctx, p);
}

mpl_status onnx_unpack(onnx_memory *memory, mpl_ctx *ctx, const char *path, const char *what,
                       const ProtobufCMessageDescriptor *kind, const void *data, size_t size,
                       ProtobufCMessage **out)
{
    *memory = (onnx_memory){{message_alloc, message_free, memory}, ctx, false};
    if (size == 0)
        return MPL_REFUSE(ctx, "%s: the file is empty; %s was expected", path, what);
    if (!nests_within(kind, data, (const uint8_t *)data + size, MAX_NESTING))
        return MPL_REFUSE(ctx, "%s: messages nest deeper than %d", path, MAX_NESTING);
    *out = protobuf_c_message_unpack(kind, &memory->allocator, size, data);
    if (*out == NULL && memory->failed)
        return MPL_ERROR(ctx, MPL_EMEM, "%s: out of memory", path);
    if (*out == NULL)
        return MPL_REFUSE(ctx, "%s: not %s, or cut", path, what);
    return MPL_OK;
}

/* ---- scratch memory, names ---- */

void *onnx_scratch(onnx_reader *r, size_t n, size_t size)
{
    void *p;

    if (mpl_reserve(r->ctx, r->scratch, r->cap_scratch, r->n_scratch + 1) != MPL_OK)
        return NULL;
    p = mpl_alloc(r->ctx, n, size);
    if (p != NULL)
        r->scratch[r->n_scratch++] = p;
    return p;
}

/* Frees all but the first `keep` pieces. Bodies are read while their node's scratch is in use. */
static void free_scratch(onnx_reader *r, size_t keep)
{
    while (r->n_scratch > keep)
        mpl_free(r->ctx, r->scratch[--r->n_scratch]);
}

static const char *text_of(const char *text)
{
    return text != NULL ? text : "";
}

/* The entry of a name, or a free one (text NULL) if the table lacks it. */
static onnx_name *entry_of(const onnx_scope *s, const char *text)
{
    size_t at = (size_t)mpl_table_hash(0, text, strlen(text)) & (s->n_names - 1);

    while (s->name[at].text != NULL && strcmp(s->name[at].text, text) != 0)
        at = (at + 1) & (s->n_names - 1);
    return &s->name[at];
}

static bool is_known(const onnx_name *e)
{
    return e->value != MPL_NONE || e->init != NULL || e->refused != NULL;
}

/* The entry of a name as seen here: the innermost that has a meaning, else any. */
static onnx_name *seen_entry(const onnx_reader *r, const char *text)
{
    const onnx_scope *s = r->scope;
    onnx_name *e = entry_of(s, text);

    while ((e->text == NULL || !is_known(e)) && s->around != NULL)
        e = entry_of(s = s->around, text);
    return e;
}

static onnx_name *enter_name(onnx_scope *s, const char *text)
{
    onnx_name *e = entry_of(s, text);

    if (e->text == NULL)
        *e = (onnx_name){.text = text, .value = MPL_NONE};
    return e;
}

/* Whether a value has that name, or a graph being read, except `owner`, will have one. */
static bool is_taken(const onnx_reader *r, const char *text, const onnx_scope *owner)
{
    if (mpl_graph_find(r->g, text) != MPL_NONE)
        return true;
    for (const onnx_scope *s = r->scope; s != NULL; s = s->around)
        if (s != owner && entry_of(s, text)->own)
            return true;
    return false;
}

/* Writes base/suffix, or the one that is not empty; from 2 on with a number. */
static void write_name(const char *base, const char *suffix, unsigned number, char *text,
                       size_t size)
{
    size_t n = (size_t)snprintf(text, size, "%s%s%s", base,
                                base[0] != '\0' && suffix[0] != '\0' ? "/" : "", suffix);

    if (number > 1)
        snprintf(text + n, size - n, "~%u", number);
}

/* Where the number last given to names that begin so is kept; others may share the place. */
static unsigned *last_number(onnx_reader *r, const char *base, const char *suffix)
{
    uint32_t hash = 2166136261u;

    for (; *base != '\0'; base++)
        hash = (hash ^ (uint8_t)*base) * 16777619u;
    for (; *suffix != '\0'; suffix++)
        hash = (hash ^ (uint8_t)*suffix) * 16777619u;
    return &r->last_number[hash % (sizeof r->last_number / sizeof *r->last_number)];
}

/* Finds the first free number, from the last one given on or by bisection, since unrolled loops ask
 * for thousands in a row. */
static mpl_status free_name(onnx_reader *r, const char *base, const char *suffix,
                            const onnx_scope *owner, const char **out)
{
    size_t size = strlen(base) + strlen(suffix) + 24;
    unsigned taken = base[0] != '\0' || suffix[0] != '\0' ? 0 : 1, number, middle;
    unsigned *last = last_number(r, base, suffix);
    char *text;

    MPL_PASS(onnx_new(r, text, size));
    write_name(base, suffix, *last, text, size);
    if (*last > taken && is_taken(r, text, owner))
        taken = *last;
    number = taken + 1;
    write_name(base, suffix, number, text, size);
    for (unsigned step = 2; is_taken(r, text, owner); step *= 2) {
        taken = number;
        number += step;
        write_name(base, suffix, number, text, size);
    }
    while (number - taken > 1) {
        middle = taken + (number - taken) / 2;
        write_name(base, suffix, middle, text, size);
        if (is_taken(r, text, owner))
            taken = middle;
        else
            number = middle;
    }
    write_name(base, suffix, number, text, size);
    *last = number;
    *out = text;
    return MPL_OK;
}

mpl_status onnx_fresh_name(onnx_reader *r, const char *base, const char *suffix, const char **out)
{
    return free_name(r, base, suffix, NULL, out);
}

mpl_status onnx_settle_name(onnx_reader *r, const char **name)
{
    return mpl_graph_find(r->g, *name) == MPL_NONE ? MPL_OK : onnx_fresh_name(r, *name, "", name);
}

mpl_status onnx_own_name(onnx_reader *r, const char *text, const char **out)
{
    const char *called = entry_of(r->scope, text)->called;

    return free_name(r, called != NULL ? called : text, "", r->scope, out);
}

/* ---- values ---- */

/* Puts the file's name before a message that lacks it. Returns st. */
static mpl_status blame_file(const onnx_reader *r, mpl_status st)
{
    char why[sizeof r->ctx->message];

    if (st != MPL_EINPUT)
        return st;
    memcpy(why, r->ctx->message, sizeof why);
    return mpl_fail(r->ctx, st, r->ctx->file, r->ctx->line, "%.120s: %s", r->path, why);
}

/* Makes an initialiser a constant. */
static mpl_status make_initialiser(onnx_reader *r, onnx_name *e)
{
    mpl_status st = MPL_OK;
    mpl_tensor t;
    void *owned = NULL;
    const char *name;
    const onnx_scope *owner = r->scope;

    while (owner != NULL && entry_of(owner, e->text) != e)
        owner = owner->around;
    MPL_TRY(onnx_tensor(r->ctx, r->path, e->init, &t, &owned));
    MPL_TRY(free_name(r, e->text, "", owner, &name));
    MPL_TRY(blame_file(
        r, mpl_graph_add_const(r->ctx, r->g, name, t.type, &t.shape, t.data, false, &e->value)));
out:
    mpl_free(r->ctx, owned);
    return st;
}

mpl_status onnx_lookup(onnx_node *n, const char *name, mpl_value *out)
{
    onnx_name *e;
    const char *type;
    mpl_type known;

    *out = MPL_NONE;
    if (name == NULL || name[0] == '\0')
        return MPL_OK;
    e = seen_entry(n->r, name);
    if (e->text == NULL)
        return ONNX_REFUSE(n, "its input '%.100s' is made by no node before it", name);
    if (e->refused != NULL)
        return ONNX_REFUSE(n, "its input '%.100s' has type %s, which memplan has not", name,
                           e->refused);
    if (e->value == MPL_NONE && e->init != NULL) {
        if (!onnx_type(e->init->data_type, &known, &type))
            return ONNX_REFUSE(n, "its input '%.100s' has element type %s, which memplan has not",
                               name, type);
        MPL_PASS(make_initialiser(n->r, e));
    }
    if (e->value == MPL_NONE)
        return ONNX_REFUSE(n, "its input '%.100s' is made by no node before it", name);
    *out = e->value;
    return MPL_OK;
}

mpl_status onnx_define(onnx_node *n, const char *name, mpl_value v)
{
    onnx_name *e;

    if (name == NULL || name[0] == '\0')
        return MPL_OK;
    e = enter_name(n->r->scope, name);
    if (is_known(e))
        return ONNX_REFUSE(
            n, "its output '%.100s' is made before it already; names are unique in ONNX", name);
    e->value = v;
    return MPL_OK;
}

bool onnx_is_used(const onnx_reader *r, const char *name)
{
    return entry_of(r->scope, name)->used;
}

/* ---- inputs that decide shapes ---- */

/* Whether the file has an input of this name. */
static bool names_input(const onnx_reader *r, const char *name)
{
    for (size_t i = 0; i < r->model->graph->n_input; i++)
        if (strcmp(r->model->graph->input[i]->name, name) == 0)
            return true;
    return false;
}

/* The binding of input `index` of the file (initialisers not counted), or NULL. */
static const mpl_tensor *find_binding(const onnx_reader *r, const char *name, uint32_t index)
{
    const mpl_read_options *o = r->options;

    for (uint32_t i = 0; o != NULL && i < o->n_inputs; i++) {
        const char *given = o->input_name != NULL ? o->input_name[i] : NULL;

        if (given != NULL && strcmp(given, name) == 0)
            return &o->input_tensor[i];
        if (o->input_index != NULL && o->input_index[i] == index &&
            (given == NULL || !names_input(r, given)))
            return &o->input_tensor[i];
    }
    return NULL;
}

/* Marks what v depends on in mark[n_values]. Operations are in order, those of a block before its
 * owner, so one backward pass is enough. A carried value counts as dependent on its loop and
 * operands. */
static void mark_sources(const mpl_graph *g, mpl_value v, bool *mark)
{
    mark[v] = true;
    for (mpl_op op = g->n_ops; op-- > 0;) {
        bool needed = false;

        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            needed = needed || (g->op_out[i] != MPL_NONE && mark[g->op_out[i]]);
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1] && needed; i++)
            if (g->op_in[i] != MPL_NONE)
                mark[g->op_in[i]] = true;
        for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1] && needed; k++) {
            uint32_t b = g->op_body[k];

            for (uint32_t i = 0; i < g->block_n_results[b]; i++)
                if (g->block_result[g->block_result_begin[b] + i] != MPL_NONE)
                    mark[g->block_result[g->block_result_begin[b] + i]] = true;
            for (uint32_t i = 0; i < g->block_n_params[b]; i++) /* marks the loop as relevant */
                mark[g->block_param[g->block_param_begin[b] + i]] = true;
        }
    }
}

/* Whether a marked value is a parameter of that block. */
static bool marks_param(const mpl_graph *g, uint32_t block, const bool *mark)
{
    for (uint32_t i = 0; i < g->block_n_params[block]; i++)
        if (mark[g->block_param[g->block_param_begin[block] + i]])
            return true;
    return false;
}

bool onnx_is_constant(const onnx_node *n, mpl_value v)
{
    return n->r->g->value_role[v] == MPL_WEIGHT && n->r->g->value_data[v] != NULL;
}

/* Binds the marked inputs whose contents are given; *missing: the first without contents. */
static void bind_marked(onnx_reader *r, const bool *mark, bool *grew, const char **missing)
{
    uint32_t index = 0;

    *missing = NULL;
    for (size_t i = 0; i < r->proto->n_input; i++) {
        const char *name = text_of(r->proto->input[i]->name);
        const onnx_name *e = entry_of(&r->top, name);

        if (e->init != NULL)
            continue;
        if (e->value != MPL_NONE && mark[e->value] && !r->bind[i]) {
            if (find_binding(r, name, index) != NULL)
                r->bind[i] = *grew = true;
            else if (*missing == NULL)
                *missing = name;
        }
        index++;
    }
}

mpl_status onnx_can_be_constant(onnx_node *n, mpl_value v, bool *can)
{
    onnx_reader *r = n->r;
    bool *mark;
    uint32_t index = 0;

    *can = true;
    MPL_PASS(onnx_new(r, mark, r->g->n_values));
    mark_sources(r->g, v, mark);
    for (size_t i = 0; i < r->proto->n_input; i++) {
        const char *name = text_of(r->proto->input[i]->name);
        const onnx_name *e = entry_of(&r->top, name);

        if (e->init != NULL)
            continue;
        if (e->value != MPL_NONE && mark[e->value] && find_binding(r, name, index) == NULL)
            *can = false;
        index++;
    }
    for (size_t i = 0; i < r->n_loops; i++)
        if (marks_param(r->g, r->loop[i].block, mark))
            *can = false;
    return MPL_OK;
}

mpl_status onnx_need_constant(onnx_node *n, mpl_value v, const char *what)
{
    onnx_reader *r = n->r;
    bool *mark, grew = false;
    const char *missing;

    if (onnx_is_constant(n, v))
        return MPL_OK;
    MPL_PASS(onnx_new(r, mark, r->g->n_values));
    mark_sources(r->g, v, mark);
    bind_marked(r, mark, &grew, &missing);
    if (missing != NULL)
        return ONNX_REFUSE(
            n, "its %s depends on the contents of input '%.100s'; give them: --input %.100s=FILE",
            what, missing, missing);
    r->again = grew;
    for (size_t i = 0; i < r->n_loops; i++)
        if (marks_param(r->g, r->loop[i].block, mark))
            MPL_PASS(onnx_unroll(r, r->loop[i].proto));
    return ONNX_REFUSE(n, "its %s must be known when the model is read, and is not constant", what);
}

/* ---- opsets, messages ---- */

static bool is_own(const char *domain)
{
    return domain == NULL || domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
}

/* The version of a domain's operators that the model uses; 0: it names none. */
static int64_t opset_of(const Onnx__ModelProto *model, const char *domain)
{
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const char *named = model->opset_import[i]->domain;

        if (is_own(domain) ? is_own(named) : named != NULL && strcmp(named, domain) == 0)
            return model->opset_import[i]->version;
    }
    return 0;
}

/* Whether a node may be, or hold, operators of ONNX. */
static bool needs_opset(const Onnx__NodeProto *node)
{
    bool owns_graph = false;

    for (size_t i = 0; i < node->n_attribute; i++)
        owns_graph = owns_graph || node->attribute[i]->g != NULL;
    return owns_graph || is_own(node->domain);
}

/* A model without ONNX operators need not name an opset of ONNX. */
static mpl_status find_opset(onnx_reader *r)
{
    for (size_t i = 0; i < r->proto->n_node; i++)
        if (needs_opset(r->proto->node[i]))
            r->opset = opset_of(r->model, "");
    if (r->opset < 0 || (r->opset > 0 && r->opset < ONNX_MIN_OPSET) || r->opset > ONNX_MAX_OPSET)
        return MPL_REFUSE(r->ctx, "%s: it is written for opset %" PRId64 "; %d to %d are supported",
                          r->path, r->opset, ONNX_MIN_OPSET, ONNX_MAX_OPSET);
    return MPL_OK;
}

mpl_status onnx_blame(const onnx_node *n, mpl_status st)
{
    char why[sizeof n->r->ctx->message];
    const char *domain = text_of(n->proto->domain);

    if (st != MPL_EINPUT)
        return st;
    memcpy(why, n->r->ctx->message, sizeof why);
    return mpl_fail(n->r->ctx, st, n->r->ctx->file, n->r->ctx->line,
                    "%.120s: node '%.100s' (%.60s%s%.40s, opset %d): %s", n->r->path, n->label,
                    text_of(n->proto->op_type), domain[0] != '\0' ? " of " : "", domain,
                    (int)opset_of(n->r->model, domain), why);
}

void onnx_one_line(mpl_ctx *ctx)
{
    for (char *at = ctx->message; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
}

/* ---- inputs ---- */

static const char *kind_of(const Onnx__TypeProto *type)
{
    switch (type != NULL ? type->value_case : ONNX__TYPE_PROTO__VALUE__NOT_SET) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        return NULL;
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        return "sequence";
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        return "map";
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return "optional";
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        return "sparse tensor";
    default:
        return "undefined";
    }
}

enum { PLACE = 128 }; /* INPUT.AXIS, truncated */

/* The name of an open dim for --dim: its own, else INPUT.AXIS (in `place`). NULL: it is known. */
static const char *open_dim(const char *input, uint32_t axis,
                            const Onnx__TensorShapeProto__Dimension *d, char place[PLACE])
{
    const char *name = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                           ? text_of(d->dim_param)
                           : "";

    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0)
        return NULL;
    snprintf(place, PLACE, "%.100s.%u", input, axis);
    return name[0] != '\0' ? name : place;
}

/* One dim of an input: its value, else the one given by --dim, else that of the given contents. */
static mpl_status read_dim(onnx_reader *r, const char *input, uint32_t axis,
                           const Onnx__TensorShapeProto__Dimension *d, const mpl_tensor *given,
                           int64_t *out)
{
    char place[PLACE];
    const char *name = open_dim(input, axis, d, place);

    if (name == NULL)
        return *out = d->dim_value, MPL_OK;
    for (uint32_t i = 0; r->options != NULL && i < r->options->n_dims; i++)
        if (strcmp(r->options->dim_name[i], name) == 0) {
            if (r->options->dim_value[i] < 0)
                return MPL_REFUSE(r->ctx,
                                  "dim '%.100s' is given as %" PRId64 "; it cannot be negative",
                                  name, r->options->dim_value[i]);
            return *out = r->options->dim_value[i], MPL_OK;
        }
    if (given == NULL || axis >= given->shape.rank)
        return MPL_REFUSE(
            r->ctx,
            "%.120s: dim %u of input '%.100s' is open and has no maximum; give it: --dim %.100s=N",
            r->path, axis, input, name);
    *out = given->shape.dim[axis];
    return MPL_OK;
}

static mpl_status read_dims(onnx_reader *r, const char *name, const Onnx__TensorShapeProto *proto,
                            const mpl_tensor *given, mpl_shape *shape)
{
    if (proto == NULL && given == NULL)
        return MPL_REFUSE(r->ctx,
                          "%.120s: input '%.100s' says nothing about its dims; give its contents: "
                          "--input %.100s=FILE",
                          r->path, name, name);
    if (proto == NULL) {
        *shape = given->shape;
        return MPL_OK;
    }
    if (proto->n_dim > MPL_MAX_RANK)
        return MPL_REFUSE(r->ctx, "%.120s: input '%.100s' has %zu dims; at most %d are supported",
                          r->path, name, proto->n_dim, MPL_MAX_RANK);
    shape->rank = (uint32_t)proto->n_dim;
    for (uint32_t i = 0; i < shape->rank; i++)
        MPL_PASS(read_dim(r, name, i, proto->dim[i], given, &shape->dim[i]));
    return MPL_OK;
}

static mpl_status bind_contents(onnx_reader *r, const char *name, mpl_value v,
                                const mpl_tensor *given)
{
    const mpl_graph *g = r->g;
    char text[2][200];

    if (given->type != (mpl_type)g->value_type[v] ||
        !mpl_shape_equal(&given->shape, &g->value_shape[v]))
        return MPL_REFUSE(r->ctx,
                          "%.120s: input '%.100s' is %s %s; its contents were given as %s %s",
                          r->path, name, mpl_type_name((mpl_type)g->value_type[v]),
                          mpl_shape_text(&g->value_shape[v], text[0]), mpl_type_name(given->type),
                          mpl_shape_text(&given->shape, text[1]));
    return blame_file(r, mpl_graph_bind_input(r->ctx, r->g, v, given->data));
}

static mpl_status read_input(onnx_reader *r, const Onnx__ValueInfoProto *proto, uint32_t index,
                             bool bind)
{
    const char *text = text_of(proto->name), *name, *refused;
    const mpl_tensor *given = find_binding(r, text, index);
    onnx_name *e = enter_name(&r->top, text);
    mpl_shape shape = {.rank = 0};
    mpl_type type;

    if (e->value != MPL_NONE || e->refused != NULL)
        return MPL_REFUSE(r->ctx, "%.120s: two inputs are named '%.100s'", r->path, text);
    /* An input of an unknown kind or type is an error only if it is read. */
    e->refused = kind_of(proto->type);
    if (e->refused == NULL && !onnx_type(proto->type->tensor_type->elem_type, &type, &refused))
        e->refused = refused;
    if (e->refused != NULL)
        return MPL_OK;
    MPL_PASS(read_dims(r, text, proto->type->tensor_type->shape, given, &shape));
    MPL_PASS(onnx_own_name(r, text[0] != '\0' ? text : "input", &name));
    MPL_PASS(
        blame_file(r, mpl_graph_add_value(r->ctx, r->g, name, MPL_INPUT, type, &shape, &e->value)));
    if (bind)
        MPL_PASS(bind_contents(r, text, e->value, given));
    return MPL_OK;
}

/* ---- the graph ---- */

static size_t count_names(const Onnx__GraphProto *p)
{
    size_t n = p->n_initializer + p->n_input + p->n_output;

    for (size_t i = 0; i < p->n_node; i++) {
        const Onnx__NodeProto *node = p->node[i];

        n += node->n_input + node->n_output;
        for (size_t j = 0; j < node->n_attribute; j++)
            if (node->attribute[j]->g != NULL)
                n += count_names(node->attribute[j]->g);
    }
    return n;
}

/* Marks names that nodes read or outputs name as used. Nested graphs may read outer names, so their
 * reads count here, even if they turn out to be local. */
static void enter_used(onnx_scope *s, const Onnx__GraphProto *p)
{
    for (size_t i = 0; i < p->n_node; i++) {
        const Onnx__NodeProto *node = p->node[i];

        for (size_t j = 0; j < node->n_input; j++)
            enter_name(s, text_of(node->input[j]))->used = true;
        for (size_t j = 0; j < node->n_attribute; j++)
            if (node->attribute[j]->g != NULL)
                enter_used(s, node->attribute[j]->g);
    }
    for (size_t i = 0; i < p->n_output; i++)
        enter_name(s, text_of(p->output[i]->name))->used = true;
}

/* Enters initialisers and names that nodes read or outputs name: other results are left out. */
static mpl_status enter_names(onnx_reader *r, const Onnx__GraphProto *p, onnx_scope *s)
{
    size_t n = count_names(p);

    for (s->n_names = 16; s->n_names <= 2 * n; s->n_names *= 2)
        ;
    MPL_PASS(mpl_new(r->ctx, s->name, s->n_names));
    for (size_t i = 0; i < p->n_initializer; i++) {
        onnx_name *e = enter_name(s, text_of(p->initializer[i]->name));

        if (e->init != NULL)
            return MPL_REFUSE(r->ctx, "%.120s: two initialisers are named '%.100s'", r->path,
                              e->text);
        e->init = p->initializer[i];
        e->own = true;
    }
    for (size_t i = 0; i < p->n_input; i++)
        enter_name(s, text_of(p->input[i]->name))->own = true;
    for (size_t i = 0; i < p->n_node; i++)
        for (size_t j = 0; j < p->node[i]->n_output; j++)
            enter_name(s, text_of(p->node[i]->output[j]))->own = true;
    for (size_t i = 0; i < p->n_node; i++)
        if (onnx_says_same(p->node[i]) && strcmp(text_of(p->node[i]->op_type), "Pad") == 0 &&
            p->node[i]->n_input > 0 && p->node[i]->n_output > 0)
            enter_name(s, text_of(p->node[i]->input[0]))->called = p->node[i]->output[0];
    enter_used(s, p);
    if (p->n_sparse_initializer > 0)
        return MPL_REFUSE(r->ctx, "%.120s: it has sparse initialisers, which memplan cannot read",
                          r->path);
    return MPL_OK;
}

static mpl_status read_nodes(onnx_reader *r, const Onnx__GraphProto *p)
{
    size_t keep = r->n_scratch;

    for (size_t i = 0; i < p->n_node; i++) {
        if (++r->n_nodes > MOST_NODES)
            return MPL_REFUSE(
                r->ctx,
                "%.120s: it has more than %u nodes, those of loops that are read round by "
                "round counted "
                "each time",
                r->path, MOST_NODES);
        MPL_PASS(onnx_read_node(r, p->node[i]));
        free_scratch(r, keep);
    }
    return MPL_OK;
}

mpl_status onnx_read_body(onnx_node *n, const Onnx__GraphProto *body, uint32_t n_in,
                          const mpl_value *in, uint32_t n_out, const bool *wanted, mpl_value *out)
{
    mpl_status st = MPL_OK;
    onnx_reader *r = n->r;
    onnx_scope scope = {.around = r->scope};

    if (body->n_input != n_in || body->n_output != n_out)
        ONNX_FAIL(n, "its graph '%.60s' has %zu inputs and %zu outputs; it must have %u and %u",
                  text_of(body->name), body->n_input, body->n_output, n_in, n_out);
    r->scope = &scope;
    MPL_TRY(enter_names(r, body, &scope));
    for (uint32_t i = 0; i < n_in; i++) {
        /* an unused default */
        enter_name(&scope, text_of(body->input[i]->name))->init = NULL;
        MPL_TRY(onnx_define(n, body->input[i]->name, in[i]));
    }
    MPL_TRY(read_nodes(r, body));
    for (uint32_t i = 0; i < n_out; i++) {
        const char *name = text_of(body->output[i]->name);

        out[i] = MPL_NONE;
        if (wanted != NULL && !wanted[i])
            continue;
        MPL_TRY(onnx_lookup(n, name, &out[i]));
        if (out[i] == MPL_NONE)
            ONNX_FAIL(n, "output %u of its graph '%.60s' has no name", i, text_of(body->name));
    }
out:
    r->scope = scope.around;
    mpl_free(r->ctx, scope.name);
    return st;
}

static mpl_status read_output(onnx_reader *r, const Onnx__ValueInfoProto *proto)
{
    const char *text = text_of(proto->name);
    onnx_name *e = entry_of(&r->top, text);

    if (e->refused != NULL)
        return MPL_REFUSE(r->ctx, "%.120s: output '%.100s' has type %s, which memplan has not",
                          r->path, text, e->refused);
    if (e->value == MPL_NONE && e->init != NULL)
        MPL_PASS(make_initialiser(r, e));
    if (e->value == MPL_NONE)
        return MPL_REFUSE(r->ctx, "%.120s: output '%.100s' is made by no node", r->path, text);
    MPL_PASS(onnx_bound_output(r, &e->value));
    return blame_file(r, mpl_graph_add_output(r->ctx, r->g, e->value));
}

/* Visits the open dims until one is called `name` (NULL: all); adds their names to `list`. */
static bool find_open_dim(onnx_reader *r, const char *name, char *list, size_t cap)
{
    const Onnx__GraphProto *p = r->proto;
    char place[PLACE];
    size_t n = 0;

    for (size_t i = 0; i < p->n_input; i++) {
        const Onnx__TypeProto *type = p->input[i]->type;
        const Onnx__TensorShapeProto *shape =
            type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
                ? type->tensor_type->shape
                : NULL;

        for (uint32_t axis = 0; shape != NULL && axis < shape->n_dim; axis++) {
            const char *called =
                open_dim(text_of(p->input[i]->name), axis, shape->dim[axis], place);

            if (called == NULL)
                continue;
            if (name != NULL && strcmp(called, name) == 0)
                return true;
            if (list != NULL && n < cap)
                n += (size_t)snprintf(list + n, cap - n, "%s%.100s", n > 0 ? ", " : "", called);
        }
    }
    return false;
}

/* A dim that no input has is taken for a typing error: the plan would be for other sizes. */
static mpl_status check_dims_given(onnx_reader *r)
{
    char list[300] = "";

    for (uint32_t i = 0; r->options != NULL && !r->options->spare_dims && i < r->options->n_dims;
         i++) {
        if (find_open_dim(r, r->options->dim_name[i], NULL, 0))
            continue;
        find_open_dim(r, NULL, list, sizeof list);
        return MPL_REFUSE(r->ctx, "%.120s: no input has an open dim '%.100s'; %s%s", r->path,
                          r->options->dim_name[i],
                          list[0] != '\0' ? "open are: " : "all of them are known", list);
    }
    return MPL_OK;
}

/* One attempt: reads the model as an unfinished graph. */
static mpl_status read_graph(onnx_reader *r)
{
    mpl_status st = MPL_OK;
    const Onnx__GraphProto *p = r->proto;
    const char *slash = strrchr(r->path, '/');
    uint32_t index = 0;

    MPL_TRY(mpl_graph_new(r->ctx,
                          text_of(p->name)[0] != '\0' ? p->name
                          : slash != NULL             ? slash + 1
                                                      : r->path,
                          &r->g));
    MPL_TRY(enter_names(r, p, &r->top));
    for (size_t i = 0; i < p->n_input; i++)
        if (entry_of(&r->top, text_of(p->input[i]->name))->init == NULL) {
            MPL_TRY(read_input(r, p->input[i], index++, r->bind[i]));
            free_scratch(r, 0);
        }
    MPL_TRY(read_nodes(r, p));
    for (size_t i = 0; i < p->n_output; i++)
        MPL_TRY(read_output(r, p->output[i]));
    MPL_TRY(onnx_add_lengths(r));
out:
    free_scratch(r, 0);
    mpl_free(r->ctx, r->top.name);
    r->top.name = NULL;
    if (st != MPL_OK) {
        mpl_graph_free(r->ctx, r->g);
        r->g = NULL;
    }
    return st;
}

static mpl_status read_model(mpl_ctx *ctx, const char *path, const Onnx__ModelProto *model,
                             const mpl_read_options *options, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    onnx_reader r = {
        .ctx = ctx, .path = path, .options = options, .model = model, .proto = model->graph};

    if (model->graph == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: it holds no graph", path);
    MPL_TRY(find_opset(&r));
    MPL_TRY(check_dims_given(&r));
    MPL_TRY(mpl_new(ctx, r.bind, model->graph->n_input));
    r.scope = &r.top;
    do {
        r.again = false;
        r.n_nodes = r.n_loops = r.n_lengths = r.n_intervals = 0;
        st = read_graph(&r);
    } while (st != MPL_OK && r.again);
    MPL_TRY(st);
    st = blame_file(&r, mpl_graph_prune(ctx, &r.g));
    if (st == MPL_OK)
        *out = r.g, r.g = NULL;
out:
    mpl_graph_free(ctx, r.g);
    mpl_free_each(ctx, r.bind, r.unroll, r.loop, r.length, r.interval, r.scratch);
    return st;
}

mpl_status mpl_onnx_read_memory(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                                const mpl_read_options *options, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    onnx_memory memory;
    ProtobufCMessage *model = NULL;

    MPL_TRY(onnx_unpack(&memory, ctx, path, "an ONNX model", &onnx__model_proto__descriptor, data,
                        size, &model));
    MPL_TRY(read_model(ctx, path, (const Onnx__ModelProto *)model, options, out));
out:
    if (model != NULL)
        protobuf_c_message_free_unpacked(model, &memory.allocator);
    if (st != MPL_OK)
        onnx_one_line(ctx);
    return st;
}

mpl_status mpl_onnx_read(mpl_ctx *ctx, const char *path, const mpl_read_options *options,
                         mpl_graph **out)
{
    mpl_status st = MPL_OK;
    char *data = NULL;
    size_t size;

    MPL_TRY(mpl_file_read(ctx, path, &data, &size));
    MPL_TRY(mpl_onnx_read_memory(ctx, path, data, size, options, out));
out:
    mpl_free(ctx, data);
    return st;
}
