/* The instructions that oneDNN may use, as its environment names them. Fault: another choice of the
 * backend's over the user's, under which scripts/valgrind.sh checks less than it says. */
#include "runtime/exec.h"
#include "tests/support/test.h"

#include <dnnl.h>

static int begin(void)
{
    return setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1);
}

TEST(the_named_instructions_are_the_widest)
{
    const mpl_backend *backend = mpl_backend_find("cpu");
    mpl_device *dev = NULL;

    assert_ok(ctx, backend->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
    assert_int_equal(dnnl_get_effective_cpu_isa(), dnnl_cpu_isa_sse41);
    backend->close(dev);
}

TESTS_WITHIN(begin, NULL, the_named_instructions_are_the_widest)
