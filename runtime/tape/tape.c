/* tape.c -- tensors and their references, and calls. See tape.h. */
#include "runtime/tape/tape_priv.h"

#include <sys/mman.h>

#define MOST_RANGE  (UINT64_C(1) << 40)
#define LEAST_RANGE (UINT64_C(1) << 30)
enum { POISON = 0xA5 };

/* ---- handles, slots, stores ---- */

static mpl_handle handle_of(const mpl_tape *tape, uint32_t slot)
{
    return (mpl_handle)tape->slot[slot].generation << 32 | slot;
}

/* The slot of a handle; NULL: it names none, or was released. */
static mpl_slot *find_slot(mpl_tape *tape, mpl_handle h)
{
    uint32_t i = (uint32_t)h;

    return i > 0 && i < tape->n_slots && tape->slot[i].n_refs > 0 &&
                   tape->slot[i].generation == h >> 32
               ? &tape->slot[i]
               : NULL;
}

static mpl_status check_handle(mpl_tape *tape, mpl_handle h)
{
    if (find_slot(tape, h) == NULL)
        return MPL_REFUSE(tape->ctx, "tape: a tensor that was released, or never was, is named");
    return MPL_OK;
}

static mpl_status new_slot(mpl_tape *tape, mpl_type type, const mpl_shape *shape, uint32_t store,
                           uint32_t *out)
{
    uint32_t i = tape->spare_slot;

    if (i == MPL_NONE) {
        MPL_PASS(mpl_reserve(tape->ctx, tape->slot, tape->slot_room, (size_t)tape->n_slots + 1));
        i = tape->n_slots++;
    } else {
        tape->spare_slot = tape->slot[i].store;
    }
    tape->slot[i] = (mpl_slot){.generation = tape->slot[i].generation + 1,
                               .n_refs = 1,
                               .type = type,
                               .shape = *shape,
                               .store = store,
                               .traced = MPL_NONE};
    tape->store[store].n_tensors++;
    *out = i;
    return MPL_OK;
}

/* A store without tensors and memory. */
static mpl_status new_store(mpl_tape *tape, uint32_t *out)
{
    uint32_t i = tape->spare_store;

    if (i == MPL_NONE) {
        MPL_PASS(mpl_reserve(tape->ctx, tape->store, tape->store_room, (size_t)tape->n_stores + 1));
        i = tape->n_stores++;
    } else {
        tape->spare_store = tape->store[i].block;
    }
    tape->store[i] = (mpl_store){.kind = MPL_STORE_PLANNED, /* of no bytes: nothing to give back */
                                 .at = tape->nothing,
                                 .block = MPL_NONE,
                                 .traced = MPL_NONE};
    *out = i;
    return MPL_OK;
}

/* Asks for whole multiples of the alignment, as bounds of plans count them. */
static mpl_status take_online(mpl_tape *tape, uint64_t bytes, uint32_t *block, char **at)
{
    uint32_t align = tape->options.backend->align;
    uint64_t offset;

    MPL_PASS(mpl_online_take(tape->online, mpl_align_up(bytes, align), align, block, &offset));
    *at = tape->range != NULL ? tape->range + offset : (char *)(uintptr_t)offset;
    return MPL_OK;
}

static bool overlaps(const mpl_store *a, const mpl_store *b)
{
    return a->bytes > 0 && b->bytes > 0 && a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

/* Fills memory that holds nothing. What another store took in place is left. */
static mpl_status poison(mpl_tape *tape, const mpl_store *store)
{
    if (!mpl_tape_checks(tape) || store->kind == MPL_STORE_OWN || store->bytes == 0)
        return MPL_OK;
    for (uint32_t i = 0; i < tape->n_stores; i++)
        if (&tape->store[i] != store && tape->store[i].n_tensors > 0 &&
            overlaps(&tape->store[i], store))
            return MPL_OK;
    return tape->options.backend->fill(tape->options.dev, store->at, POISON, store->bytes);
}

/* Gives back the memory of a store without tensors. */
static mpl_status drop_store(mpl_tape *tape, uint32_t id)
{
    mpl_store *store = &tape->store[id];
    mpl_status st = poison(tape, store);

    if (store->kind == MPL_STORE_OWN)
        tape->options.backend->arena_free(tape->options.dev, store->at, store->bytes);
    else if (store->kind == MPL_STORE_ONLINE && st == MPL_OK)
        st = mpl_online_give_back(tape->online, store->block);
    store->bytes = 0;
    store->block = tape->spare_store;
    tape->spare_store = id;
    return st;
}

/* The last reference to a tensor is gone. *died: so is its store. */
static mpl_status drop_slot(mpl_tape *tape, uint32_t i, bool *died)
{
    mpl_slot *slot = &tape->slot[i];
    uint32_t store = slot->store;

    slot->n_refs = 0;
    slot->store = tape->spare_slot;
    tape->spare_slot = i;
    *died = --tape->store[store].n_tensors == 0;
    return *died ? drop_store(tape, store) : MPL_OK;
}

/* ---- opening, closing ---- */

/* Addresses for the allocator, without memory until they are written. */
static mpl_status reserve_range(mpl_tape *tape)
{
    for (tape->range_bytes = MOST_RANGE; tape->range_bytes >= LEAST_RANGE; tape->range_bytes /= 2) {
        void *at = mmap(NULL, tape->range_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (at != MAP_FAILED)
            return tape->range = at, MPL_OK;
    }
    return MPL_ERROR(tape->ctx, MPL_EMEM, "out of memory: no addresses for an allocator");
}

mpl_status mpl_tape_new(mpl_ctx *ctx, const mpl_tape_options *options, mpl_tape **out)
{
    mpl_status st = MPL_OK;
    mpl_tape *tape = NULL;
    void *nothing = NULL;

    if (options->backend->replay != NULL || options->backend->copy == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "a tape runs on ref or cpu, not on %s", options->backend->name);
    MPL_TRY(mpl_new(ctx, tape, 1));
    tape->ctx = ctx;
    tape->options = *options;
    if (options->planner == NULL)
        tape->options.planner = mpl_planner_find("exact");
    if (options->budget_ticks == 0)
        tape->options.budget_ticks = MPL_TAPE_TICKS;
    tape->spare_slot = tape->spare_store = MPL_NONE;
    tape->step = 1;
    MPL_TRY(mpl_new(ctx, tape->kept, (size_t)options->n_plans + 1));
    MPL_TRY(mpl_reserve(ctx, tape->slot, tape->slot_room, 1));
    tape->n_slots = 1;
    MPL_TRY(options->backend->arena_new(options->dev, 1, &nothing));
    tape->nothing = nothing;
    if (!options->allocator->is_real)
        MPL_TRY(reserve_range(tape));
    MPL_TRY(mpl_online_new(ctx, options->allocator, tape->range_bytes, &tape->online));
    *out = tape, tape = NULL;
out:
    mpl_tape_free(ctx, tape);
    return st;
}

void mpl_tape_free(mpl_ctx *ctx, mpl_tape *tape)
{
    const mpl_backend *backend = tape != NULL ? tape->options.backend : NULL;

    if (tape == NULL)
        return;
    for (uint32_t i = 0; i < tape->n_stores; i++)
        if (tape->store[i].n_tensors > 0 && tape->store[i].kind == MPL_STORE_OWN)
            backend->arena_free(tape->options.dev, tape->store[i].at, tape->store[i].bytes);
    mpl_trace_fini(ctx, &tape->trace);
    for (uint32_t i = 0; i < tape->n_kept; i++) {
        mpl_trace_fini(ctx, tape->kept[i]);
        mpl_free(ctx, tape->kept[i]);
    }
    mpl_kernels_sweep(tape, true);
    mpl_online_free(ctx, tape->online);
    if (tape->range != NULL)
        munmap(tape->range, tape->range_bytes);
    backend->arena_free(tape->options.dev, tape->arena, tape->arena_bytes);
    backend->arena_free(tape->options.dev, tape->nothing, 1);
    for (uint32_t i = 0; i < tape->n_names; i++)
        mpl_free(ctx, tape->name[i]);
    mpl_free_each(ctx, tape->name, tape->slot, tape->store, tape->kept, tape);
}

/* ---- tensors from outside ---- */

/* A copy of the name that the tape keeps; one for equal names. */
static mpl_status keep_name(mpl_tape *tape, const char *name, const char **out)
{
    *out = NULL;
    for (uint32_t i = 0; name != NULL && i < tape->n_names && *out == NULL; i++)
        if (strcmp(tape->name[i], name) == 0)
            *out = tape->name[i];
    if (name == NULL || *out != NULL)
        return MPL_OK;
    MPL_PASS(mpl_reserve(tape->ctx, tape->name, tape->name_room, (size_t)tape->n_names + 1));
    MPL_PASS(mpl_copy_text(tape->ctx, tape->name[tape->n_names], name));
    *out = tape->name[tape->n_names++];
    return MPL_OK;
}

static mpl_status add_outer(mpl_tape *tape, const char *name, mpl_type type, const mpl_shape *shape,
                            const void *data, uint32_t *slot)
{
    mpl_status st = MPL_OK;
    uint64_t count, bytes;
    uint32_t store = MPL_NONE;
    const char *kept;
    void *at = NULL;

    if (shape->rank > MPL_MAX_RANK || !mpl_shape_count(shape, &count) ||
        !mpl_type_size(type, count, &bytes))
        MPL_FAIL(tape->ctx, MPL_EINPUT, "tape: tensor '%.100s' has no such shape",
                 name != NULL ? name : "");
    MPL_TRY(keep_name(tape, name, &kept));
    MPL_TRY(new_store(tape, &store));
    MPL_TRY(tape->options.backend->arena_new(tape->options.dev, bytes, &at));
    tape->store[store].at = at;
    tape->store[store].bytes = bytes;
    tape->store[store].kind = MPL_STORE_OWN;
    if (data != NULL)
        MPL_TRY(tape->options.backend->upload(tape->options.dev, at, data, bytes));
    MPL_TRY(new_slot(tape, type, shape, store, slot));
    tape->slot[*slot].name = kept;
    store = MPL_NONE;
out:
    if (store != MPL_NONE)
        (void)drop_store(tape, store);
    return st;
}

mpl_status mpl_tape_input(mpl_tape *tape, const char *name, mpl_type type, const mpl_shape *shape,
                          const void *data, mpl_handle *out)
{
    uint32_t slot = MPL_NONE;

    MPL_PASS(add_outer(tape, name, type, shape, data, &slot));
    *out = handle_of(tape, slot);
    return MPL_OK;
}

mpl_status mpl_tape_weight(mpl_tape *tape, const char *name, mpl_type type, const mpl_shape *shape,
                           const void *data, bool changes, mpl_handle *out)
{
    uint32_t slot = MPL_NONE;

    MPL_PASS(add_outer(tape, name, type, shape, data, &slot));
    tape->slot[slot].is_weight = true;
    tape->slot[slot].changes = changes;
    *out = handle_of(tape, slot);
    return MPL_OK;
}

mpl_status mpl_tape_write(mpl_tape *tape, mpl_handle weight, const void *data)
{
    const mpl_slot *slot = find_slot(tape, weight);

    if (slot == NULL || !slot->changes)
        return MPL_REFUSE(tape->ctx, "tape: only a weight that changes can be written");
    return tape->options.backend->upload(tape->options.dev, tape->store[slot->store].at, data,
                                         tape->store[slot->store].bytes);
}

mpl_status mpl_tape_read(mpl_tape *tape, mpl_handle h, void *data)
{
    const mpl_slot *slot = find_slot(tape, h);

    MPL_PASS(check_handle(tape, h));
    if (tape->mode == MPL_TAPE_EAGER && slot->traced != MPL_NONE)
        tape->trace.value[slot->traced].read = true;
    MPL_PASS(tape->options.backend->wait(tape->options.dev));
    return tape->options.backend->download(tape->options.dev, data, tape->store[slot->store].at,
                                           tape->store[slot->store].bytes);
}

mpl_status mpl_tape_form(mpl_tape *tape, mpl_handle h, mpl_type *type, mpl_shape *shape)
{
    MPL_PASS(check_handle(tape, h));
    *type = find_slot(tape, h)->type;
    *shape = find_slot(tape, h)->shape;
    return MPL_OK;
}

/* ---- following a plan, and leaving it ---- */

static bool is_last(const mpl_tape_call *call, uint32_t i)
{
    return call->last != NULL && call->last[i] != 0;
}

/* Whether the call is the next one of the trace that is followed. */
static bool is_next(const mpl_tape *tape, const mpl_tape_call *call)
{
    const mpl_trace *trace = tape->plan;
    const mpl_traced_op *op = &trace->op[tape->at_op];
    uint32_t next = tape->at_value;

    if (tape->at_op == trace->n_ops || op->released != tape->at_release ||
        !mpl_kernel_fits(tape, op->kernel, call))
        return false;
    for (uint32_t i = 0; i < call->n_in; i++) {
        uint32_t v = trace->operand[op->in + i];
        const mpl_slot *slot = &tape->slot[(uint32_t)call->in[i]];

        if (trace->last[op->in + i] != is_last(call, i))
            return false;
        if (call->in[i] == 0 || slot->traced == v)
            continue;
        if (slot->traced != MPL_NONE || trace->value[v].made ||
            trace->value[v].weight != (slot->is_weight ? call->in[i] : 0))
            return false;
        if (v == next) { /* it appears here, and is no operand before this one */
            next++;
            for (uint32_t j = 0; j < i; j++)
                if (call->in[j] == call->in[i])
                    return false;
        } else { /* an operand before this one appeared as the same value */
            uint32_t j = 0;

            while (j < i && (call->in[j] != call->in[i] || trace->operand[op->in + j] != v))
                j++;
            if (j == i)
                return false;
        }
    }
    return true;
}

/* At the first call of a step: by the plan of the trace most recently used that begins so, or
 * eagerly. */
static void choose(mpl_tape *tape, const mpl_tape_call *call)
{
    tape->mode = MPL_TAPE_EAGER;
    tape->at_op = tape->at_release = tape->at_value = 0;
    for (uint32_t i = tape->n_kept; i > 0 && !tape->forgoes; i--) {
        tape->plan = tape->kept[i - 1];
        if (is_next(tape, call)) {
            tape->mode = MPL_TAPE_PLANNED;
            return;
        }
    }
    tape->plan = NULL;
}

mpl_status mpl_tape_diverge(mpl_tape *tape)
{
    mpl_trace trace = {0};
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_trace_prefix(tape->ctx, tape->plan, tape->at_op, tape->at_value, tape->at_release,
                             &trace));
    for (uint32_t i = 0; i < tape->n_stores; i++) {
        mpl_store *store = &tape->store[i];
        char *at;

        if (store->n_tensors > 0 && store->traced != MPL_NONE)
            trace.store[store->traced].death = MPL_NONE;
        if (store->n_tensors == 0 || store->kind != MPL_STORE_PLANNED || store->bytes == 0)
            continue;
        MPL_TRY(take_online(tape, store->bytes, &store->block, &at));
        memcpy(at, store->at, store->bytes);
        store->at = at;
        store->kind = MPL_STORE_ONLINE;
    }
    tape->trace = trace;
    memset(&trace, 0, sizeof trace);
    tape->plan = NULL;
    tape->mode = MPL_TAPE_EAGER;
    tape->diverged = true;
out:
    mpl_trace_fini(tape->ctx, &trace);
    return st;
}

/* ---- a call ---- */

static bool is_omitted(const mpl_tape_call *call, uint32_t i)
{
    return call->omitted != NULL && call->omitted[i] != 0;
}

static mpl_status check_call(mpl_tape *tape, const mpl_tape_call *call)
{
    const mpl_op_info *info = &mpl_op_table[call->kind];

    if ((info->traits & MPL_CONTROL) != 0)
        return MPL_REFUSE(tape->ctx, "tape: %s is control flow, which the program decides",
                          info->name);
    for (uint32_t i = 0; i < call->n_in; i++) {
        uint32_t refs = 0;

        if (call->in[i] != 0)
            MPL_PASS(check_handle(tape, call->in[i]));
        for (uint32_t j = 0; j <= i && is_last(call, i); j++)
            refs += call->in[j] == call->in[i] && is_last(call, j);
        if (is_last(call, i) && (call->in[i] == 0 || refs > find_slot(tape, call->in[i])->n_refs))
            return MPL_REFUSE(tape->ctx, "tape: operand %u of %s is released twice", i, info->name);
    }
    return MPL_OK;
}

/* An update must be of a weight that changes, once a step: traces are graphs, whose values are made
 * once. */
static mpl_status check_updates(mpl_tape *tape, const mpl_kernel *kernel, const mpl_tape_call *call)
{
    for (uint32_t i = 0; i < call->n_out; i++) {
        uint32_t at = mpl_kernel_updated(kernel, i);
        const mpl_slot *slot = at != MPL_NONE ? find_slot(tape, call->in[at]) : NULL;

        if (slot != NULL && (!slot->changes || tape->store[slot->store].step == tape->step))
            return MPL_REFUSE(tape->ctx, "tape: operand %u of %s is updated, and is %s", at,
                              kernel->g->op_name[0],
                              slot->changes ? "updated a second time in a step"
                                            : "no weight that changes");
    }
    return MPL_OK;
}

/* The operand whose store result i shares; MPL_NONE: it has one of its own. */
static uint32_t shared_operand(const mpl_kernel *kernel, uint32_t i)
{
    return mpl_kernel_is_view(kernel) ? 0 : mpl_kernel_updated(kernel, i);
}

/* Memory of a new result: the plan's, or the allocator's. */
static mpl_status place(mpl_tape *tape, uint32_t result, uint64_t bytes, uint32_t store)
{
    mpl_store *s = &tape->store[store];
    const mpl_trace *trace = tape->plan;
    const mpl_traced_store *planned = NULL;

    if (trace != NULL) {
        s->traced = trace->value[trace->result[trace->op[tape->at_op].out + result]].store;
        planned = &trace->store[s->traced];
    }
    if (planned != NULL && planned->death != MPL_NONE && bytes > 0) {
        s->at = (char *)tape->arena + planned->offset;
    } else if (bytes > 0) {
        MPL_PASS(take_online(tape, bytes, &s->block, &s->at));
        s->kind = MPL_STORE_ONLINE;
    }
    s->bytes = bytes;
    return MPL_OK;
}

static mpl_status make_result(mpl_tape *tape, const mpl_kernel *kernel, const mpl_tape_call *call,
                              uint32_t i, mpl_handle *out)
{
    mpl_status st = MPL_OK;
    uint32_t from = shared_operand(kernel, i), store = MPL_NONE, slot;
    mpl_value v = kernel->g->op_out[i];

    if (from != MPL_NONE) {
        store = find_slot(tape, call->in[from])->store;
    } else {
        MPL_TRY(new_store(tape, &store));
        MPL_TRY(place(tape, i, kernel->g->value_bytes[v], store));
    }
    MPL_TRY(new_slot(tape, kernel->out[i].type, &kernel->out[i].shape, store, &slot));
    if (from == MPL_NONE)
        MPL_TRY(poison(tape, &tape->store[store]));
    *out = handle_of(tape, slot);
out:
    if (st != MPL_OK && from == MPL_NONE && store != MPL_NONE)
        (void)drop_store(tape, store);
    return st;
}

static void drop_results(mpl_tape *tape, uint32_t n, mpl_handle *out)
{
    bool died;

    for (uint32_t i = n; i > 0; i--)
        if (out[i - 1] != 0) {
            (void)drop_slot(tape, (uint32_t)out[i - 1], &died);
            out[i - 1] = 0;
        }
}

static mpl_status compute(mpl_tape *tape, mpl_kernel *kernel, const mpl_tape_call *call,
                          const mpl_handle *out)
{
    mpl_status st = MPL_OK;
    uint32_t block = MPL_NONE;
    char *workspace = NULL;
    mpl_op_call run = {.graph = kernel->g,
                       .n_in = call->n_in,
                       .n_out = call->n_out,
                       .in = kernel->in,
                       .out = kernel->out};

    if (mpl_kernel_is_view(kernel))
        return MPL_OK;
    if (kernel->workspace_bytes > 0 && tape->plan != NULL)
        workspace = (char *)tape->arena + tape->plan->op[tape->at_op].offset;
    else if (kernel->workspace_bytes > 0)
        MPL_TRY(take_online(tape, kernel->workspace_bytes, &block, &workspace));
    for (uint32_t i = 0; i < call->n_in; i++)
        if (call->in[i] != 0)
            kernel->in[i].data = tape->store[find_slot(tape, call->in[i])->store].at;
    for (uint32_t i = 0; i < call->n_out; i++)
        if (out[i] != 0)
            kernel->out[i].data = tape->store[find_slot(tape, out[i])->store].at;
    run.workspace = workspace;
    MPL_TRY(tape->options.backend->run_op(tape->options.dev, kernel->prepared, &run));
out:
    if (block != MPL_NONE) {
        mpl_status given = mpl_online_give_back(tape->online, block);

        st = st != MPL_OK ? st : given;
    }
    return st;
}

/* ---- recording ---- */

/* Room for one more operation, so that recording it cannot fail. */
static mpl_status make_room(mpl_tape *tape, const mpl_tape_call *call)
{
    mpl_trace *trace = &tape->trace;
    size_t n = (size_t)call->n_in + call->n_out + 1;

    MPL_PASS(mpl_reserve(tape->ctx, trace->op, trace->op_room, (size_t)trace->n_ops + 2));
    MPL_PASS(mpl_reserve(tape->ctx, trace->value, trace->value_room, trace->n_values + n));
    MPL_PASS(mpl_reserve(tape->ctx, trace->store, trace->store_room, trace->n_stores + n));
    MPL_PASS(mpl_reserve(tape->ctx, trace->operand, trace->operand_room, trace->n_operands + n));
    MPL_PASS(mpl_reserve(tape->ctx, trace->last, trace->last_room, trace->n_operands + n));
    MPL_PASS(mpl_reserve(tape->ctx, trace->result, trace->result_room, trace->n_results + n));
    return mpl_reserve(tape->ctx, trace->release, trace->release_room, trace->n_values + n);
}

static void record_operand(mpl_tape *tape, mpl_handle h, bool last)
{
    mpl_trace *trace = &tape->trace;
    mpl_slot *slot = h != 0 ? find_slot(tape, h) : NULL;

    if (slot != NULL && slot->traced == MPL_NONE) {
        slot->traced = trace->n_values++;
        trace->value[slot->traced] = (mpl_traced){.type = slot->type,
                                                  .shape = slot->shape,
                                                  .store = MPL_NONE,
                                                  .weight = slot->is_weight ? h : 0,
                                                  .root = slot->traced,
                                                  .name = slot->name};
    }
    trace->last[trace->n_operands] = last;
    trace->operand[trace->n_operands++] = slot != NULL ? slot->traced : MPL_NONE;
}

static void record_result(mpl_tape *tape, const mpl_kernel *kernel, uint32_t first_in, uint32_t i,
                          mpl_handle h)
{
    mpl_trace *trace = &tape->trace;
    mpl_slot *slot = h != 0 ? find_slot(tape, h) : NULL;
    uint32_t from = shared_operand(kernel, i), v = trace->n_values;

    trace->result[trace->n_results++] = slot != NULL ? v : MPL_NONE;
    if (slot == NULL)
        return;
    trace->value[v] = (mpl_traced){.type = slot->type,
                                   .shape = slot->shape,
                                   .store = trace->n_stores,
                                   .made = true,
                                   .root = MPL_NONE};
    if (from != MPL_NONE) {
        trace->value[v].store = trace->value[trace->operand[first_in + from]].store;
        trace->value[v].root = trace->value[trace->operand[first_in + from]].root;
    } else {
        trace->store[trace->n_stores] = (mpl_traced_store){
            .bytes = tape->store[slot->store].bytes, .birth = trace->n_ops, .death = MPL_NONE};
        tape->store[slot->store].traced = trace->n_stores++;
    }
    slot->traced = trace->n_values++;
}

static void record(mpl_tape *tape, mpl_kernel *kernel, const mpl_tape_call *call,
                   const mpl_handle *out)
{
    mpl_trace *trace = &tape->trace;

    trace->op[trace->n_ops] =
        (mpl_traced_op){kernel, trace->n_operands, trace->n_results, trace->n_releases, 0};
    for (uint32_t i = 0; i < call->n_in; i++)
        record_operand(tape, call->in[i], is_last(call, i));
    for (uint32_t i = 0; i < call->n_out; i++)
        record_result(tape, kernel, trace->op[trace->n_ops].in, i, out[i]);
    trace->n_ops++;
    kernel->n_held++;
}

/* The call was that of the plan: its operands and results are the values of the trace. */
static void advance(mpl_tape *tape, const mpl_tape_call *call, const mpl_handle *out)
{
    const mpl_trace *trace = tape->plan;
    const mpl_traced_op *op = &trace->op[tape->at_op++];

    for (uint32_t i = 0; i < call->n_in; i++)
        if (call->in[i] != 0 && find_slot(tape, call->in[i])->traced == MPL_NONE) {
            find_slot(tape, call->in[i])->traced = trace->operand[op->in + i];
            tape->at_value++;
        }
    for (uint32_t i = 0; i < call->n_out; i++)
        if (out[i] != 0) {
            find_slot(tape, out[i])->traced = trace->result[op->out + i];
            tape->at_value++;
        }
}

/* ---- references ---- */

/* The store died before operation n_ops of the trace; taken: by the call before it. */
static mpl_status drop(mpl_tape *tape, uint32_t slot, bool taken)
{
    uint32_t traced = tape->store[tape->slot[slot].store].traced;
    bool died;

    MPL_PASS(drop_slot(tape, slot, &died));
    if (died && tape->mode == MPL_TAPE_EAGER && traced != MPL_NONE) {
        tape->trace.store[traced].death = tape->trace.n_ops;
        tape->trace.store[traced].taken = taken;
    }
    return MPL_OK;
}

mpl_status mpl_tape_retain(mpl_tape *tape, mpl_handle h)
{
    MPL_PASS(check_handle(tape, h));
    find_slot(tape, h)->n_refs++;
    return MPL_OK;
}

mpl_status mpl_tape_release(mpl_tape *tape, mpl_handle h)
{
    mpl_slot *slot = find_slot(tape, h);
    const mpl_trace *trace = tape->plan;
    bool counts;

    MPL_PASS(check_handle(tape, h));
    if (slot->n_refs > 1)
        return slot->n_refs--, MPL_OK;
    counts = slot->traced != MPL_NONE && tape->store[slot->store].traced != MPL_NONE;
    if (trace != NULL && counts &&
        (tape->at_release == trace->n_releases ||
         trace->release[tape->at_release] != slot->traced ||
         (tape->at_op < trace->n_ops && tape->at_release == trace->op[tape->at_op].released)))
        MPL_PASS(mpl_tape_diverge(tape));
    else if (trace != NULL && counts)
        tape->at_release++;
    if (tape->mode == MPL_TAPE_EAGER && counts)
        tape->trace.release[tape->trace.n_releases++] = slot->traced;
    return drop(tape, (uint32_t)h, false);
}

/* The references that the call releases itself. */
static mpl_status release_last(mpl_tape *tape, const mpl_tape_call *call)
{
    for (uint32_t i = 0; i < call->n_in; i++) {
        mpl_slot *slot = is_last(call, i) ? find_slot(tape, call->in[i]) : NULL;

        if (slot != NULL && slot->n_refs > 1)
            slot->n_refs--;
        else if (slot != NULL)
            MPL_PASS(drop(tape, (uint32_t)call->in[i], true));
    }
    return MPL_OK;
}

mpl_status mpl_tape_run(mpl_tape *tape, const mpl_tape_call *call, mpl_handle *out)
{
    mpl_status st = MPL_OK;
    mpl_kernel *kernel;
    bool follows, done = false;

    memset(out, 0, call->n_out * sizeof *out);
    MPL_TRY(check_call(tape, call));
    if (tape->plan == NULL && tape->trace.n_ops == 0 && !tape->diverged)
        choose(tape, call);
    follows = tape->plan != NULL && is_next(tape, call);
    if (follows)
        kernel = tape->plan->op[tape->at_op].kernel;
    else
        MPL_TRY(mpl_kernel_get(tape, call, &kernel));
    MPL_TRY(check_updates(tape, kernel, call));
    if (tape->plan != NULL && !follows)
        MPL_TRY(mpl_tape_diverge(tape));
    kernel->used = tape->step;
    if (tape->plan == NULL)
        MPL_TRY(make_room(tape, call));
    for (uint32_t i = 0; i < call->n_out; i++)
        if (!is_omitted(call, i))
            MPL_TRY(make_result(tape, kernel, call, i, &out[i]));
    MPL_TRY(compute(tape, kernel, call, out));
    for (uint32_t i = 0; i < call->n_out; i++) {
        uint32_t at = mpl_kernel_updated(kernel, i);

        if (at != MPL_NONE)
            tape->store[find_slot(tape, call->in[at])->store].step = tape->step;
    }
    if (tape->plan != NULL)
        advance(tape, call, out);
    else
        record(tape, kernel, call, out);
    done = true;
    st = release_last(tape, call);
out:
    if (!done)
        drop_results(tape, call->n_out, out);
    return st;
}
