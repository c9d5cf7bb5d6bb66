# lpgemm. `make help` lists the targets. Everything is built under $(BUILD), which git ignores.

# ---- what you may set ----

CUDA ?= auto#            0, 1 or auto: the CUDA backend if nvcc is found
ARCHS ?=#                "80 86 89 90a"; default: the GPUs of this machine, else 80 and 90a
ONLY ?=#                 one kernel family, for a short build while working on it
EXPERIMENTAL ?= 0#       1: also the kernels that are experiments (table lookup on the GPU)
DEBUG ?= 0#              1: no optimisation, with symbols
SAN ?=#                  sanitizers for the host code
NVCC_OPT ?= -O3#         of kernels; with '-O3 --Ofast-compile mid' they compile faster and run slower
V ?= 0#                  1: show the commands
FUZZ_SECONDS ?= 60
BUILD ?= build
CFLAGS ?= $(if $(filter 1,$(DEBUG)),-O0 -g,-O3)
GGML_ISA ?= native#       of make ggml-compare: native or avx2
GGML_SOURCE ?=#          of make ggml: a tree of llama.cpp whose headers it takes; default: the one from PyPI
WERROR ?= -Werror
PYTHON ?= python3
TORCH_PYTHON ?= $(PYTHON)#       the Python that has torch, for make torch and make torch-check
CUDA_HOME ?= /usr/local/cuda
PREFIX ?= /usr/local
override PREFIX := $(PREFIX:%/=%)# a slash at its end would be in the way of pkg-config's ${prefix}
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR ?= $(PREFIX)/bin

# ---- what follows from it ----

VERSION := $(shell awk '/define LPGEMM_VERSION_(MAJOR|MINOR|PATCH) / {printf "%s%s", dot, $$3; dot = "."}' include/lpgemm.h)
COMMIT := $(or $(if $(wildcard .git),$(shell git describe --always --dirty 2>/dev/null)),unknown)
MACHINE := $(shell $(CC) -dumpmachine)
OBJ := $(BUILD)/obj
LIB := $(BUILD)/liblpgemm.a
# What programs that were linked with another version may not load: docs/engines.md has the rule.
ABI := $(if $(filter 0.%,$(VERSION)),$(basename $(VERSION)),$(firstword $(subst ., ,$(VERSION))))
SONAME := liblpgemm.so.$(ABI)
SHARED := $(BUILD)/liblpgemm.so.$(VERSION)

# A struct starts as {sizeof s}: that is no missing initialiser.
WARNINGS = -Wall -Wextra -Wpedantic -Wconversion -Wno-missing-field-initializers $(WERROR)
INCLUDES = -D_POSIX_C_SOURCE=200809L -Iinclude -Isrc
FLAGS = $(CPPFLAGS) $(INCLUDES) $(if $(filter 1,$(EXPERIMENTAL)),-DLPG_EXPERIMENTAL) $(if $(SIMT),-DLPG_SIMT) $(if $(LATER_X86),-DLPG_HAVE_LATER_X86) $(if $(HAVE_CUDA),-DLPG_HAVE_CUDA -isystem $(CUDA_INCLUDE)) -std=c11 $(CFLAGS) -fPIC -fvisibility=hidden -ffp-contract=off $(WARNINGS) \
        $(if $(SAN),-fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=$(SAN))
COMPILE = $(CC) $(FLAGS) -MMD -MP -c $< -o $@
LINK = $(CC) $(LDFLAGS) $(if $(SAN),-fsanitize=$(SAN)) $^ $(if $(HAVE_CUDA),$(CUDA_LIBS)) $(LIBS) -lm -lpthread -o $@
SUBMAKE = +@$(MAKE) --no-print-directory
Q := $(if $(filter 0,$(V)),@)
say = $(if $(filter 0,$(V)),@mkdir -p $(@D) && echo '  $(1)	$(2)',@mkdir -p $(@D))

# ---- CUDA: which compiler, which architectures ----

NVCC := $(if $(filter 0,$(CUDA)),,$(or $(shell command -v nvcc),$(firstword \
          $(wildcard $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc))))
ifeq ($(CUDA)$(NVCC),1)
$(error CUDA=1, but nvcc is not on PATH, in $(CUDA_HOME)/bin or in /usr/local/cuda/bin: set CUDA_HOME, or CUDA=0)
endif
ifneq ($(NVCC),)
GPUS := $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -u)
CUDA_ARCHS := $(or $(ARCHS),$(GPUS:90=90a),80 90a)
CUDA_INCLUDE := $(abspath $(dir $(NVCC))../include)
CUDA_LIBS = -L$(abspath $(dir $(NVCC))../lib64) -lcudart_static -ldl -lrt
GENCODE = $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) -gencode arch=compute_80,code=compute_80
COMPRESS := $(if $(shell $(NVCC) --help | grep -e --compress-mode),--compress-mode=size)
NVCC_FLAGS = -std=c++17 $(NVCC_OPT) $(COMPRESS) -Xcompiler -fPIC,-fvisibility=hidden,-fno-threadsafe-statics
NVCC_COMPILE = $(NVCC) $(INCLUDES) $(NVCC_FLAGS) -MMD -MP -c $< -o $@
endif
# Kernels for the emulator of a GPU (tests/simt/), of `make simt`: the host's compiler makes them, with the headers of
# CUDA. Code that runs faster takes it longer than the tests become shorter.
override SIMT := $(filter 1,$(SIMT))
ifneq ($(SIMT),)
GENCODE :=
SIMT_COMPILE = $(CXX) -std=c++17 -O1 $(INCLUDES) -Itests -Itests/simt -isystem $(CUDA_INCLUDE) -fPIC -fvisibility=hidden -ffp-contract=off \
  $(if $(SAN),-fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=$(SAN)) $(1) -MMD -MP -c $< -o $@
NVCC_COMPILE = $(call SIMT_COMPILE,-x c++ -include tests/simt/kernels.h -w)
CUDA_LIBS := -lstdc++
endif

# ---- sources ----

# Goals that compile nothing themselves need no generated sources.
COMPILES := $(filter-out clean help uninstall asan tsan sanitize fuzz simt demo regret lint,$(or $(MAKECMDGOALS),all))
ifneq ($(COMPILES),)
include $(BUILD)/gen/rules.mk
endif

# src/cpu/blocked.c, src/cpu/dot.c, src/cpu/tiles.c and src/lut/lookup.c are one source each for several instruction
# sets; their heads have the flags.
BLOCKED := base $(if $(filter x86_64%,$(MACHINE)),avx2 avx512)
LUT := base $(if $(filter x86_64%,$(MACHINE)),avx2 vbmi) $(if $(filter aarch64%,$(MACHINE)),neon)
ISA_avx2 := -mavx2 -mfma -mf16c
ISA_avx512 := $(ISA_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl
ISA_vbmi := $(ISA_avx512) -mavx512vbmi -mavx512vnni -mgfni
ISA_amx := $(ISA_avx512) -mamx-tile -mamx-bf16
ISA_avxvnni := $(ISA_avx2) -mavxvnni
ISA_neon := -DLPG_LUT_NEON
ISA_dotprod := -march=armv8.2-a+dotprod
# What compilers know since gcc 11 and clang 12.
LATER_X86 := $(if $(filter x86_64%,$(MACHINE)),$(shell $(CC) $(ISA_amx) $(ISA_avxvnni) -E -x c /dev/null >/dev/null 2>&1 && echo 1))
TILES := base $(if $(LATER_X86),amx)
DOT := base $(if $(filter x86_64%,$(MACHINE)),avx2 vbmi) $(if $(LATER_X86),avxvnni) $(if $(filter aarch64%,$(MACHINE)),dotprod)

HAVE_CUDA := $(NVCC)
CU_OBJS := $(patsubst %,$(OBJ)/%.o,$(GEN_CU:%=gen/%) $(wildcard src/*/*.cu src/*/*/*.cu))
SRCS := $(filter-out src/cpu/blocked.c src/cpu/dot.c src/cpu/tiles.c src/lut/lookup.c $(if $(HAVE_CUDA),,src/cuda/%) $(if $(filter 1,$(EXPERIMENTAL)),,src/lut/gpu/%),$(wildcard src/*.c src/*/*.c src/*/*/*.c))
OBJS := $(SRCS:%.c=$(OBJ)/%.o) $(OBJ)/gen/registry.o $(BLOCKED:%=$(OBJ)/src/cpu/blocked_%.o) $(LUT:%=$(OBJ)/src/lut/lookup_%.o) \
  $(DOT:%=$(OBJ)/src/cpu/dot_%.o) $(TILES:%=$(OBJ)/src/cpu/tiles_%.o) $(if $(HAVE_CUDA),$(CU_OBJS))
# The archive exports nothing, so that plugins that contain it do not meet in one process. The shared library exports
# what lpgemm.h declares: sources that define such functions are compiled twice.
DEFINITION := ^[a-z_ *]+[ *]lpgemm_([^i(]|i[^_(])[a-z0-9_]*\(
API := $(shell grep -lE '$(DEFINITION)' $(SRCS))
SHARED_OBJS := $(API:%.c=$(OBJ)/shared/%.o) $(filter-out $(API:%.c=$(OBJ)/%.o),$(OBJS))
# What reads and draws suites of the benchmark is tested too.
SUITE_SRCS := common drawn layers part random_cases shapes suite
SIMT_OBJS := $(if $(SIMT),$(patsubst %,$(OBJ)/tests/simt/%.o,product runtime simt test_simt.cu))
TEST_OBJS := $(OBJ)/gen/every_kernel.o $(patsubst %.c,$(OBJ)/%.o,$(filter-out tests/replay.c $(if $(SIMT),%/test_capture.c %/test_cublas.c) $(if $(filter 1,$(EXPERIMENTAL)),,tests/test_lut_gpu.c),$(wildcard tests/*.c tests/ref/*.c $(if $(HAVE_CUDA),tests/cuda/*.c)))) \
  $(if $(HAVE_CUDA),$(OBJ)/tests/cuda/dequantisers.cu.o) $(SUITE_SRCS:%=$(OBJ)/bench/%.o) $(SIMT_OBJS)
EXAMPLES := $(patsubst %.c,$(BUILD)/%,$(wildcard examples/*.c)) $(BUILD)/examples/block $(BUILD)/examples/parallel
CLI := $(BUILD)/bin/lpgemm-info $(BUILD)/bin/lpgemm-tune $(BUILD)/bin/lpgemm-convert
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: all lib tests examples block parallel cli fuzzers check gpu-check demo regret bench ggml ggml-bench ggml-check ggml-compare ggml-gpu shared-x torch-compare convert-rate lint sanitize asan tsan fuzz simt install uninstall clean help FORCE
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

# ---- the library ----

all: lib $(BUILD)/lpgemm.pc ## build liblpgemm.a and say what it contains
	@echo 'lpgemm $(VERSION) ($(COMMIT)): $(LIB)'
	@echo '  CPU:  $(BLOCKED) $(filter-out $(BLOCKED),$(LUT)) $(filter-out $(BLOCKED) $(LUT),$(DOT)) $(filter amx,$(TILES)) ($(MACHINE))'
	@echo '  CUDA: $(if $(HAVE_CUDA),$(CUDA_ARCHS) with $(NVCC),$(NO_CUDA): CPU backend only)'

NO_CUDA = $(if $(filter 0,$(CUDA)),off,no nvcc)

lib: $(LIB)

$(LIB): $(OBJS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcsD $@ $^

.PHONY: shared wheel torch torch-check
shared: $(SHARED) $(BUILD)/$(SONAME) $(BUILD)/liblpgemm.so ## build liblpgemm.so, which exports what lpgemm.h declares

$(SHARED): $(SHARED_OBJS) $(BUILD)/gen/exports.map
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME),--version-script=$(BUILD)/gen/exports.map,-Bsymbolic,-z,defs $(LDFLAGS) $(SHARED_OBJS) \
	  $(if $(HAVE_CUDA),$(CUDA_LIBS)) -lm -lpthread -o $@

$(BUILD)/$(SONAME) $(BUILD)/liblpgemm.so: $(SHARED)
	$(Q)ln -sf $(<F) $@

# Functions are what the header's names have a parenthesis behind.
$(BUILD)/gen/exports.map: include/lpgemm.h $(BUILD)/config
	$(call say,GEN,$@)
	$(Q){ echo 'LPGEMM_$(ABI) {' && echo 'global:' && $(CC) -E -P -x c $< | grep -o '\<lpgemm_[a-z0-9_]*(' | tr '(' ';' && \
	  echo 'local: *;' && echo '};'; } >$@

$(OBJ)/%.o: %.c $(BUILD)/config
	$(call say,CC,$<)
	$(Q)$(COMPILE)

$(OBJ)/shared/%.o: %.c $(BUILD)/config
	$(call say,CC,$< for $(SONAME))
	$(Q)$(COMPILE) -fvisibility=default

$(OBJ)/gen/%.o: $(BUILD)/gen/%.c $(BUILD)/config
	$(call say,CC,$<)
	$(Q)$(COMPILE)

# For fuzzers clang would take minutes more with UBSan, under which `make asan` runs the products.
PRODUCT_FLAGS = -ffp-contract=fast $(ISA_$*) $(if $(findstring fuzzer,$(SAN)),-fno-sanitize=undefined)

$(OBJ)/src/cpu/blocked_%.o: src/cpu/blocked.c $(BUILD)/config
	$(call say,CC,$< for $*)
	$(Q)$(COMPILE) -DLPG_BLOCKED=$* $(PRODUCT_FLAGS)

# Plain C is for tests alone, and gcc would take a minute and a half for it.
$(OBJ)/src/cpu/dot_%.o: src/cpu/dot.c $(BUILD)/config
	$(call say,CC,$< for $*)
	$(Q)$(COMPILE) -DLPG_DOT=$* $(PRODUCT_FLAGS) $(if $(filter base,$*),-O1)

$(OBJ)/src/cpu/tiles_%.o: src/cpu/tiles.c $(BUILD)/config
	$(call say,CC,$< for $*)
	$(Q)$(COMPILE) -DLPG_TILES=$* $(PRODUCT_FLAGS)

$(OBJ)/src/lut/lookup_%.o: src/lut/lookup.c $(BUILD)/config
	$(call say,CC,$< for $*)
	$(Q)$(COMPILE) -DLPG_LUT=$* $(PRODUCT_FLAGS)

$(OBJ)/%.cu.o: %.cu $(BUILD)/config
	$(call say,$(if $(SIMT),CXX,NVCC),$<)
	$(Q)$(NVCC_COMPILE) $(GENCODE) && $(LOCALIZE)

$(OBJ)/gen/%.cu.o: $(BUILD)/gen/%.cu $(BUILD)/config
	$(call say,$(if $(SIMT),CXX,NVCC),$<)
	$(Q)$(NVCC_COMPILE) $(if $(SIMT),,$(GENCODE_$*)) && $(LOCALIZE)

$(OBJ)/tests/simt/%.o: tests/simt/%.cc $(BUILD)/config
	$(call say,CXX,$<)
	$(Q)$(call SIMT_COMPILE,-O2 $(WARNINGS))

# nvcc makes its host stubs global, and functions of unnamed namespaces weak; the library's symbols all start with
# lpgemm_. Local names of a kernel's length are not kept: they were a tenth of the archive.
LOCALIZE = objcopy -w -L '*__device_stub__*' -L '*_GLOBAL__N_*' -x $@

# The checksum multiplies 64-bit words, which baseline vectors only emulate.
$(OBJ)/src/layouts/packed.o $(OBJ)/shared/src/layouts/packed.o: private FLAGS += -fno-tree-vectorize

# These write the same bytes as their host counterparts: no product may be fused with a sum.
$(OBJ)/src/pack/%.cu.o $(OBJ)/src/import/%.cu.o: private NVCC_FLAGS += -fmad=false

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

# ---- generated: sources, the configuration that every object depends on, what the build says about itself ----

# $(call keep,text) writes text to the target and leaves the target alone if it holds that text already.
comma := ,
define newline


endef
keep = @mkdir -p $(@D) && printf '%b\n' '$(subst $(newline),\n,$(1))' >$@.new && if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

GEN_FLAGS = $(if $(CUDA_ARCHS),--archs "$(CUDA_ARCHS)") $(if $(ONLY),--only "$(ONLY)") $(if $(filter 1,$(EXPERIMENTAL)),--experiments)

$(BUILD)/gen/registry.c $(BUILD)/gen/every_kernel.c $(GEN_CU:%=$(BUILD)/gen/%): $(BUILD)/gen/rules.mk ;

$(BUILD)/gen/rules.mk: tools/gen_kernels.py $(BUILD)/gen.config
	$(call say,GEN,$@)
	$(Q)$(PYTHON) $< --out $(@D) $(GEN_FLAGS) && touch $@

$(BUILD)/gen.config: FORCE
	$(call keep,$(GEN_FLAGS))

$(BUILD)/config: FORCE
	$(call keep,$(COMPILER)$(newline)$(CC) $(FLAGS)$(newline)$(if $(HAVE_CUDA),$(NVCC_COMPILE) $(GENCODE)))

COMPILER := $(shell $(CC) --version | head -n 1)

$(BUILD)/build_info.h: FORCE
	$(call keep,$(BUILD_INFO))

define BUILD_INFO
#define LPG_COMMIT "$(COMMIT)"
#define LPG_BACKENDS "cpu$(if $(HAVE_CUDA), cuda)"
#define LPG_ARCHS "$(if $(HAVE_CUDA),$(CUDA_ARCHS),none)"
#define LPG_ISA "$(BLOCKED) $(filter-out $(BLOCKED),$(LUT)) $(filter-out $(BLOCKED) $(LUT),$(DOT)) $(filter amx,$(TILES))"
#define LPG_COMPILER "$(COMPILER)"
endef

$(OBJ)/src/build_info.o $(OBJ)/shared/src/build_info.o: $(BUILD)/build_info.h
$(OBJ)/src/build_info.o $(OBJ)/shared/src/build_info.o: private INCLUDES += -I$(BUILD)

# ---- programs ----

tests: $(BUILD)/lpgemm-tests $(CLI) $(BUILD)/examples/parallel
examples: $(EXAMPLES)
block: $(BUILD)/examples/block ## build a whole decoder block, the end-to-end example
parallel: $(BUILD)/examples/parallel ## build a decoder block on several GPUs: tensor parallelism through NCCL
cli: $(CLI) ## build lpgemm-info, lpgemm-tune and lpgemm-convert
fuzzers: $(FUZZERS:%=$(BUILD)/%) $(BUILD)/seeds

$(BUILD)/lpgemm-tests: $(TEST_OBJS) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK)

$(BUILD)/replay: $(OBJ)/tests/replay.o $(OBJ)/tests/devices.o $(OBJ)/gen/every_kernel.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK)

$(BUILD)/examples/%: $(OBJ)/examples/%.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK)

BLOCK_SRCS := $(filter-out $(if $(HAVE_CUDA),,%_cuda.c %_cublas.c),$(wildcard examples/block/*.c))
BLOCK_CU := $(if $(HAVE_CUDA),$(wildcard examples/block/*.cu))
$(BUILD)/examples/block: $(BLOCK_SRCS:%.c=$(OBJ)/%.o) $(BLOCK_CU:%=$(OBJ)/%.o) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK)

# It has the block, but not what main.c and run_*.c do with one.
PARALLEL_SRCS := $(filter-out $(if $(HAVE_CUDA),,%_cuda.c %nccl.c),$(wildcard examples/parallel/*.c)) \
  $(filter-out %/main.c %/run_cpu.c %/run_cuda.c %/reference_cublas.c,$(BLOCK_SRCS))
PARALLEL_CU := $(if $(HAVE_CUDA),$(wildcard examples/parallel/*.cu)) $(BLOCK_CU)
$(BUILD)/examples/parallel: $(PARALLEL_SRCS:%.c=$(OBJ)/%.o) $(PARALLEL_CU:%=$(OBJ)/%.o) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK)

CLI_SHARED := $(patsubst %,$(OBJ)/cli/%.o,common layer measured models)
CONVERT := $(BUILD)/bin/lpgemm-convert
$(filter-out $(CONVERT),$(CLI)): $(BUILD)/bin/lpgemm-%: $(OBJ)/cli/%.o $(CLI_SHARED) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK)

$(CONVERT): $(patsubst %.c,$(OBJ)/%.o,$(wildcard cli/convert*.c)) $(OBJ)/cli/common.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK)

$(FUZZERS:%=$(BUILD)/%): private LIBS = -fsanitize=fuzzer
$(FUZZERS:%=$(BUILD)/%): $(BUILD)/%: $(OBJ)/tests/fuzz/%.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK)

$(BUILD)/seeds: $(OBJ)/tests/fuzz/seeds.o $(OBJ)/tests/fuzz/seeds_files.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK)

# Benchmarks: the only program with a C++ file and the only one that links Google Benchmark. Its archive where there is
# one, else its shared library beside the program, so that the folder can be carried to a GPU machine.
BENCH := $(BUILD)/bench/lpgemm-bench
BENCH_CUDA := $(patsubst %,bench/%.c,bandwidth cublas graph_timer machine_cuda nvml)
BENCH_SRCS := $(filter-out $(if $(HAVE_CUDA),,$(BENCH_CUDA)),$(wildcard bench/*.c)) tests/ref/gemm_ref.c
BENCH_OBJS := $(BENCH_SRCS:%.c=$(OBJ)/%.o) $(OBJ)/bench/gbench.o $(if $(HAVE_CUDA),$(OBJ)/bench/device.cu.o)
GBENCH = $(shell $(CXX) -print-file-name=libbenchmark.a)
GBENCH_STATIC = $(findstring /,$(GBENCH))
GBENCH_LIBS = $(if $(GBENCH_STATIC),-static-libstdc++ -static-libgcc $(GBENCH),\
  $(shell $(CXX) -print-file-name=libbenchmark.so) -Wl$(comma)-rpath$(comma)'$$ORIGIN')

$(OBJ)/bench/record.o: $(BUILD)/build_info.h
$(OBJ)/bench/record.o: private INCLUDES += -I$(BUILD)

$(OBJ)/bench/gbench.o: bench/gbench.cc $(BUILD)/config
	$(call say,CXX,$<)
	$(Q)$(CXX) -std=c++17 -O2 -Wall -Wextra -MMD -MP -c $< -o $@

$(BENCH): $(BENCH_OBJS) $(LIB)
	$(call say,LINK,$@)
	$(Q)rm -f $(@D)/libbenchmark* && $(CXX) -s $^ $(GBENCH_LIBS) $(if $(HAVE_CUDA),$(CUDA_LIBS)) -lm -lpthread -ldl -o $@
	$(if $(GBENCH_STATIC),,$(Q)cp $$(ldd $@ | awk '/libbenchmark/ {print $$3}') $(@D))

$(BUILD)/bench/shared-x: $(OBJ)/bench/shared_x/shared_x.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(LINK)

# ggml: the sources come from PyPI (engines/ggml/get.sh), unless GGML_SOURCE says where llama.cpp is. Its CPU backend
# beside lpgemm's is a program of its own.
GGML := $(BUILD)/ggml
GGML_TREE = $(or $(GGML_SOURCE),$(GGML)/llama.cpp)
GGML_INCLUDES = -isystem $(GGML_TREE)/ggml/include -isystem $(GGML_TREE)/ggml/src
COMPARE := $(BUILD)/bench/ggml-compare-$(GGML_ISA)
COMPARE_OBJS := $(patsubst %.c,$(OBJ)/%.o,$(wildcard bench/ggml/*.c))

$(GGML)/%.built: engines/ggml/get.sh engines/ggml/sources.sha256
	$(call say,GGML,$*)
	$(Q)PYTHON=$(PYTHON) $< $(GGML) $* && touch $@

$(OBJ)/bench/ggml/report.o: $(BUILD)/build_info.h
$(OBJ)/bench/ggml/report.o: private INCLUDES += -I$(BUILD)
$(OBJ)/bench/ggml/ggml_side.o: $(GGML)/$(GGML_ISA).built
$(OBJ)/bench/ggml/ggml_side.o: private INCLUDES += $(GGML_INCLUDES)

GGML_LIBS = $(patsubst %,$(GGML)/$(GGML_ISA)/ggml/src/lib%.a,ggml ggml-cpu ggml-base)
$(COMPARE): $(COMPARE_OBJS) $(LIB) $(GGML)/$(GGML_ISA).built
	$(call say,LINK,$@)
	$(Q)$(CXX) $(COMPARE_OBJS) $(LIB) $(GGML_LIBS) -lm -lpthread -ldl -o $@

# A backend for ggml, which programs load by GGML_BACKEND_PATH; ggml's functions are theirs. It works on OpenMP's threads
# if the compiler has them.
MODULE := $(BUILD)/libggml-lpgemm.so
MODULE_SRCS := $(filter-out $(if $(HAVE_CUDA),,%/gpu.c %/gpu_product.c %/gpu_guest.c),$(wildcard engines/ggml/*.c))
MODULE_OBJS := $(MODULE_SRCS:%.c=$(OBJ)/%.o)
MODULE_CU := $(if $(HAVE_CUDA),$(patsubst %,$(OBJ)/%.o,$(wildcard engines/ggml/*.cu)))
OPENMP = $(shell echo 'int main(void) { return 0; }' | $(CC) -fopenmp -x c - -o /dev/null 2>/dev/null && echo -fopenmp)

$(MODULE_OBJS): $(if $(GGML_SOURCE),,$(GGML)/sources.built)
$(MODULE_OBJS): private INCLUDES += $(GGML_INCLUDES)
$(MODULE_OBJS): private FLAGS += $(or $(OPENMP),-Wno-unknown-pragmas)

$(MODULE): $(MODULE_OBJS) $(MODULE_CU) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LDFLAGS) $(OPENMP) $^ $(if $(HAVE_CUDA),$(CUDA_LIBS)) -lm -lpthread -o $@

# ---- targets that run something ----

STAGE = $(abspath $(BUILD))/stage
check: lib shared wheel tests examples $(BUILD)/replay $(BUILD)/lpgemm.pc ## run every test that needs no GPU
	@rm -rf $(STAGE)
	$(SUBMAKE) install DESTDIR=$(STAGE) PREFIX=/opt/lpgemm LIBDIR=/opt/lpgemm/lib INCLUDEDIR=/opt/lpgemm/include \
	  BINDIR=/opt/lpgemm/bin >/dev/null
	@$(PYTHON) tools/tally.py $(BUILD)/lpgemm-tests '$(PYTHON) tests/lint_layers.py' '$(PYTHON) tests/lint_layers.py --selftest' \
	  '$(PYTHON) tools/gen_kernels.py --selftest' \
	  '$(PYTHON) tools/bench_tables.py --selftest' \
	  '$(PYTHON) tools/sass.py --selftest' \
	  '$(PYTHON) tools/regret.py $(BUILD)/replay --selftest' \
	  'CC="$(CC)" tests/consumer/run.sh $(STAGE) /opt/lpgemm $(BUILD)' \
	  'PYTHON="$(PYTHON)" CC="$(CC)" tests/python/run.sh $(WHEEL) $(BUILD)/python'

# One program, small enough to be carried to the machine with the GPU.
GPU_TESTS = $(BUILD)/gpu/lpgemm-tests
gpu-check: $(GPU_TESTS) ## run every test that needs a GPU; without one, only build them
	@$< --backend cuda

$(GPU_TESTS): $(BUILD)/lpgemm-tests
	$(call say,STRIP,$@)
	$(Q)strip -o $@ $<

CPU_BUILD = $(BUILD)$(if $(HAVE_CUDA),/cpu)
demo: ## pack and run one layer of every kind of weight and print a table (compiles nothing for CUDA)
	$(SUBMAKE) CUDA=0 BUILD=$(CPU_BUILD) $(CPU_BUILD)/examples/demo
	@$(CPU_BUILD)/examples/demo
	@echo 'A whole decoder block, on the GPU inside CUDA graphs and beside cuBLAS: make block'

regret: ## replay the choice of kernels over recorded times: perhaps RECORDS='file ...' (compiles nothing for CUDA)
	$(SUBMAKE) CUDA=0 BUILD=$(CPU_BUILD) $(CPU_BUILD)/replay
	@$(PYTHON) tools/regret.py $(CPU_BUILD)/replay $(RECORDS)

bench: $(BENCH) ## time a suite: SUITE=cpu, perhaps FILTER=regex, BACKEND=cpu, RECORD=file (needs Google Benchmark)
	@$< --suite $(or $(SUITE),$(error SUITE is needed: one of $(basename $(notdir $(wildcard bench/suites/*.txt))))) \
	  $(if $(FILTER),--filter '$(FILTER)') $(if $(BACKEND),--backend $(BACKEND)) $(if $(RECORD),--record '$(RECORD)')

shared-x: $(BUILD)/bench/shared-x ## time q, k and v, and gate and up, with and without lpgemm_prepare_x(): perhaps RECORD=file
	@$< $(RECORD)

ggml-compare: $(COMPARE) ## time the CPU backend beside ggml's: perhaps ARGS='--rows 1,4 --types q4_0', GGML_ISA=avx2, RECORD=file (downloads 77 MB)
	@$< $(ARGS) $(if $(RECORD),--record '$(RECORD)')

torch-compare: $(WHEEL) $(BUILD)/bench/read.so ## time the CPU backend beside torch's and beside memory, with TORCH_PYTHON: perhaps ARGS='--rows 1', RECORD=file
	@rm -rf $(BUILD)/bench/python && $(PYTHON) -m zipfile -e $(WHEEL) $(BUILD)/bench/python
	@LPGEMM_COMMIT=$${LPGEMM_COMMIT:-$(COMMIT)} PYTHONPATH=$(BUILD)/bench/python PYTHONDONTWRITEBYTECODE=1 \
	  $(TORCH_PYTHON) bench/torch/compare.py $(BUILD)/bench/read.so $(if $(RECORD),--record '$(RECORD)') $(ARGS)

$(BUILD)/bench/read.so: bench/torch/read.c
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=c11 -O3 -march=native -fPIC -shared -Wall -Wextra -Wpedantic -Wconversion $(WERROR) $< -o $@

ggml: $(MODULE) ## build libggml-lpgemm.so, a backend for ggml and llama.cpp (downloads 77 MB without GGML_SOURCE)

ggml-check: $(MODULE) ## run ggml's tests on that backend, then small Llamas (downloads and builds ggml; SHORT=1: only MUL_MAT)
	@CC='$(CC)' CXX='$(CXX)' PYTHON='$(PYTHON)' engines/ggml/check.sh $(GGML) $(abspath $(MODULE)) $(if $(SHORT),short)

ggml-gpu: $(MODULE) ## gather what ggml's tests need on a machine with a GPU in $(BUILD)/gpu/ggml (downloads and builds ggml)
	@CC='$(CC)' CXX='$(CXX)' PYTHON='$(PYTHON)' engines/ggml/carry.sh $(GGML) $(MODULE) $(BUILD)/gpu/ggml

ggml-bench: $(MODULE) ## run llama-bench with that backend beside stock: RECORD=file, perhaps ARGS='--threads 1,8' (downloads and builds llama.cpp)
	@PYTHON='$(PYTHON)' engines/ggml/get.sh $(GGML) shared ggml ggml-base ggml-cpu llama llama-bench
	@engines/ggml/program.sh $(GGML) shared $(GGML)/model engines/ggml/check/model.c -lggml-base $(CC) -std=c11 -O2
	@LPGEMM_COMMIT=$${LPGEMM_COMMIT:-$(COMMIT)} $(PYTHON) engines/ggml/bench.py $(GGML) $(abspath $(MODULE)) $(or $(RECORD),$(GGML)/bench.json) $(ARGS)

convert-rate: $(CONVERT) ## time lpgemm-convert on models of 8 billion weights (12 GB of disk, 6 GB of /dev/shm): RATE='awq --layers 4'
	@$(PYTHON) tests/convert_rate.py $< $(RATE)

lint: $(BUILD)/build_info.h ## check format, includes and naming, and run clang-tidy
	clang-format --dry-run -Werror $$(find include src tests bench examples cli engines -regex '.*\.\(h\|c\|cc\|cpp\|cu\|cuh\)')
	printf '%s\n' $(SRCS) src/cpu/blocked.c src/cpu/dot.c src/cpu/tiles.c src/lut/lookup.c | xargs -P $$(nproc) -I@ clang-tidy --quiet @ -- -std=c11 $(INCLUDES) \
	  -I$(BUILD) $(if $(HAVE_CUDA),-DLPG_HAVE_CUDA -isystem $(CUDA_INCLUDE)) -DLPG_BLOCKED=base -DLPG_TILES=base -DLPG_DOT=base -DLPG_LUT=base 2>/dev/null
	$(PYTHON) tests/lint_layers.py
	@echo 'lint: clean'

sanitize: asan tsan ## run every test under ASan and UBSan, and the thread tests under TSan
	@echo 'sanitize: clean'
asan: SANITIZERS = address,undefined
tsan: SANITIZERS = thread
asan tsan:
	$(SUBMAKE) CUDA=0 BUILD=$(BUILD)/$@ SAN=$(SANITIZERS) CFLAGS='-O2 -g1' WERROR= tests
	$(BUILD)/$@/lpgemm-tests $(if $(filter tsan,$@),threads)

fuzz: ## fuzz blobs, tuning files and checkpoint files, FUZZ_SECONDS each (needs clang)
	@command -v clang >/dev/null || { echo 'make fuzz needs clang with libFuzzer, and clang is not on PATH'; exit 1; }
	$(SUBMAKE) CUDA=0 CC=clang BUILD=$(BUILD)/fuzz SAN=fuzzer-no-link,address,undefined CFLAGS='-O2 -g1' fuzzers
	tests/fuzz/run.sh $(BUILD)/fuzz $(FUZZ_SECONDS) $(FUZZERS)

# A kernel of each family, and suites that have them all in a few minutes.
SIMT_KERNELS ?= gemm.u4.bf16.* gemm8.u4.i8.* gemv.u4.bf16.* stripe.u4.f16.* dequant.any.bf16.* fan*.u4.bf16.* segment.u4.bf16.* gemv1.u1.i8.* skinny8.u2.*
SIMT_TESTS ?= simt/ epilogue/ gemm_family/ends k_quants/exact/q4_k/bf16 gemm8/shape gemm/edge one_row/u4/bf16 experts/grouped/segments experts_layer/ quantize/ pieces/ import_device/
simt: ## run CUDA kernels on the CPU, by an emulator (needs nvcc's headers): SAN=address; or SIMT_KERNELS='gemm.u8.*' with SIMT_TESTS='gemm/exact'
ifneq ($(and $(HAVE_CUDA),$(filter x86_64%,$(MACHINE))),)
	$(SUBMAKE) SIMT=1 ARCHS=90a ONLY='$(SIMT_KERNELS)' BUILD=$(BUILD)/simt CFLAGS=-O1 $(BUILD)/simt/lpgemm-tests
	@$(PYTHON) tools/tally.py $(foreach t,$(SIMT_TESTS),'$(BUILD)/simt/lpgemm-tests --backend cuda $(t)')
else
	@echo 'skip make simt: it needs nvcc, for its headers, and x86-64'
	@echo '0 passed, 0 failed, 1 skipped'
endif

.PHONY: golden
golden: tests ## write tests/golden/ anew: which cases are drawn, which kernels GPUs that are not here take for what, and their plans
	LPGEMM_TEST_GOLDEN=write $(BUILD)/lpgemm-tests dispatch/mapping/golden
	LPGEMM_TEST_GOLDEN=write $(BUILD)/lpgemm-tests bench_drawn/golden

# ---- packaging ----

# The wheel takes the library as it is built: with CUDA, or without.
WHEEL_PLATFORM ?= linux_$(firstword $(subst -, ,$(MACHINE)))
WHEEL := $(BUILD)/lpgemm-$(VERSION)-py3-none-$(WHEEL_PLATFORM).whl
wheel: $(WHEEL) ## build the Python package, which carries liblpgemm.so

$(WHEEL): $(SHARED) include/lpgemm.h tools/make_wheel.py LICENSE $(wildcard python/lpgemm/*.py)
	$(call say,WHEEL,$@)
	$(Q)strip --strip-unneeded -o $(BUILD)/wheel.so $(SHARED)
	$(Q)$(PYTHON) tools/make_wheel.py --library $(BUILD)/wheel.so --header include/lpgemm.h --version $(VERSION) \
	  --platform $(WHEEL_PLATFORM) --out $(@D) >/dev/null

# The operators for PyTorch, and a wheel with them: one library for every torch from 2.10 on. What it needs (libtorch.so,
# and the wheel's liblpgemm.so) is loaded already when the package loads it.
TORCH := $(BUILD)/torch
TORCH_OPS := $(TORCH)/liblpgemm_torch.so
TORCH_WHEEL := $(TORCH)/$(notdir $(WHEEL))
TORCH_HOME = $(shell $(TORCH_PYTHON) -c 'import importlib.util as u, os; print(os.path.dirname(u.find_spec("torch").origin))')
TORCH_FLAGS = -std=c++17 -O2 -fPIC -fvisibility=hidden -Wall -Wextra $(WERROR) -DTORCH_TARGET_VERSION=0x020a000000000000
torch: $(TORCH)/lpgemm/__init__.py ## build the PyTorch extension and unpack its wheel in $(BUILD)/torch: perhaps TORCH_PYTHON=python3

$(TORCH_OPS): engines/torch/ops.cpp $(SHARED) $(BUILD)/$(SONAME) $(BUILD)/liblpgemm.so
	$(call say,CXX,$@)
	$(Q)$(CXX) $(TORCH_FLAGS) -shared -Iinclude -isystem $(TORCH_HOME)/include $< -L$(BUILD) -llpgemm \
	  -L$(TORCH_HOME)/lib -Wl,--no-as-needed -ltorch -o $@

$(TORCH_WHEEL): $(WHEEL) $(TORCH_OPS) $(wildcard engines/torch/package/*.py)
	$(call say,WHEEL,$@)
	$(Q)strip --strip-unneeded -o $(TORCH)/wheel.so $(TORCH_OPS)
	$(Q)$(PYTHON) tools/make_wheel.py --library $(BUILD)/wheel.so --header include/lpgemm.h --version $(VERSION) \
	  --platform $(WHEEL_PLATFORM) --torch $(TORCH)/wheel.so --out $(@D) >/dev/null

$(TORCH)/lpgemm/__init__.py: $(TORCH_WHEEL)
	$(Q)rm -rf $(@D) && $(PYTHON) -m zipfile -e $< $(TORCH) && touch $@

torch-check: torch $(CONVERT) ## run the tests of the PyTorch extension: perhaps TORCH_ARGS='--device cuda'
	@LPGEMM_CONVERT=$(CONVERT) PYTHONPATH=$(TORCH) PYTHONDONTWRITEBYTECODE=1 $(TORCH_PYTHON) engines/torch/tests/test_torch.py $(TORCH_ARGS)

$(BUILD)/%: tools/%.in include/lpgemm.h FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR:$(PREFIX)/%=$${prefix}/%)|' \
	  -e 's|@INCLUDEDIR@|$(INCLUDEDIR:$(PREFIX)/%=$${prefix}/%)|' \
	  -e 's|@VERSION@|$(VERSION)|' -e 's|@SONAME@|$(SONAME)|' -e 's|@CUDA_LIBS@|$(if $(HAVE_CUDA),$(CUDA_LIBS))|' \
	  -e 's|@LIB_TO_INCLUDE@|$(shell realpath -ms --relative-to=$(LIBDIR) $(INCLUDEDIR))|' $< >$@

CMAKE_FILES = lpgemmConfig.cmake lpgemmConfigVersion.cmake
PC_FILES = lpgemm.pc lpgemm-shared.pc
install: lib shared cli $(PC_FILES:%=$(BUILD)/%) $(CMAKE_FILES:%=$(BUILD)/%) ## install under DESTDIR and PREFIX
	install -d $(DESTDIR)$(INCLUDEDIR) $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(LIBDIR)/cmake/lpgemm
	install -m 755 $(CLI) $(DESTDIR)$(BINDIR)/
	install -m 644 include/lpgemm.h $(DESTDIR)$(INCLUDEDIR)/
	install -m 644 $(LIB) $(DESTDIR)$(LIBDIR)/
	install -m 755 $(SHARED) $(DESTDIR)$(LIBDIR)/
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/liblpgemm.so
	install -m 644 $(PC_FILES:%=$(BUILD)/%) $(DESTDIR)$(LIBDIR)/pkgconfig/
	install -m 644 $(CMAKE_FILES:%=$(BUILD)/%) $(DESTDIR)$(LIBDIR)/cmake/lpgemm/

uninstall: ## remove what install has put there
	rm -f $(DESTDIR)$(INCLUDEDIR)/lpgemm.h $(PC_FILES:%=$(DESTDIR)$(LIBDIR)/pkgconfig/%)
	rm -f $(patsubst %,$(DESTDIR)$(LIBDIR)/%,liblpgemm.a liblpgemm.so $(SONAME) $(notdir $(SHARED)))
	rm -f $(CLI:$(BUILD)/bin/%=$(DESTDIR)$(BINDIR)/%)
	rm -rf $(DESTDIR)$(LIBDIR)/cmake/lpgemm

clean: ## remove $(BUILD)
	rm -rf $(BUILD)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo 'variables:' && sed -n 's/^\([A-Z_]* ?=.*\)$$/  \1/p' $(firstword $(MAKEFILE_LIST)) | sed 's/ *#  */  # /'
