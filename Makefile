# memplan: one Makefile, no recursion.
#
#   make                the program, release          make check        the tests (MODE=debug, asan, tsan: with checks)
#   make data           what tests and tables read of others, into MEMPLAN_DATA
#   make bench          the main job, on an empty machine too            make lint   include rules, format
#   make fuzz           every tests/fuzz target for RUNS=1000000 executions; fuzz-smoke: the same 40,000 inputs each, MODE=asan
#   make install PREFIX=..  program, libraries, headers  make bundle     a folder that runs where nothing installs
#   MODE=release|debug|asan|tsan   CC=gcc|clang   V=1 shows commands
MODE ?= $(if $(filter fuzz-smoke,$(MAKECMDGOALS)),asan,release)
CC   := $(if $(filter default,$(origin CC)),gcc,$(CC))
VERSION := 0.1.0
B    ?= build
O    := $B/$(MODE)
PREFIX ?= /usr/local
Q    := $(if $V,,@)

FLAGS_release := -O1 -DMPL_CHECK=0
PLACING       := -O2
# DEBUG_INFO=-g1 compiles in three quarters of the time: lines for a sanitizer's report, no variables for gdb.
DEBUG_INFO    ?= -g
FLAGS_debug   := -O1 $(DEBUG_INFO) -DMPL_CHECK=2
# UNDEFINED=-fsanitize-undefined-trap-on-error compiles in six tenths of the time: a report says where, not what was undefined there.
FLAGS_asan    := -O1 $(DEBUG_INFO) -DMPL_CHECK=3 -fsanitize=address,undefined -fno-sanitize-recover=all $(UNDEFINED)
FLAGS_tsan    := -O1 $(DEBUG_INFO) -DMPL_CHECK=2 -fsanitize=thread
# The undefined-behaviour sanitizer's tables hold 700,000 addresses: at a fixed place, none needs to be written at every start.
LINK_asan     := -no-pie
LINK          = $(LDFLAGS) $(LINK_$(MODE)) $(if $(filter debug asan tsan,$(MODE)),$(FEATURE_LINKER))
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror
# Position-independent, and hidden unless a header says otherwise: the same objects make the program and the libraries.
CFLAGS += -std=c11 $(FLAGS_$(MODE)) $(WARN) -ffp-contract=off -pthread -fPIC -fvisibility=hidden

.DEFAULT_GOAL := all
.PHONY: all check certify-mutations data lint format docs install bundle clean deps deps-test deps-paper fuzz fuzz-smoke FORCE
.PHONY: audit-walk train-oracle shapes-oracle bench-shapes bench-near bench-nnc views-oracle views-planted concats-planted control-oracle control-planted edges-oracle workers-oracle judge-oracle mutants mutants-smoke
.PHONY: certificates certificates-planted explain-promises wheel wheel-test
.PHONY: bench bench-smoke bench-parallel bench-search bench-speed bench-exact
.PHONY: measure-house reliability cluster-test follow-docs claims determinism instances instances-check exact-oracle least-oracle online-oracle ilp-oracle paper paper-check least-55 peers
MAKEFLAGS += --no-builtin-rules
, := ,

# What needs no build must not start one: the probe is skipped for these.
ifeq ($(filter clean data lint format deps deps-test deps-paper determinism,$(MAKECMDGOALS)),)
-include $B/features.mk
endif

CPPFLAGS += -D_GNU_SOURCE -I. -I$B -isystem $B/gen $(FEATURE_CPPFLAGS)
LDLIBS   += $(FEATURE_LDLIBS) -lm -ldl -lpthread

SRC  := $(sort $(shell find graphs planners runtime harness -name example -prune -o -name python -prune -o -name '*.c' -print))
OBJ  := $(SRC:%.c=$O/%.o) $O/gen/onnx.pb-c.o
ifeq ($(HAVE_CUDA),1)
OBJ  += $(patsubst runtime/%.cu,$B/%.o,$(wildcard runtime/cuda/*.cu))
endif
LIB  := $(filter-out $O/harness/main.o,$(OBJ))
TEST := $(basename $(notdir $(sort $(wildcard tests/*/test_*.c))))
TESTBIN := $(TEST:%=$O/tests/%)
PLUGIN  := $(patsubst %.c,$O/%.so,$(sort $(wildcard planners/example/*.c graphs/ops/user/example/*.c tests/plugin/*.c)))

all: $B/memplan $O/lib/libmemplan.so

$B/memplan: $O/memplan
	$(Q)ln -sf $(MODE)/memplan $@

$O/memplan: $(OBJ)
	$(Q)$(CC) $(CFLAGS) $(LINK) -o $@ $^ $(LDLIBS)

$O/libmemplan.a: $(LIB)
	$(Q)rm -f $@ && ar rcs $@ $^

$O/tests/test_%: $O/tests/test_%.o $O/libmemplan.a | build/data
	$(Q)$(CC) $(CFLAGS) $(LINK) -o $@ $(filter-out %.so %.a,$^) $(filter %.a,$^) -lcmocka $(LDLIBS)

$O/tests/test_harness_plugins $O/tests/test_graphs_user_ops: $(PLUGIN)
$O/tests/test_planners_where $O/tests/test_planners_units: $O/tests/random_places.o
FAKE   := $(addprefix $O/tests/,cuda_fake.o cuda_fake_kernels.o cuda_fake_run.o cudnn_host.o)
TAGGED := $(addprefix $O/tests/tagged_,run.o memory.o graph.o rules.o)
$O/tests/test_planners_judge_control: $O/tests/random_control.o $(TAGGED)
$O/tests/test_planners_programs: $O/tests/random_control.o
$(addprefix $O/tests/test_,runtime_random_control harness_changed runtime_tape runtime_blocks graphs_units graphs_chain planners_loops planners_where planners_units runtime_cuda_loops \
    harness_audit_walk graphs_streams graphs_stream_conflicts runtime_unrolled): \
    $O/tests/random_control.o
$(addprefix $O/tests/test_runtime_,ops conformance cuda_fake cuda_loops training views control edges): \
    $(FAKE)

# memplan once more, on the fake device: what its rows and statuses say of a GPU, tested without one.
$O/tests/memplan_on_fake: $(filter-out $O/runtime/cuda/real.o $B/cuda/kernels%,$(OBJ)) $(FAKE) $O/tests/program_on_fake.o
	$(Q)$(CC) $(CFLAGS) $(LINK) -o $@ $^ $(LDLIBS)
$O/tests/test_harness_cuda: | $O/tests/memplan_on_fake

# Planners and operators from outside: built as their authors would, against what `make install` puts there.
$B/include/memplan/plugin.h: harness/lib/plugin.h
	$(Q)install -D -m 644 $< $@
$B/include/memplan/operators.h: graphs/ops/user/operators.h
	$(Q)install -D -m 644 $< $@

$O/%.so: %.c $B/include/memplan/plugin.h $B/include/memplan/operators.h Makefile
	$(Q)mkdir -p $(@D) && $(CC) -std=c11 -O1 -g $(WARN) -I$B/include -fPIC -shared -o $@ $<

# The libraries that `make install` hands on: what plans and verifies, no backend but ref, and no symbol but those of memplan.h.
SO      := $O/lib/libmemplan.so.$(VERSION)
SONAME  := libmemplan.so.$(firstword $(subst ., ,$(VERSION)))
LIBOBJ  := $(filter $O/graphs/% $O/planners/% $O/gen/% $O/harness/lib/% $O/harness/rows/record.o $O/harness/job/asked.o \
    $O/runtime/tape/% $(addprefix $O/runtime/,ref.o pages.o cpu/host.o) \
    $(addprefix $O/harness/cli/,version.o command.o options.o values.o),$(OBJ))
LIBLIBS := $(filter -L% -ligraph -lglpk -lprotobuf-c -ljansson -lz,$(FEATURE_LDLIBS)) -lm -lpthread

$(SO): $(LIBOBJ) harness/lib/memplan.map
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) \
	    -Wl,--version-script=harness/lib/memplan.map -Wl,--as-needed $(if $(filter release debug,$(MODE)),-Wl$(,)-z$(,)defs) \
	    -o $@ $(LIBOBJ) $(LIBLIBS)
$O/lib/libmemplan.so: $(SO)
	$(Q)ln -sf $(<F) $(@D)/$(SONAME) && ln -sf $(SONAME) $@
$O/lib/libmemplan.a: $(LIBOBJ)
	$(Q)mkdir -p $(@D) && ld -r -o $O/lib/memplan.o $^ && objcopy --localize-hidden $O/lib/memplan.o
	$(Q)rm -f $@ && ar rcs $@ $O/lib/memplan.o

# Loops over pieces of tensors: gcc takes several elements at once only where it is asked to, and selects between them only where a
# comparison that nobody reads need not trap.
ifeq ($(MODE),release)
$O/runtime/cpu/loops/chain.o $O/runtime/cpu/loops/chain_steps.o $O/runtime/cpu/images.o $O/runtime/cpu/images_conv.o $O/runtime/cpu/loops/byte_loops.o $O/runtime/cpu/loops/resample.o $O/runtime/cpu/loops/thin.o $O/runtime/cpu/loops/words.o $O/runtime/cpu/loops/panels.o $O/runtime/cpu/loops/taps.o $O/runtime/cpu/loops/winograd.o $O/runtime/cpu/loops/planes.o $O/runtime/cpu/loops/roi_means.o $O/runtime/cpu/loops/normal.o $O/runtime/cpu/cpu_words.o $O/runtime/cpu/sums.o: CFLAGS += -O3 -fno-trapping-math
# What places buffers gains 4 to 10 % by more than -O1, and compiles in half as much time again; what else was timed gains 3 % at most.
$(filter $O/planners/exact/% $O/planners/search/% $O/planners/place/% $O/planners/published/%,$(OBJ)): CFLAGS += $(PLACING)
endif

# PLACING= REST=-O0: of what places buffers, and of what makes no plan, for scripts/determinism.sh.
$(filter $O/graphs/io/% $O/graphs/zoo/% $O/planners/import/% $O/runtime/% $O/harness/%,$(OBJ)): CFLAGS += $(REST)

# The names of operators and attributes, from which graph.h makes their numbers. A list that only grew at its end keeps its time of
# change: no number changed, so objects stay valid, and only files with a table of all operators (graphs/ir/counts.h, each_op.h) are compiled again.
NAMES := $B/gen/ops_names.def $B/gen/attrs_names.def
$(NAMES): $B/gen/%_names.def: graphs/ir/%.def Makefile
	$(Q)mkdir -p $(@D)
	$(Q)sed -nE 's/^OP\((\w+), .*, (\w+), (\w+)\)$$/OP(\1, \2, \3)/p; s/^ATTR\((\w+),.*/ATTR(\1)/p' $< >$@.new
	$(Q)if [ -s $@ ] && cmp -s -n $$(wc -c <$@) $@ $@.new; then touch -r $@ $@.new; fi && mv $@.new $@

# Without a shell: a command of one program is started at once, and there are 600 of them.
ifdef FEATURE_LDLIBS
$(shell mkdir -p $(sort $(dir $(OBJ))) $O/harness/python $O/tests)
endif
COMPILE = $(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$O/%.o: %.c Makefile $B/features.mk | $B/gen/onnx.pb-c.h $(NAMES)
	$(COMPILE)
# Programs of tests stand in one folder, wherever in tests/ their sources are.
vpath %.c $(sort $(dir $(wildcard tests/*/*.c)))
# Of a test, what it calls is looked at by the sanitizers, and what it is beside: the oracle in the test itself need not be slow.
$O/tests/test_%.o: FLAGS_asan := -O1 $(DEBUG_INFO) -DMPL_CHECK=3
$O/tests/test_%.o: FLAGS_release := -O1 -DMPL_CHECK=0
$O/tests/%.o: %.c Makefile $B/features.mk | $B/gen/onnx.pb-c.h $(NAMES)
	$(COMPILE)

# Kernels are the same in every mode: for the devices of 2020, and as PTX for later ones. Each operation is rounded by
# itself, as everywhere else here.
NVCCFLAGS := -std=c++17 -O3 -fmad=false -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics -ccbin g++ \
    -gencode arch=compute_80,code=[sm_80,compute_80]
$B/cuda/%.o: runtime/cuda/%.cu $(wildcard runtime/cuda/kernels*.h runtime/cuda/kernels*.def) graphs/graph.h graphs/core/base.h \
    graphs/ir/types.def $(NAMES) Makefile $B/features.mk
	$(Q)mkdir -p $(@D) && $(NVCC) $(NVCCFLAGS) -I. -I$B $(NVCC_INCLUDES) -c -o $@ $<

$O/gen/%.o: $B/gen/%.c Makefile
	$(Q)mkdir -p $(@D) && $(CC) -std=c11 -O1 -g -fPIC -fvisibility=hidden -I$B/gen -c -o $@ $<

# The schema comes from libonnx-dev; protobuf-c compiles it here.
$B/gen/onnx.pb-c.h $B/gen/onnx.pb-c.c &: $(ONNX_PROTO)
	$(Q)mkdir -p $B/gen && protoc-c --proto_path=$(dir $(ONNX_PROTO)) --c_out=$B/gen $(ONNX_PROTO)

$B/features.mk: scripts/features.sh scripts/install-deps.sh Makefile
	$(Q)scripts/install-deps.sh
	$(Q)CC="$(CC)" scripts/features.sh $B

# Which build this is, the suites, what is carried of results/ and the viewer's page as C strings; rewritten only when they change.
GENERATED = $(Q)mkdir -p $(@D) && { $1; } >$@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
$O/gen/version_gen.h: FORCE
	$(call GENERATED,printf '#define MPL_GEN_%s\n' 'VERSION "$(VERSION)"' \
	    "COMMIT \"$$(git rev-parse --short=12 HEAD 2>/dev/null)\"" \
	    "DIRTY $$(git diff --quiet HEAD -- . ':!results' 2>/dev/null && echo 0 || echo 1)" \
	    "COMPILER \"$$($(CC) --version | head -1)\"" 'FLAGS "$(strip $(FLAGS_$(MODE)))"')
$O/harness/cli/version.o: $O/gen/version_gen.h
$O/harness/cli/version.o: CPPFLAGS += -I$O/gen
$B/gen/suites_gen.h: $(sort $(wildcard harness/bench/suites/*.suite)) Makefile
	$(call GENERATED,for f in $(filter %.suite,$^); do printf 'SUITE("%s",\n' "$$(basename $$f .suite)"; \
	    sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $$f; echo ')'; done)
$O/harness/bench/suite.o: $B/gen/suites_gen.h
$B/gen/carried_gen.h: results/published.tsv $(sort $(wildcard results/baselines/*.json)) Makefile
	$(call GENERATED,for f in $(filter results/%,$^); do printf 'CARRIED("%s",\n' "$$f"; \
	    sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $$f; echo ')'; done)
$O/harness/cli/carried.o: $B/gen/carried_gen.h
$B/gen/tables_gen.h: harness/report/tables.sql scripts/tables.awk Makefile
	$(call GENERATED,awk -f scripts/tables.awk $<)
$O/harness/report/table.o: $B/gen/tables_gen.h
$B/gen/viewer_gen.h: harness/view/viewer.html Makefile
	$(call GENERATED,sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $<)
$O/harness/view/viewer.o: $B/gen/viewer_gen.h

-include $(OBJ:.o=.d) $(wildcard $O/tests/*.d)

# What tests, suites and tables read of others: brought into MEMPLAN_DATA, from MEMPLAN_MIRROR or its public homes.
data: ; $(Q)scripts/data.sh
build/data: FORCE
	$(Q)mkdir -p build && ln -sfn "$$(scripts/data.sh --where)" $@

deps: ; $(Q)scripts/install-deps.sh
deps-test: ; $(Q)scripts/install-deps.sh --test
deps-paper: ; $(Q)scripts/install-deps.sh --paper

check: deps-test $O/memplan $(TESTBIN)
	$(Q)scripts/run-tests.sh $O $(TESTBIN)

# Fuzzing: what reads files is built once more, by clang with libFuzzer, in a folder of its own.
FUZZ    := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZBIN := $(FUZZ:tests/fuzz/%.c=$B/fuzz/%)
FUZZOBJ := $(patsubst %.c,$B/fuzz/%.o,$(filter graphs/% planners/%,$(SRC))) $B/fuzz/gen/onnx.pb-c.o
.SECONDARY: # objects stay: what is made anew from them is quick, and no list of them ends the output
FUZZCC  := clang -std=c11 -O2 $(DEBUG_INFO) -DMPL_CHECK=2 -ffp-contract=off -fno-sanitize-recover=all
RUNS ?= 1000000

$B/fuzz/%.o: %.c Makefile $B/features.mk | $B/gen/onnx.pb-c.h $(NAMES)
	$(Q)mkdir -p $(@D) && $(FUZZCC) -fsanitize=fuzzer-no-link,address,undefined $(CPPFLAGS) $(WARN) -MMD -MP -c -o $@ $<

$B/fuzz/gen/%.o: $B/gen/%.c
	$(Q)mkdir -p $(@D) && $(FUZZCC) -fsanitize=fuzzer-no-link,address -I$B/gen -c -o $@ $<

$B/fuzz/libmemplan.a: $(FUZZOBJ)
	$(Q)rm -f $@ && ar rcs $@ $^

$B/fuzz/fuzz_%: $B/fuzz/tests/fuzz/fuzz_%.o $B/fuzz/libmemplan.a
	$(Q)$(FUZZCC) -fsanitize=fuzzer,address,undefined -o $@ $^ $(LDLIBS)

# The same inputs at every call need no coverage: the objects that the tests are made of.
$O/tests/again_%: $O/tests/fuzz_%.o $O/tests/again.o $O/libmemplan.a
	$(Q)$(CC) $(CFLAGS) $(LINK) -o $@ $^ $(LDLIBS)

-include $(FUZZOBJ:.o=.d) $(FUZZ:%.c=$B/fuzz/%.d)

fuzz: deps-test $(FUZZBIN)
	$(Q)scripts/fuzz.sh $B/fuzz -runs=$(RUNS) $(FUZZBIN)
fuzz-smoke: deps-test $(FUZZ:tests/fuzz/fuzz_%.c=$O/tests/again_%)
	$(Q)scripts/fuzz.sh $B/fuzz again=40000 $(filter $O/tests/again_%,$^)

bench: all
	$(Q)$B/memplan bench main

# The same in seconds, into the build folder: for CI.
bench-smoke: all
	$(Q)rm -f $B/smoke.jsonl
	$(Q)$B/memplan bench smoke -o $B/smoke.jsonl

bench-parallel: all $O/tests/bench_parallel
	$(Q)$O/tests/bench_parallel

# The exact planner against brute force on 100,000 problems, a third of them with an optimum above the bound.
exact-oracle: deps-test $O/tests/test_planners_exact
	$(Q)$O/tests/test_planners_exact 100000

# The least memory of 10,000 small graphs against every order, choice of sharing and placement; and as many under parallel safety.
# Of programs with loops and branches: every order of every block.
least-oracle: deps-test $O/tests/test_planners_least $O/tests/test_planners_programs
	$(Q)MPL_PROGRAMS=$${MPL_PROGRAMS-4000} $O/tests/test_planners_programs
	$(Q)MPL_LEAST=$${MPL_LEAST-10000} MPL_LEAST_MOST=$${MPL_LEAST_MOST-20000} $O/tests/test_planners_least

# Online allocators against simulations written apart: so many random traces of each.
online-oracle: deps-test $O/tests/test_planners_online
	$(Q)MPL_ONLINE=$${MPL_ONLINE-100000} $O/tests/test_planners_online

# Rows of graphs planned under random options, audited: AUDIT_WALK combinations and their neighbours for each of 30 graphs.
audit-walk: deps-test $O/tests/test_harness_audit_walk
	$(Q)AUDIT_WALK=$${AUDIT_WALK-30} $O/tests/test_harness_audit_walk

# Random loops and branches under every planner against a direct interpreter: CONTROL_ORACLE graphs from CONTROL_SEED on.
control-oracle: deps-test $O/tests/test_runtime_random_control
	$(Q)CONTROL_ORACLE=$${CONTROL_ORACLE-10000} $O/tests/test_runtime_random_control

# The same of values that are inputs, weights and outputs at once, have no bytes or no reader, under every combination of options:
# EDGES_ORACLE graphs from EDGES_SEED on.
edges-oracle: deps-test $O/tests/test_runtime_edges
	$(Q)EDGES_ORACLE=$${EDGES_ORACLE-1000} $O/tests/test_runtime_edges

# Random graphs by several workers: WORKERS_ORACLE of them from WORKERS_SEED on (MODE=tsan: fewer).
workers-oracle: deps-test $O/tests/test_runtime_workers
	$(Q)WORKERS_ORACLE=$${WORKERS_ORACLE-10000} $O/tests/test_runtime_workers

control-planted: deps-test $O/libmemplan.a
	$(Q)scripts/plant-control.sh $O

# Views and writes: 100,000 random programs against an interpreter that writes in place; faults that the test must notice in PROGRAMS of
# them (2,000).
views-oracle: deps-test $O/tests/test_graphs_views $O/tests/test_runtime_views
	$(Q)$O/tests/test_graphs_views 100000
	$(Q)$O/tests/test_runtime_views 20000
views-planted: deps-test $O/tests/test_graphs_views $O/tests/test_graphs_views.o
	$(Q)scripts/plant-views.sh $O $(PROGRAMS)
concats-planted: deps-test $O/libmemplan.a
	$(Q)scripts/plant-concat.sh $O

# Gradients of exported models, large ones among them, and of 2,000 random graphs against central differences: a table, in an hour.
train-oracle: deps-test $O/tests/test_graphs_train_files
	$(Q)MPL_TRAINED=2000 $O/tests/test_graphs_train_files

# What memplan explain suggests, applied by its own command lines: hundreds of suggestions of every kind, and its time.
explain-promises: deps-test $O/memplan $O/tests/test_harness_explain
	$(Q)MPL_PROMISES=all MEMPLAN=$O/memplan $O/tests/test_harness_explain

# Plans changed in 100,000 ways, of problems and of graphs: the verifiers' word is that of brute force over all pairs of bytes; of
# graphs with loops and branches, over all executions.
judge-oracle: deps-test $O/tests/test_planners_judge $O/tests/test_planners_judge_control
	$(Q)MPL_JUDGED=100000 $O/tests/test_planners_judge
	$(Q)MPL_JUDGED=100000 $O/tests/test_planners_judge_control

# Templates changed in 1,000,000 ways, none accepted that is wrong at any shape; the least worst regret of 2,000 small problems by brute
# force over all templates.
template-oracle: deps-test $O/tests/test_planners_template_judge $O/tests/test_planners_template_exact
	$(Q)MPL_JUDGED=1000000 $O/tests/test_planners_template_judge
	$(Q)MPL_BRUTE=2000 $O/tests/test_planners_template_exact

# Templates of eleven networks with few features, each executed at SHAPES drawn shapes: outputs as of the run that shares nothing.
SHAPES ?= 1000
shapes-oracle: $O/memplan
	$(Q)scripts/shapes-oracle.sh $O/memplan $(SHAPES)

# Evaluating the offsets of 633 buffers at a drawn shape takes at most 20 us (median).
bench-shapes: $O/memplan
	$(Q)$O/memplan plan encoder_decoder --dim batch=1..64 --dim seq=1..512 --shapes 1000 | awk '/^time/ {print; exit !($$5 <= 20)}'

# After one of 1,000 buffers has doubled, a plan near the older one takes at most 1 ms, without reading that (median of 15).
bench-near: $O/memplan
	$(Q)scripts/bench-near.sh $O/memplan 1

# nnc_2018 plans 10,000 buffers of eight inputs in at most 2 s each (median of 3).
bench-nnc: $O/memplan
	$(Q)scripts/bench-nnc.sh $O/memplan 2

# Faults drawn by SEED, FAULTS a file, of which a test of the room must notice all but 5 %; goes on where it was interrupted. AGAIN=1:
# once more those that lived. The smoke form keeps the tool alive.
MUTATED ?= $(sort $(wildcard planners/verify/verify*.c)) planners/verify/certify.c planners/plan/proof.c harness/gate/gate.c \
    graphs/problem/liveness.c graphs/problem/cuts.c graphs/problem/control/storage.c \
    $(sort $(wildcard graphs/problem/control/store_*.c)) runtime/exec/exec.c runtime/exec/exec_layout.c
MUTANTS_NEED := $(addprefix $O/tests/,random_control.o random_places.o tagged_run.o tagged_memory.o tagged_graph.o tagged_rules.o) $(FAKE)
mutants: deps-test $O/memplan $(TESTBIN) $(MUTANTS_NEED)
	$(Q)scripts/mutants.sh $O $B/mutants.tsv $(MUTATED)
mutants-smoke: deps-test $(addprefix $O/tests/test_planners_,judge verify spill) $(MUTANTS_NEED)
	$(Q)rm -f $B/mutants-smoke.tsv
	$(Q)FAULTS=3 TESTS="test_planners_verify test_planners_judge test_planners_spill" scripts/mutants.sh $O $B/mutants-smoke.tsv planners/verify/verify.c

# How far the searches come: minutes, into the table of results/ unless ARGS say otherwise.
bench-search: $O/tests/bench_search
	$(Q)$O/tests/bench_search $(or $(ARGS),-o results/tables/search.tsv)

# The table of results/: make bench-exact ARGS='-o results/tables/exact.tsv'
bench-exact: $O/tests/bench_exact
	$(Q)$O/tests/bench_exact $(ARGS)

$O/tests/bench_%: $O/tests/bench_%.o $O/libmemplan.a | build/data
	$(Q)$(CC) $(CFLAGS) $(LINK) -o $@ $^ $(LDLIBS)

# Plan time against the number of buffers, of every planner of lists: a table and its figure.
bench-speed: all $O/tests/bench_speed
	$(Q)scripts/bench-speed.sh $O/tests/bench_speed

# A suite of 200 shards on a Slurm of one node, and by GNU parallel; one worker is killed twice.
cluster-test: deps-test $O/memplan
	$(Q)scripts/cluster/test.sh $O/memplan

# Adds a planner, a graph, an operator and a backend as the ADDING.md pages say, in a copy of the tree.
follow-docs: deps
	$(Q)MODE=$(MODE) scripts/follow-docs.sh $B/follow-docs

# Plans from builds by gcc -O0, gcc -O3 and clang, and from 100 runs of one of them, must be the same bytes. PLAN_BUILDS="build/debug
# build/release": those, which are there, instead of gcc -O0's and -O3's; clang then optimises what plans alone.
PLAN_RUNS ?= 100
determinism: deps-test
	$(Q)scripts/determinism.sh $B/determinism $(PLAN_RUNS) $(PLAN_BUILDS)

# ilp against exact: 1,000 problems of at most 20 buffers, a third above their bound, and 3,000 refutations.
ilp-oracle: deps-test $O/tests/test_planners_ilp
	$(Q)$< 1000 3000

# A million changed certificates and plans: what a false claim needs must never be accepted.
certify-mutations: deps-test $O/tests/test_planners_certify $O/tests/test_planners_certify_general
	$(Q)MPL_MUTANTS=1000000 $O/tests/test_planners_certify
	$(Q)MPL_MUTANTS=1000000 $O/tests/test_planners_certify_general

# Two checkers that share no code, of a million certificates true, changed and forged; and faults that the tests must notice.
certificates: deps-test $O/tests/test_planners_forgeries
	$(Q)MPL_FORGERIES=$${MPL_FORGERIES-1000000} $O/tests/test_planners_forgeries
certificates-planted: deps-test $O/tests/test_planners_certify $O/tests/test_planners_certify_general $O/tests/test_planners_forgeries
	$(Q)scripts/plant-certify.sh $O

# What is claimed with a figure, run once more: asked, reached, met or not; into results/tables/claims.tsv unless ONLY=PATTERN.
claims: deps-test all $(TESTBIN) $O/tests/bench_speed $O/tests/bench_exact $O/tests/bench_parallel
	$(Q)scripts/claims.sh $B/memplan $O/tests '$(ONLY)'

# All of results/ and the numbers of PAPER.md and results/APPENDIX.md, measured anew; and whether they are what the committed rows make.
paper: deps-paper all $O/tests/bench_speed $O/tests/bench_exact
	$(Q)scripts/paper.sh $O/memplan $O/tests/bench_speed $O/tests/bench_exact
# memplan least on 55 cases: the rows of results/paper/least.suite alone.
least-55: all
	$(Q)ONLY=least scripts/paper.sh $O/memplan - -
# The instance library, results/instances.tsv: each line of its suite planned and certified; the same of the lines that are there,
# which must not differ but in time. ONLY=PATTERN: of lines whose name matches.
instances: $O/memplan
	$(Q)scripts/instances.sh $< make '$(ONLY)'
instances-check: $O/memplan
	$(Q)scripts/instances.sh $< check '$(ONLY)'
# Other toolkits beside memplan, where PYTHON has them or PEERS names a folder or program (scripts/peers/README.md):
# make peers PYTHON=peers/bin/python PEERS='--peer minimalloc=PATH'
PYTHON ?= python3
peers: $O/memplan
	$(Q)$(PYTHON) scripts/peers/all.py --memplan $O/memplan $(PEERS)

# The long forms of what CI runs in short ones, into results/reliability.csv; PARTS names some. Goes on where it was interrupted.
RELIABLE := $(addprefix $O/tests/test_,planners_verify planners_judge planners_exact planners_ilp planners_certify planners_certify_general \
    graphs_views runtime_views runtime_random_control runtime_workers harness_memory harness_kills planners_forgeries harness_audit_walk)
reliability: deps-test all $(FUZZBIN) $(RELIABLE)
	$(Q)scripts/reliability.sh $O $B/fuzz $(PARTS)

paper-check: $O/memplan
	$(Q)$O/memplan paper --check
	$(Q)$O/memplan audit --compared 100000 results/raw/*.jsonl

docs: $O/memplan
	$(Q)$O/memplan list fields >results/SCHEMA.md && $O/memplan list options >harness/cli/OPTIONS.md

# install-into FOLDER,PREFIX: FOLDER is PREFIX, or PREFIX within what a packager collects.
define install-into
	$(Q)install -D $O/memplan "$1/bin/memplan"
	$(Q)mkdir -p "$1/share/man/man1" && $O/memplan list man >"$1/share/man/man1/memplan.1"
	$(Q)install -D -m 644 harness/lib/memplan.h "$1/include/memplan.h"
	$(Q)install -D -m 644 harness/lib/plugin.h "$1/include/memplan/plugin.h"
	$(Q)install -D -m 644 graphs/ops/user/operators.h "$1/include/memplan/operators.h"
	$(Q)install -D $(SO) "$1/lib/libmemplan.so.$(VERSION)"
	$(Q)ln -sf libmemplan.so.$(VERSION) "$1/lib/$(SONAME)" && ln -sf $(SONAME) "$1/lib/libmemplan.so"
	$(Q)install -D -m 644 $O/lib/libmemplan.a "$1/lib/libmemplan.a"
	$(Q)mkdir -p "$1/lib/pkgconfig" && printf '%s\n' 'prefix=$2' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' \
	    'Name: memplan' 'Description: plans the memory of neural networks' 'Version: $(VERSION)' \
	    'Cflags: -I"$${includedir}"' 'Libs: -L"$${libdir}" -lmemplan' 'Libs.private: $(LIBLIBS)' \
	    >"$1/lib/pkgconfig/memplan.pc"
	$(Q)install -D -m 644 -t "$1/share/doc/memplan" planners/example/first_fit_plugin.c graphs/ops/user/example/delay.c
	$(Q)install -D -m 644 -t "$1/share/doc/memplan" harness/lib/example/library.c harness/lib/example/eager.c
endef

install: all $O/lib/libmemplan.a
	$(call install-into,$(DESTDIR)$(PREFIX),$(PREFIX))

# What the test of the libraries builds: the example against what stands installed, by either library.
$O/prefix/installed: $O/memplan $(SO) $O/lib/libmemplan.a harness/lib/memplan.h $(wildcard harness/lib/example/*.c) Makefile
	$(call install-into,$(abspath $O/prefix),$(abspath $O/prefix))
	$(Q)touch $@
PC = PKG_CONFIG_PATH=$O/prefix/lib/pkgconfig pkg-config
$O/example/eager: SOURCE := eager
$O/example/by_so $O/example/eager: $O/prefix/installed
	$(Q)mkdir -p $(@D) && $(CC) $(FLAGS_$(MODE)) $(WARN) -o $@ $O/prefix/share/doc/memplan/$(or $(SOURCE),library).c \
	    $$($(PC) --cflags --libs memplan) -Wl,-rpath,$(abspath $O/prefix/lib)
$O/example/by_a: $O/prefix/installed
	$(Q)mkdir -p $(@D) && $(CC) $(FLAGS_$(MODE)) $(WARN) -o $@ $O/prefix/share/doc/memplan/library.c \
	    $$($(PC) --cflags --static --libs memplan | sed 's/-lmemplan/-l:libmemplan.a/')
$O/tests/test_harness_alone: | $O/prefix/installed
$O/tests/test_harness_library: | $O/example/by_so $O/example/by_a $O/example/eager

# DT_RPATH, not RUNPATH: it also serves the libraries that our libraries need. The tests of backends go along: the
# machine with the GPU may be able to build nothing.
BUNDLED := $(addprefix $O/tests/test_runtime_,ops exec conformance)
bundle: deps-test $(OBJ) $(BUNDLED)
	$(Q)rm -rf $B/bundle && mkdir -p $B/bundle/lib $B/bundle/bin
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $B/bundle/memplan $(filter %.o,$^) $(LDLIBS) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/lib'
	$(Q)install $(BUNDLED) $B/bundle/bin && install scripts/gpu-check.sh $B/bundle
	$(Q)scripts/bundle-libs.sh $B/bundle

# A wheel for Python, in dist/: the program and the library with what they need of igraph inside, beside them copies of the small libraries
# that are left; no oneDNN, so `run` has the backend ref alone.
WHEEL    := $B/wheel/memplan/native
WHEELREF := $(addprefix --redefine-sym=,$(foreach s,stdin stdout stderr,$s=memplan_$s))
WHEELLIB := -Wl,--gc-sections,--as-needed,--disable-new-dtags,-rpath,'$$ORIGIN/lib' -L$B/wheel -Wl,-Bstatic -ligraph -ljansson -lprotobuf-c \
    -Wl,-Bdynamic $(filter-out -ligraph -ljansson -lprotobuf-c -ldnnl -lgomp,$(LDLIBS))
wheel: deps-test $(OBJ) $(LIBOBJ) $O/harness/python/alone.o
	$(Q)rm -rf $B/wheel dist/memplan-*.whl && mkdir -p $(WHEEL)/lib && cp -r harness/python/memplan $B/wheel
	$(Q)for a in igraph jansson; do objcopy $(WHEELREF) "$$($(CC) -print-file-name=lib$$a.a)" $B/wheel/lib$$a.a || exit 1; done
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME),-z,defs,--version-script=harness/lib/memplan.map \
	    -o $(WHEEL)/libmemplan.so $(LIBOBJ) $O/harness/python/alone.o $(WHEELLIB)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $(WHEEL)/memplan $(filter-out $O/runtime/cpu/cpu%,$(OBJ)) $O/harness/python/alone.o $(WHEELLIB)
	$(Q)strip $(WHEEL)/memplan $(WHEEL)/libmemplan.so && scripts/bundle-libs.sh $(WHEEL)
	$(Q)python3 harness/python/make_wheel.py $B/wheel $(VERSION) dist
wheel-test: deps-test ; $(Q)scripts/wheel-test.sh $(MODE)

# How large, how dense and how tangled the house is: to be compared before and after what changes it.
measure-house: $O/memplan
	$(Q)scripts/measure-house.sh $O

lint: ; $(Q)scripts/lint.sh
format: ; $(Q)clang-format -i $(shell git ls-files '*.c' '*.h')

clean: ; $(Q)rm -rf $B
