/* record.c -- rows through jansson. No other file of this folder includes it. See record.h. */
#include "harness/rows/record.h"

#include "graphs/core/text.h"

#include <jansson.h>
#include <math.h>

const mpl_field_info mpl_field_table[MPL_N_FIELDS] = {
#define FIELD(name, kind, key, help) {#name, MPL_KIND_##kind, key, help},
#include "harness/rows/fields.def"
#undef FIELD
};

struct mpl_record {
    json_t *value[MPL_N_FIELDS]; /* NULL: null */
    bool failed;                 /* a setter ran out of memory */
};

void mpl_fields_markdown(FILE *to)
{
    static const char *const kind[] = {"text",   "integer",           "boolean",
                                       "number", "array of integers", "object or array"};

    fprintf(to,
            "# Rows\n\nOne run is one row: one JSON object on one line of `results/raw/*.jsonl`, "
            "appended "
            "and never\n"
            "changed. Made from `harness/rows/fields.def` by `make docs`. A field that does not "
            "apply is null. "
            "Byte figures\n"
            "stand only in rows whose plan was verified; after a run all byte counters are "
            "integers. Times "
            "are in\n"
            "nanoseconds (`_ns`), sizes in bytes (`_bytes`). **Key** fields name a run: `--resume` "
            "skips a "
            "run whose key\n"
            "is in the file with status `ok`; of several rows with one key the last counts. A "
            "reader ignores "
            "members\n"
            "that it does not know; a change of meaning raises `schema` (now %d).\n\n"
            "| field | type | key | meaning |\n|---|---|---|---|\n",
            MPL_ROW_SCHEMA);
    for (int i = 0; i < MPL_N_FIELDS; i++)
        fprintf(to, "| `%s` | %s | %s | %s |\n", mpl_field_table[i].name,
                kind[mpl_field_table[i].kind], mpl_field_table[i].key ? "key" : "",
                mpl_field_table[i].help);
}

mpl_status mpl_record_new(mpl_ctx *ctx, mpl_record **out)
{
    mpl_record *record = NULL;

    MPL_PASS(mpl_new(ctx, record, 1));
    mpl_record_int(record, MPL_FIELD_schema, MPL_ROW_SCHEMA);
    *out = record;
    return MPL_OK;
}

void mpl_record_free(mpl_ctx *ctx, mpl_record *record)
{
    for (int i = 0; record != NULL && i < MPL_N_FIELDS; i++)
        json_decref(record->value[i]);
    mpl_free(ctx, record);
}

mpl_status mpl_record_copy(mpl_ctx *ctx, const mpl_record *record, mpl_record **out)
{
    mpl_record *copy = NULL;

    MPL_PASS(mpl_new(ctx, copy, 1));
    for (int i = 0; i < MPL_N_FIELDS; i++)
        if (record->value[i] != NULL && (copy->value[i] = json_deep_copy(record->value[i])) == NULL)
            copy->failed = true;
    copy->failed |= record->failed;
    *out = copy;
    return MPL_OK;
}

/* ---- setters ---- */

static void put(mpl_record *record, mpl_field field, mpl_field_kind kind, json_t *value)
{
    mpl_assert(mpl_field_table[field].kind == kind);
    (void)kind;
    record->failed |= value == NULL;
    json_decref(record->value[field]);
    record->value[field] = value;
}

/* A JSON string. If the text is not UTF-8 (a file name may be anything), bytes beyond ASCII become
 * '?'. */
static json_t *text_json(const char *text)
{
    json_t *value = json_string(text);
    char *plain;

    if (value != NULL || (plain = strdup(text)) == NULL)
        return value;
    for (char *c = plain; *c != '\0'; c++)
        *c = (unsigned char)*c >= 0x80 ? '?' : *c;
    value = json_string(plain);
    free(plain);
    return value;
}

void mpl_record_null(mpl_record *record, mpl_field field)
{
    json_decref(record->value[field]);
    record->value[field] = NULL;
}

void mpl_record_text(mpl_record *record, mpl_field field, const char *text)
{
    if (text == NULL)
        mpl_record_null(record, field);
    else
        put(record, field, MPL_KIND_TEXT, text_json(text));
}

void mpl_record_int(mpl_record *record, mpl_field field, uint64_t value)
{
    mpl_assert(value <= INT64_MAX);
    put(record, field, MPL_KIND_INT, json_integer((json_int_t)value));
}

void mpl_record_bool(mpl_record *record, mpl_field field, bool value)
{
    put(record, field, MPL_KIND_BOOL, json_boolean(value));
}

void mpl_record_real(mpl_record *record, mpl_field field, double value)
{
    /* JSON has no infinity: use the largest difference for an output that is not a number */
    put(record, field, MPL_KIND_REAL, json_real(isfinite(value) ? value : 1e308));
}

void mpl_record_ints(mpl_record *record, mpl_field field, uint32_t n, const int64_t *value)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < n; i++)
        record->failed |= json_array_append_new(array, json_integer(value[i])) != 0;
    put(record, field, MPL_KIND_INTS, array);
}

static void member(mpl_record *record, mpl_field field, const char *key, json_t *value)
{
    if (record->value[field] == NULL)
        put(record, field, MPL_KIND_JSON, json_object());
    record->failed |= json_object_set_new(record->value[field], key, value) != 0;
}

void mpl_record_member_text(mpl_record *record, mpl_field field, const char *key, const char *text)
{
    member(record, field, key, text != NULL ? text_json(text) : json_null());
}

void mpl_record_member_int(mpl_record *record, mpl_field field, const char *key, uint64_t value)
{
    member(record, field, key, json_integer((json_int_t)value));
}

void mpl_record_member_bool(mpl_record *record, mpl_field field, const char *key, bool value)
{
    member(record, field, key, json_boolean(value));
}

static void item(mpl_record *record, mpl_field field, json_t *value)
{
    if (record->value[field] == NULL)
        put(record, field, MPL_KIND_JSON, json_array());
    record->failed |= json_array_append_new(record->value[field], value) != 0;
}

void mpl_record_item_text(mpl_record *record, mpl_field field, const char *text)
{
    item(record, field, text_json(text));
}

void mpl_record_item_bytes(mpl_record *record, mpl_field field, const char *name, uint64_t bytes)
{
    item(record, field,
         json_pack("{s:o, s:I}", "name", text_json(name), "bytes", (json_int_t)bytes));
}

void mpl_record_item_object(mpl_record *record, mpl_field field)
{
    item(record, field, json_object());
}

static void last(mpl_record *record, mpl_field field, const char *key, json_t *value)
{
    size_t n = json_array_size(record->value[field]);

    record->failed |=
        n == 0 || json_object_set_new(json_array_get(record->value[field], n - 1), key, value) != 0;
}

void mpl_record_last_text(mpl_record *record, mpl_field field, const char *key, const char *text)
{
    last(record, field, key, text_json(text));
}

void mpl_record_last_int(mpl_record *record, mpl_field field, const char *key, uint64_t value)
{
    last(record, field, key, json_integer((json_int_t)value));
}

void mpl_record_last_bool(mpl_record *record, mpl_field field, const char *key, bool value)
{
    last(record, field, key, json_boolean(value));
}

/* ---- getters ---- */

bool mpl_record_is_null(const mpl_record *record, mpl_field field)
{
    return record->value[field] == NULL;
}

const char *mpl_record_get_text(const mpl_record *record, mpl_field field)
{
    return json_string_value(record->value[field]);
}

const char *mpl_record_text_or(const mpl_record *record, mpl_field field, const char *otherwise)
{
    const char *text = mpl_record_get_text(record, field);

    return text != NULL ? text : otherwise;
}

bool mpl_record_is(const mpl_record *record, mpl_field field, const char *text)
{
    const char *got = mpl_record_get_text(record, field);

    return got != NULL && strcmp(got, text) == 0;
}

bool mpl_record_get_int(const mpl_record *record, mpl_field field, uint64_t *value)
{
    if (!json_is_integer(record->value[field]))
        return false;
    *value = (uint64_t)json_integer_value(record->value[field]);
    return true;
}

bool mpl_record_get_bool(const mpl_record *record, mpl_field field, bool *value)
{
    if (!json_is_boolean(record->value[field]))
        return false;
    *value = json_is_true(record->value[field]);
    return true;
}

bool mpl_record_get_real(const mpl_record *record, mpl_field field, double *value)
{
    if (!json_is_number(record->value[field]))
        return false;
    *value = json_number_value(record->value[field]);
    return true;
}

static int ascending_real(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

bool mpl_record_median_ratio(const mpl_record *record, mpl_field over, mpl_field under,
                             double *ratio)
{
    size_t n = json_array_size(record->value[over]);
    double *sorted =
        n > 0 && json_array_size(record->value[under]) == n ? malloc(n * sizeof *sorted) : NULL;

    if (sorted == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        sorted[i] = (double)json_integer_value(json_array_get(record->value[over], i)) /
                    (double)json_integer_value(json_array_get(record->value[under], i));
    qsort(sorted, n, sizeof *sorted, ascending_real);
    *ratio = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    free(sorted);
    return true;
}

bool mpl_record_median(const mpl_record *record, mpl_field field, int64_t *value)
{
    size_t n = json_array_size(record->value[field]);
    int64_t *sorted = n > 0 ? malloc(n * sizeof *sorted) : NULL;

    if (sorted == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        sorted[i] = json_integer_value(json_array_get(record->value[field], i));
    mpl_sort_i64(sorted, n);
    *value =
        n % 2 == 1 ? sorted[n / 2] : sorted[n / 2 - 1] + (sorted[n / 2] - sorted[n / 2 - 1]) / 2;
    free(sorted);
    return true;
}

bool mpl_record_has_item(const mpl_record *record, mpl_field field, const char *text)
{
    for (size_t i = 0; i < json_array_size(record->value[field]); i++) {
        const char *one = json_string_value(json_array_get(record->value[field], i));

        if (one != NULL && strcmp(one, text) == 0)
            return true;
    }
    return false;
}

bool mpl_record_member(const mpl_record *record, mpl_field field, uint32_t i, const char **key,
                       const char **text)
{
    void *at = json_object_iter(record->value[field]);

    while (at != NULL && i-- > 0)
        at = json_object_iter_next(record->value[field], at);
    if (at == NULL)
        return false;
    *key = json_object_iter_key(at);
    *text = json_string_value(json_object_iter_value(at));
    return true;
}

/* Shows a value as text; empty if memory ran out. */
static void show(const json_t *value, char *text, size_t size)
{
    char *dumped = json_is_string(value) ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

    snprintf(text, size, "%s",
             json_is_string(value) ? json_string_value(value)
             : dumped != NULL      ? dumped
                                   : "");
    free(dumped);
}

bool mpl_record_member_show(const mpl_record *record, mpl_field field, const char *key, char *text,
                            size_t size)
{
    const json_t *value = json_object_get(record->value[field], key);

    if (value == NULL || json_is_null(value))
        return false;
    show(value, text, size);
    return true;
}

bool mpl_record_equal(const mpl_record *a, const mpl_record *b, mpl_field field)
{
    if (a->value[field] == NULL || b->value[field] == NULL)
        return a->value[field] == b->value[field];
    return json_equal(a->value[field], b->value[field]);
}

void mpl_record_show(const mpl_record *record, mpl_field field, char *text, size_t size)
{
    if (record->value[field] == NULL)
        snprintf(text, size, "null");
    else
        show(record->value[field], text, size);
}

/* ---- text ---- */

/* Writes the escape of an invisible UTF-8 character below 2^16 at `at`; returns its length in
 * bytes. */
static size_t escape(const char *at, char number[7])
{
    size_t n = (*at & 0x80) == 0 ? 1 : (*at & 0x20) == 0 ? 2 : 3;
    uint32_t c = (uint32_t)*at & (n == 1 ? 0x7f : n == 2 ? 0x1f : 0x0f);

    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((uint32_t)at[i] & 0x3f);
    snprintf(number, 7, "\\u%04x", c);
    return n;
}

/* Moves jansson's text into memory of ctx. Escapes characters unsafe for a terminal. */
static mpl_status take_text(mpl_ctx *ctx, char *dumped, char **text)
{
    mpl_status st = MPL_OK;
    char *copy = NULL, number[7];
    size_t used = 0;

    if (dumped == NULL)
        MPL_FAIL(ctx, MPL_EMEM, "out of memory: a row as text");
    if ((copy = mpl_alloc(ctx, strlen(dumped) + 1, 6)) == NULL)
        MPL_TRY(MPL_EMEM);
    for (const char *at = dumped; *at != '\0';) {
        size_t n = mpl_text_seen(at);

        if (n == 0) {
            at += escape(at, number);
            memcpy(copy + used, number, 6), used += 6;
            continue;
        }
        memcpy(copy + used, at, n);
        used += n, at += n;
    }
    *text = mpl_strdup(ctx, copy); /* of exact length */
    st = *text != NULL ? MPL_OK : MPL_EMEM;
out:
    mpl_free(ctx, copy);
    free(dumped);
    return st;
}

static mpl_status dump(mpl_ctx *ctx, const mpl_record *record, bool keys_only, char **text)
{
    json_t *object = json_object();
    bool failed = record->failed || object == NULL;
    mpl_status st;

    for (int i = 0; i < MPL_N_FIELDS; i++)
        if (!keys_only || mpl_field_table[i].key)
            failed |= json_object_set(object, mpl_field_table[i].name,
                                      record->value[i] != NULL ? record->value[i] : json_null());
    /* sorted: a key must not depend on the order in which members were set */
    st = take_text(
        ctx, failed ? NULL : json_dumps(object, JSON_COMPACT | (keys_only ? JSON_SORT_KEYS : 0)),
        text);
    json_decref(object);
    return st;
}

mpl_status mpl_record_write(mpl_ctx *ctx, const mpl_record *record, char **text)
{
    return dump(ctx, record, false, text);
}

mpl_status mpl_record_key(mpl_ctx *ctx, const mpl_record *record, char **key)
{
    return dump(ctx, record, true, key);
}

static bool of_kind(const json_t *value, mpl_field_kind kind)
{
    switch (kind) {
    case MPL_KIND_TEXT:
        return json_is_string(value);
    case MPL_KIND_INT:
        return json_is_integer(value) && json_integer_value(value) >= 0;
    case MPL_KIND_BOOL:
        return json_is_boolean(value);
    case MPL_KIND_REAL:
        return json_is_number(value);
    case MPL_KIND_INTS:
        for (size_t i = 0; i < json_array_size(value); i++)
            if (!json_is_integer(json_array_get(value, i)))
                return false;
        return json_is_array(value);
    case MPL_KIND_JSON:
        return json_is_object(value) || json_is_array(value);
    }
    return false;
}

static const char *const kind_text[] = {[MPL_KIND_TEXT] = "text",
                                        [MPL_KIND_INT] = "a whole number from 0",
                                        [MPL_KIND_BOOL] = "true or false",
                                        [MPL_KIND_REAL] = "a number",
                                        [MPL_KIND_INTS] = "an array of whole numbers",
                                        [MPL_KIND_JSON] = "an object or an array"};

mpl_status mpl_record_read(mpl_ctx *ctx, const char *where, const char *text, size_t n,
                           mpl_record **out)
{
    mpl_status st = MPL_OK;
    mpl_record *record = NULL;
    json_error_t error;
    json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);

    if (!json_is_object(object))
        MPL_FAIL(ctx, MPL_EINPUT, "%s: no row: %s", where,
                 object == NULL ? error.text : "not an object");
    MPL_TRY(mpl_new(ctx, record, 1));
    for (int i = 0; i < MPL_N_FIELDS; i++) {
        json_t *value = json_object_get(object, mpl_field_table[i].name);

        if (value == NULL || json_is_null(value))
            continue;
        if (!of_kind(value, mpl_field_table[i].kind))
            MPL_FAIL(ctx, MPL_EINPUT, "%s: field '%s' should be %s", where, mpl_field_table[i].name,
                     kind_text[mpl_field_table[i].kind]);
        record->value[i] = json_incref(value);
    }
    *out = record, record = NULL;
out:
    mpl_record_free(ctx, record);
    json_decref(object);
    return st;
}

mpl_status mpl_json_quote(mpl_ctx *ctx, const char *text, char **out)
{
    json_t *value = text_json(text);
    mpl_status st = take_text(ctx, value != NULL ? json_dumps(value, JSON_ENCODE_ANY) : NULL, out);

    json_decref(value);
    return st;
}
