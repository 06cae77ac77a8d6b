/* host.c -- memory of the backends that compute on the host. See host_priv.h. */
#include "runtime/cpu/host_priv.h"
#include "runtime/machine.h"

mpl_status mpl_host_arena_new(mpl_device *dev, uint64_t bytes, void **base)
{
    return mpl_pages_new(dev->ctx, mpl_max_u64(bytes, 1), base);
}

void mpl_host_arena_free(mpl_device *dev, void *base, uint64_t bytes)
{
    (void)dev;
    mpl_pages_free(base, mpl_max_u64(bytes, 1));
}

mpl_status mpl_host_upload(mpl_device *dev, void *to, const void *from, uint64_t bytes)
{
    (void)dev;
    memcpy(to, from, bytes);
    return MPL_OK;
}

mpl_status mpl_host_download(mpl_device *dev, void *to, const void *from, uint64_t bytes)
{
    return mpl_host_upload(dev, to, from, bytes);
}

mpl_status mpl_host_copy(mpl_device *dev, void *to, const void *from, uint64_t bytes)
{
    return mpl_host_upload(dev, to, from, bytes);
}

mpl_status mpl_host_fill(mpl_device *dev, void *at, uint8_t byte, uint64_t bytes)
{
    (void)dev;
    memset(at, byte, bytes);
    return MPL_OK;
}

mpl_status mpl_host_resident(mpl_device *dev, const void *base, uint64_t bytes, uint64_t *resident)
{
    return mpl_pages_resident(dev->ctx, base, bytes, resident);
}

mpl_status mpl_host_wait(mpl_device *dev)
{
    (void)dev;
    return MPL_OK;
}
