/* machine.c -- facts of the machine and memory bound to a NUMA node, by hwloc. See machine.h. */
#include "runtime/machine.h"

#include <errno.h>
#include <hwloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Read once and kept until the process ends. NULL: it could not be read. */
static hwloc_topology_t topology;
static pthread_once_t topology_once = PTHREAD_ONCE_INIT;

static void topology_free(void)
{
    hwloc_topology_destroy(topology);
}

static void topology_load(void)
{
    hwloc_topology_t t;

    setenv("HWLOC_HIDE_ERRORS", "2", 0); /* without /sys it would print a warning */
    if (hwloc_topology_init(&t) != 0)
        return;
    if (hwloc_topology_load(t) != 0) {
        hwloc_topology_destroy(t);
        return;
    }
    topology = t;
    atexit(topology_free);
}

static mpl_status topology_get(mpl_ctx *ctx)
{
    pthread_once(&topology_once, topology_load);
    if (topology == NULL)
        return MPL_ERROR(ctx, MPL_EUNAVAIL, "hwloc could not read the topology of this machine");
    return MPL_OK;
}

static uint32_t count_of(hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(topology, type);

    return n > 0 ? (uint32_t)n : 1;
}

static const char *isa_name(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return "avx512";
    if (__builtin_cpu_supports("avx2"))
        return "avx2";
    if (__builtin_cpu_supports("avx"))
        return "avx";
    return "sse2";
#elif defined(__aarch64__)
    return "neon";
#else
    return "scalar";
#endif
}

mpl_status mpl_machine_get(mpl_ctx *ctx, mpl_machine *out)
{
    mpl_machine m = {.page_bytes = (uint32_t)sysconf(_SC_PAGESIZE)};
    char host[256] = "";
    const char *model;
    struct utsname os;

    MPL_PASS(topology_get(ctx));
    if (gethostname(host, sizeof host - 1) != 0 || uname(&os) != 0)
        return MPL_ERROR(ctx, MPL_EUNAVAIL, "the system does not say its name: %s",
                         strerror(errno));
    snprintf(m.host, sizeof m.host, "%016" PRIx64, mpl_hash(MPL_HASH_SEED, host, strlen(host)));
    model = hwloc_obj_get_info_by_name(hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0),
                                       "CPUModel");
    snprintf(m.cpu, sizeof m.cpu, "%s", model != NULL ? model : os.machine);
    snprintf(m.isa, sizeof m.isa, "%s", isa_name());
    snprintf(m.os, sizeof m.os, "%.20s %.40s", os.sysname, os.release);
    m.n_threads = count_of(HWLOC_OBJ_PU);
    m.n_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? count_of(HWLOC_OBJ_CORE)
                                                                       : m.n_threads;
    m.n_nodes = count_of(HWLOC_OBJ_NUMANODE);
    m.memory_bytes = hwloc_get_root_obj(topology)->total_memory;
    if (m.memory_bytes == 0 && sysconf(_SC_PHYS_PAGES) > 0)
        m.memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * m.page_bytes;
    m.binds_memory = hwloc_topology_get_support(topology)->membind->set_area_membind != 0;
    *out = m;
    return MPL_OK;
}

/* Cores that the calling thread may run on, ascending; all where the system does not tell. Returns
 * their number, at least 1; item k goes into *core (NULL: none wanted). */
static uint32_t cores_here(uint32_t k, hwloc_obj_t *core)
{
    hwloc_cpuset_t mask = hwloc_bitmap_alloc();
    uint32_t n = 0, n_cores = count_of(HWLOC_OBJ_CORE);
    bool known = mask != NULL && hwloc_get_cpubind(topology, mask, HWLOC_CPUBIND_THREAD) == 0;

    for (uint32_t i = 0; i < n_cores; i++) {
        hwloc_obj_t one = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, i);

        if (one == NULL || (known && !hwloc_bitmap_intersects(one->cpuset, mask)))
            continue;
        if (core != NULL && n == k)
            *core = one;
        n++;
    }
    hwloc_bitmap_free(mask);
    return n > 0 ? n : 1;
}

uint32_t mpl_cores_here(void)
{
    mpl_ctx ctx = mpl_ctx_default();

    return topology_get(&ctx) == MPL_OK ? cores_here(0, NULL) : 1;
}

/* Binds to the index-th of n shares of the cores; with more shares than cores, each is one core. */
static void bind_share(uint32_t index, uint32_t n, hwloc_cpubind_flags_t what)
{
    mpl_ctx ctx = mpl_ctx_default();
    hwloc_cpuset_t share = NULL;
    uint64_t cores, from, to;

    if (topology_get(&ctx) != MPL_OK || (share = hwloc_bitmap_alloc()) == NULL)
        return;
    cores = cores_here(0, NULL);
    from = n <= cores ? cores * index / n : index % cores;
    to = n <= cores ? cores * (index + UINT64_C(1)) / n : from + 1;
    for (uint64_t i = from; i < to; i++) {
        hwloc_obj_t core = NULL;

        cores_here((uint32_t)i, &core);
        if (core != NULL)
            hwloc_bitmap_or(share, share, core->cpuset);
    }
    if (!hwloc_bitmap_iszero(share))
        hwloc_set_cpubind(topology, share, what);
    hwloc_bitmap_free(share);
}

void mpl_bind_cores(uint32_t index, uint32_t n)
{
    bind_share(index, n, HWLOC_CPUBIND_PROCESS);
}

void mpl_bind_share(uint32_t index, uint32_t n)
{
    bind_share(index, n, HWLOC_CPUBIND_THREAD);
}

void mpl_bind_thread(uint32_t index)
{
    mpl_ctx ctx = mpl_ctx_default();
    hwloc_obj_t core;

    if (topology_get(&ctx) != MPL_OK)
        return;
    core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, index);
    if (core != NULL)
        hwloc_set_cpubind(topology, core->cpuset, HWLOC_CPUBIND_THREAD);
}

/* Where the system cannot (mpl_machine.binds_memory, or a container that forbids it), a page lies
 * on the node of the thread that touches it first. */
mpl_status mpl_pages_bind(mpl_ctx *ctx, void *base, uint64_t bytes)
{
    hwloc_cpuset_t here;

    MPL_PASS(topology_get(ctx));
    if ((here = hwloc_bitmap_alloc()) == NULL)
        return MPL_OK;
    if (hwloc_get_last_cpu_location(topology, here, HWLOC_CPUBIND_THREAD) == 0)
        hwloc_set_area_membind(topology, base, bytes, here, HWLOC_MEMBIND_BIND, 0);
    hwloc_bitmap_free(here);
    return MPL_OK;
}

mpl_status mpl_pages_bind_far(mpl_ctx *ctx, void *base, uint64_t bytes)
{
    hwloc_bitmap_t here;
    hwloc_obj_t node = NULL;

    MPL_PASS(topology_get(ctx));
    if (bytes == 0 || (here = hwloc_bitmap_alloc()) == NULL)
        return MPL_OK;
    if (hwloc_get_last_cpu_location(topology, here, HWLOC_CPUBIND_THREAD) == 0)
        while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != NULL &&
               hwloc_bitmap_intersects(node->cpuset, here))
            continue;
    if (node != NULL)
        hwloc_set_area_membind(topology, base, bytes, node->nodeset, HWLOC_MEMBIND_BIND,
                               HWLOC_MEMBIND_BYNODESET);
    hwloc_bitmap_free(here);
    return MPL_OK;
}

uint64_t mpl_rss_peak(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}
