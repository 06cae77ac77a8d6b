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
static mpl_status located(reader *in, mpl_status st)
{
    return st != MPL_EINPUT ? st : mpl_text_refuse(in, "%s", in->ctx->message);
}

/* Reads an input, weight or bound; the next token is this keyword. */
static mpl_status read_declaration(reader *in)
{
    bool bound = mpl_text_is_word(in, "bound"), input = mpl_text_is_word(in, "input"), constant,
         splat = false;
    mpl_type type;
    mpl_shape shape;
    mpl_value v;
    size_t name;

    MPL_PASS(mpl_text_advance(in));
    MPL_PASS(mpl_text_take_name(in, "a value", &name));
    MPL_PASS(mpl_text_take_type(in, &type, &shape));
    constant = mpl_text_is_mark(in, '=');
    if (constant) {
        MPL_PASS(mpl_text_advance(in));
        MPL_PASS(mpl_text_take_constant(in, type, &shape, &splat));
    }
    MPL_PASS(mpl_text_expect_end(in));
    if (input && constant)
        return mpl_text_refuse(in, "an input has no data; write 'weight' for a constant");
    if (bound && (!constant || splat))
        return mpl_text_refuse(in,
                               "a bound input needs all its elements: '= data ..' or '= bytes ..'");
    if (constant && !bound) {
        MPL_PASS(located(in, mpl_graph_add_const(in->ctx, in->g, in->text.item + name, type, &shape,
                                                 in->raw.item, splat, &v)));
        return MPL_OK;
    }
    MPL_PASS(located(in, mpl_graph_add_value(in->ctx, in->g, in->text.item + name,
                                             input || bound ? MPL_INPUT : MPL_WEIGHT, type, &shape,
                                             &v)));
    if (bound)
        MPL_PASS(mpl_graph_bind_input(in->ctx, in->g, v, in->raw.item));
    return MPL_OK;
}

static mpl_status read_block(reader *in)
{
    size_t name;
    uint32_t block;

    MPL_PASS(mpl_text_advance(in));
    MPL_PASS(mpl_text_take_name(in, "a block", &name));
    MPL_PASS(mpl_text_expect_end(in));
    return located(in, mpl_graph_open_block(in->ctx, in->g, in->text.item + name, &block));
}

static mpl_status read_param(reader *in)
{
    mpl_type type;
    mpl_shape shape;
    mpl_value v;
    size_t name;

    MPL_PASS(mpl_text_advance(in));
    MPL_PASS(mpl_text_take_name(in, "a parameter", &name));
    MPL_PASS(mpl_text_take_type(in, &type, &shape));
    MPL_PASS(mpl_text_expect_end(in));
    return located(in, mpl_graph_add_param(in->ctx, in->g, in->text.item + name, type, &shape, &v));
}

static mpl_status read_output(reader *in)
{
    mpl_value v;
    token name;
    char text[48];
    size_t begin;

    MPL_PASS(mpl_text_advance(in));
    name = in->next;
    MPL_PASS(mpl_text_take_name(in, "an output", &begin));
    MPL_PASS(mpl_text_expect_end(in));
    v = mpl_graph_find(in->g, in->text.item + begin);
    if (v == MPL_NONE)
        return mpl_text_refuse(in, "output %s is made by no line above",
                               mpl_text_show(&name, text));
    return located(in, mpl_graph_add_output(in->ctx, in->g, v));
}

/* One operand: a name, or `_`. */
static mpl_status take_operand(reader *in, const char *what, size_t *begin)
{
    if (!mpl_text_is_word(in, "_"))
        return mpl_text_take_name(in, what, begin);
    *begin = LEFT_OUT;
    return mpl_text_advance(in);
}

/* Reads "NAME, .." after an operator that owns blocks into bodies. */
static mpl_status take_bodies(reader *in)
{
    size_t begin;

    for (;;) {
        MPL_PASS(mpl_text_take_name(in, "a block", &begin));
        APPEND(in, in->bodies, begin);
        if (!mpl_text_is_mark(in, ','))
            break;
        MPL_PASS(mpl_text_advance(in));
    }
    return MPL_OK;
}

/* Reads "OUT, .. = ", which may be absent, and the operator, into out and op. */
static mpl_status take_outputs(reader *in, token *op)
{
    char text[48];
    size_t begin;

    for (;;) {
        *op = in->next;
        MPL_PASS(take_operand(in, "a value", &begin));
        if (in->out.n == 0 && op->kind == WORD &&
            (mpl_text_is_mark(in, '(') || in->next.kind == WORD || in->next.kind == STRING))
            return MPL_OK;
        APPEND(in, in->out, begin);
        if (!mpl_text_is_mark(in, ','))
            break;
        MPL_PASS(mpl_text_advance(in));
    }
    MPL_PASS(mpl_text_expect_mark(in, '=', "between the outputs and their operator"));
    *op = in->next;
    if (op->kind != WORD)
        return mpl_text_refuse(in, "%s where an operator should stand", mpl_text_show(op, text));
    return mpl_text_advance(in);
}

/* Reads "OUT, .. = OPERATOR BLOCK, .. (IN, ..)" into out, op, bodies and in. */
static mpl_status take_call(reader *in, token *op)
{
    size_t begin;

    MPL_PASS(take_outputs(in, op));
    if (in->next.kind == WORD || in->next.kind == STRING)
        MPL_PASS(take_bodies(in));
    MPL_PASS(mpl_text_expect_mark(in, '(', "to open the inputs"));
    while (!mpl_text_is_mark(in, ')')) {
        if (in->in.n > 0)
            MPL_PASS(mpl_text_expect_mark(in, ',', "between inputs"));
        MPL_PASS(take_operand(in, "an input", &begin));
        APPEND(in, in->in, begin);
    }
    return mpl_text_advance(in);
}

static mpl_status take_number(reader *in, mpl_attr_kind kind)
{
    char text[48];
    int64_t whole;
    double number;

    if (kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS) {
        MPL_PASS(mpl_text_take_int(in, "the attribute", &whole));
        APPEND(in, in->ints, whole);
        return MPL_OK;
    }
    if (in->next.kind != WORD ||
        !mpl_text_parse(MPL_TYPE_f64, in->next.start, in->next.n, &number, 0))
        return mpl_text_refuse(in, "%s where the attribute should be a number",
                               mpl_text_show(&in->next, text));
    APPEND(in, in->floats, number);
    return mpl_text_advance(in);
}

/* Reads "[NUMBER, ..]". */
static mpl_status take_list(reader *in, mpl_attr_kind kind)
{
    bool first = true;

    MPL_PASS(mpl_text_expect_mark(in, '[', "to open the list"));
    while (!mpl_text_is_mark(in, ']')) {
        if (!first)
            MPL_PASS(mpl_text_expect_mark(in, ',', "between items of a list"));
        MPL_PASS(take_number(in, kind));
        first = false;
    }
    return mpl_text_advance(in);
}

/* Reads "KEY=VALUE" into attr and the list of its kind. */
static mpl_status take_attr(reader *in)
{
    attr_item item = {0};
    mpl_attr_kind kind;
    token key = in->next;
    char text[48], word[32] = "";

    if (key.kind == WORD && key.n < sizeof word)
        memcpy(word, key.start, key.n);
    if (!mpl_attr_find(word, &item.key))
        return mpl_text_refuse(in, "%s is no attribute; those there are stand in ir/attrs.def",
                               mpl_text_show(&key, text));
    for (size_t i = 0; i < in->attr.n; i++)
        if (in->attr.item[i].key == item.key)
            return mpl_text_refuse(in, "attribute %s is given twice", mpl_text_show(&key, text));
    kind = mpl_attr_kind_of(item.key);
    MPL_PASS(mpl_text_advance(in));
    MPL_PASS(mpl_text_expect_mark(in, '=', "behind an attribute"));
    if (kind == MPL_ATTR_TEXT) {
        if (in->next.kind != WORD && in->next.kind != STRING)
            return mpl_text_refuse(in, "%s where the attribute should be a word or a string",
                                   mpl_text_show(&in->next, text));
        MPL_PASS(mpl_text_keep(in, &in->next, &item.begin, &item.n));
        MPL_PASS(mpl_text_advance(in));
    } else {
        bool whole = kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS;

        item.begin = whole ? in->ints.n : in->floats.n;
        MPL_PASS(kind == MPL_ATTR_INTS || kind == MPL_ATTR_FLOATS ? take_list(in, kind)
                                                                  : take_number(in, kind));
        item.n = (whole ? in->ints.n : in->floats.n) - item.begin;
    }
    APPEND(in, in->attr, item);
    return MPL_OK;
}

static mpl_status keep_param(reader *in, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        APPEND(in, in->params, text[i]);
    }
    return MPL_OK;
}

/* Reads "KEY=VALUE" of an operator of the user's into params, without blanks. */
static mpl_status take_param(reader *in)
{
    bool list;

    if (in->params.n > 0)
        MPL_PASS(keep_param(in, " ", 1));
    MPL_PASS(keep_param(in, in->next.start, in->next.n));
    MPL_PASS(mpl_text_advance(in));
    MPL_PASS(mpl_text_expect_mark(in, '=', "behind an attribute"));
    MPL_PASS(keep_param(in, "=", 1));
    list = mpl_text_is_mark(in, '[');
    for (;;) {
        bool quoted = in->next.kind == STRING, last = !list || mpl_text_is_mark(in, ']');
        char text[48];

        if (in->next.kind == END || (in->next.kind == MARK && !list))
            return mpl_text_refuse(in, "%s where the value of an attribute should stand",
                                   mpl_text_show(&in->next, text));
        MPL_PASS(keep_param(in, in->next.start - quoted, in->next.n + 2 * (size_t)quoted));
        MPL_PASS(mpl_text_advance(in));
        if (last)
            return MPL_OK;
    }
}

/* Makes the operator's name and params attributes. */
static mpl_status keep_user(reader *in, const token *op)
{
    attr_item item = {.key = MPL_ATTR_opcode};

    MPL_PASS(mpl_text_keep(in, op, &item.begin, &item.n));
    APPEND(in, in->attr, item);
    if (in->params.n == 0)
        return MPL_OK;
    item.key = MPL_ATTR_params;
    MPL_PASS(
        mpl_text_keep(in, &(token){WORD, in->params.item, in->params.n}, &item.begin, &item.n));
    APPEND(in, in->attr, item);
    return MPL_OK;
}

/* ---- why no line above makes a name ---- */

/* Reads the names that this line makes into out, those that it needs into in. */
static mpl_status take_maker(reader *in)
{
    token op;
    size_t name;

    if (!mpl_text_is_word(in, "input") && !mpl_text_is_word(in, "weight") &&
        !mpl_text_is_word(in, "bound") && !mpl_text_is_word(in, "param"))
        return take_call(in, &op);
    MPL_PASS(mpl_text_advance(in));
    MPL_PASS(mpl_text_take_name(in, "a value", &name));
    APPEND(in, in->out, name);
    return MPL_OK;
}

/* Reads up to the next line that makes values; false: end of text. Skips unreadable lines. Keeps
 * names in text. */
static mpl_status next_maker(reader *in, bool *more)
{
    mpl_status st;

    do {
        in->out.n = in->in.n = 0;
        st = mpl_text_next_line(in, more);
        if (st == MPL_OK && *more)
            st = take_maker(in);
    } while (st == MPL_EINPUT);
    return st;
}

static bool needs_one_of(const reader *in, const mpl_graph *names)
{
    for (size_t i = 0; i < in->in.n; i++)
        if (in->in.item[i] != LEFT_OUT &&
            mpl_graph_find(names, in->text.item + in->in.item[i]) != MPL_NONE)
            return true;
    return false;
}

static mpl_status add_outputs(const reader *in, mpl_graph *names)
{
    const mpl_shape scalar = {0};
    mpl_value v;

    for (size_t i = 0; i < in->out.n; i++) {
        const char *name = in->text.item + in->out.item[i];

        if (in->out.item[i] != LEFT_OUT && mpl_graph_find(names, name) == MPL_NONE)
            MPL_PASS(
                mpl_graph_add_value(in->ctx, names, name, MPL_WEIGHT, MPL_TYPE_u8, &scalar, &v));
    }
    return MPL_OK;
}

static bool makes(const reader *in, size_t name)
{
    for (size_t i = 0; i < in->out.n; i++)
        if (in->out.item[i] != LEFT_OUT &&
            strcmp(in->text.item + in->out.item[i], in->text.item + name) == 0)
            return true;
    return false;
}

/* Searches from the line just read for the one that makes `name`. *made: that line, 0: none.
 * *cycle: it depends, through the lines between, on an output of the line just read. */
static mpl_status find_below(reader *in, size_t name, uint32_t *made, bool *cycle)
{
    mpl_status st = MPL_OK;
    mpl_graph *needing = NULL; /* a set of names: what depends on the line just read */
    bool more = true, depends = true;

    *made = 0;
    *cycle = false;
    MPL_TRY(mpl_graph_new(in->ctx, "", &needing));
    while (more && !makes(in, name)) {
        if (depends)
            MPL_TRY(add_outputs(in, needing));
        MPL_TRY(next_maker(in, &more));
        depends = needs_one_of(in, needing);
    }
    if (more) {
        *made = in->line;
        *cycle = depends;
    }
out:
    mpl_graph_free(in->ctx, needing);
    return st;
}

/* Reports an input that no line above makes. */
static mpl_status refuse_missing(reader *in, size_t name)
{
    uint32_t line = in->line, made;
    bool cycle;
    char text[48];

    MPL_PASS(find_below(in, name, &made, &cycle));
    in->line = line;
    mpl_text_show(&(token){WORD, in->text.item + name, strlen(in->text.item + name)}, text);
    if (made == line)
        return mpl_text_refuse(in, "%s needs itself: a cycle", text);
    if (cycle)
        return mpl_text_refuse(
            in, "%s is made on line %u, which needs what this line makes: a cycle", text, made);
    if (made != 0)
        return mpl_text_refuse(
            in, "%s is made on line %u; a line may only use what lines above it make", text, made);
    return mpl_text_refuse(in, "%s is made by no line", text);
}

/* ---- operations ---- */

/* Resolves names to values and pointers, after the arrays stop growing. */
static mpl_status resolve(reader *in)
{
    for (size_t i = 0; i < in->in.n; i++) {
        mpl_value v = MPL_NONE;

        if (in->in.item[i] != LEFT_OUT &&
            (v = mpl_graph_find(in->g, in->text.item + in->in.item[i])) == MPL_NONE)
            return refuse_missing(in, in->in.item[i]);
        APPEND(in, in->in_value, v);
    }
    for (size_t i = 0; i < in->bodies.n; i++) {
        uint32_t b = mpl_graph_find_block(in->g, in->text.item + in->bodies.item[i]);

        if (b == MPL_NONE)
            return mpl_text_refuse(in, "no block '%.100s' stands above",
                                   in->text.item + in->bodies.item[i]);
        APPEND(in, in->body, b);
    }
    for (size_t i = 0; i < in->out.n; i++) {
        APPEND(in, in->out_name,
               in->out.item[i] == LEFT_OUT ? NULL : in->text.item + in->out.item[i]);
    }
    for (size_t i = 0; i < in->attr.n; i++) {
        const attr_item *item = &in->attr.item[i];
        mpl_attr_kind kind = mpl_attr_kind_of(item->key);
        mpl_attr attr = {.key = item->key, .n = (uint32_t)item->n};

        if (kind == MPL_ATTR_TEXT)
            attr.text = in->text.item + item->begin;
        else if (kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS)
            attr.ints = in->ints.item + item->begin;
        else
            attr.floats = in->floats.item + item->begin;
        APPEND(in, in->attr_value, attr);
    }
    return mpl_reserve(in->ctx, in->out_value.item, in->out_value.cap, in->out.n);
}

/* Reads ": TYPE [D,..], .." into types. */
static mpl_status take_types(reader *in)
{
    MPL_PASS(mpl_text_expect_mark(in, ':', "before the types"));
    for (;;) {
        type_item item = {.given = !mpl_text_is_word(in, "_")};

        MPL_PASS(item.given ? mpl_text_take_type(in, &item.type, &item.shape)
                            : mpl_text_advance(in));
        APPEND(in, in->types, item);
        if (!mpl_text_is_mark(in, ','))
            break;
        MPL_PASS(mpl_text_advance(in));
    }
    return MPL_OK;
}

/* Checks the types given in the line against the inferred ones. */
static mpl_status check_types(reader *in)
{
    char dims[200];

    if (in->types.n > 0 && in->types.n != in->out.n)
        return mpl_text_refuse(in, "%zu types for %zu outputs", in->types.n, in->out.n);
    for (size_t i = 0; i < in->types.n; i++) {
        const type_item *item = &in->types.item[i];
        mpl_value v = in->out_value.item[i];

        if (v == MPL_NONE && item->given)
            return mpl_text_refuse(in, "output %zu is left out and has no type; write _", i);
        if (v == MPL_NONE || !item->given)
            continue;
        if (item->type != in->g->value_type[v] ||
            !mpl_shape_equal(&item->shape, &in->g->value_shape[v]))
            return mpl_text_refuse(in, "the type of '%.60s' is %s %s", in->g->value_name[v],
                                   mpl_type_name((mpl_type)in->g->value_type[v]),
                                   mpl_shape_text(&in->g->value_shape[v], dims));
    }
    return MPL_OK;
}

static mpl_status read_yield(reader *in)
{
    size_t begin;

    MPL_PASS(mpl_text_advance(in));
    while (in->next.kind != END) {
        if (in->in.n > 0)
            MPL_PASS(mpl_text_expect_mark(in, ',', "between results"));
        MPL_PASS(take_operand(in, "a result", &begin));
        APPEND(in, in->in, begin);
    }
    MPL_PASS(resolve(in));
    return located(in,
                   mpl_graph_close_block(in->ctx, in->g, (uint32_t)in->in.n, in->in_value.item));
}

static mpl_status read_op(reader *in)
{
    token op;
    mpl_op_kind kind;
    size_t name, length;
    char text[48], word[MPL_USER_NAME] = "";
    bool user;

    MPL_PASS(take_call(in, &op));
    if (op.n < sizeof word)
        memcpy(word, op.start, op.n);
    user = mpl_user_find(word) != NULL;
    if (!mpl_op_find(word, &kind) && !user)
        return mpl_text_refuse(
            in,
            "%s is no operator; those there are stand in ir/ops.def, and yours come "
            "by --operators so:FILE",
            mpl_text_show(&op, text));
    kind = user ? MPL_OP_user : kind;
    while (in->next.kind == WORD)
        MPL_PASS(user ? take_param(in) : take_attr(in));
    if (user)
        MPL_PASS(keep_user(in, &op));
    if (mpl_text_is_mark(in, ':'))
        MPL_PASS(take_types(in));
    if (in->out.n > 0)
        name = in->out.item[0];
    else
        MPL_PASS(mpl_text_keep(in, &op, &name, &length));
    if (mpl_text_is_mark(in, '@')) {
        MPL_PASS(mpl_text_advance(in));
        MPL_PASS(mpl_text_take_name(in, "the operation", &name));
    }
    MPL_PASS(mpl_text_expect_end(in));
    MPL_PASS(resolve(in));
    MPL_PASS(located(
        in, mpl_graph_add_control(in->ctx, in->g, kind, in->text.item + name, (uint32_t)in->in.n,
                                  in->in_value.item, (uint32_t)in->attr.n, in->attr_value.item,
                                  (uint32_t)in->body.n, in->body.item, (uint32_t)in->out.n,
                                  in->out_name.item, in->out_value.item)));
    return check_types(in);
}

/* ---- the file ---- */

static mpl_status read_header(reader *in)
{
    bool more, program;
    size_t name;

    MPL_PASS(mpl_text_advance(in));
    if (in->next.kind == END)
        MPL_PASS(mpl_text_next_line(in, &more));
    program = mpl_text_is_word(in, "program");
    if (!mpl_text_is_word(in, "graph") && !program)
        return mpl_text_refuse(in, "the first line is not 'graph NAME' or 'program NAME'");
    MPL_PASS(mpl_text_advance(in));
    MPL_PASS(mpl_text_take_name(in, "the graph", &name));
    MPL_PASS(mpl_text_expect_end(in));
    MPL_PASS(mpl_graph_new(in->ctx, in->text.item + name, &in->g));
    in->g->program = program;
    return MPL_OK;
}

static mpl_status read_line(reader *in)
{
    char text[48];

    in->text.n = 1;
    in->params.n = 0;
    in->out.n = in->in.n = in->attr.n = in->ints.n = in->floats.n = in->raw.n = in->types.n = 0;
    in->in_value.n = in->out_name.n = in->out_value.n = in->attr_value.n = in->bodies.n =
        in->body.n = 0;
    if (mpl_text_is_word(in, "input") || mpl_text_is_word(in, "weight") ||
        mpl_text_is_word(in, "bound"))
        return read_declaration(in);
    if (mpl_text_is_word(in, "output"))
        return read_output(in);
    if (mpl_text_is_word(in, "block"))
        return read_block(in);
    if (mpl_text_is_word(in, "param"))
        return read_param(in);
    if (mpl_text_is_word(in, "yield"))
        return read_yield(in);
    if (mpl_text_is_word(in, "graph") || mpl_text_is_word(in, "program"))
        return mpl_text_refuse(in, "a second '%.*s' line; one file holds one graph",
                               (int)in->next.n, in->next.start);
    if (in->next.kind == WORD && mpl_text_reserved(in->next.start, in->next.n) &&
        !mpl_text_is_word(in, "_"))
        return mpl_text_refuse(in, "%s is reserved; a value of that name stands in quotes",
                               mpl_text_show(&in->next, text));
    return read_op(in);
}

static void free_lists(reader *in)
{
    void *const lists[] = {in->text.item,     in->out.item,       in->in.item,
                           in->attr.item,     in->ints.item,      in->floats.item,
                           in->types.item,    in->raw.item,       in->in_value.item,
                           in->out_name.item, in->out_value.item, in->attr_value.item,
                           in->bodies.item,   in->body.item,      in->params.item};

    MPL_FREE_ALL(in->ctx, lists);
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
