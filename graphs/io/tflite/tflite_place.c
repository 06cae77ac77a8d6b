/* tflite_place.c -- a model's tensors as TensorFlow Lite Micro places them, and the model with
 * offsets of ours for them.
 *
 * Source   tflite-micro, micro_allocator.cc and docs/memory_management.md: the planner rounds every
 *          size up to 16 bytes; the metadata "OfflineMemoryAllocation" names a buffer with version,
 *          subgraph, n, and n offsets, -1 for what the run places around the others.
 * Written  A file that has the metadata gets other numbers at the same place. Elsewhere a block is
 *          put before the tables: all offsets of FlatBuffers lead forward, so that a new root can
 *          name what stands behind it, and no other byte changes. */
#include "graphs/io/tflite/tflite_priv.h"

static const char note[] = "OfflineMemoryAllocation";
enum {
    MICRO_ALIGN = 16,
    BLOCK_ALIGN = 64,
    MODEL_FIELDS = 8,
    HEAD_BYTES = 8,
    NOTE_HEAD = 3,
    MOST_SCRATCH = 4
};

/* ---- the problem ---- */

static mpl_status check(const tfl_model *model)
{
    flat_vector graphs = tfl_list(&model->root, TFL_Model_subgraphs);

    if (graphs.n != 1)
        return MPL_ERROR(model->ctx, MPL_EUNAVAIL,
                         "%.200s: it has %u subgraphs; offsets are written for models of one",
                         model->path, graphs.n);
    for (uint32_t i = 0; model->offset != NULL && i < model->n_tensors; i++)
        if (tfl_is_planned(&model->tensor[i]) && model->offset[i] >= 0 && tfl_is_part(model, i))
            return MPL_ERROR(model->ctx, MPL_EUNAVAIL,
                             "%.200s: tensor '%.100s' lies inside the scratch memory of a compiled "
                             "operator, which fixes its place",
                             model->path, model->tensor[i].name);
    return MPL_OK;
}

/* What the reference kernel of an operator asks for while it runs; the number of its pieces.
 * Source: tflite-micro, kernels/svdf_common.cc, unidirectional_sequence_lstm.cc, transpose_conv.cc,
 * reduce_common.cc. Other operators that are read here ask for none. */
static uint32_t scratch_of(const tfl_model *model, uint32_t op, uint64_t bytes[MOST_SCRATCH])
{
    enum { SVDF = 27, MEAN = 40, LSTM = 44, TRANSPOSE_CONV = 67, CELL_STATE = 19, WORD = 4 };
    const tfl_operator *o = &model->op[op];
    const tfl_tensor *in = o->n_in > 0 && o->in[0] != MPL_NONE ? &model->tensor[o->in[0]] : NULL;
    const tfl_tensor *out =
        o->n_out > 0 && o->out[0] != MPL_NONE ? &model->tensor[o->out[0]] : NULL;
    bool whole = in != NULL && in->type != MPL_TYPE_f32;
    uint64_t n_out = 0;

    if (o->custom != NULL || in == NULL || out == NULL || !mpl_shape_count(&out->shape, &n_out))
        return 0;
    if (o->code == SVDF && o->n_in > 1 && o->in[1] != MPL_NONE && in->shape.rank == 2) {
        bytes[0] = (uint64_t)(in->shape.dim[0] * model->tensor[o->in[1]].shape.dim[0]) * WORD;
        bytes[1] = n_out * WORD;
        return whole ? 2 : 1;
    }
    if (o->code == LSTM && o->n_in > CELL_STATE && o->in[CELL_STATE] != MPL_NONE) {
        for (uint32_t k = 0; k < MOST_SCRATCH; k++)
            bytes[k] = model->tensor[o->in[CELL_STATE]].bytes;
        return MOST_SCRATCH;
    }
    bytes[0] = n_out * WORD;
    return whole && (o->code == MEAN || o->code == TRANSPOSE_CONV) ? 1 : 0;
}

/* Adds the pieces of all operators, as they are asked for, from buffer n on, or only counts them (p
 * NULL). */
static uint32_t add_scratch(const tfl_model *model, mpl_problem *p, uint32_t n, uint32_t *tensor)
{
    uint64_t bytes[MOST_SCRATCH];
    uint32_t from = n;

    for (uint32_t op = 0; op < model->n_operators; op++)
        for (uint32_t k = 0, pieces = scratch_of(model, op, bytes); k < pieces; k++) {
            if (bytes[k] == 0)
                continue;
            if (p != NULL) {
                p->bytes[n] = mpl_align_up(bytes[k], MICRO_ALIGN);
                p->align[n] = MICRO_ALIGN;
                p->birth[n] = op + 1;
                p->death[n] = op + 2;
                tensor[n] = MPL_NONE;
            }
            n++;
        }
    return n - from;
}

static mpl_status fill(tfl_model *model, mpl_problem *p, uint32_t *tensor)
{
    char label[40];
    mpl_tflite_tensor life;
    uint32_t n = 0;

    MPL_PASS(mpl_new(model->ctx, p->buffer_name, p->n));
    for (uint32_t i = 0; i < model->n_tensors; i++) {
        if (!tfl_is_planned(&model->tensor[i]))
            continue;
        tfl_set_life(model, &model->tensor[i], &life);
        p->bytes[n] = mpl_align_up(model->tensor[i].bytes, MICRO_ALIGN);
        p->align[n] = MICRO_ALIGN;
        p->birth[n] = life.birth;
        p->death[n] = life.death;
        p->n_steps = life.death > p->n_steps ? life.death : p->n_steps;
        p->buffer_name[n] = model->tensor[i].name;
        model->tensor[i].name = NULL;
        tensor[n++] = i;
    }
    add_scratch(model, p, n, tensor);
    for (; n < p->n; n++) {
        snprintf(label, sizeof label, "scratch of operator %" PRIu32 " (%" PRIu32 ")",
                 p->birth[n] - 1, n);
        MPL_PASS(mpl_copy_text(model->ctx, p->buffer_name[n], label));
    }
    return mpl_problem_check(model->ctx, p);
}

mpl_status mpl_tflite_problem(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                              mpl_problem **out, uint32_t **tensor)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    uint32_t *ids = NULL, n = 0;
    tfl_model m;

    MPL_TRY(tfl_open(ctx, path, data, size, &m));
    MPL_TRY(tfl_offsets(&m, &m.offset));
    MPL_TRY(check(&m));
    for (uint32_t i = 0; i < m.n_tensors; i++)
        n += tfl_is_planned(&m.tensor[i]);
    if (n == 0)
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s: no tensor of it is placed at run time", path);
    n += add_scratch(&m, NULL, n, NULL);
    MPL_TRY(mpl_problem_new(ctx, path, n, &p));
    MPL_TRY(mpl_new(ctx, ids, n));
    MPL_TRY(fill(&m, p, ids));
    *out = p, p = NULL;
    *tensor = ids, ids = NULL;
out:
    mpl_free(ctx, ids);
    mpl_problem_free(ctx, p);
    tfl_close(&m);
    return st;
}

/* ---- the model with offsets ---- */

static void put(uint8_t *at, uint64_t x, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(x >> 8 * i);
}

static void put_offsets(uint8_t *at, uint32_t n, const uint32_t *tensor, const uint64_t *offset)
{
    for (uint32_t i = 0; i < n; i++)
        if (tensor[i] != MPL_NONE)
            put(at + 4 * (size_t)tensor[i], offset[i], 4);
}

/* The block before the tables, as it grows. Positions are those of the new file; what was at `x` is
 * then at x + shift. */
typedef struct block {
    uint8_t *data; /* NULL: only measured */
    size_t end, shift;
} block;

static size_t take(block *self, size_t bytes, size_t align)
{
    size_t at = mpl_align_up(self->end, align);

    self->end = at + bytes;
    return at;
}

static void set(block *self, size_t at, uint64_t x, unsigned bytes)
{
    if (self->data != NULL)
        put(self->data + at, x, bytes);
}

/* A table whose fields have 4 bytes each: its list of fields, then itself; has[i]: field i is
 * there. The fields are at the result + 4 + 4 k, in order. */
static size_t add_table(block *self, uint32_t n, const bool *has)
{
    size_t list = take(self, 4 + 2 * (size_t)n, 4), at;
    uint32_t k = 0;

    for (uint32_t i = 0; i < n; i++)
        if (has[i])
            set(self, list + 4 + 2 * (size_t)i, 4 + 4 * k++, 2);
    at = take(self, 4 + 4 * (size_t)k, 4);
    set(self, list, 4 + 2 * (size_t)n, 2);
    set(self, list + 2, 4 + 4 * (size_t)k, 2);
    set(self, at, at - list, 4);
    return at;
}

static void link_to(block *self, size_t from, size_t to)
{
    set(self, from, to - from, 4);
}

/* The old vector of tables with one more item; *last: where that has to be linked. */
static size_t add_list(block *self, const flat_vector *old, size_t *last)
{
    size_t at = take(self, 8 + 4 * (size_t)old->n, 4);

    set(self, at, (uint64_t)old->n + 1, 4);
    for (uint32_t i = 0; i < old->n; i++)
        link_to(self, at + 4 + 4 * (size_t)i, flat_item(old, i).at + self->shift);
    *last = at + 4 + 4 * (size_t)old->n;
    return at;
}

/* The buffer with the offsets of all tensors; where its numbers begin. */
static size_t add_buffer(block *self, uint32_t n_tensors, size_t from)
{
    size_t bytes = 4 * ((size_t)NOTE_HEAD + n_tensors);
    size_t at = add_table(self, 1, (const bool[]){true}), data = take(self, 4, 4);

    while ((data + 4) % MICRO_ALIGN != 0)
        data = take(self, 4, 4);
    link_to(self, from, at);
    link_to(self, at + 4, data);
    set(self, data, bytes, 4);
    data = take(self, bytes, 4);
    set(self, data, 1, 4);
    set(self, data + 8, n_tensors, 4);
    for (uint32_t i = 0; i < n_tensors; i++)
        set(self, data + 4 * (NOTE_HEAD + (size_t)i), UINT32_MAX, 4);
    return data;
}

static void add_note(block *self, uint32_t buffer, size_t from)
{
    size_t at = add_table(self, 2, (const bool[]){true, true}),
           text = take(self, 4 + sizeof note, 4);

    link_to(self, from, at);
    link_to(self, at + 4, text);
    set(self, at + 8, buffer, 4);
    set(self, text, sizeof note - 1, 4);
    for (size_t i = 0; i < sizeof note; i++)
        set(self, text + 4 + i, (uint8_t)note[i], 1);
}

/* Fills the block; where the numbers of the offsets begin. Field 0 of a model is a number, all
 * others are vectors. */
static size_t add_root(tfl_model *model, block *b)
{
    enum { BUFFERS = 4, METADATA = 6 };
    flat_vector metadata = tfl_list(&model->root, TFL_Model_metadata);
    size_t old[MODEL_FIELDS] = {0}, at, field, buffers, notes, to_buffer, to_note, numbers;
    bool has[MODEL_FIELDS] = {true};

    for (unsigned i = 1; i < MODEL_FIELDS; i++) {
        old[i] = flat_list(&model->root, i, 1).at;
        has[i] = old[i] > 0 || i == METADATA;
    }
    at = add_table(b, MODEL_FIELDS, has);
    link_to(b, 0, at);
    buffers = add_list(b, &model->buffers, &to_buffer);
    notes = add_list(b, &metadata, &to_note);
    set(b, at + 4, (uint64_t)tfl_int(&model->root, TFL_Model_version), 4);
    field = at + 8;
    for (unsigned i = 1; i < MODEL_FIELDS; i++) {
        if (!has[i])
            continue;
        link_to(b, field, i == BUFFERS ? buffers : i == METADATA ? notes : old[i] - 4 + b->shift);
        field += 4;
    }
    add_note(b, model->buffers.n, to_note);
    numbers = add_buffer(b, model->n_tensors, to_buffer);
    return numbers;
}

static mpl_status insert_block(tfl_model *model, uint32_t n, const uint32_t *tensor,
                               const uint64_t *offset, uint8_t **out, size_t *out_size)
{
    block b = {NULL, HEAD_BYTES, 0};
    size_t old_bytes = model->file.size - HEAD_BYTES, numbers;

    if (model->root.n_fields > MODEL_FIELDS)
        return MPL_ERROR(model->ctx, MPL_EUNAVAIL, "%.200s: its root has %u fields; %d are known",
                         model->path, model->root.n_fields, MODEL_FIELDS);
    for (uint32_t i = 0; i < model->buffers.n; i++) {
        flat_table one = flat_item(&model->buffers, i);

        if (tfl_int(&one, TFL_Buffer_offset) > 1)
            return MPL_ERROR(model->ctx, MPL_EUNAVAIL,
                             "%.200s: buffer %u stands behind the tables, at a fixed place",
                             model->path, i);
    }
    add_root(model, &b);
    b.shift = mpl_align_up(b.end - HEAD_BYTES, BLOCK_ALIGN);
    if (model->file.size > INT32_MAX - b.shift)
        return MPL_REFUSE(model->ctx, "%.200s: with its offsets it would exceed 2 GiB",
                          model->path);
    MPL_PASS(mpl_new(model->ctx, *out, model->file.size + b.shift));
    memcpy(*out, model->file.data, HEAD_BYTES);
    memcpy(*out + HEAD_BYTES + b.shift, model->file.data + HEAD_BYTES, old_bytes);
    *out_size = model->file.size + b.shift;
    b.data = *out;
    b.end = HEAD_BYTES;
    numbers = add_root(model, &b);
    put_offsets(*out + numbers + 4 * NOTE_HEAD, n, tensor, offset);
    return model->file.fault != NULL
               ? MPL_REFUSE(model->ctx, "%.200s: %s", model->path, model->file.fault)
               : MPL_OK;
}

mpl_status mpl_tflite_place(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                            uint32_t n, const uint32_t *tensor, const uint64_t *offset,
                            uint8_t **out, size_t *out_size)
{
    mpl_status st = MPL_OK;
    const uint8_t *there;
    uint8_t *text = NULL;
    uint64_t bytes;
    tfl_model m;

    MPL_TRY(tfl_open(ctx, path, data, size, &m));
    MPL_TRY(tfl_offsets(&m, &m.offset));
    MPL_TRY(check(&m));
    for (uint32_t i = 0; i < n; i++)
        if (tensor[i] != MPL_NONE && (tensor[i] >= m.n_tensors || offset[i] > INT32_MAX))
            MPL_FAIL(ctx, MPL_EINPUT,
                     "%.200s: offset %" PRIu64 " of tensor %u; the format ends at "
                     "2^31 - 1",
                     path, offset[i], tensor[i]);
    if (m.offset == NULL) {
        MPL_TRY(insert_block(&m, n, tensor, offset, &text, out_size));
    } else {
        MPL_TRY(tfl_metadata(&m, note, &there, &bytes));
        MPL_TRY(mpl_new(ctx, text, size));
        memcpy(text, data, size);
        put_offsets(text + (there - m.file.data) + 4 * NOTE_HEAD, n, tensor, offset);
        *out_size = size;
    }
    *out = text, text = NULL;
out:
    mpl_free(ctx, text);
    tfl_close(&m);
    return st;
}
