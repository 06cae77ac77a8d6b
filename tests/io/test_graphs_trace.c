/* Allocation traces: right ones in every notation are read exactly, random ones as plain lists of
 * what is alive say, and each wrong file gives one line that names file and line. MPL_TRACES=N:
 * that many random ones (500).
 *
 * Fault: a column or an event mistaken; rows in another order; a wrong lifetime; an id that cannot
 * be used again, or that is alive twice. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "graphs/io/lists/lists.h"
#include "planners/online/requests.h"

#define FILE_NAME "build/test_graphs_trace.csv"

#define HEAD "time,event,id,bytes\n"

static const struct {
    const char *text, *want; /* what follows "FILE:" in the message */
} wrong[] = {
    {"event,id,bytes\n", "1: no column 'time'; the header must name time,event,id,size"},
    {"time,event,bytes\n", "1: no column 'id'"},
    {"time,event,id\n", "1: no column 'size'"},
    {"time,event,id,bytes,ptr\n", "1: two columns give the id"},
    {HEAD, "1: no buffer"},
    {HEAD "0,malloc,a,0\n", "2: no buffer"},
    {HEAD "0,malloc,a\n", "2: 3 fields; the header names 4"},
    {HEAD "0,malloc,,7\n", "2: id is missing"},
    {HEAD "0,malloc,a,\n", "2: size is missing"},
    {HEAD "0,malloc,a,-7\n", "2: size is negative: '-7'"},
    {HEAD "0,malloc,a,7.5\n", "2: size is no whole number"},
    {HEAD "0,malloc,a,9223372036854775808\n", "2: size passes 2^63 - 1"},
    {HEAD "0,realloc,a,7\n", "2: event 'realloc'; it should be malloc or free"},
    {HEAD "0,,a,7\n", "2: event ''"},
    {HEAD ",malloc,a,7\n", "2: time is missing"},
    {HEAD "-1,malloc,a,7\n", "2: time is negative: '-1'"},
    {HEAD "1.,malloc,a,7\n", "2: time is no decimal number: '1.'"},
    {HEAD "1.5e3,malloc,a,7\n", "2: time is no decimal number"},
    {HEAD "1.0000000005x,malloc,a,7\n", "2: time is no decimal number"},
    {HEAD "2,malloc,a,7\n1.9,free,a,\n", "3: time goes back to 1.9"},
    {HEAD "2.05,malloc,a,7\n2.005,free,a,\n", "3: time goes back to 2.005"},
    {HEAD "0.000000002,malloc,a,7\n0.000000001,free,a,\n", "3: time goes back to 0.000000001"},
    {HEAD "0,free,a,7\n", "2: free of 'a', which was never allocated"},
    {HEAD "0,malloc,a,7\n1,free,b,7\n", "3: free of 'b', which was never allocated"},
    {HEAD "0,malloc,a,7\n1,free,a,\n2,free,a,\n",
     "4: free of 'a', allocated in line 2, for the second time"},
    {HEAD "0,malloc,a,7\n1,malloc,a,7\n", "3: malloc of 'a', which is alive since line 2"},
    {"time,event,id,bytes,align\n0,malloc,a,7,3\n", "2: alignment 3 is no power of two"},
};

TEST(refuse_wrong_traces)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mpl_problem *p = NULL;
        mpl_status st;

        write_file(FILE_NAME, wrong[i].text, strlen(wrong[i].text));
        st = mpl_csv_read(ctx, FILE_NAME, &p, NULL);
        if (st != MPL_EINPUT || strncmp(ctx->message, FILE_NAME ":", strlen(FILE_NAME) + 1) != 0 ||
            strncmp(ctx->message + strlen(FILE_NAME) + 1, wrong[i].want, strlen(wrong[i].want)) !=
                0)
            fail_msg("%s\n: %s, '%s'; expected '%s'", wrong[i].text, mpl_status_name(st),
                     ctx->message, wrong[i].want);
        assert_null(p);
    }
}

/* x of 7 bytes, then y of 2, x ends, y stays. */
static const char *const right[] = {
    HEAD "0,malloc,x,7\n1,malloc,y,2\n2,free,x,7\n",
    HEAD "5,malloc,x,7\r\n5,malloc,y,2\r\n5,free,x,\r\n",
    HEAD "0.1,malloc,x,7\n0.25,malloc,y,2\n0.250000000001,free,x,0\n9,malloc,z,0\n",
    "bytes , op, ID,TS,what\n7,alloc,x,0,?\n2,NEW,y,0,\n-7,dealloc,x,1,\n",
    "Timestamp,Action,Ptr,Size\n0,a,x,7\n0,A,y,2\n1,f,x,\n",
    "time,event,pointer,bytes,align\n0,malloc,x,7,1\n1,malloc,y,2,1\n2,free,x,,\n",
    "time,event,addr,bytes\n0,malloc,x,7\n1,malloc,y,2\n2,free,x,\n",
    "time,event,buffer,bytes\n0,malloc,x,7\n1,malloc,y,2\n2,free,x,\n",
    "time,event,buffer_id,bytes\n0,malloc,x,7\n1,malloc,y,2\n2,free,x,\n",
    "t,type,address,nbytes,alignment\n0,+,x,7,1\n1,+,y,2,1\n1,-,x,,\n",
    "time,event,handle,size\n00,allocate,x,7\n1,malloc,y,2\n2,release,x,99\n",
    HEAD "0,malloc,x,7\n1,malloc,y,2\n2,delete,x,\n3,malloc,z,0\n4,free,z,0\n",
};

TEST(read_right_traces)
{
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        owned_problem *p = NULL;

        write_file(FILE_NAME, right[i], strlen(right[i]));
        assert_ok(ctx, mpl_csv_read(ctx, FILE_NAME, &p, NULL));
        assert_int_equal(p->n, 2);
        assert_string_equal(p->buffer_name[0], "x");
        assert_string_equal(p->buffer_name[1], "y");
        assert_true(p->bytes[0] == 7 && p->bytes[1] == 2 && p->align[0] == 1);
        assert_true(p->birth[0] == 0 && p->birth[1] == 1 && p->death[0] == 2 && p->death[1] > 2);
    }
}

/* ---- random traces ---- */

enum { MOST = 120, IDS = 12 };

typedef struct row {
    bool frees;
    uint32_t id, bytes;
} row;

/* Writes a trace whose ids are used again and again, and keeps its rows. */
static uint32_t random_trace(mpl_rng *rng, row *rows)
{
    uint32_t n = 1 + (uint32_t)mpl_rng_below(rng, MOST - 1), time = 0;
    bool alive[IDS] = {false};
    FILE *f = fopen(FILE_NAME, "wb");

    assert_non_null(f);
    fputs(HEAD, f);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)mpl_rng_below(rng, IDS);

        rows[i] = (row){alive[id], id, alive[id] ? 0 : 1 + (uint32_t)mpl_rng_below(rng, 50)};
        alive[id] = !alive[id];
        time += (uint32_t)mpl_rng_below(rng, 3);
        fprintf(f, "%u.%u,%s,0x%x,%u\n", time / 10, time % 10, rows[i].frees ? "free" : "malloc",
                id, rows[i].bytes);
    }
    assert_int_equal(fclose(f), 0);
    return n;
}

/* The requests of the problem are the rows of the trace, then the ends of what stays. */
static void check_trace(mpl_ctx *ctx, const row *rows, uint32_t n)
{
    owned_problem *p = NULL;
    owned_memory mpl_request *request = NULL;
    uint32_t n_requests = 0, buffer[IDS], b = 0;

    assert_ok(ctx, mpl_csv_read(ctx, FILE_NAME, &p, NULL));
    assert_ok(ctx, mpl_requests_make(ctx, p, 0, &request, &n_requests));
    assert_int_equal(n_requests, 2 * p->n);
    for (uint32_t i = 0; i < n; i++) {
        if (!rows[i].frees) {
            assert_int_equal(p->bytes[b], rows[i].bytes);
            buffer[rows[i].id] = b++;
        }
        assert_true(request[i].gives_back == rows[i].frees);
        assert_int_equal(request[i].id, buffer[rows[i].id]);
    }
    assert_int_equal(b, p->n);
    for (uint32_t i = n; i < n_requests; i++)
        assert_true(request[i].gives_back);
}

TEST(read_random_traces)
{
    uint64_t rounds = number_asked("MPL_TRACES", 500);
    row rows[MOST];
    mpl_rng rng = mpl_rng_of(5);

    for (uint64_t i = 0; i < rounds; i++)
        check_trace(ctx, rows, random_trace(&rng, rows));
}

TEST(memory_may_run_out)
{
    row rows[MOST];
    mpl_rng rng = mpl_rng_of(6);

    random_trace(&rng, rows);
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_problem *p = NULL;

        st = mpl_csv_read(ctx, FILE_NAME, &p, NULL);
        mpl_problem_free(ctx, p);
    }
    ctx->fail_after = -1;
    unlink(FILE_NAME);
}

TESTS(refuse_wrong_traces, read_right_traces, read_random_traces, memory_may_run_out)
