/* real.c -- calls of real devices: CUDA's runtime, with cuDNN and cuBLAS on demand. See api.h. */

#include <mpl_config.h>

#if !MPL_HAVE_CUDA

#include "runtime/cuda/api.h"

const mpl_cuda_api *mpl_cuda_real(const char **absent)
{
    *absent = "built without CUDA: " MPL_CUDA_LACKS;
    return NULL;
}

#else

#include "runtime/cuda/real_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT(x)     #x
#define TEXT_OF(x)  TEXT(x)
#define CUDNN_FILE  "libcudnn.so." TEXT_OF(CUDNN_MAJOR)
#define LEAST_BLAS  12 /* the calls used here are stable from this version on */
#define LEAST_MAJOR 8  /* compute capability that the kernels are built for (Makefile) */

/* ---- finding what is needed: facts of the machine, learnt once for the process ---- */

static mpl_cuda_library library;
static char reason[300]; /* why there is no device; empty: there is one */
static pthread_once_t found_once = PTHREAD_ONCE_INIT;

/* Folders of NVIDIA's Python packages, the only cuDNN and cuBLAS on machines set up for PyTorch
 * alone. */
static const char *const folders[] = {
    "/usr/local/cuda/lib64",
    "/usr/lib/python3*/site-packages/nvidia/*/lib",
    "/usr/lib/python3*/dist-packages/nvidia/*/lib",
    "/usr/local/lib/python3*/site-packages/nvidia/*/lib",
    "/usr/local/lib/python3*/dist-packages/nvidia/*/lib",
    "/opt/*/lib/python3*/site-packages/nvidia/*/lib",
    "/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib",
};

static void *open_in(const char *folder, const char *file)
{
    char pattern[512];
    glob_t found;
    void *handle = NULL;

    if (snprintf(pattern, sizeof pattern, "%s/%s", folder, file) >= (int)sizeof pattern ||
        glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = 0; i < found.gl_pathc && handle == NULL; i++)
        handle = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_GLOBAL);
    globfree(&found);
    return handle;
}

/* Opens a file by a pattern in which an environment variable replaces %s; NULL if it is not set. */
static void *open_by(const char *variable, const char *pattern, const char *file)
{
    const char *value = getenv(variable);
    char folder[512];

    if (value == NULL ||
        snprintf(folder, sizeof folder, "%s%s", value, pattern) >= (int)sizeof folder)
        return NULL;
    return open_in(folder, file);
}

/* Searches MEMPLAN_CUDNN (a folder) with the packages beside it, then the loader's path, then the
 * active environment and the folders above. */
static void *open_library(const char *file)
{
    static const char packages[] = "/lib/python3*/site-packages/nvidia/*/lib";
    void *handle = open_by("MEMPLAN_CUDNN", "", file);

    if (handle == NULL)
        handle = open_by("MEMPLAN_CUDNN", "/../../*/lib", file);
    if (handle == NULL)
        handle = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    if (handle == NULL)
        handle = open_by("VIRTUAL_ENV", packages, file);
    if (handle == NULL)
        handle = open_by("CONDA_PREFIX", packages, file);
    for (size_t i = 0; i < sizeof folders / sizeof *folders && handle == NULL; i++)
        handle = open_in(folders[i], file);
    return handle;
}

/* The version that this was built with, or an older one: cuDNN's packages exist for each version
 * and bring the one they need. */
static void *open_blas(void)
{
    void *handle = NULL;

    for (int major = CUBLAS_VER_MAJOR; major >= LEAST_BLAS && handle == NULL; major--) {
        char lt[40], blas[40];

        snprintf(lt, sizeof lt, "libcublasLt.so.%d", major);
        snprintf(blas, sizeof blas, "libcublas.so.%d", major);
        if (open_library(lt) != NULL)
            handle = open_library(blas);
    }
    return handle;
}

static void *find(void *handle, const char *file, const char *name)
{
    void *p = dlsym(handle, name);

    if (p == NULL && reason[0] == '\0')
        snprintf(reason, sizeof reason, "%s has no %s", file, name);
    return p;
}

/* cuBLAS first: cuDNN asks the loader for it by name and receives the loaded one. */
static void open_libraries(void)
{
    void *blas = open_blas(), *dnn = blas != NULL ? open_library(CUDNN_FILE) : NULL, *p;

    if (dnn == NULL) {
        snprintf(reason, sizeof reason,
                 "%s was not found; MEMPLAN_CUDNN names the folder of " CUDNN_FILE,
                 blas == NULL ? "libcublas.so." TEXT_OF(CUBLAS_VER_MAJOR) : CUDNN_FILE);
        return;
    }
    /* dlsym returns data pointers; POSIX allows them to be functions */
#define CALL(name)                                                                                 \
    p = find(dnn, CUDNN_FILE, #name);                                                              \
    memcpy(&library.name, &p, sizeof p);
    MPL_CUDNN_CALLS(CALL)
#undef CALL
#define CALL(name)                                                                                 \
    p = find(blas, "cuBLAS", #name);                                                               \
    memcpy(&library.name, &p, sizeof p);
    MPL_CUBLAS_CALLS(CALL)
#undef CALL
    library.launch = mpl_cuda_launch;
}

/* In a child, because a started driver does not survive a fork and bench makes many children. The
 * answer comes through a pipe, because CUDA's codes do not fit into an exit status. */
static void count_devices(void)
{
    int end[2], code = 0, n = 0;
    pid_t child;
    ssize_t got;

    if (pipe(end) != 0) {
        snprintf(reason, sizeof reason, "the driver could not be asked for its devices");
        return;
    }
    if ((child = fork()) == 0) {
        code = (int)cudaGetDeviceCount(&n);
        code = code == 0 && n == 0 ? (int)cudaErrorNoDevice : code;
        _exit(write(end[1], &code, sizeof code) != (ssize_t)sizeof code);
    }
    close(end[1]);
    do
        got = child < 0 ? 0 : read(end[0], &code, sizeof code);
    while (got < 0 && errno == EINTR);
    close(end[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (got != (ssize_t)sizeof code)
        snprintf(reason, sizeof reason, "the driver could not be asked for its devices");
    else if (code != 0)
        snprintf(reason, sizeof reason, "no device: %s", cudaGetErrorString((cudaError_t)code));
}

static void look(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (driver == NULL) {
        snprintf(reason, sizeof reason, "no NVIDIA driver here (libcuda.so.1)");
        return;
    }
    dlclose(driver);
    count_devices();
    if (reason[0] == '\0')
        open_libraries();
}

static const char *real_absent(void)
{
    pthread_once(&found_once, look);
    return reason[0] != '\0' ? reason : NULL;
}

/* ---- opening ---- */

static const char *real_text(int code)
{
    static const char *const blas[] = {"success",
                                       "not initialized",
                                       "",
                                       "allocation failed",
                                       "",
                                       "",
                                       "",
                                       "invalid value",
                                       "architecture mismatch",
                                       "",
                                       "",
                                       "mapping error",
                                       "",
                                       "execution failed",
                                       "internal error",
                                       "not supported"};

    if (code >= MPL_CUBLAS_CODE) {
        size_t own = (size_t)(code - MPL_CUBLAS_CODE);

        return own < sizeof blas / sizeof *blas && blas[own][0] != '\0' ? blas[own]
                                                                        : "a failure of cuBLAS";
    }
    if (code >= MPL_CUDNN_CODE)
        return library.cudnnGetErrorString((cudnnStatus_t)(code - MPL_CUDNN_CODE));
    return cudaGetErrorString((cudaError_t)code);
}

static void real_close(mpl_ctx *ctx, mpl_cuda *c)
{
    if (c == NULL)
        return;
    if (c->blas != NULL)
        c->library->cublasDestroy_v2(c->blas);
    if (c->dnn != NULL)
        c->library->cudnnDestroy(c->dnn);
    mpl_nvml_close(ctx, c->nvml);
    mpl_free(ctx, c);
}

static mpl_status say(mpl_ctx *ctx, int code, const char *what)
{
    if (code == 0)
        return MPL_OK;
    (void)cudaGetLastError(); /* otherwise the next launch would report it */
    return MPL_ERROR(ctx, MPL_EUNAVAIL, "CUDA: opening %s: %s", what, real_text(code));
}

static mpl_status describe(mpl_ctx *ctx, mpl_cuda *c, int device)
{
    struct cudaDeviceProp p;
    int driver = 0, runtime = 0;

    MPL_PASS(say(ctx, (int)cudaGetDeviceProperties(&p, device), "the device"));
    if (p.major < LEAST_MAJOR)
        return MPL_ERROR(
            ctx, MPL_EUNAVAIL,
            "CUDA: device %d (%.120s) has compute capability %d.%d; the kernels need %d.0", device,
            p.name, p.major, p.minor, LEAST_MAJOR);
    MPL_PASS(say(ctx, (int)cudaDriverGetVersion(&driver), "the driver"));
    MPL_PASS(say(ctx, (int)cudaRuntimeGetVersion(&runtime), "the runtime"));
    snprintf(c->about, sizeof c->about,
             "%.120s (sm_%d%d, %zu MiB), driver for CUDA %d.%d, runtime %d.%d, cuDNN %zu.%zu.%zu",
             p.name, p.major, p.minor, p.totalGlobalMem >> 20, driver / 1000, driver % 1000 / 10,
             runtime / 1000, runtime % 1000 / 10, c->library->cudnnGetVersion() / 10000,
             c->library->cudnnGetVersion() / 100 % 100, c->library->cudnnGetVersion() % 100);
    return MPL_OK;
}

static mpl_status real_open(mpl_ctx *ctx, int device, mpl_cuda **out, const char **about)
{
    mpl_status st = MPL_OK;
    mpl_cuda *c = NULL;
    cudnnStatus_t dnn;
    cublasStatus_t blas;

    if (real_absent() != NULL)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "backend cuda: %s", reason);
    MPL_TRY(mpl_new(ctx, c, 1));
    c->library = &library;
    MPL_TRY(say(ctx, (int)cudaSetDevice(device), "the device"));
    MPL_TRY(describe(ctx, c, device));
    if ((dnn = library.cudnnCreate(&c->dnn)) != CUDNN_STATUS_SUCCESS)
        MPL_TRY(say(ctx, MPL_CUDNN_CODE + (int)dnn, "cuDNN"));
    if ((blas = library.cublasCreate_v2(&c->blas)) != CUBLAS_STATUS_SUCCESS)
        MPL_TRY(say(ctx, MPL_CUBLAS_CODE + (int)blas, "cuBLAS"));
    MPL_TRY(mpl_nvml_open(ctx, device, &c->nvml));
    *about = c->about;
    *out = c, c = NULL;
out:
    real_close(ctx, c);
    return st;
}

/* ---- memory, streams, events, graphs ---- */

/* The runtime keeps the code of a failed call until it is read; a later launch would report it. */
static int done(cudaError_t code)
{
    if (code != cudaSuccess)
        (void)cudaGetLastError();
    return (int)code;
}

/* An entry of the table that is one call of the runtime. */
#define ENTRY(name, parameters, call)                                                              \
    static int name parameters                                                                     \
    {                                                                                              \
        (void)c;                                                                                   \
        return done(call);                                                                         \
    }

ENTRY(memory_new, (mpl_cuda * c, void **out, size_t bytes), cudaMalloc(out, bytes))
ENTRY(memory_free, (mpl_cuda * c, void *p), cudaFree(p))
ENTRY(pool_new, (mpl_cuda * c, void **out, size_t bytes, void *stream),
      cudaMallocAsync(out, bytes, stream))
ENTRY(pool_free, (mpl_cuda * c, void *p, void *stream), cudaFreeAsync(p, stream))
ENTRY(host_new, (mpl_cuda * c, void **out, size_t bytes), cudaMallocHost(out, bytes))
ENTRY(host_free, (mpl_cuda * c, void *p), cudaFreeHost(p))
ENTRY(host_call, (mpl_cuda * c, void (*function)(void *data), void *data, void *stream),
      cudaLaunchHostFunc(stream, function, data))
ENTRY(memory_info, (mpl_cuda * c, size_t *available, size_t *total),
      cudaMemGetInfo(available, total))
ENTRY(fill, (mpl_cuda * c, void *at, int byte, size_t bytes, void *stream),
      cudaMemsetAsync(at, byte, bytes, stream))
ENTRY(stream_new, (mpl_cuda * c, void **out),
      cudaStreamCreateWithFlags((cudaStream_t *)out, cudaStreamNonBlocking))
ENTRY(stream_free, (mpl_cuda * c, void *stream), cudaStreamDestroy(stream))
ENTRY(stream_wait, (mpl_cuda * c, void *stream, void *event), cudaStreamWaitEvent(stream, event, 0))
ENTRY(stream_finish, (mpl_cuda * c, void *stream), cudaStreamSynchronize(stream))
ENTRY(event_new, (mpl_cuda * c, void **out, bool timed),
      cudaEventCreateWithFlags((cudaEvent_t *)out,
                               timed ? cudaEventDefault : cudaEventDisableTiming))
ENTRY(event_free, (mpl_cuda * c, void *event), cudaEventDestroy(event))
ENTRY(event_record, (mpl_cuda * c, void *event, void *stream), cudaEventRecord(event, stream))
ENTRY(event_time, (mpl_cuda * c, float *ms, void *begin, void *end),
      cudaEventElapsedTime(ms, begin, end))
ENTRY(capture_begin, (mpl_cuda * c, void *stream),
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal))
ENTRY(graph_launch, (mpl_cuda * c, void *graph, void *stream), cudaGraphLaunch(graph, stream))
ENTRY(graph_free, (mpl_cuda * c, void *graph), cudaGraphExecDestroy(graph))

static int clocks(mpl_cuda *c, mpl_device_clocks *out)
{
    return mpl_nvml_clocks(c->nvml, out);
}

static int copy(mpl_cuda *c, void *to, const void *from, size_t bytes, mpl_cuda_way way,
                void *stream)
{
    static const enum cudaMemcpyKind kind[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                               cudaMemcpyDeviceToDevice};

    (void)c;
    return done(cudaMemcpyAsync(to, from, bytes, kind[way], stream));
}

static int capture_end(mpl_cuda *c, void *stream, void **out)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    cudaError_t code = cudaStreamEndCapture(stream, &graph);

    (void)c;
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(&ready, graph, 0);
    if (code == cudaSuccess) /* takes the graph's device memory now, not at its first launch */
        code = cudaGraphUpload(ready, stream);
    if (graph != NULL)
        cudaGraphDestroy(graph);
    *out = ready;
    return done(code);
}

static int run(mpl_cuda *c, const mpl_cuda_work *work, void *stream)
{
    if (work->dnn != NULL)
        return mpl_dnn_run(c, work, stream);
    for (uint32_t i = 0; i < work->n_kernels; i++) {
        int code = mpl_cuda_launch(&work->kernel[i], stream);

        if (code != 0)
            return code;
    }
    return 0;
}

const mpl_cuda_api *mpl_cuda_real(const char **absent)
{
    static const mpl_cuda_api api = {
        .absent = real_absent,
        .open = real_open,
        .close = real_close,
        .text = real_text,
        .memory_new = memory_new,
        .memory_free = memory_free,
        .pool_new = pool_new,
        .pool_free = pool_free,
        .host_new = host_new,
        .host_free = host_free,
        .host_call = host_call,
        .memory_info = memory_info,
        .clocks = clocks,
        .copy = copy,
        .fill = fill,
        .stream_new = stream_new,
        .stream_free = stream_free,
        .stream_wait = stream_wait,
        .stream_finish = stream_finish,
        .event_new = event_new,
        .event_free = event_free,
        .event_record = event_record,
        .event_time = event_time,
        .capture_begin = capture_begin,
        .capture_end = capture_end,
        .graph_launch = graph_launch,
        .graph_free = graph_free,
        .dnn_prepare = mpl_dnn_prepare,
        .dnn_release = mpl_dnn_release,
        .run = run,
    };

    *absent = NULL;
    return &api;
}

#endif
