/* digits.c -- see digits.h. The format of the files: Y. LeCun, C. Cortes, C. Burges, "The MNIST
 * database of handwritten digits": numbers are big-endian; 0x803, pictures, rows, columns, then
 * bytes; 0x801, labels, then bytes. */
#include "harness/job/digits.h"

#include "graphs/core/file.h"
#include "graphs/core/rng.h"

#include <math.h>

void mpl_digits_fini(mpl_ctx *ctx, mpl_digits *digits)
{
    mpl_free(ctx, digits->pixel);
    mpl_free(ctx, digits->label);
    *digits = (mpl_digits){0};
}

static mpl_status allocate(mpl_ctx *ctx, uint32_t n, uint32_t side, mpl_digits *d)
{
    mpl_status st = MPL_OK;

    d->n = n;
    d->side = side;
    MPL_TRY(mpl_new(ctx, d->pixel, (size_t)n * side * side));
    MPL_TRY(mpl_new(ctx, d->label, n));
out:
    return st;
}

static uint32_t number_at(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static mpl_status read_file(mpl_ctx *ctx, const char *folder, const char *name, uint32_t magic,
                            size_t head, char **data, size_t *size)
{
    mpl_status st = MPL_OK;
    char path[4096];

    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: the path is too long", folder);
    MPL_TRY(mpl_file_read(ctx, path, data, size));
    if (*size < head || number_at((const uint8_t *)*data) != magic)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: no IDX file of MNIST, unpacked: it must begin with 0x%08x",
                 path, magic);
out:
    return st;
}

mpl_status mpl_digits_read(mpl_ctx *ctx, const char *folder, mpl_digits *out)
{
    mpl_status st = MPL_OK;
    char *images = NULL, *labels = NULL;
    const uint8_t *image, *label;
    size_t n_images = 0, n_labels = 0;
    mpl_digits d = {0};
    uint32_t n, side;

    MPL_TRY(read_file(ctx, folder, "train-images-idx3-ubyte", 0x803, 16, &images, &n_images));
    MPL_TRY(read_file(ctx, folder, "train-labels-idx1-ubyte", 0x801, 8, &labels, &n_labels));
    image = (const uint8_t *)images, label = (const uint8_t *)labels;
    n = number_at(image + 4), side = number_at(image + 8);
    if (n == 0 || n > 10000000 || side == 0 || side > 1024 || number_at(image + 12) != side ||
        number_at(label + 4) != n || n_images != 16 + (size_t)n * side * side ||
        n_labels != 8 + (size_t)n)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: pictures and labels are cut, not square, or not equally many", folder);
    MPL_TRY(allocate(ctx, n, side, &d));
    for (size_t i = 0; i < (size_t)n * side * side; i++)
        d.pixel[i] = (float)image[16 + i] / 255;
    for (uint32_t i = 0; i < n; i++)
        d.label[i] = label[8 + i];
    *out = d, d = (mpl_digits){0};
out:
    mpl_digits_fini(ctx, &d);
    mpl_free(ctx, images);
    mpl_free(ctx, labels);
    return st;
}

/* Segments of each digit: bit 0 the top one, then clockwise, bit 6 the middle. */
static const uint8_t segments[10] = {0x3f, 0x06, 0x5b, 0x4f, 0x66, 0x6d, 0x7d, 0x07, 0x7f, 0x6f};

/* Ends of each segment on a grid of 1 by 2. */
static const uint8_t ends[7][4] = {{0, 0, 1, 0}, {1, 0, 1, 1}, {1, 1, 1, 2}, {0, 2, 1, 2},
                                   {0, 1, 0, 2}, {0, 0, 0, 1}, {0, 1, 1, 1}};

/* A place in [0, room), at most a fourteenth of it and one pixel from the middle: MNIST's digits
 * are centred too. */
static uint32_t near_middle(uint32_t room, mpl_rng *rng)
{
    uint32_t most = room / 14 + 1, least = room / 2 > most ? room / 2 - most : 0;

    return least + (uint32_t)mpl_rng_below(rng, mpl_min_u64(2 * most + 1, room - least));
}

static void draw(mpl_digits *d, uint32_t i, mpl_rng *rng)
{
    uint32_t side = d->side, width = side / 3, height = side / 4, thick = side > 14 ? side / 14 : 1;
    float *pixel = d->pixel + (size_t)i * side * side, ink = 0.6f + 0.4f * mpl_rng_float(rng);
    uint32_t left = near_middle(side - width - thick, rng),
             top = near_middle(side - 2 * height - thick, rng);

    for (uint32_t k = 0; k < side * side; k++)
        pixel[k] = 0.2f * mpl_rng_float(rng);
    for (int s = 0; s < 7; s++) {
        if ((segments[d->label[i]] >> s & 1) == 0)
            continue;
        for (uint32_t y = top + ends[s][1] * height; y < top + ends[s][3] * height + thick; y++)
            for (uint32_t x = left + ends[s][0] * width; x < left + ends[s][2] * width + thick; x++)
                pixel[y * side + x] = ink;
    }
}

void mpl_digits_centre(mpl_digits *d)
{
    size_t n = (size_t)d->n * d->side * d->side;
    double sum = 0, squares = 0, mean, scale;

    for (size_t i = 0; i < n; i++) {
        sum += d->pixel[i];
        squares += (double)d->pixel[i] * d->pixel[i];
    }
    mean = sum / (double)n;
    scale = squares / (double)n > mean * mean ? 1 / sqrt(squares / (double)n - mean * mean) : 1;
    for (size_t i = 0; i < n; i++)
        d->pixel[i] = (float)((d->pixel[i] - mean) * scale);
}

mpl_status mpl_digits_draw(mpl_ctx *ctx, uint32_t n, uint32_t side, uint64_t seed, mpl_digits *out)
{
    mpl_status st = MPL_OK;
    mpl_digits d = {0};
    mpl_rng rng;

    mpl_assert(side >= 8);
    MPL_TRY(allocate(ctx, n, side, &d));
    mpl_rng_init(&rng, seed);
    for (uint32_t i = 0; i < n; i++) {
        d.label[i] = (int64_t)mpl_rng_below(&rng, 10);
        draw(&d, i, &rng);
    }
    *out = d, d = (mpl_digits){0};
out:
    mpl_digits_fini(ctx, &d);
    return st;
}
