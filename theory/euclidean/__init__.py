"""Gradient descent with old gradients in the Euclidean norm: where worst cases can be computed exactly."""
