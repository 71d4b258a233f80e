"""use_wheel.py MODEL OUTPUT: runs a job with the installed module; arrays too if numpy is there."""

import sys

import ggufmill

model, output = sys.argv[1:]
report = ggufmill.run({"version": 1, "source": {"gguf": model}, "outputs": [{"gguf": output, "quantize": "Q4_K_M"}]})
assert report["outputs"][0]["files"][0]["path"] == output
assert ggufmill.Context().isa != "reference", ggufmill.Context().modules()
assert ggufmill.open(output).metadata["general.architecture"] == "llama"
try:
    import numpy
except ImportError:
    try:
        ggufmill.quantize([1.0], "F16")
    except ggufmill.UsageError as error:
        assert error.help == "pip install numpy", error
    else:
        raise AssertionError("arrays without numpy")
else:
    values = numpy.linspace(-1, 1, 512, dtype=numpy.float32).reshape(2, 256)
    assert numpy.abs(ggufmill.dequantize(ggufmill.quantize(values, "Q8_0"), "Q8_0") - values).max() < 0.01
