"""Named tuples that are quick to define.

typing.NamedTuple compiles every annotation and generates a constructor from source text, which for the many records
of this package takes longer than everything that a check then does with them. The class here reads no more than the
names of the annotations. Type checkers see typing.NamedTuple, and at run time a record behaves like one: a tuple with
named fields, defaults, `_fields`, `_asdict` and `_replace`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from operator import itemgetter

    class NamedTuple(tuple):
        _fields: tuple[str, ...] = ()
        _field_defaults: ClassVar[dict[str, Any]] = {}

        def __init_subclass__(cls) -> None:
            fields = cls._fields = tuple(cls.__annotations__)
            own = cls.__dict__
            cls._field_defaults = {name: own[name] for name in fields if name in own}
            for number, name in enumerate(fields):
                setattr(cls, name, property(itemgetter(number)))

        def __new__(cls, *values: Any, **named: Any) -> NamedTuple:
            fields = cls._fields
            if named or len(values) != len(fields):
                if len(values) > len(fields):
                    raise TypeError(f"{cls.__name__} has {len(fields)} fields, {len(values)} values were given")
                rest = fields[len(values) :]
                missing = [name for name in rest if name not in named and name not in cls._field_defaults]
                surplus = [name for name in named if name not in rest]
                if missing or surplus:
                    raise TypeError(f"{cls.__name__}: missing {missing}, surplus {surplus}")
                values += tuple(named[name] if name in named else cls._field_defaults[name] for name in rest)
            return tuple.__new__(cls, values)

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in zip(self._fields, self))})"

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self))

        def _replace(self, **changes: Any) -> NamedTuple:
            return type(self)(**{**self._asdict(), **changes})
