# %% [markdown]
# # Ten digits: the logits of a neural network
#
# After this example you can calibrate the outputs of a network for many classes.
#
# A small network reads handwritten digits from few training images. Its training goes on until it
# makes no errors there, and by then it is too sure of new images.

# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import calibrant as cal

X, y = load_digits(return_X_y=True)
X = X / 16 + np.random.default_rng(0).normal(0, 0.35, X.shape)  # poor scans
X_train, X, y_train, y = train_test_split(X, y, train_size=500, stratify=y, random_state=0)
X_fit, X_new, y_fit, y_new = train_test_split(X, y, train_size=500, stratify=y, random_state=1)

net = MLPClassifier((64,), alpha=0, tol=1e-5, max_iter=2_000, random_state=0)
net.fit(X_train, y_train)
print(f"right on {net.score(X_train, y_train):.3f} of the training images")
print(f"right on {net.score(X_new, y_new):.3f} of new images")

# %% [markdown]
# ## Logits
#
# Calibration starts from the numbers before the softmax, one for each class. With PyTorch or JAX
# these are what the last layer returns. Here two matrix products give them.


# %%
def logits(rows):
    hidden = np.maximum(rows @ net.coefs_[0] + net.intercepts_[0], 0)
    return hidden @ net.coefs_[1] + net.intercepts_[1]


z, z_new = logits(X_fit), logits(X_new)

# %% [markdown]
# ## Three calibrators
#
# A temperature divides all logits by one number. Vector scaling has a factor and a constant for
# each class. `AutoCalibrator` averages several methods, and keeps the scores if none helps.

# %%
outputs = {"as it came": net.predict_proba(X_new)}
for method in (cal.Temperature(), cal.VectorScaling(), cal.AutoCalibrator()):
    outputs[type(method).__name__] = method.fit(z, y_fit).predict_proba(z_new)
for name, P in outputs.items():
    loss = cal.metrics.log_loss(y_new, P)
    ece = cal.metrics.top_label_ece(y_new, P)
    right = (P.argmax(axis=1) == y_new).mean()
    print(f"{name:16} log loss {loss:.3f}   ECE {ece:.3f}   right {right:.3f}")
print(f"temperature {cal.Temperature().fit(z, y_fit).temperature_:.2f}")

# %% [markdown]
# Each of the three takes away most of the error.
#
# ## When it says 90 %
#
# The confidence is the probability of the class that was chosen. Is it right as often as it says?

# %%
# picture: confidence against the share of right answers; as it came it lies below the diagonal,
# after a temperature on it
right = outputs["as it came"].argmax(axis=1) == y_new
figure = cal.reliability_diagram(
    right,
    outputs["Temperature"].max(axis=1),
    raw=outputs["as it came"].max(axis=1),
    names=("after a temperature", "as it came"),
    bins=6,
)
figure.savefig("digits_logits.png")

# %% [markdown]
# A temperature changes no decision, only how sure the network is of it. Read on: [logits of
# a neural network](../howto/logits.md), [several classes](../howto/multiclass.md).
