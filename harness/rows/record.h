/* record.h -- one row: the fields of fields.def, each null until it is set. Reads and writes rows
 * as JSON lines. */
#pragma once

#include "graphs/core/base.h"

#define MPL_ROW_SCHEMA 1

typedef enum mpl_field {
#define FIELD(name, kind, key, help) MPL_FIELD_##name,
#include "harness/rows/fields.def"
#undef FIELD
    MPL_N_FIELDS
} mpl_field;

typedef enum mpl_field_kind {
    MPL_KIND_TEXT,
    MPL_KIND_INT,
    MPL_KIND_BOOL,
    MPL_KIND_REAL,
    MPL_KIND_INTS,
    MPL_KIND_JSON
} mpl_field_kind;

typedef struct mpl_field_info {
    const char *name;
    mpl_field_kind kind;
    bool key;
    const char *help;
} mpl_field_info;

extern const mpl_field_info mpl_field_table[MPL_N_FIELDS];
/* Writes results/SCHEMA.md. */
void mpl_fields_markdown(FILE *to);

typedef struct mpl_record mpl_record;

mpl_status mpl_record_new(mpl_ctx *ctx, mpl_record **out); /* all null but schema */
mpl_status mpl_record_copy(mpl_ctx *ctx, const mpl_record *record, mpl_record **out);
void mpl_record_free(mpl_ctx *ctx, mpl_record *record);

/* Setters, one a kind; setting a field of another kind is a bug. A setter that runs out of memory
 * makes the next read of the record fail. Integers reach to 2^63 - 1. Text NULL sets null; bytes
 * that are not UTF-8 become '?'. */
void mpl_record_null(mpl_record *record, mpl_field field);
void mpl_record_text(mpl_record *record, mpl_field field, const char *text);
void mpl_record_int(mpl_record *record, mpl_field field, uint64_t value);
void mpl_record_bool(mpl_record *record, mpl_field field, bool value);
void mpl_record_real(mpl_record *record, mpl_field field, double value);
void mpl_record_ints(mpl_record *record, mpl_field field, uint32_t n, const int64_t *value);
/* Adds members to a field of kind JSON; the first call makes the object or array. */
void mpl_record_member_text(mpl_record *record, mpl_field field, const char *key, const char *text);
void mpl_record_member_int(mpl_record *record, mpl_field field, const char *key, uint64_t value);
void mpl_record_member_bool(mpl_record *record, mpl_field field, const char *key, bool value);
void mpl_record_item_text(mpl_record *record, mpl_field field, const char *text);
/* Appends {"name": name, "bytes": bytes}. */
void mpl_record_item_bytes(mpl_record *record, mpl_field field, const char *name, uint64_t bytes);

/* Appends {} to an array; the others add members to its last object. */
void mpl_record_item_object(mpl_record *record, mpl_field field);
void mpl_record_last_text(mpl_record *record, mpl_field field, const char *key, const char *text);
void mpl_record_last_int(mpl_record *record, mpl_field field, const char *key, uint64_t value);
void mpl_record_last_bool(mpl_record *record, mpl_field field, const char *key, bool value);

/* Getters: NULL, false or 0 items for a null field. Texts belong to the record. */
bool mpl_record_is_null(const mpl_record *record, mpl_field field);
const char *mpl_record_get_text(const mpl_record *record, mpl_field field);
/* The same; `otherwise` for a null field. */
const char *mpl_record_text_or(const mpl_record *record, mpl_field field, const char *otherwise);
/* Whether a text field equals `text`. */
bool mpl_record_is(const mpl_record *record, mpl_field field, const char *text);
bool mpl_record_get_int(const mpl_record *record, mpl_field field, uint64_t *value);
bool mpl_record_get_bool(const mpl_record *record, mpl_field field, bool *value);
bool mpl_record_get_real(const mpl_record *record, mpl_field field, double *value);
/* Median of an INTS field; false: null or empty. */
bool mpl_record_median(const mpl_record *record, mpl_field field, int64_t *value);
/* Median of one array divided by another, pair by pair; false: one is null, or lengths differ. */
bool mpl_record_median_ratio(const mpl_record *record, mpl_field over, mpl_field under,
                             double *ratio);
/* Whether an array of texts holds `text`. */
bool mpl_record_has_item(const mpl_record *record, mpl_field field, const char *text);
/* Key and text (NULL: not a text) of an object's member i. False past the end. */
bool mpl_record_member(const mpl_record *record, mpl_field field, uint32_t i, const char **key,
                       const char **text);
/* Member `key` of an object as text ("true", "12"); false: absent or null. */
bool mpl_record_member_show(const mpl_record *record, mpl_field field, const char *key, char *text,
                            size_t size);
/* Whether a field has the same value in both. */
bool mpl_record_equal(const mpl_record *a, const mpl_record *b, mpl_field field);
/* A field's value as one line of JSON, cut to size - 1 characters. */
void mpl_record_show(const mpl_record *record, mpl_field field, char *text, size_t size);

/* The record as one line of JSON without a newline; *text is freed by mpl_free. MPL_EMEM. */
mpl_status mpl_record_write(mpl_ctx *ctx, const mpl_record *record, char **text);
/* Reads the text of one JSON object. Unknown members are ignored (a newer schema may have more).
 * MPL_EINPUT: no JSON object, a field of another kind; messages begin with `where`. */
mpl_status mpl_record_read(mpl_ctx *ctx, const char *where, const char *text, size_t n,
                           mpl_record **out);
/* The key of the run: the key fields in their order, as text freed by mpl_free. */
mpl_status mpl_record_key(mpl_ctx *ctx, const mpl_record *record, char **key);

/* `text` as a JSON string with its quotes, for writers of other JSON formats; freed by mpl_free. */
mpl_status mpl_json_quote(mpl_ctx *ctx, const char *text, char **out);
