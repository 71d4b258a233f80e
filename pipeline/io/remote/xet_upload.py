"""Sends the content of files to a repository of the hub with hf_xet. The hub learns their names from the commit that follows.

Arguments: the URL that gives access to the content store, and for each file its path and its SHA-256. Token: HF_TOKEN. Prints
the bytes that are done, one number in each line. Exit code 3: hf_xet is missing, or too old.
"""
import os
import sys

sys.path[:] = filter(None, sys.path)  # not the current folder
try:
    import hf_xet

    hf_xet.XetSession
except (ImportError, AttributeError):
    sys.exit(3)
if len(sys.argv) == 1:  # asked whether it could
    sys.exit(0)


def show(report, *_):
    print(report.total_bytes_completed, flush=True)


url, names = sys.argv[1], sys.argv[2:]
headers = {"Authorization": "Bearer " + os.environ["HF_TOKEN"]}
try:
    with hf_xet.XetSession().new_upload_commit(token_refresh_url=url, token_refresh_headers=headers, progress_callback=show, progress_interval_ms=500) as commit:
        for path, sha256 in zip(names[::2], names[1::2]):
            commit.start_upload_file(path, sha256=sha256)
except Exception as error:  # whatever the library raises is the reason for the user
    sys.exit(str(error).replace(os.environ["HF_TOKEN"], "***"))
