/* text_read.c -- graphs from .graph text.
 *
 * One statement a line; '#' starts a comment; a value is made above the lines that use it.
 *
 *   graph NAME                                   first; `program NAME` allows writes in place
 *   input NAME TYPE [D,D,..]                     given by the caller
 *   weight NAME TYPE [D,D,..]                    filled from a seed
 *   weight NAME TYPE [D,D,..] = splat NUMBER     one number for all elements
 *   weight NAME TYPE [D,D,..] = data NUMBER ..   all elements, row-major
 *   weight NAME TYPE [D,D,..] = bytes HEX        all elements as bytes in memory (little-endian)
 *   bound NAME TYPE [D,D,..] = data|bytes ..     an input that decided shapes and became a constant
 *   OUT, .. = OPERATOR(IN, ..) KEY=VALUE .. : TYPE [D,..], .. @NAME
 *   OUT, .. = while BODY(IN, ..) ..              an operation that owns blocks names them
 *   exit_unless(C)                               an operation without outputs; `while BODY(..)` too
 *   block NAME                                   opens a block, which ends at its `yield`
 *   param NAME TYPE [D,..]                       a parameter, at the start of its block
 *   yield A, ..                                  closes the block with its results
 *   output NAME                                  any number of them
 *
 * `_` is an omitted optional operand. Types and dims of outputs are inferred, and checked if given.
 * @NAME names the operation; by default it has the name of its first output. Operators are those of
 * ir/ops.def, or of the user's (ops/user). Attributes are those of ir/attrs.def: whole numbers,
 * numbers, words or strings, and lists in brackets. Names are words of letters, digits and any of
 * _./+-, or strings in quotes with \\ \" \xHH. An operation owns the blocks right above it. Braces
 * are reserved. A whole file costs O(size). For control flow see mpl_graph_add_control. */
#include "graphs/core/file.h"
#include "graphs/io/text/text_read_priv.h"
#include "graphs/ops/user/user_ops.h"
#include "graphs/source.h"
/* ---- lines ---- */

/* Adds the place in the file to a failure inside the graph. */
static mpl_status located(reader *r, mpl_status st)
{
    return st != MPL_EINPUT ? st : mpl_text_refuse(r, "%s", r->ctx->message);
}

/* Reads an input, weight or bound; the next token is this keyword. */
static mpl_status read_declaration(reader *r)
{
    bool bound = mpl_text_is_word(r, "bound"), input = mpl_text_is_word(r, "input"), constant,
         splat = false;
    mpl_type type;
    mpl_shape shape;
    mpl_value v;
    size_t name;

    MPL_PASS(mpl_text_advance(r));
    MPL_PASS(mpl_text_take_name(r, "a value", &name));
    MPL_PASS(mpl_text_take_type(r, &type, &shape));
    constant = mpl_text_is_mark(r, '=');
    if (constant) {
        MPL_PASS(mpl_text_advance(r));
        MPL_PASS(mpl_text_take_constant(r, type, &shape, &splat));
    }
    MPL_PASS(mpl_text_expect_end(r));
    if (input && constant)
        return mpl_text_refuse(r, "an input has no data; write 'weight' for a constant");
    if (bound && (!constant || splat))
        return mpl_text_refuse(r,
                               "a bound input needs all its elements: '= data ..' or '= bytes ..'");
    if (constant && !bound) {
        MPL_PASS(located(r, mpl_graph_add_const(r->ctx, r->g, r->text.item + name, type, &shape,
                                                r->raw.item, splat, &v)));
        return MPL_OK;
    }
    MPL_PASS(
        located(r, mpl_graph_add_value(r->ctx, r->g, r->text.item + name,
                                       input || bound ? MPL_INPUT : MPL_WEIGHT, type, &shape, &v)));
    if (bound)
        MPL_PASS(mpl_graph_bind_input(r->ctx, r->g, v, r->raw.item));
    return MPL_OK;
}

static mpl_status read_block(reader *r)
{
    size_t name;
    uint32_t block;

    MPL_PASS(mpl_text_advance(r));
    MPL_PASS(mpl_text_take_name(r, "a block", &name));
    MPL_PASS(mpl_text_expect_end(r));
    return located(r, mpl_graph_open_block(r->ctx, r->g, r->text.item + name, &block));
}

static mpl_status read_param(reader *r)
{
    mpl_type type;
    mpl_shape shape;
    mpl_value v;
    size_t name;

    MPL_PASS(mpl_text_advance(r));
    MPL_PASS(mpl_text_take_name(r, "a parameter", &name));
    MPL_PASS(mpl_text_take_type(r, &type, &shape));
    MPL_PASS(mpl_text_expect_end(r));
    return located(r, mpl_graph_add_param(r->ctx, r->g, r->text.item + name, type, &shape, &v));
}

static mpl_status read_output(reader *r)
{
    mpl_value v;
    token name;
    char text[48];
    size_t begin;

    MPL_PASS(mpl_text_advance(r));
    name = r->next;
    MPL_PASS(mpl_text_take_name(r, "an output", &begin));
    MPL_PASS(mpl_text_expect_end(r));
    v = mpl_graph_find(r->g, r->text.item + begin);
    if (v == MPL_NONE)
        return mpl_text_refuse(r, "output %s is made by no line above", mpl_text_show(&name, text));
    return located(r, mpl_graph_add_output(r->ctx, r->g, v));
}

/* One operand: a name, or `_`. */
static mpl_status take_operand(reader *r, const char *what, size_t *begin)
{
    if (!mpl_text_is_word(r, "_"))
        return mpl_text_take_name(r, what, begin);
    *begin = LEFT_OUT;
    return mpl_text_advance(r);
}

/* Reads "NAME, .." after an operator that owns blocks into bodies. */
static mpl_status take_bodies(reader *r)
{
    size_t begin;

    for (;;) {
        MPL_PASS(mpl_text_take_name(r, "a block", &begin));
        APPEND(r, r->bodies, begin);
        if (!mpl_text_is_mark(r, ','))
            break;
        MPL_PASS(mpl_text_advance(r));
    }
    return MPL_OK;
}

/* Reads "OUT, .. = ", which may be absent, and the operator, into out and op. */
static mpl_status take_outputs(reader *r, token *op)
{
    char text[48];
    size_t begin;

    for (;;) {
        *op = r->next;
        MPL_PASS(take_operand(r, "a value", &begin));
        if (r->out.n == 0 && op->kind == WORD &&
            (mpl_text_is_mark(r, '(') || r->next.kind == WORD || r->next.kind == STRING))
            return MPL_OK;
        APPEND(r, r->out, begin);
        if (!mpl_text_is_mark(r, ','))
            break;
        MPL_PASS(mpl_text_advance(r));
    }
    MPL_PASS(mpl_text_expect_mark(r, '=', "between the outputs and their operator"));
    *op = r->next;
    if (op->kind != WORD)
        return mpl_text_refuse(r, "%s where an operator should stand", mpl_text_show(op, text));
    return mpl_text_advance(r);
}

/* Reads "OUT, .. = OPERATOR BLOCK, .. (IN, ..)" into out, op, bodies and in. */
static mpl_status take_call(reader *r, token *op)
{
    size_t begin;

    MPL_PASS(take_outputs(r, op));
    if (r->next.kind == WORD || r->next.kind == STRING)
        MPL_PASS(take_bodies(r));
    MPL_PASS(mpl_text_expect_mark(r, '(', "to open the inputs"));
    while (!mpl_text_is_mark(r, ')')) {
        if (r->in.n > 0)
            MPL_PASS(mpl_text_expect_mark(r, ',', "between inputs"));
        MPL_PASS(take_operand(r, "an input", &begin));
        APPEND(r, r->in, begin);
    }
    return mpl_text_advance(r);
}

static mpl_status take_number(reader *r, mpl_attr_kind kind)
{
    char text[48];
    int64_t whole;
    double number;

    if (kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS) {
        MPL_PASS(mpl_text_take_int(r, "the attribute", &whole));
        APPEND(r, r->ints, whole);
        return MPL_OK;
    }
    if (r->next.kind != WORD || !mpl_text_parse(MPL_TYPE_f64, r->next.start, r->next.n, &number, 0))
        return mpl_text_refuse(r, "%s where the attribute should be a number",
                               mpl_text_show(&r->next, text));
    APPEND(r, r->floats, number);
    return mpl_text_advance(r);
}

/* Reads "[NUMBER, ..]". */
static mpl_status take_list(reader *r, mpl_attr_kind kind)
{
    bool first = true;

    MPL_PASS(mpl_text_expect_mark(r, '[', "to open the list"));
    while (!mpl_text_is_mark(r, ']')) {
        if (!first)
            MPL_PASS(mpl_text_expect_mark(r, ',', "between items of a list"));
        MPL_PASS(take_number(r, kind));
        first = false;
    }
    return mpl_text_advance(r);
}

/* Reads "KEY=VALUE" into attr and the list of its kind. */
static mpl_status take_attr(reader *r)
{
    attr_item item = {0};
    mpl_attr_kind kind;
    token key = r->next;
    char text[48], word[32] = "";

    if (key.kind == WORD && key.n < sizeof word)
        memcpy(word, key.start, key.n);
    if (!mpl_attr_find(word, &item.key))
        return mpl_text_refuse(r, "%s is no attribute; those there are stand in ir/attrs.def",
                               mpl_text_show(&key, text));
    for (size_t i = 0; i < r->attr.n; i++)
        if (r->attr.item[i].key == item.key)
            return mpl_text_refuse(r, "attribute %s is given twice", mpl_text_show(&key, text));
    kind = mpl_attr_kind_of(item.key);
    MPL_PASS(mpl_text_advance(r));
    MPL_PASS(mpl_text_expect_mark(r, '=', "behind an attribute"));
    if (kind == MPL_ATTR_TEXT) {
        if (r->next.kind != WORD && r->next.kind != STRING)
            return mpl_text_refuse(r, "%s where the attribute should be a word or a string",
                                   mpl_text_show(&r->next, text));
        MPL_PASS(mpl_text_keep(r, &r->next, &item.begin, &item.n));
        MPL_PASS(mpl_text_advance(r));
    } else {
        bool whole = kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS;

        item.begin = whole ? r->ints.n : r->floats.n;
        MPL_PASS(kind == MPL_ATTR_INTS || kind == MPL_ATTR_FLOATS ? take_list(r, kind)
                                                                  : take_number(r, kind));
        item.n = (whole ? r->ints.n : r->floats.n) - item.begin;
    }
    APPEND(r, r->attr, item);
    return MPL_OK;
}

static mpl_status keep_param(reader *r, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        APPEND(r, r->params, text[i]);
    }
    return MPL_OK;
}

/* Reads "KEY=VALUE" of an operator of the user's into params, without blanks. */
static mpl_status take_param(reader *r)
{
    bool list;

    if (r->params.n > 0)
        MPL_PASS(keep_param(r, " ", 1));
    MPL_PASS(keep_param(r, r->next.start, r->next.n));
    MPL_PASS(mpl_text_advance(r));
    MPL_PASS(mpl_text_expect_mark(r, '=', "behind an attribute"));
    MPL_PASS(keep_param(r, "=", 1));
    list = mpl_text_is_mark(r, '[');
    for (;;) {
        bool quoted = r->next.kind == STRING, last = !list || mpl_text_is_mark(r, ']');
        char text[48];

        if (r->next.kind == END || (r->next.kind == MARK && !list))
            return mpl_text_refuse(r, "%s where the value of an attribute should stand",
                                   mpl_text_show(&r->next, text));
        MPL_PASS(keep_param(r, r->next.start - quoted, r->next.n + 2 * (size_t)quoted));
        MPL_PASS(mpl_text_advance(r));
        if (last)
            return MPL_OK;
    }
}

/* Makes the operator's name and params attributes. */
static mpl_status keep_user(reader *r, const token *op)
{
    attr_item item = {.key = MPL_ATTR_opcode};

    MPL_PASS(mpl_text_keep(r, op, &item.begin, &item.n));
    APPEND(r, r->attr, item);
    if (r->params.n == 0)
        return MPL_OK;
    item.key = MPL_ATTR_params;
    MPL_PASS(mpl_text_keep(r, &(token){WORD, r->params.item, r->params.n}, &item.begin, &item.n));
    APPEND(r, r->attr, item);
    return MPL_OK;
}

/* ---- why no line above makes a name ---- */

/* Reads the names that this line makes into out, those that it needs into in. */
static mpl_status take_maker(reader *r)
{
    token op;
    size_t name;

    if (!mpl_text_is_word(r, "input") && !mpl_text_is_word(r, "weight") &&
        !mpl_text_is_word(r, "bound") && !mpl_text_is_word(r, "param"))
        return take_call(r, &op);
    MPL_PASS(mpl_text_advance(r));
    MPL_PASS(mpl_text_take_name(r, "a value", &name));
    APPEND(r, r->out, name);
    return MPL_OK;
}

/* Reads up to the next line that makes values; false: end of text. Skips unreadable lines. Keeps
 * names in text. */
static mpl_status next_maker(reader *r, bool *more)
{
    mpl_status st;

    do {
        r->out.n = r->in.n = 0;
        st = mpl_text_next_line(r, more);
        if (st == MPL_OK && *more)
            st = take_maker(r);
    } while (st == MPL_EINPUT);
    return st;
}

static bool needs_one_of(const reader *r, const mpl_graph *names)
{
    for (size_t i = 0; i < r->in.n; i++)
        if (r->in.item[i] != LEFT_OUT &&
            mpl_graph_find(names, r->text.item + r->in.item[i]) != MPL_NONE)
            return true;
    return false;
}

static mpl_status add_outputs(const reader *r, mpl_graph *names)
{
    const mpl_shape scalar = {0};
    mpl_value v;

    for (size_t i = 0; i < r->out.n; i++) {
        const char *name = r->text.item + r->out.item[i];

        if (r->out.item[i] != LEFT_OUT && mpl_graph_find(names, name) == MPL_NONE)
            MPL_PASS(
                mpl_graph_add_value(r->ctx, names, name, MPL_WEIGHT, MPL_TYPE_u8, &scalar, &v));
    }
    return MPL_OK;
}

static bool makes(const reader *r, size_t name)
{
    for (size_t i = 0; i < r->out.n; i++)
        if (r->out.item[i] != LEFT_OUT &&
            strcmp(r->text.item + r->out.item[i], r->text.item + name) == 0)
            return true;
    return false;
}

/* Searches from the line just read for the one that makes `name`. *made: that line, 0: none.
 * *cycle: it depends, through the lines between, on an output of the line just read. */
static mpl_status find_below(reader *r, size_t name, uint32_t *made, bool *cycle)
{
    mpl_status st = MPL_OK;
    mpl_graph *needing = NULL; /* a set of names: what depends on the line just read */
    bool more = true, depends = true;

    *made = 0;
    *cycle = false;
    MPL_TRY(mpl_graph_new(r->ctx, "", &needing));
    while (more && !makes(r, name)) {
        if (depends)
            MPL_TRY(add_outputs(r, needing));
        MPL_TRY(next_maker(r, &more));
        depends = needs_one_of(r, needing);
    }
    if (more) {
        *made = r->line;
        *cycle = depends;
    }
out:
    mpl_graph_free(r->ctx, needing);
    return st;
}

/* Reports an input that no line above makes. */
static mpl_status refuse_missing(reader *r, size_t name)
{
    uint32_t line = r->line, made;
    bool cycle;
    char text[48];

    MPL_PASS(find_below(r, name, &made, &cycle));
    r->line = line;
    mpl_text_show(&(token){WORD, r->text.item + name, strlen(r->text.item + name)}, text);
    if (made == line)
        return mpl_text_refuse(r, "%s needs itself: a cycle", text);
    if (cycle)
        return mpl_text_refuse(
            r, "%s is made on line %u, which needs what this line makes: a cycle", text, made);
    if (made != 0)
        return mpl_text_refuse(
            r, "%s is made on line %u; a line may only use what lines above it make", text, made);
    return mpl_text_refuse(r, "%s is made by no line", text);
}

/* ---- operations ---- */

/* Resolves names to values and pointers, after the arrays stop growing. */
static mpl_status resolve(reader *r)
{
    for (size_t i = 0; i < r->in.n; i++) {
        mpl_value v = MPL_NONE;

        if (r->in.item[i] != LEFT_OUT &&
            (v = mpl_graph_find(r->g, r->text.item + r->in.item[i])) == MPL_NONE)
            return refuse_missing(r, r->in.item[i]);
        APPEND(r, r->in_value, v);
    }
    for (size_t i = 0; i < r->bodies.n; i++) {
        uint32_t b = mpl_graph_find_block(r->g, r->text.item + r->bodies.item[i]);

        if (b == MPL_NONE)
            return mpl_text_refuse(r, "no block '%.100s' stands above",
                                   r->text.item + r->bodies.item[i]);
        APPEND(r, r->body, b);
    }
    for (size_t i = 0; i < r->out.n; i++) {
        APPEND(r, r->out_name, r->out.item[i] == LEFT_OUT ? NULL : r->text.item + r->out.item[i]);
    }
    for (size_t i = 0; i < r->attr.n; i++) {
        const attr_item *item = &r->attr.item[i];
        mpl_attr_kind kind = mpl_attr_kind_of(item->key);
        mpl_attr attr = {.key = item->key, .n = (uint32_t)item->n};

        if (kind == MPL_ATTR_TEXT)
            attr.text = r->text.item + item->begin;
        else if (kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS)
            attr.ints = r->ints.item + item->begin;
        else
            attr.floats = r->floats.item + item->begin;
        APPEND(r, r->attr_value, attr);
    }
    return mpl_reserve(r->ctx, r->out_value.item, r->out_value.cap, r->out.n);
}

/* Reads ": TYPE [D,..], .." into types. */
static mpl_status take_types(reader *r)
{
    MPL_PASS(mpl_text_expect_mark(r, ':', "before the types"));
    for (;;) {
        type_item item = {.given = !mpl_text_is_word(r, "_")};

        MPL_PASS(item.given ? mpl_text_take_type(r, &item.type, &item.shape) : mpl_text_advance(r));
        APPEND(r, r->types, item);
        if (!mpl_text_is_mark(r, ','))
            break;
        MPL_PASS(mpl_text_advance(r));
    }
    return MPL_OK;
}

/* Checks the types given in the line against the inferred ones. */
static mpl_status check_types(reader *r)
{
    char dims[200];

    if (r->types.n > 0 && r->types.n != r->out.n)
        return mpl_text_refuse(r, "%zu types for %zu outputs", r->types.n, r->out.n);
    for (size_t i = 0; i < r->types.n; i++) {
        const type_item *item = &r->types.item[i];
        mpl_value v = r->out_value.item[i];

        if (v == MPL_NONE && item->given)
            return mpl_text_refuse(r, "output %zu is left out and has no type; write _", i);
        if (v == MPL_NONE || !item->given)
            continue;
        if (item->type != r->g->value_type[v] ||
            !mpl_shape_equal(&item->shape, &r->g->value_shape[v]))
            return mpl_text_refuse(r, "the type of '%.60s' is %s %s", r->g->value_name[v],
                                   mpl_type_name((mpl_type)r->g->value_type[v]),
                                   mpl_shape_text(&r->g->value_shape[v], dims));
    }
    return MPL_OK;
}

static mpl_status read_yield(reader *r)
{
    size_t begin;

    MPL_PASS(mpl_text_advance(r));
    while (r->next.kind != END) {
        if (r->in.n > 0)
            MPL_PASS(mpl_text_expect_mark(r, ',', "between results"));
        MPL_PASS(take_operand(r, "a result", &begin));
        APPEND(r, r->in, begin);
    }
    MPL_PASS(resolve(r));
    return located(r, mpl_graph_close_block(r->ctx, r->g, (uint32_t)r->in.n, r->in_value.item));
}

static mpl_status read_op(reader *r)
{
    token op;
    mpl_op_kind kind;
    size_t name, length;
    char text[48], word[MPL_USER_NAME] = "";
    bool user;

    MPL_PASS(take_call(r, &op));
    if (op.n < sizeof word)
        memcpy(word, op.start, op.n);
    user = mpl_user_find(word) != NULL;
    if (!mpl_op_find(word, &kind) && !user)
        return mpl_text_refuse(
            r,
            "%s is no operator; those there are stand in ir/ops.def, and yours come "
            "by --operators so:FILE",
            mpl_text_show(&op, text));
    kind = user ? MPL_OP_user : kind;
    while (r->next.kind == WORD)
        MPL_PASS(user ? take_param(r) : take_attr(r));
    if (user)
        MPL_PASS(keep_user(r, &op));
    if (mpl_text_is_mark(r, ':'))
        MPL_PASS(take_types(r));
    if (r->out.n > 0)
        name = r->out.item[0];
    else
        MPL_PASS(mpl_text_keep(r, &op, &name, &length));
    if (mpl_text_is_mark(r, '@')) {
        MPL_PASS(mpl_text_advance(r));
        MPL_PASS(mpl_text_take_name(r, "the operation", &name));
    }
    MPL_PASS(mpl_text_expect_end(r));
    MPL_PASS(resolve(r));
    MPL_PASS(
        located(r, mpl_graph_add_control(r->ctx, r->g, kind, r->text.item + name, (uint32_t)r->in.n,
                                         r->in_value.item, (uint32_t)r->attr.n, r->attr_value.item,
                                         (uint32_t)r->body.n, r->body.item, (uint32_t)r->out.n,
                                         r->out_name.item, r->out_value.item)));
    return check_types(r);
}

/* ---- the file ---- */

static mpl_status read_header(reader *r)
{
    bool more, program;
    size_t name;

    MPL_PASS(mpl_text_advance(r));
    if (r->next.kind == END)
        MPL_PASS(mpl_text_next_line(r, &more));
    program = mpl_text_is_word(r, "program");
    if (!mpl_text_is_word(r, "graph") && !program)
        return mpl_text_refuse(r, "the first line is not 'graph NAME' or 'program NAME'");
    MPL_PASS(mpl_text_advance(r));
    MPL_PASS(mpl_text_take_name(r, "the graph", &name));
    MPL_PASS(mpl_text_expect_end(r));
    MPL_PASS(mpl_graph_new(r->ctx, r->text.item + name, &r->g));
    r->g->program = program;
    return MPL_OK;
}

static mpl_status read_line(reader *r)
{
    char text[48];

    r->text.n = 1;
    r->params.n = 0;
    r->out.n = r->in.n = r->attr.n = r->ints.n = r->floats.n = r->raw.n = r->types.n = 0;
    r->in_value.n = r->out_name.n = r->out_value.n = r->attr_value.n = r->bodies.n = r->body.n = 0;
    if (mpl_text_is_word(r, "input") || mpl_text_is_word(r, "weight") ||
        mpl_text_is_word(r, "bound"))
        return read_declaration(r);
    if (mpl_text_is_word(r, "output"))
        return read_output(r);
    if (mpl_text_is_word(r, "block"))
        return read_block(r);
    if (mpl_text_is_word(r, "param"))
        return read_param(r);
    if (mpl_text_is_word(r, "yield"))
        return read_yield(r);
    if (mpl_text_is_word(r, "graph") || mpl_text_is_word(r, "program"))
        return mpl_text_refuse(r, "a second '%.*s' line; one file holds one graph", (int)r->next.n,
                               r->next.start);
    if (r->next.kind == WORD && mpl_text_reserved(r->next.start, r->next.n) &&
        !mpl_text_is_word(r, "_"))
        return mpl_text_refuse(r, "%s is reserved; a value of that name stands in quotes",
                               mpl_text_show(&r->next, text));
    return read_op(r);
}

static void free_lists(reader *r)
{
    void *const lists[] = {
        r->text.item,      r->out.item,        r->in.item,     r->attr.item,     r->ints.item,
        r->floats.item,    r->types.item,      r->raw.item,    r->in_value.item, r->out_name.item,
        r->out_value.item, r->attr_value.item, r->bodies.item, r->body.item,     r->params.item};

    MPL_FREE_ALL(r->ctx, lists);
}

mpl_status mpl_text_read_memory(mpl_ctx *ctx, const char *path, const char *data, size_t size,
                                mpl_graph **out)
{
    mpl_status st = MPL_OK;
    reader here = {.ctx = ctx, .path = path, .at = data, .end = data + size, .line = 1}, *r = &here;
    bool more;

    APPEND(r, r->text, '\0');
    MPL_TRY(mpl_reserve(ctx, r->ints.item, r->ints.cap, 1)); /* an address even if empty */
    MPL_TRY(mpl_reserve(ctx, r->floats.item, r->floats.cap, 1));
    MPL_TRY(read_header(r));
    for (;;) {
        MPL_TRY(mpl_text_next_line(r, &more));
        if (!more)
            break;
        MPL_TRY(read_line(r));
    }
    MPL_TRY(located(r, mpl_graph_finish(ctx, r->g)));
    *out = r->g, r->g = NULL;
out:
    mpl_graph_free(ctx, r->g);
    free_lists(r);
    return st;
}

mpl_status mpl_text_read(mpl_ctx *ctx, const char *path, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    char *text = NULL;
    size_t size;

    MPL_TRY(mpl_file_read(ctx, path, &text, &size));
    MPL_TRY(mpl_text_read_memory(ctx, path, text, size, out));
out:
    mpl_free(ctx, text);
    return st;
}
