/* hlo_over.c -- which operands an instruction may overwrite, by the table hlo_rules.def. */
#include "graphs/io/hlo/hlo_priv.h"

static const hlo_rule hlo_rules[] = {
#define ALL                           HLO_ALL
#define RULE(opcode, how, over, part) {#opcode, HLO_##how, HLO_##over, part},
#include "graphs/io/hlo/hlo_rules.def"
#undef RULE
#undef ALL
};
enum { N_RULES = sizeof hlo_rules / sizeof *hlo_rules };

static const hlo_rule *find(const char *at, uint32_t n)
{
    uint32_t low = 0, high = N_RULES;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        int order = strncmp(hlo_rules[mid].opcode, at, n);

        order = order == 0 && hlo_rules[mid].opcode[n] != '\0' ? 1 : order;
        if (order == 0)
            return &hlo_rules[mid];
        low = order < 0 ? mid + 1 : low;
        high = order < 0 ? high : mid;
    }
    return NULL;
}

/* XLA prints an async-start of one instruction as OPCODE-start, and likewise -update and -done. */
const hlo_rule *hlo_rule_find(hlo_text opcode)
{
    static const char *const ends[] = {"-start", "-update", "-done"};
    static const char *const names[] = {"async-start", "async-update", "async-done"};
    const hlo_rule *rule = find(opcode.at, opcode.n);

    for (size_t i = 0; i < sizeof ends / sizeof *ends && rule == NULL; i++) {
        uint32_t n = (uint32_t)strlen(ends[i]);

        if (opcode.n > n && memcmp(opcode.at + opcode.n - n, ends[i], n) == 0)
            rule = find(names[i], (uint32_t)strlen(names[i]));
    }
    return rule;
}

static hlo_over over_of(const hlo_instr *instr)
{
    return instr->rule == NULL ? HLO_NONE : (hlo_over)instr->rule->over;
}

static bool is_how(const hlo_instr *instr, hlo_how how)
{
    return instr->rule != NULL && instr->rule->how == how;
}

/* Whether `user` reads operand k only at the index that it writes. */
static bool reads_along(const hlo_instr *user, uint32_t k)
{
    return over_of(user) == HLO_ALONG || (hlo_is(user->opcode, "dynamic-update-slice") && k == 0) ||
           is_how(user, HLO_TUPLE);
}

/* ---- fusions ---- */

/* For each instruction of a fused computation: whether all ways from it to the root are element by
 * element. */
static void mark_along(const hlo_module *module, const hlo_comp *comp, uint8_t *along)
{
    memset(along, 1, comp->n_instrs);
    for (uint32_t k = comp->n_instrs; k-- > 0;) {
        const hlo_instr *instr = &module->instr.item[comp->instr + k];

        for (uint32_t o = 0; o < instr->n_operands; o++)
            along[module->operand.item[instr->operand + o] - comp->instr] &=
                along[k] && reads_along(instr, o);
    }
}

/* The source of result array `out` of a fused computation: through tuples, their elements and
 * bitcasts. */
static const hlo_instr *follow(const hlo_module *module, const hlo_instr *instr, uint32_t *out)
{
    for (;;) {
        if (is_how(instr, HLO_TUPLE)) {
            uint32_t k = 0;

            for (; k < instr->n_operands && *out >= hlo_operand(module, instr, k)->shape.n_leaves;
                 k++)
                *out -= hlo_operand(module, instr, k)->shape.n_leaves;
            if (k == instr->n_operands)
                return instr;
            instr = hlo_operand(module, instr, k);
        } else if (is_how(instr, HLO_ELEMENT) && instr->n_operands == 1) {
            hlo_shape part;

            if (!hlo_element(module, hlo_operand(module, instr, 0)->shape, instr->number, &part))
                return instr;
            instr = hlo_operand(module, instr, 0);
            *out += part.leaf - instr->shape.leaf;
        } else if (is_how(instr, HLO_BITCAST) && instr->n_operands == 1) {
            instr = hlo_operand(module, instr, 0);
        } else {
            return instr;
        }
    }
}

/* The operand that a fused root updates in place (FIRST, EACH), or that it adds to a product. */
static const hlo_instr *updated(const hlo_module *module, const hlo_instr *fusion,
                                const hlo_instr *root, uint32_t out)
{
    hlo_over over = over_of(root);
    uint32_t none = 0;

    if (over == HLO_FIRST && root->n_operands > 0)
        return follow(module, hlo_operand(module, root, 0), &none);
    if (hlo_is(root->opcode, "scatter") && out < root->n_operands)
        return follow(module, hlo_operand(module, root, out), &none);
    if (fusion->output_fusion && hlo_is(root->opcode, "add") && root->n_operands == 2)
        for (uint32_t k = 0; k < 2; k++)
            if (hlo_is(hlo_operand(module, root, k)->opcode, "dot") ||
                hlo_is(hlo_operand(module, root, k)->opcode, "convolution"))
                return hlo_operand(module, root, 1 - k);
    return NULL;
}

static mpl_status overwrites_of_fusion(const hlo_module *module, const hlo_instr *instr,
                                       uint32_t out, uint8_t *over)
{
    const hlo_comp *comp = &module->comp.item[module->called.item[instr->called]];
    const hlo_instr *root = &module->instr.item[comp->root], *to;
    uint32_t leaf = out, uses = 0;
    uint8_t *along = NULL;

    MPL_PASS(mpl_new(module->ctx, along, comp->n_instrs));
    mark_along(module, comp, along);
    for (uint32_t k = 0; k < instr->n_operands && k < comp->n_params; k++)
        over[k] |= along[module->param.item[comp->param + k] - comp->instr];
    mpl_free(module->ctx, along);
    root = follow(module, root, &leaf);
    to = updated(module, instr, root, leaf);
    if (to == NULL || !is_how(to, HLO_PARAMETER) || to->number >= instr->n_operands)
        return MPL_OK;
    for (uint32_t k = 0; k < root->n_operands; k++)
        uses += hlo_operand(module, root, k) == to;
    over[to->number] |= uses <= 1;
    return MPL_OK;
}

/* ---- all instructions ---- */

/* What output_to_operand_aliasing says of the result array `leaf`. */
static void add_said(const hlo_module *module, const hlo_instr *instr, uint32_t leaf, uint8_t *over)
{
    for (uint32_t a = instr->alias; a < instr->alias + instr->n_aliases; a++) {
        const hlo_alias *pair = &module->alias.item[a];
        hlo_shape out;

        if (pair->of < instr->n_operands &&
            hlo_descend(module, instr->shape, module->path_item.item + pair->out, pair->n_out,
                        &out) &&
            out.n_leaves == 1 && out.leaf == leaf)
            over[pair->of] = 1;
    }
}

mpl_status hlo_overwrites(const hlo_module *module, const hlo_instr *instr, uint32_t out,
                          uint8_t *over)
{
    uint32_t leaf = instr->shape.leaf + out;

    memset(over, 0, instr->n_operands);
    switch (over_of(instr)) {
    case HLO_NONE:
        return MPL_OK;
    case HLO_ALONG:
        memset(over, 1, instr->n_operands);
        break;
    case HLO_FIRST:
    case HLO_SECOND:
    case HLO_EACH:
        for (uint32_t k = 0; k < instr->n_operands; k++)
            over[k] = k == (over_of(instr) == HLO_FIRST    ? 0
                            : over_of(instr) == HLO_SECOND ? 1
                                                           : out);
        break;
    case HLO_ALIASED:
        if (is_how(instr, HLO_FUSION) && instr->n_called == 1)
            MPL_PASS(overwrites_of_fusion(module, instr, out, over));
        add_said(module, instr, leaf, over);
        break;
    }
    for (uint32_t k = 0; k < instr->n_operands; k++) {
        hlo_shape of = hlo_operand(module, instr, k)->shape;

        over[k] = over[k] && of.n_leaves == 1 && hlo_same_form(module, of.leaf, leaf);
    }
    return MPL_OK;
}
