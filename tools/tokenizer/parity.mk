# The long comparison of the tokenizer with the library `tokenizers`; about ten minutes. Needs the
# environment of tools/oracle/setup.sh. N scales it: N=10000 for a short one; SEED picks other texts.
.PHONY: parity-tokenizer
parity: parity-tokenizer
parity-tokenizer: build/tools/tokenize
	test -f build/data/tokenizer-qwen35.json || python3 tools/tokenizer/build_real.py
	build/oracle-venv/bin/python tools/tokenizer/parity.py --strings $(or $(N),500000) \
	  --seed $(or $(SEED),1)
