#!/bin/sh
# What `make demo` shows once everything is built: a toy checkpoint, one request, its answer.
#
# Usage: tools/demo.sh        from the root of the repository, after `make all tools`
set -eu

toy=build/demo/toy
tokenizer=testdata/toy-r2/tokenizer.json
request=examples/request.json

say() { printf '\n%s\n' "$1"; }

mkdir -p build/demo
rm -rf "$toy"
say "A toy checkpoint: the network of clef-flash with tiny sizes and random weights."
echo "\$ build/tools/synth --geometry toy --tokenizer $tokenizer $toy"
build/tools/synth --geometry toy --tokenizer "$tokenizer" "$toy"

say "The request, $request:"
cat "$request"

say "Its answer for people:"
echo "\$ ./clef ask --model $toy --request $request --pretty"
./clef ask --model "$toy" --request "$request" --pretty

say "The same for programs:"
echo "\$ ./clef ask --model $toy < $request"
./clef ask --model "$toy" < "$request"

say "These numbers mean nothing: the toy's weights are random. It only shows that everything runs."
cat << 'END'
With the real checkpoint, which the first line fetches (19.1 GB):

    ./clef get Cloudflare/clef-flash --dir ./clef-flash
    ./clef info ./clef-flash
    ./clef ask --model ./clef-flash --request examples/request.json --pretty

As a server, with a page to try it at http://127.0.0.1:8423 (the toy will do too: --model build/demo/toy):

    ./clef serve --model ./clef-flash
    curl -s http://127.0.0.1:8423/v1/systemone -d @examples/request.json

Without --dir it goes into the local hub cache and is found by its name: --model Cloudflare/clef-flash
END
