/* Hand-made places for small graphs with loops and branches, right and wrong: what the verifier of
 * control flow accepts, and what it refuses with which reason. Each wrong row is a fault that a
 * planner of loops might make. */
#include "graphs/problem/steps.h"
#include "tests/support/test.h"

#include "graphs/problem/before.h"
#include "planners/verify/verify.h"

enum { UNIT = 64, MOST_BUFFERS = 8, MOST_PLACES = 64, MOST_ITEMS = 256 };

/* A shift register of two taps: a value made as z is x1 one round later and x0 two rounds later; x0
 * is dead when z is made. TRIPS: number of rounds. */
#define SHIFT(TRIPS)                                                                               \
    "graph shift\ninput n i64 []\ninput v0 f32 [16]\ninput v1 f32 [16]\nblock body\n  param "      \
    "round i64 []\n"                                                                               \
    "  param x0 f32 [16]\n  param x1 f32 [16]\n  t = cumsum(x0) axis=0\n  z = add(t, x1)\nyield "  \
    "_, x1, z\n"                                                                                   \
    "_, y = while body(" TRIPS " @l\nout = neg(y)\noutput out\n"
#define SEVEN SHIFT("_, _, v0, v1) carried=2 trips=7")
#define ANY   SHIFT("n, _, v0, v1) carried=2")
#define NONE  SHIFT("_, _, v0, v1) carried=2 trips=0")
/* Cells 0 and 1 alternate, and t in 2. */
#define CELLS   "z cycle body 0 0 1; t 2; "
#define POINTED CELLS "x1 cycle body 1 v1 0 1; x0 cycle body 2 v0 v1 0 1; "
#define SETTLED CELLS "v0 0; v1 1; x1 cycle body 0 1 0; x0 cycle body 0 0 1; "

/* c is read in each round. */
#define CAPTURE CAPTURED("3")
#define CAPTURED(TRIPS)                                                                            \
    "graph capture\ninput v f32 [16]\nc = neg(v)\nblock body\n  param round i64 []\n  param x "    \
    "f32 [16]\n"                                                                                   \
    "  a = cumsum(x) axis=0\n  b = mul(a, c)\nyield _, b\ny = while body(_, _, v) carried=1 "      \
    "trips=" TRIPS " @l\nout = neg(y)\noutput out\n"

/* c is read after the loop. A round has two exits: by the first d may be lost, by the second c. */
#define AFTER                                                                                      \
    "graph after\ninput go bool []\ninput v f32 [16]\nc = neg(v)\nd = neg(v)\nblock body\n  "      \
    "param round "                                                                                 \
    "i64 "                                                                                         \
    "[]\n  param x f32 [16]\n  a = cumsum(x) axis=0\n  exit_unless(go)\n  b = cumsum(a) "          \
    "axis=0\nyield _, "                                                                            \
    "b\n"                                                                                          \
    "y = while body(_, _, v) carried=1 trips=3 @l\nout = add(y, c)\noutput out\n"
#define AFTER_CELLS "c 0; d 1; a 1; "

/* A case with two branches, one of which returns a captured value; or with no branch taken. */
#define CASE                                                                                       \
    "graph branches\ninput i i64 []\ninput v f32 [16]\nu = neg(v)\nblock one\n  a = cumsum(v) "    \
    "axis=0\n  b "                                                                                 \
    "= cumsum(a) axis=0\n"                                                                         \
    "yield b\nblock two\n  d = neg(v)\nyield u\ny = case one, two(i, u) @k\nout = neg(y)\noutput " \
    "out\n"

/* Nested loops: the inner loop's result is carried to the next outer round. */
#define NESTED                                                                                     \
    "graph nested\ninput n i64 []\ninput v f32 [16]\nblock outer\n  param r i64 []\n  param x "    \
    "f32 [16]\n"                                                                                   \
    "  block inner\n    param q i64 []\n    param p f32 [16]\n    z = cumsum(p) axis=0\n  yield "  \
    "_, z\n"                                                                                       \
    "  o = while inner(n, _, x) carried=1 @li\nyield _, o\ny = while outer(_, _, v) carried=1 "    \
    "trips=3 "                                                                                     \
    "@lo\nout = neg(y)\n"                                                                          \
    "output out\n"
#define INNER "p cycle inner 1 x 1 2; z cycle inner 0 1 2; o final li x z; "

/* Two values swapped in each round. */
#define SWAP                                                                                       \
    "graph swap\ninput v f32 [16]\na = neg(v)\nb = cumsum(v) axis=0\nblock body\n  param r i64 "   \
    "[]\n  param "                                                                                 \
    "x f32 [16]\n"                                                                                 \
    "  param y f32 [16]\nyield _, y, x\ns, t = while body(_, _, a, b) carried=2 trips=3 @l\nout "  \
    "= sub(s, "                                                                                    \
    "t)\noutput out\n"

/* Two such pairs. */
#define SWAPS                                                                                      \
    "graph swaps\ninput v f32 [16]\na = neg(v)\nb = cumsum(v) axis=0\nc = exp(v)\nd = "            \
    "abs(v)\nblock body\n"                                                                         \
    "  param r i64 []\n  param x f32 [16]\n  param y f32 [16]\n  param z f32 [16]\n  param w f32 " \
    "[16]\n"                                                                                       \
    "yield _, y, x, w, z\ns, t, o, p = while body(_, _, a, b, c, d) carried=4 trips=3 @l\nout = "  \
    "sub(s, t)\n"                                                                                  \
    "more = sub(o, p)\noutput out\noutput more\n"

/* The round number goes on to the next round. */
#define NUMBER                                                                                     \
    "graph number\ninput k i64 []\nblock body\n  param r i64 []\n  param p i64 []\n  s = add(p, "  \
    "r)\nyield "                                                                                   \
    "_, r, s\n"                                                                                    \
    "y, rows = while body(_, _, k) carried=1 trips=3 @l\nout = neg(y)\noutput out\noutput rows\n"

/* Slices in, rows out: 16 numbers each. */
#define SCAN                                                                                       \
    "graph scan\ninput v f32 [3,16]\nblock body\n  param r i64 []\n  param s f32 [16]\n  a = "     \
    "cumsum(s) "                                                                                   \
    "axis=0\n"                                                                                     \
    "yield _, a\nrows = while body(_, _, v) carried=0 scan_reverse=[1,0] @l\noutput rows\n"

/* In each round a branch that contains a loop, or none. */
#define LEFT                                                                                       \
    "graph left\ninput n i64 []\ninput v f32 [16]\nblock outer\n  param r i64 []\n  param x f32 "  \
    "[16]\n  "                                                                                     \
    "block branch\n"                                                                               \
    "    block inner\n      param q i64 []\n      param p f32 [16]\n    yield _, p\n"              \
    "    o = while inner(_, _, x) carried=1 trips=3 @li\n  yield o\n  c = case branch(r, x) @k\n " \
    " e = "                                                                                        \
    "cumsum(c) axis=0\n"                                                                           \
    "yield _, e\ny = while outer(n, _, v) carried=1 @lo\nout = neg(y)\noutput out\n"
#define LEFT_CELLS                                                                                 \
    "r 3; e cycle outer 0 0 1; x cycle outer 1 v 0 1; p cycle inner 0 x; o final li x x; y final " \
    "lo v e; "

/* The rows of the previous round are stacked again, in other rows, over a value of this round that
 * the next one reads. */
#define LATE                                                                                       \
    "graph late\ninput v f32 [16]\ninput w f32 [16]\nblock body\n  param r i64 []\n  param x f32 " \
    "[16]\n"                                                                                       \
    "  param u f32 [16]\n  e = cumsum(u) axis=0\n  z = cumsum(e) axis=0\n  t = neg(e)\nyield _, "  \
    "z, t, z, "                                                                                    \
    "x\n_, _, ra, rb = while body(_, _, v, w) carried=2 trips=5 @l\noutput ra\n"

/* A row made from another value in its place. */
#define MADE                                                                                       \
    "graph made\ninput v f32 [3,16]\nblock body\n  param r i64 []\n  param s f32 [16]\n  p = "     \
    "cumsum(s) "                                                                                   \
    "axis=0\n  a = neg(p)\nyield _, a\nrows = while body(_, _, v) carried=0 @l\noutput rows\n"

/* Two swapped values between two that stay. */
#define STAGE                                                                                      \
    "graph stage\ninput v f32 [16]\na = neg(v)\nb = cumsum(v) axis=0\nblock body\n  param r i64 "  \
    "[]\n  "                                                                                       \
    "param w f32 [16]\n  param x f32 [16]\n  param y f32 [16]\n  param q f32 [16]\n  g = "         \
    "cumsum(w) "                                                                                   \
    "axis=0\n "                                                                                    \
    " h = cumsum(q) axis=0\nyield _, g, y, x, h\no, s, t, u = while body(_, _, v, a, b, v) "       \
    "carried=4 "                                                                                   \
    "trips=3 @l\nout = sum(o, s, t, u)\noutput out\n"
#define STAGED                                                                                     \
    "a 0; b 1; w 2; x 0; y 1; q 3; g 4; h 5; o 2; s 0; t 1; u 3; entry l 2; entry l 5; copy body " \
    "1; copy "                                                                                     \
    "body 2; copy body 3; copy body 4; "

/* x is dead when k is made. */
#define EMPTY                                                                                      \
    "graph empty\ninput v f32 [16]\nblock body\n  param r i64 []\n  param x f32 [16]\n  t = "      \
    "cumsum(x) "                                                                                   \
    "axis=0\n  e = slice(x) starts=[8] ends=[8]\n  k = concat(e, t, t) axis=0\n  z = cumsum(t) "   \
    "axis=0\nyield _, z\ny = while body(_, _, v) carried=1 trips=3 @l\nout = neg(y)\noutput out\n"

/* An omitted operand. */
#define LIMIT                                                                                      \
    "graph limit\ninput v f32 [16]\ninput s f32 []\nh = neg(s)\nblock body\n  param r i64 []\n  "  \
    "param x "                                                                                     \
    "f32 "                                                                                         \
    "[16]\n  z = clip(x, _, h)\nyield _, z\ny = while body(_, _, v) carried=1 trips=3 @l\nout = "  \
    "neg(y)\noutput out\n"

/* A weight is updated with a loop's result. */
#define LEARN                                                                                      \
    "graph learn\ninput v f32 [16]\nweight m f32 [16]\nblock body\n  param r i64 []\n  param x "   \
    "f32 [16]\n  "                                                                                 \
    "z = cumsum(x) axis=0\nyield _, z\ny = while body(_, _, v) carried=1 trips=3 @l\nn = "         \
    "sgd_update(y, m) "                                                                            \
    "rate=0.1\noutput n\n"

/* A round makes Z from parts of m: the lower half, or some of it, and the upper half. */
#define PARTS(Z)                                                                                   \
    "graph parts\ninput v f32 [16]\nblock body\n  param r i64 []\n  param x f32 [16]\n  m = "      \
    "concat(x, x) "                                                                                \
    "axis=0\n  low = slice(m) starts=[0] ends=[16]\n  one = slice(m) starts=[0] ends=[1]\n  high " \
    "= "                                                                                           \
    "slice(m) starts=[16] ends=[32]\n  last = slice(m) starts=[31] ends=[32]\n  z = " Z            \
    "\nyield _, z\ny = while body(_, _, v) carried=1 trips=3 @l\nout = neg(y)\noutput out\n"
#define PARTED                                                                                     \
    "x 4; entry l 2; copy body 1; y 4; m 0; at low m 0; at one m 0; at high m 64; at last m 124; " \
    "z "

/* Places, one after the other: VALUE BUFFER; or VALUE KIND OF [N_FIRST] ITEM .., where an item is a
 * buffer, a value that has a place already, or a pinned one (VALUE `is` ITEM: that place); `$`
 * instead of a value: a place for later items; `at VALUE OF BYTES`: a view, that far inside OF;
 * `work OPERATION BUFFER`: its workspace; `copy BLOCK I`: copies its result; `entry OPERATION I`:
 * copies its input; `staging BLOCK BUFFER`. Buffer i has one unit at unit i. `why` NULL: valid. */
static const struct row {
    const char *what, *graph, *places, *why;
} rows[] = {
    {"shift: two cells, and pointers at the first values", SEVEN, POINTED "y 0", NULL},
    {"shift: first values in the cells", SEVEN, SETTLED "y 0", NULL},
    {"shift: one first value in its cell, one pointed at", SEVEN,
     CELLS "v1 1; x1 cycle body 0 1 0; x0 cycle body 1 v0 1 0; y 0", NULL},
    {"shift: three cells do too", SEVEN,
     "z cycle body 0 0 1 2; t 3; x1 cycle body 1 v1 0 1 2; x0 cycle body 2 v0 v1 0 1 2; y 0", NULL},
    {"shift: one cell: z is made over x1, which is x0 of the next round", SEVEN,
     "z 0; t 2; x1 cycle body 1 v1 0; x0 cycle body 2 v0 v1 0; y 0", "'t' reads 'x0'"},
    {"shift: one cell too few in one pointer", SEVEN,
     CELLS "x1 cycle body 1 v1 0; x0 cycle body 2 v0 v1 0 1; y 0",
     "'x1' takes over a value without a copy"},
    {"shift: first pointer of the other value", SEVEN,
     CELLS "x1 cycle body 1 v1 0 1; x0 cycle body 2 v0 v0 0 1; y 0",
     "'x0' takes over a value without a copy in round 0"},
    {"shift: first pointer at the wrong value from the beginning", SEVEN,
     CELLS "x1 cycle body 1 v1 0 1; x0 cycle body 2 v1 v1 0 1; y 0",
     "'x0' takes over a value without a copy"},
    {"shift: one first pointer too few", SEVEN,
     CELLS "x1 cycle body 1 v1 0 1; x0 cycle body 1 v0 0 1; y 0",
     "'x0' takes over a value without a copy"},
    {"shift: the cycle begins one too late", SEVEN,
     CELLS "x1 cycle body 1 v1 1 0; x0 cycle body 2 v0 v1 0 1; y 0",
     "'x1' takes over a value without a copy"},
    {"shift: first values one cell on: z falls on what is still to be read", SEVEN,
     CELLS "v0 1; v1 0; x1 cycle body 1 0 0 1; x0 cycle body 2 1 0 0 1; y 0", "'t' reads 'x0'"},
    {"shift: a first value that nothing keeps for the second round", SEVEN,
     CELLS "v0 3; v1 2; x1 cycle body 1 2 0 1; x0 cycle body 2 3 2 0 1; y 0", "'z' reads 'x1'"},
    {"shift: the first of two first values gone before the second round reads the other", SEVEN,
     CELLS "v0 3; v1 0; x1 cycle body 1 0 0 1; x0 cycle body 2 3 0 0 1; y 0", "'t' reads 'x0'"},
    {"shift: scratch in a cell", SEVEN,
     "z cycle body 0 0 1; t 1; x1 cycle body 1 v1 0 1; x0 cycle body 2 v0 v1 0 1; y 0", "'t'"},
    {"shift: both first values in one cell", SEVEN,
     CELLS "v0 1; v1 1; x1 cycle body 0 1 0; x0 cycle body 2 1 1 0 1; y 0", "'t' reads 'x0'"},
    {"shift: seven rounds end in cell 0", SEVEN, POINTED "y 1",
     "'y' takes over a value without a copy"},
    {"shift: no round ends with the first value", NONE, POINTED "y final l v1 z", NULL},
    {"shift: no round, and the output elsewhere", NONE, POINTED "y 0", "'y' takes over a value"},
    {"shift: any number of rounds ends anywhere", ANY, POINTED "y final l v1 z", NULL},
    {"after: what a round writes lies apart", AFTER,
     AFTER_CELLS "b 2; x cycle body 1 v 2; y final l v b", NULL},
    {"after: a round writes over what is read behind the loop", AFTER,
     AFTER_CELLS "b 0; x cycle body 1 v 0; y final l v b",
     "'out' reads 'c', which 'b' may have overwritten"},
    {"shift: any number of rounds in one cell", ANY, POINTED "y 0",
     "'y' takes over a value without a copy"},
    {"shift: any number of rounds, another's first value", ANY, POINTED "y final l v0 z",
     "'y' takes over a value without a copy"},
    {"shift: any number of rounds, the pointer of the round before", ANY, POINTED "y final l v1 x1",
     "'y' takes over a value without a copy"},
    {"shift: settled, any number of rounds", ANY, SETTLED "y final l v1 z", NULL},
    {"shift: settled, one cell behind any number", ANY, SETTLED "y 1",
     "'y' takes over a value without a copy"},

    {"capture: apart from all", CAPTURE, "c 3; a 1; b cycle body 0 0; x cycle body 1 v 0; y 0",
     NULL},
    {"capture: written over once the first round has read it", CAPTURE,
     "c 0; a 1; b cycle body 0 0; x cycle body 1 v 0; y 0", "'b' reads 'c'"},
    {"capture: written over in the only round", CAPTURED("1"),
     "c 0; a 1; b 0; x cycle body 1 v 0; y 0", NULL},
    {"capture: what is carried is copied over it", CAPTURE,
     "c 3; a 1; b 0; x cycle body 1 v 3; copy body 1; y 3", "'b' reads 'c'"},
    {"capture: scratch on it, before it is read", CAPTURE, "c 1; a 1; b 0; x cycle body 1 v 0; y 0",
     "'b' reads 'c'"},

    {"capture: a round writes into what is the caller's", CAPTURE,
     "c 3; a 1; b cycle body 1 v 0; x cycle body 2 v v 0; y 0",
     "'b' is written over 'v', which belongs to the caller"},
    {"capture: a workspace of its own", CAPTURE,
     "c 3; a 1; b cycle body 0 0; x cycle body 1 v 0; y 0; work b 2", NULL},
    {"capture: a workspace on what is read", CAPTURE,
     "c 3; a 1; b cycle body 0 0; x cycle body 1 v 0; y 0; work b 3",
     "the workspace of 'b' lies on its operand 'c'"},
    {"capture: a workspace on what is written", CAPTURE,
     "c 3; a 1; b cycle body 0 0; x cycle body 1 v 0; y 0; work b 0",
     "the workspace of 'b' lies on its operand 'b'"},
    {"after: a workspace on what is read behind the loop", AFTER,
     AFTER_CELLS "b 2; x cycle body 1 v 2; y final l v b; work a 0",
     "'out' reads 'c', which need not be there  by then"},

    {"empty: written over what lent none of its bytes", EMPTY, "t 2; at e x 32; k 0; z 1; y 1",
     NULL},
    {"limit: an operand left out", LIMIT, "h 2; z 0; x cycle body 1 v 0; y 0", NULL},
    {"limit: the operand behind the one left out", LIMIT, "h 0; z 0; x cycle body 1 v 0; y 0",
     "over 'h'"},
    {"learn: the weight is what the update says", LEARN,
     "z cycle body 0 0 1; x cycle body 1 v 0 1; y 0; n is m", NULL},
    {"learn: the update is written over the input", LEARN,
     "z cycle body 0 0 1; x cycle body 1 v 0 1; y 0; n is v",
     "'n' is written over 'v', which belongs"},
    {"learn: the loop writes into the weight", LEARN,
     "z cycle body 1 0 m; x cycle body 1 v 0 m; y is m; n 2",
     "'z' is written over 'm', which belongs"},

    {"parts: the upper half is read, and the lower written", PARTS("cumsum(high) axis=0"),
     PARTED "0", NULL},
    {"parts: the upper half is read and written", PARTS("cumsum(high) axis=0"), PARTED "1",
     "'z' writes 'z' in round 0 of 'body' over 'high'"},
    {"parts: a sum in place", PARTS("neg(high)"), PARTED "1", NULL},
    {"parts: two halves added, in place of the second", PARTS("add(low, high)"), PARTED "1", NULL},
    {"parts: a number of the other half added in place", PARTS("add(low, last)"), PARTED "0", NULL},
    {"parts: a number of the same half added in place", PARTS("add(low, one)"), PARTED "0",
     "over 'low'"},
    {"parts: one number twice, in place", PARTS("add(low, low)"), PARTED "0", NULL},
    {"parts: more numbers than what they are written over", PARTS("add(high, one)"), PARTED "0",
     "over 'one'"},

    {"case: branches share, and what is bypassed stays", CASE, "u 3; a 1; b 0; d 1; y case k b u u",
     NULL},
    {"case: both copied to one place", CASE, "u 3; a 1; b 0; d 1; y 0; copy two 0; entry k 1",
     NULL},
    {"case: one place, and no copy", CASE, "u 3; a 1; b 0; d 1; y 0",
     "'y' takes over a value without a copy"},
    {"case: branches the wrong way round", CASE, "u 3; a 1; b 0; d 1; y case k u b u",
     "'y' takes over a value without a copy"},
    {"case: bypass from a branch", CASE, "u 3; a 1; b 0; d 1; y case k b u b",
     "'y' takes over a value without a copy"},
    {"case: a branch's scratch on what it hands on", CASE, "u 1; a 2; b 0; d 1; y case k b u u",
     "'out' reads 'y'"},
    {"case: a branch's scratch on what another hands on", CASE,
     "u 3; a 0; b 1; d 1; y case k b u u", NULL},

    {"nested: copied home at the end of each round", NESTED,
     "x 0; " INNER "y 0; copy outer 1; entry lo 2", NULL},
    {"nested: home is the inner loop's first cell", NESTED,
     "x 2; p cycle inner 0 2 1; z cycle inner 0 1 2; o final li x z; y 2; copy outer 1; entry lo 2",
     NULL},
    {"nested: no copy, though the rounds decide where it is", NESTED,
     "x 0; " INNER "y 0; entry lo 2", "'x' takes over a value without a copy"},
    {"nested: the first value is not copied home", NESTED, "x 0; " INNER "y 0; copy outer 1",
     "'x' takes over a value without a copy"},
    {"nested: no round inside leaves it where it was", NESTED,
     "x 0; p cycle inner 1 x 1 2; z cycle inner 0 1 2; o final li z z; y 0; copy outer 1; entry lo "
     "2",
     "'o' takes over a value without a copy"},

    {"swap: two pointers go round", SWAP,
     "a 0; b 1; x cycle body 0 0 1; y cycle body 0 1 0; s 1; t 0", NULL},
    {"swap: behind three rounds they are the other way round", SWAP,
     "a 0; b 1; x cycle body 0 0 1; y cycle body 0 1 0; s 0; t 1",
     "'s' takes over a value without a copy"},
    {"swap: copied crosswise", SWAP,
     "a 0; b 1; x 0; y 1; s 0; t 1; copy body 1; copy body 2; staging body 2", NULL},
    {"swap: copied crosswise without room", SWAP,
     "a 0; b 1; x 0; y 1; s 0; t 1; copy body 1; copy body 2", "has no room to stage it"},
    {"swap: room that is a value's", SWAP,
     "a 0; b 1; x 0; y 1; s 0; t 1; copy body 1; copy body 2; staging body 1",
     "copies by way of a place"},
    {"swap: room that is the other value's", SWAP,
     "a 0; b 1; x 0; y 1; s 0; t 1; copy body 1; copy body 2; staging body 0",
     "copies by way of a place"},
    {"swap: one way only", SWAP, "a 0; b 1; x 0; y 1; s 0; t 1; copy body 1; staging body 2",
     "'y' takes over a value without a copy"},

    ROW("swaps: room for one is room for the next", SWAPS,
        "a 0; b 1; c 2; d 3; x 0; y 1; z 2; w 3; s 0; t 1; o 2; p 3; copy body 1; copy body 2; "
        "copy body 3; copy body 4; staging body 4",
        NULL),

    {"stage: by way of a place of its own", STAGE, STAGED "staging body 6", NULL},
    {"stage: by way of the first one's place", STAGE, STAGED "staging body 2",
     "that 'w' takes part in"},
    {"stage: by way of the first one's source", STAGE, STAGED "staging body 4",
     "that 'w' takes part in"},
    {"stage: by way of the last one's place", STAGE, STAGED "staging body 3",
     "that 'q' takes part in"},
    {"stage: by way of the last one's source", STAGE, STAGED "staging body 5",
     "that 'q' takes part in"},

    {"number: two cells in turns", NUMBER,
     "r cycle body 0 0 1; p cycle body 1 k 0 1; s 2; y 0; copy body 2", NULL},
    {"number: one cell: the next round's number falls on it", NUMBER,
     "r 0; p cycle body 1 k 0; s 2; y 0; copy body 2", "'s' reads 'p'"},
    {"number: behind three rounds it is in the first cell", NUMBER,
     "r cycle body 0 0 1; p cycle body 1 k 0 1; s 2; y 1; copy body 2", "'y' takes over a value"},

    {"scan: a part of it, and made where it is stacked", SCAN,
     "s slice body 1 v; a slice body 0 rows", NULL},
    {"scan: from the wrong end", SCAN, "s slice body 0 v; a slice body 0 rows",
     "'s' takes over a value"},
    {"scan: rows from the wrong end", SCAN, "s slice body 1 v; a slice body 1 rows",
     "'rows' takes over a value"},
    {"scan: copied both ways", SCAN, "s 0; a 1; entry l 2; copy body 1", NULL},
    {"scan: a slice in a place of its own, and no copy", SCAN, "s 0; a slice body 0 rows",
     "'s' takes over a value"},
    {"scan: a row in a place of its own, and no copy", SCAN, "s slice body 1 v; a 1",
     "'rows' takes over a value"},

    {"made: in place, where it is stacked", MADE,
     "s slice body 0 v; p slice body 0 rows; a slice body 0 rows", NULL},
    {"made: in place of another row", MADE,
     "s slice body 0 v; p slice body 1 rows; a slice body 0 rows", "'a' writes 'a'"},
    {"late: the round before is in other rows, and copied", LATE,
     "z slice body 0 ra; t cycle body 0 4 5; copy body 4", NULL},
    {"late: copied over what lies in the row", LATE,
     "z slice body 0 ra; $ slice body 0 rb; t cycle body 1 4 $; copy body 4", "'e' reads 'u'"},

    {"left: where the branch leaves it, or x", LEFT, LEFT_CELLS "c case k o x", NULL},
    {"left: where the branch's loop left it some round ago", LEFT, LEFT_CELLS "c case k x o",
     "'c' lies where 'li' leaves it"},
    ROW("left: behind the loop, where the branch's loop leaves it", LEFT,
        "r 3; e cycle outer 0 0 1; x cycle outer 1 v 0 1; p cycle inner 0 x; o final li x x; c "
        "case k o x; y final lo v o",
        "'lo' leaves"),
};

/* Operations beside a loop. Each plan is valid serially; `why`: the refusal of a plan that is to be
 * safe in parallel. */
#define BESIDE(READS)                                                                              \
    "graph beside\ninput v f32 [16]\nm = neg(v)\na = cumsum(m) axis=0\n" READS                     \
    "block body\n  param r i64 "                                                                   \
    "[]\n  param x f32 [16]\n  z = cumsum(x) axis=0\nyield _, z\ny = while body(_, _, m) "         \
    "carried=1 "                                                                                   \
    "trips=3 @l\n"
/* The first value of a carried value that each round replaces; another operation reads it too. */
#define ANEW                                                                                       \
    "graph anew\ninput v f32 [16]\nm = neg(v)\nc = cumsum(m) axis=0\na = neg(c)\nblock body\n  "   \
    "param r i64 "                                                                                 \
    "[]\n  param x f32 [16]\nyield _, c\ny = while body(_, _, m) carried=1 trips=3 @l\nout = "     \
    "add(a, "                                                                                      \
    "y)\noutput out\n"
#define CHAIN                                                                                      \
    "graph chain\ninput v f32 [16]\na = cumsum(v) axis=0\nb = cumsum(a) axis=0\nc = cumsum(b) "    \
    "axis=0\nd = "                                                                                 \
    "cumsum(c) axis=0\noutput d\n"
#define READ_BESIDE BESIDE("") "out = add(a, y)\noutput out\n"
#define DEAD_BESIDE BESIDE("b = neg(a)\n") "out = add(b, y)\noutput out\n"
static const struct row parallel_rows[] = {
    {"beside: apart", READ_BESIDE, "m 0; a 1; z cycle body 0 2 3; x cycle body 1 m 2 3; y 2", NULL},
    {"beside: the loop writes what an operation beside it may still read", READ_BESIDE,
     "m 0; a 1; z cycle body 0 2 0; x cycle body 1 m 2 0; y 2", "'a' reads 'm'"},
    {"beside: a dead value of operations that stand apart", DEAD_BESIDE,
     "m 0; a 1; b 4; z cycle body 0 2 3; x cycle body 1 m 2 3; y 2", NULL},
    {"beside: the loop writes what an operation beside it writes", DEAD_BESIDE,
     "m 0; a 1; b 4; z cycle body 0 2 1; x cycle body 1 m 2 1; y 2", "writes 'a'"},
    {"anew: the first value is copied to the first cell alone", ANEW,
     "m 0; c 1; a 2; x cycle body 1 3 1; entry l 2; y 1", NULL},
    {"chain: one behind the other, in turns", CHAIN, "a 0; b 1; c 0; d 1", NULL},
};

typedef struct made {
    mpl_ctx *ctx;
    mpl_graph *g;
    mpl_value_map map;
    mpl_places places;
    mpl_place place[MOST_PLACES];
    uint32_t item[MOST_ITEMS], n_items, named; /* named: the place of `$` */
    mpl_problem *p;
    mpl_plan *plan;
    mpl_program *program;
} made;

static uint32_t n_results(const mpl_graph *g)
{
    uint32_t n = 0;

    for (uint32_t b = 0; b < g->n_blocks; b++)
        n += g->block_n_results[b];
    return n;
}

static void make_problem(made *m)
{
    assert_ok(m->ctx, mpl_problem_new(m->ctx, "places", MOST_BUFFERS, &m->p));
    m->p->n_steps = 1;
    for (mpl_buffer b = 0; b < MOST_BUFFERS; b++)
        m->p->bytes[b] = UNIT, m->p->birth[b] = 0, m->p->death[b] = 1;
    assert_ok(m->ctx, mpl_plan_new(m->ctx, m->p, &m->plan));
    for (mpl_buffer b = 0; b < MOST_BUFFERS; b++)
        m->plan->offset[b] = (uint64_t)b * UNIT;
}

static void make_map(made *m)
{
    const mpl_graph *g = m->g;
    mpl_op *order = NULL;

    assert_ok(m->ctx, mpl_new(m->ctx, order, g->n_ops));
    count_up(g->n_ops, order);
    assert_ok(m->ctx, mpl_program_new(m->ctx, g, order, &m->program));
    mpl_free(m->ctx, order);
    m->map = (mpl_value_map){
        .n_values = g->n_values, .places = &m->places, .step_of = m->program->op_step};
    m->places.place = m->place;
    m->places.item = m->item;
    assert_ok(m->ctx, mpl_new(m->ctx, m->map.value_buffer, g->n_values));
    assert_ok(m->ctx, mpl_new(m->ctx, m->map.value_root, g->n_values));
    assert_ok(m->ctx, mpl_new(m->ctx, m->map.value_offset, g->n_values));
    assert_ok(m->ctx, mpl_new(m->ctx, m->map.op_workspace, g->n_ops));
    assert_ok(m->ctx, mpl_new(m->ctx, m->places.value_place, g->n_values));
    assert_ok(m->ctx, mpl_new(m->ctx, m->places.in_copied, g->op_in_begin[g->n_ops]));
    assert_ok(m->ctx, mpl_new(m->ctx, m->places.result_copied, n_results(g)));
    assert_ok(m->ctx, mpl_new(m->ctx, m->places.staging, g->n_blocks));
    for (mpl_value v = 0; v < g->n_values; v++) {
        m->map.value_buffer[v] = m->places.value_place[v] = MPL_NONE;
        m->map.value_root[v] = v;
    }
    for (mpl_op op = 0; op < g->n_ops; op++)
        m->map.op_workspace[op] = MPL_NONE;
    for (uint32_t b = 0; b < g->n_blocks; b++)
        m->places.staging[b] = MPL_NONE;
}

static void unmake(made *m)
{
    void *arrays[] = {m->map.value_buffer,   m->map.value_root,   m->map.value_offset,
                      m->places.value_place, m->places.in_copied, m->places.result_copied,
                      m->places.staging,     m->map.op_workspace, m->map.op_nothing};

    MPL_FREE_ALL(m->ctx, arrays);
    mpl_program_free(m->ctx, m->program);
    mpl_plan_free(m->ctx, m->plan);
    mpl_problem_free(m->ctx, m->p);
    mpl_graph_free(m->ctx, m->g);
}

static mpl_value value_named(const made *m, const char *name)
{
    for (mpl_value v = 0; v < m->g->n_values; v++)
        if (strcmp(m->g->value_name[v], name) == 0)
            return v;
    fail_msg("%s: no value '%s'", m->g->name, name);
    return MPL_NONE;
}

static mpl_op op_named(const made *m, const char *name)
{
    for (mpl_op op = 0; op < m->g->n_ops; op++)
        if (strcmp(m->g->op_name[op], name) == 0)
            return op;
    fail_msg("%s: no operation '%s'", m->g->name, name);
    return MPL_NONE;
}

static uint32_t block_named(const made *m, const char *name)
{
    uint32_t b = mpl_graph_find_block(m->g, name);

    if (b == MPL_NONE)
        fail_msg("%s: no block '%s'", m->g->name, name);
    return b;
}

static uint32_t number_of(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

static uint32_t add_place(made *m, mpl_place place)
{
    assert_true(m->places.n < MOST_PLACES);
    m->place[m->places.n] = place;
    return m->places.n++;
}

static uint32_t item_place(made *m, const char *text)
{
    mpl_value v;

    if (text[0] == '$')
        return m->named;
    if (text[0] >= '0' && text[0] <= '9')
        return add_place(m, (mpl_place){.kind = MPL_PLACE_BUFFER, .of = number_of(text)});
    v = value_named(m, text);
    if (m->places.value_place[v] != MPL_NONE)
        return m->places.value_place[v];
    if (m->map.value_buffer[v] != MPL_NONE)
        return add_place(m, (mpl_place){.kind = MPL_PLACE_BUFFER, .of = m->map.value_buffer[v]});
    return add_place(m, (mpl_place){.kind = MPL_PLACE_PINNED, .of = v});
}

/* The words of one value's place, from its kind on. */
static mpl_place place_head(made *m, mpl_value v, char **word, uint32_t *n_head)
{
    mpl_place place = {0};

    *n_head = 2;
    if (strcmp(word[0], "cycle") == 0) {
        place.kind = MPL_PLACE_CYCLE;
        place.of = block_named(m, word[1]);
        place.n_first = number_of(word[(*n_head)++]);
    } else if (strcmp(word[0], "slice") == 0) {
        place.kind = MPL_PLACE_SLICE;
        place.of = block_named(m, word[1]);
        place.reversed = (uint8_t)number_of(word[(*n_head)++]);
        place.bytes = v != MPL_NONE ? m->g->value_bytes[v] : UNIT;
    } else {
        place.kind = strcmp(word[0], "final") == 0 ? MPL_PLACE_FINAL : MPL_PLACE_BRANCH;
        place.of = op_named(m, word[1]);
    }
    return place;
}

/* v MPL_NONE: a place without a value. */
static void put_value(made *m, mpl_value v, char **word, uint32_t n)
{
    mpl_place place;
    uint32_t n_head, made_item[16];

    if (n == 1) {
        m->map.value_buffer[v] = number_of(word[0]);
        return;
    }
    if (strcmp(word[0], "is") == 0) {
        m->places.value_place[v] = item_place(m, word[1]);
        return;
    }
    place = place_head(m, v, word, &n_head);
    place.n = n - n_head;
    for (uint32_t i = 0; i < place.n; i++)
        made_item[i] = item_place(m, word[n_head + i]);
    place.begin = m->n_items;
    for (uint32_t i = 0; i < place.n; i++)
        m->item[m->n_items++] = made_item[i];
    n_head = add_place(m, place);
    if (v == MPL_NONE)
        m->named = n_head;
    else
        m->places.value_place[v] = n_head;
}

static void put_inside(made *m, mpl_value v, mpl_value of, uint64_t bytes)
{
    m->map.value_root[v] = of;
    m->map.value_buffer[v] = m->map.value_buffer[of];
    m->map.value_offset[v] = bytes;
    if (m->map.op_nothing == NULL)
        assert_ok(m->ctx, mpl_new(m->ctx, m->map.op_nothing, m->g->n_ops));
    m->map.op_nothing[m->g->value_op[v]] = 1;
}

static void put_places(made *m, const char *text)
{
    char copy[400], *clause, *rest = copy;

    assert_true(strlen(text) < sizeof copy);
    strcpy(copy, text);
    while ((clause = strsep(&rest, ";")) != NULL) {
        char *word[16], *at = clause, *one;
        uint32_t n = 0;

        while ((one = strsep(&at, " ")) != NULL)
            if (*one != '\0')
                word[n++] = one;
        if (n == 0)
            continue;
        if (strcmp(word[0], "copy") == 0)
            m->places.result_copied[m->g->block_result_begin[block_named(m, word[1])] +
                                    number_of(word[2])] = 1;
        else if (strcmp(word[0], "entry") == 0)
            m->places.in_copied[m->g->op_in_begin[op_named(m, word[1])] + number_of(word[2])] = 1;
        else if (strcmp(word[0], "staging") == 0)
            m->places.staging[block_named(m, word[1])] = number_of(word[2]);
        else if (strcmp(word[0], "work") == 0)
            m->map.op_workspace[op_named(m, word[1])] = number_of(word[2]);
        else if (strcmp(word[0], "at") == 0)
            put_inside(m, value_named(m, word[1]), value_named(m, word[2]), number_of(word[3]));
        else
            put_value(m, word[0][0] == '$' ? MPL_NONE : value_named(m, word[0]), word + 1, n - 1);
    }
}

/* Declares no buffer before another: the verifier of places only needs an order of buffers to
 * exist. */
static void make_parallel(made *m)
{
    mpl_before *before = NULL;

    assert_ok(m->ctx, mpl_before_from_arcs(m->ctx, MOST_BUFFERS, 0, NULL, NULL, &before));
    m->p->before = before;
    m->p->n_steps = 0;
}

static void check_row(mpl_ctx *ctx, const struct row *row, bool parallel, const char *why)
{
    made m = {.ctx = ctx};
    mpl_status st;

    assert_ok(ctx, mpl_text_read_memory(ctx, row->what, row->graph, strlen(row->graph), &m.g));
    make_problem(&m);
    if (parallel)
        make_parallel(&m);
    make_map(&m);
    put_places(&m, row->places);
    ctx->message[0] = '\0';
    st = mpl_verify_places(ctx, m.g, &m.map, m.p, m.plan);
    if (st != (why == NULL ? MPL_OK : MPL_EINVALID) ||
        (why != NULL && strstr(ctx->message, why) == NULL))
        fail_msg("%s: %s; expected: %s", row->what, st == MPL_OK ? "accepted" : ctx->message,
                 why != NULL ? why : "accepted");
    unmake(&m);
}

TEST(test_rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(ctx, &rows[i], false, rows[i].why);
}

TEST(test_parallel_rows)
{
    for (size_t i = 0; i < sizeof parallel_rows / sizeof *parallel_rows; i++) {
        check_row(ctx, &parallel_rows[i], false, NULL);
        check_row(ctx, &parallel_rows[i], true, parallel_rows[i].why);
    }
}

TESTS(test_rows, test_parallel_rows)
