#!/usr/bin/env bash
# Runs what is claimed with a figure, and says of each claim what was asked, what was reached, and whether that meets it:
# `make claims`. Many are timings: on a machine that does nothing else, some fifteen minutes on 2 cores.
#
#   scripts/claims.sh MEMPLAN FOLDER_OF_TESTS [PATTERN]      PATTERN: only claims whose text matches
#
# Rows go to results/tables/claims.tsv: verdict (met, NOT MET, skipped), claim, asked, reached, seconds. A claim about data of
# others is skipped where `make data` has not brought it. Exit status 1 when one is not met.
set -u
cd "$(dirname "$0")/.."
memplan=$(realpath "${1:?usage: scripts/claims.sh MEMPLAN FOLDER_OF_TESTS [PATTERN]}") tests=$(realpath "${2:?}") pattern=${3:-}
data=$(scripts/data.sh --where) work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY-passive}
met=0 not_met=0 skipped=0
printf 'verdict\tclaim\tasked\treached\t~seconds\n' >"$work/table"

# claim WHAT ASKED COMMAND ..: its last line says what was reached, its exit status whether that is enough; 77: skipped
claim() {
    local what=$1 asked=$2 start=$SECONDS status=0 verdict
    shift 2
    [[ $what =~ $pattern ]] || return 0
    "$@" >"$work/out" 2>"$work/err" || status=$?
    case $status in
    0) verdict=met met=$((met + 1)) ;;
    77) verdict=skipped skipped=$((skipped + 1)) ;;
    *) verdict='NOT MET' not_met=$((not_met + 1)) ;;
    esac
    printf '%s\t%s\t%s\t%s\t%s\n' "$verdict" "$what" "$asked" "$(cat "$work/err" "$work/out" | tail -1 | tr '\t' ' ')" \
        $((SECONDS - start)) | tee -a "$work/table"
}

# ---- what claims are made of ----------------------------------------------------------------------------------------------

of() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }        # FIELD: its values in rows
plan() { "$memplan" plan "$@" --json; }                           # GRAPH OPTION ..: a row
median_ns() { # of each row's runs
    sed -n 's/.*"run_ns":\[\([^]]*\).*/\1/p' | while read -r ns; do
        tr ',' '\n' <<<"$ns" | sort -n | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
    done
}
true_that() { awk "BEGIN { exit !($1) }"; }                       # an expression of awk
no_data() { [ -d "$data/$1" ] || { echo "no $data/$1 here"; return 0; } && false; }
passes() { # TEST [LINE_PATTERN]: the test passes; says the last line that matches, or how many passed
    MEMPLAN=$memplan "$tests/$1" >"$work/log" 2>&1
    local status=$? said
    said=$(grep -E "${2:-PASSED}" "$work/log" | tail -1 | sed 's/^\[ *PASSED *\] *//')
    echo "${said:-failed}"
    return $status
}

bytes_are() { # "FIELD OPTION .." GRAPH=BYTES ..: a field of each plan is exactly so many bytes
    local options=($1) good=0 each
    shift
    for each in "$@"; do
        [ "$(plan "${each%%=*}" "${options[@]:1}" | of "${options[0]}")" = "${each#*=}" ] && good=$((good + 1))
    done
    echo "$good of $#"
    [ $good -eq $# ]
}

light() { no_data onnx-light && return 77 || bytes_are "$1 --pin weights,inputs --planner greedy_size --views off --in-place off --concat copy" "${@:2}"; }
lists() { no_data minimalloc && return 77 || bytes_are "planned_bytes --planner greedy_size" "$@"; }

bench() { # SUITE_LINES ..: rows of these lines
    printf '%s\n' "$@" >"$work/claim.suite"
    rm -f "$work/rows"
    "$memplan" bench "$work/claim.suite" -q -o "$work/rows"
}

all_verified() { # every row of a built-in suite is verified and its outputs equal
    rm -f "$work/rows"
    "$memplan" bench "$1" -q -o "$work/rows" || return
    local n good
    n=$(grep -c '"schema"' "$work/rows")
    good=$(grep '"verified":true' "$work/rows" | grep -cE '"outputs":"equal"')
    echo "$good of $n rows verified and equal"
    [ "$n" -gt 0 ] && [ "$good" -eq "$n" ]
}

exit_status() { # STATUS TEXT COMMAND ..: how it ends, and a text that it prints
    local want=$1 text=$2 status=0
    shift 2
    "$@" >"$work/log" 2>&1 || status=$?
    echo "exit status $status, $(grep -oE "$text" "$work/log" | head -1)"
    [ $status -eq "$want" ] && grep -qE "$text" "$work/log"
}
gate() { no_data libnnc && return 77 || exit_status "$1" "$2" "$memplan" check --plan "$data/libnnc/$3" --tolerance 1%; }

exact_ms() { # LIMIT_MS OPTIONS LIST ..: the slowest of the lists, by bench_exact; every one proved or within the capacity
    local limit=$1 options=($2)
    shift 2
    "$tests/bench_exact" "${options[@]}" "$@" >"$work/rows" || return
    awk -F'\t' -v limit="$limit" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        /^#/ || NF < 10 { next }
        { n++; if ($at["cpu_ms"] + 0 > slowest) { slowest = $at["cpu_ms"] + 0; name = $1 } if ($at["claim"] != "optimal" && !($3 ~ /^fit/ && $at["claim"] == "feasible")) open++ }
        END { printf "%d runs, slowest %.2f ms (%s), %d not proved\n", n, slowest, name, open
              exit !(n > 0 && slowest <= limit && open == 0) }' "$work/rows"
}
exact_lists() { no_data "$1" && return 77 || exact_ms "$2" "$3" $(for l in $4; do echo "$data/$1/$l.csv"; done); }

faster() { # geometric mean of MiniMalloc's seconds, seen on another machine of 2 cores, over ours, and no list slower
    no_data minimalloc && return 77
    "$tests/bench_exact" -f -b $(for l in A C D E G I J K; do echo $data/minimalloc/$l.1048576.csv; done) >"$work/rows" || return
    awk -F'\t' 'BEGIN { split("4.578 0.654 2.498 3.323 1.022 2.882 0.806 0.581", s, " ") }
        $3 == "fit" { n++; r = s[n] * 1000 / $11; sum += log(r); if (least == 0 || r < least) least = r }
        END { printf "%.0f times (geometric mean), least %.0f\n", exp(sum / n), least; exit !(n == 8 && exp(sum / n) >= 100 && least >= 1) }' "$work/rows"
}

proved() { # LIMIT_S OPTIONS GRAPH ..: plans of $planner (`exact`), each proved optimal within the seconds
    local limit=$1 options=($2) n=0 good=0 slowest=0 row ns
    shift 2
    for g in "$@"; do
        row=$(plan "$g" -p "${planner-exact}" --time-limit "$limit" "${options[@]}")
        ns=$(of plan_ns <<<"$row")
        n=$((n + 1))
        [ "$(of claim <<<"$row")" = optimal ] && true_that "${ns:-1e18} <= $limit * 1e9" && good=$((good + 1))
        true_that "${ns:-0} > $slowest" && slowest=$ns
    done
    echo "$good of $n proved, slowest $(awk "BEGIN { printf \"%.1f\", $slowest / 1e6 }") ms"
    [ $good -eq $n ]
}
networks="resnet18 resnet34 resnet50 resnet101 resnet152 densenet121 densenet169 densenet201 inception_v1 inception_v3 inception_v4 vgg16 mobilenet_v1 mobilenet_v2 shufflenet_v2 squeezenet lstm mlp mnist_conv"

least_live() { # ROW: no order has less alive at once, in whole slots, and the plan needs no more than that
    [ "$(of order_live_bytes <<<"$1")" = "$(of order_bound_bytes <<<"$1")" ] &&
        [ "$(of planned_bytes <<<"$1")" -le "$(of order_live_bytes <<<"$1")" ]
}

orders() { # LEAST_PERCENT GRAPH ..: the mean saving of the least-peak order, each proved least
    local least=$1 sum=0 n=0 open=0 given row
    shift
    for g in "$@"; do
        given=$(plan "$g" -p portfolio --order given | of planned_bytes)
        row=$(plan "$g" -p portfolio --order least_peak)
        least_live "$row" || open=$((open + 1))
        sum=$(awk "BEGIN { print $sum + 100 * (1 - $(of planned_bytes <<<"$row") / $given) }") n=$((n + 1))
    done
    echo "$(awk "BEGIN { printf \"%.1f\", $sum / $n }") % less on average, $open of $n not proved least"
    true_that "$sum / $n >= $least" && [ $open -eq 0 ]
}

recomputed() {
    local row before after more
    row=$(plan resnet152:batch=16,mode=train -p portfolio --recompute sqrt)
    before=$(plan resnet152:batch=16,mode=train -p portfolio | of planned_bytes) after=$(of planned_bytes <<<"$row")
    more=$(of extra_work <<<"$row")
    echo "$(awk "BEGIN { printf \"%.2f times less, %.2f of a forward more\", $before / $after, $more / $(of forward_work <<<"$row") }")"
    true_that "$before >= 3 * $after && $more <= $(of forward_work <<<"$row")"
}

training() { # the loss falls, and every planner prints the same losses
    local first='' losses p n=0
    for p in none greedy_size best_fit mxnet nnc_2019 exact portfolio; do
        losses=$("$memplan" run mnist_conv:mode=train,update=adagrad -b cpu -p $p --iterations 20 2>/dev/null | grep -oE 'loss [0-9.]+') || return
        first=${first:-$losses} n=$((n + 1))
        [ "$losses" = "$first" ] || { echo "$p prints other losses"; return 1; }
    done
    set -- $(grep -oE '[0-9.]+' <<<"$first" | sed -n '1p;$p')
    echo "$1 to $2 in 20 iterations, the same under $n planners"
    true_that "$2 < $1"
}

concats() { # GRAPH: bytes copied and peak, beside those with every concat copied
    bench '--backends cpu' '--repeat 9' '--turns 2' '--planners portfolio' "$1 --concat copy" "$1 --concat auto" || return
    set -- $(of copied_bytes <"$work/rows") $(of planned_bytes <"$work/rows") $(median_ns <"$work/rows")
    awk -v c0="$1" -v c1="$2" -v p0="$3" -v p1="$4" -v t0="$5" -v t1="$6" 'BEGIN {
        printf "%.1f %% fewer bytes copied, %.3f of the peak, %.2f of the time\n", 100 * (1 - c1 / c0), p1 / p0, t1 / t0
        exit !(c1 <= 0.15 * c0 && p1 <= p0 && t1 < t0) }'
}

loop() { # the arena of a loop does not grow with its rounds, nothing is copied
    local few many unrolled
    few=$(plan lstm:layers=2,hidden=512,batch=32,steps=300,form=while -p nnc_2019 | of planned_bytes)
    many=$("$memplan" run lstm:layers=2,hidden=512,batch=32,steps=1000,form=while -p nnc_2019 -b cpu --repeat 1 --json)
    unrolled=$(plan lstm:layers=2,hidden=512,batch=32,steps=1000 -p nnc_2019 | of planned_bytes)
    echo "$few, $(of planned_bytes <<<"$many") bytes at 100 and 1,000 steps, $unrolled unrolled; $(of loop_carry_bytes <<<"$many") copied"
    [ "$few" = "$(of planned_bytes <<<"$many")" ] && [ "$few" -le "$unrolled" ] && [ "$(of loop_carry_bytes <<<"$many")" = 0 ]
}

speed() { # FILE LIMIT_MS: greedy_size on a list
    local ms
    ms=$("$tests/bench_speed" -n 0 -p greedy_size "$1" | awk -F'\t' '$2 == "greedy_size" { print $4 }')
    echo "$ms ms"
    true_that "${ms:-1e9} < $2"
}
million() {
    "$tests/bench_speed" -r 1 -n 1000000 -p pool,owl,mxnet,greedy_size,greedy_breadth,best_fit,first_fit >"$work/rows" || return
    awk -F'\t' '$3 + 0 >= 1000000 { if ($4 + 0 > ms) { ms = $4 + 0; who = $2 } if ($5 + 0 > mb) mb = $5 + 0; n++ }
        END { printf "%d planners, slowest %.2f s (%s), most %.0f MB\n", n, ms / 1000, who, mb; exit !(n > 3 && ms < 3000 && mb < 500) }' "$work/rows"
}
small_plan() { # LIMIT_MS GRAPH ..: nnc_2019's time
    local limit=$1 ns
    shift
    ns=$(for i in 1 2 3; do plan "$@" -p nnc_2019 | of plan_ns; done | sort -n | head -1)
    echo "$(awk "BEGIN { printf \"%.2f\", $ns / 1e6 }") ms"
    true_that "$ns < $limit * 1e6"
}

parallel_list() { # TENSORS PLANNER LIMIT_MS
    local ms
    ms=$("$tests/bench_parallel" "$1" | awk -F'\t' -v p="$2" '$2 == p { print $3 }')
    echo "$ms ms"
    true_that "${ms:-1e9} < $3"
}

recorded() { # PLANNER: on every recorded problem within 0.1 % of the bound and never above nnc_2019
    no_data libnnc && return 77
    local list n=0 worst=0 over=0 row
    for list in $data/libnnc/*.tensors.csv; do
        row=$(plan "$list" -p "$1")
        n=$((n + 1))
        worst=$(awk "BEGIN { g = 100 * ($(of planned_bytes <<<"$row") / $(of bound_bytes <<<"$row") - 1); print (g > $worst) ? g : $worst }")
        [ "$(of planned_bytes <<<"$row")" -le "$(plan "$list" -p nnc_2019 | of planned_bytes)" ] || over=$((over + 1))
    done
    echo "$n problems, at most $(printf %.3f "$worst") % above the bound, $over above nnc_2019"
    [ $n -gt 0 ] && [ $over -eq 0 ] && true_that "$worst <= 0.1"
}

any_time() { # SECONDS PERCENT: the mean gap of `exact` over the lists after so long
    no_data minimalloc && return 77
    "$tests/bench_exact" -m -b -l 12 >"$work/rows" || return
    awk -F'\t' -v column="gap_${1}s" -v most="$2" '$1 == "list" { for (i = 1; i <= NF; i++) at[$i] = i; next }
        /^#/ || NF < 10 || $3 !~ /^min/ { next }
        { n++; sum += $at[column] }
        END { printf "%.3f %% over %d lists\n", sum / n, n; exit !(column in at && n > 10 && sum / n <= most) }' "$work/rows"
}

gap_in() { # SECONDS PERCENT LIST: the gap of `exact`
    no_data idealloc && return 77
    local row gap
    row=$(plan "$3" -p exact --time-limit "$1")
    gap=$(awk "BEGIN { print 100 * ($(of planned_bytes <<<"$row") / $(of bound_bytes <<<"$row") - 1) }")
    echo "$gap %"
    true_that "$gap <= $2"
}

bounds_near() { # PERCENT GRAPH=MIB ..: the bound of training under parallel safety, concats copied
    local most=$1 each mib worst=0
    shift
    for each in "$@"; do
        mib=$(plan "${each%:mib=*}" --safety parallel --concat copy -p nnc_2019 | of bound_bytes)
        worst=$(awk "BEGIN { d = 100 * ($mib / 1048576 / ${each#*:mib=} - 1); d = d < 0 ? -d : d; print (d > $worst) ? d : $worst }")
    done
    echo "$# networks, at most $(printf %.2f "$worst") % apart"
    true_that "$worst <= $most"
}

wired() { # TIMES GRAPH ..: the least-peak order below the program's, proved
    local least=$1 given row times worst=1e9 open=0
    shift
    for g in "$@"; do
        given=$(plan "$g" -p portfolio --order given | of planned_bytes)
        row=$(plan "$g" -p portfolio --order least_peak)
        least_live "$row" || open=$((open + 1))
        worst=$(awk "BEGIN { r = $given / $(of planned_bytes <<<"$row"); print (r < $worst) ? r : $worst }")
    done
    echo "at least $(printf %.3f "$worst") times less on $# graphs, $open not proved"
    true_that "$worst >= $least" && [ $open -eq 0 ]
}

# The median over pairs of runs, one behind the other and every other pair the other way round: what slows the machine for a while
# then slows both of a pair.
in_turns() { # MOST_RATIO "GRAPH OPTIONS" "GRAPH OPTIONS": time of the second over that of the first, with one thread unless said
    local i ratio ns=()
    once() { ns[$1]=$("$memplan" run $2 -b cpu $([[ $2 == *--threads* ]] || echo --threads 1) --repeat ${repeat-1} --json | median_ns); }
    ratio=$(for i in $(seq 15); do
        if [ $((i % 2)) = 1 ]; then once 1 "$2" && once 2 "$3"; else once 2 "$3" && once 1 "$2"; fi
        awk "BEGIN { printf \"%.3f\\n\", ${ns[2]} / ${ns[1]} }"
    done | sort -n | sed -n 8p)
    echo "$ratio of the time"
    true_that "$ratio <= $1"
}

beside_malloc() { # MOST REPEAT GRAPH ..: the arena's time over that of one malloc a buffer, of pairs of runs
    local most=$1 repeat=$2
    shift 2
    bench '--backends cpu' '--compare malloc' '--threads 1' "--repeat $repeat" '--planners portfolio' "$@" || return
    "$memplan" table malloc --rows "$work/rows" --tsv | awk -F'\t' -v most="$most" '
        /^#/ || $NF !~ /^[0-9.]+$/ { next }
        { n++; if ($NF > worst) { worst = $NF; name = $1 } }
        END { printf "%d networks, at most %.2f (%s)\n", n, worst, name; exit !(n > 0 && worst <= most) }'
}

column() { # FILE HEAD: of a table of a peer
    awk -F'\t' -v head="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == head) at = i; next } { print $at }' "results/tables/$1"
}

ort() { # the table of scripts/peers/ort.py as it lies there: light models beside ONNX Runtime's arena and latency
    paste <(column peers_ort.tsv graph) <(column peers_ort.tsv 'planned over arena') <(column peers_ort.tsv '~run over ORT') | awk '
        /^light_/ { n++; if ($2 > arena) arena = $2; if ($3 > time) time = $3 }
        END { printf "%d models: at most %.3f of the arena, %.3f of the latency\n", n, arena, time; exit !(n >= 5 && arena <= 0.5 && time <= 1.2) }'
}

cpsat() { # the table of scripts/peers/cpsat.py as it lies there
    column peers_cpsat.tsv less | awk '$1 == "CP-SAT" { worse++ } { n++ } END { printf "%d of %d lists\n", worse, n; exit !(n >= 10 && worse == 0) }'
}

modules() { # FOLDER PATTERN MOST_PERCENT: every file planned by exact in 60 s, proved or so near the bound
    no_data "$1" && return 77
    local file row n=0 far=0 proved=0 gap worst=0
    for file in "$data/$1/"*$2; do
        row=$(plan "$file" -p exact --time-limit 60) || return
        gap=$(awk "BEGIN { print 100 * ($(of planned_bytes <<<"$row") / $(of bound_bytes <<<"$row") - 1) }")
        n=$((n + 1))
        [ "$(of claim <<<"$row")" = optimal ] && proved=$((proved + 1)) || worst=$(awk "BEGIN { print ($gap > $worst) ? $gap : $worst }")
        true_that "$gap <= $3" || [ "$(of claim <<<"$row")" = optimal ] || far=$((far + 1))
    done
    echo "$n files, $proved proved, the rest at most $worst % above the bound"
    [ $n -gt 0 ] && [ $far -eq 0 ]
}

models() { # loaded|half, or a COLUMN of times with its greatest MEAN and WORST: of the table of scripts/peers/models.py as it lies there
    awk -F'\t' -v what="$1" -v mean="${2-}" -v limit="${3-}" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        {
            n++
            equal += $at["equal"] == "yes"
            if ($at["planned over arena"] > 0) { placed++; half += $at["planned over arena"] <= .5 }
            if ($at["planned over arena"] > most) most = $at["planned over arena"]
            r = what in at ? $at[what] : 0
            if (r > 0) { timed++; sum += log(r); if (r > worst) { worst = r; who = $1 } }
        }
        END {
            if (what == "loaded") { printf "%d networks, %d equal\n", n, equal; exit !(n >= 60 && equal >= .95 * n) }
            if (what == "half") { printf "%d of %d, at most %.3f\n", half, placed, most; exit !(placed >= 60 && half == placed) }
            printf "%.2f over %d networks, worst %.2f (%s)\n", exp(sum / timed), timed, worst, who
            exit !(exp(sum / timed) <= mean && worst <= limit)
        }' results/tables/peers_models.tsv
}

patched() { # TIMES GRAPH: the least peak at no more than 1.5 times the work, of the rows that lie there
    grep -F "\"graph\":\"$2\"" results/raw/tile.jsonl | awk -v times="$1" '
        function field(name,    s) { s = $0; return sub(".*\"" name "\":", "", s) ? s + 0 : 0 }
        /"tile":null/ { whole = field("planned_bytes") }
        !/"tile":null/ && field("work_factor") <= 1.5 { b = field("planned_bytes"); if (least == 0 || b < least) { least = b; work = field("work_factor") } }
        END { printf "%.2f times less at %.2f times the work\n", whole / least, work; exit !(whole >= times * least) }'
}

chain() { # WORK=BYTES ..: msf-CNN's chain by patches, planned anew
    local each row said='' bad=0
    for each in "$@"; do
        row=$(plan mobilenet_v2:width=0.35,image=144,round=floor,residuals=off,dtype=int8 --tile "work:${each%%=*}x" -p greedy_size)
        said="$said${said:+, }$(of planned_bytes <<<"$row") at $(printf %.3f "$(of work_factor <<<"$row")")"
        true_that "$(of planned_bytes <<<"$row") <= ${each#*=} && $(of work_factor <<<"$row") <= ${each%%=*}" || bad=1
    done
    echo "$said"
    return $bad
}

moved() { # of the rows of residency that lie there: cases with moves, each least or near its bound, and below both heuristics
    awk 'function field(name,    s) { s = $0; return sub(".*\"" name "\":", "", s) ? s + 0 : 0 }
        /"bandwidth":[0-9]/ || field("moved_bytes") == 0 { next }
        {
            n++
            gap = 100 * (field("cost") / field("cost_bound") - 1)
            if (gap > worst) worst = gap
            if (!/"claim":"optimal"/ && (field("cost") >= field("cost_furthest") || field("cost") >= field("cost_density"))) no_better++
            if (!/"outputs":"equal"/) unequal++
        }
        END { printf "%d cases, at most %.4f %% above the bound, %d not below both heuristics, %d not equal\n", n, worst, no_better, unequal
              exit !(n >= 20 && worst <= 5 && !no_better && !unequal) }' results/raw/residency.jsonl
}

producers() {
    sed -n 's/.*"producer":"\([^"]*\)".*/\1/p' results/production.jsonl | sort | uniq -c | awk '
        { n++; sum += $1 } END { printf "%d producers, %d programs\n", n, sum; exit !(n >= 11 && sum >= 250) }'
}

library() {
    awk -F'\t' 'NR > 1 { n++; open += $8 != "opt" && $8 != "best"; opt += $8 == "opt" }
        END { printf "%d instances, %d proved\n", n, opt; exit !(n >= 400 && !open) }' results/instances.tsv
}

fuzzed() { # TARGET ..: of the table of reliability as it lies there
    local each n least=1e18
    for each in "$@"; do
        n=$(grep -E "PARTS=$each\$" results/reliability.csv | awk -F, '$(NF - 3) == 0 { print $(NF - 4) }')
        least=$(awk "BEGIN { print (${n:-0} < $least) ? ${n:-0} : $least }")
    done
    printf 'at least %d executions each, none failed\n' "$least"
    true_that "$least >= 1e7"
}

within() { # SECONDS COMMAND ..: user and system time of its processes
    local most=$1 spent
    shift
    spent=$( { TIMEFORMAT='%U %S'; time "$@" >"$work/log" 2>&1 </dev/null; } 2>&1 | awk '{ print $1 + $2 }')
    echo "$spent s"
    true_that "$spent <= $most"
}
in_turn() { "$@" >"$work/log" 2>&1; local status=$?; tail -1 "$work/log"; return $status; } # a command that judges itself

house() { # PATTERN=MOST ..: lines of measure-house whose name matches have at most that
    local each value said='' bad=0
    [ -s "$work/house" ] || scripts/measure-house.sh "${tests%/tests}" >"$work/house" || return
    for each in "$@"; do
        value=$(awk -F'\t' -v what="${each%=*}" '$1 == what { print $2 }' "$work/house")
        said="$said${said:+; }${each%=*}: ${value:-not measured}"
        [ -n "$value" ] && true_that "$value <= ${each##*=}" || bad=1
    done
    echo "$said"
    return $bad
}

longest_file() { # LINES: no file of source is longer
    git ls-files '*.c' '*.h' '*.cu' '*.def' '*.sh' '*.py' | xargs wc -l | awk -v most="$1" '
        $2 != "total" && $1 > n { n = $1; name = $2 } END { print n " lines: " name; exit n > most }'
}

clean_build() { # SECONDS: of all processors, for the program and the library, without a cache of objects
    git archive HEAD | tar x -C "$work" --one-top-level=clean || return
    CCACHE_DISABLE=1 within "$1" make -s -C "$work/clean" all
}

peers() { # PEERS: so many were run in the last `make peers`, the others are said
    awk -F'\t' -v most="$1" 'NR > 1 { n++; if ($2 ~ /^run/) run++; else left = left (left ? ", " : "") $1 ": " $2 }
        END { printf "%d of %d run%s\n", run, n, left ? "; " left : ""; exit run < most }' results/tables/peers_all.tsv
}

reliable() { # COMMITS: every part of results/reliability.csv was done, none failed, and none is older
    local count failures commit part age oldest=0 empty='' failed=0 rows=0
    while IFS=, read -r count failures _ commit part; do
        rows=$((rows + 1))
        [ -n "$count" ] || { empty="$empty ${part##*=}"; continue; }
        failed=$((failed + failures))
        age=$(git rev-list --count "$commit..HEAD" 2>"$work/log") || age=1000000
        [ "$age" -le "$oldest" ] || oldest=$age
    done < <(sed 1d results/reliability.csv | sed -E 's/.*,([0-9]*,[0-9]*,[0-9]*,[0-9a-f]*,make)/\1/')
    echo "$rows parts, $failed failures, the oldest $oldest commits old${empty:+; not done:$empty}"
    [ -z "$empty" ] && [ $failed -eq 0 ] && [ $oldest -le "$1" ]
}

gpu() { # all that is said of a GPU, on one
    local status=0
    MEMPLAN=$memplan MEMPLAN_TESTS=$tests scripts/gpu-check.sh "$work/gpu" >"$work/log" 2>&1 || status=$?
    [ $status -ne 4 ] || { echo 'not run: no GPU here'; return 77; }
    tail -1 "$work/log"
    return $status
}

# ---- the claims ------------------------------------------------------------------------------------------------------------

claim 'main suite: every row' 'verified, outputs equal' all_verified main
claim 'onnx-light: peak live bytes in file order' '5 exact' light bound_bytes $data/onnx-light/light_bvlc_alexnet.onnx=2239488 \
    $data/onnx-light/light_vgg19.onnx=25690112 $data/onnx-light/light_inception_v1.onnx=6422528 \
    $data/onnx-light/light_resnet50.onnx=9633792 $data/onnx-light/light_densenet121.onnx=8429568
claim 'onnx-light: greedy_size' '5 exact' light planned_bytes $data/onnx-light/light_bvlc_alexnet.onnx=2239488 \
    $data/onnx-light/light_vgg19.onnx=25690112 $data/onnx-light/light_inception_v1.onnx=6422528 \
    $data/onnx-light/light_resnet50.onnx=9633792 $data/onnx-light/light_densenet121.onnx=8830976
claim 'onnx-light and onnx-control-flow: outputs are the expected ones' 'all planners, ref and cpu' passes test_runtime_models
claim "ONNX's node tests" 'at least 430 on ref, none wrong' passes test_runtime_conformance '^ref: '
claim "bytes by Owl's rule, beside a simulation of it" 'within 2 %' passes test_planners_owl_figures
claim "MiniMalloc's lists, greedy_size" '8 exact' lists $data/minimalloc/{A.1048576.csv=1352704,C.1048576.csv=1417216,D.1048576.csv=1291264,E.1048576.csv=1435648,G.1048576.csv=1428480,I.1048576.csv=1478656,J.1048576.csv=1298432,K.1048576.csv=1339392}
claim 'S_1 (28,526 buffers) by greedy_size' 'less than 500 ms' speed $data/idealloc/S_1.csv 500
claim '1,000,000 buffers, every list planner' 'less than 3 s and 500 MB' million
claim 'bad input' 'one line, exit status 2' passes test_harness_cli

claim "libnnc's records: bound, production's arena, refused after a move; A..K" 'exact; within 0.1 %; within 5 %' passes test_planners_nnc
claim 'nnc_arena on the recorded problems' 'within 0.1 % of the bound, never above nnc_2019' recorded nnc_arena
claim 'nnc_2019 on resnet50' 'less than 2 ms' small_plan 2 resnet50 --safety parallel
claim 'nnc_2019 on 1,000 tensors of training' 'less than 100 ms' parallel_list 1000 nnc_2019 100

claim "exact at MiniMalloc's capacity, both ways in time" 'each less than 100 ms' exact_lists minimalloc 100 -f "A.1048576 C.1048576 D.1048576 E.1048576 G.1048576 I.1048576 J.1048576 K.1048576"
claim "exact beside MiniMalloc's seconds on its 8 lists here" '100 times, none slower' faster
claim 'least heights of A, C, E, G, I, K' 'proved in 200 ms' exact_lists minimalloc 200 '-m -b' "A.1048576 C.1048576 E.1048576 G.1048576 I.1048576 K.1048576"
claim 'least height of D' '986,112 in 5 s' exact_lists minimalloc 5000 '-m -b' D.1048576
claim 'least height of J' '989,184 in 10 minutes' exact_lists minimalloc 600000 '-m -b' J.1048576
claim 'planted lists Q0, Q4, N, T' 'each less than 50 ms' exact_lists planted 50 '-f -b' "Q0.1000 Q4.1000 N0.672 N3.1342 T1.921 T4.2078"
claim 'planted list Q1' 'less than 1 s' exact_lists planted 1000 '-f -b' Q1.1000
claim 'planted list Q2' 'less than 10 s' exact_lists planted 10000 '-f -b' Q2.1000
claim 'planted list Q6' 'less than 60 s' exact_lists planted 60000 '-f -b' Q6.1000
claim 'perfect packings of 100 to 1,000 rectangles' 'each less than 1 s' exact_ms 1000 '-f -b' guillotine:n=100 guillotine:n=200,seed=2 guillotine:n=300,seed=3 guillotine:n=500,seed=4 guillotine:n=700,seed=5 guillotine:n=1000,seed=6
claim 'networks, inference, serial' 'proved in 1 s each' proved 1 '--safety serial' $networks
claim 'networks, inference, parallel' 'proved in 10 s each' proved 10 '--safety parallel' $networks
claim 'G_1 and somas_resnet50 at the bound' 'less than 300 ms' exact_lists idealloc 300 '-m -b' "G_1 somas_resnet50"
claim 'S_1 by exact' 'within 0.5 % of the bound in 10 s' gap_in 10 0.5 $data/idealloc/S_1.csv
claim 'exact: mean gap over the lists after 1 s' 'at most 1 %' any_time 1 1
claim 'exact: mean gap over the lists after 10 s' 'at most 0.3 %' any_time 10 0.3
planner=ilp:start=cold claim 'densenet121 by ilp alone' 'proved in 30 s' proved 30 '--concat copy' densenet121

claim 'the gate on densenet121_1_infer' 'some 22 % above, exit status 1' gate 1 '22\.[0-9]* ?%' densenet121_1_infer.tensors.csv
claim 'the gate on resnet50_1_infer' 'exit status 0' gate 0 '.' resnet50_1_infer.tensors.csv
claim 'the gate: overlaps, cut files' 'both named, 1; 2' passes test_harness_check
claim 'a plug-in and a command beside the built-in planners' 'rows in one table' passes test_harness_plugins
claim '200 shards on Slurm, a worker killed twice' 'the rows of one undisturbed process' scripts/cluster/test.sh "$memplan"

claim 'loops: golden values' 'reached or beaten' passes test_planners_loops
claim 'LSTM of 1,000 steps as a loop' 'no growth, no copy' loop
claim 'the same loop by views beside copies' 'at most 1.02 of the time' in_turns 1.02 \
    'lstm:layers=2,hidden=512,batch=32,steps=300,form=while -p nnc_2019 --loop copy' 'lstm:layers=2,hidden=512,batch=32,steps=300,form=while -p nnc_2019 --loop view'
claim 'random loops and branches, every planner, a direct interpreter' 'equal' passes test_runtime_random_control

claim 'least-peak orders of training, batch 1' 'a third less, least over orders and shared concats' orders 33.3 {resnet50,mobilenet_v2,vgg16,inception_v3,lstm}:mode=train,update=sgd,batch=1
claim 'the same without the LSTM' 'a quarter less, least over orders and shared concats' orders 25 {resnet50,mobilenet_v2,vgg16,inception_v3}:mode=train,update=sgd,batch=1
claim 'least-peak orders of random wiring' '1.7 times less, least over orders and shared concats' wired 1.7 \
    randwire:regime=cell,image=32,neighbours=2,rewired=100 \
    randwire:regime=cell,image=32,neighbours=2,form=fused,nodes=48,seed=2
claim 'training, batch 16: bounds beside the recorded ones' 'within 5 %' bounds_near 5 resnet50:batch=16,mode=train:mib=1225.20 \
    densenet121:batch=16,mode=train:mib=1915.98 inception_v3:batch=16,mode=train:mib=1423.20
claim 'VGG-16 training, batch 16: bound beside the recorded one' 'within 1 %' bounds_near 1 vgg16:batch=16,mode=train:mib=931.00
claim 'ResNet-152, batch 16, recomputation' '3 times less, at most a forward more' recomputed
claim 'MNIST, AdaGrad' 'the loss falls, the same for every planner' training
claim 'gradients' 'central differences' passes test_graphs_gradients
claim 'the pebble game' 'proved, brute force' passes test_graphs_pebble

claim 'views: tuples; TensorSSA; random programs' 'exact; equal' passes test_graphs_views
claim 'concats of densenet121' '85 % fewer bytes, no more peak, less time' concats densenet121
claim 'concats of inception_v3' '85 % fewer bytes, no more peak, less time' concats inception_v3
claim "arena beside one of glibc's malloc a buffer, its thresholds as they come" 'at most 1.00 of the time' beside_malloc 1 21 mnist_conv resnet18 resnet50 densenet121 \
    inception_v1 inception_v3 mobilenet_v1 mobilenet_v2 squeezenet lstm:layers=2,steps=32
claim 'the same, runs of less than a millisecond' 'at most 1.00 of the time' beside_malloc 1 501 mlp mlp:batch=32 lstm:hidden=32,steps=4

repeat=5 claim 'two threads beside one: inception_v3 in channels last' 'at most 0.85 of the time' in_turns 0.85 \
    'inception_v3 --optimise all --layout auto' 'inception_v3 --optimise all --layout auto --threads 2'
claim "XLA's modules" 'each proved or within 0.5 % in 60 s' modules hlo .hlo.gz 0.5
claim "TensorFlow Lite's models" 'each proved' modules tflite .tflite 0
claim 'exported networks beside ONNX Runtime: loaded, equal (make peers)' 'at least 60, 95 %' models loaded
claim 'exported networks: planned bytes over the arena (make peers)' 'at most half, each' models half
claim 'exported networks: time with one thread (make peers)' 'mean at most 1.05, worst 1.3' models '~run over ORT' 1.05 1.3
claim 'exported networks: the same, layouts by measured times (make peers)' 'mean at most 1.00, worst 1.2' models '~tuned over ORT' 1 1.2
claim 'calls of several entry points in random sequences' 'equal; at most states and the largest entry' passes test_harness_entries
claim 'a transformer of 5,206 operations: made, planned, verified' 'less than 0.5 s' within 0.5 "$memplan" plan gpt:layers=208 -p greedy_size

claim 'production allocators: the table' 'at least 11 producers, 250 programs' producers
claim 'the instance library' 'at least 400, each proved or best known' library
claim 'a wheel in an empty environment, five lines, an optimal plan' 'passes' in_turn scripts/wheel-test.sh release

claim "msf-CNN's chain by patches" '67,905 at 1.10, 15,340 at 1.38, 7,887 at 1.68' chain 1.10=67905 1.38=15340 1.68=7887
claim 'mobilenet_v2 by patches' '3 times less at 1.5 times the work' patched 3 mobilenet_v2
claim 'mobilenet_v2 of width 0.35 by patches' '3 times less at 1.5 times the work' patched 3 mobilenet_v2:width=0.35,image=144
claim 'vgg16 by patches' '3 times less at 1.5 times the work' patched 3 vgg16
claim 'resnet50 by patches' '2 times less at 1.5 times the work' patched 2 resnet50
claim 'patches: chains of up to 12 layers beside exhaustive search' 'equal' passes test_graphs_tile
claim 'residency: moved bytes' '20 cases, within 5 % of the bound, below both heuristics' moved
claim 'residency: small problems beside brute force' 'equal' passes test_planners_residency

claim 'nnc_2018 on 10,000 buffers' 'less than 2 s each' in_turn scripts/bench-nnc.sh "$memplan" 2
claim '1,000 buffers near an older plan' 'less than 1 ms' in_turn scripts/bench-near.sh "$memplan" 1
claim "operators of users: Owl's Delay among them" 'equal; bad ones refused' passes test_graphs_user_ops
claim 'TensorSSA with loops and branches' 'equal to unrolled' passes test_graphs_ssa_blocks
claim 'readers fuzzed' '10,000,000 executions each' fuzzed fuzz_hlo fuzz_tflite fuzz_import

claim 'light models beside ONNX Runtime, one thread (make peers)' 'at most half of its arena, 1.2 of its latency' ort
claim 'lists on which CP-SAT is lower than exact (make peers)' 'none' cpsat
claim 'the house: folders, circles, functions, names' '25 files; 3 and none; 72 lines; 24.5 % of one letter' house \
    'folders of more than 25 files=0' 'circles of files=3' 'circles of folders=0' 'lines of a function, longest=72' 'identifiers of one letter, %=24.5'
claim 'the house: the longest file of source' '800 lines' longest_file 800
claim 'the house: size' '95,000 lines and 5,000 a capability since; tests 40,000' house 'lines outside tests=95000' 'lines tests=40000'
claim 'the house: a clean build' '60 s of processors' clean_build 60
claim 'the paper' '5,500 words, 10 tables of 15 lines, 8 figures' in_turn scripts/paper-size.sh PAPER.md -v
claim 'peers in one run (make peers)' 'all 9' peers 9
claim 'reliability in full (make reliability)' 'none failed, none more than 50 commits old' reliable 50
claim 'cuda: conformance, outputs, compute-sanitizer, measured bytes, times' 'scripts/gpu-check.sh passes' gpu

echo "$met met, $not_met not met, $skipped skipped"
# Of a part, the rows take the places of those that were there; new ones come last.
table=results/tables/claims.tsv
if [ -n "$pattern" ] && [ -e $table ]; then
    awk -F'\t' 'NR == FNR { anew[$2] = $0; claim[++n] = $2; next } $2 in anew { $0 = anew[$2]; delete anew[$2] } { print }
        END { for (i = 1; i <= n; i++) if (claim[i] in anew) print anew[claim[i]] }' "$work/table" $table >"$work/whole"
    mv "$work/whole" $table
elif [ -z "$pattern" ]; then
    mv "$work/table" $table
fi
[ $not_met -eq 0 ]
