/* ilp_priv.h -- one pool of a problem as an integer program. Private to ilp*.c. */
#pragma once

#include "planners/ilp/lp.h"
#include "planners/planner.h"

/* Offsets and sizes count in units. The unit is the largest number of bytes that divides every
 * possible begin of a buffer in a packing pushed down as far as it goes. Ends may be finer, since
 * the last slot need not be full. */
typedef struct mpl_ilp {
    mpl_ctx *ctx;
    const mpl_problem *p;
    uint32_t n;       /* buffers of the pool; "i" below means an index into id[] */
    uint32_t n_words; /* 64-bit words of a row: (n + 63) / 64 */
    mpl_buffer *id;   /* [n] */
    uint64_t unit;    /* [byte] */
    uint64_t *size;   /* [n] rounded up [unit] */
    uint64_t *step;   /* [n] offsets are multiples of it [unit] */
    uint64_t *row;    /* [n * n_words] bit j of row i: they conflict */
    /* [n * n_words] bit j of row i: an in-place pair, either way; NULL: no pairs */
    uint64_t *joins;
    uint64_t *at;     /* [n] offsets of the current plan [unit] */
    uint32_t *lowest; /* [n] lowest buffer of its family, or itself; NULL: no families */
    uint64_t *apart;  /* [n] distance above that buffer [unit] */
} mpl_ilp;

static inline bool mpl_ilp_bit(const mpl_ilp *ilp, const uint64_t *rows, uint32_t i, uint32_t j)
{
    return rows != NULL && mpl_bit_has(rows + (size_t)i * ilp->n_words, j);
}

static inline bool mpl_ilp_conflict(const mpl_ilp *ilp, uint32_t i, uint32_t j)
{
    return mpl_ilp_bit(ilp, ilp->row, i, j);
}

static inline bool mpl_ilp_joins(const mpl_ilp *ilp, uint32_t i, uint32_t j)
{
    return mpl_ilp_bit(ilp, ilp->joins, i, j);
}

static inline uint64_t mpl_ilp_bytes(const mpl_ilp *ilp, uint32_t i)
{
    return ilp->p->bytes[ilp->id[i]];
}

static inline bool mpl_ilp_fixed(const mpl_ilp *ilp, uint32_t i)
{
    return ilp->p->fixed != NULL && ilp->p->fixed[ilp->id[i]] != MPL_UNFIXED;
}

static inline bool mpl_ilp_one_family(const mpl_ilp *ilp, uint32_t i, uint32_t j)
{
    return ilp->lowest != NULL && ilp->lowest[i] == ilp->lowest[j];
}

/* The subject of one program: the offsets of some buffers of the pool. */
typedef struct mpl_ilp_part {
    uint32_t n;
    uint32_t *member;    /* [n] ascending */
    uint64_t base;       /* members lie at or above it, except fixed ones [unit] */
    uint64_t low_bytes;  /* the height is at least this .. */
    uint64_t high_bytes; /* .. and at most this, which is worth finding */
} mpl_ilp_part;

/* Makes the program. Column 0 is the height H in units (times cost in the objective), column 1 + k
 * the offset of member k in its steps. Rows: for each pair, one of two binaries; for each clique
 * found, "what is below me fits below me", and the same above. max_entries bounds the non-zeros of
 * clique rows; pair rows are always there. MPL_EMEM is the only error. */
mpl_status mpl_ilp_program(const mpl_ilp *ilp, const mpl_ilp_part *part, double cost,
                           size_t max_entries, mpl_lp **out);

/* ---- solving a pool ---- */

#define MPL_ILP_MAX_ENTRIES 1000000 /* non-zeros of the rows of cliques */
#define MPL_ILP_MAX_MIB     4096    /* of GLPK [MiB] */

typedef struct mpl_ilp_driver {
    mpl_ilp s;
    mpl_run *run;
    uint64_t best_bytes;     /* height of the best plan */
    uint64_t proved_bytes;   /* proved lower bound */
    uint64_t capacity_bytes; /* of the pool, or MPL_NO_CAPACITY */
    uint64_t enough_bytes;   /* a plan of this height ends the search; 0: only an optimal one */
    uint64_t finest;         /* every height is a multiple of it [byte] */
    uint64_t nodes_left;
    int64_t max_pairs;
    bool cold;        /* programs ignore the heuristics' plans and search up to best_bytes */
    uint64_t *placed; /* [n_words] bits of buffers whose at[] is decided */
    uint32_t *stack;  /* [n] buffers taken out, put back in reverse order */
    uint32_t n_stack;
    uint32_t *by_at; /* [n] scratch */
} mpl_ilp_driver;

uint64_t mpl_ilp_round_up(uint64_t at, uint64_t step);
/* The height at which the search may stop. */
uint64_t mpl_ilp_goal(const mpl_ilp_driver *driver);
uint64_t mpl_ilp_end_bytes(const mpl_ilp *ilp, uint32_t i);
/* Sets at[i] to the lowest place from base on beside the placed buffers, and marks i as placed. */
void mpl_ilp_place_lowest(mpl_ilp_driver *driver, uint32_t i, uint64_t base);
/* Whether members overlap only as in-place pairs at one offset, and families keep distances. */
bool mpl_ilp_is_valid(const mpl_ilp *ilp, const mpl_ilp_part *part);
uint64_t mpl_ilp_height_of(const mpl_ilp *ilp, const mpl_ilp_part *part);
/* Solves a part. Improves at[] of the members, a packing of *height, and driver->proved_bytes. */
mpl_status mpl_ilp_solve_part(mpl_ilp_driver *driver, mpl_ilp_part *part, uint64_t *height);
/* The heights to search for a part with a packing of `height`. False: none is worth it. */
bool mpl_ilp_range_of(const mpl_ilp_driver *driver, mpl_ilp_part *part, uint64_t height);
/* Places all buffers of the set from base on; uses up the set. */
mpl_status mpl_ilp_pack(mpl_ilp_driver *driver, uint64_t *set, uint64_t base, const uint64_t *plan);
