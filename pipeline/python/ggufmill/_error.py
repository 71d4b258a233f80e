"""The exceptions of the module: Error, and a subclass for each kind."""


class Error(Exception):
    """What is wrong, where, and what to do now. Its subclasses say of what kind.

    where      a file, a line of a job ("job.yaml:9:56"), a tensor; may be empty
    what       one line
    detail     further lines: the line of the job with a caret, a byte offset, a limit; may be empty
    help       what to do now; may be empty
    exit_code  what the program ``ggufmill`` would end with
    also       other errors that the same step found
    """

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
    """An argument or a job that cannot be carried out (exit code 2)."""


class VerificationError(Error):
    """Outputs or files that are not as their checksums or another model say (3)."""


class InputError(Error, ValueError):
    """A malformed input file (4)."""


class KernelError(Error):
    """A kernel, type or instruction set that is not available (5)."""


class FileError(Error):
    """No space, no permission, a file that exists or is missing; a read or write that failed (6)."""


class TransientError(Error):
    """What may succeed when it is tried again: no memory, no threads, another run of the same job (75)."""


_KINDS = {2: UsageError, 3: VerificationError, 4: InputError, 5: KernelError, 6: FileError, 75: TransientError}


def error_of(text, where, what, detail, help, exit_code, also):
    """The error of a kind that an exit code stands for."""
    return _KINDS.get(exit_code, Error)(text, where, what, detail, help, exit_code, also)


def usage_error(what, help=""):
    """An error of what a caller asked for, in the form of the library's."""
    return UsageError(f"error: {what}\n" + (f"  help: {help}\n" if help else ""), "", what, "", help, 2)
