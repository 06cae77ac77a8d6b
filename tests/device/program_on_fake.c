/* program_on_fake.c -- replaces runtime/cuda/real.c in a second program: memplan with backend
 * `cuda` on the fake device, so that rows, statuses and scripts can be tested without a GPU.
 *
 * MEMPLAN_FAKE, key=value,..: `absent` (no device), `ways` (1: convolutions and products have
 * four), `leak` (bytes by which used device memory grows with each launch), `granularity`, `oom`,
 * `launch`, `lost` (as in fake_world), `clocks=0`. */
#include "tests/device/cuda_fake.h"

#include <stdlib.h>

static mpl_cuda_api table;

static int leaking_run(mpl_cuda *c, const mpl_cuda_work *work, void *stream)
{
    fake.others_bytes += fake.leak_bytes;
    return fake_api.run(c, work, stream);
}

static void configure(const char *text)
{
    static const struct {
        const char *key;
        uint64_t *at;
    } keys[] = {{"leak", &fake.leak_bytes},    {"granularity", &fake.granularity},
                {"oom", &fake.oom_at},         {"launch", &fake.launch_at},
                {"lost", &fake.lost_at},       {"total", &fake.total_bytes},
                {"others", &fake.others_bytes}};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *found = strstr(text, keys[i].key);

        if (found != NULL && found[strlen(keys[i].key)] == '=')
            *keys[i].at = strtoull(found + strlen(keys[i].key) + 1, NULL, 10);
    }
    fake.no_clocks = strstr(text, "clocks=0") != NULL;
    if (strstr(text, "ways=1") != NULL) {
        static const uint64_t bytes[] = {400000, 100000, 3000, 0};

        fake.n_ways = 4;
        memcpy(fake.way_bytes, bytes, sizeof bytes);
    }
}

const mpl_cuda_api *mpl_cuda_real(const char **absent)
{
    const char *text = getenv("MEMPLAN_FAKE");
    static bool begun;

    *absent = "a fake device that is absent";
    if (text != NULL && strstr(text, "absent") != NULL)
        return NULL;
    if (!begun) {
        fake_reset();
        fake.library = true;
        fake.workspace_bytes = 1000;
        configure(text != NULL ? text : "");
    }
    begun = true;
    table = fake_api;
    table.run = leaking_run;
    return &table;
}
