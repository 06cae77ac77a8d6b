-- tables.sql: every table that is made of rows, as one query.
--
-- A table begins with `-- table NAME FIELD: ABOUT`, continued in indented lines. Some row must have
-- FIELD (any: each row will do). A query may use:
--
--   rows       a column for each field of harness/rows/fields.def: null where the row has none, the
--              median of an array of times; and
--                id                 the order of the rows, from 1
--                graph_name         "A" of ../lists/A.1048576.csv
--                planner_name       "pool:level=0"
--                arena_over_malloc  run_ns over malloc_ns, the median over pairs of runs
--   published  the lines of results/published.tsv, with id
--   the views below, which several tables share
--
-- and these functions, which are null if an argument is:
--
--   mib(bytes)       "12.345"; "512 bytes" if that would read 0.000
--   ms(ns)           "1.234"
--   fixed(x, n)      x with n digits
--   percent(x, n)    "33.3 %", of the part x, with n digits
--   gap(bytes, b)    "+3.21 %" above the bound b, "0" at it
--   less(a, b)       "33.3 %": how much less b is than a
--   ratio(a, b)      a over b; null if b is not above 0
--   problem(id)      the id of the first row with the same problem and execution
--   refuse(text)     no table; the text is the reason
--   mean(x), geometric_mean(x), median(x)   aggregates independent of the order of rows
--
-- A column's name is its head; a ~ at its start marks times, which differ from run to run. Null is
-- printed as "-". Three columns are not printed:
--
--   line     records of one line make one line of the table: the first fills all cells, the others
--            those whose heads hold a %
--   each     replaces % in heads
--   section  the id of a row: starts a table of its own, below what distinguishes the row's problem
--
-- If the first column is named `heads`, the first record holds the heads. Tables are the same on
-- every machine: the aggregates above sum floating-point numbers, and every order ends in a unique
-- key.

-- Each planner with each graph, in the order of their first rows, and the last row of each pair.
CREATE TEMP VIEW places AS
SELECT id, planner_name, graph_name || coalesce(' ' || backend, '')
  || iif(safety IS NULL OR safety = 'serial', '', ' ' || safety) AS graph_place FROM rows;

CREATE TEMP VIEW matrix AS
SELECT r.*, p.line, p.planner_name AS label, g.place, g.graph_place AS each
FROM (SELECT planner_name, min(id) AS line FROM rows GROUP BY planner_name) p
CROSS JOIN (SELECT graph_place, min(id) AS place FROM places GROUP BY graph_place) g
LEFT JOIN (SELECT planner_name, graph_place, max(id) AS id FROM places GROUP BY 1, 2)
  USING (planner_name, graph_place)
LEFT JOIN rows r USING (id);

-- Rows with their kin: resnet18, resnet50, .. are of one kin, which counts once in a mean.
CREATE TEMP VIEW kindred AS
SELECT *, rtrim(rtrim(substr(graph_name || ':', 1, instr(graph_name || ':', ':') - 1),
  '0123456789'), '_v') AS kin FROM rows;

-- Results of each planner by use and by family of networks. `least` is the highest bound of a
-- problem that any planner proved.
CREATE TEMP VIEW over_least AS
SELECT r.*, least, iif(status = 'ok', ratio(planned_bytes, least), NULL) AS above,
  CASE WHEN graph GLOB '*mode=train*' THEN 'training ' || safety
    WHEN graph IS NOT NULL THEN 'inference ' || safety END AS use,
  CASE WHEN graph GLOB 'vgg*' OR graph GLOB 'mobilenet*' OR graph GLOB 'mlp*'
      OR graph GLOB 'mnist*' THEN 'chains'
    WHEN graph GLOB 'resnet*' THEN 'residual' WHEN graph GLOB 'densenet*' THEN 'dense'
    WHEN graph GLOB 'inception*' THEN 'inception'
    WHEN graph GLOB 'lstm*' OR graph GLOB 'gru*' THEN 'recurrent' END AS family
FROM kindred r LEFT JOIN (SELECT problem_hash, max(bound_bytes) AS least FROM rows
  GROUP BY problem_hash) USING (problem_hash);

CREATE TEMP VIEW kinds AS
WITH kind(place, name) AS (VALUES (1, 'inference serial'), (2, 'inference parallel'),
  (3, 'training serial'), (4, 'training parallel'), (5, 'chains'), (6, 'residual'), (7, 'dense'),
  (8, 'inception'), (9, 'recurrent'))
SELECT line, p.planner_name AS planner, place, kind.name AS each, count(above) AS graphs,
  sum(planned_bytes = least AND above IS NOT NULL) || ' of ' || (count(above) + failed)
    || iif(failed > 0, ' (' || failed || ' failed)', '') AS least,
  percent(sum(above * share) / sum(iif(above IS NULL, NULL, share)) - 1, 2) AS mean,
  percent(max(above) - 1, 2) AS most
FROM (SELECT planner_name, min(id) AS line FROM rows GROUP BY planner_name) p CROSS JOIN kind
LEFT JOIN (SELECT *, count(*) FILTER (WHERE status IS NOT 'ok' AND status IS NOT 'unavailable')
             OVER (PARTITION BY planner_name, place) AS failed,
             1.0 / count(above) OVER (PARTITION BY planner_name, place, kin) AS share
           FROM over_least JOIN kind ON name IN (use, family)) o USING (planner_name, place)
GROUP BY line, place ORDER BY line, place;

-- The best plans of any planner for the two values of a field, in the order of their first rows.
CREATE TEMP VIEW sided AS
SELECT 'safety' AS field, safety AS side, * FROM rows WHERE safety IS NOT NULL
UNION ALL SELECT 'in_place', iif(in_place, 'on', 'off'), * FROM rows WHERE in_place IS NOT NULL;

CREATE TEMP VIEW best_of_side AS
SELECT field, side, graph_name, max(bound_bytes) AS bound, min(planned_bytes) AS planned,
  max(iif(rank = 1, planner_name, NULL)) AS by
FROM (
  SELECT *, row_number() OVER (PARTITION BY field, side, graph_name ORDER BY planned_bytes, id) AS
    rank FROM sided
  WHERE coalesce(status, 'ok') = 'ok' AND planned_bytes IS NOT NULL AND bound_bytes IS NOT NULL)
GROUP BY field, side, graph_name;

CREATE TEMP VIEW sides AS
WITH ranked AS (SELECT field, side, row_number() OVER (PARTITION BY field ORDER BY min(id)) AS rank
  FROM sided GROUP BY field, side),
names AS (
  SELECT field, max(iif(rank = 1, side, NULL)) AS a, max(iif(rank = 2, side, NULL)) AS b
  FROM (SELECT 'safety' AS field UNION ALL SELECT 'in_place') LEFT JOIN ranked USING (field)
  GROUP BY field)
SELECT field, 0 AS line,
  iif(b IS NULL, refuse('the rows have one side of ' || field || ' only'), 'graph') AS heads,
  a || ' bound MiB' AS a_bound, a || ' best MiB' AS a_best, a || ' by' AS a_by,
  b || ' bound MiB' AS b_bound, b || ' best MiB' AS b_best, b || ' by' AS b_by,
  b || ' over ' || a AS b_over_a FROM names
UNION ALL
SELECT n.field, g.line, g.graph_name, mib(x.bound), mib(x.planned), x.by, mib(y.bound),
  mib(y.planned), y.by, fixed(ratio(y.planned, x.planned), 3)
FROM names n CROSS JOIN (SELECT graph_name, min(id) AS line FROM rows GROUP BY graph_name) g
LEFT JOIN best_of_side x ON x.field = n.field AND x.side = n.a AND x.graph_name = g.graph_name
LEFT JOIN best_of_side y ON y.field = n.field AND y.side = n.b AND y.graph_name = g.graph_name;

-- table runs planner: one table a graph: every planner's bytes, gap, times and checks
SELECT problem(id) AS section, planner_name AS planner, mib(planned_bytes) AS "planned MiB",
  mib(packed_bytes) AS "packed MiB", gap(planned_bytes, bound_bytes) AS "gap to bound",
  ms(plan_ns) AS "plan ms", ms(run_ns) AS "run ms", mib(measured_bytes) AS "measured MiB",
  CASE WHEN verified THEN 'yes' WHEN coalesce(status, 'ok') = 'ok' THEN 'no'
  ELSE status END AS verified, outputs
FROM rows ORDER BY problem(id), id;

-- table planned planned_bytes: planned memory, planners x graphs [MiB]
SELECT line, label AS planner, each, mib(planned_bytes) AS "%" FROM matrix ORDER BY line, place;

-- table packed packed_bytes: planned memory with blocks packed into one arena, planners x graphs
--   [MiB]
SELECT line, label AS planner, each, mib(packed_bytes) AS "%" FROM matrix ORDER BY line, place;

-- table gap bound_bytes: planned memory above the lower bound, planners x graphs
SELECT line, label AS planner, each, gap(planned_bytes, bound_bytes) AS "%" FROM matrix
ORDER BY line, place;

-- table plan_time plan_ns: time to plan, planners x graphs [ms]
SELECT line, label AS planner, each, ms(plan_ns) AS "~%" FROM matrix ORDER BY line, place;

-- table run_time run_ns: median time of a run, planners x graphs [ms]
SELECT line, label AS planner, each, ms(run_ns) AS "~%" FROM matrix ORDER BY line, place;

-- table measured measured_bytes: resident pages of the arena, planners x graphs [MiB]
SELECT line, label AS planner, each, mib(measured_bytes) AS "%" FROM matrix ORDER BY line, place;

-- table peers any: time to plan beside other solvers, taken in turns; a ratio above 1: the peer
--   takes longer
-- A peer's time is that of its whole process. A time that it reports itself has its own ratio.
WITH timed AS (
  SELECT *, planner IS NOT NULL AND planner GLOB 'exec:*' AS peer,
    min(id) OVER (PARTITION BY planner_name) AS place,
    iif(plan_each_ns > 0, plan_each_ns, NULL) AS ns, iif(self_ns > 0, self_ns, NULL) AS own_ns
    FROM rows),
pair AS (
  SELECT theirs.place AS their_place, ours.place AS our_place, ours.id AS our_id,
    theirs.id AS their_id, coalesce(ours.graph, '') AS graph, ours.planner_name AS ours,
    coalesce(ms(ours.ns), ours.status, '') AS our_ms, theirs.planner_name AS theirs,
    coalesce(ms(theirs.ns), theirs.status, '') AS their_ms, ratio(theirs.ns, ours.ns) AS ratio,
    ms(theirs.own_ns) AS own_ms, ratio(theirs.own_ns, ours.ns) AS own_ratio
  FROM timed ours JOIN timed theirs ON ours.graph IS theirs.graph
    AND ours.problem_hash IS theirs.problem_hash
    AND ours.safety IS theirs.safety AND ours."order" IS theirs."order"
    AND ours.backend IS theirs.backend
  WHERE theirs.peer AND NOT ours.peer),
both AS (
  SELECT *, 0 AS last FROM pair UNION ALL
  SELECT their_place, our_place, NULL, NULL, 'geometric mean of ' || count(ratio) || ' of '
    || count(*), ours, NULL, theirs, NULL, geometric_mean(ratio), NULL, geometric_mean(own_ratio),
    1 FROM pair GROUP BY their_place, our_place)
SELECT graph, ours AS planner, our_ms AS ms, theirs AS peer, their_ms AS "peer ms",
  fixed(ratio, iif(ratio < 10, 2, 1)) AS ratio, own_ms AS "peer says ms",
  fixed(own_ratio, iif(own_ratio < 10, 2, 1)) AS ratio
FROM both ORDER BY their_place, our_place, last, our_id, their_id;

-- table published any: values that others published or reported, or that we computed by their
--   methods, each with its origin, beside ours: the least, and the median over seeds
WITH mine AS (
  SELECT p.*, CAST(value AS REAL) AS given,
    iif(instr(value, '.') > 0, length(value) - instr(value, '.'), 0) AS digits,
    CASE quantity WHEN 'planned_mib' THEN planned_bytes / 1048576.0
      WHEN 'bound_mib' THEN bound_bytes / 1048576.0
      WHEN 'naive_mib' THEN naive_bytes / 1048576.0 WHEN 'planned_mb' THEN planned_bytes / 1e6
      WHEN 'naive_mb' THEN naive_bytes / 1e6 WHEN 'planned_kib' THEN planned_bytes / 1024.0
      WHEN 'over_bound' THEN ratio(planned_bytes, bound_bytes) END AS ours
  FROM published p JOIN rows r ON p.graph IN (r.graph, r.graph_name) AND r.safety = p.safety
    AND r.planner_name = p.planner)
SELECT graph, safety, planner, quantity, value AS theirs, fixed(min(ours), digits) AS ours,
  fixed(median(ours), digits) AS "our median",
  CASE WHEN abs(min(ours) / given - 1) < 0.00005 THEN '0'
       ELSE iif(min(ours) > given, '+', '') || percent(min(ours) / given - 1, 2) END AS difference,
  source, origin, note
FROM mine GROUP BY id HAVING count(ours) > 0 ORDER BY id;

-- table networks planned_bytes: a line a graph: all outputs, every planner's bytes, the best, the
--   bound [10^6 B], runs with and without a plan, published processes
WITH firsts AS (
  SELECT *, min(id) OVER (PARTITION BY graph) AS line,
    min(id) OVER (PARTITION BY planner_name) AS place,
    min(id) OVER (PARTITION BY graph, planner_name) AS first FROM rows),
one AS (SELECT * FROM firsts WHERE id = first),
best AS (
  SELECT *, row_number() OVER (PARTITION BY line ORDER BY planned_bytes, place) AS rank FROM one
  WHERE planner_name <> 'none' AND planned_bytes IS NOT NULL),
process AS (
  SELECT graph, max(iif(quantity = 'process_mb', value, NULL)) AS mb,
    max(iif(quantity = 'seconds', value, NULL)) AS seconds,
    max(iif(quantity = 'process_planned_mb', value, NULL)) AS planned_mb,
    max(iif(quantity = 'seconds_planned', value, NULL)) AS planned_seconds
  FROM published WHERE planner = 'process' GROUP BY graph)
SELECT g.line, coalesce(g.graph, '-') AS graph, fixed(alone.naive_bytes / 1e6, 2) AS "all outputs",
  p.planner AS each, fixed(one.planned_bytes / 1e6, 2) AS "%",
  fixed(best.planned_bytes / 1e6, 2) AS best, fixed(best.bound_bytes / 1e6, 2) AS bound,
  ms(alone.run_ns) AS "~run ms alone", ms(best.run_ns) AS "~run ms planned", mb AS "their process",
  planned_mb AS "their process planned", seconds AS "their s", planned_seconds AS "their s planned"
FROM (SELECT graph, graph_name, min(id) AS line FROM rows GROUP BY graph) g
LEFT JOIN (SELECT planner_name AS planner, min(id) AS place FROM rows WHERE planner_name <> 'none'
  GROUP BY planner_name) p ON TRUE
LEFT JOIN one ON one.line = g.line AND one.planner_name = p.planner
LEFT JOIN one alone ON alone.line = g.line AND alone.planner_name = 'none'
LEFT JOIN best ON best.line = g.line AND best.rank = 1
LEFT JOIN process ON process.graph IN (g.graph, g.graph_name)
ORDER BY g.line, p.place;

-- table processes rss_bytes: a line a graph: peak resident sets of whole runs without and with a
--   plan, what was there before the run was prepared, and published processes [10^6 B]
WITH one AS (
  SELECT *, row_number() OVER (PARTITION BY graph, planner_name ORDER BY id) AS nth FROM rows
  WHERE rss_bytes IS NOT NULL),
least AS (
  SELECT *, row_number() OVER (PARTITION BY graph ORDER BY planned_bytes, id) AS rank FROM one
  WHERE planner_name <> 'none' AND nth = 1),
process AS (
  SELECT graph, max(iif(quantity = 'process_mb', value, NULL)) AS mb,
    max(iif(quantity = 'process_planned_mb', value, NULL)) AS planned_mb
  FROM published WHERE planner = 'process' GROUP BY graph)
SELECT coalesce(a.graph, '-') AS graph, fixed((a.holds ->> 'before') / 1e6, 2) AS built,
  fixed(a.rss_bytes / 1e6, 2) AS process, fixed(o.rss_bytes / 1e6, 2) AS "owl's rule",
  fixed(l.rss_bytes / 1e6, 2) AS "best plan", fixed(ratio(a.rss_bytes, o.rss_bytes), 2) AS "times less",
  mb AS "their process", planned_mb AS "their process planned",
  fixed(ratio(mb, planned_mb), 2) AS "their times less", ms(a.run_ns) AS "~evaluate ms",
  ms(o.run_ns) AS "~evaluate ms planned", ms(o.plan_ns) AS "~plan ms"
FROM one a LEFT JOIN one o ON o.graph = a.graph AND o.planner_name = 'owl:rule=code' AND o.nth = 1
LEFT JOIN least l ON l.graph = a.graph AND l.rank = 1
LEFT JOIN process ON process.graph IN (a.graph, a.graph_name)
WHERE a.planner_name = 'none' AND a.nth = 1 ORDER BY a.id;

-- table summary any: a line a planner: how many graphs it plans at their bound, how far above it
--   the others; in a mean the graphs of one family count once
WITH one AS (
  SELECT *, iif(coalesce(status, 'ok') = 'ok', ratio(planned_bytes, bound_bytes), NULL) AS above
  FROM kindred),
ranked AS (SELECT *, row_number() OVER (PARTITION BY planner_name ORDER BY above DESC, id) AS rank,
    1.0 / count(above) OVER (PARTITION BY planner_name, kin) AS share
  FROM one)
SELECT planner_name AS planner,
  count(above) || iif(count(above) = count(*), '', ' of ' || count(*)) AS graphs,
  sum(planned_bytes = bound_bytes AND above IS NOT NULL) AS "at the bound",
  percent(sum(above * share) / sum(iif(above IS NULL, NULL, share)) - 1, 2)
    AS "mean above bound",
  percent(max(above) - 1, 2) AS "most above bound",
  iif(sum(planned_bytes = bound_bytes AND above IS NOT NULL) = count(above), NULL,
  max(iif(rank = 1, graph_name, NULL))) AS "on",
  ms(coalesce(sum(iif(above IS NOT NULL, plan_ns, NULL)), 0)) AS "~plan ms"
FROM ranked GROUP BY planner_name HAVING count(above) > 0 ORDER BY min(id);

-- table ties any: nnc_2018: a line a choice of keys, pairs and rule, over its rules for equal keys:
--   how many graphs are at their bound, and how far above it the mean is; families count once
WITH one AS (
  SELECT *, ratio(planned_bytes, bound_bytes) AS above,
    1.0 / count(*) OVER (PARTITION BY planner_name, kin) AS share,
    CASE WHEN planner_name LIKE '%keys=edges+size%' THEN 'edges, size'
      WHEN planner_name LIKE '%keys=size,%' OR planner_name LIKE '%keys=size' THEN 'size'
      WHEN planner_name LIKE '%keys=edges%' THEN 'edges' ELSE 'size, edges' END AS by,
    iif(planner_name LIKE '%pairs=off%', 'off', 'on') AS paired,
    iif(planner_name LIKE '%rule=text%', 'text', 'code') AS edge_rule
  FROM kindred WHERE planner_name LIKE 'nnc_2018%' AND coalesce(status, 'ok') = 'ok'),
tied AS (
  SELECT by, paired, edge_rule, min(id) AS id, sum(planned_bytes = bound_bytes) AS least,
    sum(above * share) / sum(share) - 1 AS mean
  FROM one GROUP BY planner_name)
SELECT by AS keys, paired AS pairs, edge_rule AS rule, count(*) AS "tie rules",
  min(least) AS "fewest at the bound", fixed(avg(least), 1) AS "average at the bound",
  max(least) AS "most at the bound", percent(min(mean), 2) AS "lowest mean above",
  percent(median(mean), 2) AS "median mean above", percent(max(mean), 2) AS "highest mean above"
FROM tied GROUP BY by, paired, edge_rule ORDER BY min(id);

-- table overview any: a line a planner: inference and training, serial and parallel: how many
--   graphs it plans at the least, how far above the others are, families counting once
SELECT line, planner, each, iif(graphs > 0, least, NULL) AS "%: least", mean AS "%: mean",
  most AS "%: most" FROM kinds
WHERE place <= 4 AND line IN (SELECT line FROM kinds WHERE place <= 4 AND graphs > 0)
ORDER BY line, place;

-- table families any: the same by family of networks: chains, residual, dense, inception,
--   recurrent
SELECT line, planner, each, iif(graphs > 0, least, NULL) AS "%: least", mean AS "%: mean",
  most AS "%: most" FROM kinds
WHERE place > 4 AND line IN (SELECT line FROM kinds WHERE place > 4 AND graphs > 0)
ORDER BY line, place;

-- table savings planned_bytes: a line a graph: how much less memory it needs by sharing, in-place
--   pairs, views, concats, order, fusion, recomputation; what parallel safety costs
-- A row counts for a switch only if no other switch is set. Views and orders are also switched with
-- concats copied, so copied concats count alone. A figure is the least of any planner.
WITH turned AS (
  SELECT *, (in_place IS 0) + (views IS 0) + (coalesce("order", 'given') <> 'given')
    + (optimise IS NOT NULL) + (recompute IS NOT NULL) + (safety IS 'parallel') AS n
  FROM rows WHERE concat IS NOT 'share' AND status = 'ok' AND planned_bytes IS NOT NULL),
ok AS (
  SELECT *, CASE WHEN n = 0 THEN iif(concat IS 'copy', 'concat', 'base') WHEN n > 1 THEN 'several'
    WHEN in_place IS 0 THEN 'in place' WHEN views IS 0 THEN 'views'
    WHEN optimise IS NOT NULL THEN 'fusion' WHEN recompute IS NOT NULL THEN 'again'
    WHEN safety IS 'parallel' THEN 'parallel' ELSE 'order' END AS turn FROM turned),
told AS ( -- by the last row that says so
  SELECT *, first_value(copied_bytes) OVER (PARTITION BY graph_name, turn
      ORDER BY copied_bytes IS NULL, id DESC) AS copied,
    first_value(naive_bytes) OVER (PARTITION BY graph_name, turn
      ORDER BY naive_bytes IS NULL, id DESC) AS naive FROM ok),
least AS (
  SELECT graph_name, coalesce(max(iif(turn = 'base', naive, NULL)), 0) AS naive,
    min(iif(turn = 'base', planned_bytes, NULL)) AS base,
    max(iif(turn = 'concat', copied, NULL)) - max(iif(turn = 'base', copied, NULL)) AS copies,
    min(iif(turn = 'in place', planned_bytes, NULL)) AS in_place,
    min(iif(turn = 'views', planned_bytes, NULL)) AS views,
    min(iif(turn = 'concat', planned_bytes, NULL)) AS concat,
    min(iif(turn = 'order', planned_bytes, NULL)) AS "order",
    min(iif(turn = 'fusion', planned_bytes, NULL)) AS fusion,
    min(iif(turn = 'again', planned_bytes, NULL)) AS again,
    min(iif(turn = 'several', planned_bytes, NULL)) AS several,
    min(iif(turn = 'parallel', planned_bytes, NULL)) AS parallel
  FROM told GROUP BY graph_name)
SELECT graph_name AS graph, iif(graph_name GLOB '*mode=train*', 'training', 'inference') AS kind,
  mib(naive) AS "nothing shared MiB", mib(base) AS "planned MiB", less(naive, base) AS sharing,
  less(in_place, base) AS "in place", less(views, base) AS views, less(concat, base) AS concat,
  mib(iif(copies >= 0, copies, NULL)) AS "copies less MiB", less(base, "order") AS "order",
  less(base, fusion) AS fusion, less(base, again) AS again, less(base, several) AS several,
  gap(parallel, base) AS parallel
FROM least JOIN (SELECT graph_name, min(id) AS line FROM rows
  GROUP BY graph_name) USING (graph_name)
WHERE base IS NOT NULL ORDER BY line;

-- table passes planned_bytes: a line a graph, a column for each --optimise: the least planned
--   memory of any planner [MiB]
SELECT g.line, g.graph_name AS graph, coalesce(c.optimise, 'as it is') AS each,
  mib(min(r.planned_bytes)) AS "% MiB"
FROM (SELECT graph_name, min(id) AS line FROM rows GROUP BY graph) g
CROSS JOIN (SELECT optimise, min(id) AS place FROM rows GROUP BY optimise) c
LEFT JOIN rows r ON r.graph_name = g.graph_name AND r.optimise IS c.optimise
GROUP BY g.line, c.place ORDER BY g.line, c.place;

-- table safety safety: the best plans of any planner, serial and parallel
SELECT heads, a_bound, a_best, a_by, b_bound, b_best, b_by, b_over_a FROM sides
WHERE field = 'safety' ORDER BY line;

-- table in_place in_place: the best plans of any planner, in-place pairs offered and not
SELECT heads, a_bound, a_best, a_by, b_bound, b_best, b_by, b_over_a FROM sides
WHERE field = 'in_place' ORDER BY line;

-- table executed outputs: a line a run: planned and measured bytes, outputs, time
SELECT r.graph_name AS graph, r.planner_name AS planner, mib(r.planned_bytes) AS "planned MiB",
  mib(r.measured_bytes) AS "measured MiB", gap(r.measured_bytes, r.planned_bytes) AS difference,
  r.outputs, ms(r.run_ns) AS "~run ms", fixed(ratio(r.run_ns, alone.run_ns), 2) AS "~beside none"
FROM rows r
LEFT JOIN (SELECT graph_name, min(id) AS id FROM rows WHERE planner = 'none' GROUP BY graph_name) a
  USING (graph_name)
LEFT JOIN rows alone ON alone.id = a.id ORDER BY r.id;

-- table workers concurrent_ns: a line a run of several workers: time beside that of one, as measured
--   and as simulated from the times of operations; the part in which two or more of them ran
SELECT r.graph_name AS graph, r.workers, mib(r.planned_bytes) AS "planned MiB", r.outputs,
  ms(r.run_ns) AS "~run ms", fixed(ratio(one.run_ns, r.run_ns), 2) AS "~times as fast",
  fixed(ratio(r.ops_ns, r.simulated_ns), 2) AS "~as simulated",
  percent(ratio(r.concurrent_ns, r.run_ns), 0) AS "~at once"
FROM rows r LEFT JOIN (SELECT graph_name, min(id) AS id FROM rows WHERE workers = 1
    GROUP BY graph_name) a USING (graph_name)
LEFT JOIN rows one ON one.id = a.id ORDER BY r.id;

-- table malloc malloc_ns: a line a graph of bench --compare malloc: the arena beside one malloc a
--   buffer, of each malloc in the rows; a ratio is the median over pairs of runs
WITH runs AS (SELECT *, min(id) OVER (PARTITION BY graph, planner, backend, threads) AS line
  FROM rows),
ratios AS (SELECT line, malloc_by, min(id) AS id FROM runs WHERE arena_over_malloc IS NOT NULL
  GROUP BY line, malloc_by)
SELECT r.line, r.graph_name AS graph, mib(r.planned_bytes) AS "planned MiB",
  mib(r.malloc_bytes) AS "malloc MiB", ms(r.run_ns) AS "~arena ms",
  ms(r.malloc_ns) AS "~malloc ms", coalesce(m.malloc_by, 'malloc') AS each,
  fixed(a.arena_over_malloc, 3) AS "~arena over %"
FROM runs r CROSS JOIN (SELECT malloc_by, min(id) AS place FROM rows GROUP BY malloc_by) m
LEFT JOIN ratios q ON q.line = r.line AND q.malloc_by IS m.malloc_by LEFT JOIN rows a ON a.id = q.id
WHERE r.id = r.line ORDER BY r.line, m.place;

-- table switches planned_bytes: a line a run: order, concats, loops, changed inputs, what they
--   cost in memory and copies, beside the first run of the graph
-- In all: the arena, and with pinned outputs also the values kept for a second evaluation.
WITH run AS (
  SELECT *, min(id) OVER (PARTITION BY graph, safety, planner, backend) AS first,
    planned_bytes + iif('outputs' IN (SELECT value FROM json_each(pinned)),
    coalesce(kept_bytes, 0), 0) AS all_bytes FROM rows)
SELECT r.graph_name AS graph, r.safety, iif(r.in_place, 'on', 'off') AS "in place", r."order",
  r.concat, r.loop, coalesce(r.unroll, '-') AS unroll, r.unroll_bodies AS bodies, r.changed,
  r.kernels AS operations, r.planned_bytes AS "planned bytes", r.changed_ops AS again, r.all_ops AS "of", mib(r.kept_bytes) AS "kept MiB",
  mib(r.all_bytes) AS "in all MiB",
  fixed(ratio(r.all_bytes, f.all_bytes), 3) AS "in all beside first", r.planner_name AS planner,
  mib(f.planned_bytes) AS "first MiB", mib(r.planned_bytes) AS "planned MiB",
  mib(r.bound_bytes) AS "bound MiB", gap(r.planned_bytes, r.bound_bytes) AS "above bound", r.claim,
  fixed(ratio(r.planned_bytes, f.planned_bytes), 3) AS "beside first",
  fixed(ratio(f.planned_bytes, r.planned_bytes), 3) AS "times less",
  mib(r.order_bound_bytes) AS "least MiB",
  r.order_proof AS "least by",
  mib(r.copied_bytes) AS "copied MiB",
  fixed(ratio(r.copied_bytes, f.copied_bytes), 3) AS "copied beside first",
  mib(r.loop_carry_bytes) AS "carried MiB", r.outputs, ms(r.run_ns) AS "~run ms",
  fixed(ratio(r.run_ns, f.run_ns), 3) AS "~run beside first"
FROM run r JOIN run f ON f.id = r.first ORDER BY r.id;

-- table orders any: a line a graph: planned memory in the order that it has and in one that was
--   searched for, the least over orders and shared concats, what is saved, on average too, with
--   and without the graph that saves most, beside OLLA's claim
-- B. Steiner et al., "OLLA: Optimizing the Lifetime and Location of Arrays to Reduce the Memory
-- Usage of Neural Networks", 2022, say of orders and placement together, of other networks than
-- ours: a third less on average.
WITH given AS (
  SELECT graph, safety, planner, min(id) AS id FROM rows WHERE coalesce("order", 'given') = 'given'
  GROUP BY graph, safety, planner),
both AS (
  SELECT r.*, b.planned_bytes AS before, 1 - ratio(r.planned_bytes, b.planned_bytes) AS less
  FROM rows r JOIN given g ON g.graph IS r.graph AND g.safety IS r.safety
    AND g.planner IS r.planner JOIN rows b ON b.id = g.id
  WHERE r."order" <> 'given'),
ranked AS (SELECT *, row_number() OVER (ORDER BY less DESC, id) AS rank FROM both),
lines AS (
  SELECT id AS line,
    iif(less IS NULL, refuse(graph_name || ' was not planned in both orders'), graph_name) AS graph,
    before, planned_bytes AS after, order_bound_bytes AS least,
    order_proof AS by, less,
    order_ns AS ns FROM both
  UNION ALL SELECT 1e9, 'mean', NULL, NULL, NULL, NULL, mean(less), NULL FROM both GROUP BY NULL
  HAVING count(*) > 1
  UNION ALL SELECT 2e9, 'mean without ' || (SELECT substr(graph_name, 1,
    instr(graph_name || ':', ':') - 1) FROM ranked WHERE rank = 1), NULL, NULL, NULL, NULL,
    mean(less), NULL FROM ranked WHERE rank > 1 GROUP BY NULL
  UNION ALL SELECT 3e9, 'OLLA, as published', NULL, NULL, NULL, NULL, p.value, NULL
  FROM published p WHERE p.source = 'OLLA' AND (SELECT count(*) FROM both) > 1)
SELECT graph, mib(before) AS "program MiB", mib(after) AS "searched MiB",
  mib(least) AS "least over orders MiB", by, percent(less, 1) AS less,
  ms(ns) AS "~search ms" FROM lines ORDER BY line;

-- table order_sizes order_live_bytes: a line a graph: operations, the lowest peak found over orders,
--   the bound over all orders, and the time of the search
SELECT graph_name AS graph, order_ops AS operations, mib(order_live_bytes) AS "best MiB",
  mib(order_bound_bytes) AS "bound MiB", gap(order_live_bytes, order_bound_bytes) AS gap,
  order_proof AS by, fixed(order_ns / 1e9, 1) AS "~search s"
FROM rows WHERE order_live_bytes IS NOT NULL ORDER BY id;

-- table streams_curve simulated_ns: a line a graph and number of streams: planned memory and simulated
--   speed, each beside those of one stream; by measured times of operations where they ran
WITH best AS (
  SELECT graph_name AS graph, cast(substr(safety, 9) AS integer) AS k, min(id) AS id,
    min(planned_bytes) AS bytes, min(simulated_ns) AS ns, max(ratio(ops_ns, simulated_ns)) AS times
  FROM rows WHERE safety GLOB 'streams:*' AND status = 'ok' GROUP BY 1, 2)
SELECT best.graph, best.k AS streams, fixed(ratio(best.bytes, one.bytes), 3) AS memory,
  fixed(coalesce(best.times, ratio(one.ns, best.ns)), 3) AS speed
FROM best JOIN best one ON one.graph = best.graph AND one.k = 1 ORDER BY one.id, best.k;

-- table streams simulated_ns: a line a graph: the least planned memory of any planner under K
--   streams, and how many times as fast as on one stream a run is, as simulated
WITH best AS (
  SELECT graph_name AS graph, cast(substr(safety, 9) AS integer) AS k, min(id) AS id,
    min(planned_bytes) AS bytes, min(simulated_ns) AS ns, max(ratio(ops_ns, simulated_ns)) AS times
  FROM rows WHERE safety GLOB 'streams:*' AND status = 'ok' GROUP BY 1, 2),
one AS (SELECT graph, min(id) AS line, max(iif(k = 1, ns, NULL)) AS ns FROM best GROUP BY 1)
SELECT line, graph, iif(k = 65536, 'each alone', k) AS each, mib(bytes) AS "% MiB",
  fixed(coalesce(best.times, ratio(one.ns, best.ns)), 2) AS "~% times"
FROM best JOIN one USING (graph) ORDER BY line, k;

-- table least planner: a line a graph of memplan least: planned memory in the order given, in one of
--   the least peak, and over all that was free, with the bound over that
-- The first two are the least of any planner. Rows of --free stand behind those without.
WITH found AS (
  SELECT *, row_number() OVER (ORDER BY id) AS place FROM rows WHERE planner = 'least'
    AND status = 'ok'),
other AS (
  SELECT graph, safety, "order", min(planned_bytes) AS bytes FROM rows
  WHERE planner <> 'least' AND "order" IN ('given', 'least_peak') GROUP BY 1, 2, 3),
lines AS (
  SELECT f.place AS line, f.graph_name || iif(f.safety = 'serial', '', ' ' || f.safety) AS graph,
    g.bytes AS given, p.bytes AS peak, f.planned_bytes AS planned, f.bound_bytes AS bound,
    iif(f.claim = 'optimal', 'yes', 'no') AS optimal,
    1 - ratio(f.planned_bytes, min(g.bytes, p.bytes)) AS less, f.plan_ns AS ns
  FROM found f LEFT JOIN other g ON g.graph IS f.graph AND g.safety IS f.safety
    AND g."order" = 'given'
  LEFT JOIN other p ON p.graph IS f.graph AND p.safety IS f.safety AND p."order" = 'least_peak'
  UNION ALL SELECT 1e9, 'all', NULL, NULL, NULL, NULL,
    sum(claim = 'optimal') || ' of ' || count(*), NULL, sum(plan_ns) FROM found GROUP BY NULL
  HAVING count(*) > 1)
SELECT graph, mib(given) AS "given MiB", mib(peak) AS "least peak MiB", mib(planned) AS "least MiB",
  mib(bound) AS "bound MiB", gap(planned, bound) AS gap, optimal,
  percent(less, 1) AS "less than both", fixed(ns / 1e9, 1) AS "~search s"
FROM lines ORDER BY line;

-- table ablation any: a line for each engine or rule that a search did without (without=RULE): on
--   how many graphs that was worse, better, no more proved, took more ticks
-- Compares a row without a rule (of an order, a recomputation or a planner) with the first row of
-- the same graph and setting with all rules. Lower costs are better; a cost equal to its bound is
-- proved.
WITH searches AS (
  SELECT id, 1 AS place, coalesce("order", '') AS text, iif(status = 'ok', order_live_bytes, NULL)
    AS cost, order_bound_bytes AS bound, order_ticks AS effort FROM rows
  UNION ALL SELECT id, 2, coalesce(recompute, ''), iif(status = 'ok', extra_work, NULL),
    extra_work_bound, NULL FROM rows
  UNION ALL SELECT id, 3, planner_name, iif(status = 'ok', planned_bytes, NULL), bound_bytes, ticks
    FROM rows),
marked AS (
  SELECT *, instr(text, 'without=') AS mark,
    substr(text, instr(text, 'without=') + 8) || ',' AS tail FROM searches),
split AS (
  SELECT *, iif(mark = 0, NULL, substr(tail, 1, instr(tail, ',') - 1)) AS rule,
    CASE WHEN mark = 0 THEN text
      WHEN instr(tail, ',') = length(tail) THEN substr(text, 1, mark - 2)
      ELSE substr(text, 1, mark - 1) || substr(text, mark + 8 + instr(tail, ',')) END AS whole
  FROM marked),
settings AS (
  SELECT id, graph, safety, max(iif(place = 1, whole, '')) || char(10)
    || max(iif(place = 2, whole, '')) || char(10) || max(iif(place = 3, whole, '')) AS setting,
    max(iif(rule IS NULL, 0, place)) AS place FROM split JOIN rows USING (id) GROUP BY id),
wholes AS (
  SELECT graph, safety, setting, min(id) AS id FROM settings WHERE place = 0
  GROUP BY graph, safety, setting),
found AS (
  SELECT id, place, rule, substr(whole, 1, instr(whole || ':', ':') - 1) AS search,
    coalesce(cost, 9223372036854775807) AS cost, coalesce(bound >= cost, 0) AS proved,
    iif(cost IS NULL, NULL, effort) AS effort FROM split)
SELECT x.search, x.rule AS without, count(*) AS graphs, sum(x.cost > y.cost) AS worse,
  sum(x.cost < y.cost) AS better, sum(y.proved AND NOT x.proved) AS unproved,
  sum(x.effort > y.effort) AS "more ticks",
  fixed(geometric_mean(ratio(x.effort + 1, y.effort + 1)), 3) AS "ticks beside"
FROM settings s
JOIN wholes w ON w.graph IS s.graph AND w.safety IS s.safety AND w.setting = s.setting
JOIN found x ON x.id = s.id AND x.place = s.place
JOIN found y ON y.id = w.id AND y.place = s.place
GROUP BY x.search, x.rule ORDER BY min(s.id);

-- table recompute recompute: training graphs with and without operations that run again: memory,
--   work, time
-- Without --recompute nothing runs again: the row has no work, and no extra work.
WITH run AS (
  SELECT *, min(id) OVER (PARTITION BY graph, backend) AS first, recompute IS NULL AS plain,
    max(tape_before_bytes) OVER (PARTITION BY graph, backend) AS whole_tape,
    iif(forward_work + all_work + extra_work + recompute_ops IS NULL, NULL, forward_work) AS told
    FROM rows)
SELECT r.graph_name AS graph, coalesce(r.recompute, 'none') AS recompute,
  mib(r.planned_bytes) AS "planned MiB",
  fixed(ratio(f.planned_bytes, r.planned_bytes), 3) AS "times less",
  iif(r.told IS NULL, iif(r.plain, 0, NULL), r.recompute_ops) AS again,
  iif(r.plain, '0.000', fixed(ratio(r.extra_work, r.told), 3)) AS "more forward",
  iif(r.plain, '1.000',
  fixed(ratio(r.all_work + r.extra_work, iif(r.told IS NULL, NULL, r.all_work)), 3)) AS work,
  fixed(ratio(r.extra_work_bound, r.told), 3) AS "least more", r.recompute_claim AS claim,
  iif(r.plain, r.whole_tape, r.tape_bytes) AS "tape bytes", r.forward_rounds AS "forward rounds",
  ms(r.recompute_ns) AS "~choose ms", r.outputs, ms(r.run_ns) AS "~run ms",
  fixed(ratio(r.run_ns, f.run_ns), 3) AS "~run beside first"
FROM run r JOIN run f ON f.id = r.first ORDER BY r.id;

-- table views any: programs of views and writes, a line a way of making SSA of them: copies,
--   kernels, peak, time
-- The way of making SSA is the parameter ssa of a zoo network (left out of the program's name), or
-- the option for a file.
WITH marked AS (SELECT *, instr(graph, 'ssa=') AS mark,
  substr(graph, instr(graph, 'ssa=') + 4) || ',' AS tail FROM rows),
programs AS (
  SELECT *, coalesce(ssa, substr(tail, 1, instr(tail, ',') - 1)) AS way,
    iif(ssa IS NULL, substr(graph, 1, mark - 2) || substr(graph, mark + 3 + instr(tail, ',')),
      graph_name) AS program
  FROM marked WHERE graph IS NOT NULL AND (ssa IS NOT NULL OR mark > 1)),
eager AS (SELECT program, backend, min(id) AS id FROM programs WHERE way = 'copy'
  GROUP BY program, backend)
SELECT p.program, p.way AS "SSA", p.planner_name AS planner, p.backend,
  mib(p.copied_bytes) AS "copied MiB", p.kernels, mib(p.planned_bytes) AS "planned MiB", p.outputs,
  ms(p.run_ns) AS "~run ms", fixed(ratio(r.run_ns, p.run_ns), 2) AS "~faster"
FROM programs p LEFT JOIN eager e ON e.program = p.program AND e.backend = p.backend
LEFT JOIN rows r ON r.id = e.id ORDER BY p.id;

-- table gpu device_memory: a line a run on a GPU: planned memory, what was asked of it and taken,
--   outputs, times both ways
SELECT graph_name AS graph, safety, planner_name AS planner, math AS products, algorithms,
  mib(planned_bytes) AS "planned MiB", mib(workspace_bytes) AS "workspace MiB",
  mib(device_memory ->> 'asked') AS "asked MiB", mib(device_memory ->> 'taken') AS "taken MiB",
  device_memory ->> 'allocations' AS "calls in runs", outputs, ms(run_ns) AS "~run ms",
  ms(replay_ns) AS "~replayed ms", clocks ->> 'core_mhz' AS "~core MHz",
  (clocks ->> 'power_mw') / 1000 AS "~W"
FROM rows WHERE math IS NOT NULL ORDER BY id;

-- table allocators any: runs on a GPU beside allocators that take the same requests as they come:
--   the device's own, and a model of PyTorch's caching one
SELECT graph_name AS graph, planner_name AS planner, mib(planned_bytes) AS "planned MiB",
  mib(allocators ->> 'requested') AS "requested MiB",
  mib(allocators ->> 'malloc') AS "cudaMalloc MiB",
  mib(allocators ->> 'pool') AS "cudaMallocAsync MiB",
  mib(allocators ->> 'allocated') AS "caching MiB",
  mib(allocators ->> 'reserved') AS "reserved MiB",
  fixed(ratio(allocators ->> 'reserved', planned_bytes), 3) AS "reserved by planned",
  ms(allocators ->> 'malloc_ns') AS "~cudaMalloc ms",
  ms(allocators ->> 'pool_ns') AS "~cudaMallocAsync ms"
FROM rows WHERE allocators IS NOT NULL ORDER BY id;

-- table eager plan_cache: a line a program: what each allocator holds where operations run as they
--   come, over the arena of the plans of its traces; times are of the allocator named first
WITH kind AS (SELECT allocator, min(id) AS place FROM rows WHERE steps > 0 GROUP BY 1),
program AS (SELECT graph, shapes, min(id) AS line FROM rows WHERE steps > 0 GROUP BY 1, 2),
held AS (SELECT graph, shapes, allocator, max(id) AS id FROM rows WHERE steps > 0 GROUP BY 1, 2, 3)
SELECT p.line, g.graph_name || coalesce(', ' || g.shapes, '') AS program,
  g.plan_cache ->> 'hits' || ' of ' || g.steps AS "steps by a plan",
  mib(g.live_peak_bytes) AS "alive MiB", mib(g.bound_bytes) AS "bound MiB",
  mib(g.planned_bytes) AS "planned MiB", g.claim,
  k.allocator AS each, fixed(ratio(r.reserved_bytes, r.planned_bytes), 3) AS "% over planned",
  ms(g.eager_ns) AS "~eager ms", ms(g.memoised_ns) AS "~by the plan ms"
FROM program p CROSS JOIN kind k JOIN rows g ON g.id = p.line
LEFT JOIN held h ON h.graph IS p.graph AND h.shapes IS p.shapes AND h.allocator = k.allocator
LEFT JOIN rows r ON r.id = h.id ORDER BY p.line, k.place;

-- table online reserved_bytes: a line a graph or trace: what allocators that know nothing of what
--   comes hold for its requests, over the optimum of the same requests (>= B: over a bound of it)
WITH kind AS (SELECT allocator, min(id) AS place FROM rows WHERE allocator IS NOT NULL GROUP BY 1),
trace AS (SELECT graph, problem_hash, min(id) AS line FROM rows WHERE allocator IS NOT NULL
  GROUP BY 1, 2),
held AS (SELECT graph, problem_hash, allocator, max(id) AS id FROM rows GROUP BY 1, 2, 3)
SELECT t.line, g.graph_name AS graph, mib(g.requested_bytes) AS "requested MiB",
  mib(g.live_peak_bytes) AS "alive MiB",
  coalesce(mib(g.optimum_bytes), '>= ' || mib(g.bound_bytes)) AS "optimum MiB",
  k.allocator AS each,
  coalesce(fixed(ratio(r.reserved_bytes, coalesce(r.optimum_bytes, r.bound_bytes)), 3), r.status)
    AS "% over optimum"
FROM trace t CROSS JOIN kind k
LEFT JOIN (SELECT graph AS name, problem_hash AS hash, max(id) AS of_ok FROM rows
  WHERE reserved_bytes IS NOT NULL GROUP BY 1, 2) ON name IS t.graph AND hash IS t.problem_hash
LEFT JOIN rows g ON g.id = of_ok
LEFT JOIN held h ON h.graph IS t.graph AND h.problem_hash IS t.problem_hash
  AND h.allocator = k.allocator
LEFT JOIN rows r ON r.id = h.id ORDER BY t.line, k.place;

-- table tile tile: networks by patches: planned bytes, how many times less than without, work, time
WITH run AS (SELECT *, min(id) OVER (PARTITION BY graph, backend) AS first FROM rows)
SELECT r.graph_name AS graph, coalesce(r.tile, 'none') AS tile, r.backend,
  r.planned_bytes AS "planned bytes", r.tile_model_bytes AS "live bytes",
  fixed(ratio(f.planned_bytes, r.planned_bytes), 2) AS "times less",
  iif(r.tile IS NULL, '1.000', fixed(r.work_factor, 3)) AS work, r.regions, r.patches,
  r.tile_least_bytes AS "least live", r.claim, r.outputs, ms(r.tile_ns) AS "~choose ms",
  ms(r.run_ns) AS "~run ms", fixed(ratio(r.run_ns, f.run_ns), 2) AS "~run beside none"
FROM run r JOIN run f ON f.id = r.first ORDER BY r.id;

-- table residency two_memories: buffers that leave fast memory between uses: bytes moved, the cost
--   over what is proved least, and two rules over the cost
SELECT graph_name AS graph, mib(fast_capacity) AS "fast MiB",
  percent(ratio(fast_capacity, without_bytes), 0) AS "of one memory",
  mib(moved_bytes) AS "moved MiB", mib(slow_used_bytes) AS "used in slow MiB",
  gap(cost, cost_bound) AS "above bound", cost_proof AS "bound by",
  percent(ratio(cost_furthest, cost) - 1, 1) AS "furthest use",
  percent(ratio(cost_density, cost) - 1, 1) AS density,
  fixed(bandwidth / 1073741824.0, 2) AS "GiB a s", fixed(stall_ns / 1e6, 3) AS "stall ms",
  fixed(stall_bound_ns / 1e6, 3) AS "stall at least ms",
  fixed(min(stall_furthest_ns, stall_density_ns) / 1e6, 3) AS "rules stall ms", outputs,
  ms(plan_ns) AS "~plan ms"
FROM rows ORDER BY id;
