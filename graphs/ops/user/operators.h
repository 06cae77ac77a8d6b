/* memplan/operators.h -- your own operators as a shared library:
 *     memplan run GRAPH --operators so:./libmine.so
 *
 * The library defines one variable of this type and name, and links nothing of memplan:
 *
 *     static const memplan_operator *const list[] = {&mine, NULL};
 *     const memplan_operators memplan_operators_main = {
 *         .version = MEMPLAN_OPERATORS_VERSION, .size = sizeof(memplan_operators),
 *         .about = "what they do", .list = list,
 *     };
 *
 * A .graph file then says `y = mine(x) taps=3`; an ONNX model has a node of the operator's domain
 * and type. memplan loads the library only where --operators names it, into its own process.
 *
 * Functions may be called any number of times, from several threads at once. The same operands and
 * attributes must give the same answer, bit for bit. Functions return 0, or anything else to
 * refuse, with a reason in `message`.
 *
 * MEMPLAN_OPERATORS_VERSION changes only when libraries made for the previous version would break.
 * Members are only added at the end. `size` is the size of the struct known to the side that filled
 * it; members beyond it are absent. */
#ifndef MEMPLAN_OPERATORS_H
#define MEMPLAN_OPERATORS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMPLAN_OPERATORS_VERSION 1
#define MEMPLAN_MOST_DIMS         8
#define MEMPLAN_MOST_OPERANDS     64 /* inputs of an operation; outputs likewise */

typedef struct memplan_tensor {
    const char *type; /* "f32", "i64", ..: element types of .graph files; NULL: left out */
    uint32_t rank;    /* 0: a scalar */
    int64_t dim[MEMPLAN_MOST_DIMS];
    void *data; /* row-major, packed; NULL outside of run(), and of an output that nobody needs */
} memplan_tensor;

/* One operation. The functions read an attribute, or give `otherwise` if it is not there. */
typedef struct memplan_operation memplan_operation;
struct memplan_operation {
    uint32_t size; /* of this struct [byte] */
    uint32_t n_in, n_out;
    const memplan_tensor *in; /* [n_in] */
    memplan_tensor *out;      /* [n_out] shape() writes type, rank and dim of each */
    void *workspace;          /* of run(): as many bytes as workspace() says; 64-byte aligned */
    char *message;            /* [message_size] one line: why it refuses */
    size_t message_size;
    int64_t (*get_int)(const memplan_operation *op, const char *name, int64_t otherwise);
    double (*get_real)(const memplan_operation *op, const char *name, double otherwise);
    /* Writes at most `most` items; returns how many there are. */
    uint32_t (*get_ints)(const memplan_operation *op, const char *name, int64_t *to, uint32_t most);
    uint32_t (*get_reals)(const memplan_operation *op, const char *name, double *to, uint32_t most);
    /* Writes the text, cut to `room` bytes with its zero; returns `to`, or `otherwise`. */
    const char *(*get_text)(const memplan_operation *op, const char *name, char *to, size_t room,
                            const char *otherwise);
    const void *attributes; /* memplan's */
};

/* Answers of in_place(). */
enum {
    MEMPLAN_APART = 0, /* output 0 and this input lie in memory of their own */
    MEMPLAN_OVER = 1,  /* output 0 may lie where this input lies; no other input may lie there */
    MEMPLAN_ALONG = 2, /* the same, and each element of it is read just before it is written */
};

typedef struct memplan_operator {
    uint32_t size;    /* sizeof(memplan_operator) */
    const char *name; /* a lower-case letter, then a-z 0-9 _; none of memplan's own */
    const char *onnx; /* "DOMAIN:TYPE" of ONNX nodes; NULL: none */
    uint32_t min_in, max_in, min_out, max_out;
    /* "NAME:KIND ..", each optional; KIND is int, real, ints, reals or text. NULL: none */
    const char *attributes;
    int (*shape)(const memplan_operation *op); /* types and dims of the outputs */
    int (*run)(const memplan_operation *op);   /* writes out[i].data */
    /* Whether output 0 may overwrite input i, for equal types and dims. NULL: no input. */
    int (*in_place)(const memplan_operation *op, uint32_t i);
    uint64_t (*workspace)(const memplan_operation *op); /* of run() [byte]; NULL: none */
    /* The operator of this library that computes the gradient: output i is that of input i, with
     * its type and dims (left out where nobody needs it); attributes are the operation's. Its
     * inputs are the groups that gradient_reads names, in that order: "dy" the gradients of all
     * outputs, "x" all inputs, "y" all outputs. NULL: not differentiable. */
    const char *gradient;
    const char *gradient_reads;
} memplan_operator;

typedef struct memplan_operators {
    uint32_t version; /* MEMPLAN_OPERATORS_VERSION */
    uint32_t size;    /* sizeof(memplan_operators) */
    const char *about;
    const memplan_operator *const *list; /* ends with NULL */
} memplan_operators;

extern const memplan_operators memplan_operators_main;

#ifdef __cplusplus
}
#endif

#endif
