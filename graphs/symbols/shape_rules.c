/* shape_rules.c -- finds the shape rule of an operation. See shape_rules.h.
 *
 * Source   the rules of graphs/ops, hence ONNX's docs/Operators.md */
#include "graphs/symbols/shape_rules_priv.h"

static bool has_name(const char *names, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = names; (at = strstr(at, name)) != NULL; at += n)
        if ((at == names || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static const mpl_rule_entry *find(const mpl_rule_entry *table, const char *name)
{
    while (table->names != NULL && !has_name(table->names, name))
        table++;
    return table->names != NULL ? table : NULL;
}

mpl_status mpl_rule_dims(mpl_rule_call *call, mpl_op op, uint32_t i, mpl_expr dim[MPL_MAX_RANK],
                         uint32_t *rank, bool *known)
{
    static const char *const name[] = {
#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval) #shape,
#include "graphs/ir/each_op.h"
    };
    const mpl_graph *g = call->graph[0];
    const mpl_rule_entry *own = find(mpl_rules_of_arithmetic, name[g->op_kind[op]]);
    mpl_rule r = {.call = call, .g = g, .op = op, .out = i, .known = true, .dim = dim};

    *known = false;
    if (own == NULL && (own = find(mpl_rules_of_moves, name[g->op_kind[op]])) == NULL)
        return MPL_OK;
    own->rule(&r);
    if (r.st != MPL_OK && r.st != MPL_EINPUT)
        return r.st;
    *rank = r.rank;
    *known = r.known && r.st == MPL_OK;
    return MPL_OK;
}
