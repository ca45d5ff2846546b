"""Fail when the wheel misses a file of the package that git tracks, or carries one that it should not."""

import subprocess
import sys
import zipfile

tracked = set(subprocess.run(["git", "ls-files", "drakit"], check=True, capture_output=True, text=True).stdout.split())
packed = {name for name in zipfile.ZipFile(sys.argv[1]).namelist() if ".dist-info/" not in name}
print("\n".join(sorted(packed)))
missing, extra = sorted(tracked - packed), sorted(packed - tracked)
if missing or extra:
    sys.exit(f"wheel misses {missing}, carries {extra}")
print(f"{len(packed)} files, as tracked")
