/* eager.c -- a network of two layers, called operation by operation on batches of changing size: a
 * size met again runs by the plan of its first time.
 * Build: cc eager.c $(pkg-config --cflags --libs memplan) */
#include <inttypes.h>
#include <memplan.h>
#include <stdio.h>

enum { IN = 8, HIDDEN = 16, OUT = 4, MOST = 4 };

static memplan_status st; /* of the first call that failed */
static memplan_tape *tape;

/* One operation of one result on two operands (b 0: one), which ends the references to be ended. */
static memplan_tensor call(const char *op, memplan_tensor a, memplan_tensor b)
{
    memplan_tensor out = 0;

    if (st == MEMPLAN_OK)
        st =
            memplan_tape_call(tape, op, b != 0 ? 2 : 1, (memplan_tensor[]){a, b}, 0, NULL, 1, &out);
    return out;
}

int main(void)
{
    static const int64_t batch[] = {1, 4, 1, 2, 4, 1}, w1_dims[] = {IN, HIDDEN},
                         w2_dims[] = {HIDDEN, OUT};
    float w1[IN * HIDDEN], w2[HIDDEN * OUT], x[MOST * IN], y[MOST * OUT];
    memplan_ctx *ctx = memplan_ctx_new();
    memplan_tensor first = 0, second = 0, h;

    for (int i = 0; i < IN * HIDDEN; i++)
        w1[i] = (float)(i % 7 - 3) / 8, w2[i % (HIDDEN * OUT)] = (float)(i % 5 - 2) / 4;
    for (int i = 0; i < MOST * IN; i++)
        x[i] = (float)(i % 3);
    if (ctx == NULL || (st = memplan_tape_new(ctx, "caching", "ref", 8, &tape)) != MEMPLAN_OK ||
        (st = memplan_tape_weight(tape, "w1", "f32", 2, w1_dims, w1, 0, &first)) != MEMPLAN_OK ||
        (st = memplan_tape_weight(tape, "w2", "f32", 2, w2_dims, w2, 0, &second)) != MEMPLAN_OK)
        return 1;
    for (int i = 0; i < 6 && st == MEMPLAN_OK; i++) {
        uint64_t hits = memplan_tape_fact(tape, "hits");

        st = memplan_tape_input(tape, "x", "f32", 2, (int64_t[]){batch[i], IN}, x, &h);
        h = call("matmul", MEMPLAN_LAST(h), first);
        h = call("relu", MEMPLAN_LAST(h), 0); /* over its operand, once it is planned */
        h = call("matmul", MEMPLAN_LAST(h), second);
        if (st != MEMPLAN_OK || (st = memplan_tape_read(tape, h, y)) != MEMPLAN_OK ||
            (st = memplan_tape_release(tape, h)) != MEMPLAN_OK ||
            (st = memplan_tape_end(tape)) != MEMPLAN_OK)
            break;
        printf("batch %" PRId64 ": y[0] = %g, %s\n", batch[i], (double)y[0],
               memplan_tape_fact(tape, "hits") > hits ? "by its plan" : "eagerly");
    }
    printf("arena %" PRIu64 " bytes, the allocator held %" PRIu64 "\n",
           memplan_tape_fact(tape, "arena_bytes"), memplan_tape_fact(tape, "reserved_bytes"));
    if (st != MEMPLAN_OK)
        fprintf(stderr, "%s\n", memplan_message(ctx));
    memplan_tape_free(tape), memplan_ctx_free(ctx);
    return (int)st;
}
