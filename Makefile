# Everything a contributor types. "make test" does all the set-up itself.

GO ?= go
STATICCHECK = $(GO) tool staticcheck

.PHONY: test test-all unit vet race bench mutants long screenshots install-test-tools image build clean help

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 24

test: install-test-tools vet ## install what the tests need, then run everything
	@./scripts/with-docker.sh $(MAKE) --no-print-directory test-all

test-all: # what "make test" runs once all is there; without an engine there is no image either
	-@./scripts/make-image.sh
	@t=$$(mktemp) && HOLDFAST_PARITY=$$t $(GO) test -race -timeout 15m $(if $(CI),-artifacts) ./...; s=$$?; \
	echo "the same scenarios in each world:"; cat $$t; rm -f $$t; exit $$s
	$(GO) test -timeout 9m -count 1 ./campaign # its sweeps of thousands of runs, which skip under -race

unit: ## the quick tests; on real servers only where they are installed
	$(GO) test -short ./...

vet: ## go vet and staticcheck
	$(GO) vet ./...
	$(STATICCHECK) ./...

bench: ## the figures of the README, on one core (the program sets GOGC like this)
	GOGC=400 $(GO) test -run '^$$' -bench . -cpu 1 -count 3 -timeout 30m ./cluster/sim ./campaign ./checker/...

mutants: ## every mutant with the scenario and the check that catch it; fails if one escapes or its twin is accused
	@t=$$(mktemp) && HOLDFAST_MUTANTS=$$t $(GO) test -count 1 -run 'Mutant' ./campaign; s=$$?; cat $$t; rm -f $$t; exit $$s

long: install-test-tools ## long sweeps, outside CI
	HOLDFAST_LONG=1 $(GO) test -timeout 60m ./...

screenshots: install-test-tools ## pictures of every HTML page, in ./_artifacts
	$(GO) test -count 1 -v -run 'Browser|Pictures' -artifacts ./reports/page

install-test-tools: ## redis-server, libfaketime, chromium, xmllint and a C compiler, with the system's package manager
	@./scripts/install-test-tools.sh

image: install-test-tools ## the container image holdfast/redis:local, made of this machine's redis-server
	@./scripts/with-docker.sh ./scripts/make-image.sh

build: ## the program, in ./holdfast
	$(GO) build -o holdfast ./cmd/holdfast

clean: ## remove the program, stored runs and pictures
	rm -rf holdfast runs _artifacts
