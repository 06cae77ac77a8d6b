/* backends.c -- the table of backends, made from backends.def. */
#include "runtime/backend.h"

#define BACKEND(name) extern const mpl_backend mpl_backend_##name;
#include "runtime/backends.def"
#undef BACKEND

const mpl_backend *const mpl_backends[] = {
#define BACKEND(name) &mpl_backend_##name,
#include "runtime/backends.def"
#undef BACKEND
    NULL,
};

const mpl_backend *mpl_backend_find(const char *name)
{
    for (uint32_t i = 0; mpl_backends[i] != NULL; i++)
        if (strcmp(mpl_backends[i]->name, name) == 0)
            return mpl_backends[i];
    return NULL;
}

const mpl_backend *mpl_backend_default(void)
{
    const mpl_backend *cpu = mpl_backend_find("cpu");

    return cpu != NULL && mpl_backend_absent(cpu) == NULL ? cpu : mpl_backend_find("ref");
}

const char *mpl_backend_absent(const mpl_backend *backend)
{
    if (backend->open == NULL)
        return backend->absent;
    return backend->missing != NULL ? backend->missing() : NULL;
}
