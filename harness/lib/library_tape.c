/* library_tape.c -- tapes of the library. See memplan.h. */
#include "harness/lib/library_priv.h"
#include "runtime/tape/tape.h"

extern const mpl_backend mpl_backend_ref;

#define LAST (UINT64_C(1) << 63) /* of MEMPLAN_LAST */

struct memplan_tape {
    memplan_ctx *owner;
    mpl_device *dev;
    mpl_tape *tape;
};

static mpl_ctx *ctx_of(const memplan_tape *tape)
{
    return &tape->owner->ctx;
}

memplan_status memplan_tape_new(memplan_ctx *owner, const char *allocator, const char *backend,
                                uint32_t n_plans, memplan_tape **out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = &owner->ctx;
    memplan_tape *tape = NULL;
    mpl_tape_options o = {.allocator = mpl_allocator_find(allocator),
                          .backend = &mpl_backend_ref,
                          .n_plans = n_plans};

    if (o.allocator == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "tape: there is no allocator '%.60s'", allocator);
    if (strcmp(backend, "ref") != 0)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "tape: backend '%.60s' is not in this library, which has ref",
                 backend);
    if (owner->set.given[MPL_OPT_budget])
        o.budget_ticks = owner->set.budget;
    MPL_TRY(mpl_new(ctx, tape, 1));
    tape->owner = owner;
    MPL_TRY(mpl_backend_ref.open(ctx, &(mpl_device_options){0}, &tape->dev));
    o.dev = tape->dev;
    MPL_TRY(mpl_tape_new(ctx, &o, &tape->tape));
    *out = tape, tape = NULL;
out:
    memplan_tape_free(tape);
    return (memplan_status)st;
}

void memplan_tape_free(memplan_tape *tape)
{
    mpl_ctx *ctx = tape != NULL ? ctx_of(tape) : NULL;

    if (tape == NULL)
        return;
    mpl_tape_free(ctx, tape->tape);
    mpl_backend_ref.close(tape->dev);
    mpl_free(ctx, tape);
}

/* ---- tensors ---- */

static mpl_status read_form(mpl_ctx *ctx, const char *type_name, uint32_t rank, const int64_t *dim,
                            mpl_type *type, mpl_shape *shape)
{
    if (!mpl_type_find(type_name, type))
        return MPL_REFUSE(ctx, "tape: there is no type '%.60s'", type_name);
    if (rank > MPL_MAX_RANK)
        return MPL_REFUSE(ctx, "tape: %u dims are more than %d", rank, MPL_MAX_RANK);
    *shape = (mpl_shape){.rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        shape->dim[i] = dim[i];
    return MPL_OK;
}

memplan_status memplan_tape_input(memplan_tape *tape, const char *name, const char *type,
                                  uint32_t rank, const int64_t *dim, const void *data,
                                  memplan_tensor *out)
{
    mpl_status st = MPL_OK;
    mpl_type t;
    mpl_shape shape;

    MPL_TRY(read_form(ctx_of(tape), type, rank, dim, &t, &shape));
    MPL_TRY(mpl_tape_input(tape->tape, name, t, &shape, data, out));
out:
    return (memplan_status)st;
}

memplan_status memplan_tape_weight(memplan_tape *tape, const char *name, const char *type,
                                   uint32_t rank, const int64_t *dim, const void *data, int changes,
                                   memplan_tensor *out)
{
    mpl_status st = MPL_OK;
    mpl_type t;
    mpl_shape shape;

    MPL_TRY(read_form(ctx_of(tape), type, rank, dim, &t, &shape));
    MPL_TRY(mpl_tape_weight(tape->tape, name, t, &shape, data, changes != 0, out));
out:
    return (memplan_status)st;
}

memplan_status memplan_tape_write(memplan_tape *tape, memplan_tensor weight, const void *data)
{
    return (memplan_status)mpl_tape_write(tape->tape, weight, data);
}

memplan_status memplan_tape_read(memplan_tape *tape, memplan_tensor tensor, void *data)
{
    return (memplan_status)mpl_tape_read(tape->tape, tensor, data);
}

memplan_status memplan_tape_retain(memplan_tape *tape, memplan_tensor tensor)
{
    return (memplan_status)mpl_tape_retain(tape->tape, tensor);
}

memplan_status memplan_tape_release(memplan_tape *tape, memplan_tensor tensor)
{
    return (memplan_status)mpl_tape_release(tape->tape, tensor);
}

memplan_status memplan_tape_dims(memplan_tape *tape, memplan_tensor tensor, uint32_t *rank,
                                 int64_t dim[8])
{
    mpl_status st = MPL_OK;
    mpl_type type;
    mpl_shape shape;

    MPL_TRY(mpl_tape_form(tape->tape, tensor, &type, &shape));
    *rank = shape.rank;
    memcpy(dim, shape.dim, shape.rank * sizeof *dim);
out:
    return (memplan_status)st;
}

/* ---- calls ---- */

static mpl_status read_attr(mpl_ctx *ctx, const memplan_attr *from, mpl_attr *to)
{
    *to = (mpl_attr){.n = from->n, .ints = from->ints, .floats = from->floats, .text = from->text};
    if (!mpl_attr_find(from->key, &to->key))
        return MPL_REFUSE(ctx, "tape: there is no attribute '%.60s'", from->key);
    switch (mpl_attr_kind_of(to->key)) {
    case MPL_ATTR_INT:
    case MPL_ATTR_INTS:
        to->floats = NULL, to->text = NULL;
        break;
    case MPL_ATTR_FLOAT:
    case MPL_ATTR_FLOATS:
        to->ints = NULL, to->text = NULL;
        break;
    case MPL_ATTR_TEXT:
        to->ints = NULL, to->floats = NULL;
        to->n = to->text != NULL ? (uint32_t)strlen(to->text) : 0;
    }
    if (to->ints == NULL && to->floats == NULL && to->text == NULL)
        return MPL_REFUSE(ctx, "tape: attribute '%.60s' has no value of its kind", from->key);
    if (to->n != 1 &&
        (mpl_attr_kind_of(to->key) == MPL_ATTR_INT || mpl_attr_kind_of(to->key) == MPL_ATTR_FLOAT))
        return MPL_REFUSE(ctx, "tape: attribute '%.60s' has one value, not %u", from->key, to->n);
    return MPL_OK;
}

memplan_status memplan_tape_call(memplan_tape *tape, const char *op, uint32_t n_in,
                                 const memplan_tensor *in, uint32_t n_attr,
                                 const memplan_attr *attr, uint32_t n_out, memplan_tensor *out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = ctx_of(tape);
    mpl_tape_call call = {.n_in = n_in, .n_attr = n_attr, .n_out = n_out};
    mpl_handle *handle = NULL, *made = NULL;
    uint8_t *last = NULL;
    mpl_attr *attrs = NULL;

    if (!mpl_op_find(op, &call.kind))
        MPL_FAIL(ctx, MPL_EINPUT, "tape: there is no operator '%.60s'", op);
    MPL_TRY(mpl_new_each(ctx, n_in, handle, last));
    MPL_TRY(mpl_new(ctx, made, n_out));
    MPL_TRY(mpl_new(ctx, attrs, n_attr));
    for (uint32_t i = 0; i < n_in; i++) {
        handle[i] = in[i] & ~LAST;
        last[i] = (in[i] & LAST) != 0;
    }
    for (uint32_t i = 0; i < n_attr; i++)
        MPL_TRY(read_attr(ctx, &attr[i], &attrs[i]));
    call.in = handle, call.last = last, call.attr = attrs;
    MPL_TRY(mpl_tape_run(tape->tape, &call, made));
    memcpy(out, made, n_out * sizeof *out);
out:
    mpl_free_each(ctx, handle, last, made, attrs);
    return (memplan_status)st;
}

memplan_status memplan_tape_end(memplan_tape *tape)
{
    return (memplan_status)mpl_tape_end(tape->tape);
}

uint64_t memplan_tape_fact(const memplan_tape *tape, const char *name)
{
    mpl_tape_facts f = mpl_tape_facts_of(tape->tape);
    const struct {
        const char *name;
        uint64_t value;
    } table[] = {{"hits", f.n_hits},
                 {"misses", f.n_misses},
                 {"diverged", f.n_diverged},
                 {"evictions", f.n_evictions},
                 {"traces", f.n_traces},
                 {"plans", f.n_plans},
                 {"arena_bytes", f.arena_bytes},
                 {"reserved_bytes", f.online.reserved_bytes},
                 {"live_peak_bytes", f.online.live_peak_bytes},
                 {"live_bytes", f.online.live_bytes}};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].value;
    return UINT64_MAX;
}
