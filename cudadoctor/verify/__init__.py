"""`cudadoctor verify`: which checks prove that CUDA works, what their results mean. What runs them is in `actions`."""
