/* inductor.c -- pools in the wrapper code that PyTorch's Inductor generates.
 *
 * Source   pytorch, torch/_inductor/codegen/memory_planning.py, on with
 *          torch._inductor.config.memory_planning = True:
 *            pool0 = empty_strided_cpu((131280, ), (1, ), torch.uint8)
 *            pool1 = empty_strided_cpu((1, 1000), (1000, 1), torch.float32)
 *            buf4 = alloc_from_pool(pool0, 0, torch.float32, (8, 8, 3, 3), (72, 1, 24, 8))
 *            buf3 = buf2; del buf2  # reuse
 *            buf19 = buf7  # alloc
 * Lives    Statements of call() are the steps; a buffer lives from the first that names it behind
 *          its own line to the last. A reuse is the same buffer; an alloc is a new one at the same
 *          place.
 * Places   A pool is a block, at multiples of 64 bytes (ALIGN_BYTES there). What a pool's tensors
 *          could share with those of another pool counts as the plan's loss.
 * Limits   The first call() of the file; sizes that are numbers. What is allocated otherwise
 *          (results of extern kernels, empty_strided) is not planned, and left out. */
#include "planners/import/base/import_script.h"

enum { ALIGN = 64 };

bool mpl_import_is_inductor(const mpl_import_in *in)
{
    return mpl_text_has(in->text, in->size, "torch._inductor") &&
           mpl_text_has(in->text, in->size, "def call(");
}

static mpl_status read_pool(mpl_script *script, const char *name, size_t n, const char *rest)
{
    const char *end = script->lines.text + script->lines.n,
               *open = memchr(rest, '(', (size_t)(end - rest));
    uint64_t bytes = 0;

    MPL_PASS(mpl_script_tensor_bytes(script, open != NULL ? open + 1 : end, '(', ')', &bytes));
    return mpl_script_pool(script, name, n, bytes);
}

/* rest: what stands behind "alloc_from_pool(". */
static mpl_status read_buffer(mpl_script *script, const char *name, size_t n, const char *rest)
{
    const char *end = script->lines.text + script->lines.n,
               *comma = memchr(rest, ',', (size_t)(end - rest));
    uint64_t block, offset, bytes = 0;

    if (comma == NULL)
        comma = end;
    block = mpl_names_get(&script->pools, rest, (size_t)(comma - rest));
    if (block == UINT64_MAX || end - comma < 3 || mpl_digits(comma + 2, end, &offset) == NULL)
        return MPL_REFUSE(script->ctx,
                          "%.200s:%u: it should be 'alloc_from_pool(pool, offset, type, dims, "
                          "strides)' with a pool from above",
                          script->path, script->lines.number);
    MPL_PASS(mpl_script_tensor_bytes(script, comma, '(', ')', &bytes));
    return mpl_script_buffer(script, name, n, (uint32_t)block, offset, bytes);
}

/* "buf3 = buf2; del buf2  # reuse", perhaps through reinterpret_tensor(buf2, ..). */
static mpl_status read_again(mpl_script *script, const char *name, size_t n, const char *rest,
                             bool anew)
{
    const char *end = script->lines.text + script->lines.n;
    const char *inner = mpl_script_after(rest, end, "reinterpret_tensor(");
    uint64_t b = mpl_script_first(script, inner != NULL ? inner : rest, end);
    mpl_import_buffer old;

    if (b == UINT64_MAX || !anew)
        return mpl_script_alias(script, name, n, b);
    old = script->list.item[b];
    return mpl_script_buffer(script, name, n, old.block, old.offset, old.bytes);
}

static mpl_status read_statement(mpl_script *script)
{
    const char *text = script->lines.text, *end = text + script->lines.n, *rest = NULL, *at;
    size_t n = 0;
    const char *name = mpl_script_assigned(script, &n, &rest);

    if (name != NULL && n > 4 && memcmp(name, "pool", 4) == 0 &&
        mpl_script_after(rest, end, "empty_strided_") != NULL)
        return read_pool(script, name, n, rest);
    if (name != NULL && (at = mpl_script_after(rest, end, "alloc_from_pool(")) != NULL)
        return read_buffer(script, name, n, at);
    if (name != NULL && mpl_script_after(rest, end, "# reuse") != NULL)
        return read_again(script, name, n, rest, false);
    if (name != NULL && mpl_script_after(rest, end, "# alloc") != NULL)
        return read_again(script, name, n, rest, true);
    if (*text == '#' || (script->lines.n > 4 && memcmp(text, "del ", 4) == 0) ||
        (script->lines.n > 7 && memcmp(text, "assert_", 7) == 0))
        return MPL_OK;
    script->step++;
    mpl_script_needs(script, text, end);
    return MPL_OK;
}

static mpl_status read_call(mpl_script *script)
{
    bool inside = false, returned = false;

    while (!returned && mpl_lines_next(&script->lines)) {
        if (script->lines.n == 0)
            continue;
        if (inside)
            MPL_PASS(read_statement(script));
        returned = inside && script->lines.n >= 6 && memcmp(script->lines.text, "return", 6) == 0;
        inside =
            inside || mpl_script_after(script->lines.text, script->lines.text + script->lines.n,
                                       "def call(") == script->lines.text + 9;
    }
    if (!returned)
        return MPL_REFUSE(script->ctx, "%.200s: call() does not return; it was cut", script->path);
    if (script->n_blocks == 0)
        return MPL_REFUSE(
            script->ctx,
            "%.200s: no pool in it; compile with torch._inductor.config.memory_planning = True",
            script->path);
    return MPL_OK;
}

mpl_status mpl_import_read_inductor(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    mpl_script s = {.ctx = ctx, .path = in->path, .lines = mpl_lines_of(in->text, in->size)};

    MPL_TRY(read_call(&s));
    MPL_TRY(mpl_script_make(&s, in, ALIGN, out));
    snprintf(out->note, sizeof out->note, "%u pools", s.n_blocks);
out:
    mpl_script_fini(&s);
    return st;
}
