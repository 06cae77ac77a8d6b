/* tables.c -- names and properties of types, attributes and operators, from the .def files. See
 * graph.h. */
#include "graphs/graph.h"
#include "graphs/ir/counts.h"

static const struct {
    const char *name;
    uint32_t bits;
} types[MPL_N_TYPES] = {
#define TYPE(name, bits) {#name, bits},
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

uint32_t mpl_type_bits(mpl_type type)
{
    return types[type].bits;
}

uint32_t mpl_type_bytes(mpl_type type)
{
    return (types[type].bits + 7) / 8;
}

bool mpl_type_size(mpl_type type, uint64_t n, uint64_t *bytes)
{
    uint32_t bits = types[type].bits, a_byte = 8 / (bits < 8 ? bits : 8);

    if (bits >= 8)
        return mpl_mul_bytes(n, bits / 8, bytes);
    *bytes = n / a_byte + (n % a_byte != 0);
    return true;
}

void mpl_type_repeat(mpl_type type, uint64_t n, const void *one, void *data)
{
    uint32_t bits = types[type].bits, size = mpl_type_bytes(type), byte = 0;
    uint64_t bytes = n;

    if (bits >= 8) {
        for (uint64_t i = 0; i < n; i++)
            memcpy((char *)data + i * size, one, size);
        return;
    }
    for (uint32_t at = 0; at < 8; at += bits)
        byte |= (*(const uint8_t *)one & ((1u << bits) - 1)) << at;
    mpl_type_size(type, n, &bytes);
    if (bytes > 0)
        memset(data, (int)byte, bytes);
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
