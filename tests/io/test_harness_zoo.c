/* Small networks of the zoo against PyTorch: tests/data/zoo/runs.txt, which oracle.py beside it
 * writes; every network in int8, and the peak that its activations must have. Fault: an operator
 * too many, a layer's order, an axis, a scale. */
#include "tests/harness/run_program.h"

TEST(networks_compute_what_pytorch_does)
{
    static const char *const backends[] = {"ref", "cpu"};
    FILE *f = fopen("tests/data/zoo/runs.txt", "r");
    char line[1000];
    uint32_t n = 0;

    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        for (int b = 0; b < 2; b++, n++) {
            line[strcspn(line, "\n")] = '\0';
            if (run("run %s --planner greedy_size --backend %s --repeat 1", line, backends[b]) !=
                    0 ||
                strstr(out, "expected: within") == NULL)
                fail_msg("%s on %s: %s%s", line, backends[b], out, err);
        }
    fclose(f);
    assert_int_equal(n, 20);
}

/* In int8: activations are a quarter of those in f32, and a run is equal to an unshared one. */
TEST(networks_run_in_int8)
{
    static const struct {
        const char *spec, *says;
    } rows[] = ROW(
        /* (72 * 72 + 36 * 36) * 30 */
        {"plan mobilenet_v2:width=0.35,image=144,round=floor,residuals=off,dtype=int8",
         "planned        194400 bytes"},
        {"run mobilenet_v2:image=32,dtype=int8", "equal to the run"},
        {"run mcunet:image=32,dtype=int8", "equal to the run"},
        {"run bert:layers=1,hidden=12,heads=3,vocab=20,seq=5,dtype=int8", "equal to the run"},
        {"run gpt:layers=1,hidden=12,heads=3,vocab=20,seq=5,past=3,dtype=int8", "equal to the run"},
        {"run encoder_decoder:layers=1,hidden=12,heads=3,vocab=20,seq=5,answer=4,dtype=int8",
         "equal to the run"},
        {"run moe:layers=2,hidden=12,heads=3,vocab=20,seq=5,answer=4,dtype=int8",
         "equal to the run"},
        {"run vit:image=16,patch=8,layers=1,hidden=12,heads=3,dtype=int8", "equal to the run"},
        {"run swin:image=32,window=4,layers=2,hidden=4,heads=2,dtype=int8", "equal to the run"},
        {"run unet:image=8,channels=8,levels=2,blocks=1,dtype=int8", "equal to the run"},
        {"run mnist_conv:image=8,batch=2,dtype=int8", "equal to the run"},
        {"run lstm:steps=3,hidden=8,batch=2,dtype=int8", "equal to the run"});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool runs = strncmp(rows[i].spec, "run", 3) == 0;

        if (run("%s%s", rows[i].spec,
                runs ? " --planner greedy_size --backend ref --repeat 1" : "") != 0 ||
            strstr(out, rows[i].says) == NULL)
            fail_msg("%s: %s%s", rows[i].spec, out, err);
    }
}

TEST(what_has_no_int8_is_refused)
{
    static const char *const rows[][2] =
        ROW({"plan mamba:dtype=int8", "loops, branches and programs have no int8 form"},
            {"plan bert:dtype=int8,mode=train", "dtype=int8 is for inference"},
            {"plan bert:dtype=int4", "dtype=int4 is none of f32, f16, bf16, int8"});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(run("%s", rows[i][0]), 2);
        if (strstr(err, rows[i][1]) == NULL || strchr(err, '\n') != err + strlen(err) - 1)
            fail_msg("%s: '%s'", rows[i][0], err);
    }
}

static int begin(void)
{
    return program_begin("zoo");
}

TESTS_WITHIN(begin, folder_remove, networks_compute_what_pytorch_does, networks_run_in_int8,
             what_has_no_int8_is_refused)
