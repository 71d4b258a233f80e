"""The operations of the library as functions. Written by `ggufmill schema operations --python`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping  # noqa: F401
from os import PathLike
from typing import Any, Literal, Union

from ._library import Progress
from ._operate import Operator, default

Path = Union[str, "PathLike[str]"]
ProgressFunction = Callable[[Progress], object]


class Operations(Operator):
    """The operations as methods: a base of Context."""

    def compare(
        self,
        a: Path,
        b: Path,
        *,
        html: Path | None = None,
        importance: Path | None = None,
        outtype: Literal["auto", "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0"] = "auto",
        max_rmse: float | None = None,
        memory: int | str | None = None,
        threads: Literal["auto"] | int = "auto",
        overwrite: bool = False,
        progress: ProgressFunction | None = None,
    ) -> dict[str, Any]:
        """Compare the values of two models.

        Compare the values of two models, tensor by tensor, matching tensors by name. `a` and `b` are GGUF files (the
        first shard of a sharded model), checkpoint folders (compared as the models that `ggufmill convert` writes for
        them), or safetensors files (compared unchanged). `a` is the reference for `b`: with a the values of `a` and b
        those of `b`, RMSE is sqrt(mean (a - b)^2), the relative error is sqrt(sum (a - b)^2 / sum a^2), and with
        `importance=` the weighted error is sqrt(sum w (a - b)^2 / sum w a^2), where w is the importance of the column.
        Totals cover the tensors whose values differ. Values that differ are no failure unless `max_rmse=` is given and
        exceeded (`VerificationError`).

        a           the reference
        b           the model to compare with it
        html        write an HTML page to this file
        importance  importance matrix for `a`, GGUF or legacy .dat; adds the weighted error
        outtype     read a checkpoint folder as `ggufmill convert --outtype` would write it
        max_rmse    fails with `VerificationError` if a tensor's RMSE is greater or tensors cannot be compared
        memory      maximum bytes of tensor data in memory: 512MiB
        threads     number of threads, or auto
        overwrite   replace an existing page
        progress    a function that is called with a Progress; an exception in it ends the operation

        Returns the report, in the format of report files, and "warnings".
        """
        return self._operate(
            "compare",
            {
                "a": a,
                "b": b,
                "html": html,
                "importance": importance,
                "outtype": outtype,
                "max_rmse": max_rmse,
                "memory": memory,
                "threads": threads,
                "overwrite": overwrite,
            },
            progress,
        )

    def verify(
        self,
        path: Path,
        *,
        manifest: Path | None = None,
        against: Path | None = None,
        threads: Literal["auto"] | int = "auto",
        spec: bool = False,
        progress: ProgressFunction | None = None,
    ) -> dict[str, Any]:
        """Check that models are complete, valid, and match their manifests.

        Read a model from end to end and check that its structure is valid, the padding is zero, and all numbers and
        scales are finite. `path` is a GGUF file, the first shard of a sharded model, a safetensors file or folder, or a
        manifest. If there is a manifest (`manifest: true` in a pipeline file writes one), sizes and checksums are
        compared as well. `InputError`: malformed or not finite; `VerificationError`: does not match the manifest.

        With `against=`, tensors are also compared with those of the same name in the model that `path` was made from: a
        kept tensor must have the same values, and an encoded one must be closer to the source than zeros would be.
        Tensors that stages renamed are skipped, and if layers were pruned, which renumbers the others, all tensors of
        layers. `VerificationError`: a tensor differs.

        With `spec=`, only the header is read and compared with the GGUF specification: keys that an architecture needs,
        types and ranges of values, and names and shapes of tensors. On the command line, exit code 3: a rule is broken;
        advice alone does not count.

        path      model or manifest to verify
        manifest  manifest, if not `path`.manifest.json
        against   model that `path` was made from; its kept tensors must have the same values
        threads   number of threads, or auto
        spec      compare the header with the GGUF specification without reading weights
        progress  a function that is called with a Progress; an exception in it ends the operation

        Returns a dictionary:
        files     paths of the files that were read
        tensors   number of tensors
        bytes     size of the files
        manifest  path of the manifest that the files match, if there is one
        compared  number of tensors compared with `against=`
        skipped   number of other tensors, if there is `against=`
        file      path of the model; with `spec=`
        findings  what differs from the specification; with `spec=`: [{level, where, what, rule}]
        warnings  a list of strings
        """
        return self._operate(
            "verify",
            {
                "path": path,
                "manifest": manifest,
                "against": against,
                "threads": threads,
                "spec": spec,
            },
            progress,
            none_if_empty=("manifest",),
        )

    def hash(
        self,
        path: Path,
        *,
        kinds: Iterable[Literal["xxh64", "sha1", "sha256", "uuid"]] | None = None,
        tensors: bool = True,
        check: Path | None = None,
    ) -> dict[str, Any]:
        """Hash the weights of a model, as gguf-hash does.

        Hash the weights of a GGUF file, a sharded model, or safetensors files: each tensor, and all of them together,
        without header and padding. Files that differ only in metadata, alignment, or shards therefore have the same
        hashes. The lines have the format of llama.cpp's gguf-hash. The default kind is xxh64. `check=` compares with
        such lines; `VerificationError`: a hash differs, or nothing was compared.

        To check whether a file is unchanged, use `ggufmill verify` with a manifest.

        path     the model
        kinds    kinds of hashes; by default xxh64, or with `check=` the strongest kind in its file
        tensors  hash each tensor, besides all of them together
        check    file of hashes to compare with; without a kind, its strongest kind is compared

        Returns a dictionary:
        model     path of the model
        hashes    a hash of each tensor, and of all; `state` with `check=`: [{kind, hash, of, state}]
        warnings  a list of strings
        """
        return self._operate(
            "hash",
            {
                "path": path,
                "kinds": kinds,
                "tensors": tensors,
                "check": check,
            },
        )

    def split(
        self,
        input: Path,
        output: Path,
        *,
        split_max_size: int | str | None = None,
        split_max_tensors: int | None = None,
        no_tensor_first_split: bool = False,
        overwrite: bool = False,
        dry_run: bool = False,
        emit_pipeline: bool = False,
        engine: Literal["graph", "simple"] = "graph",
        io_engine: Literal["auto", "io_uring", "threads"] = "auto",
        profile: Path | None = None,
        resume: bool = True,
        discard: bool = False,
        report: Iterable[Path] | None = None,
        errors: bool = False,
        progress: ProgressFunction | None = None,
    ) -> dict[str, Any]:
        """Split a model into shards, as llama-gguf-split does.

        Split a model into shards `output`-00001-of-0000N.gguf, with the same bytes as llama-gguf-split. Without a
        limit, no shard has more than 128 tensors. If `input` is sharded, its shards are treated as one model and split
        again.

        input                  the model
        output                 name of the shards without -00001-of-0000N.gguf
        split_max_size         maximum bytes of tensor data per shard: 300M, 20G, 512MiB
        split_max_tensors      maximum number of tensors per shard
        no_tensor_first_split  write only the metadata to the first shard
        overwrite              replace existing outputs
        dry_run                list the files without writing anything
        emit_pipeline          print the equivalent pipeline file and exit
        engine                 graph, or simple (processes one slab at a time)
        io_engine              auto, io_uring, or threads
        profile                FILE.json: print where the time went and write a trace for Perfetto
        resume                 resume an earlier, unfinished run, and keep what is done if interrupted
        discard                remove the leftover files of interrupted runs and exit
        report                 FILE.html or FILE.json: write a report of the run; may be given once for each format
        errors                 measure the error of each tensor, for the report (report.error)
        progress               a function that is called with a Progress; an exception in it ends the operation

        Returns a dictionary:
        files     the files of the outputs: [{path, bytes, tensors}]
        report    the report of the run, in the format of report files
        pipeline  the text of the pipeline file; only with `emit_pipeline=`
        warnings  a list of strings
        """
        return self._operate(
            "split",
            {
                "input": input,
                "output": output,
                "split_max_size": split_max_size,
                "split_max_tensors": split_max_tensors,
                "no_tensor_first_split": no_tensor_first_split,
                "overwrite": overwrite,
                "dry_run": dry_run,
                "emit_pipeline": emit_pipeline,
                "engine": engine,
                "io_engine": io_engine,
                "profile": profile,
                "resume": resume,
                "discard": discard,
                "report": report,
                "errors": errors,
            },
            progress,
        )

    def merge(
        self,
        input: Path,
        output: Path,
        *,
        clean: bool = False,
        delete_splits: bool = False,
        overwrite: bool = False,
        dry_run: bool = False,
        emit_pipeline: bool = False,
        engine: Literal["graph", "simple"] = "graph",
        io_engine: Literal["auto", "io_uring", "threads"] = "auto",
        profile: Path | None = None,
        resume: bool = True,
        discard: bool = False,
        report: Iterable[Path] | None = None,
        errors: bool = False,
        progress: ProgressFunction | None = None,
    ) -> dict[str, Any]:
        """Merge the shards of a model into one file, as llama-gguf-split does.

        Merge the shards of a model into one file, with the same bytes as llama-gguf-split --merge, which keeps the keys
        split.* and sets split.count to 0. With `clean=`, these keys are omitted, so the file is the same as before it
        was split. `delete_splits=` removes the shards once the file is complete.

        input          the first shard
        output         the file to write
        clean          omit the keys split.*
        delete_splits  remove the shards once the file is complete
        overwrite      replace existing outputs
        dry_run        list the files without writing anything
        emit_pipeline  print the equivalent pipeline file and exit
        engine         graph, or simple (processes one slab at a time)
        io_engine      auto, io_uring, or threads
        profile        FILE.json: print where the time went and write a trace for Perfetto
        resume         resume an earlier, unfinished run, and keep what is done if interrupted
        discard        remove the leftover files of interrupted runs and exit
        report         FILE.html or FILE.json: write a report of the run; may be given once for each format
        errors         measure the error of each tensor, for the report (report.error)
        progress       a function that is called with a Progress; an exception in it ends the operation

        Returns a dictionary:
        files     the files of the outputs: [{path, bytes, tensors}]
        report    the report of the run, in the format of report files
        pipeline  the text of the pipeline file; only with `emit_pipeline=`
        warnings  a list of strings
        """
        return self._operate(
            "merge",
            {
                "input": input,
                "output": output,
                "clean": clean,
                "delete_splits": delete_splits,
                "overwrite": overwrite,
                "dry_run": dry_run,
                "emit_pipeline": emit_pipeline,
                "engine": engine,
                "io_engine": io_engine,
                "profile": profile,
                "resume": resume,
                "discard": discard,
                "report": report,
                "errors": errors,
            },
            progress,
        )


def compare(
    a: Path,
    b: Path,
    *,
    html: Path | None = None,
    importance: Path | None = None,
    outtype: Literal["auto", "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0"] = "auto",
    max_rmse: float | None = None,
    memory: int | str | None = None,
    threads: Literal["auto"] | int = "auto",
    overwrite: bool = False,
    progress: ProgressFunction | None = None,
) -> dict[str, Any]:
    return default().compare(
        a,
        b,
        html=html,
        importance=importance,
        outtype=outtype,
        max_rmse=max_rmse,
        memory=memory,
        threads=threads,
        overwrite=overwrite,
        progress=progress,
    )


def verify(
    path: Path,
    *,
    manifest: Path | None = None,
    against: Path | None = None,
    threads: Literal["auto"] | int = "auto",
    spec: bool = False,
    progress: ProgressFunction | None = None,
) -> dict[str, Any]:
    return default().verify(
        path,
        manifest=manifest,
        against=against,
        threads=threads,
        spec=spec,
        progress=progress,
    )


def hash(
    path: Path,
    *,
    kinds: Iterable[Literal["xxh64", "sha1", "sha256", "uuid"]] | None = None,
    tensors: bool = True,
    check: Path | None = None,
) -> dict[str, Any]:
    return default().hash(
        path,
        kinds=kinds,
        tensors=tensors,
        check=check,
    )


def split(
    input: Path,
    output: Path,
    *,
    split_max_size: int | str | None = None,
    split_max_tensors: int | None = None,
    no_tensor_first_split: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    emit_pipeline: bool = False,
    engine: Literal["graph", "simple"] = "graph",
    io_engine: Literal["auto", "io_uring", "threads"] = "auto",
    profile: Path | None = None,
    resume: bool = True,
    discard: bool = False,
    report: Iterable[Path] | None = None,
    errors: bool = False,
    progress: ProgressFunction | None = None,
) -> dict[str, Any]:
    return default().split(
        input,
        output,
        split_max_size=split_max_size,
        split_max_tensors=split_max_tensors,
        no_tensor_first_split=no_tensor_first_split,
        overwrite=overwrite,
        dry_run=dry_run,
        emit_pipeline=emit_pipeline,
        engine=engine,
        io_engine=io_engine,
        profile=profile,
        resume=resume,
        discard=discard,
        report=report,
        errors=errors,
        progress=progress,
    )


def merge(
    input: Path,
    output: Path,
    *,
    clean: bool = False,
    delete_splits: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    emit_pipeline: bool = False,
    engine: Literal["graph", "simple"] = "graph",
    io_engine: Literal["auto", "io_uring", "threads"] = "auto",
    profile: Path | None = None,
    resume: bool = True,
    discard: bool = False,
    report: Iterable[Path] | None = None,
    errors: bool = False,
    progress: ProgressFunction | None = None,
) -> dict[str, Any]:
    return default().merge(
        input,
        output,
        clean=clean,
        delete_splits=delete_splits,
        overwrite=overwrite,
        dry_run=dry_run,
        emit_pipeline=emit_pipeline,
        engine=engine,
        io_engine=io_engine,
        profile=profile,
        resume=resume,
        discard=discard,
        report=report,
        errors=errors,
        progress=progress,
    )


compare.__doc__ = Operations.compare.__doc__
verify.__doc__ = Operations.verify.__doc__
hash.__doc__ = Operations.hash.__doc__
split.__doc__ = Operations.split.__doc__
merge.__doc__ = Operations.merge.__doc__
__all__ = ["compare", "verify", "hash", "split", "merge"]
