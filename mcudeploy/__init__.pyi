"""The public names, for type checkers: those of the core, then those of the built-in extensions."""

from mcudeploy.boards.catalogue import list_boards
from mcudeploy.commands.keywords import Choices
from mcudeploy.commands.loaded import LoadedModel, load
from mcudeploy.commands.ondevice import flash, measure, tune
from mcudeploy.commands.python import BuildResult, PlanResult, RunResult, build, check, fit, plan, run
from mcudeploy.common.errors import (
    BoardNotFoundError,
    BuildError,
    ConfigError,
    DeployError,
    DivergedError,
    FitError,
    FlashError,
    LatencyError,
    ModelError,
    OutputsDifferError,
    PortError,
    ProtocolError,
    UsageError,
)
from mcudeploy.extension import extension_files
from mcudeploy.extensions.architectures.many_plans import PlanTable, plan_many
from mcudeploy.extensions.architectures.model_cost import ModelCost, cost
from mcudeploy.extensions.architectures.plan_row import PlanRow
from mcudeploy.extensions.evaluation.python_evaluate import evaluate
from mcudeploy.extensions.heads.parameter_exchange import make_parameters
from mcudeploy.extensions.quantization.python_quantize import quantize
from mcudeploy.extensions.training.python_train import TrainResult, build_training, train

__version__: str
__all__ = [
    "BoardNotFoundError",
    "BuildError",
    "BuildResult",
    "Choices",
    "ConfigError",
    "DeployError",
    "DivergedError",
    "FitError",
    "FlashError",
    "LatencyError",
    "LoadedModel",
    "ModelCost",
    "ModelError",
    "OutputsDifferError",
    "PlanResult",
    "PlanRow",
    "PlanTable",
    "PortError",
    "ProtocolError",
    "RunResult",
    "TrainResult",
    "UsageError",
    "__version__",
    "build",
    "build_training",
    "check",
    "cost",
    "evaluate",
    "extension_files",
    "fit",
    "flash",
    "list_boards",
    "load",
    "make_parameters",
    "measure",
    "plan",
    "plan_many",
    "quantize",
    "run",
    "train",
    "tune",
]
