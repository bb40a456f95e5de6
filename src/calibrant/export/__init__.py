"""Maps as SQL, ONNX, plain Python and JSON: text and files that other systems evaluate."""
