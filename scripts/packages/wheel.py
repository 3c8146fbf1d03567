#!/usr/bin/env python3
"""Makes a wheel of a tree: usr/bin becomes scripts, man pages and completions go where the environment has its share/.

usage: wheel.py TREE x86_64|aarch64, from scripts/dist, whose variables say what else is in it
"""
import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

tree, arch = pathlib.Path(sys.argv[1]) / "usr", sys.argv[2]
version, summary, licence, authors = (os.environ[name] for name in ("version", "summary", "licence", "authors"))
homepage = os.environ["homepage"]
author, address = authors.rstrip(">").split(" <")
here = pathlib.Path(__file__).resolve().parent
tags = [f"{system}_{arch}" for system in ("manylinux2014", "musllinux_1_2")]
info, data = f"pjit-{version}.dist-info", f"pjit-{version}.data"

metadata = f"""Metadata-Version: 2.4
Name: pjit
Version: {version}
Summary: {summary}
Author: {author}
Author-email: {authors}
License-Expression: {licence}
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
Requires-Python: >=3.8
Description-Content-Type: text/markdown
{f"Project-URL: Source, {homepage}" if homepage else ""}
""".rstrip() + "\n\n" + (here / "wheel.md").read_text()
wheel = "Wheel-Version: 1.0\nGenerator: pjit\nRoot-Is-Purelib: false\n" + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)

files = {f"{data}/scripts/pjit": (tree / "bin/pjit").read_bytes()}
for path in sorted((tree / "share").rglob("*")):
    if path.is_file():
        files[f"{data}/data/share/{path.relative_to(tree / 'share')}"] = path.read_bytes()
for name in ("LICENSE-APACHE", "LICENSE-MIT"):
    files[f"{info}/licenses/{name}"] = pathlib.Path(name).read_bytes()
files[f"{info}/METADATA"] = metadata.encode()
files[f"{info}/WHEEL"] = wheel.encode()
rows = []
for name, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    rows.append(f"{name},sha256={digest},{len(content)}\n")
files[f"{info}/RECORD"] = ("".join(rows) + f"{info}/RECORD,,\n").encode()

date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
target = pathlib.Path(os.environ["out"]) / f"pjit-{version}-py3-none-{'.'.join(tags)}.whl"
with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for name, content in files.items():
        entry = zipfile.ZipInfo(name, date)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
        archive.writestr(entry, content)
