/* baseline.c -- baselines as files, one plan's key facts a line. See gate.h. The JSON file is read
 * line by line: `{"schema": 1, "kind": "baseline", "plans": [`, plans separated by commas, `]}`. */
#include <stdlib.h>

#include "graphs/core/file.h"
#include "harness/cli/carried.h"
#include "harness/gate/gate.h"

static const char head[] = "{\"schema\": 1, \"kind\": \"baseline\", \"plans\": [", tail[] = "]}";
static const mpl_field keys[] = {MPL_FIELD_graph, MPL_FIELD_safety, MPL_FIELD_planner,
                                 MPL_FIELD_problem_hash};
enum { N_KEYS = sizeof keys / sizeof *keys };

static mpl_status check(mpl_ctx *ctx, const char *where, const mpl_record *row)
{
    uint64_t bytes, least = 0;

    for (int i = 0; i < N_KEYS; i++)
        if (mpl_record_is_null(row, keys[i]))
            return MPL_REFUSE(ctx, "%s: the plan has no '%s'", where,
                              mpl_field_table[keys[i]].name);
    if (!mpl_record_get_int(row, MPL_FIELD_planned_bytes, &bytes) || bytes == 0 ||
        !mpl_record_get_int(row, MPL_FIELD_bound_bytes, &least) || least == 0)
        return MPL_REFUSE(ctx, "%s: 'planned_bytes' and 'bound_bytes' should be numbers above 0",
                          where);
    return MPL_OK;
}

bool mpl_is_baseline(const char *path)
{
    char text[sizeof head] = "";
    FILE *f = fopen(path, "rb");
    bool is = f != NULL && fread(text, 1, sizeof head - 1, f) > 0 && strcmp(text, head) == 0;

    if (f != NULL)
        fclose(f);
    return is;
}

mpl_status mpl_baseline_read(mpl_ctx *ctx, const char *path, mpl_rows *rows)
{
    mpl_status st = MPL_OK;
    mpl_record *row = NULL;
    char *text = NULL, where[240];
    size_t size;
    uint32_t number = 1;
    bool ended = false;

    MPL_TRY(mpl_carried_read(ctx, path, &text, &size));
    if (strncmp(text, head, sizeof head - 1) != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s:1: no baseline: the first line should be %s", path, head);
    for (char *line = strchr(text, '\n'), *end; line != NULL && !ended; line = end) {
        size_t n;

        number++;
        end = strchr(++line, '\n');
        n = end != NULL ? (size_t)(end - line) : strlen(line);
        if (n == sizeof tail - 1 && memcmp(line, tail, n) == 0) {
            ended = true;
            continue;
        }
        snprintf(where, sizeof where, "%.200s:%u", path, number);
        n -= n > 0 && line[n - 1] == ',';
        MPL_TRY(mpl_record_read(ctx, where, line, n, &row));
        MPL_TRY(check(ctx, where, row));
        MPL_TRY(mpl_rows_take(ctx, rows, &row));
    }
    if (!ended)
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s:%u: no ']}' at the end; the file was cut", path, number);
out:
    mpl_record_free(ctx, row);
    mpl_free(ctx, text);
    return st;
}

static int by_key(const void *a, const void *b)
{
    const mpl_record *record = *(mpl_record *const *)a, *y = *(mpl_record *const *)b;
    int order = 0;

    for (int i = 0; i < N_KEYS && order == 0; i++)
        order = strcmp(mpl_record_text_or(record, keys[i], ""), mpl_record_text_or(y, keys[i], ""));
    return order; /* equal keys: one is dropped, either has the same plan */
}

static void write_number(FILE *to, const mpl_record *row, mpl_field field)
{
    uint64_t value;

    fprintf(to, ", \"%s\": ", mpl_field_table[field].name);
    if (mpl_record_get_int(row, field, &value))
        fprintf(to, "%" PRIu64, value);
    else
        fputs("null", to);
}

static mpl_status write_row(mpl_ctx *ctx, FILE *to, const mpl_record *row)
{
    static const mpl_field texts[] = {MPL_FIELD_graph, MPL_FIELD_problem_hash, MPL_FIELD_safety,
                                      MPL_FIELD_planner, MPL_FIELD_claim};
    char *quoted = NULL;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        MPL_PASS(mpl_json_quote(ctx, mpl_record_text_or(row, texts[i], ""), &quoted));
        fprintf(to, "%s\"%s\": %s", i == 0 ? "{" : ", ", mpl_field_table[texts[i]].name, quoted);
        mpl_free(ctx, quoted);
        quoted = NULL;
    }
    write_number(to, row, MPL_FIELD_planned_bytes);
    write_number(to, row, MPL_FIELD_bound_bytes);
    write_number(to, row, MPL_FIELD_optimum_bytes);
    if (!mpl_record_is_null(row, MPL_FIELD_plan_ns))
        write_number(to, row, MPL_FIELD_plan_ns);
    fputc('}', to);
    return MPL_OK;
}

mpl_status mpl_baseline_write(mpl_ctx *ctx, const char *path, mpl_rows *rows)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};

    if (rows->n > 1)
        qsort(rows->row, rows->n, sizeof *rows->row, by_key);
    MPL_TRY(mpl_file_begin(ctx, path, &file));
    fputs(head, file.stream);
    for (uint32_t i = 0, n = 0; i < rows->n; i++) {
        if (i > 0 && by_key(&rows->row[i - 1], &rows->row[i]) == 0)
            continue;
        fputs(n++ > 0 ? ",\n" : "\n", file.stream);
        MPL_TRY(write_row(ctx, file.stream, rows->row[i]));
    }
    fprintf(file.stream, "\n%s\n", tail);
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}

const mpl_record *mpl_baseline_find(const mpl_rows *rows, const char *problem_hash,
                                    const char *planner)
{
    for (uint32_t i = 0; i < rows->n; i++)
        if (strcmp(mpl_record_text_or(rows->row[i], MPL_FIELD_problem_hash, ""), problem_hash) ==
                0 &&
            strcmp(mpl_record_text_or(rows->row[i], MPL_FIELD_planner, ""), planner) == 0)
            return rows->row[i];
    return NULL;
}
