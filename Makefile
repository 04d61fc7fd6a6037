# make help lists the targets.
.DEFAULT_GOAL := build
GO ?= go

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

.PHONY: build
build: ## build the static binary ./toll
	CGO_ENABLED=0 GOGC=400 $(GO) build -trimpath -ldflags '-s -w' -o toll ./cmd/toll

# All is built without cgo, as toll is: once, and static, which tests in containers need. Only the race detector takes cgo.
export CGO_ENABLED = 0
export TOLL_HISTORY = off
# A comment behind a value would leave a blank at its end.
# Tests share the CPUs.
export TOLL_BUSY = yes
# What another clone or worktree has compiled is not compiled again.
export GOFLAGS := $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath
# toll starts many programs, each of which would end a second late.
RACE = CGO_ENABLED=1 GORACE=atexit_sleep_ms=0
RACE_TEST = $(RACE) $(GO) test -race -vet=off -timeout 20m # make lint vets
FRESH = -count=1 # what depends on more than its files is no result for another day

# Tests that wait for processes, daemons and namespaces beside others on two cores: one that fails is run once more, by itself, and
# make test prints it. More than AGAIN_MOST of them in all, a data race or a panic fail at once. The arguments: packages, flags.
AGAIN_MOST = 2
again = $(GO) run gotest.tools/gotestsum@v1.13.0 --format pkgname-and-test-fails --hide-summary=skipped --no-color --rerun-fails=1 \
	--rerun-fails-max-failures=10 --rerun-fails-abort-on-data-race --rerun-fails-report="$${TOLL_TEST_AGAIN:+$$(mktemp "$$TOLL_TEST_AGAIN/again.XXXXXX")}" \
	--packages='$(strip $(1))' -- -vet=off $(FRESH) $(2)

.PHONY: check
check: lint ## formatting, vet, staticcheck, golangci-lint, the layers, the pure packages, toll without a kernel: a minute; needs neither root nor Docker
	$(GO) test -vet=off $(FRESH) ./internal # what the go command tells it of the packages is in no cache
	$(GO) test -vet=off $(filter-out ./internal $(STARTING),$(call packages,$(PURE)))
	$(GO) test -vet=off -run '$(FAKE)' ./internal/cli
	$(RACE_TEST) -run '^TestKept' ./internal/judge/stats
	$(RACE_TEST) $(filter $(STARTING),$(call packages,$(PURE)))

# No test runs twice: its package is in one of these lists, for the reason given there, or among the others.
.PHONY: test
test: deps ## install what the tests need and run all of them
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && chmod 755 "$$dir" && set -x && \
		$(GO) build -buildvcs=false -ldflags '-s -w' -o "$$dir/toll" ./cmd/toll && \
		export BRIDGETOLL_TEST_TOLL="$$dir/toll" TOLL_TEST_RERUNS="$$dir/reruns" TOLL_TEST_AGAIN="$$dir" && set +x && \
		{ code=0; $(MAKE) --no-print-directory test-linked || code=$$?; echo $$code > "$$dir/code"; } 2>&1 | tee "$$dir/log" && \
		test/summary "$$dir" $(AGAIN_MOST) && exit "$$(cat "$$dir/code")"

# What waits for nothing but a CPU gets what the others leave: the linters, the pure packages, and the VM, whose time passes by
# instructions. Beside that what waits for daemons and namespaces, and after all of it what measures. Of that internal/cli waits more than
# it works, and bounds how many of its tests measure at once; the others take a minute, one package at a time.
IDLE = test-vm check
FIRST = test-places test-faults race $(IDLE:%=idle-%)
LAST = test-toll test-loops
TOGETHER = $(MAKE) -k --no-print-directory --output-sync=target
.PHONY: test-linked $(IDLE:%=idle-%) $(LAST)
test-linked:
	+@code=0; $(TOGETHER) -j 7 $(FIRST) || code=$$?; $(TOGETHER) -j 2 $(LAST) || code=$$?; exit $$code

# make test-kernels, which CI runs on main, has the conformance suite: the longest part of make test-vm.
idle-test-vm: export RARE_TESTS = TestTunesOnEveryMode|TestIngress|TestWireIsDelayed|TestKernelOptionsAreNamed
$(IDLE:%=idle-%): idle-%:
	chrt --idle 0 $(MAKE) --no-print-directory $*

test-toll:
	$(call again,./internal/cli,-parallel 32 -timeout 20m -skip '$(FAKE)|$(TRAFFIC)')

# Each mode and placement is witnessed in the suites of the backends, each load and study in the other scripts.
TRAFFIC = ^TestScripts$$/^(options|outside|published|scale)$$|^TestManual$$/^(compare|ladder|loads|run|scale)$$
.PHONY: test-traffic
test-traffic: deps ## measure further options over further modes and routes, and the manual's examples; no part of make test
	$(GO) test -count=1 -timeout 30m -run '$(TRAFFIC)' ./internal/cli

test-loops:
	$(call again,$(filter-out ./internal/cli %/load,$(QUIET:%=./%)),-p 1 -timeout 20m)
	$(RACE) $(call again,./internal/measure/load,-race -timeout 20m -skip '$(SLICES)')
	$(call again,./internal/measure/load,-timeout 20m -run '$(SLICES)')

# Of internal/cli what is run on a backend without a kernel.
FAKE = ^(TestFakeScripts|TestAbsurdFlags)$$

# They measure by the clock, or bound time and memory: the detector takes more of both; only the slices of load cannot run with it.
QUIET = internal/cli internal/paths/dockerapi internal/measure/load internal/measure/observe internal/measure/program
SLICES = ^TestSlices

# They run their own program in namespaces and containers, where it must be static, and wait more than they work; the longest first.
PLACES = paths/swarm paths/docker paths/lab paths/peer paths/kubernetes reach/fast reach/cases
FAULTS = ^TestFaultAtEachStep$$
.PHONY: test-places test-faults
test-places:
	$(call again,$(PLACES:%=./internal/%),-p 3 -timeout 30m -skip '$(FAULTS)')
test-faults: # of the longest, a third that waits for the kernel
	$(call again,./internal/paths/lab,-timeout 30m -run '$(FAULTS)')

# Their results depend on their input only. The detector sees nothing where nothing starts a goroutine, and takes five times the CPU: it
# runs with those whose code does. What others share between goroutines, kept resamplings, has a test that runs with it, TestKept.
PURE = internal internal/text/... internal/record/... internal/plan internal/judge/... internal/reach/ports internal/show/... \
	internal/measure/sse internal/kernel/firewall internal/paths/path internal/paths/recipe internal/kernel/undo
STARTING = $(shell grep -rlE --include='*.go' --exclude='*_test.go' '^[[:space:]]*go[[:space:]]|\.Go\b' cmd internal test | xargs -n 1 dirname | sort -u | sed 's|^|./|')

OTHERS = $(filter-out $(QUIET:%=./%) $(PLACES:%=./internal/%) $(call packages,$(PURE)),$(call packages,...))
RACED = $(filter-out ./$(BUILD),$(filter $(STARTING),$(OTHERS)))
# The longest, which waits for namespaces and other processes. Each of its goroutines, and each of a copy's, runs in these tests.
BUILD = internal/reach/replica/build
BUILD_RACED = ^(TestPlaces|TestUnsure|TestScan|TestExplain|TestRun|TestRunManyRules|TestRunInBothCopies|TestRunIsRead|TestKilled.*)$$
# Tests that work long in one goroutine. Others of their packages show the detector the same code.
SINGLE = ^(FuzzLoadMachine|TestLoadGrown|TestScanOfAllPorts)$$
.PHONY: race race-build race-single race-starting race-others
race: race-build race-single race-starting race-others ## run the packages that are in no list; those that start goroutines with the race detector
race-build:
	nice $(call again,./$(BUILD),-timeout 20m -skip '$(BUILD_RACED)')
	nice env $(RACE) $(call again,./$(BUILD),-race -timeout 20m -run '$(BUILD_RACED)')
race-single:
	nice $(call again,$(addprefix ./internal/reach/,collect replica/dial),-timeout 20m -run '$(SINGLE)')
race-starting:
	nice env $(RACE) $(call again,$(RACED),-race -timeout 20m -parallel 4 -skip '$(SINGLE)')
race-others:
	nice $(call again,$(filter-out $(STARTING),$(OTHERS)),-timeout 20m -parallel 4)

# packages are those that patterns name, as folders; the one of a language model has a target of its own.
packages = $(shell $(GO) list -f '.{{slice .ImportPath (len .Module.Path)}}' $(1:%=./%) | grep -v '^./test/llm$$')

VM_TESTS ?= # a regexp; empty: modes of which kernels are built without parts
.PHONY: test-vm
test-vm: vm-deps ## run the modes that this kernel may lack under a kernel of Debian in qemu (KERNEL=bookworm-6.12)
	@GO='$(GO)' test/vm/run $(if $(VM_TESTS),'$(VM_TESTS)',-r '$(RARE_TESTS)') || { [ $$? = 77 ] && [ "$$CI" != true ]; } # 77: cannot be run here

KERNELS ?= # names; empty: all that test/vm/kernel -l lists
KERNEL_TESTS ?= TestConformance$$
.PHONY: test-kernels
test-kernels: vm-deps ## run the conformance suite under several of Debian's kernels in qemu; KERNELS='bookworm trixie' chooses them, KERNEL_TESTS the tests
	@GO='$(GO)' KERNELS='$(KERNELS)' test/vm/kernels '$(KERNEL_TESTS)' || { [ $$? = 77 ] && [ "$$CI" != true ]; }

.PHONY: test-vm-bpf
test-vm-bpf: vm-deps ## load and try the BPF programs of toll fast and toll trace, what follows requests and trips, and copies with VLANs, under several of Debian's kernels in qemu; KERNELS chooses them; and the filter of system calls for arm64
	@$(call install,qemu-user)
	BRIDGETOLL_TEST_ARM64=1 $(GO) test -count=1 -run TestFilterOfARM64 ./internal/reach/replica/jail
	@for k in $(or $(KERNELS),$$(test/vm/kernel -l)); do for p in -f -t -w -o -e -p; do \
		GO='$(GO)' KERNEL=$$k test/vm/run $$p || { code=$$?; [ $$code = 77 ] && [ "$$CI" != true ]; } || exit; done; done

CHURN ?= 60
.PHONY: test-fast-clients
test-fast-clients: deps ## real programs with toll fast and without, installed here, and containers that come and go CHURN times; no part of make test; ENGINES as below
	@$(call install,$(CLIENT_DEPS))
	BRIDGETOLL_TEST_FAST_CLIENTS=1 BRIDGETOLL_TEST_CHURN=$(CHURN) BRIDGETOLL_TEST_FAST_ONLY='(Clients|Loads|Churn)$$' BRIDGETOLL_ENGINES=$(ENGINES) \
		$(GO) test ./internal/reach/fast -count=1 -v -timeout 2h -run TestEngines

.PHONY: test-vm-swarm
test-vm-swarm: deps ## run a swarm of two with routing mesh and encryption there; no part of make test
	@GO='$(GO)' test/vm/run -s || { [ $$? = 77 ] && [ "$$CI" != true ]; }

ENGINES ?= installed
.PHONY: test-docker
test-docker: deps ## build the modes with the installed Docker Engine, and a swarm; ENGINES=all fetches two more from Debian and builds 29
	BRIDGETOLL_ENGINES=$(ENGINES) $(GO) test -p 2 -count=1 -parallel 4 -timeout 40m ./internal/paths/docker ./internal/paths/swarm # they wait more than they work

# On machines of their own with an ordinary user, whose engines these are.
ROOTLESS_ENGINES ?= installed,sid,29,podman
.PHONY: test-rootless
test-rootless: deps ## build the modes with rootless Docker, the installed one, Debian sid's and 29, and Podman 5 and 6, root's and a user's, and find their ports; each is fetched or built once; no part of make test
	BRIDGETOLL_TEST_ROOTLESS=1 BRIDGETOLL_ENGINES=$(ROOTLESS_ENGINES) $(GO) test -p 1 -count=1 -timeout 60m \
		-run '^Test(Machine|Docker|Podman|Rootless.*|RelaysOf.*)$$' ./internal/testing/rootlesstest ./internal/paths/docker ./internal/paths/peer ./internal/reach/cases

# What was run is noted by the tests themselves, once they have passed.
.PHONY: versions
versions: deps ## run the tests of foreign programs and engines, and write the versions that passed to docs/versions.md; KERNELS adds kernels in qemu; no part of make test
	@$(call install,caddy haproxy python3-venv)
	@notes=$$(mktemp) && trap 'rm -f "$$notes"' EXIT && export BRIDGETOLL_TEST_VERSIONS="$$notes" && code=0; \
		$(MAKE) --no-print-directory test-docker ENGINES=all || code=1; \
		BRIDGETOLL_ENGINES=all $(GO) test -count=1 -timeout 60m ./internal/reach/cases ./internal/reach/fast || code=1; \
		$(GO) test -count=1 -timeout 30m ./internal/measure/program ./internal/measure/database ./internal/paths/lab ./internal/cli || code=1; \
		$(MAKE) --no-print-directory test-rootless || code=1; \
		$(MAKE) --no-print-directory test-llm || code=1; \
		PATH="$${XDG_CACHE_HOME:-$$HOME/.cache}/bridgetoll/docker/29/root/usr/bin:$$PATH" $(GO) test -count=1 ./internal/paths/lab -run 'TestConformance/gvisor' || code=1; \
		$(GO) test -count=1 ./internal/measure/openai -run TestReplay || code=1; \
		BRIDGETOLL_TEST_INSTALLS=1 $(GO) test -count=1 -timeout 30m ./test/versions || code=1; \
		[ -z '$(KERNELS)' ] || $(MAKE) --no-print-directory test-kernels || code=1; \
		$(GO) run ./test/versions "$$notes" docs/versions.md && exit $$code

.PHONY: test-llm
test-llm: ## measure a real language model and gateways, which are fetched once (127 and 400 MB, and LiteLLM, which takes 700 MB); no part of make test
	TOLL_LLM=1 TOLL_GATEWAYS_PAGE='$(CURDIR)/docs/gateways.md' $(GO) test -count=1 -v -timeout 30m ./test/llm

# The programs are built once, outside of the repository; nothing of the cluster is left, whatever ends it.
KUBERNETES_DEPS = containerd containernetworking-plugins iproute2 iptables nftables openssl runc util-linux
KUBERNETES_TESTS ?= ^TestCluster
.PHONY: test-kubernetes
test-kubernetes: ## measure on a real Kubernetes of two nodes, in namespaces here; no part of make test; PROXY=nftables, KUBERNETES_TESTS chooses tests
	@$(call install,$(KUBERNETES_DEPS))
	@GO='$(GO)' test/kubernetes/run '$(KUBERNETES_TESTS)' || { [ $$? = 77 ] && [ "$$CI" != true ]; } # 77: cannot be run here

.PHONY: lint
lint: ## gofmt, go vet, staticcheck and others by golangci-lint, go mod tidy
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'gofmt -w these files'; exit 1; }
	$(GO) mod tidy -diff
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 -shellcheck= -pyflakes= # as if it had neither, which not every machine has
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./... # go vet and staticcheck are two of them

# The charts of --format html. The bundle is committed: building toll needs no Node.
PAGE = internal/show/page
.PHONY: page page-check
page: ## make the charts' bundle of --format html anew (npm)
	cd $(PAGE)/web && npm ci --ignore-scripts --no-audit --no-fund && node build.mjs
page-check: ## build that bundle and compare it with the committed one (npm)
	@command -v npm >/dev/null || { echo 'npm is missing: not compared'; [ "$$CI" != true ]; exit; }; \
		made=$$(mktemp) && trap 'rm -f "$$made"' EXIT && cd $(PAGE)/web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && \
		node build.mjs "$$made" && cmp "$$made" ../assets/page.js && echo 'The bundle is what its sources make.'

# The BPF programs of toll fast, toll trace and toll stream. The objects are committed: building toll needs no clang. Debian 12's clang made them.
BPF = internal/kernel/shortcut internal/kernel/trace internal/kernel/writes
.PHONY: bpf bpf-check bpf-deps
bpf-deps:
	@if grep -qx VERSION_CODENAME=bookworm /etc/os-release; then $(call install,$(BPF_DEPS)); fi
bpf: bpf-deps ## make the BPF objects anew (clang 14, llvm-strip, libbpf's headers)
	$(GO) generate $(BPF:%=./%)
bpf-check: bpf-deps ## build those objects and compare them with the committed ones
	@clang --version 2>/dev/null | grep -q 'version 14\.' && [ -e /usr/include/bpf/bpf_helpers.h ] || { echo 'clang 14 and libbpf-dev are not here: not compared'; [ "$$CI" != true ]; exit; }; \
		made=$$(mktemp -d) && trap 'rm -rf "$$made"' EXIT && cp --parents $(BPF:%=%/object_*) "$$made" && $(MAKE) --no-print-directory bpf && code=0 && \
		for f in $(BPF:%=%/object_*); do cmp "$$made/$$f" $$f || { code=1; cp "$$made/$$f" $$f; }; done && [ $$code = 0 ] && echo 'The BPF objects are what their sources make.'

.PHONY: vulnerabilities
vulnerabilities: ## look for known vulnerabilities in what toll calls (govulncheck; asks vuln.go.dev)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

# A package's seeds are part of its tests. The functions are found, not listed.
FUZZTIME ?= 1m
MACHINES ?= 50
.PHONY: test-machines
test-machines: deps ## compare on MACHINES random machines what toll ports dials once for many ports with each dialled by itself; make test has two; try each oddity of other random machines alone
	$(GO) test -count=1 -timeout 60m -run '^TestAlikeIsAsEach$$' ./internal/reach/replica/build -machines $(MACHINES)
	$(GO) test -count=1 -timeout 60m -run '^TestEveryOddity$$' ./internal/reach/cases -oddities

.PHONY: fuzz
fuzz: ## fuzz every parser for FUZZTIME each: a time, or 500x for so many tries
	@grep -rHo --include='*_test.go' '^func Fuzz[[:alnum:]]*' cmd internal test | sed -E 's|(.*)/[^/]*:func (.*)|./\1 \2|' | sort | \
		xargs -P 2 -L 1 sh -c '$(GO) test -run "^$$" -fuzz "^$$1$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x -parallel 1 "$$0"'

# netperf is in no free part of Debian 12. Without it crr is compared with nothing, which the report says.
with_netperf = dir=$$(test/measure/netperf) || dir=; PATH="$$PATH$${dir:+:$$dir}"
BENCH ?=
.PHONY: bench
bench: bench-deps build bench-ports ## compare with iperf3, qperf and sockperf in one interleaved run, and measure toll ports; BENCH='-rounds 12'
	@$(with_netperf) $(GO) run ./test/measure bench $(BENCH)

AGAINST ?=
PORTS_RUNS ?= 5
.PHONY: bench-ports
bench-ports: build ## measure toll ports with 300 ports and 5,000 rules: the list, a remedy, --try; AGAINST=FILE in turns with another build of toll
	BRIDGETOLL_TEST_TOLL="$$PWD/toll" BRIDGETOLL_BENCH_AGAINST='$(if $(AGAINST),$(abspath $(AGAINST)))' \
		$(GO) test -count=1 -timeout 30m -run '^$$' -bench '^BenchmarkPorts$$' -benchtime $(PORTS_RUNS)x ./internal/reach/cases

TRUTH ?=
.PHONY: truth
truth: truth-deps build ## show that what toll says is true: 110 minutes on a quiet machine; TRUTH=-full for all, TRUTH=-quick to try
	@$(with_netperf) $(GO) run ./test/measure truth $(TRUTH)

.PHONY: dist dist-check
dist: ## make the release's files in dist: tar.gz, .deb, .rpm, SBOM, checksums; of the commit, not of changes to it
	@GO='$(GO)' packaging/build dist
dist-check: ## make them twice, in different places, and compare the bytes
	@GO='$(GO)' packaging/check

# Programs that tests and benchmarks run beside toll, from Debian's packages.
# On other systems install them by hand; tests of what is missing are skipped.
DEPS = bind9-dnsutils dnsmasq-base docker.io ethtool haproxy iperf3 iproute2 ipset mariadb-server-core nftables nginx-light openssh-client openssh-server openvswitch-switch passt postgresql qperf redis-server redis-tools rootlesskit slirp4netns tcpdump ufw uidmap util-linux
# Debian's docker.io has no docker since trixie.
DEPS += $(shell grep -qx ID=debian /etc/os-release && ! grep -qx VERSION_CODENAME=bookworm /etc/os-release && echo docker-cli)
# A browser draws the pages in a test, if none is there Debian's; Ubuntu has one only as a snap.
DEPS += $(shell for b in chromium google-chrome chromium-browser; do command -v $$b && exit; done >/dev/null; grep -qx ID=debian /etc/os-release && echo chromium)
# Where systemd runs, it would start these, and they would filter the machine's packets: without them, their tests are skipped.
FILTER_DEPS = dbus fail2ban firewalld
CLIENT_DEPS = curl default-jdk-headless postgresql python3 redis-server redis-tools wrk
BPF_DEPS = clang libbpf-dev libc6-dev llvm
BENCH_DEPS = iperf3 qperf sockperf
TRUTH_DEPS = iperf3 iproute2 nftables postgresql qperf redis-server redis-tools tcpdump util-linux
VM_DEPS = busybox-static cpio debian-archive-keyring iproute2 ipvsadm kmod nftables openvswitch-switch passt qemu-system-x86 rootlesskit slirp4netns util-linux wireguard-tools xz-utils
APT = DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends

.PHONY: deps bench-deps truth-deps vm-deps
deps: vm-deps ## install what the tests need (Debian, as root)
	@$(call install,$(DEPS))
	@[ -d /run/systemd/system ] || { $(call install,$(FILTER_DEPS)); }
bench-deps:
	@$(call install,$(BENCH_DEPS))
truth-deps:
	@$(call install,$(TRUTH_DEPS))
vm-deps: # the VM's programs are the machine's own, so it must be of the same kind
	@if [ "$$(uname -m)" = x86_64 ]; then $(call install,$(VM_DEPS)); fi

define install
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	missing=$$(for p in $(1); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	[ -z "$$missing" ] || { apt-get update -qq && $(APT) $$missing >/dev/null; }; \
else echo 'not root on Debian: not installing $(1)'; fi
endef
