/* ops.h -- runs one operation on small tensors: its shape rule through the graph, its loops on
 * memory of exact size, so that a sanitizer detects out-of-bounds accesses. */
#pragma once

#include "tests/support/test.h"

#include "graphs/ops/ops_priv.h"

#define TEST_MOST 9 /* inputs or outputs */

#define COUNT_OF(type, ...) (sizeof((type[]){__VA_ARGS__}) / sizeof(type))
#define SCALAR              ((mpl_shape){.rank = 0})
#define DIMS(...)           ((mpl_shape){COUNT_OF(int64_t, __VA_ARGS__), {__VA_ARGS__}})
#define LIST(key, ...)                                                                             \
    MPL_INTS(key, COUNT_OF(int64_t, __VA_ARGS__), ((const int64_t[]){__VA_ARGS__}))
#define VALUES(...) ((const double[]){__VA_ARGS__})

/* Elements as doubles, or as stored (raw); both NULL: 0, 1, 2, ..; present false: omitted input. */
typedef struct test_tensor {
    bool present;
    mpl_type type;
    mpl_shape shape;
    const double *value;
    const void *raw;
} test_tensor;

#define IN(name, dims, values)                                                                     \
    {                                                                                              \
        true, MPL_TYPE_##name, dims, values, NULL                                                  \
    }

typedef struct test_op {
    mpl_ctx ctx;
    mpl_graph *g;
    uint32_t n_in, n_out;
    mpl_tensor in[TEST_MOST], out[TEST_MOST];
    void *memory[2 * TEST_MOST], *workspace;
} test_op;

static inline uint64_t test_bytes(const mpl_tensor *t)
{
    uint64_t bytes = 0;

    mpl_type_size(t->type, (uint64_t)mpl_count(&t->shape), &bytes);
    return bytes;
}

static inline void test_tensor_fill(mpl_tensor *t, const double *value)
{
    mpl_clear_tail(t);
    for (int64_t i = 0; i < mpl_count(&t->shape); i++)
        mpl_put(t->type, t->data, i, value != NULL ? value[i] : (double)i);
}

/* Builds the operation and returns the shape rule's status. Outputs hold 0xa5 until it runs. */
static inline mpl_status test_op_make(test_op *t, mpl_op_kind kind, uint32_t n_in,
                                      const test_tensor *in, uint32_t n_attr, const mpl_attr *attr,
                                      uint32_t n_out)
{
    mpl_value v_in[TEST_MOST], v_out[TEST_MOST];
    static const char *const in_name[] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8"};
    static const char *const out_name[] = {"o0", "o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8"};

    memset(t, 0, sizeof *t);
    t->ctx = mpl_ctx_default();
    t->n_in = n_in, t->n_out = n_out;
    MPL_PASS(mpl_graph_new(&t->ctx, "g", &t->g));
    for (uint32_t i = 0; i < n_in; i++) {
        v_in[i] = MPL_NONE;
        if (in[i].present)
            MPL_PASS(mpl_graph_add_value(&t->ctx, t->g, in_name[i], MPL_INPUT, in[i].type,
                                         &in[i].shape, &v_in[i]));
    }
    MPL_PASS(mpl_graph_add_op(&t->ctx, t->g, kind, "op", n_in, v_in, n_attr, attr, n_out, out_name,
                              v_out));
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i].present) {
            t->in[i] = (mpl_tensor){in[i].type, in[i].shape, NULL};
            t->in[i].data = t->memory[i] = malloc(test_bytes(&t->in[i]));
            if (in[i].raw != NULL)
                memcpy(t->in[i].data, in[i].raw, test_bytes(&t->in[i]));
            else
                test_tensor_fill(&t->in[i], in[i].value);
        }
    for (uint32_t i = 0; i < n_out; i++) {
        t->out[i] =
            (mpl_tensor){(mpl_type)t->g->value_type[v_out[i]], t->g->value_shape[v_out[i]], NULL};
        t->out[i].data = t->memory[TEST_MOST + i] = malloc(test_bytes(&t->out[i]));
        memset(t->out[i].data, 0xa5, test_bytes(&t->out[i]));
    }
    t->workspace = malloc(mpl_eval_workspace(t->g, 0));
    return MPL_OK;
}

static inline mpl_status test_op_run(test_op *t)
{
    return mpl_eval(&t->ctx,
                    &(mpl_op_call){t->g, 0, t->n_in, t->n_out, t->in, t->out, t->workspace});
}

/* Makes and runs the operation. Output 0 uses the memory of input `place`, or new memory if
 * IN_NEW_MEMORY. */
enum { IN_NEW_MEMORY = -1 };
static inline mpl_status test_op_apply(test_op *t, mpl_op_kind kind, uint32_t n_in,
                                       const test_tensor *in, uint32_t n_attr, const mpl_attr *attr,
                                       uint32_t n_out, int place)
{
    MPL_PASS(test_op_make(t, kind, n_in, in, n_attr, attr, n_out));
    if (place != IN_NEW_MEMORY) {
        assert_int_equal(test_bytes(&t->in[place]), test_bytes(&t->out[0]));
        t->out[0].data = t->in[place].data;
    }
    return test_op_run(t);
}

/* Frees everything; fails if the operation leaked an allocation. */
static inline void test_op_free(test_op *t)
{
    mpl_graph_free(&t->ctx, t->g);
    assert_int_equal(t->ctx.n_live, 0);
    for (uint32_t i = 0; i < 2 * TEST_MOST; i++)
        free(t->memory[i]);
    free(t->workspace);
}

/* Output i must have these dims and elements, within `relative` of max(1, |value|). */
static inline void test_expect(const char *name, const test_op *t, uint32_t i,
                               const mpl_shape *shape, const double *value, double relative)
{
    char want[200], got[200];
    mpl_tensor right = {t->out[i].type, *shape, NULL};

    if (!mpl_shape_equal(&t->out[i].shape, shape))
        fail_msg("%s: output %u has dims %s, not %s", name, i,
                 mpl_shape_text(&t->out[i].shape, got), mpl_shape_text(shape, want));
    right.data = malloc(test_bytes(&right));
    test_tensor_fill(&right, value);
    for (int64_t k = 0; k < mpl_count(shape); k++) {
        double a = mpl_get(right.type, t->out[i].data, k), b = mpl_get(right.type, right.data, k);
        double size = b < 0 ? -b : b, off = a < b ? b - a : a - b;

        if (!(off <= relative * (size > 1 ? size : 1)) && !(a == b))
            fail_msg("%s (%s): output %u, element %" PRId64 " is %.9g, not %.9g", name,
                     mpl_type_name(right.type), i, k, a, b);
    }
    free(right.data);
}

/* Deterministic small numbers for inputs. */
static inline uint32_t test_random(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % n;
}
