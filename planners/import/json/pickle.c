/* pickle.c -- the part of Python's pickle format that plain data needs.
 *
 * Source   Python, Lib/pickletools.py: what each opcode of protocols 2 to 5 does to a stack and a
 *          memo. Only those that push, collect and remember plain data are here; there is nothing
 *          that could look up a name or call it.
 * Safe     A container takes items only until it is in another one or is fetched from the memo, so
 *          none can hold itself; their depth is counted, since jansson frees them recursively. The
 *          memo is filled in order from 0, as Python's picklers do, so a small file needs little
 *          memory. */
#include "planners/import/json/pickle.h"

enum { DEPTH = 64 };

/* A value on the stack; NULL: a mark. */
typedef struct entry {
    json_t *value;
    uint32_t depth; /* of containers in each other */
    uint32_t memo;  /* 1 + where the memo has it as open; 0: nowhere */
    bool open;      /* a container that still takes items */
} entry;

typedef struct slot {
    json_t *value;
    uint32_t depth;
    bool open; /* the stack has it, at `at`, and it still takes items */
    size_t at;
} slot;

typedef struct pickle {
    mpl_ctx *ctx;
    const char *path;
    const unsigned char *text;
    size_t at, size, begin; /* begin: of the opcode being read */
    entry *stack;
    slot *memo;
    size_t n, cap, n_memo, memo_cap;
} pickle;

#define REFUSE(p, what, ...)                                                                       \
    MPL_REFUSE((p)->ctx, "%.200s: pickle, byte %zu: " what, (p)->path, (p)->begin, ##__VA_ARGS__)

bool mpl_pickle_is(const char *text, size_t size)
{
    return size >= 2 && (unsigned char)text[0] == 0x80 && text[1] >= 2 && text[1] <= 5;
}

/* ---- bytes ---- */

static mpl_status take(pickle *self, uint64_t n, const unsigned char **bytes)
{
    if (n > self->size - self->at)
        return REFUSE(self, "the file is cut: %" PRIu64 " bytes should follow", n);
    *bytes = self->text + self->at;
    self->at += n;
    return MPL_OK;
}

/* A number of n bytes, the lowest first. */
static mpl_status take_number(pickle *self, size_t n, uint64_t *out)
{
    const unsigned char *bytes = NULL;

    MPL_PASS(take(self, n, &bytes));
    *out = 0;
    for (size_t i = 0; i < n; i++)
        *out |= (uint64_t)bytes[i] << 8 * i;
    return MPL_OK;
}

/* ---- the stack and the memo ---- */

/* Takes ownership of the value, NULL: no memory. */
static mpl_status push(pickle *self, json_t *value, bool open)
{
    mpl_status st = value != NULL ? mpl_reserve(self->ctx, self->stack, self->cap, self->n + 1)
                                  : mpl_json_no_memory(self->ctx);

    if (st == MPL_OK)
        self->stack[self->n++] = (entry){value, open, 0, open};
    else
        json_decref(value);
    return st;
}

static mpl_status push_mark(pickle *self)
{
    MPL_PASS(mpl_reserve(self->ctx, self->stack, self->cap, self->n + 1));
    self->stack[self->n++] = (entry){NULL, 0, 0, false};
    return MPL_OK;
}

/* What leaves the stack takes no more items. */
static void close_entry(pickle *self, const entry *e)
{
    if (e->memo > 0)
        self->memo[e->memo - 1] = (slot){e->value, e->depth, false, 0};
}

/* The last n entries are values, on top of a container that is open if `kind` is not JSON_NULL. */
static mpl_status need(pickle *self, size_t n, json_type kind)
{
    size_t all = n + (kind != JSON_NULL);
    bool there = self->n >= all;

    for (size_t i = 0; there && i < all; i++)
        there = self->stack[self->n - 1 - i].value != NULL;
    if (!there)
        return REFUSE(self, "too little on the stack");
    if (kind != JSON_NULL &&
        (!self->stack[self->n - all].open || json_typeof(self->stack[self->n - all].value) != kind))
        return REFUSE(self, "items for what is no new %s, or holds itself",
                      kind == JSON_ARRAY ? "list" : "dict");
    return MPL_OK;
}

/* Entries above the last mark, whose place is *mark. */
static mpl_status find_mark(pickle *self, size_t *mark)
{
    for (*mark = self->n; *mark > 0 && self->stack[*mark - 1].value != NULL;)
        --*mark;
    return *mark > 0 ? MPL_OK : REFUSE(self, "no mark on the stack");
}

/* The entry goes into the container. */
static mpl_status insert(pickle *self, entry *into, entry *e, const entry *key)
{
    int failed;

    if (e->depth + 1 > DEPTH)
        return REFUSE(self, "more than %d objects in each other", DEPTH);
    if (key != NULL && !json_is_string(key->value))
        return REFUSE(self, "the key of a dict is no text");
    into->depth = e->depth + 1 > into->depth ? e->depth + 1 : into->depth;
    close_entry(self, e);
    failed = key != NULL ? json_object_set(into->value, json_string_value(key->value), e->value)
                         : json_array_append(into->value, e->value);
    return failed == 0 ? MPL_OK : mpl_json_no_memory(self->ctx);
}

static void drop(pickle *self, size_t n)
{
    for (; self->n > n; self->n--) {
        close_entry(self, &self->stack[self->n - 1]);
        json_decref(self->stack[self->n - 1].value);
    }
}

/* The last n entries become items, or pairs of key and value, of the container below them, which
 * itself is below a mark if there is one. */
static mpl_status collect(pickle *self, size_t n, bool marked, json_type kind)
{
    size_t first = self->n - n;
    entry *into;

    if (marked) { /* the mark is between: move it away to see the container */
        for (size_t i = first - 1; i + 1 < self->n; i++)
            self->stack[i] = self->stack[i + 1];
        self->n--, first--;
    }
    MPL_PASS(need(self, n, kind));
    into = &self->stack[first - 1];
    if (kind == JSON_OBJECT && n % 2 != 0)
        return REFUSE(self, "a key without its value");
    for (size_t i = first; i < self->n; i += kind == JSON_OBJECT ? 2 : 1)
        if (kind == JSON_OBJECT)
            MPL_PASS(insert(self, into, &self->stack[i + 1], &self->stack[i]));
        else
            MPL_PASS(insert(self, into, &self->stack[i], NULL));
    drop(self, first);
    return MPL_OK;
}

static mpl_status collect_marked(pickle *self, json_type kind)
{
    size_t mark = 0;

    MPL_PASS(find_mark(self, &mark));
    return collect(self, self->n - mark, true, kind);
}

/* The last n entries become a list that takes no more. */
static mpl_status make_tuple(pickle *self, size_t n, bool marked)
{
    entry *first, made = {0};

    MPL_PASS(need(self, n, JSON_NULL));
    MPL_PASS(push(self, json_array(), true));
    made = self->stack[--self->n];
    first = &self->stack[self->n - n];
    for (size_t i = 0; i < n; i++) {
        mpl_status st = insert(self, &made, &first[i], NULL);

        if (st != MPL_OK) {
            json_decref(made.value);
            return st;
        }
    }
    drop(self, self->n - n - marked);
    made.open = false;
    self->stack[self->n++] = made;
    return MPL_OK;
}

static mpl_status make_marked_tuple(pickle *self)
{
    size_t mark = 0;

    MPL_PASS(find_mark(self, &mark));
    return make_tuple(self, self->n - mark, true);
}

static mpl_status put(pickle *self, uint64_t index)
{
    entry *top;

    MPL_PASS(need(self, 1, JSON_NULL));
    top = &self->stack[self->n - 1];
    if (index != self->n_memo || index >= MPL_NONE - 1 || top->memo > 0)
        return REFUSE(self, "place %" PRIu64 " of the memo, where %zu is next", index,
                      self->n_memo);
    MPL_PASS(mpl_reserve(self->ctx, self->memo, self->memo_cap, self->n_memo + 1));
    self->memo[self->n_memo++] =
        (slot){json_incref(top->value), top->depth, top->open, self->n - 1};
    top->memo = top->open ? (uint32_t)self->n_memo : 0;
    return MPL_OK;
}

static mpl_status get(pickle *self, uint64_t index)
{
    slot *s = index < self->n_memo ? &self->memo[index] : NULL;

    if (s == NULL)
        return REFUSE(self, "place %" PRIu64 " of the memo is empty", index);
    if (s->open) {
        s->open = self->stack[s->at].open = false;
        s->depth = self->stack[s->at].depth;
    }
    MPL_PASS(push(self, json_incref(s->value), false));
    self->stack[self->n - 1].depth = s->depth;
    return MPL_OK;
}

/* ---- opcodes ---- */

static mpl_status push_text(pickle *self, size_t n_length)
{
    const unsigned char *bytes = NULL;
    uint64_t n = 0;
    json_t *text;

    MPL_PASS(take_number(self, n_length, &n));
    MPL_PASS(take(self, n, &bytes));
    if ((text = json_stringn((const char *)bytes, n)) == NULL)
        return REFUSE(self, "a text that is no UTF-8");
    return push(self, text, false);
}

/* A whole number of n bytes with a sign, the lowest first. */
static mpl_status push_long(pickle *self, size_t n_length)
{
    const unsigned char *bytes = NULL;
    uint64_t n = 0, value = 0;

    MPL_PASS(take_number(self, n_length, &n));
    if (n > 9)
        return REFUSE(self, "a number of %" PRIu64 " bytes; 8 are the most", n);
    MPL_PASS(take(self, n, &bytes));
    if (n == 9 && bytes[8] != (bytes[7] & 0x80 ? 0xff : 0))
        return REFUSE(self, "a number of more than 8 bytes");
    for (size_t i = 0; i < n && i < 8; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    if (n > 0 && n < 8 && bytes[n - 1] & 0x80)
        value |= UINT64_MAX << 8 * n;
    return push(self, json_integer((int64_t)value), false);
}

static mpl_status push_float(pickle *self)
{
    const unsigned char *bytes = NULL;
    uint64_t bits = 0;
    double value;

    MPL_PASS(take(self, 8, &bytes));
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    memcpy(&value, &bits, sizeof value);
    return push(self, bits << 1 >= 0x7ffULL << 53 ? json_null() : json_real(value), false);
}

static mpl_status push_int(pickle *self, size_t n)
{
    uint64_t value = 0;

    MPL_PASS(take_number(self, n, &value));
    return push(self, json_integer(n == 4 ? (int32_t)(uint32_t)value : (int64_t)value), false);
}

/* The name of an opcode that looks up or calls code; NULL: no such opcode. */
static const char *calls_code(unsigned char op)
{
    static const struct {
        unsigned char op;
        const char *name;
    } table[] = {
        {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},     {'i', "INST"},
        {'o', "OBJ"},    {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {'b', "BUILD"},
        {'P', "PERSID"}, {'Q', "BINPERSID"},     {0x82, "EXT1"},      {0x83, "EXT2"},
        {0x84, "EXT4"},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == op)
            return table[i].name;
    return NULL;
}

static mpl_status refuse_opcode(pickle *self, unsigned char op)
{
    if (calls_code(op) != NULL)
        return REFUSE(
            self,
            "%s would run code, and memplan runs none of a pickle; it takes dicts, lists, "
            "tuples, texts and numbers",
            calls_code(op));
    return REFUSE(self, "opcode 0x%02x is none of plain data", op);
}

static mpl_status remember(pickle *self, unsigned char op)
{
    uint64_t index = self->n_memo;

    if (op != 0x94)
        MPL_PASS(take_number(self, op == 'q' || op == 'h' ? 1 : 4, &index));
    return op == 'h' || op == 'j' ? get(self, index) : put(self, index);
}

static mpl_status skip(pickle *self, size_t n)
{
    const unsigned char *bytes = NULL;

    return take(self, n, &bytes);
}

static mpl_status step(pickle *self, unsigned char op)
{
    switch (op) {
    case 0x80:
        return skip(self, 1); /* PROTO */
    case 0x95:
        return skip(self, 8); /* FRAME */
    case 'N':
        return push(self, json_null(), false);
    case 0x88:
        return push(self, json_true(), false);
    case 0x89:
        return push(self, json_false(), false);
    case 'J':
        return push_int(self, 4);
    case 'K':
        return push_int(self, 1);
    case 'M':
        return push_int(self, 2);
    case 0x8a:
        return push_long(self, 1);
    case 0x8b:
        return push_long(self, 4);
    case 'G':
        return push_float(self);
    case 0x8c:
        return push_text(self, 1);
    case 'X':
        return push_text(self, 4);
    case 0x8d:
        return push_text(self, 8);
    case ']':
        return push(self, json_array(), true);
    case '}':
        return push(self, json_object(), true);
    case '(':
        return push_mark(self);
    case 'a':
        return collect(self, self->n > 0, false, JSON_ARRAY);
    case 's':
        return collect(self, self->n > 1 ? 2 : self->n, false, JSON_OBJECT);
    case 'e':
        return collect_marked(self, JSON_ARRAY);
    case 'u':
        return collect_marked(self, JSON_OBJECT);
    case ')':
        return make_tuple(self, 0, false);
    case 't':
        return make_marked_tuple(self);
    case 0x85:
        return make_tuple(self, 1, false);
    case 0x86:
        return make_tuple(self, 2, false);
    case 0x87:
        return make_tuple(self, 3, false);
    case 'q':
    case 'r':
    case 0x94:
    case 'h':
    case 'j':
        return remember(self, op);
    default:
        return refuse_opcode(self, op);
    }
}

static mpl_status read_all(pickle *self)
{
    const unsigned char *op = NULL;

    for (;;) {
        self->begin = self->at;
        if (self->at == self->size)
            return REFUSE(self, "the file is cut: it should end in STOP");
        MPL_PASS(take(self, 1, &op));
        if (*op == '.')
            break;
        MPL_PASS(step(self, *op));
    }
    MPL_PASS(need(self, 1, JSON_NULL));
    return self->n == 1 ? MPL_OK : REFUSE(self, "STOP with %zu values on the stack", self->n);
}

mpl_status mpl_pickle_read(mpl_ctx *ctx, const char *path, const char *text, size_t size,
                           json_t **out)
{
    pickle p = {.ctx = ctx, .path = path, .text = (const unsigned char *)text, .size = size};
    mpl_status st = read_all(&p);

    if (st == MPL_OK)
        *out = json_incref(p.stack[0].value);
    drop(&p, 0);
    for (size_t i = 0; i < p.n_memo; i++)
        json_decref(p.memo[i].value);
    mpl_free_each(ctx, p.stack, p.memo);
    return st;
}
