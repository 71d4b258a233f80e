#!/usr/bin/env python3
"""refuse_io_uring.py PROGRAM ARGS: runs a program for which io_uring_setup fails, as in most containers (seccomp)."""

import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
IO_URING_SETUP, EPERM = 425, 1  # the same number on every machine
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000

rules = b"".join(
    struct.pack("HBBI", *rule)
    for rule in [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, IO_URING_SETUP), (RETURN, 0, 0, ERRNO | EPERM), (RETURN, 0, 0, ALLOW)]
)
buffer = ctypes.create_string_buffer(rules)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rules) // 8, ctypes.addressof(buffer)))
libc = ctypes.CDLL(None, use_errno=True)
for call in [(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)]:
    if libc.prctl(*call) != 0:
        sys.exit(f"refuse_io_uring.py: prctl: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
