/* origin.c -- origin of rows: build, machine, problem and planner. Sorts rows independently of
 * their origin. See rows.h. */
#include <stdlib.h>

#include "harness/rows/rows.h"
#include "planners/planner.h"

const char *mpl_row_origin(const mpl_record *row, char *text)
{
    static const struct {
        mpl_field field;
        const char *key, *before;
    } part[] = {
        {MPL_FIELD_memplan, "version", "memplan "},
        {MPL_FIELD_memplan, "commit", " "},
        {MPL_FIELD_memplan, "dirty", " changed "},
        {MPL_FIELD_memplan, "compiler", ", "},
        {MPL_FIELD_memplan, "flags", " "},
        {MPL_FIELD_machine, "cpu", "; "},
        {MPL_FIELD_machine, "isa", " "},
        {MPL_FIELD_machine, "os", ", "},
        {MPL_FIELD_machine, "cores", ", cores "},
        {MPL_FIELD_machine, "threads", " of threads "},
        {MPL_FIELD_machine, "numa_nodes", ", nodes "},
    };
    size_t n = 0;
    char value[120];

    text[0] = '\0';
    for (size_t i = 0; i < sizeof part / sizeof *part && n < MPL_ORIGIN_SIZE; i++)
        if (mpl_record_member_show(row, part[i].field, part[i].key, value, sizeof value))
            n += (size_t)snprintf(text + n, MPL_ORIGIN_SIZE - n, "%s%s", part[i].before, value);
    return text;
}

uint32_t mpl_rows_mixed(const mpl_rows *rows)
{
    char first[MPL_ORIGIN_SIZE] = "", other[MPL_ORIGIN_SIZE];

    for (uint32_t i = 0; i < rows->n; i++) {
        mpl_row_origin(rows->row[i], other);
        if (first[0] == '\0')
            memcpy(first, other, sizeof first);
        if (other[0] != '\0' && strcmp(first, other) != 0)
            return i;
    }
    return rows->n;
}

const char *mpl_rows_mixed_text(const mpl_rows *rows, uint32_t i, char *text)
{
    char first[MPL_ORIGIN_SIZE] = "", other[MPL_ORIGIN_SIZE];
    size_t same = 0;

    for (uint32_t k = 0; k < i && first[0] == '\0'; k++)
        mpl_row_origin(rows->row[k], first);
    mpl_row_origin(rows->row[i], other);
    while (first[same] != '\0' && first[same] == other[same])
        same++;
    while (same > 0 && first[same - 1] != ' ')
        same--;
    snprintf(text, MPL_MIXED_SIZE, "rows of '%.150s' and rows of '%.150s'", first + same,
             other + same);
    return text;
}

bool mpl_rows_alike(const mpl_record *a, const mpl_record *b, uint32_t n, const mpl_field *field)
{
    for (uint32_t i = 0; i < n; i++)
        if (!mpl_record_equal(a, b, field[i]))
            return false;
    return true;
}

bool mpl_field_of_problem(mpl_field field)
{
    static const mpl_field of_planner[] = {MPL_FIELD_planner, MPL_FIELD_params, MPL_FIELD_seed,
                                           MPL_FIELD_budget, MPL_FIELD_threads};

    for (size_t i = 0; i < sizeof of_planner / sizeof *of_planner; i++)
        if (of_planner[i] == field)
            return false;
    return mpl_field_table[field].key;
}

uint32_t mpl_rows_problem(const mpl_rows *rows, uint32_t i)
{
    mpl_field field[MPL_N_FIELDS];
    uint32_t n = 0, first = 0;

    for (int k = 0; k < MPL_N_FIELDS; k++)
        if (mpl_field_of_problem((mpl_field)k))
            field[n++] = (mpl_field)k;
    while (!mpl_rows_alike(rows->row[first], rows->row[i], n, field))
        first++;
    return first;
}

const char *mpl_planner_label(const mpl_record *row, char *text)
{
    const char *planner = mpl_record_text_or(row, MPL_FIELD_planner, "-"), *key, *value;
    int n = snprintf(text, MPL_PLANNER_LABEL, "%s", planner);
    char before = ':';

    for (uint32_t i = 0;
         n < MPL_PLANNER_LABEL && mpl_record_member(row, MPL_FIELD_params, i, &key, &value); i++) {
        size_t kind = strlen(key);

        /* the planner's name already stands for the library or command */
        if (strncmp(planner, key, kind) == 0 && planner[kind] == ':')
            continue;
        n += snprintf(text + n, MPL_PLANNER_LABEL - (size_t)n, "%c%s=%s", before, key,
                      value != NULL ? value : "");
        before = ',';
    }
    return text;
}

/* ---- order ---- */

typedef struct place {
    const char *text[5];
    uint32_t rank;
    char *key;
    mpl_record *row;
} place;

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    int order = 0;

    for (int i = 0; i < 5 && order == 0; i++)
        order = strcmp(x->text[i], y->text[i]);
    if (order == 0)
        order = (x->rank > y->rank) - (x->rank < y->rank);
    return order != 0 ? order : strcmp(x->key, y->key);
}

static uint32_t rank_of(const mpl_record *row)
{
    const char *name = mpl_record_get_text(row, MPL_FIELD_planner);
    uint32_t i = 0;

    while (mpl_planners[i] != NULL && (name == NULL || strcmp(mpl_planners[i]->name, name) != 0))
        i++;
    return i;
}

mpl_status mpl_rows_sort(mpl_ctx *ctx, mpl_rows *rows)
{
    static const mpl_field field[5] = {MPL_FIELD_suite, MPL_FIELD_graph, MPL_FIELD_safety,
                                       MPL_FIELD_order, MPL_FIELD_backend};
    mpl_status st = MPL_OK;
    place *places = NULL;

    MPL_TRY(mpl_new(ctx, places, rows->n));
    for (uint32_t i = 0; i < rows->n; i++) {
        for (int k = 0; k < 5; k++) {
            const char *text = mpl_record_get_text(rows->row[i], field[k]);

            places[i].text[k] = text != NULL ? text : "";
        }
        places[i].rank = rank_of(rows->row[i]);
        places[i].row = rows->row[i];
        MPL_TRY(mpl_record_key(ctx, rows->row[i], &places[i].key));
    }
    qsort(places, rows->n, sizeof *places, by_place);
    for (uint32_t i = 0; i < rows->n; i++)
        rows->row[i] = places[i].row;
out:
    for (uint32_t i = 0; places != NULL && i < rows->n; i++)
        mpl_free(ctx, places[i].key);
    mpl_free(ctx, places);
    return st;
}
