# Everything a fresh clone needs is Python 3.11 or newer and make:
#   make demo    plan a published scenario, prove it, leave a picture
#   make test    linters, types and tests

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip -qq --disable-pip-version-check --no-input
# Imports compile what they need; pip would compile everything, most of which nobody imports.
INSTALL := $(PIP) install --no-compile --constraint constraints.txt --editable

# Where Python may not keep what it compiles, each of the hundreds of commands that the tests start
# compiles all of its modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint style format long mutants formal formal-axioms docs docs-links install hooks constraints clean

help:
	@echo "make demo         plan a published scenario: the plan, its bound, its proof and a picture"
	@echo "make test         ruff, mypy --strict and the tests"
	@echo "make lint         ruff and mypy --strict alone"
	@echo "make format       let ruff rewrite what it can"
	@echo "make formal       the checker that is proved in Coq: build it, compare it, run it on S1 to S6"
	@echo "make long         the long runs of the tests (minutes to hours)"
	@echo "make mutants      the share of random mutations of the product that the tests notice (hours);"
	@echo "                  MUTANTS='--count 40 --rooms cms.knapsack' asks for fewer, in some rooms"
	@echo "make docs         the documentation as a site in out/docs; warnings are errors"
	@echo "make docs-links   ask the network whether the links to other sites lead somewhere"
	@echo "make install      install again, after a change to pyproject.toml"
	@echo "make hooks        run the linters before every commit"
	@echo "make constraints  renew the pinned versions in constraints.txt"
	@echo "make clean        remove the environment, caches and pictures"

demo: $(VENV)/.installed
	@mkdir -p out
	@$(VENV)/bin/cms plan --published S5 --rule capacity --picture out/demo.svg
	@echo "Whole GPUs would be 23 by the same rule. The published rule plans 12, which keep 4 of 11 limits when replayed."
	@echo "The picture is in out/demo.svg. To have 'cms' at hand in this shell: . $(VENV)/bin/activate"

# One worker a core; a worker takes the next waiting test when it has none left. At the end stand
# the ten slowest tests, and why some were skipped.
PYTEST := $(RUN) -m pytest --numprocesses auto --dist worksteal --durations 10 -rs

MYPY := $(RUN) -m mypy --strict --no-error-summary

# mypy, which takes one core, looks beside the tests; what it says stands below what they say.
test: style
	@mkdir -p out
	@$(MYPY) >out/mypy.txt 2>&1 & mypy=$$!; trap 'kill $$mypy; exit 130' INT TERM; \
	  $(PYTEST); tests=$$?; \
	  wait $$mypy; types=$$?; cat out/mypy.txt; \
	  [ $$types -eq 0 ] || echo "mypy --strict failed, as said above" >&2; \
	  exit $$((tests ? tests : types))

lint: style
	@$(MYPY)

style: $(VENV)/.installed-for-tests
	@$(RUN) -m ruff check --quiet
	@$(RUN) -m ruff format --check --quiet || \
	  { echo "ruff format would change these files; 'make format' does it:"; \
	    $(RUN) -m ruff format --check; exit 1; }

format: $(VENV)/.installed-for-tests
	@$(RUN) -m ruff check --fix --quiet
	@$(RUN) -m ruff format --quiet

long: $(VENV)/.installed-for-tests
	@CMS_HYPOTHESIS_PROFILE=long $(PYTEST) -m "long or not long"

mutants: $(VENV)/.installed-for-tests
	@$(RUN) -m tests.mutants $(MUTANTS)

# Debian's packages for the checker that is proved; elsewhere whatever brings coqc and ocamlfind.
FORMAL_PACKAGES := coq ocaml-findlib libzarith-ocaml-dev
COQ := proofs_checks/formal/coq

define coq_there
@command -v coqc >/dev/null && command -v ocamlfind >/dev/null && \
  ocamlfind query zarith >/dev/null 2>&1 || \
{ if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo "Installing $(FORMAL_PACKAGES) (some minutes, once) ..." >&2; \
    { apt-get update && apt-get install -y --no-install-recommends $(FORMAL_PACKAGES); } >/dev/null; \
  else \
    echo "make formal needs coqc, ocamlfind and its package zarith: on Debian and Ubuntu," >&2; \
    echo "'apt-get install $(FORMAL_PACKAGES)' as root brings them." >&2; exit 1; \
  fi; }
endef

formal: $(VENV)/.installed-for-tests
	$(coq_there)
	@$(MAKE) --no-print-directory --silent -C $(COQ) proofs programs
	@$(MAKE) --no-print-directory --silent $(COMPARED)
	@$(RUN) -m pytest -q -m "not long" tests/proofs_checks/formal

# The long comparisons give the same each time: they are made once for each state of what they compare.
COMPARED := out/formal/compared
$(COMPARED): out/formal/zarith/recheck out/formal/pure/recheck \
  $(shell find cms algorithms instances proofs_checks tests -name '*.py')
	@$(RUN) -m pytest -q -m long tests/proofs_checks/formal
	@touch $@

formal-axioms:
	$(coq_there)
	@$(MAKE) --no-print-directory -C $(COQ) axioms

# Pages that are notebooks are run, and every picture is drawn anew.
SPHINX := $(RUN) -m sphinx --fail-on-warning --keep-going --quiet docs

docs: $(VENV)/.installed-for-tests
	@$(SPHINX) --builder html out/docs
	@echo "The site is in out/docs/index.html."

docs-links: $(VENV)/.installed-for-tests
	@$(SPHINX) --builder linkcheck --define nb_execution_mode=off out/docs-links

install:
	@rm -f $(VENV)/.installed $(VENV)/.installed-for-tests
	@$(MAKE) --no-print-directory $(VENV)/.installed-for-tests

hooks: $(VENV)/.installed-for-tests
	@$(INSTALL) '.[hooks]'
	@$(RUN) -m pre_commit install

# pip, not a file's date, decides whether the environment is there: a half-made one is made again.
# Where Python has pip, that fetches the newest, sooner than venv lays out the one Python brings. One
# of before 24 takes twice as long for all: it holds every file of the index against a list of some
# thousand platforms.
needed := configurable-machines needs Python 3.11 or newer: make PYTHON=python3.12, say.

define environment
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "There is no '$(PYTHON)' here; $(needed)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "'$(PYTHON)' is $$("$(PYTHON)" --version 2>&1); $(needed)" >&2; exit 1; }
	@$(RUN) -m pip --version >/dev/null 2>&1 || { \
	  echo "Making the environment in $(VENV) (a minute or two, once) ..." >&2; \
	  { $(PYTHON) -m venv --without-pip $(VENV) && \
	    $(PYTHON) -m pip --python $(RUN) -qq install --no-compile pip; } >/dev/null 2>&1 || \
	  $(PYTHON) -m venv $(VENV) || { \
	    echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu it is the package python3-venv." >&2; \
	    exit 1; }; }
	@$(RUN) -c 'import sys, pip; sys.exit(int(pip.__version__.split(".")[0]) < 24)' || \
	  $(PIP) install --no-compile --upgrade pip || \
	  echo "The old pip remains: it does what is wanted, slowly." >&2
endef

# What thousands of jobs are priced by, so that nobody's first large problem waits for it.
define kernel
	@$(RUN) -c 'from cms.knapsack.pricing import price_jobs; from cms.problem.rows import Rows; \
	  price_jobs(Rows.from_arrays([1], [[1]], "a", "b"), [1], compiled=True)'
endef

$(VENV)/.installed: pyproject.toml constraints.txt
	$(environment)
	@$(INSTALL) .
	$(kernel)
	@touch $@

$(VENV)/.installed-for-tests: pyproject.toml constraints.txt
	$(environment)
	@$(INSTALL) '.[bench,test,dev,docs]'
	$(kernel)
	@touch $(VENV)/.installed $@

# Versions only, from an environment that holds nothing else: no hosts, no paths, not ourselves.
constraints:
	@rm -rf out/constraints && mkdir -p out
	@$(PYTHON) -m venv out/constraints
	@out/constraints/bin/python -m pip install --quiet --disable-pip-version-check \
	  --editable '.[bench,test,dev,docs,hooks]'
	@{ echo "# Pinned for development; 'make constraints' renews it. Versions only."; \
	  out/constraints/bin/python -m pip freeze --exclude-editable | grep '=='; } > constraints.txt
	@rm -rf out/constraints
	@echo "constraints.txt pins $$(grep -c '==' constraints.txt) packages"

clean:
	@rm -rf $(VENV) out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
