/* randwire.c -- randomly wired networks.
 *
 * Source   S. Xie, A. Kirillov, R. Girshick, K. He, "Exploring Randomly Wired Neural Networks for
 *          Image Recognition", ICCV 2019, small regime: two convolutions of stride 2, then stages
 *          of N nodes with C, 2 C, 4 C channels, WS(4, P) graphs (D. Watts, S. Strogatz, 1998): a
 *          ring of N nodes, each joined to its four nearest; one end of each edge moves to a random
 *          node with probability P; edges run from the lower to the higher node. A node sums its
 *          inputs, then relu, a separable 3x3 convolution and batch norm. Nodes without inputs read
 *          the stage's input with stride 2; nodes without successors are summed. A 1x1 convolution
 *          to 1,280 channels precedes the classifier.
 * Differs  The positive weights in the sums and the division of the last sum are omitted: no size
 *          depends on them. K is always 4. Order: by node; in a node, from sum to norm. */
#include "graphs/core/rng.h"
#include "graphs/zoo/net/zoo_priv.h"

enum { SMALL, REGULAR, CELL };
enum { MAX_NODES = 256 };

static const double epsilon = 1e-5;

typedef struct wiring {
    uint32_t n;
    uint8_t tied[MAX_NODES][MAX_NODES]; /* symmetric */
} wiring;

static void tie(wiring *self, uint32_t a, uint32_t b, uint8_t on)
{
    self->tied[a][b] = self->tied[b][a] = on;
}

static uint32_t degree(const wiring *self, uint32_t a)
{
    uint32_t sum = 0;

    for (uint32_t b = 0; b < self->n; b++)
        sum += self->tied[a][b];
    return sum;
}

/* The ring, then one pass over its edges, nearest first; `percent` of them move their far end. */
static void draw(wiring *w, uint32_t n, uint32_t reach, uint32_t percent, mpl_rng *rng)
{
    memset(w, 0, sizeof *w);
    w->n = n;
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t j = 1; j <= reach && 2 * j < n + 1; j++)
            if ((a + j) % n != a)
                tie(w, a, (a + j) % n, 1);
    for (uint32_t j = 1; j <= reach && 2 * j < n + 1; j++)
        for (uint32_t a = 0; a < n; a++) {
            uint32_t b;

            if (mpl_rng_below(rng, 100) >= percent || !w->tied[a][(a + j) % n] ||
                degree(w, a) == n - 1)
                continue;
            do
                b = (uint32_t)mpl_rng_below(rng, n);
            while (b == a || w->tied[a][b]);
            tie(w, a, (a + j) % n, 0);
            tie(w, a, b, 1);
        }
}

/* The input of a node or of a stage's end: the sum of several. */
static mpl_value sum_of(mpl_net *net, const char *name, uint32_t n, const mpl_value *in)
{
    return n == 1 ? in[0] : mpl_net_op(net, MPL_OP_sum, name, n, in, 0, NULL);
}

static mpl_value node(mpl_net *net, mpl_value x, int64_t channels, int64_t stride)
{
    bool fused = mpl_zoo_arg(net->args, "form") == 1;

    if (!fused)
        x = mpl_net_unary(net, MPL_OP_relu, "relu", x);
    x = mpl_net_conv(net, "depth", x, mpl_net_dim(net, x, 1), MPL_WINDOW(3, stride, 1),
                     mpl_net_dim(net, x, 1), false);
    x = mpl_net_conv(net, "point", x, channels, MPL_WINDOW(1, 1, 0), 1, fused);
    return fused ? x : mpl_net_norm(net, "bn", x, epsilon);
}

static mpl_value stage(mpl_net *net, int64_t index, const wiring *w, mpl_value x, int64_t channels,
                       int64_t stride)
{
    mpl_value made[MAX_NODES], in[MAX_NODES];
    uint32_t n_in;

    for (uint32_t b = 0; b < w->n; b++) {
        n_in = 0;
        for (uint32_t a = 0; a < b; a++)
            if (w->tied[a][b])
                in[n_in++] = made[a];
        mpl_net_scope(net, "stage%" PRId64 ".node%u", index, b);
        made[b] = n_in == 0 ? node(net, x, channels, stride)
                            : node(net, sum_of(net, "sum", n_in, in), channels, 1);
    }
    n_in = 0;
    for (uint32_t a = 0; a < w->n; a++) {
        bool given = false;

        for (uint32_t b = a + 1; b < w->n; b++)
            given = given || w->tied[a][b];
        if (!given)
            in[n_in++] = made[a];
    }
    mpl_net_scope(net, "stage%" PRId64, index);
    return sum_of(net, "sum", n_in, in);
}

static mpl_value stem(mpl_net *net, const char *name, mpl_value x, int64_t channels)
{
    return mpl_net_conv_relu(net, name, x, channels, MPL_WINDOW(3, 2, 1), epsilon);
}

static mpl_status build(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    int64_t channels = mpl_zoo_arg(args, "channels"), nodes = mpl_zoo_arg(args, "nodes");
    int64_t regular = mpl_zoo_arg(args, "regime") == REGULAR,
            n_stages = mpl_zoo_arg(args, "stages") + regular;
    uint32_t reach = (uint32_t)mpl_zoo_arg(args, "neighbours") / 2;
    mpl_rng rng = mpl_rng_of((uint64_t)mpl_zoo_arg(args, "seed"));
    wiring w;
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x;

    if (mpl_zoo_arg(args, "regime") == CELL) {
        draw(&w, (uint32_t)nodes, reach, (uint32_t)mpl_zoo_arg(args, "rewired"), &rng);
        return mpl_net_end(&net, stage(&net, 1, &w, mpl_net_image(&net, channels), channels, 1),
                           out);
    }
    x = stem(&net, "conv1", mpl_net_image(&net, 3), (channels + 1) / 2);
    if (!regular)
        x = stem(&net, "conv2", x, channels);
    for (int64_t i = 0; i < n_stages; i++) {
        draw(&w, (uint32_t)(regular && i == 0 ? (nodes + 1) / 2 : nodes), reach,
             (uint32_t)mpl_zoo_arg(args, "rewired"), &rng);
        x = stage(&net, i + 3 - regular, &w, x, channels << i, 2);
    }
    mpl_net_scope(&net, "%s", "");
    x = mpl_net_conv_norm(&net, "head", x, 1280, MPL_WINDOW(1, 1, 0), 1, epsilon);
    x = mpl_net_unary(&net, MPL_OP_relu, "head.relu", x);
    return mpl_net_end(&net, mpl_net_classify(&net, x, false), out);
}

static const char *const forms[] = {"plain", "fused"};
static const char *const regimes[] = {"small", "regular", "cell"};

MPL_ZOO(randwire, "randomly wired, small regime, WS(4, 0.75) (Xie et al. 2019)",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(224, 32), MPL_PARAM_CLASSES(1000),
                   {"channels", 78, 1, 4096, "C, of the first stage", NULL},
                   {"stages", 3, 1, 3, "random graphs, one after the other", NULL},
                   {"nodes", 32, 1, MAX_NODES, "N, of each random graph", NULL},
                   {"neighbours", 4, 2, 16, "K, of a node before edges move", NULL},
                   {"rewired", 75, 0, 100, "P, of an edge to be moved [%]", NULL},
                   {"form", 0, 0, 1, "layers whole, or batch norm and relu within convolutions",
                    forms},
                   {"regime", 0, 0, 2,
                    "small, regular (random from the second convolution on), or one cell by itself",
                    regimes},
                   {"seed", 1, 0, INT32_MAX, "of the random graphs", NULL}),
        build);
