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
static bool take_path(hlo_module *m, const char **at, uint32_t *begin, uint32_t *n, mpl_status *st)
{
    const char *s = hlo_skip(m, *at);
    int64_t item;

    *begin = (uint32_t)m->path_item.n;
    *n = 0;
    if (!hlo_at(m, s, '{'))
        return false;
    for (s = hlo_skip(m, s + 1); !hlo_at(m, s, '}'); s = hlo_skip(m, s + hlo_at(m, s, ','))) {
        if (!hlo_number(m, &s, &item) || item < 0 || item >= INT32_MAX)
            return false;
        *st = mpl_reserve(m->ctx, m->path_item.item, m->path_item.cap, m->path_item.n + 1);
        if (*st != MPL_OK)
            return false;
        m->path_item.item[m->path_item.n++] = (uint32_t)item;
        ++*n;
    }
    *at = s + 1;
    return true;
}

/* Pairs { {out}: (number, {in}, words), .. } */
static mpl_status parse_aliases(hlo_module *m, hlo_text value, uint32_t *begin, uint32_t *n)
{
    const char *s = hlo_skip(m, value.at + 1), *end = value.at + value.n;
    mpl_status st = MPL_OK;

    *begin = (uint32_t)m->alias.n;
    while (s < end && *s == '{') {
        hlo_alias a;
        int64_t of;

        if (!take_path(m, &s, &a.out, &a.n_out, &st) || !hlo_at(m, s = hlo_skip(m, s), ':') ||
            !hlo_at(m, s = hlo_skip(m, s + 1), '('))
            break;
        s = hlo_skip(m, s + 1);
        if (!hlo_number(m, &s, &of) || of < 0 || of >= INT32_MAX ||
            !hlo_at(m, s = hlo_skip(m, s), ','))
            break;
        s++;
        if (!take_path(m, &s, &a.in, &a.n_in, &st))
            break;
        a.of = (uint32_t)of;
        HLO_APPEND(m, m->alias, a);
        while (s < end && *s != ')')
            s++;
        s = hlo_skip(m, s + (s < end));
        s = hlo_skip(m, s + hlo_at(m, s, ','));
    }
    MPL_PASS(st);
    if (value.n < 2 || s != end - 1)
        return hlo_refuse(m, value.at, "aliases are {{OUT}: (NUMBER, {IN}), ..}");
    *n = (uint32_t)m->alias.n - *begin;
    return MPL_OK;
}

/* Names in braces, or a single one. */
static mpl_status add_called(hlo_module *m, hlo_instr *i, hlo_text value)
{
    const char *s = value.at + hlo_at(m, value.at, '{'), *end = value.at + value.n;

    for (s = hlo_skip(m, s); s < end && *s != '}'; s = hlo_skip(m, s + hlo_at(m, s, ','))) {
        hlo_text name = hlo_take_name(m, &s);

        if (name.n == 0)
            return hlo_refuse(m, s, "the name of a computation is missing");
        HLO_APPEND(m, m->called_name, name);
        i->n_called++;
    }
    return MPL_OK;
}

typedef struct loop_names {
    hlo_text condition, body;
} loop_names;

static mpl_status take_attr(hlo_module *m, hlo_instr *i, hlo_text key, hlo_text value,
                            loop_names *loop)
{
    static const char *const calls[] = {"to_apply", "calls", "branch_computations",
                                        "true_computation", "false_computation"};
    const char *s = value.at;

    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
        if (hlo_is(key, calls[k]))
            return add_called(m, i, value);
    if (hlo_is(key, "condition"))
        loop->condition = value;
    else if (hlo_is(key, "body"))
        loop->body = value;
    else if (hlo_is(key, "output_to_operand_aliasing"))
        return parse_aliases(m, value, &i->alias, &i->n_aliases);
    else if (hlo_is(key, "index") && !hlo_number(m, &s, &i->number))
        return hlo_refuse(m, s, "index= is a number");
    else if (hlo_is(key, "kind"))
        i->output_fusion = hlo_is(value, "kOutput");
    return MPL_OK;
}

/* ---- instructions ---- */

/* One operand: a name, behind its shape if that is given. */
static mpl_status parse_operand(hlo_module *m, const char **at, uint32_t comp)
{
    size_t nodes = m->node.n, leaves = m->leaf.n;
    const char *s = hlo_skip(m, *at), *begin = s;
    hlo_shape unused;
    hlo_text name = hlo_take_name(m, &s);
    uint32_t id;

    if (hlo_at(m, begin, '(') || hlo_at(m, s, '[')) {
        s = begin;
        MPL_PASS(hlo_shape_parse(m, &s, &unused));
        m->node.n = nodes;
        m->leaf.n = leaves;
        s = hlo_skip(m, s);
        name = hlo_take_name(m, &s);
    }
    id = name.n > 0 ? m->slot[hlo_slot_of(m, comp, name)] : MPL_NONE;
    if (id == MPL_NONE)
        return hlo_refuse(m, begin, "operand '%.*s' is no instruction above in its computation",
                          (int)(name.n < 100 ? name.n : 100), name.at);
    HLO_APPEND(m, m->operand, id);
    *at = hlo_skip(m, s);
    return MPL_OK;
}

/* What stands between the parentheses. */
static mpl_status parse_operands(hlo_module *m, const char **at, uint32_t comp, hlo_instr *i)
{
    const char *s = *at;

    i->operand = (uint32_t)m->operand.n;
    if (i->rule != NULL && i->rule->how == HLO_CONSTANT) {
        *at = hlo_skip_brackets(m, s);
        return (*at)[-1] == ')' ? MPL_OK : hlo_refuse(m, s, "a literal ends with ')'");
    }
    s = hlo_skip(m, s + 1);
    if (i->rule != NULL && i->rule->how == HLO_PARAMETER) {
        if (!hlo_number(m, &s, &i->number))
            return hlo_refuse(m, s, "a parameter has a number");
        s = hlo_skip(m, s);
    }
    while (!hlo_at(m, s, ')')) {
        MPL_PASS(parse_operand(m, &s, comp));
        if (hlo_at(m, s, ','))
            s++;
        else if (!hlo_at(m, s, ')'))
            return hlo_refuse(m, s, "operands end with ')'");
    }
    i->n_operands = (uint32_t)m->operand.n - i->operand;
    *at = s + 1;
    return MPL_OK;
}

static mpl_status parse_attrs(hlo_module *m, const char **at, hlo_instr *i)
{
    const char *s = hlo_skip(m, *at);
    loop_names loop = {{NULL, 0}, {NULL, 0}};

    i->called = (uint32_t)m->called_name.n;
    for (; hlo_at(m, s, ','); s = hlo_skip(m, s)) {
        hlo_text key, value;

        s = hlo_skip(m, s + 1);
        key = hlo_take_name(m, &s);
        s = hlo_skip(m, s);
        if (key.n == 0 || !hlo_at(m, s, '='))
            return hlo_refuse(m, s, "an attribute is NAME=VALUE");
        s = hlo_skip(m, s + 1);
        value = hlo_take_value(m, &s);
        MPL_PASS(take_attr(m, i, key, value, &loop));
    }
    if (i->rule != NULL && i->rule->how == HLO_WHILE) {
        if (loop.condition.n == 0 || loop.body.n == 0)
            return hlo_refuse(m, i->name.at, "a while has condition= and body=");
        MPL_PASS(add_called(m, i, loop.condition));
        MPL_PASS(add_called(m, i, loop.body));
    }
    *at = s;
    return MPL_OK;
}

static mpl_status parse_instr(hlo_module *m, const char **at, uint32_t comp)
{
    const char *s = *at;
    hlo_instr i = {.number = -1};
    bool root;

    i.name = hlo_take_name(m, &s);
    root = hlo_is(i.name, "ROOT") && !hlo_at(m, hlo_skip(m, s), '=');
    if (root) {
        s = hlo_skip(m, s);
        i.name = hlo_take_name(m, &s);
    }
    s = hlo_skip(m, s);
    if (i.name.n == 0 || !hlo_at(m, s, '='))
        return hlo_refuse(m, s, "an instruction is NAME = SHAPE OPCODE(OPERANDS), ATTRIBUTES");
    s++;
    MPL_PASS(hlo_shape_parse(m, &s, &i.shape));
    s = hlo_skip(m, s);
    i.opcode = hlo_take_name(m, &s);
    s = hlo_skip(m, s);
    if (i.opcode.n == 0 || !hlo_at(m, s, '('))
        return hlo_refuse(m, s, "an opcode with its operands in parentheses should stand here");
    i.rule = hlo_rule_find(i.opcode);
    MPL_PASS(parse_operands(m, &s, comp, &i));
    MPL_PASS(parse_attrs(m, &s, &i));
    HLO_APPEND(m, m->instr, i);
    MPL_PASS(hlo_enter(m, comp, i.name, (uint32_t)m->instr.n - 1));
    if (root)
        m->comp.item[comp].root = (uint32_t)m->instr.n - 1;
    *at = hlo_skip(m, s);
    return MPL_OK;
}

/* ---- computations ---- */

/* Lists a computation's parameters by number. */
static mpl_status list_params(hlo_module *m, hlo_comp *c)
{
    for (uint32_t k = c->instr; k < c->instr + c->n_instrs; k++) {
        const hlo_instr *i = &m->instr.item[k];

        c->n_params += i->rule != NULL && i->rule->how == HLO_PARAMETER;
    }
    c->param = (uint32_t)m->param.n;
    MPL_PASS(mpl_reserve(m->ctx, m->param.item, m->param.cap, m->param.n + c->n_params + 1));
    for (uint32_t k = 0; k < c->n_params; k++)
        m->param.item[m->param.n++] = MPL_NONE;
    for (uint32_t k = c->instr; k < c->instr + c->n_instrs; k++) {
        const hlo_instr *i = &m->instr.item[k];

        if (i->rule == NULL || i->rule->how != HLO_PARAMETER)
            continue;
        if (i->number < 0 || i->number >= c->n_params ||
            m->param.item[c->param + i->number] != MPL_NONE)
            return hlo_refuse(m, i->name.at, "parameters are numbered from 0, each once");
        m->param.item[c->param + i->number] = k;
    }
    return MPL_OK;
}

static mpl_status parse_comp(hlo_module *m, const char **at)
{
    const char *s = *at;
    hlo_comp c = {.instr = (uint32_t)m->instr.n, .leaf = (uint32_t)m->leaf.n, .root = MPL_NONE};
    uint32_t id = (uint32_t)m->comp.n;

    c.name = hlo_take_name(m, &s);
    if (hlo_is(c.name, "ENTRY")) {
        s = hlo_skip(m, s);
        c.name = hlo_take_name(m, &s);
        if (m->entry != MPL_NONE)
            return hlo_refuse(m, s, "a second ENTRY");
        m->entry = id;
    }
    s = hlo_skip(m, s);
    if (hlo_at(m, s, '(')) /* types of parameters and result, which the instructions say again */
        s = hlo_skip(m, hlo_skip_brackets(m, s));
    if (m->end - s >= 2 && s[0] == '-' && s[1] == '>') {
        s = hlo_skip(m, s + 2);
        MPL_PASS(hlo_shape_parse(m, &s, &(hlo_shape){0}));
        c.leaf = (uint32_t)m->leaf.n;
        s = hlo_skip(m, s);
    }
    if (c.name.n == 0 || !hlo_at(m, s, '{'))
        return hlo_refuse(m, s, "a computation is NAME { INSTRUCTIONS }");
    HLO_APPEND(m, m->comp, c);
    MPL_PASS(hlo_enter(m, MPL_NONE, c.name, id | HLO_COMPUTATION));
    for (s = hlo_skip(m, s + 1); !hlo_at(m, s, '}');)
        MPL_PASS(parse_instr(m, &s, id));
    c.root = m->comp.item[id].root;
    c.n_instrs = (uint32_t)m->instr.n - c.instr;
    c.n_leaves = (uint32_t)m->leaf.n - c.leaf;
    if (c.n_instrs == 0)
        return hlo_refuse(m, s, "a computation without instructions");
    if (c.root == MPL_NONE)
        c.root = (uint32_t)m->instr.n - 1;
    MPL_PASS(list_params(m, &c));
    m->comp.item[id] = c;
    s = hlo_skip(m, s + 1);
    while (hlo_at(m, s, ',')) { /* execution_thread="..", of no meaning here */
        s = hlo_skip(m, s + 1);
        hlo_take_name(m, &s);
        s += hlo_at(m, s, '=');
        hlo_take_value(m, &s);
        s = hlo_skip(m, s);
    }
    *at = s;
    return MPL_OK;
}

/* HloModule NAME, ATTRIBUTES */
static mpl_status parse_header(hlo_module *m, const char **at)
{
    const char *s = hlo_skip(m, *at);

    m->name = hlo_take_value(m, &s);
    for (s = hlo_skip(m, s); hlo_at(m, s, ','); s = hlo_skip(m, s)) {
        hlo_text key, value;

        s = hlo_skip(m, s + 1);
        key = hlo_take_name(m, &s);
        s = hlo_skip(m, s);
        if (key.n == 0 || !hlo_at(m, s, '='))
            return hlo_refuse(m, s, "an attribute of the module is NAME=VALUE");
        s = hlo_skip(m, s + 1);
        value = hlo_take_value(m, &s);
        if (hlo_is(key, "input_output_alias"))
            MPL_PASS(parse_aliases(m, value, &m->donated, &m->n_donated));
    }
    *at = s;
    return MPL_OK;
}

/* Whether a table of source lines begins at s: FileNames, StackFrames and the like, whose rows
 * begin with a number. */
static bool skip_table(const hlo_module *m, const char **at)
{
    static const char *const tables[] = {"FileNames", "FunctionNames", "FileLocations",
                                         "StackFrames"};
    const char *s = *at;
    hlo_text word = hlo_take_name(m, &s);
    bool is = false;

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        is = is || hlo_is(word, tables[i]);
    for (s = hlo_skip(m, s); is && s < m->end && *s >= '0' && *s <= '9'; s = hlo_skip(m, s))
        while (s < m->end && *s != '\n')
            s++;
    if (is)
        *at = s;
    return is;
}

static mpl_status resolve_calls(hlo_module *m)
{
    MPL_PASS(mpl_reserve(m->ctx, m->called.item, m->called.cap, m->called_name.n + 1));
    for (size_t i = 0; i < m->called_name.n; i++) {
        hlo_text name = m->called_name.item[i];
        uint32_t id = m->slot[hlo_slot_of(m, MPL_NONE, name)];

        if (id == MPL_NONE)
            return hlo_refuse(m, name.at, "there is no computation '%.*s'",
                              (int)(name.n < 100 ? name.n : 100), name.at);
        m->called.item[m->called.n++] = id & ~HLO_COMPUTATION;
    }
    return MPL_OK;
}

mpl_status hlo_parse(hlo_module *m)
{
    const char *s = hlo_skip(m, m->begin), *at = s;

    if (m->end - m->begin >= HLO_COMPUTATION / 4)
        return MPL_REFUSE(m->ctx, "%s: more than 512 MiB of HLO text", m->path);
    m->entry = MPL_NONE;
    MPL_PASS(hlo_make_table(m));
    MPL_PASS(mpl_reserve(m->ctx, m->path_item.item, m->path_item.cap, 1)); /* all may be empty */
    if (hlo_is(hlo_take_name(m, &at), "HloModule")) {
        s = at;
        MPL_PASS(parse_header(m, &s));
    }
    for (s = hlo_skip(m, s); s < m->end; s = hlo_skip(m, s))
        if (!skip_table(m, &s))
            MPL_PASS(parse_comp(m, &s));
    if (m->comp.n == 0)
        return MPL_REFUSE(m->ctx, "%s: no computation", m->path);
    if (m->entry == MPL_NONE)
        m->entry = (uint32_t)m->comp.n - 1;
    return resolve_calls(m);
}

void hlo_module_fini(hlo_module *m)
{
    mpl_free_each(m->ctx, m->leaf.item, m->node.item, m->instr.item, m->comp.item, m->operand.item,
                  m->called_name.item, m->called.item, m->param.item, m->alias.item,
                  m->path_item.item, m->slot);
}
