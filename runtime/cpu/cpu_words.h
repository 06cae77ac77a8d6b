/* cpu_words.h -- convolutions and products of 8-bit integers on the backend `cpu` where oneDNN has
 * no exact code: on a processor without VNNI, and for weights with a zero point.
 *
 * A piece of the input that fits a cache is widened to 16 bits less its zero point, borders as
 * zeros, and multiplied by the weights, widened alike (loops/words.h); sums of 32 bits are scaled
 * as soon as they are made. Results are those of the plain loops bit for bit. */
#ifndef MPL_CPU_WORDS_H
#define MPL_CPU_WORDS_H

#include "graphs/graph.h"

typedef struct mpl_words mpl_words;

enum { MPL_WORDS_PIECE = 128 * 1024 }; /* words of the widened input, if more than a row fits */

/* Prepares qconv or qmatmul of 8-bit integers. *out is NULL if it is none, or if sums of 32 bits
 * might overflow. piece_words: MPL_WORDS_PIECE, or fewer to test; plain: loops for any processor.
 * MPL_EMEM. */
mpl_status mpl_words_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, int64_t piece_words,
                         bool plain, mpl_words **out, uint64_t *workspace_bytes, const char **how);
void mpl_words_free(mpl_ctx *ctx, mpl_words *words); /* NULL is allowed */
void mpl_words_run(mpl_words *words, const mpl_op_call *call, uint32_t n_threads);
/* Bytes of weights kept as words after the first run. */
uint64_t mpl_words_packed_bytes(const mpl_words *words);

#endif
