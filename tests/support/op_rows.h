/* op_rows.h -- tests of one operation per line of text: the tables in tests/data/ops, whose heads
 * describe the columns. */
#pragma once

#include "tests/support/ops.h"

#include <math.h>

#include "graphs/core/file.h"

enum { OP_COLUMNS = 5, OP_TENSORS = 9, OP_ATTRS = 5 };

typedef struct op_row {
    mpl_op_kind kind;
    uint32_t n_in, n_attr, n_out;
    bool own_type[2 * OP_TENSORS]; /* by input, then output: has its own type, not the one under
                                      test */
    test_tensor in[OP_TENSORS], out[OP_TENSORS];
    mpl_attr attr[OP_ATTRS];
    int64_t ints[OP_ATTRS][16];
    double reals[OP_ATTRS][16], value[2 * OP_TENSORS][64];
} op_row;

/* Splits a copy of a line into its columns. */
static inline void op_columns(const char *line, char *copy, size_t size, char *column[], int n)
{
    snprintf(copy, size, "%s", line);
    for (int i = 0; i < n; i++) {
        column[i] = copy;
        copy = strstr(copy, " | ");
        if (i + 1 < n && copy == NULL)
            fail_msg("%d columns are not in: %s", n, line);
        if (i + 1 < n)
            *copy = '\0', copy += 3;
    }
}

/* "any", "floats", .., or type names. */
static inline mpl_types op_types(char *text)
{
    static const struct {
        const char *name;
        mpl_types types;
    } sets[] = {{"any", MPL_SET_ANY},
                {"floats", MPL_SET_FLOAT},
                {"numbers", MPL_SET_NUMBER},
                {"whole", MPL_SET_INT},
                {"signed", MPL_SET_FLOAT | MPL_SET_SIGNED}};
    mpl_types types = 0;
    mpl_type type;

    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strcmp(text, sets[i].name) == 0)
            return sets[i].types;
    for (char *word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
        assert_true(mpl_type_find(word, &type));
        types |= UINT64_C(1) << type;
    }
    return types;
}

/* Adds "axis=1", "axes=[0,1]", "alpha=(0.5)" or "mode='edge'" as the row's next attribute. */
static inline void op_attr(op_row *r, char *text)
{
    char *value = strchr(text, '=') + 1, *end;
    mpl_attr *a = &r->attr[r->n_attr];
    int64_t *ints = r->ints[r->n_attr];
    double *reals = r->reals[r->n_attr++];

    value[-1] = '\0';
    if (!mpl_attr_find(text, &a->key))
        fail_msg("no attribute '%s'", text);
    if (*value == '\'') {
        value[strlen(value) - 1] = '\0';
        a->text = value + 1, a->n = (uint32_t)strlen(a->text);
        return;
    }
    for (end = value + strspn(value, "[("); *end != '\0' && *end != ']' && *end != ')';
         a->n++, end += *end == ',') {
        assert_true(a->n < 16);
        if (*value == '(')
            reals[a->n] = strtod(end, &end);
        else
            ints[a->n] = strtoll(end, &end, 10);
    }
    a->ints = *value == '(' ? NULL : ints;
    a->floats = *value == '(' ? reals : NULL;
}

/* "f64 [2,1] 0 1; -; [3]": tensors, f32 where no type is named. */
static inline uint32_t op_tensors(char *text, test_tensor *tensor, bool *own_type,
                                  double (*value)[64])
{
    uint32_t n = 0;

    for (char *one; (one = strsep(&text, ";")) != NULL; n++) {
        test_tensor *t = &tensor[n];
        char name[16] = "";
        int64_t k = 0;

        assert_true(n < OP_TENSORS);
        *t = (test_tensor){.present = strchr(one, '[') != NULL, .type = MPL_TYPE_f32};
        if (!t->present)
            continue;
        own_type[n] = sscanf(one, " %15[a-z0-9] [", name) == 1;
        assert_true(!own_type[n] || mpl_type_find(name, &t->type));
        for (one = strchr(one, '[') + 1; *one != ']'; one += *one == ',')
            t->shape.dim[t->shape.rank++] = strtoll(one, &one, 10);
        for (one += 1 + strspn(one + 1, " "); *one != '\0'; one += strspn(one, " ")) {
            assert_true(k < 64);
            value[n][k++] = strtod(one, &one);
        }
        t->value = k > 0 ? value[n] : NULL;
    }
    return n;
}

static inline void op_read(op_row *r, char *operator, char * inputs, char *outputs)
{
    char *rest = operator, * name = strsep(&rest, " ");

    memset(r, 0, sizeof *r);
    if (!mpl_op_find(name, &r->kind))
        fail_msg("no operator '%s'", name);
    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        op_attr(r, word);
    r->n_in = op_tensors(inputs, r->in, r->own_type, r->value);
    r->n_out = outputs != NULL
                   ? op_tensors(outputs, r->out, r->own_type + OP_TENSORS, r->value + OP_TENSORS)
                   : 0;
}

/* For values of about 1, each computed with a few roundings from exactly representable inputs. */
static inline double op_tolerance(mpl_type type)
{
    return type == MPL_TYPE_f64    ? 1e-13
           : type == MPL_TYPE_f32  ? 1e-6
           : type == MPL_TYPE_f16  ? 0x1p-11
           : type == MPL_TYPE_bf16 ? 0x1p-8
                                   : 0;
}

static inline bool op_near(double got, double want, double relative)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return want == got;
    return fabs(got - want) <= relative * fabs(want) + (relative > 0 ? 1e-7 * relative : 0);
}

/* Compares n elements. */
static inline void op_check_values(const char *what, mpl_type type, const void *got,
                                   const double *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double x; /* the wanted value rounded to the type */
        mpl_tensor one = {type, {.rank = 0}, &x};

        test_tensor_fill(&one, &want[i]);
        if (!op_near(mpl_get(type, got, i), want[i], op_tolerance(type)) &&
            mpl_get(type, got, i) != mpl_get(type, &x, 0))
            fail_msg("%s, %s: element %" PRId64 " is %.9g, not %.9g", what, mpl_type_name(type), i,
                     mpl_get(type, got, i), want[i]);
    }
}

/* Overwriting any operand that the operator's traits allow must give the same bytes. */
static inline void op_check_in_place(const char *what, const op_row *r, const test_op *apart)
{
    unsigned traits = mpl_op_table[r->kind].traits;

    for (uint32_t k = 0; k < r->n_in; k++) {
        test_op t;

        if ((traits & (MPL_IN_PLACE_0 | MPL_IN_PLACE_ANY)) == 0 || !r->in[k].present ||
            (k > 0 && (traits & MPL_IN_PLACE_ANY) == 0) || r->in[k].type != apart->out[0].type ||
            test_bytes(&apart->in[k]) != test_bytes(&apart->out[0]))
            continue;
        assert_ok(&t.ctx,
                  test_op_apply(&t, r->kind, r->n_in, r->in, r->n_attr, r->attr, r->n_out, (int)k));
        if (memcmp(t.out[0].data, apart->out[0].data, test_bytes(&t.out[0])) != 0)
            fail_msg("%s, %s: differs when input %u is overwritten", what,
                     mpl_type_name(t.out[0].type), k);
        test_op_free(&t);
    }
}

static inline void op_check_type(const char *what, op_row *r, mpl_type type)
{
    char text[200], wanted[200];
    int64_t n_allocs;
    test_op t;

    for (uint32_t i = 0; i < r->n_in; i++)
        r->in[i].type = r->own_type[i] ? r->in[i].type : type;
    if (test_op_make(&t, r->kind, r->n_in, r->in, r->n_attr, r->attr, r->n_out) != MPL_OK)
        fail_msg("%s, %s: %s", what, mpl_type_name(type), t.ctx.message);
    n_allocs = t.ctx.n_allocs;
    assert_ok(&t.ctx, test_op_run(&t));
    assert_int_equal(t.ctx.n_allocs, n_allocs);
    for (uint32_t k = 0; k < r->n_out; k++) {
        int64_t n = mpl_count(&r->out[k].shape);

        if (!mpl_shape_equal(&t.out[k].shape, &r->out[k].shape))
            fail_msg("%s: dims %s, not %s", what, mpl_shape_text(&t.out[k].shape, text),
                     mpl_shape_text(&r->out[k].shape, wanted));
        assert_true(n == 0 || r->out[k].value != NULL);
        assert_true(!r->own_type[OP_TENSORS + k] || t.out[k].type == r->out[k].type);
        op_check_values(what, t.out[k].type, t.out[k].data, r->out[k].value, n);
    }
    op_check_in_place(what, r, &t);
    test_op_free(&t);
}

static inline void op_check_row(const char *line)
{
    char copy[1000], *column[5];
    unsigned types;
    op_row r;

    op_columns(line, copy, sizeof copy, column, 5);
    types = op_types(column[1]);
    op_read(&r, column[2], column[3], column[4]);
    for (int type = 0; type < MPL_N_TYPES; type++)
        if (mpl_type_in((mpl_type)type, types))
            op_check_type(column[0], &r, (mpl_type)type);
}

/* The shape rule or the following run must refuse the line. */
static inline void op_check_refusal(const char *line)
{
    char copy[1000], *column[4];
    mpl_status st;
    test_op t;
    op_row r;

    op_columns(line, copy, sizeof copy, column, 4);
    op_read(&r, column[0], column[1], NULL);
    st = test_op_make(&t, r.kind, r.n_in, r.in, r.n_attr, r.attr, (uint32_t)atoi(column[2]));
    if (st == MPL_OK)
        st = test_op_run(&t);
    if (st != MPL_EINPUT || strstr(t.ctx.message, column[3]) == NULL ||
        strchr(t.ctx.message, '\n') != NULL)
        fail_msg("%s: status '%s': '%s'", line, mpl_status_name(st), t.ctx.message);
    test_op_free(&t);
}

/* Calls CHECK for each of the n rows in a file. */
static inline void op_each_row(mpl_ctx *ctx, const char *path, uint32_t n,
                               void (*check)(const char *line))
{
    char *text, *rest;
    size_t size;

    assert_ok(ctx, mpl_file_read(ctx, path, &text, &size));
    rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line != '\0' && *line != '#') {
            check(line);
            n--;
        }
    mpl_free(ctx, text);
    assert_int_equal(n, 0);
}
