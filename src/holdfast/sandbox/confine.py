"""A program: restricts itself by Landlock and a filter of system calls, then becomes the command behind its first word.

Standard library only; it runs without our packages. What it may not do, its children may not do either, and nobody can give it back.
Landlock does not know sockets of the file system, by which a command could ask others (a service manager, Docker) to act for it, so the
filter refuses to make any; without network, sockets of every kind.
"""

import ctypes
import errno
import json
import os
import platform
import socket
import stat
import struct
import sys

LEAST = 3  # Earlier versions let commands truncate any file of the user's.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH, VERSION = 1, 1
# Rights on files: execute, write, read; read a folder; remove, make and link; from version 2 rename across folders, 3 truncate, 5 devices.
EXECUTE, WRITE, READ, READ_FOLDER, TRUNCATE, DEVICE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
LOOK = EXECUTE | READ | READ_FOLDER
OF_FILES = EXECUTE | WRITE | READ | TRUNCATE | DEVICE
# From version 6: no signals and no sockets without a path to anybody outside.
SCOPES = 0b11
# Of the newest form; for two times three sets of 32.
CAPABILITIES, SETS = 0x20080522, 6
NO_NEW_PRIVILEGES, SET_FILTER, FILTER_MODE = 38, 22, 2
# By machine: what the kernel calls it, then the numbers of `socket` and `socketpair`.
MACHINES = {"x86_64": (0xC000003E, 41, 53), "aarch64": (0xC00000B7, 198, 199)}
IO_URING_SETUP = 425
FOREIGN_CALLS = 0x4000_0000
ALLOW, REFUSE, KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
LOAD, AND, RETURN, IF_EQUAL, IF_AT_LEAST = 0x20, 0x54, 0x06, 0x15, 0x35
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24

libc = ctypes.CDLL(None, use_errno=True)


class NotPossible(Exception):
    pass


def call(what: str, *arguments: object) -> int:
    result: int = libc.syscall(*(ctypes.c_long(each) if isinstance(each, int) else each for each in arguments))
    if result < 0:
        raise NotPossible(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def control(what: str, *arguments: object) -> None:
    if libc.prctl(*(ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments)) != 0:
        raise NotPossible(f"{what}: {os.strerror(ctypes.get_errno())}")


def restrict_files(spec: dict[str, list[str]]) -> None:
    version = call("this kernel has no Landlock", CREATE_RULESET, None, 0, VERSION)
    if version < LEAST:
        raise NotPossible(f"the Landlock of this kernel is too old (version {version}, needed {LEAST})")
    rights = (1 << 15) - 1 | (DEVICE if version >= 5 else 0)
    attributes = struct.pack("QQQ", rights, 0, SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 8
    rules = call("no rules can be made", CREATE_RULESET, attributes, size, 0)
    for path in spec["readable"]:
        allow(rules, path, LOOK)
    for path in spec["writable"]:
        allow(rules, path, rights & ~DEVICE)
    for path in spec["devices"]:
        allow(rules, path, rights)
    call("the rules cannot be applied", RESTRICT_SELF, rules, 0)
    os.close(rules)


def allow(rules: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # What is not there needs no rule.
    if not stat.S_ISDIR(os.fstat(opened).st_mode):
        rights &= OF_FILES
    call(f"no rule can be made for {path}", ADD_RULE, rules, PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
    os.close(opened)


def restrict_calls(network: bool) -> None:
    machine = platform.machine()
    if machine not in MACHINES or struct.calcsize("P") != 8:
        raise NotPossible(f"its filter of system calls is not written for {machine}")
    architecture, make, make_pair = MACHINES[machine]
    no_call, no_socket = REFUSE | errno.ENOSYS, REFUSE | errno.EPERM
    # Each: code, jump if true, jump if false, value. Jumps count from the next one.
    program = [
        (LOAD, 0, 0, ARCHITECTURE),
        (IF_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (IF_AT_LEAST, 1, 0, FOREIGN_CALLS),
        (IF_EQUAL, 0, 1, IO_URING_SETUP),  # It makes sockets past this filter.
        (RETURN, 0, 0, no_call),
        (IF_EQUAL, 0, 3, make),
        (LOAD, 0, 0, FIRST),
        (IF_EQUAL, 0, 5 if network else 0, socket.AF_UNIX),
        (RETURN, 0, 0, no_socket),
        (IF_EQUAL, 0, 3, make_pair),  # One of a pair of datagram sockets can be given another address.
        (LOAD, 0, 0, SECOND),
        (AND, 0, 0, 0xF),
        (IF_EQUAL, 1, 0, socket.SOCK_DGRAM),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, no_socket),
    ]
    words = b"".join(struct.pack("HBBI", *each) for each in program)
    block = ctypes.create_string_buffer(words, len(words))
    control("no filter can be set", SET_FILTER, FILTER_MODE, struct.pack("HP", len(program), ctypes.addressof(block)))


def give_up_capabilities() -> None:
    """Root could read other processes' environments, and more."""
    if libc.capset(struct.pack("Ii", CAPABILITIES, 0), struct.pack(f"{SETS}I", *[0] * SETS)) != 0:
        raise NotPossible(f"capabilities cannot be given up: {os.strerror(ctypes.get_errno())}")


def check(network: bool) -> None:
    """By doing: nothing runs in a sandbox that does not hold."""
    for family in (socket.AF_UNIX, *(() if network else (socket.AF_INET, socket.AF_INET6))):
        try:
            socket.socket(family, socket.SOCK_DGRAM).close()
        except OSError:
            continue
        raise NotPossible("its filter of system calls does not hold")


def main() -> None:
    spec, command = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        control("privileges cannot be given up", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        restrict_files(spec)
        restrict_calls(spec["network"])
        give_up_capabilities()
        check(spec["network"])
        os.execv(command[0], command)
    except (NotPossible, OSError) as error:
        print(f"The sandbox cannot be made: {error}.", file=sys.stderr)
        sys.exit(126)


if __name__ == "__main__":
    main()
