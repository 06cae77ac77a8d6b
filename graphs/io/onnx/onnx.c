/* onnx.c -- reads an ONNX model: unpacks it, walks its nodes. See source.h.
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

/* ---- scratch memory ---- */

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

mpl_status onnx_blame_file(const onnx_reader *r, mpl_status st)
{
    return st != MPL_EINPUT ? st : MPL_REFUSE(r->ctx, "%.120s: %s", r->path, r->ctx->message);
}

mpl_status onnx_blame(const onnx_node *n, mpl_status st)
{
    const char *domain = onnx_text(n->proto->domain);

    if (st != MPL_EINPUT)
        return st;
    return MPL_REFUSE(n->r->ctx, "%.120s: node '%.100s' (%.60s%s%.40s, opset %d): %s", n->r->path,
                      n->label, onnx_text(n->proto->op_type), domain[0] != '\0' ? " of " : "",
                      domain, (int)opset_of(n->r->model, domain), n->r->ctx->message);
}

/* ---- the graph ---- */

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
                  onnx_text(body->name), body->n_input, body->n_output, n_in, n_out);
    r->scope = &scope;
    MPL_TRY(onnx_enter_names(r, body, &scope));
    for (uint32_t i = 0; i < n_in; i++) {
        /* an unused default */
        onnx_enter_name(&scope, onnx_text(body->input[i]->name))->init = NULL;
        MPL_TRY(onnx_define(n, body->input[i]->name, in[i]));
    }
    MPL_TRY(read_nodes(r, body));
    for (uint32_t i = 0; i < n_out; i++) {
        const char *name = onnx_text(body->output[i]->name);

        out[i] = MPL_NONE;
        if (wanted != NULL && !wanted[i])
            continue;
        MPL_TRY(onnx_lookup(n, name, &out[i]));
        if (out[i] == MPL_NONE)
            ONNX_FAIL(n, "output %u of its graph '%.60s' has no name", i, onnx_text(body->name));
    }
out:
    r->scope = scope.around;
    mpl_free(r->ctx, scope.name);
    return st;
}

static mpl_status read_output(onnx_reader *r, const Onnx__ValueInfoProto *proto)
{
    const char *text = onnx_text(proto->name);
    onnx_name *e = onnx_entry(&r->top, text);

    if (e->refused != NULL)
        return MPL_REFUSE(r->ctx, "%.120s: output '%.100s' has type %s, which memplan has not",
                          r->path, text, e->refused);
    if (e->value == MPL_NONE && e->init != NULL)
        MPL_PASS(onnx_make_initialiser(r, e));
    if (e->value == MPL_NONE)
        return MPL_REFUSE(r->ctx, "%.120s: output '%.100s' is made by no node", r->path, text);
    MPL_PASS(onnx_bound_output(r, &e->value));
    return onnx_blame_file(r, mpl_graph_add_output(r->ctx, r->g, e->value));
}

/* One attempt: reads the model as an unfinished graph. */
static mpl_status read_graph(onnx_reader *r)
{
    mpl_status st = MPL_OK;
    const Onnx__GraphProto *p = r->proto;
    const char *slash = strrchr(r->path, '/');
    uint32_t index = 0;

    MPL_TRY(mpl_graph_new(r->ctx,
                          onnx_text(p->name)[0] != '\0' ? p->name
                          : slash != NULL               ? slash + 1
                                                        : r->path,
                          &r->g));
    MPL_TRY(onnx_enter_names(r, p, &r->top));
    for (size_t i = 0; i < p->n_input; i++)
        if (onnx_entry(&r->top, onnx_text(p->input[i]->name))->init == NULL) {
            MPL_TRY(onnx_read_input(r, p->input[i], index++, r->bind[i]));
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
    MPL_TRY(onnx_check_dims_given(&r));
    MPL_TRY(mpl_new(ctx, r.bind, model->graph->n_input));
    r.scope = &r.top;
    do {
        r.again = false;
        r.n_nodes = r.n_loops = r.n_lengths = r.n_intervals = 0;
        st = read_graph(&r);
    } while (st != MPL_OK && r.again);
    MPL_TRY(st);
    st = onnx_blame_file(&r, mpl_graph_prune(ctx, &r.g));
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
