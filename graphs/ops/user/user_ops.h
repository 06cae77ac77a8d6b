/* user_ops.h -- operators of the user's, from shared libraries (operators.h).
 *
 * An operation of one has the kind `user`, the operator's name as attribute `opcode` and its
 * attributes as one text, `params`: "NAME=VALUE .." with values as in a .graph file. The table is
 * filled before any graph is opened and only read from then on, by any thread. */
#pragma once

#include "graphs/graph.h"
#include "graphs/ops/user/operators.h"

enum { MPL_USER_NAME = 32 }; /* room for a name */

/* Adds all operators of a library, which must stay loaded. MPL_EINPUT, naming what is wrong: the
 * version, or an operator that is incomplete or has a name that is taken; then none is added. */
mpl_status mpl_user_add(mpl_ctx *ctx, const memplan_operators *library);
/* Operator number i, in the order of the calls; NULL: there are no more. */
const memplan_operator *mpl_user_at(uint32_t i);
/* NULL: no operator of that name, or of that ONNX domain and type. */
const memplan_operator *mpl_user_find(const char *name);
const memplan_operator *mpl_user_find_onnx(const char *domain, const char *type);
/* The operator of an operation of kind `user`; NULL: it is not loaded. */
const memplan_operator *mpl_user_of(const mpl_graph *g, mpl_op op);
/* The name of an operation's operator: of the user's its own. */
const char *mpl_op_called(const mpl_graph *g, mpl_op op);

/* Whether output 0 of `op` may overwrite input i: MEMPLAN_APART, _OVER or _ALONG. */
int mpl_user_in_place(const mpl_graph *g, mpl_op op, uint32_t i);
/* Bytes that the loop uses of call->workspace. [byte] */
uint64_t mpl_user_workspace(const mpl_graph *g, mpl_op op);

/* One attribute in a text of attributes, and its kind as the operator declares it. */
typedef struct mpl_user_param {
    const char *name, *value; /* in the text */
    size_t n_name, n_value;   /* characters */
    char kind;                /* 'i' int, 'r' real, 'I' ints, 'R' reals, 't' text; 0: undeclared */
} mpl_user_param;

/* Reads the attribute at *at and moves on; false: none is left, or what is there is none. */
bool mpl_user_next_param(const memplan_operator *u, const char **at, mpl_user_param *out);
/* Item i of a number or list; false: there are no more. */
bool mpl_user_param_int(const mpl_user_param *param, uint32_t i, int64_t *out);
bool mpl_user_param_real(const mpl_user_param *param, uint32_t i, double *out);
/* Writes a text without quotes, cut to `room` bytes with its zero. Returns its full length. */
size_t mpl_user_param_text(const mpl_user_param *param, char *to, size_t room);

/* The operator whose function is running in this thread; NULL: none. For reports of crashes. */
extern _Thread_local const memplan_operator *mpl_user_inside;
