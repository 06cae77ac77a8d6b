/* c_template.c -- a template as a C function without dependencies. See template_job.h. */
#include "graphs/core/file.h"
#include "harness/shapes/template_job.h"

#include <ctype.h>

/* The head of the generated file; "%s" is the graph that it was made from. */
static const char head[] =
    "/* Made by memplan export --format c-template from %s.\n"
    " *\n"
    " * memplan_offsets(dim, offset, pool_bytes) writes where each buffer begins in its pool at "
    "the\n"
    " * shape dim[], and the bytes of each pool. Returns 0, or -1 if dim[] is outside of the "
    "range.\n"
    " * memplan_buffer_name[] are the buffers. */\n"
    "#include <stdint.h>\n\n"
    "int memplan_offsets(const int64_t *dim, uint64_t *offset, uint64_t *pool_bytes);\n\n";

static const char helpers[] =
    "static inline int64_t floor_div(int64_t a, int64_t b)\n"
    "{\n    return a / b - (a % b < 0);\n}\n\n"
    "static inline int64_t ceil_div(int64_t a, int64_t b)\n"
    "{\n    return -floor_div(-a, b);\n}\n\n"
    "static inline int64_t least(int64_t a, int64_t b)\n{\n    return a < b ? a : b;\n}\n\n"
    "static inline int64_t most(int64_t a, int64_t b)\n{\n    return a > b ? a : b;\n}\n\n"
    "static inline void above(uint64_t *at, uint64_t end, uint64_t distance)\n"
    "{\n    if (end > distance && end - distance > *at)\n        *at = end - distance;\n}\n\n";

/* Writes text as a C string. */
static void put_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\')
            fprintf(f, "\\%c", *text);
        else
            fprintf(f, isprint((unsigned char)*text) ? "%c" : "\\%03o", (unsigned char)*text);
    fputc('"', f);
}

/* Writes an expression's text (expr.h) in C: symbols become dim[i], and the '/' of a quotient
 * separates the operands of floor_div. */
static void put_c(FILE *f, const mpl_exprs *exprs, const char *text)
{
    static const struct {
        const char *name, *c;
    } functions[] = {
        {"floor", "floor_div"}, {"ceil", "ceil_div"}, {"min", "least"}, {"max", "most"}};
    char word[100];

    while (*text != '\0') {
        size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        const char *c = NULL;

        if (n == 0) {
            size_t digits = strspn(text, "0123456789");

            if (digits > 0)
                fprintf(f, "INT64_C(%.*s)", (int)digits, text);
            else
                fputc(*text == '/' ? ',' : *text, f);
            text += digits > 0 ? digits : 1;
            continue;
        }
        n += strspn(text + n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.0123456789");
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        for (size_t i = 0; i < sizeof functions / sizeof *functions && text[n] == '('; i++)
            if (strcmp(word, functions[i].name) == 0)
                c = functions[i].c;
        if (c != NULL)
            fputs(c, f);
        else
            fprintf(f, "dim[%" PRIu32 "]", mpl_exprs_find(exprs, word));
        text += n;
    }
}

static mpl_status put_expr(mpl_ctx *ctx, FILE *f, const mpl_exprs *exprs, mpl_expr e)
{
    char *text = NULL;

    MPL_PASS(mpl_expr_write(ctx, exprs, e, &text));
    put_c(f, exprs, text);
    mpl_free(ctx, text);
    return MPL_OK;
}

/* Returns where dim[] is outside of the range. */
static mpl_status put_range(mpl_ctx *ctx, FILE *f, const mpl_exprs *exprs)
{
    for (uint32_t i = 0; i < mpl_exprs_n_symbols(exprs); i++) {
        const mpl_symbol *symbol = mpl_exprs_symbol(exprs, i);

        fprintf(f,
                "    if (dim[%" PRIu32 "] < %" PRId64 " || dim[%" PRIu32 "] > %" PRId64
                " || (dim[%" PRIu32 "] - %" PRId64 ") %% %" PRId64 " != 0) /* %s */\n"
                "        return -1;\n",
                i, symbol->first, i, symbol->last, i, symbol->first, symbol->step, symbol->name);
    }
    for (uint32_t i = 0; i < mpl_exprs_n_relations(exprs); i++) {
        fprintf(f, "    if (");
        MPL_PASS(put_expr(ctx, f, exprs, mpl_exprs_relation_at(exprs, i)));
        fprintf(f, " > 0)\n        return -1;\n");
    }
    return MPL_OK;
}

/* A body's start, from what lies below it; offsets of its members are distances first. */
static void put_body(FILE *f, const mpl_template_cell *cell, uint32_t k)
{
    const mpl_template_code *code = cell->code;

    for (uint32_t i = code->body_begin[k]; i < code->body_begin[k + 1]; i++) {
        mpl_buffer b = code->member[i], on = code->parent[b];

        fprintf(f, "    offset[%" PRIu32 "] = ", b);
        if (on != b)
            fprintf(f, "offset[%" PRIu32 "] + ", on);
        fprintf(f, "(uint64_t)v[%" PRIu32 "];\n", code->distance[b]);
    }
    fprintf(f, "    at = %" PRIu64 ";\n",
            cell->offset != NULL ? cell->offset[code->member[code->body_begin[k]]] : 0);
    for (uint32_t i = code->rule_begin[k]; cell->offset == NULL && i < code->rule_begin[k + 1]; i++)
        fprintf(f,
                "    above(&at, offset[%" PRIu32 "] + (uint64_t)v[%" PRIu32 "], offset[%" PRIu32
                "]);\n",
                code->lower[i], code->bytes[code->lower[i]], code->upper[i]);
    fprintf(f, "    at = (at + %" PRIu32 ") / %" PRIu32 " * %" PRIu32 ";\n", code->align[k] - 1,
            code->align[k], code->align[k]);
    for (uint32_t i = code->body_begin[k]; i < code->body_begin[k + 1]; i++)
        fprintf(f, "    offset[%" PRIu32 "] += at;\n", code->member[i]);
}

static mpl_status put_cell(mpl_ctx *ctx, FILE *f, const mpl_template *tmpl, uint32_t which)
{
    const mpl_template_cell *cell = &tmpl->cell[which];
    const mpl_template_code *code = cell->code;

    fprintf(f,
            "static void cell_%" PRIu32
            "(const int64_t *dim, uint64_t *offset, uint64_t *pool_bytes)\n"
            "{\n    int64_t v[%" PRIu32 "];\n    uint64_t at;\n\n    (void)dim;\n",
            which, code->n_values);
    for (uint32_t i = 0; i < code->n_values; i++) {
        fprintf(f, "    v[%" PRIu32 "] = ", i);
        MPL_PASS(put_expr(ctx, f, tmpl->problem->exprs, code->value_of[i]));
        fprintf(f, ";\n");
    }
    for (uint32_t k = 0; k < code->n_bodies; k++)
        put_body(f, cell, k);
    for (uint32_t i = 0; cell->arena != NULL && i < tmpl->problem->at->n_pools; i++)
        fprintf(f, "    pool_bytes[%" PRIu32 "] = %" PRIu64 ";\n", i, cell->arena[i]);
    for (mpl_buffer b = 0; cell->arena == NULL && b < tmpl->problem->at->n; b++)
        fprintf(f,
                "    above(&pool_bytes[%" PRIu32 "], offset[%" PRIu32 "] + (uint64_t)v[%" PRIu32
                "], 0);\n",
                tmpl->problem->at->pool[b], b, code->bytes[b]);
    fprintf(f, "}\n\n");
    return MPL_OK;
}

/* The cell of a shape, by its box. */
static void put_choice(FILE *f, const mpl_template *tmpl, uint32_t which)
{
    const mpl_box *box = &tmpl->cell[which].box;

    fprintf(f, "    if (1");
    for (uint32_t i = 0; i < box->n; i++) {
        const mpl_symbol *symbol = mpl_exprs_symbol(tmpl->problem->exprs, i);
        int64_t low = symbol->first + box->low[i] * symbol->step,
                high = symbol->first + box->high[i] * symbol->step;

        if (low > symbol->first)
            fprintf(f, " && dim[%" PRIu32 "] >= %" PRId64, i, low);
        if (high < symbol->last)
            fprintf(f, " && dim[%" PRIu32 "] <= %" PRId64, i, high);
    }
    fprintf(f, ")\n        return cell_%" PRIu32 "(dim, offset, pool_bytes), 0;\n", which);
}

static void put_names(FILE *f, const mpl_problem *p)
{
    char label[24];

    fprintf(f,
            "enum { MEMPLAN_BUFFERS = %" PRIu32 ", MEMPLAN_POOLS = %" PRIu32
            " };\nextern const char *const memplan_buffer_name[MEMPLAN_BUFFERS];\n"
            "const char *const memplan_buffer_name[MEMPLAN_BUFFERS] = {\n",
            p->n, p->n_pools);
    for (mpl_buffer b = 0; b < p->n; b++) {
        fprintf(f, "    ");
        put_string(f, mpl_buffer_label(p, b, label));
        fprintf(f, ",\n");
    }
    fprintf(f, "};\n\n");
}

/* Whether every sum of sizes of the range fits, so that the code need not look. */
static mpl_status check_sums(mpl_ctx *ctx, const mpl_sym_problem *sp)
{
    int64_t low, high;
    uint64_t sum = 0;

    for (mpl_buffer b = 0; b < sp->at->n; b++)
        if (!mpl_expr_bounds(sp->exprs, sp->bytes[b], NULL, &low, &high) || low < 0 ||
            (sum += (uint64_t)high + sp->at->align[b]) > (uint64_t)INT64_MAX / 2)
            return MPL_REFUSE(ctx, "export c-template: sizes of the range exceed 2^62 bytes");
    return MPL_OK;
}

mpl_status mpl_template_export_c(mpl_ctx *ctx, const mpl_template_opened *opened, const char *path)
{
    mpl_status st = MPL_OK;
    const mpl_template *tmpl = opened->tmpl;
    const char *name = strrchr(opened->path, '/');
    mpl_new_file file = {0};

    MPL_TRY(mpl_verify_template(ctx, tmpl, MPL_TEMPLATE_BOXES));
    MPL_TRY(check_sums(ctx, tmpl->problem));
    MPL_TRY(mpl_file_begin(ctx, path, &file));
    fprintf(file.stream, head,
            strstr(opened->path, "*/") != NULL ? "a template"
            : name != NULL                     ? name + 1
                                               : opened->path);
    fputs(helpers, file.stream);
    put_names(file.stream, tmpl->problem->at);
    for (uint32_t i = 0; i < tmpl->n_cells; i++)
        MPL_TRY(put_cell(ctx, file.stream, tmpl, i));
    fprintf(file.stream,
            "int memplan_offsets(const int64_t *dim, uint64_t *offset, uint64_t *pool_bytes)\n{\n");
    MPL_TRY(put_range(ctx, file.stream, tmpl->problem->exprs));
    fprintf(file.stream,
            "    for (int i = 0; i < MEMPLAN_POOLS; i++)\n        pool_bytes[i] = 0;\n");
    for (uint32_t i = 0; i < tmpl->n_cells; i++)
        put_choice(file.stream, tmpl, i);
    fprintf(file.stream, "    return -1;\n}\n");
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}
