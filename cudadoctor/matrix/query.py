"""Questions to the compatibility data.

Pure: text in, values out. Every answer carries the source that it rests on; what the data does not hold is "unknown" or
None, never "no". Systems are "linux", "windows" and "wsl" (which counts in Windows numbers, the driver being Windows').
"""

from __future__ import annotations

from .cards import CardQuestions
from .changes import ChangeQuestions
from .engines import EngineQuestions
from .installers import InstallerQuestions
from .measures import MeasureQuestions
from .memory import MemoryQuestions
from .models import ModelQuestions
from .packages import PackageQuestions
from .quantisations import QuantisationQuestions
from .surroundings import SystemQuestions
from .wordings import WordingQuestions
from .xids import XidQuestions


class Matrix(
    CardQuestions,
    ChangeQuestions,
    EngineQuestions,
    InstallerQuestions,
    MeasureQuestions,
    MemoryQuestions,
    ModelQuestions,
    PackageQuestions,
    QuantisationQuestions,
    SystemQuestions,
    WordingQuestions,
    XidQuestions,
):
    """The compatibility matrix: every subject's questions in one place. Made by
    :func:`cudadoctor.matrix.load_matrix`."""
