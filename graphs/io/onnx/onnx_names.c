/* onnx_names.c -- names of an ONNX model, of graphs within graphs, and the values that they stand
 * for.
 *
 * Idea     Each graph has a table of the names that it makes or reads; an inner name hides an outer
 *          one. An initialiser becomes a constant at its first use. */
#include "graphs/io/onnx/onnx_priv.h"

/* ---- names ---- */

onnx_name *onnx_entry(const onnx_scope *scope, const char *text)
{
    size_t at = (size_t)mpl_table_hash(0, text, strlen(text)) & (scope->n_names - 1);

    while (scope->name[at].text != NULL && strcmp(scope->name[at].text, text) != 0)
        at = (at + 1) & (scope->n_names - 1);
    return &scope->name[at];
}

static bool is_known(const onnx_name *name)
{
    return name->value != MPL_NONE || name->init != NULL || name->refused != NULL;
}

/* The entry of a name as seen here: the innermost that has a meaning, else any. */
static onnx_name *seen_entry(const onnx_reader *in, const char *text)
{
    const onnx_scope *scope = in->scope;
    onnx_name *name = onnx_entry(scope, text);

    while ((name->text == NULL || !is_known(name)) && scope->around != NULL)
        name = onnx_entry(scope = scope->around, text);
    return name;
}

onnx_name *onnx_enter_name(onnx_scope *scope, const char *text)
{
    onnx_name *name = onnx_entry(scope, text);

    if (name->text == NULL)
        *name = (onnx_name){.text = text, .value = MPL_NONE};
    return name;
}

/* Whether a value has that name, or a graph being read, except `owner`, will have one. */
static bool is_taken(const onnx_reader *in, const char *text, const onnx_scope *owner)
{
    if (mpl_graph_find(in->g, text) != MPL_NONE)
        return true;
    for (const onnx_scope *scope = in->scope; scope != NULL; scope = scope->around)
        if (scope != owner && onnx_entry(scope, text)->own)
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
static unsigned *last_number(onnx_reader *in, const char *base, const char *suffix)
{
    uint32_t hash = 2166136261u;

    for (; *base != '\0'; base++)
        hash = (hash ^ (uint8_t)*base) * 16777619u;
    for (; *suffix != '\0'; suffix++)
        hash = (hash ^ (uint8_t)*suffix) * 16777619u;
    return &in->last_number[hash % (sizeof in->last_number / sizeof *in->last_number)];
}

/* Finds the first free number, from the last one given on or by bisection, since unrolled loops ask
 * for thousands in a row. */
static mpl_status free_name(onnx_reader *in, const char *base, const char *suffix,
                            const onnx_scope *owner, const char **out)
{
    size_t size = strlen(base) + strlen(suffix) + 24;
    unsigned taken = base[0] != '\0' || suffix[0] != '\0' ? 0 : 1, number, middle;
    unsigned *last = last_number(in, base, suffix);
    char *text;

    MPL_PASS(onnx_new(in, text, size));
    write_name(base, suffix, *last, text, size);
    if (*last > taken && is_taken(in, text, owner))
        taken = *last;
    number = taken + 1;
    write_name(base, suffix, number, text, size);
    for (unsigned step = 2; is_taken(in, text, owner); step *= 2) {
        taken = number;
        number += step;
        write_name(base, suffix, number, text, size);
    }
    while (number - taken > 1) {
        middle = taken + (number - taken) / 2;
        write_name(base, suffix, middle, text, size);
        if (is_taken(in, text, owner))
            taken = middle;
        else
            number = middle;
    }
    write_name(base, suffix, number, text, size);
    *last = number;
    *out = text;
    return MPL_OK;
}

mpl_status onnx_fresh_name(onnx_reader *in, const char *base, const char *suffix, const char **out)
{
    return free_name(in, base, suffix, NULL, out);
}

mpl_status onnx_settle_name(onnx_reader *in, const char **name)
{
    return mpl_graph_find(in->g, *name) == MPL_NONE ? MPL_OK : onnx_fresh_name(in, *name, "", name);
}

mpl_status onnx_own_name(onnx_reader *in, const char *text, const char **out)
{
    const char *called = onnx_entry(in->scope, text)->called;

    return free_name(in, called != NULL ? called : text, "", in->scope, out);
}

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
static void enter_used(onnx_scope *scope, const Onnx__GraphProto *p)
{
    for (size_t i = 0; i < p->n_node; i++) {
        const Onnx__NodeProto *node = p->node[i];

        for (size_t j = 0; j < node->n_input; j++)
            onnx_enter_name(scope, onnx_text(node->input[j]))->used = true;
        for (size_t j = 0; j < node->n_attribute; j++)
            if (node->attribute[j]->g != NULL)
                enter_used(scope, node->attribute[j]->g);
    }
    for (size_t i = 0; i < p->n_output; i++)
        onnx_enter_name(scope, onnx_text(p->output[i]->name))->used = true;
}

mpl_status onnx_enter_names(onnx_reader *in, const Onnx__GraphProto *p, onnx_scope *scope)
{
    size_t n = count_names(p);

    for (scope->n_names = 16; scope->n_names <= 2 * n; scope->n_names *= 2)
        ;
    MPL_PASS(mpl_new(in->ctx, scope->name, scope->n_names));
    for (size_t i = 0; i < p->n_initializer; i++) {
        onnx_name *name = onnx_enter_name(scope, onnx_text(p->initializer[i]->name));

        if (name->init != NULL)
            return MPL_REFUSE(in->ctx, "%.120s: two initialisers are named '%.100s'", in->path,
                              name->text);
        name->init = p->initializer[i];
        name->own = true;
    }
    for (size_t i = 0; i < p->n_input; i++)
        onnx_enter_name(scope, onnx_text(p->input[i]->name))->own = true;
    for (size_t i = 0; i < p->n_node; i++)
        for (size_t j = 0; j < p->node[i]->n_output; j++)
            onnx_enter_name(scope, onnx_text(p->node[i]->output[j]))->own = true;
    for (size_t i = 0; i < p->n_node; i++)
        if (onnx_says_same(p->node[i]) && strcmp(onnx_text(p->node[i]->op_type), "Pad") == 0 &&
            p->node[i]->n_input > 0 && p->node[i]->n_output > 0)
            onnx_enter_name(scope, onnx_text(p->node[i]->input[0]))->called = p->node[i]->output[0];
    enter_used(scope, p);
    if (p->n_sparse_initializer > 0)
        return MPL_REFUSE(in->ctx, "%.120s: it has sparse initialisers, which memplan cannot read",
                          in->path);
    return MPL_OK;
}

/* ---- values ---- */

mpl_status onnx_make_initialiser(onnx_reader *in, onnx_name *e)
{
    mpl_status st = MPL_OK;
    mpl_tensor t;
    void *owned = NULL;
    const char *name;
    const onnx_scope *owner = in->scope;

    while (owner != NULL && onnx_entry(owner, e->text) != e)
        owner = owner->around;
    MPL_TRY(onnx_tensor(in->ctx, in->path, e->init, &t, &owned));
    MPL_TRY(free_name(in, e->text, "", owner, &name));
    MPL_TRY(onnx_blame_file(
        in, mpl_graph_add_const(in->ctx, in->g, name, t.type, &t.shape, t.data, false, &e->value)));
out:
    mpl_free(in->ctx, owned);
    return st;
}

mpl_status onnx_lookup(onnx_node *node, const char *name, mpl_value *out)
{
    onnx_name *e;
    const char *type;
    mpl_type known;

    *out = MPL_NONE;
    if (name == NULL || name[0] == '\0')
        return MPL_OK;
    e = seen_entry(node->r, name);
    if (e->text == NULL)
        return ONNX_REFUSE(node, "its input '%.100s' is made by no node before it", name);
    if (e->refused != NULL)
        return ONNX_REFUSE(node, "its input '%.100s' has type %s, which memplan has not", name,
                           e->refused);
    if (e->value == MPL_NONE && e->init != NULL) {
        if (!onnx_type(e->init->data_type, &known, &type))
            return ONNX_REFUSE(
                node, "its input '%.100s' has element type %s, which memplan has not", name, type);
        MPL_PASS(onnx_make_initialiser(node->r, e));
    }
    if (e->value == MPL_NONE)
        return ONNX_REFUSE(node, "its input '%.100s' is made by no node before it", name);
    *out = e->value;
    return MPL_OK;
}

mpl_status onnx_define(onnx_node *node, const char *name, mpl_value v)
{
    onnx_name *e;

    if (name == NULL || name[0] == '\0')
        return MPL_OK;
    e = onnx_enter_name(node->r->scope, name);
    if (is_known(e))
        return ONNX_REFUSE(
            node, "its output '%.100s' is made before it already; names are unique in ONNX", name);
    e->value = v;
    return MPL_OK;
}

bool onnx_is_used(const onnx_reader *in, const char *name)
{
    return onnx_entry(in->scope, name)->used;
}
