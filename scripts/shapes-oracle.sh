#!/usr/bin/env bash
# Drawn shapes of eleven networks executed by one template each: the structure of those of scripts/shapes.sh, with few features and small
# images. Each template is certified; at each shape outputs are compared bit for bit with the run that shares nothing, and the arena with
# what was evaluated.
#
#   scripts/shapes-oracle.sh MEMPLAN [SHAPES [NETWORK..]]
#
# SHAPES (1000) of each, or of those that are named. Ends with status 1 where one differs. A network whose file is not there (`make data`)
# is left out and named.
set -u
program=${1:?usage: scripts/shapes-oracle.sh MEMPLAN [SHAPES [NETWORK..]]}
shapes=${2:-1000}
wanted=" ${*:3} "
data=$(scripts/data.sh --where)/onnx-2026
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# network NAME GRAPH RANGES..
network() {
    local name=$1 begin=$SECONDS
    shift
    case "$wanted" in *[a-z]*) case "$wanted" in *" $name "*) ;; *) return ;; esac ;; esac
    if "$program" plan "$@" -q -o "$work/t.json" && "$program" certify "$work/t.json" -q &&
        "$program" run "$1" --plan "$work/t.json" --shapes "$shapes" --seed 1 --backend cpu >"$work/out"; then
        echo "shapes-oracle: $name: $(grep -h '^outputs' "$work/out" | tr -s ' '), $((SECONDS - begin)) s"
    else
        echo "shapes-oracle: $name: not right" >&2
        status=1
    fi
}

# exported NAME: a model of the data
exported() {
    local file
    file=$(find "$data/$1" -name '*.onnx' 2>/dev/null | head -1)
    if [ -n "$file" ]; then
        network "$2" "$file" --dim batch=1..8 --dim seq=1..32
    else
        echo "shapes-oracle: $2 is not there: make data" >&2
    fi
}

small='hidden=16,heads=2,vocab=50'
network resnet50 resnet50:classes=10 --dim batch=1..3 --dim image=32..96:32
network inception_v3 inception_v3:classes=10 --dim batch=1..2 --dim image=75..107:8
network unet unet:channels=8 --dim image=16..64:16
network bert bert:$small --dim batch=1..8 --dim seq=1..32
network encoder_decoder encoder_decoder:$small --dim batch=1..4 --dim seq=1..24 --dim answer=1..24
network gpt_prefill gpt:mask=always,$small --dim batch=1..8 --dim seq=1..32
network gpt_decode gpt:seq=1,mask=always,$small --dim batch=1..8 --dim past=1..64
network gpt_both gpt:mask=always,context=64,$small --dim seq=1..64 --dim past=1..64 --dim 'past+seq<=64'
network lstm_while lstm:form=while,layers=1,hidden=32 --dim batch=1..8 --dim steps=1..32
exported gru_plain__tsb17 gru_plain
exported lstm_lm__tsb17 lstm_lm
exit $status
