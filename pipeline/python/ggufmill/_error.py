"""The one exception of the module."""


class Error(Exception):
    """What is wrong, where, and what to do now.

    where      a file, a line of a job ("job.yaml:9:56"), a tensor; may be empty
    what       one line
    detail     further lines: the line of the job with a caret, a byte offset, a limit; may be empty
    help       what to do now; may be empty
    exit_code  what the program ``ggufmill`` would end with: 2 for what was asked, 4 for a malformed file, 6 for I/O ...
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

    def __reduce__(self):
        return (
            Error,
            (self.args[0], self.where, self.what, self.detail, self.help, self.exit_code, self.also),
        )


def usage_error(what, help=""):
    """An error of what a caller asked for, in the form of the library's."""
    return Error(f"error: {what}\n" + (f"  help: {help}\n" if help else ""), "", what, "", help, 2)
