/* user_table.c -- the table of the user's operators. See user_ops.h. */
#include "graphs/core/text.h"
#include "graphs/ops/user/user_ops.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"

enum { MOST_OPERATORS = 256 };

static const memplan_operator *table[MOST_OPERATORS];
static uint32_t n_operators;

/* ---- the table ---- */

const memplan_operator *mpl_user_at(uint32_t i)
{
    return i < n_operators ? table[i] : NULL;
}

const memplan_operator *mpl_user_find(const char *name)
{
    for (uint32_t i = 0; i < n_operators; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

const memplan_operator *mpl_user_find_onnx(const char *domain, const char *type)
{
    size_t n = strlen(domain);

    for (uint32_t i = 0; i < n_operators; i++) {
        const char *onnx = table[i]->onnx;

        if (onnx != NULL && strncmp(onnx, domain, n) == 0 && onnx[n] == ':' &&
            strcmp(onnx + n + 1, type) == 0)
            return table[i];
    }
    return NULL;
}

const memplan_operator *mpl_user_of(const mpl_graph *g, mpl_op op)
{
    return mpl_user_find(mpl_attr_text(g, op, MPL_ATTR_opcode, ""));
}

const char *mpl_op_called(const mpl_graph *g, mpl_op op)
{
    const char *usual = mpl_op_table[g->op_kind[op]].name;

    return g->op_kind[op] == MPL_OP_user ? mpl_attr_text(g, op, MPL_ATTR_opcode, usual) : usual;
}

/* Whether the text is "NAME:KIND .." with kinds that there are. */
static bool declares(const char *text)
{
    static const char *const kinds[] = {"int", "real", "ints", "reals", "text"};

    while (*(text += strspn(text, " ")) != '\0') {
        size_t n = strspn(text, LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"), k, any = 0;

        if (n == 0 || text[n] != ':')
            return false;
        text += n + 1;
        k = strcspn(text, " ");
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            any |= strlen(kinds[i]) == k && strncmp(kinds[i], text, k) == 0;
        if (!any)
            return false;
        text += k;
    }
    return true;
}

/* Whether the text is words among dy, x, y, at least one. */
static bool says_reads(const char *text)
{
    if (text == NULL || text[strspn(text, " ")] == '\0')
        return false;
    while (*(text += strspn(text, " ")) != '\0') {
        size_t n = strcspn(text, " ");

        if (!(n == 2 && strncmp(text, "dy", 2) == 0) && !(n == 1 && (*text == 'x' || *text == 'y')))
            return false;
        text += n;
    }
    return true;
}

static bool is_name(const char *name)
{
    return name != NULL && name[0] != '\0' && strchr(LOWER, name[0]) != NULL &&
           name[strspn(name, LOWER "0123456789_")] == '\0' && strlen(name) < MPL_USER_NAME;
}

static bool has(const memplan_operators *library, const char *name)
{
    for (uint32_t i = 0; library->list[i] != NULL; i++)
        if (strcmp(library->list[i]->name, name) == 0)
            return true;
    return false;
}

/* What is wrong with an operator whose name is one; NULL: nothing. */
static const char *fault_of(const memplan_operators *library, const memplan_operator *u)
{
    const char *colon = u->onnx != NULL ? strchr(u->onnx, ':') : NULL;

    if (u->shape == NULL || u->run == NULL)
        return "it needs shape() and run()";
    if (u->min_in > u->max_in || u->max_in > MEMPLAN_MOST_OPERANDS || u->min_out < 1 ||
        u->min_out > u->max_out || u->max_out > MEMPLAN_MOST_OPERANDS)
        return "its numbers of inputs and outputs are no ranges up to 64, of outputs from 1 on";
    if (u->attributes != NULL && !declares(u->attributes))
        return "its attributes are not \"NAME:KIND ..\" with kinds int, real, ints, reals, text";
    if (u->onnx != NULL && (colon == NULL || colon == u->onnx || colon[1] == '\0' ||
                            !mpl_text_is_seen(u->onnx) || strncmp(u->onnx, "ai.onnx:", 8) == 0))
        return "its ONNX name is not \"DOMAIN:TYPE\", with a domain that is not ONNX's own";
    if (u->gradient != NULL && !has(library, u->gradient))
        return "the library has no operator of the name of its gradient";
    if (u->gradient != NULL && !says_reads(u->gradient_reads))
        return "gradient_reads is not made of the words dy, x, y";
    return NULL;
}

/* MPL_EINPUT unless operator i has a name that is free. */
static mpl_status check_name(mpl_ctx *ctx, const memplan_operators *library, uint32_t i)
{
    const memplan_operator *u = library->list[i];
    mpl_op_kind kind;

    if (u->size < sizeof *u || !is_name(u->name))
        return MPL_REFUSE(ctx,
                          "operator %u of its list has no size or no name: a lower-case letter, "
                          "then a-z 0-9 _, at most %d characters",
                          i, MPL_USER_NAME - 1);
    if (mpl_op_find(u->name, &kind))
        return MPL_REFUSE(ctx, "operator '%s': memplan has one of that name", u->name);
    for (uint32_t k = 0; k < n_operators; k++)
        if (strcmp(table[k]->name, u->name) == 0)
            return MPL_REFUSE(ctx, "operator '%s' is there already", u->name);
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(library->list[k]->name, u->name) == 0)
            return MPL_REFUSE(ctx, "operator '%s' stands twice in its list", u->name);
    return MPL_OK;
}

mpl_status mpl_user_add(mpl_ctx *ctx, const memplan_operators *library)
{
    uint32_t n = 0;

    if (library->version != MEMPLAN_OPERATORS_VERSION)
        return MPL_REFUSE(ctx,
                          "made for version %u of the interface of operators; this memplan speaks "
                          "version %d",
                          library->version, MEMPLAN_OPERATORS_VERSION);
    if (library->size < sizeof *library || library->list == NULL || library->list[0] == NULL)
        return MPL_REFUSE(ctx, "memplan_operators_main lists no operator");
    for (; library->list[n] != NULL; n++) {
        if (n_operators + n == MOST_OPERATORS)
            return MPL_REFUSE(ctx, "more than %d operators", MOST_OPERATORS);
        MPL_PASS(check_name(ctx, library, n));
    }
    for (uint32_t i = 0; i < n; i++) {
        const char *fault = fault_of(library, library->list[i]);

        if (fault != NULL)
            return MPL_REFUSE(ctx, "operator '%s': %s", library->list[i]->name, fault);
    }
    for (uint32_t i = 0; i < n; i++)
        table[n_operators++] = library->list[i];
    return MPL_OK;
}
