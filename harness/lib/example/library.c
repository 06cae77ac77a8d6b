/* library.c -- plans GRAPH and prints each buffer's offset.
 * Build: cc library.c $(pkg-config --cflags --libs memplan) */
#include <inttypes.h>
#include <memplan.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    memplan_ctx *ctx = memplan_ctx_new();
    memplan_task *task = NULL;
    memplan_plan *plan = NULL;
    memplan_status st =
        ctx == NULL ? MEMPLAN_EMEM : memplan_load(ctx, argc > 1 ? argv[1] : "mlp", &task);

    if (st == MEMPLAN_OK)
        st = memplan_run(task, "greedy_size", &plan);
    for (uint32_t b = 0; plan != NULL && b < memplan_count(task); b++)
        printf("%s %" PRIu64 " at %" PRIu64 "\n", memplan_name(task, b), memplan_bytes(task, b),
               memplan_offset(plan, b));
    if (plan != NULL)
        printf("arena %" PRIu64 ", bound %" PRIu64 "\n", memplan_peak_bytes(plan),
               memplan_bound_bytes(plan));
    else
        fprintf(stderr, "%s\n", ctx != NULL ? memplan_message(ctx) : "out of memory");
    memplan_plan_free(plan), memplan_task_free(task), memplan_ctx_free(ctx);
    return (int)st;
}
