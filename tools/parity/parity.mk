# The long comparison of src/text with CPython; about two minutes. N scales it: N=10000 for a short
# one (that many doubles and roundings, a tenth of the documents), SEED picks other input.
PARITY_N = $(or $(N),1000000)
PARITY_SEED = $(or $(SEED),1)

.PHONY: parity-json
parity: parity-json
parity-json: $(B)/tools/json_echo
	tools/parity/json_parity.py --echo $< --seed $(PARITY_SEED) --doubles $(PARITY_N) \
	  --roundings $(PARITY_N) --documents $$(($(PARITY_N) / 10))
