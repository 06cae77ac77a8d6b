/* again.c -- the same inputs at every call, for CI: `again N BROKEN [FILE..]` gives a fuzz target
 * every file, then N inputs that are files with bytes changed, taken out, repeated or joined to
 * another file's; without files, random bytes. The input that breaks it is written to the file
 * BROKEN. Exploring by coverage is libFuzzer's, in `make fuzz`. */
#include "graphs/core/rng.h"
#include "tests/fuzz/fuzz.h"

#include <sanitizer/common_interface_defs.h>
#include <sys/time.h>

enum { LONGEST = 4096, DRAWN = 512, CHANGES = 6, SECONDS = 20 };

typedef struct input {
    uint8_t byte[LONGEST];
    size_t n;
} input;

static input read_file(const char *path)
{
    input in = {.n = 0};
    FILE *file = fopen(path, "rb");

    if (!file) {
        fprintf(stderr, "again: cannot read %s\n", path);
        exit(2);
    }
    in.n = fread(in.byte, 1, LONGEST, file);
    fclose(file);
    return in;
}

static input draw(mpl_rng *rng)
{
    input in = {.n = mpl_rng_below(rng, DRAWN)};

    for (size_t i = 0; i < in.n; i++)
        in.byte[i] = (uint8_t)mpl_rng_next(rng);
    return in;
}

/* Puts n bytes into the input at `at`; what would lie beyond the longest input is lost. */
static void insert(input *in, size_t at, const uint8_t *byte, size_t n)
{
    size_t rest;

    if (n > LONGEST - at)
        n = LONGEST - at;
    rest = in->n - at;
    if (rest > LONGEST - at - n)
        rest = LONGEST - at - n;
    memmove(in->byte + at + n, in->byte + at, rest);
    memcpy(in->byte + at, byte, n);
    in->n = at + n + rest;
}

static void change(mpl_rng *rng, input *in, const input *other)
{
    static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff, '-', '0', '9', '{', '}', '"', '\n'};
    size_t at = mpl_rng_below(rng, in->n + 1), n = mpl_rng_below(rng, 32);
    uint8_t piece[32];

    switch (mpl_rng_below(rng, 6)) {
    case 0: /* one bit */
        if (at < in->n)
            in->byte[at] ^= (uint8_t)(1u << mpl_rng_below(rng, 8));
        return;
    case 1: /* one byte */
        if (at < in->n)
            in->byte[at] = telling[mpl_rng_below(rng, sizeof telling)];
        return;
    case 2: /* fewer bytes */
        n = n < in->n - at ? n : in->n - at;
        memmove(in->byte + at, in->byte + at + n, in->n - at - n);
        in->n -= n;
        return;
    case 3: /* a piece of it once more, somewhere else */
        n = n < in->n - at ? n : in->n - at;
        memcpy(piece, in->byte + at, n);
        insert(in, mpl_rng_below(rng, in->n + 1), piece, n);
        return;
    case 4: /* ends here */
        in->n = mpl_rng_below(rng, 4) == 0 ? at : in->n;
        return;
    default: /* a piece of another file */
        if (other->n > 0) {
            size_t from = mpl_rng_below(rng, other->n);

            insert(in, at, other->byte + from, n < other->n - from ? n : other->n - from);
        }
    }
}

static input changed(mpl_rng *rng, const input *file, uint64_t n_files)
{
    input in = file[mpl_rng_below(rng, n_files)];

    for (uint64_t k = 1 + mpl_rng_below(rng, CHANGES); k > 0; k--)
        change(rng, &in, &file[mpl_rng_below(rng, n_files)]);
    return in;
}

static const input *running;
static const char *broken;

static void keep_running(void)
{
    FILE *file = fopen(broken, "wb");

    if (!file)
        return;
    fwrite(running->byte, 1, running->n, file);
    fclose(file);
    fprintf(stderr, "again: the input is in %s\n", broken);
}

/* Runs one input: a copy of exactly its length, so that a read beyond its end is seen. One that
 * computes for over SECONDS ends the program. */
static void run(const input *in)
{
    static const struct itimerval limit = {.it_value = {.tv_sec = SECONDS}};
    uint8_t *copy = malloc(in->n + (in->n == 0));

    if (!copy)
        abort();
    memcpy(copy, in->byte, in->n);
    running = in;
    setitimer(ITIMER_PROF, &limit, NULL);
    LLVMFuzzerTestOneInput(copy, in->n);
    free(copy);
}

int main(int argc, char **argv)
{
    long n = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
    uint64_t n_files = (uint64_t)argc - 3;
    input *file, in;
    mpl_rng rng;

    if (n <= 0) {
        fprintf(stderr, "usage: again N BROKEN [FILE..]\n");
        return 2;
    }
    broken = argv[2];
    if (!(file = calloc(n_files + 1, sizeof *file)))
        abort();
    __sanitizer_set_death_callback(keep_running);
    for (uint64_t i = 0; i < n_files; i++) {
        file[i] = read_file(argv[3 + i]);
        run(&file[i]);
    }
    rng = mpl_rng_of(1);
    for (long i = 0; i < n; i++) {
        in = n_files > 0 ? changed(&rng, file, n_files) : draw(&rng);
        run(&in);
    }
    free(file);
    return 0;
}
