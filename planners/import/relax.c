/* relax.c -- TVM Relax after StaticPlanBlockMemory, as mod.script() prints it.
 *
 * Source   apache/tvm, src/relax/transform/static_plan_block_memory.cc:
 *            storage: R.Any = R.memory.alloc_storage(R.shape([524288]), 0, R.str("global"), ..)
 *            alloc: R.Tensor((256, 512), dtype="float32") = R.memory.alloc_tensor(storage, 0,
 *              R.shape([256, 512]), R.dtype("float32"), 0)
 *            lv: R.Tensor(..) = alloc
 *            lv3: R.Tuple(..) = alloc1, alloc2
 *            lv4: R.Tensor(..) = lv3[1]
 *          Older versions write R.prim_value(0) for 0.
 * Lives    Statements of the function are the steps; a tensor lives from the first that names it
 *          behind its own line to the last, its other names included.
 * Places   A storage is a block, at multiples of 64 bytes (kAllocAlignment there): TVM shares whole
 *          storages only.
 * Limits   The first function with storages. Other allocations (R.builtin.alloc_tensor: results)
 *          are not planned, and left out. */
#include "planners/import/base/import_script.h"

enum { ALIGN = 64 };

bool mpl_import_is_relax(const mpl_import_in *in)
{
    return mpl_text_has(in->text, in->size, "@R.function") &&
           mpl_text_has(in->text, in->size, "R.memory.");
}

static mpl_status no_number(const mpl_script *script, const char *what)
{
    return MPL_REFUSE(script->ctx, "%.200s:%u: the %s is no number", script->path,
                      script->lines.number, what);
}

static mpl_status read_storage(mpl_script *script, const char *name, size_t n, const char *rest)
{
    const char *end = script->lines.text + script->lines.n;
    const char *shape = mpl_script_after(rest, end, "R.shape([");
    uint64_t bytes;

    if (shape == NULL || mpl_digits(shape, end, &bytes) == NULL)
        return no_number(script, "storage's size");
    return mpl_script_pool(script, name, n, bytes);
}

/* rest: what stands behind "R.memory.alloc_tensor(". */
static mpl_status read_tensor(mpl_script *script, const char *name, size_t n, const char *rest)
{
    static const char wrapped[] = "R.prim_value(";
    const char *end = script->lines.text + script->lines.n,
               *comma = memchr(rest, ',', (size_t)(end - rest));
    const char *shape = mpl_script_after(rest, end, "R.shape("), *at;
    uint64_t block = UINT64_MAX, offset, bytes = 0;

    if (comma != NULL)
        block = mpl_names_get(&script->pools, rest, (size_t)(comma - rest));
    if (block == UINT64_MAX || shape == NULL)
        return MPL_REFUSE(script->ctx,
                          "%.200s:%u: it should be 'R.memory.alloc_tensor(storage, offset, "
                          "R.shape(..), ..)' with a storage from above",
                          script->path, script->lines.number);
    at = comma + 1;
    while (at < end && *at == ' ')
        at++;
    if ((size_t)(end - at) >= sizeof wrapped && memcmp(at, wrapped, sizeof wrapped - 1) == 0)
        at += sizeof wrapped - 1;
    if (mpl_digits(at, end, &offset) == NULL)
        return no_number(script, "tensor's offset");
    MPL_PASS(mpl_script_tensor_bytes(script, shape, '[', ']', &bytes));
    return mpl_script_buffer(script, name, n, (uint32_t)block, offset, bytes);
}

/* "lv = alloc", "lv3 = alloc1, alloc2" or "lv4 = lv3[1]" */
static mpl_status read_again(mpl_script *script, const char *name, size_t n, const char *rest)
{
    const char *end = script->lines.text + script->lines.n;
    const char *bracket = memchr(rest, '[', (size_t)(end - rest));
    uint64_t k;

    if (memchr(rest, ',', (size_t)(end - rest)) != NULL)
        return mpl_script_tuple(script, name, n, rest);
    if (bracket != NULL && mpl_digits(bracket + 1, end, &k) != NULL)
        return mpl_script_alias(script, name, n,
                                mpl_script_item(script, rest, (size_t)(bracket - rest), k));
    return mpl_script_alias(script, name, n, mpl_script_first(script, rest, end));
}

static mpl_status read_statement(mpl_script *script)
{
    const char *text = script->lines.text, *end = text + script->lines.n, *rest = NULL, *at;
    size_t n = 0;
    const char *name = mpl_script_assigned(script, &n, &rest);

    if (name != NULL && mpl_script_after(rest, end, "R.memory.alloc_storage(") != NULL)
        return read_storage(script, name, n, rest);
    if (name != NULL && (at = mpl_script_after(rest, end, "R.memory.alloc_tensor(")) != NULL)
        return read_tensor(script, name, n, at);
    if (mpl_script_after(text, end, "R.memory.kill_") != NULL)
        return MPL_OK;
    if (name != NULL && memchr(rest, '(', (size_t)(end - rest)) == NULL)
        return read_again(script, name, n, rest);
    script->step++;
    mpl_script_needs(script, name != NULL ? rest : text, end);
    return MPL_OK;
}

mpl_status mpl_import_read_relax(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    mpl_script s = {.ctx = ctx, .path = in->path, .lines = mpl_lines_of(in->text, in->size)};
    bool inside = false, returned = false;

    while (!returned && mpl_lines_next(&s.lines)) {
        if (s.lines.n == 0)
            continue;
        inside = inside || (s.lines.n == 11 && memcmp(s.lines.text, "@R.function", 11) == 0);
        if (inside)
            MPL_TRY(read_statement(&s));
        if (inside && s.lines.n > 7 && memcmp(s.lines.text, "return ", 7) == 0)
            returned = s.n_blocks > 0, inside = returned;
    }
    if (!returned)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%.200s: no function with R.memory.alloc_storage that returns; it was cut, or "
                 "StaticPlanBlockMemory has not run",
                 in->path);
    MPL_TRY(mpl_script_make(&s, in, ALIGN, out));
    snprintf(out->note, sizeof out->note, "%u storages, each shared as a whole", s.n_blocks);
out:
    mpl_script_fini(&s);
    return st;
}
