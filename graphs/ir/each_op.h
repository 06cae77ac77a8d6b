/* each_op.h -- the lines of ops.def, by those of its macros that are defined here; the others say
 * nothing. Afterwards none is defined. No guard: it is included as often as the lines are read. */
#ifndef OP
#define OP(...)
#endif
#ifndef GRADIENT
#define GRADIENT(...)
#endif
#ifndef SLOPE
#define SLOPE(...)
#endif
#ifndef ONNX
#define ONNX(...)
#endif
#include "graphs/ir/ops.def"
#undef OP
#undef GRADIENT
#undef SLOPE
#undef ONNX
