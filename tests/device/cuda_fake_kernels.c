/* cuda_fake_kernels.c -- our CUDA kernels on the host, thread by thread. See cuda_fake.h. */
#include "tests/device/cuda_fake.h"

#include "graphs/ops/ops_priv.h"

#include <stdlib.h>
#include <ucontext.h>

typedef struct index3 {
    unsigned x;
} index3;
static index3 blockIdx, threadIdx, blockDim, gridDim;

#define MOST_THREADS 256
#define STACK_BYTES  (1 << 17)

/* Where to go on. The compiler's own jumps: swapcontext asks the kernel twice a time, and a
 * sanitizer clears what it knows of a whole stack. */
static void *scheduler_at[5], *thread_at[MOST_THREADS][5];
static bool thread_ended[MOST_THREADS];
static unsigned n_begun; /* threads that have a stack */
static char *stacks;
static mpl_cuda_kernel launched;
static void (*launched_kernel)(const mpl_cuda_kernel k);

/* A caller must keep nothing in registers over a call that comes back by another way: gcc knows
 * which registers a function of this file leaves alone, but for noipa. */
#ifdef __clang__
#define APART noinline
#else
#define APART noipa
#endif
#define JUMPS __attribute__((APART, no_sanitize("address", "undefined"))) static void

JUMPS resume(void **at)
{
    __builtin_longjmp(at, 1);
}

JUMPS meet(void)
{
    if (__builtin_setjmp(thread_at[threadIdx.x]) == 0)
        resume(scheduler_at);
}

/* Of all kernels, one after the other. */
JUMPS thread_main(void)
{
    for (;;) {
        meet();
        launched_kernel(launched);
        thread_ended[threadIdx.x] = true;
    }
}

/* On a stack of its own up to where it waits for a kernel. */
JUMPS begin_thread(unsigned t)
{
    static ucontext_t c;

    getcontext(&c);
    c.uc_stack.ss_sp = stacks + (size_t)t * STACK_BYTES;
    c.uc_stack.ss_size = STACK_BYTES;
    makecontext(&c, thread_main, 0);
    threadIdx.x = t;
    if (__builtin_setjmp(scheduler_at) == 0)
        setcontext(&c);
}

JUMPS go_on(unsigned t)
{
    threadIdx.x = t;
    if (__builtin_setjmp(scheduler_at) == 0)
        resume(thread_at[t]);
}

/* Runs threads that meet at barriers: each runs on its own stack up to the next barrier. */
static void run_block_that_meets(void)
{
    bool any = true;

    if (stacks == NULL)
        stacks = malloc((size_t)MOST_THREADS * STACK_BYTES);
    for (; n_begun < blockDim.x; n_begun++)
        begin_thread(n_begun);
    memset(thread_ended, 0, sizeof thread_ended);
    while (any) {
        any = false;
        for (unsigned t = blockDim.x; t-- > 0;) /* last thread first: no order is guaranteed */
            if (!thread_ended[t]) {
                go_on(t);
                any |= !thread_ended[t];
            }
    }
}

static void emulate(void (*kernel)(const mpl_cuda_kernel k), const char *name, int64_t blocks,
                    int64_t threads, const mpl_cuda_kernel *k)
{
    static const char *const meeting[] = {"reduce",      "softmax",    "norm", "softmax_grad",
                                          "batch_train", "batch_grad", "loss", "loss_mean"};
    bool meets = false;

    for (size_t i = 0; i < sizeof meeting / sizeof *meeting; i++)
        meets |= strcmp(name, meeting[i]) == 0;
    gridDim.x = (unsigned)blocks;
    blockDim.x = (unsigned)threads;
    launched = *k;
    launched_kernel = kernel;
    for (blockIdx.x = gridDim.x; blockIdx.x-- > 0;)
        if (meets)
            run_block_that_meets();
        else
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
                kernel(*k);
}

void emulated_end(void)
{
    free(stacks);
    stacks = NULL;
    n_begun = 0;
}

static inline double from_f16(uint16_t bits)
{
    return (double)mpl_from_f16(bits);
}
static inline double from_bf16(uint16_t bits)
{
    return (double)mpl_from_bf16(bits);
}
#define to_f16  mpl_to_f16
#define to_bf16 mpl_to_bf16
#define KERNEL  static void
#define DEVICE  static inline
#define SHARED  static
#define MEET()  meet()
#define LAUNCH(kernel, blocks, threads, stream, k)                                                 \
    do {                                                                                           \
        (void)(stream);                                                                            \
        emulate(kernel, #kernel, blocks, threads, &(k));                                           \
    } while (0)
#define mpl_cuda_launch       emulated_launch
#define mpl_cuda_launch_train emulated_launch_train
void emulated_launch_train(const mpl_cuda_kernel *k, void *stream);
#include "runtime/cuda/kernels.cu"
#include "runtime/cuda/kernels_train.cu"
