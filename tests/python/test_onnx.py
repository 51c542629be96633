"""The node tests of ONNX's Attention operator, a suite nobody here wrote."""
import warnings

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("ml_dtypes")

import onnx_attention

UNIT = {"float16": 2**-10, "bfloat16": 2**-7}
OUTPUTS = ("Y", "present_key", "present_value", "qk_matmul_output")


def node_tests():
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other operators' tests
        cases = collect_testcases("Attention")
    return {c.name: c for c in cases if c.model.graph.node[0].op_type == "Attention"}


CASES = node_tests()
# The scores before the softmax are what a fused kernel never holds: these tests are judged by their other outputs.
SCORES_NOT_GIVEN = {
    name for name, c in CASES.items()
    if "qk_matmul_output" in c.model.graph.node[0].output
    and all(a.name != "qk_matmul_output_mode" or a.i != onnx_attention.AFTER_SOFTMAX for a in c.model.graph.node[0].attribute)
}


def test_the_suite_is_there():
    assert len(CASES) >= 50 and len(SCORES_NOT_GIVEN) < len(CASES) / 4


@pytest.mark.parametrize("name", CASES)
def test_node(name):
    case = CASES[name]
    node = case.model.graph.node[0]
    wanted = [output for output, actual in zip(OUTPUTS, node.output) if actual]
    for inputs, outputs in case.data_sets:
        got = onnx_attention.run(node, inputs)
        missing = set(wanted) - set(got)
        assert missing == ({"qk_matmul_output"} if name in SCORES_NOT_GIVEN else set())
        for output, want in zip(wanted, outputs, strict=True):
            if output in missing:
                continue
            assert got[output].dtype == want.dtype and got[output].shape == want.shape
            unit = UNIT.get(want.dtype.name, 0)
            a, b = np.asarray(got[output], np.float64), np.asarray(want, np.float64)
            np.testing.assert_allclose(a, b, rtol=max(case.rtol, 4 * unit), atol=max(case.atol, 4 * unit * np.abs(b).max(initial=0), 1e-6))
