/* as_real.h -- as_real's rule and loop, handed those of every operator: so they lie below the table
 * of operators that they work through. */
#pragma once

#include "graphs/graph.h"

typedef mpl_status mpl_shape_rule(mpl_ctx *ctx, mpl_op_kind kind, const mpl_shape_call *call);
typedef mpl_status mpl_eval_rule(mpl_ctx *ctx, mpl_op_kind kind, const mpl_op_call *call);

mpl_status mpl_real_shape(mpl_ctx *ctx, const mpl_shape_call *call, mpl_shape_rule *shape);
/* What mpl_real_eval uses of call->workspace. [byte] */
uint64_t mpl_real_workspace(const mpl_graph *g, mpl_op op);
mpl_status mpl_real_eval(mpl_ctx *ctx, const mpl_op_call *call, mpl_shape_rule *shape,
                         mpl_eval_rule *loop);
