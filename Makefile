# make help lists the targets.
.DEFAULT_GOAL := build
GO ?= go

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

.PHONY: build
build: ## build the static binary ./toll
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o toll ./cmd/toll

.PHONY: test
test: deps ## install what the tests need and run all of them
	$(MAKE) -j 2 --no-print-directory --output-sync=target test-slow test-beside
	$(GO) test -p 1 -timeout 10m $$($(GO) list ./... | grep -vE '/($(subst $() $(),|,$(WAITS)))$$') # one package at a time: loads need their CPUs

# Those whose tests wait for daemons, containers and time-outs more than they work.
WAITS = docker swarm agent database openai
.PHONY: test-slow
test-slow: test-vm
	$(GO) test -p 2 -timeout 14m $(WAITS:%=./internal/%)

# Those with goroutines, in the code or in its tests: in others there is no race to find. (Not program, whose tests bound
# time and memory: the detector takes more of both.)
RACE = agent database endpoint engine openai ports/collect undo worker

# What needs no quiet machine, beside the VM, which is one thread: niced, so that the VM has its CPU.
.PHONY: test-beside
test-beside:
	nice $(MAKE) --no-print-directory lint
	nice $(GO) test -race -short -timeout 10m $(RACE:%=./internal/%)
	nice $(MAKE) --no-print-directory fuzz FUZZTIME=500x

VM_TESTS ?= TestConformance$$/^(ipvlan|netkit|ovs|overlay-encrypted|publish-ingress)|TestTunesOnEveryMode/^(ipvlan|netkit|overlay-encrypted|publish-ingress)|TestIngress|TestWireIsDelayed|TestKernelOptionsAreNamed
.PHONY: test-vm
test-vm: vm-deps ## run the modes that this kernel may lack under Debian's 6.12 kernel in qemu
	@GO='$(GO)' test/vm/run '$(VM_TESTS)' || { [ $$? = 77 ] && [ "$$CI" != true ]; } # 77: cannot be run here

.PHONY: test-vm-swarm
test-vm-swarm: deps ## run a swarm of two with routing mesh and encryption there; no part of make test
	@GO='$(GO)' test/vm/run -s || { [ $$? = 77 ] && [ "$$CI" != true ]; }

ENGINES ?= installed
.PHONY: test-docker
test-docker: deps ## build the modes with the installed Docker Engine, and a swarm; ENGINES=all fetches two more from Debian and builds 29
	BRIDGETOLL_ENGINES=$(ENGINES) $(GO) test -p 2 -count=1 -parallel 4 -timeout 40m ./internal/docker ./internal/swarm # they wait more than they work

.PHONY: test-llm
test-llm: ## measure a real language model, which is fetched once (127 MB); no part of make test
	TOLL_LLM=1 $(GO) test -count=1 -v -timeout 10m ./test/llm

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, golangci-lint, go mod tidy
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'gofmt -w these files'; exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) tool staticcheck ./...
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./...

FUZZTIME ?= 1m
FUZZ = sample:Read sample:Decode machine:Read mode:ParseTunes lab:ParseWire lab/ovs:ParsePorts \
	docker:ParseRules analysis:Judge published:Parse sse:Decode openai:Chunk database:New \
	endpoint:ParseWays program:ParseGauge program:Extract firewall:ParseSave kernel/sock:ParseProcNet kernel/nft:Elements \
	ports/collect:ProxyArgs kernel/ipvs:Parse agent:Wire agent:Bundle secret:Hide
.PHONY: fuzz
fuzz: ## fuzz every parser for FUZZTIME each: a time, or 500x for so many tries
	@printf '%s\n' $(FUZZ) | xargs -P 2 -I{} sh -c 'f={}; $(GO) test -run "^$$" -fuzz "^Fuzz$${f#*:}$$" \
		-fuzztime $(FUZZTIME) -fuzzminimizetime 10x -parallel 1 ./internal/$${f%:*}'

.PHONY: bench
bench: bench-deps build ## compare with iperf3, qperf and sockperf in one interleaved run
	$(GO) run ./internal/bench -toll-compare ./toll

# Programs that tests and benchmarks run beside toll, from Debian's packages.
# On other systems install them by hand; tests of what is missing are skipped.
DEPS = docker.io iproute2 nftables openvswitch-switch postgresql redis-server redis-tools util-linux
BENCH_DEPS = iperf3 qperf sockperf
VM_DEPS = busybox-static cpio iproute2 kmod nftables openvswitch-switch qemu-system-x86 xz-utils
APT = DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends

.PHONY: deps bench-deps vm-deps
deps: vm-deps ## install what the tests need (Debian, as root)
	@$(call install,$(DEPS))
bench-deps:
	@$(call install,$(BENCH_DEPS))
vm-deps: # the VM's programs are the machine's own, so it must be of the same kind
	@if [ "$$(uname -m)" = x86_64 ]; then $(call install,$(VM_DEPS)); fi

define install
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	missing=$$(for p in $(1); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	[ -z "$$missing" ] || { apt-get update -qq && $(APT) $$missing >/dev/null; }; \
else echo 'not root on Debian: not installing $(1)'; fi
endef
