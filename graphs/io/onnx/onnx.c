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

void *onnx_scratch(onnx_reader *in, size_t n, size_t size)
{
    void *p;

    if (mpl_reserve(in->ctx, in->scratch, in->cap_scratch, in->n_scratch + 1) != MPL_OK)
        return NULL;
    p = mpl_alloc(in->ctx, n, size);
    if (p != NULL)
        in->scratch[in->n_scratch++] = p;
    return p;
}

/* Frees all but the first `keep` pieces. Bodies are read while their node's scratch is in use. */
static void free_scratch(onnx_reader *in, size_t keep)
{
    while (in->n_scratch > keep)
        mpl_free(in->ctx, in->scratch[--in->n_scratch]);
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
static mpl_status find_opset(onnx_reader *in)
{
    for (size_t i = 0; i < in->proto->n_node; i++)
        if (needs_opset(in->proto->node[i]))
            in->opset = opset_of(in->model, "");
    if (in->opset < 0 || (in->opset > 0 && in->opset < ONNX_MIN_OPSET) ||
        in->opset > ONNX_MAX_OPSET)
        return MPL_REFUSE(in->ctx,
                          "%s: it is written for opset %" PRId64 "; %d to %d are supported",
                          in->path, in->opset, ONNX_MIN_OPSET, ONNX_MAX_OPSET);
    return MPL_OK;
}

mpl_status onnx_blame_file(const onnx_reader *in, mpl_status st)
{
    return st != MPL_EINPUT ? st : MPL_REFUSE(in->ctx, "%.120s: %s", in->path, in->ctx->message);
}

mpl_status onnx_blame(const onnx_node *node, mpl_status st)
{
    const char *domain = onnx_text(node->proto->domain);

    if (st != MPL_EINPUT)
        return st;
    return MPL_REFUSE(node->r->ctx, "%.120s: node '%.100s' (%.60s%s%.40s, opset %d): %s",
                      node->r->path, node->label, onnx_text(node->proto->op_type),
                      domain[0] != '\0' ? " of " : "", domain,
                      (int)opset_of(node->r->model, domain), node->r->ctx->message);
}

/* ---- the graph ---- */

static mpl_status read_nodes(onnx_reader *in, const Onnx__GraphProto *p)
{
    size_t keep = in->n_scratch;

    for (size_t i = 0; i < p->n_node; i++) {
        if (++in->n_nodes > MOST_NODES)
            return MPL_REFUSE(
                in->ctx,
                "%.120s: it has more than %u nodes, those of loops that are read round by "
                "round counted "
                "each time",
                in->path, MOST_NODES);
        MPL_PASS(onnx_read_node(in, p->node[i]));
        free_scratch(in, keep);
    }
    return MPL_OK;
}

mpl_status onnx_read_body(onnx_node *node, const Onnx__GraphProto *body, uint32_t n_in,
                          const mpl_value *in, uint32_t n_out, const bool *wanted, mpl_value *out)
{
    mpl_status st = MPL_OK;
    onnx_reader *r = node->r;
    onnx_scope scope = {.around = r->scope};

    if (body->n_input != n_in || body->n_output != n_out)
        ONNX_FAIL(node, "its graph '%.60s' has %zu inputs and %zu outputs; it must have %u and %u",
                  onnx_text(body->name), body->n_input, body->n_output, n_in, n_out);
    r->scope = &scope;
    MPL_TRY(onnx_enter_names(r, body, &scope));
    for (uint32_t i = 0; i < n_in; i++) {
        /* an unused default */
        onnx_enter_name(&scope, onnx_text(body->input[i]->name))->init = NULL;
        MPL_TRY(onnx_define(node, body->input[i]->name, in[i]));
    }
    MPL_TRY(read_nodes(r, body));
    for (uint32_t i = 0; i < n_out; i++) {
        const char *name = onnx_text(body->output[i]->name);

        out[i] = MPL_NONE;
        if (wanted != NULL && !wanted[i])
            continue;
        MPL_TRY(onnx_lookup(node, name, &out[i]));
        if (out[i] == MPL_NONE)
            ONNX_FAIL(node, "output %u of its graph '%.60s' has no name", i, onnx_text(body->name));
    }
out:
    r->scope = scope.around;
    mpl_free(r->ctx, scope.name);
    return st;
}

static mpl_status read_output(onnx_reader *in, const Onnx__ValueInfoProto *proto)
{
    const char *text = onnx_text(proto->name);
    onnx_name *name = onnx_entry(&in->top, text);

    if (name->refused != NULL)
        return MPL_REFUSE(in->ctx, "%.120s: output '%.100s' has type %s, which memplan has not",
                          in->path, text, name->refused);
    if (name->value == MPL_NONE && name->init != NULL)
        MPL_PASS(onnx_make_initialiser(in, name));
    if (name->value == MPL_NONE)
        return MPL_REFUSE(in->ctx, "%.120s: output '%.100s' is made by no node", in->path, text);
    MPL_PASS(onnx_bound_output(in, &name->value));
    return onnx_blame_file(in, mpl_graph_add_output(in->ctx, in->g, name->value));
}

/* One attempt: reads the model as an unfinished graph. */
static mpl_status read_graph(onnx_reader *in)
{
    mpl_status st = MPL_OK;
    const Onnx__GraphProto *p = in->proto;
    const char *slash = strrchr(in->path, '/');
    uint32_t index = 0;

    MPL_TRY(mpl_graph_new(in->ctx,
                          onnx_text(p->name)[0] != '\0' ? p->name
                          : slash != NULL               ? slash + 1
                                                        : in->path,
                          &in->g));
    MPL_TRY(onnx_enter_names(in, p, &in->top));
    for (size_t i = 0; i < p->n_input; i++)
        if (onnx_entry(&in->top, onnx_text(p->input[i]->name))->init == NULL) {
            MPL_TRY(onnx_read_input(in, p->input[i], index++, in->bind[i]));
            free_scratch(in, 0);
        }
    MPL_TRY(read_nodes(in, p));
    for (size_t i = 0; i < p->n_output; i++)
        MPL_TRY(read_output(in, p->output[i]));
    MPL_TRY(onnx_add_lengths(in));
out:
    free_scratch(in, 0);
    mpl_free(in->ctx, in->top.name);
    in->top.name = NULL;
    if (st != MPL_OK) {
        mpl_graph_free(in->ctx, in->g);
        in->g = NULL;
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
