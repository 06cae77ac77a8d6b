/* each_op.h -- includes the lines of ops.def; macros of ops.def that are undefined here expand to
 * nothing. Undefines all of them at the end. It has no include guard. */
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
#ifndef FOREIGN
#define FOREIGN(...)
#endif
#include "graphs/ir/ops.def"
#undef OP
#undef GRADIENT
#undef SLOPE
#undef ONNX
#undef FOREIGN
