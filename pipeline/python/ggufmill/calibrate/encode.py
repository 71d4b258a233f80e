"""The program ggufmill-encode: the best file of a recipe, encoded block by block."""

import os
import sys

from .. import plan, run
from .._error import Error, FileError
from .checkpoint import error
from .command import Parser, Progress, add_run_options, add_text_options, check, exit_code_of, set_up

DESCRIPTION = """\
Convert and quantize a checkpoint so that the encoded model computes what the original does: layer by layer, each matrix
is encoded with the inputs that it gets from the layers that are already encoded. Types and bytes are those of the recipe;
the file is an ordinary GGUF file. It takes a calibration and about five passes of the model over the text.

The checkpoint is a Hugging Face folder that ggufmill can convert and that your version of transformers can run. Only one
layer of it is in memory at a time. A run that was interrupted is resumed by the same command.
"""
EXAMPLES = """\
examples:
  ggufmill-encode models/Llama-3-8B Q4_K_M -o Llama-3-8B-Q4_K_M.gguf
  ggufmill-encode models/Llama-3-8B Q2_K -o Llama-3-8B-Q2_K.gguf --covariance Llama-3-8B.covariance.gguf --device cuda
"""


def _parse(arguments):
    p = Parser("ggufmill-encode", DESCRIPTION, EXAMPLES)
    p.add_argument("model", metavar="MODEL", help="folder of the checkpoint: config.json, *.safetensors, and the tokenizer")
    p.add_argument("recipe", metavar="RECIPE", help="recipe or type, such as Q4_K_M: `ggufmill recipe list` lists them")
    p.add_argument("-o", "--output", metavar="FILE", required=True, help="GGUF file to write")
    p.add_argument("--pre", metavar="NAME", help="pre-tokenizer of the GGUF file, if ggufmill does not know the tokenizer, as the key `pre` of a source")
    p.add_argument("--covariance", metavar="FILE", help="of `ggufmill-calibrate`, from which the encoding starts; default: it is collected first, from the same text")
    add_text_options(p)
    add_run_options(p, "encoding")
    return p.parse_args(arguments)


def _job(options, path, covariance=None):
    """Return the job that writes a file of the recipe, with a covariance file if it is there."""
    given = {"path": options.model, "architectures": options.architectures, "pre": options.pre}
    stages = [{"importance": {"covariance": covariance}}] if covariance else []
    if covariance and not options.covariance:  # a file of the working folder
        stages.append({"metadata": {"remove": ["quantize.imatrix.file"]}})
    return {
        "version": 1,
        "source": {"huggingface": {key: value for key, value in given.items() if value}},
        "stages": stages,
        "outputs": [{"gguf": path, "quantize": options.recipe}],
    }


def _check_job(options):
    """Check what only the last step needs, before the first takes its time. Errors are in the words of the options."""
    try:
        plan(_job(options, options.output + ".gguf"))
    except Error as e:
        if e.what.startswith("unknown pre-tokenizer"):
            help = "use --pre NAME with a name that llama.cpp knows, such as llama-bpe, qwen2, or gpt-2"
            raise error(type(e), e.where, e.what, help) from None
        if e.where.startswith("job"):
            raise error(type(e), "", f"RECIPE {options.recipe!r}: {e.what}", e.help) from None
        raise


def _start(setup, options, work, text):
    """Write the file that is improved layer by layer, unless it exists."""
    from .collect import collect, say
    from .covariance_file import rename

    start, covariance = work.path("start.gguf"), options.covariance or work.path("covariance.gguf")
    if os.path.exists(start):
        return start
    if not os.path.exists(covariance):
        options.form = "full"
        collect(setup, options, covariance, 0, text, Progress)
    if not options.quiet:
        say(f"{options.recipe} with the covariance of the original's inputs")
    part = work.path("part.gguf")
    run(_job(options, part, covariance), overwrite=True)
    rename(part, start)
    return start


def encode(options):
    check(options)
    if options.covariance and not os.path.isfile(options.covariance):
        raise error(FileError, options.covariance, "no such file, which --covariance names", "check the path; `ggufmill-calibrate` makes such files")
    setup, text = set_up(options)
    _check_job(options)
    from .sequential import encode_all

    encode_all(setup, options, lambda work: _start(setup, options, work, text), Progress)


def main(arguments=None):
    return exit_code_of(lambda: encode(_parse(arguments)))


def script():
    """The program ggufmill-encode."""
    sys.exit(main())


if __name__ == "__main__":
    script()
