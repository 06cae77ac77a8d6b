/* hlo_parse.c -- a module of HLO text: computations, instructions, and of their attributes those
 * that matter for memory. See hlo_priv.h.
 *
 * Source   openxla.org/xla (HLO text); modules that XLA's tools print and its tests hold. The
 * header line, types of operands, % before names and ENTRY may be left out; without ENTRY the last
 *          computation is the module's.
 * Cost     O(text). */
#include "graphs/io/hlo/hlo_priv.h"

/* ---- attributes ---- */

/* {1,0} as a path. */
static bool take_path(hlo_module *module, const char **at, uint32_t *begin, uint32_t *n,
                      mpl_status *st)
{
    const char *s = hlo_skip(module, *at);
    int64_t item;

    *begin = (uint32_t)module->path_item.n;
    *n = 0;
    if (!hlo_at(module, s, '{'))
        return false;
    for (s = hlo_skip(module, s + 1); !hlo_at(module, s, '}');
         s = hlo_skip(module, s + hlo_at(module, s, ','))) {
        if (!hlo_number(module, &s, &item) || item < 0 || item >= INT32_MAX)
            return false;
        *st = mpl_reserve(module->ctx, module->path_item.item, module->path_item.cap,
                          module->path_item.n + 1);
        if (*st != MPL_OK)
            return false;
        module->path_item.item[module->path_item.n++] = (uint32_t)item;
        ++*n;
    }
    *at = s + 1;
    return true;
}

/* Pairs { {out}: (number, {in}, words), .. } */
static mpl_status parse_aliases(hlo_module *module, hlo_text value, uint32_t *begin, uint32_t *n)
{
    const char *s = hlo_skip(module, value.at + 1), *end = value.at + value.n;
    mpl_status st = MPL_OK;

    *begin = (uint32_t)module->alias.n;
    while (s < end && *s == '{') {
        hlo_alias a;
        int64_t of;

        if (!take_path(module, &s, &a.out, &a.n_out, &st) ||
            !hlo_at(module, s = hlo_skip(module, s), ':') ||
            !hlo_at(module, s = hlo_skip(module, s + 1), '('))
            break;
        s = hlo_skip(module, s + 1);
        if (!hlo_number(module, &s, &of) || of < 0 || of >= INT32_MAX ||
            !hlo_at(module, s = hlo_skip(module, s), ','))
            break;
        s++;
        if (!take_path(module, &s, &a.in, &a.n_in, &st))
            break;
        a.of = (uint32_t)of;
        HLO_APPEND(module, module->alias, a);
        while (s < end && *s != ')')
            s++;
        s = hlo_skip(module, s + (s < end));
        s = hlo_skip(module, s + hlo_at(module, s, ','));
    }
    MPL_PASS(st);
    if (value.n < 2 || s != end - 1)
        return hlo_refuse(module, value.at, "aliases are {{OUT}: (NUMBER, {IN}), ..}");
    *n = (uint32_t)module->alias.n - *begin;
    return MPL_OK;
}

/* Names in braces, or a single one. */
static mpl_status add_called(hlo_module *module, hlo_instr *instr, hlo_text value)
{
    const char *s = value.at + hlo_at(module, value.at, '{'), *end = value.at + value.n;

    for (s = hlo_skip(module, s); s < end && *s != '}';
         s = hlo_skip(module, s + hlo_at(module, s, ','))) {
        hlo_text name = hlo_take_name(module, &s);

        if (name.n == 0)
            return hlo_refuse(module, s, "the name of a computation is missing");
        HLO_APPEND(module, module->called_name, name);
        instr->n_called++;
    }
    return MPL_OK;
}

typedef struct loop_names {
    hlo_text condition, body;
} loop_names;

static mpl_status take_attr(hlo_module *module, hlo_instr *instr, hlo_text key, hlo_text value,
                            loop_names *loop)
{
    static const char *const calls[] = {"to_apply", "calls", "branch_computations",
                                        "true_computation", "false_computation"};
    const char *s = value.at;

    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
        if (hlo_is(key, calls[k]))
            return add_called(module, instr, value);
    if (hlo_is(key, "condition"))
        loop->condition = value;
    else if (hlo_is(key, "body"))
        loop->body = value;
    else if (hlo_is(key, "output_to_operand_aliasing"))
        return parse_aliases(module, value, &instr->alias, &instr->n_aliases);
    else if (hlo_is(key, "index") && !hlo_number(module, &s, &instr->number))
        return hlo_refuse(module, s, "index= is a number");
    else if (hlo_is(key, "kind"))
        instr->output_fusion = hlo_is(value, "kOutput");
    return MPL_OK;
}

/* ---- instructions ---- */

/* One operand: a name, behind its shape if that is given. */
static mpl_status parse_operand(hlo_module *module, const char **at, uint32_t comp)
{
    size_t nodes = module->node.n, leaves = module->leaf.n;
    const char *s = hlo_skip(module, *at), *begin = s;
    hlo_shape unused;
    hlo_text name = hlo_take_name(module, &s);
    uint32_t id;

    if (hlo_at(module, begin, '(') || hlo_at(module, s, '[')) {
        s = begin;
        MPL_PASS(hlo_shape_parse(module, &s, &unused));
        module->node.n = nodes;
        module->leaf.n = leaves;
        s = hlo_skip(module, s);
        name = hlo_take_name(module, &s);
    }
    id = name.n > 0 ? module->slot[hlo_slot_of(module, comp, name)] : MPL_NONE;
    if (id == MPL_NONE)
        return hlo_refuse(module, begin,
                          "operand '%.*s' is no instruction above in its computation",
                          (int)(name.n < 100 ? name.n : 100), name.at);
    HLO_APPEND(module, module->operand, id);
    *at = hlo_skip(module, s);
    return MPL_OK;
}

/* What stands between the parentheses. */
static mpl_status parse_operands(hlo_module *module, const char **at, uint32_t comp,
                                 hlo_instr *instr)
{
    const char *s = *at;

    instr->operand = (uint32_t)module->operand.n;
    if (instr->rule != NULL && instr->rule->how == HLO_CONSTANT) {
        *at = hlo_skip_brackets(module, s);
        return (*at)[-1] == ')' ? MPL_OK : hlo_refuse(module, s, "a literal ends with ')'");
    }
    s = hlo_skip(module, s + 1);
    if (instr->rule != NULL && instr->rule->how == HLO_PARAMETER) {
        if (!hlo_number(module, &s, &instr->number))
            return hlo_refuse(module, s, "a parameter has a number");
        s = hlo_skip(module, s);
    }
    while (!hlo_at(module, s, ')')) {
        MPL_PASS(parse_operand(module, &s, comp));
        if (hlo_at(module, s, ','))
            s++;
        else if (!hlo_at(module, s, ')'))
            return hlo_refuse(module, s, "operands end with ')'");
    }
    instr->n_operands = (uint32_t)module->operand.n - instr->operand;
    *at = s + 1;
    return MPL_OK;
}

static mpl_status parse_attrs(hlo_module *module, const char **at, hlo_instr *instr)
{
    const char *s = hlo_skip(module, *at);
    loop_names loop = {{NULL, 0}, {NULL, 0}};

    instr->called = (uint32_t)module->called_name.n;
    for (; hlo_at(module, s, ','); s = hlo_skip(module, s)) {
        hlo_text key, value;

        s = hlo_skip(module, s + 1);
        key = hlo_take_name(module, &s);
        s = hlo_skip(module, s);
        if (key.n == 0 || !hlo_at(module, s, '='))
            return hlo_refuse(module, s, "an attribute is NAME=VALUE");
        s = hlo_skip(module, s + 1);
        value = hlo_take_value(module, &s);
        MPL_PASS(take_attr(module, instr, key, value, &loop));
    }
    if (instr->rule != NULL && instr->rule->how == HLO_WHILE) {
        if (loop.condition.n == 0 || loop.body.n == 0)
            return hlo_refuse(module, instr->name.at, "a while has condition= and body=");
        MPL_PASS(add_called(module, instr, loop.condition));
        MPL_PASS(add_called(module, instr, loop.body));
    }
    *at = s;
    return MPL_OK;
}

static mpl_status parse_instr(hlo_module *module, const char **at, uint32_t comp)
{
    const char *s = *at;
    hlo_instr i = {.number = -1};
    bool root;

    i.name = hlo_take_name(module, &s);
    root = hlo_is(i.name, "ROOT") && !hlo_at(module, hlo_skip(module, s), '=');
    if (root) {
        s = hlo_skip(module, s);
        i.name = hlo_take_name(module, &s);
    }
    s = hlo_skip(module, s);
    if (i.name.n == 0 || !hlo_at(module, s, '='))
        return hlo_refuse(module, s, "an instruction is NAME = SHAPE OPCODE(OPERANDS), ATTRIBUTES");
    s++;
    MPL_PASS(hlo_shape_parse(module, &s, &i.shape));
    s = hlo_skip(module, s);
    i.opcode = hlo_take_name(module, &s);
    s = hlo_skip(module, s);
    if (i.opcode.n == 0 || !hlo_at(module, s, '('))
        return hlo_refuse(module, s,
                          "an opcode with its operands in parentheses should stand here");
    i.rule = hlo_rule_find(i.opcode);
    MPL_PASS(parse_operands(module, &s, comp, &i));
    MPL_PASS(parse_attrs(module, &s, &i));
    HLO_APPEND(module, module->instr, i);
    MPL_PASS(hlo_enter(module, comp, i.name, (uint32_t)module->instr.n - 1));
    if (root)
        module->comp.item[comp].root = (uint32_t)module->instr.n - 1;
    *at = hlo_skip(module, s);
    return MPL_OK;
}

/* ---- computations ---- */

/* Lists a computation's parameters by number. */
static mpl_status list_params(hlo_module *module, hlo_comp *comp)
{
    for (uint32_t k = comp->instr; k < comp->instr + comp->n_instrs; k++) {
        const hlo_instr *instr = &module->instr.item[k];

        comp->n_params += instr->rule != NULL && instr->rule->how == HLO_PARAMETER;
    }
    comp->param = (uint32_t)module->param.n;
    MPL_PASS(mpl_reserve(module->ctx, module->param.item, module->param.cap,
                         module->param.n + comp->n_params + 1));
    for (uint32_t k = 0; k < comp->n_params; k++)
        module->param.item[module->param.n++] = MPL_NONE;
    for (uint32_t k = comp->instr; k < comp->instr + comp->n_instrs; k++) {
        const hlo_instr *instr = &module->instr.item[k];

        if (instr->rule == NULL || instr->rule->how != HLO_PARAMETER)
            continue;
        if (instr->number < 0 || instr->number >= comp->n_params ||
            module->param.item[comp->param + instr->number] != MPL_NONE)
            return hlo_refuse(module, instr->name.at, "parameters are numbered from 0, each once");
        module->param.item[comp->param + instr->number] = k;
    }
    return MPL_OK;
}

static mpl_status parse_comp(hlo_module *module, const char **at)
{
    const char *s = *at;
    hlo_comp c = {
        .instr = (uint32_t)module->instr.n, .leaf = (uint32_t)module->leaf.n, .root = MPL_NONE};
    uint32_t id = (uint32_t)module->comp.n;

    c.name = hlo_take_name(module, &s);
    if (hlo_is(c.name, "ENTRY")) {
        s = hlo_skip(module, s);
        c.name = hlo_take_name(module, &s);
        if (module->entry != MPL_NONE)
            return hlo_refuse(module, s, "a second ENTRY");
        module->entry = id;
    }
    s = hlo_skip(module, s);
    if (hlo_at(module, s, '(')) /* types of parameters and result, which the instructions say again
                                 */
        s = hlo_skip(module, hlo_skip_brackets(module, s));
    if (module->end - s >= 2 && s[0] == '-' && s[1] == '>') {
        s = hlo_skip(module, s + 2);
        MPL_PASS(hlo_shape_parse(module, &s, &(hlo_shape){0}));
        c.leaf = (uint32_t)module->leaf.n;
        s = hlo_skip(module, s);
    }
    if (c.name.n == 0 || !hlo_at(module, s, '{'))
        return hlo_refuse(module, s, "a computation is NAME { INSTRUCTIONS }");
    HLO_APPEND(module, module->comp, c);
    MPL_PASS(hlo_enter(module, MPL_NONE, c.name, id | HLO_COMPUTATION));
    for (s = hlo_skip(module, s + 1); !hlo_at(module, s, '}');)
        MPL_PASS(parse_instr(module, &s, id));
    c.root = module->comp.item[id].root;
    c.n_instrs = (uint32_t)module->instr.n - c.instr;
    c.n_leaves = (uint32_t)module->leaf.n - c.leaf;
    if (c.n_instrs == 0)
        return hlo_refuse(module, s, "a computation without instructions");
    if (c.root == MPL_NONE)
        c.root = (uint32_t)module->instr.n - 1;
    MPL_PASS(list_params(module, &c));
    module->comp.item[id] = c;
    s = hlo_skip(module, s + 1);
    while (hlo_at(module, s, ',')) { /* execution_thread="..", of no meaning here */
        s = hlo_skip(module, s + 1);
        hlo_take_name(module, &s);
        s += hlo_at(module, s, '=');
        hlo_take_value(module, &s);
        s = hlo_skip(module, s);
    }
    *at = s;
    return MPL_OK;
}

/* HloModule NAME, ATTRIBUTES */
static mpl_status parse_header(hlo_module *module, const char **at)
{
    const char *s = hlo_skip(module, *at);

    module->name = hlo_take_value(module, &s);
    for (s = hlo_skip(module, s); hlo_at(module, s, ','); s = hlo_skip(module, s)) {
        hlo_text key, value;

        s = hlo_skip(module, s + 1);
        key = hlo_take_name(module, &s);
        s = hlo_skip(module, s);
        if (key.n == 0 || !hlo_at(module, s, '='))
            return hlo_refuse(module, s, "an attribute of the module is NAME=VALUE");
        s = hlo_skip(module, s + 1);
        value = hlo_take_value(module, &s);
        if (hlo_is(key, "input_output_alias"))
            MPL_PASS(parse_aliases(module, value, &module->donated, &module->n_donated));
    }
    *at = s;
    return MPL_OK;
}

/* Whether a table of source lines begins at s: FileNames, StackFrames and the like, whose rows
 * begin with a number. */
static bool skip_table(const hlo_module *module, const char **at)
{
    static const char *const tables[] = {"FileNames", "FunctionNames", "FileLocations",
                                         "StackFrames"};
    const char *s = *at;
    hlo_text word = hlo_take_name(module, &s);
    bool is = false;

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        is = is || hlo_is(word, tables[i]);
    for (s = hlo_skip(module, s); is && s < module->end && *s >= '0' && *s <= '9';
         s = hlo_skip(module, s))
        while (s < module->end && *s != '\n')
            s++;
    if (is)
        *at = s;
    return is;
}

static mpl_status resolve_calls(hlo_module *module)
{
    MPL_PASS(mpl_reserve(module->ctx, module->called.item, module->called.cap,
                         module->called_name.n + 1));
    for (size_t i = 0; i < module->called_name.n; i++) {
        hlo_text name = module->called_name.item[i];
        uint32_t id = module->slot[hlo_slot_of(module, MPL_NONE, name)];

        if (id == MPL_NONE)
            return hlo_refuse(module, name.at, "there is no computation '%.*s'",
                              (int)(name.n < 100 ? name.n : 100), name.at);
        module->called.item[module->called.n++] = id & ~HLO_COMPUTATION;
    }
    return MPL_OK;
}

mpl_status hlo_parse(hlo_module *module)
{
    const char *s = hlo_skip(module, module->begin), *at = s;

    if (module->end - module->begin >= HLO_COMPUTATION / 4)
        return MPL_REFUSE(module->ctx, "%s: more than 512 MiB of HLO text", module->path);
    module->entry = MPL_NONE;
    MPL_PASS(hlo_make_table(module));
    MPL_PASS(mpl_reserve(module->ctx, module->path_item.item, module->path_item.cap, 1)); /* all may
                                                                                             be
                                                                                             empty
                                                                                           */
    if (hlo_is(hlo_take_name(module, &at), "HloModule")) {
        s = at;
        MPL_PASS(parse_header(module, &s));
    }
    for (s = hlo_skip(module, s); s < module->end; s = hlo_skip(module, s))
        if (!skip_table(module, &s))
            MPL_PASS(parse_comp(module, &s));
    if (module->comp.n == 0)
        return MPL_REFUSE(module->ctx, "%s: no computation", module->path);
    if (module->entry == MPL_NONE)
        module->entry = (uint32_t)module->comp.n - 1;
    return resolve_calls(module);
}

void hlo_module_fini(hlo_module *module)
{
    mpl_free_each(module->ctx, module->leaf.item, module->node.item, module->instr.item,
                  module->comp.item, module->operand.item, module->called_name.item,
                  module->called.item, module->param.item, module->alias.item,
                  module->path_item.item, module->slot);
}
