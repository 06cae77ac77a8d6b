/* The instructions that the cpu backend may use, as oneDNN's environment names them. Fault: another
 * choice of the backend's over the user's, under which scripts/valgrind.sh checks less than it
 * says; a name that means more. */
#include "runtime/cpu/loops/chain_priv.h"
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

/* Names are oneDNN's; its older variable counts where the newer is not set. */
TEST(own_loops_keep_to_them)
{
    static const struct {
        const char *variable, *name;
        mpl_chain_width most;
    } rows[] = {
        ROW("ONEDNN_MAX_CPU_ISA", "SSE41", MPL_CHAIN_PLAIN),
        ROW("ONEDNN_MAX_CPU_ISA", "avx", MPL_CHAIN_PLAIN),
        ROW("ONEDNN_MAX_CPU_ISA", "AVX2", MPL_CHAIN_AVX2),
        ROW("ONEDNN_MAX_CPU_ISA", "AVX2_VNNI", MPL_CHAIN_AVX2),
        ROW("ONEDNN_MAX_CPU_ISA", "AVX512_CORE", MPL_CHAIN_AVX512),
        ROW("DNNL_MAX_CPU_ISA", "AVX2", MPL_CHAIN_AVX2),
    };
    mpl_chain_width widest;

    (void)ctx;
    assert_int_equal(unsetenv("ONEDNN_MAX_CPU_ISA"), 0);
    assert_int_equal(unsetenv("DNNL_MAX_CPU_ISA"), 0);
    widest = mpl_chain_widest();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(setenv(rows[i].variable, rows[i].name, 1), 0);
        assert_int_equal(mpl_chain_widest(), widest < rows[i].most ? widest : rows[i].most);
        assert_int_equal(unsetenv(rows[i].variable), 0);
    }
}

TESTS_WITHIN(begin, NULL, the_named_instructions_are_the_widest, own_loops_keep_to_them)
