/* nvml.c -- clocks, power and temperature from the driver's management library, opened with a
 * device. Without the library they are unknown. Its few functions are declared here from its
 * reference manual, because the toolkit may come without its header. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/real_priv.h"

#include <dlfcn.h>

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_GPU = 0 };

typedef struct nvml_device nvml_device;

struct mpl_nvml {
    void *library;
    nvml_device *device;
    int (*shutdown)(void);
    int (*clock)(nvml_device *device, int type, unsigned *mhz);
    int (*most_clock)(nvml_device *device, int type, unsigned *mhz);
    int (*power)(nvml_device *device, unsigned *mw);
    int (*most_power)(nvml_device *device, unsigned *mw);
    int (*state)(nvml_device *device, int *state);
    int (*temperature)(nvml_device *device, int sensor, unsigned *celsius);
    int (*throttled)(nvml_device *device, unsigned long long *reasons);
};

static bool find(void *library, const char *name, void *function, size_t size)
{
    void *p = dlsym(library, name);

    if (p != NULL)
        memcpy(function, &p, size); /* POSIX allows data pointers to be functions */
    return p != NULL;
}

#define FIND(name, to) find(n->library, name, &(to), sizeof(to))

static bool begin(mpl_nvml *n, int device)
{
    char bus[32] = "";
    int (*init)(void) = NULL, (*by_bus)(const char *, nvml_device **) = NULL;

    if ((n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) == NULL ||
        !FIND("nvmlInit_v2", init) || !FIND("nvmlDeviceGetHandleByPciBusId_v2", by_bus) ||
        !FIND("nvmlDeviceGetClockInfo", n->clock) ||
        !FIND("nvmlDeviceGetMaxClockInfo", n->most_clock) ||
        !FIND("nvmlDeviceGetPowerUsage", n->power) ||
        !FIND("nvmlDeviceGetEnforcedPowerLimit", n->most_power) ||
        !FIND("nvmlDeviceGetPerformanceState", n->state) || init() != 0 ||
        !FIND("nvmlShutdown", n->shutdown))
        return false;
    (void)FIND("nvmlDeviceGetTemperature", n->temperature); /* may be missing in later versions */
    if (!FIND("nvmlDeviceGetCurrentClocksEventReasons", n->throttled)) /* new name since 12.2 */
        (void)FIND("nvmlDeviceGetCurrentClocksThrottleReasons", n->throttled);
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) == cudaSuccess)
        return by_bus(bus, &n->device) == 0;
    (void)cudaGetLastError(); /* otherwise the next launch would report it */
    return false;
}

mpl_status mpl_nvml_open(mpl_ctx *ctx, int device, mpl_nvml **out)
{
    mpl_status st = MPL_OK;
    mpl_nvml *n = NULL;

    MPL_TRY(mpl_new(ctx, n, 1));
    if (begin(n, device))
        *out = n, n = NULL;
out:
    mpl_nvml_close(ctx, n);
    return st;
}

void mpl_nvml_close(mpl_ctx *ctx, mpl_nvml *n)
{
    if (n == NULL)
        return;
    if (n->shutdown != NULL)
        n->shutdown();
    if (n->library != NULL)
        dlclose(n->library);
    mpl_free(ctx, n);
}

/* What a device does not support stays 0. */
int mpl_nvml_clocks(mpl_nvml *n, mpl_device_clocks *out)
{
    unsigned core = 0, core_most = 0, memory = 0, memory_most = 0, power = 0, power_most = 0,
             celsius = 0;
    unsigned long long reasons = 0;
    int state = 0;

    if (n == NULL || n->clock(n->device, CLOCK_SM, &core) != 0)
        return 1;
    (void)n->most_clock(n->device, CLOCK_SM, &core_most);
    (void)n->clock(n->device, CLOCK_MEMORY, &memory);
    (void)n->most_clock(n->device, CLOCK_MEMORY, &memory_most);
    (void)n->power(n->device, &power);
    (void)n->most_power(n->device, &power_most);
    (void)n->state(n->device, &state);
    if (n->temperature != NULL)
        (void)n->temperature(n->device, TEMPERATURE_GPU, &celsius);
    if (n->throttled != NULL)
        (void)n->throttled(n->device, &reasons);
    *out = (mpl_device_clocks){
        .core_mhz = core,
        .core_most_mhz = core_most,
        .memory_mhz = memory,
        .memory_most_mhz = memory_most,
        .power_mw = power,
        .power_most_mw = power_most,
        .celsius = celsius,
        .state = (uint32_t)state,
        .throttled = reasons,
    };
    return 0;
}

#else
typedef int mpl_no_nvml; /* a translation unit of ISO C has at least one declaration */
#endif
