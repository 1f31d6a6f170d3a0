"""The hub's own Python package on a cache, for tests/fetch_long_test.c.

    hub_package.py fetch CACHE    fetches Org/Toy from HF_ENDPOINT
    hub_package.py open CACHE     opens Org/Toy without the network, and looks the cache through

Prints the folder of the snapshot.
"""

import sys

from huggingface_hub import scan_cache_dir, snapshot_download

what, cache = sys.argv[1:]
folder = snapshot_download("Org/Toy", cache_dir=cache, local_files_only=what == "open")
if what == "open":
    info = scan_cache_dir(cache)
    if info.warnings or len(info.repos) != 1:
        sys.exit("the cache looks wrong: %r" % info)
    (repo,) = info.repos
    if repo.repo_id != "Org/Toy" or list(repo.refs) != ["main"]:
        sys.exit("the cache holds something else: %r" % repo)
print(folder)
