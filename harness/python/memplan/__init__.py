"""memplan: an offset in one arena for each of many buffers, proved smallest where it can be, and verified.

    import memplan
    lives = [(0, 3), (1, 2), (2, 5), (3, 6)]        # each buffer is needed at the steps [birth, death)
    plan = memplan.plan(lives, [16, 8, 24, 8], align=8)
    print(plan.bytes, plan.offsets, plan.optimal)    # 40 [24, 0, 0, 24] True

`plan_onnx` plans the values of a model, `verify` judges offsets of your own, `check` holds a plan of another allocator to its
optimum, `explain` says what an arena is made of. What is wrong raises a `MemplanError`, with memplan's message."""

from ._native import BudgetError, Infeasible, InputError, InvalidPlan, MemplanError, Unavailable, planners, version
from ._plan import Plan, plan, plan_onnx, verify
from ._program import Check, Explanation, check, explain

__version__ = version()
__all__ = ["BudgetError", "Check", "Explanation", "Infeasible", "InputError", "InvalidPlan", "MemplanError", "Plan", "Unavailable",
           "check", "explain", "plan", "plan_onnx", "planners", "verify", "version"]
