/* text_read_priv.h -- the reader of .graph text: its state, its tokens, and what they spell. */
#pragma once

#include "graphs/io/text/text_priv.h"

typedef enum token_kind { WORD, STRING, MARK, END } token_kind;

typedef struct token {
    token_kind kind;
    const char *start; /* STRING: between the quotes, still escaped */
    size_t n;
} token;

typedef struct attr_item {
    mpl_attr_key key;
    size_t begin, n; /* in ints, floats or text, by the kind of the key */
} attr_item;

typedef struct type_item {
    bool given;
    mpl_type type;
    mpl_shape shape;
} type_item;

/* A list that is reused for every line. */
#define LIST(type)                                                                                 \
    struct {                                                                                       \
        type *item;                                                                                \
        size_t n, cap;                                                                             \
    }
#define APPEND(r, list, value)                                                                     \
    MPL_PASS(mpl_reserve((r)->ctx, (list).item, (list).cap, (list).n + 1));                        \
    (list).item[(list).n++] = (value)

enum {
    LEFT_OUT = 0
}; /* offset in text of an operand `_`; text starts with a byte that no name uses */

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    const char *at, *end; /* unread rest of the text */
    uint32_t line;        /* of `next` */
    token next;
    mpl_graph *g;
    LIST(char) text;      /* names and strings of this line, unescaped, zero-terminated */
    LIST(char) params;    /* attributes of an operator of the user's, as written */
    LIST(size_t) out, in; /* names in text, or LEFT_OUT */
    LIST(size_t) bodies;  /* names of blocks in text */
    LIST(uint32_t) body;
    LIST(attr_item) attr;
    LIST(int64_t) ints;
    LIST(double) floats;
    LIST(type_item) types;
    LIST(unsigned char) raw; /* a constant's elements */
    LIST(mpl_value) in_value;
    LIST(const char *) out_name;
    LIST(mpl_value) out_value;
    LIST(mpl_attr) attr_value;
} reader;

/* ---- text_token.c ----
 *
 * MPL_EINPUT, with path and line, where the next tokens are not those asked for; else they are
 * stepped over. */

/* Refuses the text, with its path and line. */
mpl_status __attribute__((format(printf, 2, 3)))
mpl_text_refuse(const reader *r, const char *format, ...);

/* Moves to the next token of this line; stops at END. */
mpl_status mpl_text_advance(reader *in);

/* Moves to the first token of the next line that is not empty; false: end of text. */
mpl_status mpl_text_next_line(reader *in, bool *more);

/* Whether the next token is that mark, or that word. */
bool mpl_text_is_mark(const reader *in, char mark);
bool mpl_text_is_word(const reader *in, const char *word);

/* A token for a message: at most 40 characters, unprintable ones as '?'. */
const char *mpl_text_show(const token *self, char text[48]);

mpl_status mpl_text_expect_mark(reader *in, char mark, const char *where);
mpl_status mpl_text_expect_end(reader *in);

/* Copies a word or string, unescaped, into text with a zero; *begin: its offset, *n: its length. */
mpl_status mpl_text_keep(reader *in, const token *t, size_t *begin, size_t *n);

/* A name: a word, or a string without zero bytes. `what`: its kind, for messages. */
mpl_status mpl_text_take_name(reader *in, const char *what, size_t *begin);

mpl_status mpl_text_take_int(reader *in, const char *what, int64_t *out);
mpl_status mpl_text_take_type(reader *in, mpl_type *type, mpl_shape *shape);

/* The constant after '=', into raw. */
mpl_status mpl_text_take_constant(reader *in, mpl_type type, const mpl_shape *shape, bool *splat);
