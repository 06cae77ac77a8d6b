/* onnx_einsum.c -- Einsum of one or two operands as sums, transposes and one matrix product.
 *
 * A letter that stands twice in a term takes a diagonal: every (n + 1)th element of its n * n.
 * Letters are then grouped by the terms that they occur in. Letters of one operand alone are summed
 * away first. Two operands become stacks of matrices: [both and the result] x [left and the result]
 * x [both alone], and [both and the result] x [both alone] x [right and the result]. The dims of
 * the product are then put in the order of the result.
 *
 * Source   ONNX, docs/Operators.md: Einsum; numpy.einsum
 * Limits   No dim of 1 that is broadcast against a larger one. */
#include "graphs/io/onnx/onnx_priv.h"

enum { LETTERS = 52 + MPL_MAX_RANK }; /* letters beyond the alphabet: dims of an ellipsis */

typedef struct term {
    uint32_t n;
    uint8_t letter[MPL_MAX_RANK];
} term;

typedef struct einsum {
    onnx_node *node;
    uint32_t n_terms;
    term in[2], out;
    mpl_value v[2];
    int64_t dim[LETTERS];
    unsigned met[LETTERS]; /* LEFT, RIGHT, RESULT: terms with the letter */
    uint32_t ellipsis;     /* most dims that it stands for in an operand */
    bool is_empty;         /* an operand has no elements */
} einsum;

enum { LEFT = 1, RIGHT = 2, RESULT = 4 };

static uint32_t occurrences(const term *self, unsigned letter)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < self->n; i++)
        n += self->letter[i] == letter;
    return n;
}

static bool has(const term *self, unsigned letter)
{
    return occurrences(self, letter) > 0;
}

static mpl_status push(const einsum *self, term *t, unsigned letter)
{
    onnx_node *node = self->node;

    if (t->n == MPL_MAX_RANK)
        return ONNX_REFUSE(node, "a term of its equation has more than %d dims", MPL_MAX_RANK);
    if (t == &self->out && has(t, letter))
        return ONNX_REFUSE(node, "a letter stands twice in the result of its equation");
    t->letter[t->n++] = (uint8_t)letter;
    return MPL_OK;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static unsigned number_of(char c)
{
    return c <= 'Z' ? (unsigned)(c - 'A') : (unsigned)(c - 'a') + 26;
}

/* Reads one term up to ',', '-' or the end; `dims`: the number of dims of its ellipsis. */
static mpl_status read_term(const einsum *self, const char **at, uint32_t dims, term *out)
{
    onnx_node *node = self->node;

    for (; **at != '\0' && **at != ',' && **at != '-'; ++*at) {
        if (**at == ' ')
            continue;
        if (strncmp(*at, "...", 3) == 0) {
            for (uint32_t i = 0; i < dims; i++) /* its last letters, as dims broadcast */
                MPL_PASS(push(self, out, 52 + self->ellipsis - dims + i));
            *at += 2;
        } else if (is_letter(**at)) {
            MPL_PASS(push(self, out, number_of(**at)));
        } else {
            return ONNX_REFUSE(
                node, "its equation has a '%c'; letters, commas, dots and an arrow are known",
                **at);
        }
    }
    return MPL_OK;
}

/* Counts the letters of a term in the file; *dots: it has an ellipsis. */
static uint32_t count_letters(const char *at, bool *dots)
{
    uint32_t n = 0;

    *dots = false;
    for (; *at != '\0' && *at != ',' && *at != '-'; at++) {
        n += is_letter(*at);
        *dots = *dots || *at == '.';
    }
    return n;
}

/* Counts the dims of the ellipsis of each operand. */
static mpl_status count_dots(einsum *self, const char *equation, uint32_t dims[2])
{
    onnx_node *node = self->node;
    const char *at = equation;

    for (uint32_t i = 0; i < self->n_terms; i++) {
        uint32_t rank = node->r->g->value_shape[self->v[i]].rank, letters;
        bool dots;

        letters = count_letters(at, &dots);
        if (letters > rank || (!dots && letters != rank))
            return ONNX_REFUSE(node, "term %u of its equation has %u letters, its input %u dims", i,
                               letters, rank);
        dims[i] = rank - letters;
        self->ellipsis = dims[i] > self->ellipsis ? dims[i] : self->ellipsis;
        at += strcspn(at, ",-");
        if (i + 1 < self->n_terms ? *at != ',' : *at == ',')
            return ONNX_REFUSE(node, "its equation has not as many terms as it has inputs, %u",
                               self->n_terms);
        at += *at == ',';
    }
    return MPL_OK;
}

/* The result without an arrow: the ellipsis, then each letter that occurs once, alphabetically. */
static mpl_status imply_result(einsum *self)
{
    for (uint32_t i = 0; i < self->ellipsis; i++)
        MPL_PASS(push(self, &self->out, 52 + i));
    for (unsigned letter = 0; letter < 52; letter++)
        if (occurrences(&self->in[0], letter) + occurrences(&self->in[1], letter) == 1)
            MPL_PASS(push(self, &self->out, letter));
    return MPL_OK;
}

static mpl_status read_equation(einsum *self, const char *equation)
{
    onnx_node *node = self->node;
    uint32_t dims[2] = {0};
    const char *at = equation;

    MPL_PASS(count_dots(self, equation, dims));
    for (uint32_t i = 0; i < self->n_terms; i++) {
        MPL_PASS(read_term(self, &at, dims[i], &self->in[i]));
        at += *at == ',';
    }
    if (*at == '\0')
        return imply_result(self);
    if (at[1] != '>')
        return ONNX_REFUSE(node, "its equation has a '-' that begins no arrow");
    at += 2;
    MPL_PASS(read_term(self, &at, self->ellipsis, &self->out));
    if (*at != '\0')
        return ONNX_REFUSE(node, "its equation goes on behind the result");
    if (self->ellipsis > 0 && !has(&self->out, 52))
        return ONNX_REFUSE(node, "its equation has dots, the result has none");
    return MPL_OK;
}

/* The axes k and l of operand i become one at the end, their diagonal. */
static mpl_status take_diagonal(einsum *self, uint32_t i, uint32_t k, uint32_t l)
{
    onnx_node *node = self->node;
    term *t = &self->in[i], left = {0};
    mpl_shape s = node->r->g->value_shape[self->v[i]];
    int64_t perm[MPL_MAX_RANK], dim[MPL_MAX_RANK], size = s.dim[k];
    uint32_t rank = 0;

    if (s.dim[l] != size)
        return ONNX_REFUSE(node, "dims %" PRId64 " and %" PRId64 " of one letter differ", size,
                           s.dim[l]);
    for (uint32_t j = 0; j < t->n; j++)
        if (j != k && j != l) {
            left.letter[left.n++] = t->letter[j];
            perm[rank] = j, dim[rank++] = s.dim[j];
        }
    left.letter[left.n++] = t->letter[k];
    perm[rank] = k, perm[rank + 1] = l, dim[rank] = size * size;
    *t = left;
    const mpl_attr cut[] = {MPL_INT(axes, rank), MPL_INT(starts, 0), MPL_INT(ends, size * size),
                            MPL_INT(steps, size + 1)};

    if (s.rank > 2)
        MPL_PASS(onnx_transpose(node, self->v[i], perm, &self->v[i]));
    MPL_PASS(onnx_reshape(node, self->v[i], rank + 1, dim, &self->v[i]));
    return onnx_step(node, MPL_OP_slice, "diagonal", 1, &self->v[i], 4, cut, &self->v[i]);
}

/* Each letter once in each term. */
static mpl_status take_diagonals(einsum *self)
{
    for (uint32_t i = 0; i < self->n_terms; i++)
        for (uint32_t k = 0, l; k < self->in[i].n;) {
            for (l = k + 1; l < self->in[i].n && self->in[i].letter[l] != self->in[i].letter[k];
                 l++)
                ;
            if (l < self->in[i].n)
                MPL_PASS(take_diagonal(self, i, k, l));
            else
                k++;
        }
    return MPL_OK;
}

/* Records the terms and the dim of each letter. */
static mpl_status meet(einsum *self)
{
    onnx_node *node = self->node;

    for (uint32_t i = 0; i < self->n_terms; i++)
        for (uint32_t k = 0; k < self->in[i].n; k++) {
            unsigned letter = self->in[i].letter[k];
            int64_t dim = node->r->g->value_shape[self->v[i]].dim[k];

            if (self->met[letter] != 0 && self->dim[letter] != dim)
                return ONNX_REFUSE(node, "dims %" PRId64 " and %" PRId64 " of one letter differ",
                                   self->dim[letter], dim);
            self->is_empty = self->is_empty || dim == 0;
            self->dim[letter] = dim;
            self->met[letter] |= 1u << i;
        }
    for (uint32_t k = 0; k < self->out.n; k++) {
        if (self->met[self->out.letter[k]] == 0)
            return ONNX_REFUSE(node, "a letter of the result stands in no input's term");
        self->met[self->out.letter[k]] |= RESULT;
    }
    return MPL_OK;
}

/* Sums over the letters that only operand i has. */
static mpl_status sum_alone(einsum *self, uint32_t i)
{
    term left = {0}, *t = &self->in[i];
    int64_t axes[MPL_MAX_RANK];
    uint32_t n_axes = 0;

    for (uint32_t k = 0; k < t->n; k++)
        if (self->met[t->letter[k]] == 1u << i)
            axes[n_axes++] = k;
        else
            left.letter[left.n++] = t->letter[k];
    *t = left;
    if (n_axes > 0)
        MPL_PASS(onnx_step(
            self->node, MPL_OP_reduce_sum, i == 0 ? "left_sum" : "right_sum", 1, &self->v[i], 2,
            (mpl_attr[]){MPL_INTS(axes, n_axes, axes), MPL_INT(keepdims, 0)}, &self->v[i]));
    return MPL_OK;
}

/* The positions of the letters of `to` in `from`; false: the order is the same. */
static bool permutation(const term *from, const term *to, int64_t perm[MPL_MAX_RANK])
{
    bool moved = false;

    for (uint32_t k = 0; k < to->n; k++) {
        for (uint32_t i = 0; i < from->n; i++)
            if (from->letter[i] == to->letter[k])
                perm[k] = i;
        moved = moved || perm[k] != k;
    }
    return moved;
}

/* Appends the letters of `from` in the terms `where` to *to; returns the product of their dims. */
static int64_t gather(const einsum *self, const term *from, unsigned where, term *to)
{
    int64_t dim = 1;

    for (uint32_t k = 0; k < from->n; k++)
        if (self->met[from->letter[k]] == where) {
            to->letter[to->n++] = from->letter[k];
            dim *= self->dim[from->letter[k]]; /* at most the operand's elements */
        }
    return dim;
}

/* Reshapes *v to these dims; keeps *v if it has them. */
static mpl_status reshape(einsum *self, const char *suffix, uint32_t rank, const int64_t *dim,
                          mpl_value *v)
{
    mpl_shape shape = {.rank = rank};

    memcpy(shape.dim, dim, rank * sizeof *dim);
    if (mpl_shape_equal(&shape, &self->node->r->g->value_shape[*v]))
        return MPL_OK;
    return onnx_step(self->node, MPL_OP_reshape, suffix, 1, v, 1, &MPL_INTS(shape, rank, dim), v);
}

/* Operand i as a stack of matrices, one for each index of `stack`; `inner`: letters summed over. */
static mpl_status as_matrices(einsum *self, uint32_t i, const term *stack, const term *inner)
{
    const term *t = &self->in[i];
    unsigned own = (1u << i) | RESULT;
    int64_t perm[MPL_MAX_RANK], dim[MPL_MAX_RANK], rows, columns = 1;
    term order = *stack;
    uint32_t rank = stack->n;
    onnx_node *node = self->node;

    if (rank + 2 > MPL_MAX_RANK)
        return ONNX_REFUSE(
            node, "%u letters stand in both inputs and the result; at most %d are supported", rank,
            MPL_MAX_RANK - 2);
    for (uint32_t k = 0; k < inner->n; k++)
        columns *= self->dim[inner->letter[k]];
    for (uint32_t k = 0; k < inner->n && i == 1; k++)
        order.letter[order.n++] = inner->letter[k];
    rows = gather(self, t, own, &order);
    for (uint32_t k = 0; k < inner->n && i == 0; k++)
        order.letter[order.n++] = inner->letter[k];
    if (permutation(t, &order, perm))
        MPL_PASS(onnx_step(node, MPL_OP_transpose, i == 0 ? "left" : "right", 1, &self->v[i], 1,
                           &MPL_INTS(perm, order.n, perm), &self->v[i]));
    for (uint32_t k = 0; k < rank; k++)
        dim[k] = self->dim[stack->letter[k]];
    dim[rank] = i == 0 ? rows : columns;
    dim[rank + 1] = i == 0 ? columns : rows;
    return reshape(self, i == 0 ? "left_rows" : "right_columns", rank + 2, dim, &self->v[i]);
}

/* The product of both operands as a stack of matrices, and the letters of its dims. */
static mpl_status multiply(einsum *self, term *made, mpl_value *out)
{
    term stack = {0}, inner = {0};

    gather(self, &self->in[0], LEFT | RIGHT | RESULT, &stack);
    gather(self, &self->in[0], LEFT | RIGHT, &inner);
    MPL_PASS(as_matrices(self, 0, &stack, &inner));
    MPL_PASS(as_matrices(self, 1, &stack, &inner));
    MPL_PASS(onnx_step(self->node, MPL_OP_matmul, "product", 2, self->v, 0, NULL, out));
    *made = stack;
    gather(self, &self->in[0], LEFT | RESULT, made);
    gather(self, &self->in[1], RIGHT | RESULT, made);
    return MPL_OK;
}

/* The result for empty sums: zeros of the result's dims. */
static mpl_status make_zeros(einsum *self)
{
    onnx_node *node = self->node;
    const mpl_graph *g = node->r->g;
    mpl_type type = (mpl_type)g->value_type[self->v[0]];
    mpl_shape shape = {.rank = self->out.n};
    const double zero = 0;

    if (self->n_terms == 2 && g->value_type[self->v[1]] != type)
        return ONNX_REFUSE(node, "its inputs have types %s and %s", mpl_type_name(type),
                           mpl_type_name((mpl_type)g->value_type[self->v[1]]));
    for (uint32_t k = 0; k < self->out.n; k++)
        shape.dim[k] = self->dim[self->out.letter[k]];
    return onnx_blame(node, mpl_graph_add_const(node->r->ctx, node->r->g, node->out_name[0], type,
                                                &shape, &zero, true, &node->out[0]));
}

mpl_status onnx_lower_einsum(onnx_node *node)
{
    einsum e = {.node = node, .n_terms = node->n_in};
    const mpl_attr *equation = onnx_get(node, MPL_ATTR_equation);
    int64_t perm[MPL_MAX_RANK], dim[MPL_MAX_RANK];
    term made;
    mpl_value v;

    if (node->n_in < 1 || node->n_in > 2)
        return ONNX_REFUSE(node, "it has %u inputs; one or two are supported", node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++)
        if ((e.v[i] = node->in[i]) == MPL_NONE)
            return ONNX_REFUSE(node, "input %u is missing", i);
    if (equation == NULL)
        return ONNX_REFUSE(node, "attribute 'equation' is missing");
    MPL_PASS(read_equation(&e, equation->text));
    onnx_drop(node, MPL_ATTR_equation);
    MPL_PASS(take_diagonals(&e));
    MPL_PASS(meet(&e));
    if (e.is_empty)
        return make_zeros(&e);
    for (uint32_t i = 0; i < e.n_terms; i++)
        MPL_PASS(sum_alone(&e, i));
    made = e.in[0];
    v = e.v[0];
    if (e.n_terms == 2)
        MPL_PASS(multiply(&e, &made, &v));
    for (uint32_t k = 0; k < made.n; k++)
        dim[k] = e.dim[made.letter[k]];
    if (permutation(&made, &e.out, perm)) {
        MPL_PASS(reshape(&e, "dims", made.n, dim, &v));
        MPL_PASS(onnx_set_ints(node, MPL_ATTR_perm, e.out.n, perm));
        MPL_PASS(onnx_finish(node, MPL_OP_transpose, 1, &v));
    } else {
        MPL_PASS(onnx_set_ints(node, MPL_ATTR_shape, made.n, dim));
        MPL_PASS(onnx_finish(node, MPL_OP_reshape, 1, &v));
    }
    return MPL_OK;
}
