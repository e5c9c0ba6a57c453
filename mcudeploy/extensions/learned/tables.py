"""The tables of this extension for the front end."""

from __future__ import annotations

from mcudeploy.extensions.learned import column_rules, learned_rules, support_vector_rules
from mcudeploy.extensions.learned.class_names import ML_DOMAIN
from mcudeploy.extensions.learned.tree_nodes import tree_regressor

RULES = {
    ML_DOMAIN: {
        "ArrayFeatureExtractor": learned_rules.feature_extractor,
        "Binarizer": learned_rules.binarizer,
        "FeatureVectorizer": column_rules.feature_vectorizer,
        "Imputer": column_rules.imputer,
        "LabelEncoder": column_rules.label_encoder,
        "LinearClassifier": learned_rules.linear_classifier,
        "LinearRegressor": learned_rules.linear_regressor,
        "Normalizer": learned_rules.normalizer,
        "OneHotEncoder": column_rules.one_hot_encoder,
        "Scaler": learned_rules.scaler,
        "SVMClassifier": support_vector_rules.svm_classifier,
        "SVMRegressor": support_vector_rules.svm_regressor,
        "TreeEnsemble": learned_rules.tree_ensemble,
        "TreeEnsembleClassifier": learned_rules.tree_classifier,
        "TreeEnsembleRegressor": learned_rules.tree_regressor,
    }
}

LOWERINGS = {
    ML_DOMAIN: {"TreeEnsembleRegressor": tree_regressor},
    "tflite": {"TreeEnsembleRegressor": tree_regressor},
}

WAYS_OUT = {
    ML_DOMAIN: "of this domain, trees, linear models, support vectors, scalers and encoders of numbers "
    "are supported; hummingbird-ml converts other models to tensor operators"
}
