"""The functions of ggufmill as coroutines: ``await ggufmill.aio.run("job.yaml")``.

Each runs in a thread of the loop's executor. If the task is cancelled, the operation is, too: the task ends once that has,
and a run keeps what is done. `progress` is called by the loop.
"""

import asyncio
import functools
import threading

import ggufmill

from ._library import Cancelled, cancelled_by
from ._operations import __all__ as _operations

__all__ = ["call", "dequantize", "imatrix", "open", "quantize", *_operations]


async def call(function, *arguments, progress=None, **keywords):
    """Call a function of the module, or a method of a Context, with these arguments."""
    loop = asyncio.get_running_loop()
    cancelled = threading.Event()
    raised = []

    def show(now):
        if cancelled.is_set():
            return
        try:
            progress(now)
        except Exception as error:  # ends the operation, as in the functions
            raised.append(error)
            cancelled.set()

    if progress is not None:
        keywords["progress"] = functools.partial(loop.call_soon_threadsafe, show) if callable(progress) else progress

    def work():
        if cancelled.is_set():  # while it waited for a thread
            return None
        with cancelled_by(cancelled):
            try:
                return function(*arguments, **keywords)
            except Cancelled:  # would end a thread of the executor
                return None

    running = loop.run_in_executor(None, work)
    try:
        result = await asyncio.shield(running)
    except asyncio.CancelledError:
        cancelled.set()
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # is nobody's any more
        raise
    if raised:
        raise raised[0]
    return result


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = getattr(ggufmill, name)

    @functools.wraps(function)
    async def coroutine(*arguments, **keywords):
        return await call(function, *arguments, **keywords)

    globals()[name] = coroutine
    return coroutine


def __dir__():
    return __all__
