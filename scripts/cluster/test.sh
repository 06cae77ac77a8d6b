#!/usr/bin/env bash
# The cluster scripts on a one-node Slurm of their own, on the loopback: 200 jobs, one of which is killed with SIGKILL twice and
# sent again. The merged rows must be those of an undisturbed single process but for times. The same with GNU parallel, on this
# machine, and by ssh to two names of it, through an sshd of the test's own.
#
#   scripts/cluster/test.sh PROGRAM
#
# Ends in `N passed, N failed, N skipped`. Needs Debian's slurmctld, slurmd, slurm-client, munge, parallel and openssh-server;
# touches no other Slurm, no other sshd and nobody's keys.
set -u
program=$(realpath "${1:?usage: scripts/cluster/test.sh PROGRAM}")
cd "$(dirname "$0")/../.."
JOBS=200
work=$(mktemp -d)
chmod 755 "$work"
passed=0 failed=0 skipped=0
export PATH=$PATH:/usr/sbin SLURM_CONF=$work/slurm.conf

finish() {
    [ ! -e "$work/slurmctld.pid" ] || scontrol shutdown >/dev/null 2>&1
    [ ! -e "$work/munge/pid" ] || kill "$(cat "$work/munge/pid")" 2>/dev/null
    for host in one two; do
        [ ! -S "$work/ssh/$host" ] || ssh -F "$work/ssh/config" -O exit "$host" 2>/dev/null
    done
    [ ! -e "$work/ssh/pid" ] || kill "$(cat "$work/ssh/pid")" 2>/dev/null
    for _ in $(seq 50); do
        [ -e "$work/slurmd.pid" ] || [ -e "$work/slurmctld.pid" ] || break
        sleep 0.1
    done
    [ -n "${KEEP-}" ] || rm -rf "$work"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}
trap finish EXIT
pass() { echo "ok: $*"; passed=$((passed + 1)); }
fail() { echo "FAILED: $*"; failed=$((failed + 1)); }
skip() { echo "skip: $*"; skipped=$((skipped + 1)); }

# 45 small graphs by 10 planners; the last is a command that takes its time, to be killed in
{
    echo "# for the test of the cluster scripts"
    echo "--backends none"
    for i in $(seq 15); do
        echo "mlp:layers=$i,input=16,hidden=16,classes=4"
        echo "guillotine:n=$((10 + i))"
        echo "synthetic:n=$((20 + i)),alive=8"
    done
} >"$work/t.suite"
cat >"$work/slow.sh" <<'SLOW'
sleep 0.3
awk -F, -v OFS=, 'NR == 1 {print $0, "offset"; next} {print $0, at + 0; at += int(($4 + 63) / 64) * 64}' "$1" >"$2"
SLOW
bench=(--planners "none,greedy_size,best_fit,first_fit,pool,owl,mxnet,nnc_2019,nnc_arena,exec:slow=sh $work/slow.sh {in} {out}")

"$program" bench "$work/t.suite" "${bench[@]}" -q -o "$work/one.jsonl" || fail "the single process"
"$program" merge "$work/one.jsonl" -o "$work/expected.jsonl" || fail "merging its rows"

# The victim: a shard whose first row is quick and whose last is slow, so that it dies between two rows.
for victim in $(seq $JOBS); do
    rows=$work/victim.jsonl
    rm -f "$rows"
    "$program" bench "$work/t.suite" "${bench[@]}" -q --shard "$victim/$JOBS" -o "$rows"
    [ "$(grep -c . "$rows")" -ge 2 ] && ! head -1 "$rows" | grep -q exec:slow && tail -1 "$rows" | grep -q exec:slow && break
done

# compare NAME: the rows of $work/NAME.jsonl against those of the single process
compare() {
    if [ "$(grep -c . "$work/$1.jsonl" 2>/dev/null)" = "$(grep -c . "$work/expected.jsonl")" ] &&
        "$program" diff "$work/expected.jsonl" "$work/$1.jsonl"; then
        pass "$1: $(grep -c . "$work/$1.jsonl") rows, those of a single process but for times"
    else
        fail "$1: other rows than those of a single process"
    fi
}

# The program as the nodes run it: the victim's worker is killed at its first and at its second start.
cat >"$work/memplan" <<WRAPPER
#!/usr/bin/env bash
case " \$* " in
*" --shard $victim/$JOBS "*)
    echo start >>"$work/starts"
    [ "\$(grep -c . "$work/starts")" -le 2 ] || exec "$program" "\$@"
    file=\$(sed 's/.* -o \([^ ]*\) .*/\1/' <<<" \$* ")
    before=\$(cat "\$file" 2>/dev/null | wc -l)
    "$program" "\$@" &
    # the second time it dies at once, the first time when a row is written
    [ "\$before" -gt 0 ] || until [ -s "\$file" ]; do sleep 0.01; done
    kill -KILL \$! && echo killed >>"$work/kills"
    wait \$!
    exit
    ;;
esac
exec "$program" "\$@"
WRAPPER
chmod 755 "$work/memplan"

start_slurm() {
    local host user port=$((20000 + $$ % 5000 * 2)) cpus=8
    host=$(hostname -s) user=$(id -un)
    mkdir -p "$work/munge" "$work/state" "$work/spool"
    chmod 755 "$work/munge"
    dd if=/dev/urandom of="$work/munge.key" bs=1024 count=1 2>/dev/null
    chmod 600 "$work/munge.key"
    munged --force --key-file="$work/munge.key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
        --log-file="$work/munge/log" --seed-file="$work/munge/seed" || return
    cat >"$SLURM_CONF" <<CONF
ClusterName=memplan
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
SlurmUser=$user
SlurmdUser=$user
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_max_job_start=0
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
MaxArraySize=1001
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
    slurmctld -c 2>>"$work/slurm.err" && slurmd -c 2>>"$work/slurm.err" || return
    for _ in $(seq 100); do
        sinfo -h -t idle -o %T 2>/dev/null | grep -q idle && return
        sleep 0.1
    done
    return 1
}

lacks=
for tool in munged slurmctld slurmd sbatch; do command -v $tool >/dev/null || lacks="$lacks $tool"; done
if [ -n "$lacks" ]; then
    skip "slurm: no$lacks here; scripts/install-deps.sh --test installs them"
elif ! start_slurm; then
    skip "slurm does not start here: $(tail -qn 1 "$work/slurm.err" "$work"/*.log "$work/munge/log" 2>/dev/null | paste -sd'|')"
else
    begin=$(date +%s)
    MEMPLAN=$work/memplan scripts/cluster/slurm-array.sh "$work/t.suite" $JOBS "$work/slurm.jsonl" "${bench[@]}" >/dev/null ||
        fail "slurm: the array was not taken"
    while [ ! -e "$work/slurm.jsonl" ] && [ ! -e "$work/slurm.jsonl.failed" ] && [ $(($(date +%s) - begin)) -lt 300 ]; do sleep 0.5; done
    sleep 0.5
    echo "slurm: $JOBS shards in $(($(date +%s) - begin)) s; worker of shard $victim killed $(grep -c killed "$work/kills") times," \
        "started $(grep -c start "$work/starts") times"
    [ "$(grep -c killed "$work/kills")" = 2 ] && [ "$(grep -c start "$work/starts")" = 3 ] && pass "slurm: killed twice, sent again twice" ||
        fail "slurm: not killed and sent again twice"
    compare slurm
fi

# Two hosts, "one" and "two", that both are this machine; keys and configuration of their own.
start_sshd() {
    local port=$((31000 + $$ % 5000)) keys=$work/ssh
    mkdir -m 700 "$keys"
    ssh-keygen -q -t ed25519 -N '' -f "$keys/host" && ssh-keygen -q -t ed25519 -N '' -f "$keys/user" || return
    cp "$keys/user.pub" "$keys/authorized"
    cat >"$keys/sshd_config" <<CONF
ListenAddress 127.0.0.1
Port $port
HostKey $keys/host
PidFile $keys/pid
AuthorizedKeysFile $keys/authorized
AuthenticationMethods publickey
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
MaxStartups 100
CONF
    cat >"$keys/config" <<CONF
Host one two
HostName 127.0.0.1
Port $port
User $(id -un)
IdentityFile $keys/user
IdentitiesOnly yes
UserKnownHostsFile $keys/known
StrictHostKeyChecking accept-new
LogLevel ERROR
ControlMaster auto
ControlPath $keys/%n
ControlPersist yes
CONF
    [ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd # where sshd of root insists on having it
    "$(command -v sshd)" -f "$keys/sshd_config" -E "$keys/log" || return # sshd wants its absolute path
    for _ in $(seq 50); do
        ssh -F "$keys/config" one true 2>>"$keys/log" && return
        sleep 0.1
    done
    return 1
}

# by_parallel NAME HOSTS: the suite by GNU parallel, and its rows
by_parallel() {
    rm -f "$work/starts" "$work/kills"
    local begin
    begin=$(date +%s)
    MEMPLAN=$work/memplan JOBS=2 scripts/cluster/parallel-hosts.sh "$work/t.suite" $JOBS "$work/$1.jsonl" "$2" "${bench[@]}" ||
        fail "$1: exit status $?"
    echo "$1: $JOBS shards in $(($(date +%s) - begin)) s"
    [ "$(grep -c killed "$work/kills")" = 2 ] && pass "$1: killed twice, started again twice" || fail "$1: not killed twice"
    compare "$1"
}

lacks=
for tool in sshd ssh ssh-keygen; do command -v $tool >/dev/null || lacks="$lacks $tool"; done
if ! command -v parallel >/dev/null; then
    skip "parallel: not here; scripts/install-deps.sh --test installs it"
else
    by_parallel parallel :
    if [ -n "$lacks" ]; then
        skip "ssh: no$lacks here; scripts/install-deps.sh --test installs them"
    elif ! start_sshd; then
        skip "ssh: no way in over the loopback: $(tail -qn 1 "$work"/ssh/log 2>/dev/null)"
    else
        export PARALLEL_SSH="ssh -F $work/ssh/config"
        by_parallel ssh one,two
        [ "$(cut -f2 "$work/ssh.jsonl.shards/joblog" | sort -u | grep -cx 'one\|two')" = 2 ] &&
            pass "ssh: both hosts worked" || fail "ssh: one host did all"
    fi
fi
