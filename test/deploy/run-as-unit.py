"""Runs a program under limits of a systemd unit, where systemd is not the init process: an unprivileged user without
capabilities, the umask, the permitted address families, and a seccomp filter. Usage: run-as-unit.py '<JSON>' program argument…
JSON: {"uid": 65534 or null, "umask": 63, "syscalls": ["read", …], "families": [1, 2, 10], "deniesExecutableMemory": false}"""

import ctypes
import errno
import json
import os
import sys

PR_SET_NO_NEW_PRIVS = 38
SCMP_ACT_ALLOW = 0x7FFF0000
SCMP_ACT_ERRNO = 0x00050000
SCMP_CMP_EQ = 4
SCMP_CMP_MASKED_EQ = 7
PROT_WRITE = 2
PROT_EXEC = 4


class Comparison(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def require(is_ok, what):
    if not is_ok:
        sys.exit(f"run-as-unit: {what} failed: {os.strerror(ctypes.get_errno())}")


limits = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
seccomp.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(SCMP_ACT_ERRNO | errno.EPERM)))
require(context.value, "seccomp_init")



def resolve(name):
    return seccomp.seccomp_syscall_resolve_name(name.encode())


def permit(name, *comparisons):
    """Permits a system call, with comparisons only if one of its arguments fits."""
    for comparison in comparisons or (None,):
        array = (Comparison * 1)(comparison) if comparison else None
        count = 1 if comparison else 0
        added = seccomp.seccomp_rule_add_array(context, ctypes.c_uint32(SCMP_ACT_ALLOW), resolve(name), count, array)
        require(added == 0, name)


conditions = {"socket": [Comparison(0, SCMP_CMP_EQ, family, 0) for family in limits["families"]]}
if limits["deniesExecutableMemory"]:
    # As MemoryDenyWriteExecute= does: no memory that is writable and executable, and none that becomes executable.
    both = PROT_WRITE | PROT_EXEC
    conditions["mmap"] = [Comparison(2, SCMP_CMP_MASKED_EQ, both, bits) for bits in (0, PROT_WRITE, PROT_EXEC)]
    conditions["mprotect"] = [Comparison(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)]
for name in limits["syscalls"]:
    # Lists of systemd have names of other architectures, too; libseccomp gives them negative numbers.
    if resolve(name) >= 0:
        permit(name, *conditions.get(name, []))

os.umask(limits["umask"])
if limits["uid"] is not None:
    os.setgroups([])
    os.setresgid(limits["uid"], limits["uid"], limits["uid"])
    os.setresuid(limits["uid"], limits["uid"], limits["uid"])
require(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs")
require(seccomp.seccomp_load(context) == 0, "seccomp_load")
os.execv(sys.argv[2], sys.argv[2:])
