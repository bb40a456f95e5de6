"""ONNX models, checked and run on one thread."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime

FLOAT = {32: np.float32, 64: np.float64}


def run(model, **feeds):
    """The outputs by name."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def only(model, **feeds):
    """The single output."""
    (value,) = run(model, **feeds).values()
    return value
