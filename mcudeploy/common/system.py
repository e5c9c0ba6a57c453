"""Differences between Linux, macOS and Windows. No other module asks which system this is.

Imports little, for `interrupts`. What exists on one system only is imported where it is called.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import socket
    import subprocess

WINDOWS, MACOS = sys.platform == "win32", sys.platform == "darwin"

SHORT_TEMPORARY = None if WINDOWS else "/tmp"
"""A temporary folder with a path that is short enough for a socket in it."""
PASSES_DESCRIPTORS = not WINDOWS
"""Whether a program that we start can inherit a socket."""


# Signals


def _signal(*names: str) -> signal.Signals | None:
    return next((getattr(signal, name) for name in names if hasattr(signal, name)), None)


CLOSED_TERMINAL = _signal("SIGHUP", "SIGBREAK")
"""The signal of a terminal that closes; None without one. On Windows also Ctrl-Break sends it."""


ALARM = _signal("SIGALRM") or signal.SIGABRT
"""The signal of `set_alarm`. Windows has no SIGALRM. SIGABRT otherwise comes from `abort` only, which ends
the process whatever a handler does.
"""


def set_alarm(seconds: float) -> None:
    """Raise ALARM in this process after some time; 0 stops an alarm of POSIX.

    It also ends a sleep of the main thread, but not on Windows, where a thread raises it.
    """
    if ALARM is signal.SIGABRT:
        if seconds:
            import threading  # noqa: PLC0415

            timer = threading.Timer(seconds, signal.raise_signal, (ALARM,))
            timer.daemon = True
            timer.start()
    elif sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


# Limits of this process


def _limit(name: str) -> int | None:
    """Return a limit in bytes; None without one."""
    if sys.platform != "win32":
        with suppress(ImportError):
            import resource  # noqa: PLC0415

            most, _ = resource.getrlimit(getattr(resource, name))
            return None if most == resource.RLIM_INFINITY else most
    return None


def file_limit() -> int | None:
    """Return the most bytes that a file of this process may have; None without a limit."""
    return _limit("RLIMIT_FSIZE")


def memory_limit() -> int | None:
    """Return the most bytes of memory that this process may take; None without a limit."""
    return _limit("RLIMIT_AS")


# Folders and programs


def cache_folder() -> Path:
    """Return the folder of this user that holds caches."""
    return _users_folder("~/Library/Caches", "LOCALAPPDATA", "~/.cache")


def config_folder() -> Path:
    """Return the folder of this user that holds settings."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    usual = str(base) if base.is_absolute() else "~/.config"
    return _users_folder("~/Library/Application Support", "APPDATA", usual)


def _users_folder(of_macos: str, variable: str, usual: str) -> Path:
    if WINDOWS and (chosen := os.environ.get(variable)):
        return Path(chosen)
    return Path(of_macos if MACOS else usual).expanduser()


def program_names(name: str) -> tuple[str, ...]:
    """Return the names of the file of a program, by its name on PATH or by its path.

    Windows would run `.bat` and `.cmd` files by cmd.exe, whose quoting lets arguments run commands: they do
    not count.
    """
    if not WINDOWS:
        return (name,)
    suffix = Path(name).suffix.lower()
    is_path = Path(name).name != name
    exact = suffix in (".exe", ".com") or (is_path and suffix not in (".bat", ".cmd"))
    return *((name,) if exact else ()), f"{name}.exe", f"{name}.com"


HOST_COMPILERS = ("gcc", "clang") if WINDOWS else ("cc", "gcc", "clang")
"""C compilers of this computer, the preferred one first."""
HOST_CODE_FLAGS = (
    *(() if MACOS else ("-fno-pie",)),  # macOS runs no code for a fixed address
    "-ffunction-sections",
    *(() if WINDOWS else ("-fdata-sections",)),  # whose zeros MinGW's linker would store in the file
)
HOST_LINK_FLAGS = (
    ("-static", "-Wl,--gc-sections")  # without the folder of the compiler's libraries on PATH
    if WINDOWS
    else ("-Wl,-dead_strip",)
    if MACOS
    else ("-no-pie", "-Wl,--gc-sections")
)
PLUGIN_FLAGS = None if WINDOWS else ("-undefined", "dynamic_lookup") if MACOS else ()
"""Flags of a plugin whose functions the program that loads it has; None where a plugin is linked to that."""

_PACKAGES = {
    "gcc": ("xcode-select --install", "BrechtSanders.WinLibs.POSIX.UCRT"),
    "gcc-arm-none-eabi": ("brew install --cask gcc-arm-embedded", "Arm.GnuArmEmbeddedToolchain"),
    "libnewlib-arm-none-eabi": ("brew install --cask gcc-arm-embedded", "Arm.GnuArmEmbeddedToolchain"),
    "qemu-system-arm": ("brew install qemu", "SoftwareFreedomConservancy.QEMU"),
    "qemu-system-misc": ("brew install qemu", "SoftwareFreedomConservancy.QEMU"),
    "gdb-multiarch": ("brew install gdb", ""),
    "openocd": ("brew install openocd", ""),
    "stlink-tools": ("brew install stlink", ""),
    "picotool": ("brew install picotool", ""),
    "dfu-util": ("brew install dfu-util", ""),
    "teensy-loader-cli": ("brew install teensy_loader_cli", ""),
    "cppcheck": ("brew install cppcheck", "Cppcheck.Cppcheck"),
    "python3.11": ("brew install python@3.11", "Python.Python.3.11"),
}
"""By the name of Debian's package: the command of macOS, and winget's name; "" for none."""


def install(packages: str) -> str:
    """Return the command, or the advice, that installs packages, named as Debian names them."""
    if not (WINDOWS or MACOS):
        return f"sudo apt-get install {packages}{'  # Debian 13 or newer' * (packages == 'picotool')}"
    first = packages.split(maxsplit=1)[0]
    command, winget = _PACKAGES.get(first, ("", ""))
    if WINDOWS:
        command = winget and f"winget install --exact --id {winget}"
    return command or f"install {first} by hand and add its folder to PATH"


# Processes


class ProcessGroup:
    """Programs that end together: when they are killed, and when this process ends, however it does.

    `start` starts a program as `programs.start` does. `options` are for the Popen of a member, which is then
    added. On POSIX the first member waits for the end of a pipe from here, so that a program never outlives
    us, even if an interrupt comes before its Popen object exists. PR_SET_PDEATHSIG would already kill when
    the starting thread ends, and could not be set before an interrupt comes.

    On Windows it is a job object, which takes a member after it has started.
    """

    def __init__(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        import subprocess  # noqa: PLC0415

        self.options: dict[str, Any] = {}
        if sys.platform == "win32":
            self._job = _Job()
            # Ctrl-C in the console is ours alone
            self.options["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
        else:
            self._guard = start(
                ["/bin/sh", "-c", "read -r _; kill -KILL 0"],
                "/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
            self.options["process_group"] = self._guard.pid

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """Take a program that was started with `options` as a member."""
        if sys.platform == "win32":
            self._job.add(process)

    def kill(self) -> None:
        """End all members."""
        if sys.platform == "win32":
            self._job.kill()
        else:
            with suppress(ProcessLookupError):
                os.killpg(self._guard.pid, signal.SIGKILL)

    def close(self) -> None:
        """End all members, and the group."""
        self.kill()
        if sys.platform == "win32":
            self._job.close()
        else:
            self._guard.wait()
            if self._guard.stdin is not None:
                self._guard.stdin.close()


class _Job:
    """A job object of Windows, whose processes end with its last handle."""

    _EXTENDED_LIMITS, _KILL_ON_CLOSE = 9, 0x2000
    _LIMITS_BYTES, _FLAGS_AT = 144, 16  # JOBOBJECT_EXTENDED_LIMIT_INFORMATION of 64-bit Windows

    def __init__(self) -> None:
        self._kernel = _kernel32()
        self._handle = self._kernel.CreateJobObjectW(None, None)
        limits = bytearray(self._LIMITS_BYTES)
        limits[self._FLAGS_AT : self._FLAGS_AT + 4] = self._KILL_ON_CLOSE.to_bytes(4, "little")
        if not self._handle or not self._kernel.SetInformationJobObject(
            self._handle, self._EXTENDED_LIMITS, bytes(limits), len(limits)
        ):
            raise _windows_error()

    def add(self, process: Any) -> None:
        """Add a process; one that has ended already is none."""
        if not self._kernel.AssignProcessToJobObject(self._handle, int(process._handle)):
            error = _windows_error()
            if process.poll() is None:
                process.kill()
                raise error

    def kill(self) -> None:
        self._kernel.TerminateJobObject(self._handle, 1)

    def close(self) -> None:
        self._kernel.CloseHandle(self._handle)


def _kernel32() -> Any:
    """Return Windows' kernel32, with handles as wide as pointers."""
    import ctypes  # noqa: PLC0415

    library = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    handle, number, text = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_wchar_p
    library.CreateJobObjectW.restype = handle
    library.CreateJobObjectW.argtypes = (handle, text)
    library.SetInformationJobObject.argtypes = (handle, number, ctypes.c_char_p, number)
    library.AssignProcessToJobObject.argtypes = (handle, handle)
    library.TerminateJobObject.argtypes = (handle, number)
    library.CloseHandle.argtypes = (handle,)
    library.LockFileEx.argtypes = (handle, number, number, number, number, ctypes.c_char_p)
    library.UnlockFileEx.argtypes = (handle, number, number, number, ctypes.c_char_p)
    library.GetVolumeInformationW.argtypes = (text, handle, number, *([handle] * 4), number)
    return library


def _windows_error() -> OSError:
    import ctypes  # noqa: PLC0415

    return ctypes.WinError(ctypes.get_last_error())  # type: ignore[attr-defined,no-any-return,unused-ignore]


def fault_of(status: int) -> str:
    """Return the name of the fault that ended a program with this status of Windows; "" for others."""
    names = {0xC0000005: "an access violation", 0xC00000FD: "a stack overflow", 0xC000013A: "Ctrl-C"}
    return names.get(status & 0xFFFFFFFF, "")


# Locks of files; a lock ends with its process

_WHOLE_AT = 2**62
"""The byte that stands for a whole file on Windows, where a locked byte cannot be read."""


def lock_file(file: int, *, shared: bool = False) -> bool:
    """Try to lock an open file without waiting; return whether it is ours.

    Shared locks exclude only exclusive ones.
    """
    if sys.platform == "win32":
        return _lock_bytes(file, _WHOLE_AT, shared=shared)
    import fcntl  # noqa: PLC0415

    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock_file(file: int) -> None:
    """Release a lock of a whole file. Raises OSError on Windows without one."""
    if sys.platform == "win32":
        _unlock_bytes(file, _WHOLE_AT)
        return
    import fcntl  # noqa: PLC0415

    fcntl.flock(file, fcntl.LOCK_UN)


def lock_byte(file: int, at: int) -> bool:
    """Try to lock a byte of a file, which need not exist; return whether it is ours."""
    if sys.platform == "win32":
        return _lock_bytes(file, at)
    import fcntl  # noqa: PLC0415

    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
    except (BlockingIOError, PermissionError):
        return False
    return True


def unlock_byte(file: int, at: int) -> None:
    """Release a lock of a byte."""
    if sys.platform == "win32":
        _unlock_bytes(file, at)
        return
    import fcntl  # noqa: PLC0415

    fcntl.lockf(file, fcntl.LOCK_UN, 1, at)


if sys.platform == "win32":

    def _lock_bytes(file: int, at: int, *, shared: bool = False) -> bool:
        import ctypes  # noqa: PLC0415
        import msvcrt  # noqa: PLC0415

        at_once, exclusive, violation, pending = 1, 2, 33, 997
        flags = at_once | (0 if shared else exclusive)
        handle = msvcrt.get_osfhandle(file)
        if _kernel32().LockFileEx(handle, flags, 0, 1, 0, _overlapped(at)):
            return True
        if ctypes.get_last_error() in (violation, pending):
            return False
        raise _windows_error()

    def _unlock_bytes(file: int, at: int) -> None:
        import msvcrt  # noqa: PLC0415

        if not _kernel32().UnlockFileEx(msvcrt.get_osfhandle(file), 0, 1, 0, _overlapped(at)):
            raise _windows_error()

    def _overlapped(at: int) -> Any:
        """Return an OVERLAPPED of 64-bit Windows, which holds a position in a file."""
        import ctypes  # noqa: PLC0415

        return ctypes.create_string_buffer(bytes(16) + at.to_bytes(8, "little") + bytes(8), 32)


# Byte streams


class PipeEnds(Protocol):
    """Two pipes to a program as a stream: its output is read, its input written."""

    def receive(self, timeout_s: float) -> bytes | None:
        """Return bytes, b"" at the end of the stream, None if none came in time. Raises OSError."""

    def send(self, data: bytes, timeout_s: float) -> bool:
        """Write all bytes; return False if the other end takes none for that long. Raises OSError."""


def pipe_ends(reader: int, writer: int) -> PipeEnds:
    """Return the stream of two descriptors. Windows cannot wait for pipes: threads read and write them."""
    if sys.platform == "win32":
        return _ThreadedPipes(reader, writer)
    else:
        return _PolledPipes(reader, writer)


_CHUNK_BYTES = 65536

if sys.platform != "win32":

    class _PolledPipes:
        def __init__(self, reader: int, writer: int) -> None:
            import select  # noqa: PLC0415

            self._reader, self._writer = reader, writer
            os.set_blocking(reader, False)
            os.set_blocking(writer, False)
            self._readable, self._writable = select.poll(), select.poll()
            self._readable.register(reader, select.POLLIN)
            self._writable.register(writer, select.POLLOUT)

        def receive(self, timeout_s: float) -> bytes | None:
            if not self._readable.poll(timeout_s * 1000):
                return None
            try:
                return os.read(self._reader, _CHUNK_BYTES)
            except BlockingIOError:
                return None

        def send(self, data: bytes, timeout_s: float) -> bool:
            view, deadline = memoryview(data), time.monotonic() + timeout_s
            while view:
                try:
                    view = view[os.write(self._writer, view) :]
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        return False
                    self._writable.poll(100)
            return True


class _ThreadedPipes:
    def __init__(self, reader: int, writer: int) -> None:
        from queue import SimpleQueue  # noqa: PLC0415

        self._received: SimpleQueue[bytes | OSError] = SimpleQueue()
        self._to_send: SimpleQueue[bytes] = SimpleQueue()
        self._sent: SimpleQueue[OSError | None] = SimpleQueue()
        self._start(self._read, reader)
        self._start(self._write, writer)

    @staticmethod
    def _start(work: Callable[[int], None], pipe: int) -> None:
        import threading  # noqa: PLC0415

        threading.Thread(target=work, args=(pipe,), daemon=True).start()

    def receive(self, timeout_s: float) -> bytes | None:
        from queue import Empty  # noqa: PLC0415

        try:
            content = self._received.get(timeout=timeout_s)
        except Empty:
            return None
        if isinstance(content, OSError) or not content:
            self._received.put(content)  # each later call tells the same
        if isinstance(content, OSError):
            raise content
        return content

    def send(self, data: bytes, timeout_s: float) -> bool:
        from queue import Empty  # noqa: PLC0415

        self._to_send.put(data)
        try:
            error = self._sent.get(timeout=timeout_s)
        except Empty:
            return False
        if error is not None:
            raise error
        return True

    def _read(self, pipe: int) -> None:
        content: bytes | OSError = b"first"
        while not isinstance(content, OSError) and content:
            try:
                content = os.read(pipe, _CHUNK_BYTES)
            except OSError as error:
                content = error
            self._received.put(content)

    def _write(self, pipe: int) -> None:
        while True:
            view = memoryview(self._to_send.get())
            try:
                while view:
                    view = view[os.write(pipe, view) :]
            except OSError as error:
                self._sent.put(error)
                return
            self._sent.put(None)


@dataclass(frozen=True, slots=True)
class ServedLine:
    """A serial line that QEMU serves: its name here, QEMU's options, and descriptors that QEMU inherits."""

    url: str
    options: str
    descriptors: tuple[int, ...]


@contextmanager
def line_to_serve(folder: Path) -> Iterator[ServedLine]:
    """Yield a line for QEMU, which is started inside of the block.

    It is a socket in a private folder, that listens here before QEMU inherits it: connecting is never too
    early. On Windows it is a port of this computer, which its other users reach as well.
    """
    import socket  # noqa: PLC0415

    if sys.platform == "win32":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        yield ServedLine(f"socket://127.0.0.1:{port}", f"host=127.0.0.1,port={port}", ())
        return
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "line"))
        listener.listen(1)
        yield ServedLine(f"unix://{folder / 'line'}", f"fd={listener.fileno()}", (listener.fileno(),))


def local_socket() -> socket.socket:
    """Return a socket for the path of another one. Raises OSError where there are none."""
    import socket  # noqa: PLC0415

    if sys.platform == "win32":
        raise OSError("Python has no sockets in files on Windows: serve socket://host:port")
    return socket.socket(socket.AF_UNIX)


# Serial ports

EXAMPLE_PORT = "COM3" if WINDOWS else "/dev/cu.usbmodem1101" if MACOS else "/dev/ttyACM0"
_GROUP = "dialout"
JOIN_PORTS = f'sudo usermod -aG {_GROUP} "$USER"'
"""The command that lets a user open serial ports, where they belong to a group."""


def port_identity(name: str) -> str:
    """Return one name for all names of a serial port."""
    if WINDOWS:
        return name.upper().removeprefix("\\\\.\\")
    return str(Path(name).resolve()) if name.startswith("/") else name


def may_open(port: str) -> bool:
    """Whether this user may open a serial port that exists."""
    return WINDOWS or not Path(port).exists() or os.access(port, os.R_OK | os.W_OK)


def in_group_of_ports() -> bool:
    """Whether this user is in the group of serial ports, or the system has none."""
    if sys.platform in ("win32", "darwin") or os.geteuid() == 0:
        return True
    try:
        import grp  # noqa: PLC0415

        return grp.getgrnam(_GROUP).gr_gid in os.getgroups()
    except (ImportError, KeyError):
        return False


def why_port_not_open(error: Exception) -> Literal["denied", "busy", "absent", ""]:
    """Return why a serial port could not be opened; "" for other reasons."""
    import errno  # noqa: PLC0415

    text, code = str(error), getattr(error, "errno", None)
    if WINDOWS:  # where a port in use is denied
        return "busy" if "PermissionError" in text else "absent" if "FileNotFoundError" in text else ""
    if code == errno.EACCES or "Permission denied" in text:
        return "denied"
    if code in (errno.EBUSY, errno.EAGAIN) or "exclusively lock" in text:
        return "busy"
    return "absent" if code == errno.ENOENT or "No such file" in text else ""


# USB devices and drives

USB_DEVICES = Path("/sys/bus/usb/devices")
LISTS_USB = not (WINDOWS or MACOS)
"""Whether USB devices without a serial port are known, from that folder."""
_DRIVE_FOLDERS = ("/Volumes",) if MACOS else ("/media/*", "/media", "/run/media/*", "/mnt")
_LABELS = Path("/dev/disk/by-label")


def drives(label: str) -> list[Path]:
    """Return the mounted drives with this label, and on POSIX those with a number after it."""
    if WINDOWS:
        return [root for root in _letters() if _label(root) == label]
    folders = (it.lstrip("/") for it in _DRIVE_FOLDERS)
    return sorted({drive for folder in folders for drive in Path("/").glob(f"{folder}/{label}*")})


def usual_drive(label: str) -> Path:
    """Return the place where a drive with this label is mounted, as an example."""
    return Path("D:\\") if WINDOWS else Path("/Volumes" if MACOS else "/media", label)


def unmounted(label: str) -> str:
    """Return the command that mounts a drive that is there; "" for none, or where drives mount themselves."""
    drive = _LABELS / label
    return "" if WINDOWS or MACOS or not drive.exists() else f"udisksctl mount -b {drive}"


def copy_command(file: Path, drive: Path) -> list[str]:
    """Return the command line that copies a file to a drive."""
    if WINDOWS:
        return ["xcopy", "/y", str(file), str(drive)]  # no shell: it would run parts of a path
    # macOS: these drives take no extended attributes
    return ["cp", *(["-X"] if MACOS else []), str(file), str(drive)]


def flush_disks() -> None:
    """Write what is not on the disks yet. Windows writes removable drives at once."""
    if sys.platform != "win32":
        os.sync()


def _letters() -> Sequence[Path]:
    mask = _kernel32().GetLogicalDrives()
    return [Path(f"{chr(ord('A') + at)}:\\") for at in range(26) if mask >> at & 1]


def _label(root: Path) -> str:
    """Return the label of a drive; "" if it cannot be read, such as that of an empty card reader."""
    import ctypes  # noqa: PLC0415

    name = ctypes.create_unicode_buffer(261)
    done = _kernel32().GetVolumeInformationW(str(root), name, len(name), None, None, None, None, 0)
    return name.value if done else ""
