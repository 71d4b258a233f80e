"""The operations of the library as functions. Written by `ggufmill schema operations --python`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping  # noqa: F401
from os import PathLike
from typing import Any, Literal, Union

from ._error import Error
from ._library import Progress
from ._operate import Operator, of_default
from ._plan import Plan
from ._result import Result

Path = Union[str, "PathLike[str]"]
# True: a bar of tqdm.
ProgressFunction = Union[Callable[[Progress], object], bool]


class Operations(Operator):
    """The operations as methods: a base of Context."""

    def run(
        self,
        job: Path | Mapping[str, Any],
        *,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        parameters: Mapping[str, Any] | Iterable[str] | None = None,
        overwrite: bool = False,
        skip_unchanged: bool = False,
        fail_fast: bool = False,
        identity: str | None = None,
        threads: Literal["auto"] | int | None = None,
        io: Literal["cached", "streaming", "direct"] | None = None,
        engine: Literal["graph", "simple"] = "graph",
        io_engine: Literal["auto", "io_uring", "threads"] = "auto",
        profile: Path | None = None,
        resume: bool = True,
        discard: bool = False,
        report: Iterable[Path] | None = None,
        errors: bool = False,
        progress: ProgressFunction | None = None,
    ) -> Result:
        """Run a pipeline file.

        Run a pipeline file: read the source once and write all outputs. For a batch (`matrix`), process the sources in
        order, skipping outputs that already exist with unchanged inputs and options. An output appears under its name
        only once it is complete; a run that was interrupted or killed continues where it was. For a job with steps
        (importance that is computed, `quality`, `card`, `upload`, `after`), run those that are not done.

        A run that is ended resumes with the same call. If outputs of a batch fail, the others are written before the
        failure is reported. In Python, `job` can also be a Plan, which is run as it is.

        job             the pipeline file, or its contents: an object, or a text of several lines
        set             override a value: outputs.0.gguf=out/a.gguf
        parameters      set a declared parameter: NAME=value
        overwrite       replace existing outputs
        skip_unchanged  skip outputs whose manifests show that this run would not change them
        fail_fast       for a batch: start no further outputs after one fails
        identity        run only the plan with this identity, which the plan's JSON contains, without other steps
        threads         number of threads, or auto; overrides limits.threads
        io              I/O mode: cached, streaming, or direct; overrides limits.io
        engine          graph, or simple (processes one slab at a time)
        io_engine       auto, io_uring, or threads
        profile         FILE.json: print where the time went and write a trace for Perfetto
        resume          resume an earlier, unfinished run, and keep what is done if interrupted
        discard         remove the leftover files of interrupted runs, and do nothing else
        report          FILE.html or FILE.json: write a report of the run; may be given once for each format
        errors          measure the error of each tensor, for the report (report.error)
        progress        a function that is called with a Progress, whose exceptions end the operation; True: a bar of
                        tqdm

        Returns the report, a dictionary in the format of report files, with "unchanged" and "warnings".
        """
        return self._run(
            {
                "job": job,
                "set": set,
                "parameters": parameters,
                "overwrite": overwrite,
                "skip_unchanged": skip_unchanged,
                "fail_fast": fail_fast,
                "identity": identity,
                "threads": threads,
                "io": io,
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

    def quantize_model(
        self,
        input: Path,
        type: str,
        output: Path | None = None,
        threads: str | int | None = None,
        *,
        allow_requantize: bool = False,
        leave_output_tensor: bool = False,
        pure: bool = False,
        imatrix: Path | None = None,
        covariance: Path | None = None,
        hide_imatrix: bool = False,
        include_weights: Iterable[str] | None = None,
        exclude_weights: Iterable[str] | None = None,
        output_tensor_type: str | None = None,
        token_embedding_type: str | None = None,
        tensor_type: Iterable[str | Any] | None = None,
        custom_q: Iterable[str] | None = None,
        repack: bool = False,
        repack_pattern: Iterable[str] | None = None,
        encoder: str | None = None,
        prune_layers: str | None = None,
        architectures: Iterable[Path] | None = None,
        allow_missing: bool = False,
        keep_split: bool = False,
        override_kv: Iterable[str] | None = None,
        max_buffer_size: str | None = None,
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
    ) -> Result:
        """Quantize a model, with llama-quantize's arguments.

        Quantize a model, with the arguments of llama-quantize and the same bytes as its output. `input` is a GGUF file,
        or a checkpoint folder or the safetensors file of a diffusion model, which is converted and quantized in one
        pass. `type` is a recipe (`ggufmill recipe list`), its number, or the path of a recipe file (./mine.yaml); the
        input is read only once for several types. Without `output`, the output of a GGUF file is ggml-model-TYPE.gguf
        next to it; with several types, for a checkpoint or a diffusion model, and if `output` is a folder (a new one
        ends with /), each output is MODEL-TYPE.gguf. `emit_pipeline=` gives the equivalent pipeline file.

        In Python, quantize_model() quantizes a model, and quantize() an array.

        input                 GGUF file, checkpoint folder, or safetensors file of a diffusion model
        type                  name, alias, or number of a recipe, path of a recipe file, or several: A,B
        output                file to write, or a folder
        threads               number of threads; default: as many as the machine has
        allow_requantize      requantize tensors that are already quantized; loses quality
        leave_output_tensor   leave output.weight unchanged
        pure                  use one type for all tensors instead of a mixture
        imatrix               importance matrix, GGUF or legacy .dat
        covariance            covariance file of ggufmill-calibrate, with which levels are chosen; it is also the
                              importance matrix
        hide_imatrix          record that there was an importance matrix, but not which
        include_weights       use importance only for tensors whose names contain this text
        exclude_weights       use no importance for tensors whose names contain this text
        output_tensor_type    type of output.weight
        token_embedding_type  type of the token embedding
        tensor_type           types of the tensors whose names match: "PATTERN=TYPE", or {"file": PATH} for a file of
                              them; the first match wins
        custom_q              REGEX=TYPE,REGEX=TYPE...: the same as a list, as in ik_llama.cpp; a type that does not fit
                              is replaced
        repack                change no values, but interleave rows for ik_llama.cpp (types _R4 and _R8); `type` is
                              ignored
        repack_pattern        REGEX,REGEX...: with `repack=`, only tensors whose names match one of these
        encoder               reference, search, covariance, or '{search: {effort: 3}}': see `encoder` of a stage
        prune_layers          layers to remove: 6,7
        architectures         folder of architecture maps, or one map file, to add to the built-in ones
        allow_missing         accept a checkpoint even if files or tensors are missing, with a warning
        keep_split            write the same shards as the input
        override_kv           KEY=TYPE:VALUE: set metadata; TYPE is int, float, bool, str, or a metadata type
        max_buffer_size       accepted, but has no effect: the memory of every job is bounded (limits.memory)
        overwrite             replace existing outputs
        dry_run               list the files without writing anything
        emit_pipeline         give the equivalent pipeline file instead of running it
        engine                graph, or simple (processes one slab at a time)
        io_engine             auto, io_uring, or threads
        profile               FILE.json: print where the time went and write a trace for Perfetto
        resume                resume an earlier, unfinished run, and keep what is done if interrupted
        discard               remove the leftover files of interrupted runs, and do nothing else
        report                FILE.html or FILE.json: write a report of the run; may be given once for each format
        errors                measure the error of each tensor, for the report (report.error)
        progress              a function that is called with a Progress, whose exceptions end the operation; True: a bar
                              of tqdm

        Returns a dictionary:
        files     the files of the outputs: [{path, bytes, tensors}]
        report    the report of the run, in the format of report files
        pipeline  the text of the pipeline file; only with `emit_pipeline=`
        warnings  a list of strings
        """
        return self._operate(
            "quantize",
            {
                "input": input,
                "type": type,
                "output": output,
                "threads": threads,
                "allow_requantize": allow_requantize,
                "leave_output_tensor": leave_output_tensor,
                "pure": pure,
                "imatrix": imatrix,
                "covariance": covariance,
                "hide_imatrix": hide_imatrix,
                "include_weights": include_weights,
                "exclude_weights": exclude_weights,
                "output_tensor_type": output_tensor_type,
                "token_embedding_type": token_embedding_type,
                "tensor_type": tensor_type,
                "custom_q": custom_q,
                "repack": repack,
                "repack_pattern": repack_pattern,
                "encoder": encoder,
                "prune_layers": prune_layers,
                "architectures": architectures,
                "allow_missing": allow_missing,
                "keep_split": keep_split,
                "override_kv": override_kv,
                "max_buffer_size": max_buffer_size,
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

    def convert(
        self,
        folder: str,
        *,
        outtype: str = "auto",
        vocab_only: bool = False,
        model_name: str | None = None,
        metadata: Path | None = None,
        split_max_size: str = "0",
        split_max_tensors: int = 0,
        no_tensor_first_split: bool = False,
        mmproj: bool = False,
        mtp: bool = False,
        no_mtp: bool = False,
        dspark: bool = False,
        target_model_dir: Path | None = None,
        fuse_gate_up_exps: bool = False,
        fuse_qkv: bool = False,
        fp8_as_q8: bool = False,
        allow_missing: bool = False,
        sentence_transformers_dense_modules: bool = False,
        mistral_format: bool = False,
        outfile: Path | None = None,
        bigendian: bool = False,
        architectures: Iterable[Path] | None = None,
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
    ) -> Result:
        """Convert a checkpoint to GGUF, with convert_hf_to_gguf.py's arguments.

        Convert a checkpoint to GGUF, with the arguments of convert_hf_to_gguf.py and the same bytes as its output.
        `folder` is a checkpoint; without `outfile=`, the output is written into it, under the name that
        convert_hf_to_gguf.py uses. `emit_pipeline=` gives the equivalent pipeline file instead.

        folder                               checkpoint: a folder, or the address of one
        outtype                              f32, f16, bf16, q8_0, tq1_0, tq2_0, or auto
        vocab_only                           write the metadata and the vocabulary, but no tensors
        model_name                           name of the model; overrides the name in the checkpoint
        metadata                             JSON file with general.* keys that override those of the checkpoint
        split_max_size                       maximum bytes of tensors per file: 20G
        split_max_tensors                    maximum number of tensors per file
        no_tensor_first_split                write the metadata into a first file without tensors
        mmproj                               write the projector with the encoders of images and sound instead of the
                                             text model
        mtp                                  write only the multi-token prediction head
        no_mtp                               omit the multi-token prediction head
        dspark                               write only the DSpark draft in the checkpoint; requires `target_model_dir=`
        target_model_dir                     folder of the model for which the checkpoint is a draft
        fuse_gate_up_exps                    fuse the gate and up tensors of each layer's experts into one
        fuse_qkv                             fuse the query, key, and value tensors of each layer into one
        fp8_as_q8                            write FP8 tensors as Q8_0
        allow_missing                        accept a checkpoint even if files or tensors are missing, with a warning
        sentence_transformers_dense_modules  include the Dense modules of an embedding model
        mistral_format                       read params.json and consolidated.safetensors, Mistral's own format
        outfile                              file to write, or a folder, a new one with / at its end; {ftype} in it is
                                             replaced by the type
        bigendian                            write for big-endian machines
        architectures                        folder of architecture maps, or one map file, to add to the built-in ones
        overwrite                            replace existing outputs
        dry_run                              list the files without writing anything
        emit_pipeline                        give the equivalent pipeline file instead of running it
        engine                               graph, or simple (processes one slab at a time)
        io_engine                            auto, io_uring, or threads
        profile                              FILE.json: print where the time went and write a trace for Perfetto
        resume                               resume an earlier, unfinished run, and keep what is done if interrupted
        discard                              remove the leftover files of interrupted runs, and do nothing else
        report                               FILE.html or FILE.json: write a report of the run; may be given once for
                                             each format
        errors                               measure the error of each tensor, for the report (report.error)
        progress                             a function that is called with a Progress, whose exceptions end the
                                             operation; True: a bar of tqdm

        Returns a dictionary:
        files     the files of the outputs: [{path, bytes, tensors}]
        report    the report of the run, in the format of report files
        pipeline  the text of the pipeline file; only with `emit_pipeline=`
        warnings  a list of strings
        """
        return self._operate(
            "convert",
            {
                "folder": folder,
                "outtype": outtype,
                "vocab_only": vocab_only,
                "model_name": model_name,
                "metadata": metadata,
                "split_max_size": split_max_size,
                "split_max_tensors": split_max_tensors,
                "no_tensor_first_split": no_tensor_first_split,
                "mmproj": mmproj,
                "mtp": mtp,
                "no_mtp": no_mtp,
                "dspark": dspark,
                "target_model_dir": target_model_dir,
                "fuse_gate_up_exps": fuse_gate_up_exps,
                "fuse_qkv": fuse_qkv,
                "fp8_as_q8": fp8_as_q8,
                "allow_missing": allow_missing,
                "sentence_transformers_dense_modules": sentence_transformers_dense_modules,
                "mistral_format": mistral_format,
                "outfile": outfile,
                "bigendian": bigendian,
                "architectures": architectures,
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

    def convert_lora(
        self,
        adapter: str,
        *,
        outtype: str = "f32",
        base: str | None = None,
        outfile: Path | None = None,
        bigendian: bool = False,
        architectures: Iterable[Path] | None = None,
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
    ) -> Result:
        """Convert a LoRA adapter to GGUF, with convert_lora_to_gguf.py's arguments.

        Convert a LoRA adapter in the format of PEFT to GGUF, with the arguments of convert_lora_to_gguf.py and the same
        bytes as its output. `adapter` is a folder with adapter_config.json; of the base model, only config.json is
        needed. Without `outfile=`, the output is written into `adapter`, under the name that convert_lora_to_gguf.py
        uses. `emit_pipeline=` gives the equivalent pipeline file instead.

        adapter        folder with adapter_config.json
        outtype        f32, f16, bf16, q8_0, or auto (like the adapter)
        base           folder or address of the base model's config.json
        outfile        file to write, or a folder, a new one with / at its end; {ftype} in it is replaced by the type
        bigendian      write for big-endian machines
        architectures  folder of architecture maps, or one map file, to add to the built-in ones
        overwrite      replace existing outputs
        dry_run        list the files without writing anything
        emit_pipeline  give the equivalent pipeline file instead of running it
        engine         graph, or simple (processes one slab at a time)
        io_engine      auto, io_uring, or threads
        profile        FILE.json: print where the time went and write a trace for Perfetto
        resume         resume an earlier, unfinished run, and keep what is done if interrupted
        discard        remove the leftover files of interrupted runs, and do nothing else
        report         FILE.html or FILE.json: write a report of the run; may be given once for each format
        errors         measure the error of each tensor, for the report (report.error)
        progress       a function that is called with a Progress, whose exceptions end the operation; True: a bar of
                       tqdm

        Returns a dictionary:
        files     the files of the outputs: [{path, bytes, tensors}]
        report    the report of the run, in the format of report files
        pipeline  the text of the pipeline file; only with `emit_pipeline=`
        warnings  a list of strings
        """
        return self._operate(
            "convert_lora",
            {
                "adapter": adapter,
                "outtype": outtype,
                "base": base,
                "outfile": outfile,
                "bigendian": bigendian,
                "architectures": architectures,
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

    def check(
        self,
        job: Path | Mapping[str, Any],
        *,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        parameters: Mapping[str, Any] | Iterable[str] | None = None,
        overwrite: bool = False,
    ) -> list[Error]:
        """Check a pipeline file, its inputs, disk space, and memory without writing anything.

        Check a pipeline file, the headers of the source, all rules, the paths of the outputs, disk space, and memory.
        Reads only headers and writes nothing.

        Success means that `run` can start; a failure has all problems.

        job         the pipeline file, or its contents: an object, or a text of several lines
        set         override a value: outputs.0.gguf=out/a.gguf
        parameters  set a declared parameter: NAME=value
        overwrite   do not report existing outputs as errors

        Returns the problems, a list of errors: empty if `run` can start.
        """
        return self._check(
            {
                "job": job,
                "set": set,
                "parameters": parameters,
                "overwrite": overwrite,
            },
        )

    def plan(
        self,
        job: Path | Mapping[str, Any],
        *,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        parameters: Mapping[str, Any] | Iterable[str] | None = None,
        written: bool = False,
        html: Path | None = None,
        overwrite: bool = False,
    ) -> Plan:
        """Show what a pipeline file does to each tensor without writing anything.

        Show every tensor of every output: shape, type before and after, bytes, and the rule that decided; then the
        totals, and the memory that llama.cpp needs for the output with the context of the model, of at most 4096 tokens
        (`ggufmill fit` shows others). Reads only headers and writes nothing.

        For a plan with problems that prevent a run, the failure is `UsageError`, which has the plan as its result.

        job         the pipeline file, or its contents: an object, or a text of several lines
        set         override a value: outputs.0.gguf=out/a.gguf
        parameters  set a declared parameter: NAME=value
        written     give the plan in its canonical JSON form, which is the same on every machine
        html        write an HTML page with a picture of every output to this file
        overwrite   replace an existing page

        Returns a Plan, which run() accepts instead of a job.
        """
        return self._plan(
            {
                "job": job,
                "set": set,
                "parameters": parameters,
                "written": written,
                "html": html,
                "overwrite": overwrite,
            },
        )

    def inspect(
        self,
        path: Path,
        *,
        outtype: Literal["auto", "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0"] = "auto",
        tensor: str | None = None,
        values: bool = False,
        rows: str | None = None,
        template: bool = False,
        conversation: Path | None = None,
        bins: int = 24,
    ) -> Result:
        """Show the metadata and tensors of a model.

        Show the metadata and tensors of a GGUF file (the first shard of a sharded model), a checkpoint folder (as
        `ggufmill convert` would write them), or a safetensors file (unchanged). Tensors without an offset are assembled
        from several places or have their values changed. With `tensor=`, give statistics of the tensor's values, or
        with `values=`, the values of some rows.

        With `template=`, render a conversation, by default one with a call of a tool, with each chat template of the
        model, and warn if a template fails for system messages or tools, does not add a generation prompt, uses tokens
        that the vocabulary does not have, writes the first token although programs add it, or uses what is not defined.
        Jinja of Python renders, as in transformers, because no C++ library of Jinja is packaged: python3 and its module
        jinja2 must be installed. A template runs in a process of its own, without files and network, for at most 5 s
        and with 512 MiB of memory. `InputError`: a template cannot be rendered.

        path          the model
        outtype       read a checkpoint folder as `ggufmill convert` with the same `outtype=` would write it
        tensor        show statistics of the values of this tensor
        values        with `tensor=`: show its first values instead of statistics
        rows          with `values=`: the rows to show, as FIRST:COUNT; default: the first four
        template      render a conversation with the chat templates, and check them
        conversation  with `template=`: a JSON file with the messages, as a list or as {messages, tools}
        bins          with `tensor=`: number of bins of the histogram

        Returns {files, metadata: [{key, type, value}], tensors: [{name, shape, type, bytes, ..}], parts}; for a tensor
        {tensor, type, count, zeros, not_finite, least, largest, mean, deviation, histogram} or {tensor, first, values};
        with `template=` {templates: [{name, text, generation_prompt}]}, with error in place of the last two if there is
        one, and "warnings".
        """
        return self._operate(
            "inspect",
            {
                "path": path,
                "outtype": outtype,
                "tensor": tensor,
                "values": values,
                "rows": rows,
                "template": template,
                "conversation": conversation,
                "bins": bins,
            },
        )

    def fit(
        self,
        path: Path,
        *,
        type: str | None = None,
        outtype: Literal["auto", "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0"] = "auto",
        context: str | int | None = None,
        kv: str = "F16",
        flash_attention: bool = True,
        batch: int = 512,
        device: str | int | None = None,
        margin: int | str = "1GiB",
        bandwidth: int | str | None = None,
    ) -> Result:
        """Show how much memory a model needs, and how many layers fit on devices.

        Show what llama.cpp needs to run a model: its weights, the cache of keys and values for each context, the states
        of recurrent layers, and the buffers of computations; with `device=`, how many layers fit on the devices, and
        the options of llama.cpp with which they lie there; with `bandwidth=`, how many tokens per second are possible
        at most. Reads only headers.

        `path` is a GGUF file, the first shard of a sharded model, a checkpoint, as it is or with `type=` as it would be
        quantized, the address of one of these (hf://OWNER/MODEL), or a pipeline file (*.yaml), whose text models in
        GGUF files are shown, with a matrix those of all sources.

        Weights, cache and states are those of llama.cpp to the byte if everything is in one memory. The buffers of
        computations are an estimate for its CPU backend, mostly within 3%; other backends need more or less. The number
        of tokens per second is an upper bound: the bandwidth by the bytes of weights and cache that a token reads when
        the context is full; of experts, those that are used. Layers are assigned as llama.cpp does: the first ones
        remain in the memory of the machine, and the output is on the last device.

        path             model, or pipeline file
        type             show the model as it would be quantized: a recipe, as for `ggufmill quantize`, or several: A,B
        outtype          read a checkpoint folder as `ggufmill convert` with the same `outtype=` would write it
        context          number of tokens of the context, or several; 4096,32768 by default
        kv               type of the KV cache
        flash_attention  use flash attention
        batch            number of tokens that are computed at once: llama.cpp's -ub
        device           memory of the device, or of several in order: 24GiB,24GiB
        margin           memory of each device that stays free
        bandwidth        bytes per second that are read from memory, for the number of tokens per second

        Returns a dictionary:
        path      the model or pipeline file
        kv        type of the KV cache
        rows      one for each model and context: [{model, architecture, context, weights, cache, states, compute,
                  total, fits, layers, offloaded, devices: [{size, layers, has_output, weights, cache, states, compute,
                  total}], read_per_token, tokens_per_second, is_known}]
        warnings  a list of strings
        """
        return self._operate(
            "fit",
            {
                "path": path,
                "type": type,
                "outtype": outtype,
                "context": context,
                "kv": kv,
                "flash_attention": flash_attention,
                "batch": batch,
                "device": device,
                "margin": margin,
                "bandwidth": bandwidth,
            },
        )

    def models_page(
        self,
        models: Iterable[Path],
        html: Path,
        *,
        outtype: Literal["auto", "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0"] = "auto",
        overwrite: bool = False,
    ) -> Result:
        """Write an HTML page with pictures of models.

        Write an HTML page with pictures of one or several models, of every kind that `inspect` reads.

        models     the models
        html       write an HTML page with pictures of the models to this file
        outtype    read a checkpoint folder as `ggufmill convert` with the same `outtype=` would write it
        overwrite  replace an existing page

        Returns a dictionary:
        html      path of the page
        warnings  a list of strings
        """
        return self._operate(
            "models_page",
            {
                "models": models,
                "html": html,
                "outtype": outtype,
                "overwrite": overwrite,
            },
        )

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
    ) -> Result:
        """Compare the values of two models.

        Compare the values of two models, tensor by tensor, matching tensors by name. `a` and `b` are GGUF files (the
        first shard of a sharded model), checkpoint folders (compared as the models that `ggufmill convert` writes for
        them), or safetensors files (compared unchanged). `a` is the reference for `b`: for values a of `a` and b of
        `b`, RMSE is sqrt(mean (a - b)^2), the relative error is sqrt(sum (a - b)^2 / sum a^2), and with `importance=`
        the weighted error is sqrt(sum w (a - b)^2 / sum w a^2), where w is the importance of the column. Totals cover
        the tensors whose values differ. A difference is not a failure unless `max_rmse=` is given and exceeded
        (`VerificationError`).

        a           the reference
        b           the model to compare with it
        html        write an HTML page to this file
        importance  importance matrix for `a`, GGUF or legacy .dat; adds the weighted error
        outtype     read a checkpoint folder as `ggufmill convert` with the same `outtype=` would write it
        max_rmse    fail with `VerificationError` if a tensor's RMSE is greater or tensors cannot be compared
        memory      maximum bytes of tensor data in memory: 512MiB
        threads     number of threads, or auto
        overwrite   replace an existing page
        progress    a function that is called with a Progress, whose exceptions end the operation; True: a bar of tqdm

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

    def report(
        self,
        path: Path,
        *,
        output: Path | None = None,
        overwrite: bool = False,
    ) -> Result:
        """Make the HTML page of a report that was written as JSON.

        Make the HTML page of a report that `ggufmill run` or `ggufmill compare` wrote as JSON: the same page that `run
        --report FILE.html` and `compare --html` write. Without `output=`, the page is the output.

        path       the report, JSON
        output     the page to write
        overwrite  replace an existing page

        Returns a dictionary:
        path      path of the page; with `output=`
        html      the page; without `output=`
        warnings  a list of strings
        """
        return self._operate(
            "report",
            {
                "path": path,
                "output": output,
                "overwrite": overwrite,
            },
        )

    def verify(
        self,
        path: Path,
        *,
        manifest: Path | None = None,
        against: Path | None = None,
        allow_missing: bool = False,
        threads: Literal["auto"] | int = "auto",
        spec: bool = False,
        attestation: Path | None = None,
        key: Path | None = None,
        progress: ProgressFunction | None = None,
    ) -> Result:
        """Check that models are complete, valid, and match their manifests.

        Read a model from end to end and check that its structure is valid, the padding is zero, and all numbers and
        scales are finite. `path` is a GGUF file, the first shard of a sharded model, a safetensors file, a checkpoint
        folder, which must be complete unless `allow_missing=` is given, or a manifest. If there is a manifest
        (`manifest: true` in a pipeline file writes one), sizes and checksums are compared as well; without one, a
        changed weight is not found as long as it is finite. `InputError`: malformed or not finite; `VerificationError`:
        does not match the manifest.

        With `against=`, tensors are also compared with those of the same name in the model that `path` was made from: a
        kept tensor must have the same values, and an encoded one must be closer to the source than zeros would be.
        Tensors that stages renamed are skipped. So are all tensors of layers if layers were pruned, which renumbers the
        others. `VerificationError`: a tensor differs.

        With `spec=`, only the header is read and compared with the GGUF specification: keys that an architecture needs,
        types and ranges of values, and names and shapes of tensors.

        With `attestation=`, the checksum of the file is compared with an attestation that `attestation` in a pipeline
        file has written, and what the file was made from is reported; with `key=`, the attestation must be signed with
        that key. `path` can then be any file. `VerificationError`: the file is another one, or the signature is not
        valid.

        With `spec=`, a broken rule is not an error: it is one of the findings.

        path           model or manifest to verify
        manifest       manifest, if not `path`.manifest.json
        against        model that `path` was made from; its kept tensors must have the same values
        allow_missing  accept a checkpoint even if files or tensors are missing, with a warning
        threads        number of threads, or auto
        spec           compare the header with the GGUF specification without reading weights
        attestation    attestation of the file: a DSSE envelope, a bundle of Sigstore, or an in-toto statement
        key            public key in PEM (Ed25519 or ECDSA) with which the attestation must be signed
        progress       a function that is called with a Progress, whose exceptions end the operation; True: a bar of
                       tqdm

        Returns a dictionary:
        files      paths of the files that were read
        tensors    number of tensors
        bytes      size of the files
        manifest   path of the manifest that the files match, if there is one
        compared   number of tensors compared with `against=`
        skipped    number of other tensors, if there is `against=`
        file       path of the model; with `spec=`
        findings   what differs from the specification; with `spec=`: [{level, where, what, rule}]
        name       name of the file when it was made; with `attestation=`
        sha256     checksum of the file; with `attestation=`
        signed_by  identifier of `key=`, if the signature was checked; with `attestation=`
        ggufmill   version of ggufmill that made the file; with `attestation=`
        llama_cpp  version of llama.cpp that it followed; with `attestation=`
        made_from  the files that were read; with `attestation=`: [{name, sha256, bytes}]
        warnings   a list of strings
        """
        return self._operate(
            "verify",
            {
                "path": path,
                "manifest": manifest,
                "against": against,
                "allow_missing": allow_missing,
                "threads": threads,
                "spec": spec,
                "attestation": attestation,
                "key": key,
            },
            progress,
            none_if_empty=("manifest", "signed_by",),
        )

    def hash(
        self,
        path: Path,
        *,
        kinds: Iterable[Literal["xxh64", "sha1", "sha256", "uuid"]] | None = None,
        tensors: bool = True,
        check: Path | None = None,
    ) -> Result:
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
    ) -> Result:
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
        emit_pipeline          give the equivalent pipeline file instead of running it
        engine                 graph, or simple (processes one slab at a time)
        io_engine              auto, io_uring, or threads
        profile                FILE.json: print where the time went and write a trace for Perfetto
        resume                 resume an earlier, unfinished run, and keep what is done if interrupted
        discard                remove the leftover files of interrupted runs, and do nothing else
        report                 FILE.html or FILE.json: write a report of the run; may be given once for each format
        errors                 measure the error of each tensor, for the report (report.error)
        progress               a function that is called with a Progress, whose exceptions end the operation; True: a
                               bar of tqdm

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
    ) -> Result:
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
        emit_pipeline  give the equivalent pipeline file instead of running it
        engine         graph, or simple (processes one slab at a time)
        io_engine      auto, io_uring, or threads
        profile        FILE.json: print where the time went and write a trace for Perfetto
        resume         resume an earlier, unfinished run, and keep what is done if interrupted
        discard        remove the leftover files of interrupted runs, and do nothing else
        report         FILE.html or FILE.json: write a report of the run; may be given once for each format
        errors         measure the error of each tensor, for the report (report.error)
        progress       a function that is called with a Progress, whose exceptions end the operation; True: a bar of
                       tqdm

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

    def edit(
        self,
        path: Path,
        *,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        set_file: Mapping[str, Path] | Iterable[str] | None = None,
        remove: Iterable[str] | None = None,
        rename: Mapping[str, str] | Iterable[str] | None = None,
        drop: Iterable[str] | None = None,
        take: Mapping[str, str] | Iterable[str] | None = None,
        like: Path | None = None,
        like_tokenizer: bool = False,
        chat_template: str | None = None,
        chat_template_file: Path | None = None,
        output: Path | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
    ) -> Result:
        """Change metadata and tensors of a GGUF file, in place where possible.

        Change a GGUF file: set, remove, and rename keys, and drop, rename, and take tensors. If the header has room for
        the change and no weight moves, only the header is written, regardless of the size of the file. Otherwise, a new
        file replaces the old one once it is complete; the operating system copies the weights, or shares them if the
        file system supports that. An interrupted edit in place is undone by the next edit.

        A value keeps the type of its key. A new key that llama.cpp or the GGUF specification knows has its known type;
        the type of another is derived from the value: true, 7, 0.5, a JSON list, or a string. KEY:TYPE names another
        type: u32, f32, str, bool, ..., [str] for a list, [[u32]] for a list of lists. `dry_run=` shows old values, new
        values, and types.

        Tensors are dropped first, then renamed, then taken from other GGUF files, with their types, as they are. A
        taken tensor replaces the one of that name, whose shape it must have, or is added as the last. A warning is
        printed if llama.cpp would not load the result. Tensors of sharded models cannot be changed.

        `like=` copies what describes the model, before the other changes: general.*, except general.architecture, type,
        alignment, file_type, quantization_version, quantized_by and tensor_extra.*; the keys of the architecture on
        which no name or shape of a tensor depends, so not block_count, embedding_length, and the like; and the
        tokenizer with its chat templates, if both files have the same tokens, or this one has none. The other file must
        have the same architecture. Its header can also be read from an address.

        `set=`, `set_file=`, `rename=` and `take=` may also be maps with the keys.

        path                the GGUF file
        set                 set a key: KEY=VALUE or KEY:TYPE=VALUE
        set_file            set a key to the value in a file: KEY=FILE or KEY:TYPE=FILE
        remove              remove a key: KEY
        rename              rename a key or a tensor, keeping its position and value: OLD=NEW
        drop                drop the tensors in whose names a regular expression is found: PATTERN
        take                take a tensor from another file: NAME=OTHER.gguf:NAME; without the second name, the one of
                            that name
        like                copy the metadata that describes the model from this GGUF file
        like_tokenizer      with `like=`: copy the tokenizer and its chat templates even if its tokens are others
        chat_template       set tokenizer.chat_template
        chat_template_file  set tokenizer.chat_template to the text of a file
        output              write to this file and leave the input unchanged
        overwrite           replace an existing output file
        dry_run             show what would change, and how, without writing anything

        Returns a dictionary:
        keys      the changed keys
        tensors   names of the changed tensors
        changes   a line for each change, with values and types
        in_place  true if only the header is written
        restored  true if an interrupted edit was undone first
        bytes     size of the file
        warnings  a list of strings
        """
        return self._operate(
            "edit",
            {
                "path": path,
                "set": set,
                "set_file": set_file,
                "remove": remove,
                "rename": rename,
                "drop": drop,
                "take": take,
                "like": like,
                "like_tokenizer": like_tokenizer,
                "chat_template": chat_template,
                "chat_template_file": chat_template_file,
                "output": output,
                "overwrite": overwrite,
                "dry_run": dry_run,
            },
        )

    def name(
        self,
        name: str,
    ) -> Result:
        """Parse a file name of GGUF's naming convention.

        Parse a file name that follows GGUF's naming convention,
        BaseName-SizeLabel-FineTune-Version-Encoding-Type-Shard.gguf, without opening the file. The convention requires
        a base name, a size, and a version; `VerificationError`: the name does not follow it.

        name  the file name

        Returns a dictionary:
        name        the name
        sidecar     what the file is for, such as mmproj
        base_name   name of the model
        size_label  size of the model
        finetune    what the model was tuned for
        version     version of the model
        encoding    types of the tensors
        type        LoRA or vocab
        shard       number of the shard, and of all shards
        warnings    a list of strings
        """
        return self._operate(
            "name",
            {
                "name": name,
            },
        )

    def name_of(
        self,
        path: Path,
        *,
        encoding: str | None = None,
        outtype: Literal["auto", "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0"] = "auto",
    ) -> str:
        """Build the file name of a model by GGUF's naming convention.

        Build the file name of a model from its metadata, by GGUF's naming convention.

        path      print the file name for this model
        encoding  encoding to use instead of general.file_type
        outtype   read a checkpoint folder as `ggufmill convert` with the same `outtype=` would write it

        Returns the file name.
        """
        return self._operate(
            "name_of",
            {
                "path": path,
                "encoding": encoding,
                "outtype": outtype,
            },
            is_alone=True,
        )

    def imatrix_show(
        self,
        path: Path,
    ) -> Result:
        """Show an importance matrix.

        Show for each entry of an importance matrix of llama-imatrix, GGUF or legacy .dat, how many tokens it saw and
        how its weights are distributed: entries where a few columns have most of the weight benefit most from a matrix.

        path  the importance matrix

        Returns a dictionary:
        file        path of the file
        datasets    names of the texts that were used
        chunks      number of chunks of text
        entries     the matrices; the legacy format has `chunks` of an entry, and null for `tokens`: [{name, columns,
                    parts, tokens, unseen, mean, max, top, chunks}]
        covariance  of a covariance file: {block, inputs: [{name, tensors, columns, experts, pooled, rms, held_out}]}
        warnings    a list of strings
        """
        return self._operate(
            "imatrix_show",
            {
                "path": path,
            },
        )

    def imatrix_merge(
        self,
        inputs: Iterable[str],
        *,
        output: Path,
        chunk_size: int | None = None,
        overwrite: bool = False,
    ) -> Result:
        """Merge importance matrices.

        Add importance matrices of llama-imatrix, as llama-imatrix --in-file does, each multiplied by its weight; or
        covariance files of ggufmill-calibrate, to one of all their texts.

        inputs      files to add, each as FILE or FILE=WEIGHT
        output      file to write; if it ends in .dat, in the legacy format
        chunk_size  tokens per chunk, which the legacy format does not store; default: that of the first file, or 512
        overwrite   replace an existing file

        Returns a dictionary:
        entries   number of matrices
        bytes     size of the file
        warnings  a list of strings
        """
        return self._operate(
            "imatrix_merge",
            {
                "inputs": inputs,
                "output": output,
                "chunk_size": chunk_size,
                "overwrite": overwrite,
            },
        )

    def imatrix_convert(
        self,
        path: Path,
        *,
        output: Path,
        chunk_size: int | None = None,
        overwrite: bool = False,
    ) -> Result:
        """Convert an importance matrix to the other format.

        Convert an importance matrix of llama-imatrix to GGUF or to the legacy .dat format. Of a covariance file, only
        the importance is written.

        path        the importance matrix
        output      file to write; if it ends in .dat, in the legacy format
        chunk_size  tokens per chunk, which the legacy format does not store; default: that of the first file, or 512
        overwrite   replace an existing file

        Returns a dictionary:
        entries   number of matrices
        bytes     size of the file
        warnings  a list of strings
        """
        return self._operate(
            "imatrix_convert",
            {
                "path": path,
                "output": output,
                "chunk_size": chunk_size,
                "overwrite": overwrite,
            },
        )

    def curve(
        self,
        job: Path | Mapping[str, Any],
        *,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        parameters: Mapping[str, Any] | Iterable[str] | None = None,
        output: int = 0,
        points: int = 25,
        measure: bool = True,
        html: Path | None = None,
        overwrite: bool = False,
        progress: ProgressFunction | None = None,
    ) -> list[dict[str, Any]]:
        """Return the loss of the best choice of types at each size.

        Return the loss of the best choice of types at each size, for an output of a job with a target, and those of the
        built-in recipes. On the command line, `ggufmill plan --curve` prints it.

        job         the pipeline file, or its contents: an object, or a text of several lines
        set         override a value: outputs.0.gguf=out/a.gguf
        parameters  set a declared parameter: NAME=value
        output      number of the output, from 0
        points      number of sizes
        measure     first measure what is not in the cache
        html        also write an HTML page to this file
        overwrite   replace an existing page
        progress    a function that is called with a Progress, whose exceptions end the operation; True: a bar of tqdm

        Returns dictionaries: `bytes` of all tensors, `loss`, `recipe` (None: the best choice of that size), and
        `target`, true for the job's own target.
        """
        return self._curve(
            {
                "job": job,
                "set": set,
                "parameters": parameters,
                "output": output,
                "points": points,
                "measure": measure,
                "html": html,
                "overwrite": overwrite,
            },
            progress,
        )

    def measure(
        self,
        job: Path | Mapping[str, Any],
        *,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        parameters: Mapping[str, Any] | Iterable[str] | None = None,
        output: Path | None = None,
        html: Path | None = None,
        overwrite: bool = False,
        both_encoders: bool = False,
        part: int | None = None,
        parts: int | None = None,
        resume: bool = True,
        threads: Literal["auto"] | int | None = None,
        progress: ProgressFunction | None = None,
    ) -> Result:
        """Measure what each type costs each tensor, for a target.

        For the targets of a pipeline file (quantize: {target: ...}): read a sample of each tensor's rows and measure
        what each candidate type costs the tensor, with and without importance, and how precisely that is known.
        `sample` in the pipeline file determines how many rows are read; the default is one of 16. Writes no part of the
        model. The results are kept in a cache, $GGUFMILL_CACHE/measurements, by default ~/.cache/ggufmill/measurements:
        plan, check, and run use them for every pipeline file with the same values, importance, encoders and sample, and
        only what is missing is measured. run measures automatically. An interrupted measurement resumes from the
        tensors already measured. Machines that share the cache can measure one part each: a call without `part=` then
        uses their results and measures what is missing.

        job            the pipeline file, or its contents: an object, or a text of several lines
        set            override a value: outputs.0.gguf=out/a.gguf
        parameters     set a declared parameter: NAME=value
        output         also write the measurement to this file, for `measured` in a pipeline file
        html           also write an HTML page: a sortable table of what each type loses in each tensor
        overwrite      replace an existing measurement or page
        both_encoders  also measure with searches if the targets use the reference's encoders, or the other way round,
                       so that `plan --curve` compares the two
        part           measure only this part of `parts=`; parts are numbered from 0
        parts          number of parts
        resume         use what the cache contains
        threads        number of threads, or auto; overrides limits.threads
        progress       a function that is called with a Progress, whose exceptions end the operation; True: a bar of
                       tqdm

        Returns the measurement, a dictionary in the format of its files.
        """
        return self._measure(
            {
                "job": job,
                "set": set,
                "parameters": parameters,
                "output": output,
                "html": html,
                "overwrite": overwrite,
                "both_encoders": both_encoders,
                "part": part,
                "parts": parts,
                "resume": resume,
                "threads": threads,
            },
            progress,
        )

    def probe(
        self,
        job: Path | Mapping[str, Any],
        *,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        parameters: Mapping[str, Any] | Iterable[str] | None = None,
        perplexity: Path | None = None,
        text: Path | None = None,
        type: str = "Q2_K",
        chunks: int = 0,
        context: int = 256,
        threads: Literal["auto"] | int | None = None,
        output: Path | None = None,
        progress: ProgressFunction | None = None,
    ) -> Result:
        """Measure how much each tensor matters, with llama-perplexity.

        For the targets of a pipeline file: make, tensor by tensor, a copy of the model in which only that tensor has a
        coarse type, and measure with llama.cpp's llama-perplexity how far its output is from that of the original
        model. The resulting sensitivities are the input of the objective `probe`. Only one such copy exists at a time;
        after an interruption, the same command resumes.

        job         the pipeline file, or its contents: an object, or a text of several lines
        set         override a value: outputs.0.gguf=out/a.gguf
        parameters  set a declared parameter: NAME=value
        perplexity  path of the llama-perplexity program; required
        text        text file to evaluate; required
        type        coarse type
        chunks      number of chunks of the text to evaluate; 0: all
        context     tokens per chunk
        threads     number of threads, or auto; overrides limits.threads
        output      file to write; default: FILE.sensitivities.json for FILE.yaml
        progress    a function that is called with a Progress, whose exceptions end the operation; True: a bar of tqdm

        Returns a dictionary:
        output    the file that was written
        tensors   number of tensors in it
        warnings  a list of strings
        """
        return self._operate(
            "probe",
            {
                "job": job,
                "set": set,
                "parameters": parameters,
                "perplexity": perplexity,
                "text": text,
                "type": type,
                "chunks": chunks,
                "context": context,
                "threads": threads,
                "output": output,
            },
            progress,
        )

    def recipes(
        self,
    ) -> list[dict[str, Any]]:
        """List the built-in recipes.

        Returns the recipes: [{name, aliases, file_type, type, description}].
        """
        return self._operate(
            "recipes",
            {},
            is_alone=True,
        )

    def recipe(
        self,
        name: str,
    ) -> str:
        """Print a built-in recipe.

        Print a built-in recipe: a YAML file to copy, change, and name in `quantize:` by its path. Your own recipe can
        set `extends: NAME` and add rules.

        name  name or alias of the recipe

        Returns the text of the recipe.
        """
        return self._operate(
            "recipe",
            {
                "name": name,
            },
            is_alone=True,
        )

    def recipe_from(
        self,
        model: Path,
        *,
        outtype: Literal["auto", "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0"] = "auto",
    ) -> str:
        """Derive a recipe from a model.

        Derive a recipe that gives other models of the same family the types of a model file.

        model    the model
        outtype  read a checkpoint folder as `ggufmill convert` with the same `outtype=` would write it

        Returns the text of the recipe.
        """
        return self._operate(
            "recipe_from",
            {
                "model": model,
                "outtype": outtype,
            },
            is_alone=True,
        )

    def recipe_check(
        self,
        name: str,
        *,
        model: Path,
        outtype: Literal["auto", "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0"] = "auto",
    ) -> list[dict[str, Any]]:
        """Count the tensors of a model that each rule of a recipe decides.

        name     name or path of the recipe
        model    any model of the architecture; only its headers are read
        outtype  read a checkpoint folder as `ggufmill convert` with the same `outtype=` would write it

        Returns the rules, in the order in which they are tried: [{rule, tensors}].
        """
        return self._operate(
            "recipe_check",
            {
                "name": name,
                "model": model,
                "outtype": outtype,
            },
            is_alone=True,
        )

    def recipe_diff(
        self,
        a: str,
        b: str,
        *,
        model: Path,
        outtype: Literal["auto", "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0"] = "auto",
    ) -> Result:
        """Compare two recipes for a model.

        List the tensors of a model to which two recipes give different types.

        a        name or path of a recipe
        b        name or path of the other
        model    any model of the architecture; only its headers are read
        outtype  read a checkpoint folder as `ggufmill convert` with the same `outtype=` would write it

        Returns a dictionary:
        tensors   the tensors whose types differ: [{tensor, a, b, why}]
        count     number of all tensors
        bytes_a   bytes of all tensors with `a`
        bytes_b   bytes of all tensors with `b`
        warnings  a list of strings
        """
        return self._operate(
            "recipe_diff",
            {
                "a": a,
                "b": b,
                "model": model,
                "outtype": outtype,
            },
        )

    def objectives(
        self,
        name: str | None = None,
    ) -> list[dict[str, Any]] | str:
        """List the built-in objectives, or print one.

        List what a target can minimize, or print one of the built-in files: a YAML file to copy and change.

        name  name of the objective to print

        Returns the objectives: [{name, formula}]; or with `name`, the text of its file.
        """
        return self._operate(
            "objectives",
            {
                "name": name,
            },
            is_alone=True,
        )

    def exclusions(
        self,
        name: str | None = None,
    ) -> list[dict[str, Any]] | str:
        """List the built-in exclusions of types, or print one.

        List which types a target can exclude, or print one of the built-in files: a YAML file to copy and change.

        name  name of the exclusion to print

        Returns the exclusions: [{name, types, modules}]; or with `name`, the text of its file.
        """
        return self._operate(
            "exclusions",
            {
                "name": name,
            },
            is_alone=True,
        )

    def types(
        self,
    ) -> list[dict[str, Any]]:
        """List the tensor types and what each supports.

        List the tensor types: bits per weight, block, whether they can be read (decoded) and written (encoded), and the
        type to which llama.cpp converts activations that it multiplies with them (`times`). Importance is `needed` if a
        type cannot be written without it, `needed by recipes` if only `type: NAME` can write the type without it, and
        otherwise `used` or `not used`.

        Returns the types: [{name, id, bits_per_weight, block_elements, block_bytes, row_header_bytes, read, write,
        encoders, importance, times}].
        """
        return self._operate(
            "types",
            {},
            is_alone=True,
        )

    def kernels(
        self,
    ) -> Result:
        """List the kernel modules, loaded and refused.

        List all kernel modules that were found, with the reason for each refused module, and the kernels chosen for
        each type.

        Returns a dictionary:
        modules   the modules that were found: [{path, name, version, isa, loaded, refusal, kernels}]
        types     the kernels in use, by type: [{type, decode, encode, encoders}]
        isa       instruction set of the kernels: the forced one, or the best one loaded
        warnings  a list of strings
        """
        return self._operate(
            "kernels",
            {},
        )

    def check_module(
        self,
        path: Path,
        *,
        reference: Path | None = None,
        types: Iterable[str] | None = None,
        times: bool = False,
    ) -> Result:
        """Check the kernels of a module.

        Run the kernels of a module to see whether they follow the rules of the ABI, which plugins/README.md lists. Each
        check runs in a process of its own, for at most a minute of computing, so that a defect is reported and does not
        end the program. `KernelError`: the module is refused, or has none of the types.

        A check that fails is not an error: it is one of the results.

        path       check the kernels of this module (a file)
        reference  the module whose bytes the kernels must reproduce; default: ggufmill's own kernels
        types      only this type
        times      also measure how fast the kernels are, on one thread

        Returns a dictionary:
        module    the module: {path, name, version, isa}
        checks    the checks: [{type, operation, encoder, check, result, why}]
        passed    number of checks that passed
        failed    number of checks that failed
        skipped   number of checks that were skipped
        times     how fast the kernels are; empty without `times=`: [{type, operation, encoder, importance,
                  bytes_per_second, reference_bytes_per_second}]
        warnings  a list of strings
        """
        return self._operate(
            "check_module",
            {
                "path": path,
                "reference": reference,
                "types": types,
                "times": times,
            },
        )

    def architectures(
        self,
    ) -> list[dict[str, Any]]:
        """List the supported checkpoint architectures.

        List the architecture maps, which define how Hugging Face checkpoints are converted: the classes of config.json
        that each map supports, and its tokenizers.

        Returns the maps: [{map, architecture, description, classes, tokenizers, partial}].
        """
        return self._operate(
            "architectures",
            {},
            is_alone=True,
        )

    def architecture(
        self,
        name: str,
    ) -> str:
        """Print an architecture map.

        Print an architecture map: a YAML file to copy and change. Your own map can set `extends: NAME` and add rules.

        name  name of the map

        Returns the text of the map.
        """
        return self._operate(
            "architecture",
            {
                "name": name,
            },
            is_alone=True,
        )

    def first_map(
        self,
        checkpoint: str,
        *,
        like: str | None = None,
        output: Path | None = None,
        overwrite: bool = False,
    ) -> str:
        """Start an architecture map for a checkpoint.

        Write a first map of a checkpoint that no map supports, from the map of similar models: what matches, what does
        not, and what is missing.

        checkpoint  the checkpoint: a folder, or the address of one
        like        the map of similar models, by name or path (default: the map of text models that fits best)
        output      file to write; by default, the map is only printed or returned
        overwrite   replace an existing file

        Returns the text of the map.
        """
        return self._operate(
            "first_map",
            {
                "checkpoint": checkpoint,
                "like": like,
                "output": output,
                "overwrite": overwrite,
            },
            is_alone=True,
        )

    def architecture_functions(
        self,
    ) -> list[dict[str, Any]]:
        """List what maps can call: functions of values, operations on tensors.

        List what architecture maps can call: functions of values, operations on tensors, and functions that compute
        tensors.

        Returns the functions: [{name, kind, least, most, description}].
        """
        return self._operate(
            "architecture_functions",
            {},
            is_alone=True,
        )

    def reproduce(
        self,
        attestation: Path,
        *,
        output: Path = "reproduced",
        sources: Path | None = None,
        key: Path | None = None,
        overwrite: bool = False,
        progress: ProgressFunction | None = None,
    ) -> Result:
        """Make files again from what their attestation names, and compare them.

        Make files again from an attestation that `attestation` in a pipeline file has written. The sources that it
        names are checked first: addresses (hf://) are read where they are, and other names start from the folder
        `sources=`. Outputs go to the folder `output=`, and are compared with the checksums of the attestation. The
        pipeline file is that of the attestation, without its limits, reports and steps: no program is started, and
        importance that was computed is read from its file, which is one of the sources. `VerificationError`: the
        signature is not valid, a source is another one, or a file differs; it has the keys and tensors that do, and
        whether the version or a module is another one.

        attestation  the attestation: a DSSE envelope, a bundle of Sigstore, or an in-toto statement
        output       folder for the files
        sources      folder that the names of local sources start from; default: the current one
        key          public key in PEM (Ed25519 or ECDSA) with which the attestation must be signed
        overwrite    replace existing files
        progress     a function that is called with a Progress, whose exceptions end the operation; True: a bar of tqdm

        Returns a dictionary:
        attestation  path of the attestation
        folder       folder of the files
        signed_by    identifier of `key=`, if the signature was checked
        files        the files of the attestation: [{name, path, is_same, keys, tensors}]
        differences  what of this program is not as that which made the files
        warnings     a list of strings
        """
        return self._operate(
            "reproduce",
            {
                "attestation": attestation,
                "output": output,
                "sources": sources,
                "key": key,
                "overwrite": overwrite,
            },
            progress,
            none_if_empty=("signed_by",),
        )

    def status(
        self,
        job: Path | Mapping[str, Any],
        *,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        parameters: Mapping[str, Any] | Iterable[str] | None = None,
    ) -> Result:
        """Show the progress of pipeline files and cluster jobs, and leftover files.

        Show which outputs of a pipeline file exist, whether a run is writing them now and its progress, and the
        leftover files of interrupted runs: `run` resumes from them, `run --discard` removes them. Gives the folder of a
        cluster job that writes the same outputs. Reads only headers and changes nothing.

        For the folder of a cluster job, show the progress of its parts.

        `job` is a pipeline file or the folder of a cluster job, whose `state` is "sealed", "running" or "needs resume".

        job         the pipeline file, or its contents: an object, or a text of several lines
        set         override a value: outputs.0.gguf=out/a.gguf
        parameters  set a declared parameter: NAME=value

        Returns {running, can_resume, units, units_done, outputs: [{path, bytes, there, sent}], leftovers: [{path,
        output, bytes, of_this_plan, in_use, other_since, cluster_job}], cluster_jobs, steps}, for a batch {sources:
        [{source, running, ...}]}; for a cluster job {folder, state, done, part_done, seal, parts: [{state, units,
        units_done, host, engine, error, lost}]}, for a matrix also {jobs}, and "warnings".
        """
        return self._operate(
            "status",
            {
                "job": job,
                "set": set,
                "parameters": parameters,
            },
        )

    def submit(
        self,
        job: Path | Mapping[str, Any],
        *,
        set: Mapping[str, Any] | Iterable[str] | None = None,
        parameters: Mapping[str, Any] | Iterable[str] | None = None,
        folder: Path | None = None,
        parts: int | None = None,
        engine: Literal["slurm", "none"] | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
        threads: Literal["auto"] | int | None = None,
        program: Path | None = None,
        isa: str | None = None,
        kernel_dirs: Iterable[Path] | None = None,
    ) -> Result:
        """Submit a pipeline file to a cluster, in parts.

        Plan a pipeline file, divide the plan into parts, and submit them to the engine that `cluster:` in the file
        names: Slurm, as an array of parts and a job that seals the outputs once all parts are done; or none, to start
        `ggufmill part` yourself. The job is stored in a folder that all nodes must see; pass it to `status`, `resume`,
        and `cancel`. The sources of a matrix share one array and one seal, which seals the finished sources.

        job          the pipeline file, or its contents: an object, or a text of several lines
        set          override a value: outputs.0.gguf=out/a.gguf
        parameters   set a declared parameter: NAME=value
        folder       folder for the job; overrides cluster.folder
        parts        number of parts; overrides cluster.parts
        engine       slurm or none; overrides cluster.engine
        overwrite    replace existing outputs
        dry_run      show what would be done without writing or submitting anything
        threads      number of threads, or auto; overrides limits.threads
        program      path of the program `ggufmill` on the nodes; default: this program, or `ggufmill`
        isa          kernels for the parts; default: those of the context
        kernel_dirs  folders of kernel modules for the parts; default: those of the context

        Returns a dictionary:
        folder     the folder of the job
        plan       its plan, for `part` and `seal`
        parts      the number of parts
        submitted  Slurm's numbers: {parts, indices, seal}; null with the engine `none`, whose parts the user starts
        skipped    of a batch, the outputs that are unchanged or cannot be made: [{source, output, state, error}]
        warnings   a list of strings
        """
        return self._operate(
            "submit",
            {
                "job": job,
                "set": set,
                "parameters": parameters,
                "folder": folder,
                "parts": parts,
                "engine": engine,
                "overwrite": overwrite,
                "dry_run": dry_run,
                "threads": threads,
                "program": program,
                "isa": isa,
                "kernel_dirs": kernel_dirs,
            },
        )

    def resume(
        self,
        folder: Path,
        *,
        program: Path | None = None,
    ) -> Result:
        """Resume a cluster job that stopped.

        Resume a cluster job that is not running: submit its unfinished parts, and a new seal, to its engine. Each part
        continues from its last attempt.

        folder   the folder of the job
        program  path of the program `ggufmill` on the nodes; default: this program, or `ggufmill`

        Returns a dictionary:
        was_sealed  true if there was nothing to do
        parts       the numbers of the parts that were started, or are to be started
        submitted   Slurm's numbers: {parts, indices, seal}; null with the engine `none`, whose parts the user starts
        warnings    a list of strings
        """
        return self._operate(
            "resume",
            {
                "folder": folder,
                "program": program,
            },
        )

    def cancel(
        self,
        folder: Path,
        *,
        discard: bool = False,
    ) -> Result:
        """Cancel a cluster job.

        Cancel a cluster job. Finished work is kept, and `ggufmill resume` continues from it; with `discard=`, the job
        and its incomplete outputs are removed.

        folder   the folder of the job
        discard  remove the job and its incomplete outputs

        Returns a dictionary:
        was_sealed  true if the outputs were complete
        warnings    a list of strings
        """
        return self._operate(
            "cancel",
            {
                "folder": folder,
                "discard": discard,
            },
        )

    def render(
        self,
        folder: Path,
        *,
        engine: Literal["kubernetes"] = "kubernetes",
        claim: str | None = None,
        mount: str | None = None,
        image: str = "ggufmill:latest",
    ) -> Result:
        """Print a cluster job as Kubernetes manifests.

        Print a cluster job that `ggufmill submit --engine none` created in the format of another engine. For
        Kubernetes: an Indexed Job for the parts and a Job for the seal, as JSON. The folder of the job, the models, and
        the outputs must be on one volume that all pods can write to at the same time, mounted at the same path as here.
        The path must not be one that the image uses, such as /usr or /tmp. Pods run the `ggufmill` of the image. Not
        tested against a server.

        folder  the folder of the job
        engine  engine to print the job for: kubernetes
        claim   PersistentVolumeClaim of the shared volume; required
        mount   path where it is mounted, here and in the pods; default: the mount point of the job's file system
        image   container image with the program

        Returns a dictionary:
        manifests  an object of the kind List with the manifests
        warnings   a list of strings
        """
        return self._operate(
            "render",
            {
                "folder": folder,
                "engine": engine,
                "claim": claim,
                "mount": mount,
                "image": image,
            },
        )

    def part(
        self,
        *,
        plan: Path | None = None,
        part: str | int | None = None,
        part_env: str | None = None,
        threads: Literal["auto"] | int | None = None,
        isa: str | None = None,
        progress: ProgressFunction | None = None,
    ) -> Result:
        """Run one part of a cluster job.

        Run part K of the cluster job in DIR, which `ggufmill submit` created; engines start the parts of a job with
        this command. Parts are numbered from 0. A part that is already done exits immediately; an interrupted one
        resumes. Threads and memory are those that Slurm allocates, or else those of the pipeline file.

        plan      plan of the job, or its folder; required
        part      number of the part
        part_env  environment variable with the number of the part: SLURM_ARRAY_TASK_ID
        threads   number of threads, or auto; overrides limits.threads
        isa       use only kernels for this ISA
        progress  a function that is called with a Progress, whose exceptions end the operation; True: a bar of tqdm

        Returns a dictionary:
        was_done    true if another attempt had finished it
        units       number of units of work
        units_kept  those of earlier attempts
        seconds     duration
        warnings    a list of strings
        """
        return self._operate(
            "part",
            {
                "plan": plan,
                "part": part,
                "part_env": part_env,
                "threads": threads,
                "isa": isa,
            },
            progress,
        )

    def seal(
        self,
        *,
        plan: Path | None = None,
        wait: str | None = None,
        progress: ProgressFunction | None = None,
    ) -> Result:
        """Finish a cluster job whose parts are done.

        Finish the cluster job in DIR once all its parts are done: read its outputs from end to end, compare them with
        what the parts wrote, and give them their names. Damaged parts are reset, so that `ggufmill resume` runs them
        again. Does nothing if the job is already sealed. For a matrix, seal every source that is done, then report the
        state of the others.

        plan      plan of the job, or its folder; required
        wait      time to wait for unfinished parts: 90s, 30m, 6h, or a number of seconds
        progress  a function that is called with a Progress, whose exceptions end the operation; True: a bar of tqdm

        Returns a dictionary:
        jobs      for each job {source, was_sealed, edges, seconds, warnings}, or null if it failed
        warnings  a list of strings
        """
        return self._operate(
            "seal",
            {
                "plan": plan,
                "wait": wait,
            },
            progress,
        )

    def schema(
        self,
        what: Literal["pipeline", "recipe", "architecture", "operations"] = "pipeline",
        *,
        reference: bool = False,
        python: bool = False,
    ) -> str:
        """Print the JSON Schema or the reference of pipeline files, recipes, and maps.

        Print the JSON Schema of pipeline files, recipes, or architecture maps, for editors that complete and check as
        you type. With `reference=`, print the same as a page to read. The operations of the program, the C interface,
        and the Python module have no schema: with `reference=`, print their reference, and with `python=`, the
        functions of the module.

        what       what to describe
        reference  print a reference page in Markdown
        python     print the operations as functions of Python

        Returns the schema, or the page.
        """
        return self._operate(
            "schema",
            {
                "what": what,
                "reference": reference,
                "python": python,
            },
            is_alone=True,
        )


run = of_default(Operations.run)
quantize_model = of_default(Operations.quantize_model)
convert = of_default(Operations.convert)
convert_lora = of_default(Operations.convert_lora)
check = of_default(Operations.check)
plan = of_default(Operations.plan)
inspect = of_default(Operations.inspect)
fit = of_default(Operations.fit)
models_page = of_default(Operations.models_page)
compare = of_default(Operations.compare)
report = of_default(Operations.report)
verify = of_default(Operations.verify)
hash = of_default(Operations.hash)
split = of_default(Operations.split)
merge = of_default(Operations.merge)
edit = of_default(Operations.edit)
name = of_default(Operations.name)
name_of = of_default(Operations.name_of)
imatrix_show = of_default(Operations.imatrix_show)
imatrix_merge = of_default(Operations.imatrix_merge)
imatrix_convert = of_default(Operations.imatrix_convert)
curve = of_default(Operations.curve)
measure = of_default(Operations.measure)
probe = of_default(Operations.probe)
recipes = of_default(Operations.recipes)
recipe = of_default(Operations.recipe)
recipe_from = of_default(Operations.recipe_from)
recipe_check = of_default(Operations.recipe_check)
recipe_diff = of_default(Operations.recipe_diff)
objectives = of_default(Operations.objectives)
exclusions = of_default(Operations.exclusions)
types = of_default(Operations.types)
kernels = of_default(Operations.kernels)
check_module = of_default(Operations.check_module)
architectures = of_default(Operations.architectures)
architecture = of_default(Operations.architecture)
first_map = of_default(Operations.first_map)
architecture_functions = of_default(Operations.architecture_functions)
reproduce = of_default(Operations.reproduce)
status = of_default(Operations.status)
submit = of_default(Operations.submit)
resume = of_default(Operations.resume)
cancel = of_default(Operations.cancel)
render = of_default(Operations.render)
part = of_default(Operations.part)
seal = of_default(Operations.seal)
schema = of_default(Operations.schema)
__all__ = ["run", "quantize_model", "convert", "convert_lora", "check", "plan", "inspect", "fit", "models_page", "compare", "report", "verify", "hash", "split", "merge", "edit", "name", "name_of", "imatrix_show", "imatrix_merge", "imatrix_convert", "curve", "measure", "probe", "recipes", "recipe", "recipe_from", "recipe_check", "recipe_diff", "objectives", "exclusions", "types", "kernels", "check_module", "architectures", "architecture", "first_map", "architecture_functions", "reproduce", "status", "submit", "resume", "cancel", "render", "part", "seal", "schema"]
