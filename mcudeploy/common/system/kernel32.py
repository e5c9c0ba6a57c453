"""The library kernel32 of Windows."""

from __future__ import annotations

from typing import Any


def kernel32() -> Any:
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


def windows_error() -> OSError:
    """Return the error of the last call of kernel32."""
    import ctypes  # noqa: PLC0415

    return ctypes.WinError(ctypes.get_last_error())  # type: ignore[attr-defined,no-any-return,unused-ignore]
