"""Families of models: the config of each to an Architecture with all its tensors.

One file a group of families. A file has FAMILIES, by the model_type of a Hugging Face config or the _class_name of a
diffusers one, and read(name, family, config); it is imported when a config asks for it.
"""

from __future__ import annotations
