#!/usr/bin/env bash
# Plans for ranges of sizes: ten networks, each as a template and as others plan over ranges.
#
#   scripts/shapes.sh MEMPLAN OUT.tsv [SHAPES [RUNS]]
#
# SHAPES (1000) shapes of each range are drawn for the worst and the mean regret, RUNS (0) of them executed on cpu and
# compared with a run that shares nothing; where one differs the script ends with status 1. A network whose file is not
# there (`make data`) is left out and named.
set -u
program=${1:?usage: scripts/shapes.sh MEMPLAN OUT.tsv [SHAPES [RUNS]]}
out=${2:?usage: scripts/shapes.sh MEMPLAN OUT.tsv [SHAPES [RUNS]]}
shapes=${3:-1000} runs=${4:-0}
data=$(scripts/data.sh --where)/onnx-2026
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

memplan() { timeout 600 "$program" "$@"; }

# field NAME FILE: a number of the row, with so many digits as FORMAT says, or -
field() {
    local value
    value=$(grep -o "\"$1\":[^,}]*" "$2" | head -1 | cut -d: -f2- | tr -d '" ')
    case "$value" in '' | null) echo - ;; *) printf "${3:-%s}" "$value" ;; esac
}

# other NETWORK WAY: worst drawn regret as another plans over the range
other() {
    if memplan plan "${network[@]}" --shapes "$shapes" --json $1 >"$work/other.json" 2>"$work/err"; then
        field "$2" "$work/other.json" %.3f
    else
        echo -
    fi
}

line() {
    local name=$1 cells=0 row=$work/row.json ranges=$2
    shift 2
    network=("$@")
    until [ "$cells" -eq 4 ]; do # the fewest cells that are enough for 1.05
        cells=$((cells + 1))
        memplan plan "${network[@]}" --cells $cells --shapes "$shapes" --json -o "$work/t.json" >"$row" 2>"$work/err" || {
            echo "shapes: $name: $(tail -1 "$work/err")" >&2
            return
        }
        [ "$(field regret_most "$row" | awk '{print ($1 != "-" && $1 <= 1.05)}')" = 1 ] && break
    done
    if ! memplan certify "$work/t.json" -q; then status=1; fi
    if [ "$runs" -gt 0 ] && ! memplan run "$@" --plan "$work/t.json" --shapes "$runs" --backend cpu -q; then status=1; fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$ranges" \
        "$(grep -o '"birth":' "$work/t.json" | wc -l)" "$cells" "$(field regret_most "$row" %.4f)" "$(field drawn_mean "$row" %.4f)" \
        "$(other '--planner upper' regret_corner)" "$(other '--planner equal' drawn_worst)" "$(other '--planner slab' drawn_worst)" \
        "$(other '--planner example' drawn_worst)" "$(other '--planner replan' drawn_worst)" \
        "$(field template_bytes "$row")" "$(field evaluate_ns "$row")" >>"$out.new"
    echo "shapes: $name: done" >&2
}

printf 'network\tranges\tbuffers\tcells\tproved worst\tmean\tupper at the corner\tequal\tslab\texample\treplan\tbytes\t~ns\n' >"$out.new"
image='--dim image=128..512:32' batch='--dim batch=1..64'
line resnet50 'batch 1..64, image 128..512:32' resnet50 $batch $image
line inception_v3 'batch 1..64, image 128..512:32' inception_v3 $batch $image
line unet 'image 128..512:32' unet $image
line bert 'batch 1..64, seq 1..512' bert $batch --dim seq=1..512
line encoder_decoder 'batch 1..64, seq 1..4096' encoder_decoder $batch --dim seq=1..4096
line 'encoder_decoder, answer' 'batch 1..64, seq, answer 1..4096' encoder_decoder $batch --dim seq=1..4096 --dim answer=1..4096
line gpt_prefill 'batch 1..64, seq 1..4096' gpt:mask=always,context=4096 $batch --dim seq=1..4096
line gpt_decode 'batch 1..64, past 1..4095' gpt:seq=1,mask=always,context=4096 $batch --dim past=1..4095
line gpt_both 'seq, past 1..4096, past+seq<=4096' gpt:mask=always,context=4096 --dim seq=1..4096 --dim past=1..4096 --dim 'past+seq<=4096'
line lstm_while 'batch 1..64, steps 1..4096' lstm:form=while,layers=1 $batch --dim steps=1..4096
model() { find "$data/$1" -name '*.onnx' 2>/dev/null | head -1; }
for file in gru_plain__tsb17 lstm_lm__tsb17; do
    [ -n "$(model $file)" ] || echo "shapes: $file is not there: make data" >&2
done
[ -z "$(model gru_plain__tsb17)" ] || line gru_plain 'batch 1..64, seq 1..4096' "$(model gru_plain__tsb17)" $batch --dim seq=1..4096
[ -z "$(model lstm_lm__tsb17)" ] || line lstm_lm 'batch 1..64, seq 1..4096' "$(model lstm_lm__tsb17)" $batch --dim seq=1..4096
mv "$out.new" "$out"
exit $status
