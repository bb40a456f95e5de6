"""Calibrators as ONNX models, alone or at the end of the classifier whose scores they take."""

from calibrant.export.onnx.compose import compose_onnx
from calibrant.export.onnx.model import to_onnx

__all__ = ["compose_onnx", "to_onnx"]
