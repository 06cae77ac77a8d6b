/* attr.c -- reads the attributes of an operation. */
#include "graphs/graph.h"

mpl_attr mpl_attr_at(const mpl_graph *g, uint32_t index)
{
    mpl_attr attr = {.key = (mpl_attr_key)g->attr_key[index], .n = g->attr_n[index]};
    uint32_t begin = g->attr_begin[index];

    switch (mpl_attr_kind_of(attr.key)) {
    case MPL_ATTR_INT:
    case MPL_ATTR_INTS:
        attr.ints = g->attr_int + begin;
        break;
    case MPL_ATTR_FLOAT:
    case MPL_ATTR_FLOATS:
        attr.floats = g->attr_float + begin;
        break;
    case MPL_ATTR_TEXT:
        attr.text = g->attr_text + begin;
        break;
    }
    return attr;
}

bool mpl_attr_get(const mpl_graph *g, mpl_op op, mpl_attr_key key, mpl_attr *out)
{
    for (uint32_t i = g->op_attr_begin[op]; i < g->op_attr_begin[op + 1]; i++)
        if (g->attr_key[i] == key)
            return *out = mpl_attr_at(g, i), true;
    return false;
}

int64_t mpl_attr_int(const mpl_graph *g, mpl_op op, mpl_attr_key key, int64_t otherwise)
{
    mpl_attr attr;

    return mpl_attr_get(g, op, key, &attr) ? attr.ints[0] : otherwise;
}

double mpl_attr_float(const mpl_graph *g, mpl_op op, mpl_attr_key key, double otherwise)
{
    mpl_attr attr;

    return mpl_attr_get(g, op, key, &attr) ? attr.floats[0] : otherwise;
}

const char *mpl_attr_text(const mpl_graph *g, mpl_op op, mpl_attr_key key, const char *otherwise)
{
    mpl_attr attr;

    return mpl_attr_get(g, op, key, &attr) ? attr.text : otherwise;
}

const int64_t *mpl_attr_ints(const mpl_graph *g, mpl_op op, mpl_attr_key key, uint32_t *n)
{
    mpl_attr attr;

    if (!mpl_attr_get(g, op, key, &attr)) {
        *n = 0;
        return NULL;
    }
    *n = attr.n;
    return attr.ints;
}
