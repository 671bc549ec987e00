"""Named tuples without their price: ``typing.NamedTuple`` compiles code for every class, which a check would wait for.

``Record`` has what the matrix's rows use of it: fields in the order of the annotations, by position, name, keyword and
``_replace``; equality and hash of tuples. To the type checker it *is* NamedTuple.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Record"]

if TYPE_CHECKING:
    from typing import NamedTuple as Record
else:
    from operator import itemgetter

    class Record(tuple):
        """Base of the rows. Subclasses only annotate their fields and add methods; they are not subclassed again."""

        __slots__ = ()
        _fields: tuple[str, ...] = ()

        def __init_subclass__(cls) -> None:
            cls._fields = tuple(cls.__annotations__)
            for place, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(place)))

        def __new__(cls, *values: Any, **named: Any) -> Record:
            if named:
                fields = cls._fields[len(values) :]
                if set(named) != set(fields):
                    raise TypeError(f"{cls.__name__} has the fields {', '.join(cls._fields)}")
                values = (*values, *(named[name] for name in fields))
            if len(values) != len(cls._fields):
                raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(values)}")
            return tuple.__new__(cls, values)

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            inside = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
            return f"{type(self).__name__}({inside})"

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self))

        def _replace(self, **changes: Any) -> Record:
            unknown = set(changes) - set(self._fields)
            if unknown:
                raise ValueError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
            return type(self)(*(changes.get(name, value) for name, value in zip(self._fields, self)))
