"""The extensions that come with mcudeploy."""

from __future__ import annotations

from mcudeploy.extension import Extension

EXTENSIONS = (
    Extension(
        "architectures",
        functions=tuple(
            f"mcudeploy.extensions.architectures.{name}"
            for name in (
                *("model_cost:ModelCost", "model_cost:cost"),
                *("plan_row:PlanRow", "many_plans:PlanTable", "many_plans:plan_many"),
            )
        ),
    ),
    Extension(
        "attention",
        lowerings="mcudeploy.extensions.attention.live_rows:LOWERINGS",
        domains=("tflite",),
        passes="mcudeploy.extensions.attention.attention:join_attention",
    ),
    Extension(
        "audio",
        rules="mcudeploy.extensions.audio.signal_rules:RULES",
        lowerings="mcudeploy.extensions.audio.signal_nodes:LOWERINGS",
        translations="mcudeploy.extensions.audio.signal_operators:TRANSLATIONS",
        domains=("", "CUSTOM", "tflite"),
        commands=("mcudeploy.extensions.audio.frontend_command:frontend",),
        options="mcudeploy.extensions.audio.frontend_command:OPTIONS",
    ),
    Extension(
        "bounds",
        parts="mcudeploy.extensions.bounds.bounds_part:PARTS",
        options="mcudeploy.extensions.bounds.bounds_options:OPTIONS",
        section="mcudeploy.extensions.bounds.bounds_options:SECTION",
    ),
    Extension(
        "calibration",
        factors="mcudeploy.extensions.calibration.calibrating:factors",
        commands=("mcudeploy.extensions.calibration.calibrate_command:calibrate",),
    ),
    Extension("curve", options="mcudeploy.extensions.curve.curve_option:OPTIONS"),
    Extension(
        "dossier",
        parts="mcudeploy.extensions.dossier.dossier_part:PARTS",
        options="mcudeploy.extensions.dossier.dossier_options:OPTIONS",
    ),
    Extension("ethos_u", unit="mcudeploy.extensions.ethos_u.unit_offers:UNIT"),
    Extension(
        "evaluation",
        commands=(
            "mcudeploy.extensions.evaluation.diff_command:diff",
            "mcudeploy.extensions.evaluation.evaluate_command:evaluate",
            "mcudeploy.extensions.evaluation.gate_command:gate",
        ),
        functions=("mcudeploy.extensions.evaluation.python_evaluate:evaluate",),
    ),
    Extension(
        "graphs",
        commands=tuple(
            f"mcudeploy.extensions.graphs.graph_command:{name}"
            for name in ("graph", "schedule", "place", "pipeline")
        ),
    ),
    Extension(
        "heads",
        commands=(
            "mcudeploy.extensions.heads.adapt_command:adapt",
            "mcudeploy.extensions.heads.parameters_command:parameters",
        ),
        functions=("mcudeploy.extensions.heads.parameter_exchange:make_parameters",),
    ),
    Extension(
        "instances",
        options="mcudeploy.extensions.instances.instances_options:OPTIONS",
        section="mcudeploy.extensions.instances.instances_options:SECTION",
    ),
    Extension(
        "int16",
        lowerings="mcudeploy.extensions.int16.int16_nodes:LOWERINGS",
        layouts="mcudeploy.extensions.int16.int16_nodes:LAYOUTS",
        translations="mcudeploy.extensions.int16.int16_operators:TRANSLATIONS",
        domains=("INT16", "tflite"),
        integer_forms="mcudeploy.extensions.int16.qdq_int16:in_integers",
    ),
    Extension(
        "learned",
        readers="mcudeploy.extensions.learned.class_names:with_numbers",
        rules="mcudeploy.extensions.learned.tables:RULES",
        lowerings="mcudeploy.extensions.learned.tables:LOWERINGS",
        domains=("ai.onnx.ml", "tflite"),
        ways_out="mcudeploy.extensions.learned.tables:WAYS_OUT",
    ),
    Extension(
        "quantization",
        proposals="mcudeploy.extensions.quantization.outlook:proposals",
        commands=("mcudeploy.extensions.quantization.quantize_command:quantize",),
        functions=("mcudeploy.extensions.quantization.python_quantize:quantize",),
    ),
    Extension("several_boards", options="mcudeploy.extensions.several_boards.chain_options:OPTIONS"),
    Extension(
        "text",
        commands=("mcudeploy.extensions.text.generate_command:generate",),
        options="mcudeploy.extensions.text.text_options:OPTIONS",
        section="mcudeploy.extensions.text.text_options:SECTION",
    ),
    Extension(
        "training",
        states="mcudeploy.extensions.training.training_functions:hide_training",
        lowerings="mcudeploy.extensions.training.training_nodes:LOWERINGS",
        layouts="mcudeploy.extensions.training.training_nodes:LAYOUTS",
        domains=("mcudeploy.training",),
        commands=("mcudeploy.extensions.training.train_command:train",),
        functions=tuple(
            f"mcudeploy.extensions.training.python_train:{name}"
            for name in ("TrainResult", "build_training", "train")
        ),
        methods="mcudeploy.extensions.training.python_train:METHODS",
    ),
)
