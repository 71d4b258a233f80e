"""The exceptions of the module: Error and a subclass for each kind."""


class Error(Exception):
    """An error: what is wrong, where, and what to do. There is a subclass for each kind.

    where      a file, a position in a job ("job.yaml:9:56"), or a tensor; may be empty
    what       the message, one line
    detail     additional lines: the line of the job with a caret, a byte offset, a limit; may be empty
    help       how to fix it; may be empty
    exit_code  exit code that the program ``ggufmill`` would return
    also       other errors found in the same step
    result     what the operation found, if that is what is wrong; else None
    """

    result = None

    def __init__(self, text, where, what, detail="", help="", exit_code=1, also=()):
        super().__init__(text)
        self.where = where
        self.what = what
        self.detail = detail
        self.help = help
        self.exit_code = exit_code
        self.also = list(also)

    def __str__(self):
        return "\n".join(error.args[0].rstrip("\n") for error in [self, *self.also])

    def __repr__(self):
        where = f"{self.where}: " if self.where else ""
        more = f", and {len(self.also)} more" if self.also else ""
        return f"<ggufmill.{type(self).__name__} {where}{self.what}{more}>"

    def __reduce__(self):
        return (
            type(self),
            (self.args[0], self.where, self.what, self.detail, self.help, self.exit_code, self.also),
        )


class UsageError(Error, ValueError):
    """An invalid argument or job (exit code 2)."""


class VerificationError(Error):
    """Outputs or files that do not match their checksums or another model (3)."""


class InputError(Error, ValueError):
    """A malformed input file (4)."""


class KernelError(Error):
    """A kernel, type, or instruction set that is not available (5)."""


class FileError(Error):
    """A file error: no space, no permission, a failed read or write (6)."""


class TransientError(Error):
    """A failure that may not recur: no memory, no threads, another run of the same job (75)."""


_KINDS = {2: UsageError, 3: VerificationError, 4: InputError, 5: KernelError, 6: FileError, 75: TransientError}


def error_of(text, where, what, detail, help, exit_code, also):
    """Return an error of the kind that an exit code identifies."""
    return _KINDS.get(exit_code, Error)(text, where, what, detail, help, exit_code, also)


def usage_error(what, help=""):
    """Return a usage error, in the format of the library."""
    return UsageError(f"error: {what}\n" + (f"  help: {help}\n" if help else ""), "", what, "", help, 2)
