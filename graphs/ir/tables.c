/* tables.c -- names and properties of types, attributes and operators, from the .def files. See
 * graph.h. */
#include "graphs/graph.h"
#include "graphs/ir/counts.h"

static const struct {
    const char *name;
    uint32_t bytes;
} types[MPL_N_TYPES] = {
#define TYPE(name, bytes, ctype) {#name, bytes},
#include "graphs/ir/types.def"
#undef TYPE
};

static const struct {
    const char *name;
    mpl_attr_kind kind;
} attrs[MPL_N_ATTRS] = {
#define ATTR(name, kind) {#name, MPL_ATTR_##kind},
#include "graphs/ir/attrs.def"
#undef ATTR
};

const mpl_op_info mpl_op_table[MPL_N_OPS] = {
#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval)                            \
    {#name, min_in, max_in, min_out, max_out, traits},
#include "graphs/ir/each_op.h"
};

const char *mpl_type_name(mpl_type type)
{
    return types[type].name;
}

uint32_t mpl_type_bytes(mpl_type type)
{
    return types[type].bytes;
}

bool mpl_type_find(const char *name, mpl_type *type)
{
    for (int i = 0; i < MPL_N_TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return *type = (mpl_type)i, true;
    return false;
}

bool mpl_attr_find(const char *name, mpl_attr_key *key)
{
    for (int i = 0; i < MPL_N_ATTRS; i++)
        if (strcmp(attrs[i].name, name) == 0)
            return *key = (mpl_attr_key)i, true;
    return false;
}

const char *mpl_attr_name(mpl_attr_key key)
{
    return attrs[key].name;
}

mpl_attr_kind mpl_attr_kind_of(mpl_attr_key key)
{
    return attrs[key].kind;
}

bool mpl_op_find(const char *name, mpl_op_kind *kind)
{
    for (int i = 0; i < MPL_N_OPS; i++)
        if (strcmp(mpl_op_table[i].name, name) == 0)
            return *kind = (mpl_op_kind)i, true;
    return false;
}
