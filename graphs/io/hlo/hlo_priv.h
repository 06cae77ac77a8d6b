/* hlo_priv.h -- a module of XLA's HLO text as the parser leaves it; shared by hlo*.c. */
#pragma once

#include "graphs/graph.h"

/* A piece of the text. */
typedef struct hlo_text {
    const char *at;
    uint32_t n;
} hlo_text;

static inline bool hlo_is(hlo_text text, const char *word)
{
    return strlen(word) == text.n && memcmp(text.at, word, text.n) == 0;
}

/* An array inside a shape. */
typedef struct hlo_leaf {
    mpl_type type;
    mpl_shape shape; /* of the bytes as stored; at most MPL_MAX_RANK dims */
    uint64_t form;   /* hash of element type, dims and layout: equal only for equal ones */
} hlo_leaf;

/* A shape is a tree: its nodes in preorder, its arrays as leaves from left to right. */
typedef struct hlo_node {
    uint32_t n_nodes, n_leaves; /* of the subtree; an array has one of each */
} hlo_node;
typedef struct hlo_shape {
    uint32_t node, leaf; /* the first of each in the module */
    uint32_t n_leaves;
} hlo_shape;

/* What becomes of an instruction's result (hlo_rules.def). */
typedef enum hlo_how {
    HLO_OWN,
    HLO_PARAMETER,
    HLO_CONSTANT,
    HLO_FORWARD,
    HLO_ELEMENT,
    HLO_TUPLE,
    HLO_BITCAST,
    HLO_CALL,
    HLO_WHILE,
    HLO_CONDITIONAL,
    HLO_FUSION,
    HLO_START,
    HLO_DONE,
} hlo_how;

/* Which operands the result may overwrite (hlo_rules.def). */
typedef enum hlo_over {
    HLO_NONE,
    HLO_ALONG,
    HLO_FIRST,
    HLO_SECOND,
    HLO_EACH,
    HLO_ALIASED
} hlo_over;

typedef struct hlo_rule {
    const char *opcode;
    uint8_t how, over;
    uint8_t part; /* element of the tuple that is forwarded; HLO_ALL: the whole */
} hlo_rule;
enum { HLO_ALL = 255 }; /* of part */
/* The rule of an opcode; NULL: unknown. */
const hlo_rule *hlo_rule_find(hlo_text opcode);

/* A path into a shape and one into an operand or parameter: they share their bytes. */
typedef struct hlo_alias {
    uint32_t out, n_out; /* into module->path */
    uint32_t of;         /* operand or parameter number */
    uint32_t in, n_in;   /* into module->path */
} hlo_alias;

typedef struct hlo_instr {
    hlo_text name, opcode;
    const hlo_rule *rule; /* NULL: unknown */
    hlo_shape shape;
    uint32_t operand, n_operands; /* into module->operand */
    uint32_t called, n_called;    /* into module->called; a while: condition, body */
    uint32_t alias, n_aliases;    /* into module->alias */
    int64_t number;               /* of a parameter, or of an element */
    bool output_fusion;           /* kind=kOutput */
} hlo_instr;

typedef struct hlo_comp {
    hlo_text name;
    uint32_t instr, n_instrs, root; /* root: an instruction */
    uint32_t n_params, param;       /* into module->param: instructions by parameter number */
    uint32_t leaf, n_leaves;        /* of its instructions */
} hlo_comp;

/* A list that grows. */
#define HLO_LIST(type)                                                                             \
    struct {                                                                                       \
        type *item;                                                                                \
        size_t n, cap;                                                                             \
    }
#define HLO_APPEND(m, list, value)                                                                 \
    MPL_PASS(mpl_reserve((m)->ctx, (list).item, (list).cap, (list).n + 1));                        \
    (list).item[(list).n++] = (value)

typedef struct hlo_module {
    mpl_ctx *ctx;
    const char *path, *begin, *end;
    hlo_text name;
    uint32_t entry; /* a computation */
    HLO_LIST(hlo_leaf) leaf;
    HLO_LIST(hlo_node) node;
    HLO_LIST(hlo_instr) instr;
    HLO_LIST(hlo_comp) comp;
    HLO_LIST(uint32_t) operand;     /* instructions */
    HLO_LIST(hlo_text) called_name; /* of computations */
    HLO_LIST(uint32_t) called;      /* the same as ids, once all are read */
    HLO_LIST(uint32_t) param;       /* instructions */
    HLO_LIST(hlo_alias) alias;
    HLO_LIST(uint32_t) path_item;
    uint32_t donated, n_donated; /* input_output_alias, into alias */
    uint32_t *slot, n_slots;     /* names: instructions and computations, by open addressing */
} hlo_module;

/* Refuses the module at a place of its text. */
mpl_status hlo_refuse(const hlo_module *module, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Parses the whole text; the caller frees with hlo_module_fini, also after an error. O(text). */
mpl_status hlo_parse(hlo_module *module);
void hlo_module_fini(hlo_module *module);

/* A shape at *at, which moves behind it. */
mpl_status hlo_shape_parse(hlo_module *module, const char **at, hlo_shape *out);
/* ---- words of the text (hlo_text.c) ---- */

static inline bool hlo_at(const hlo_module *module, const char *at, char c)
{
    return at < module->end && *at == c;
}
/* Skips blanks and comments. */
const char *hlo_skip(const hlo_module *module, const char *at);
bool hlo_number(const hlo_module *module, const char **at, int64_t *out);
/* Takes a name, with or without %; n = 0: none stands there. */
hlo_text hlo_take_name(const hlo_module *module, const char **at);
/* Behind the bracket that closes the one at s, or the end of the text. */
const char *hlo_skip_brackets(const hlo_module *module, const char *s);
/* Takes the value of an attribute: up to a comma, a blank or a closing bracket not its own. */
hlo_text hlo_take_value(const hlo_module *module, const char **at);

enum { HLO_COMPUTATION = UINT32_C(1) << 31 }; /* of a slot: the id is a computation's */
/* A table for as many names as the text can hold. */
mpl_status hlo_make_table(hlo_module *module);
/* The slot of an instruction of `comp`, or, where that is MPL_NONE, of a computation. O(1). */
size_t hlo_slot_of(const hlo_module *module, uint32_t comp, hlo_text name);
/* Enters the last instruction or computation. MPL_EINPUT: the name stands there already. */
mpl_status hlo_enter(hlo_module *module, uint32_t comp, hlo_text name, uint32_t id);

/* ---- the tree of a shape ---- */

/* The subtree of element k of a shape; false: it has none. */
bool hlo_element(const hlo_module *module, hlo_shape shape, int64_t k, hlo_shape *out);
/* The same along a path. */
bool hlo_descend(const hlo_module *module, hlo_shape shape, const uint32_t *path, uint32_t n,
                 hlo_shape *out);
static inline const hlo_instr *hlo_operand(const hlo_module *module, const hlo_instr *instr,
                                           uint32_t k)
{
    return &module->instr.item[module->operand.item[instr->operand + k]];
}
static inline bool hlo_same_form(const hlo_module *module, uint32_t leaf, uint32_t other)
{
    return module->leaf.item[leaf].form == module->leaf.item[other].form;
}

/* Marks the pairs of `instr` that may share: over[k] for operand k (of one array), of result array
 * `out`. over has n_operands bytes. */
mpl_status hlo_overwrites(const hlo_module *module, const hlo_instr *instr, uint32_t out,
                          uint8_t *over);

/* A donated parameter, as values of the graph. */
typedef struct hlo_gift {
    mpl_value output, input;
} hlo_gift;
/* Makes each output lie in the input that is given for it. Takes *g. */
mpl_status hlo_donate(mpl_ctx *ctx, uint32_t n, const hlo_gift *gift, mpl_graph **g);

/* Makes the graph of a module. */
mpl_status hlo_build(const hlo_module *module, mpl_graph **out);
