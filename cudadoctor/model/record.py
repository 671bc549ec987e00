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

    try:
        from _collections import _tuplegetter  # what collections.namedtuple reads its fields with
    except ImportError:

        def _tuplegetter(number: int, doc: str) -> property:
            return property(itemgetter(number), doc=doc)

    _make = tuple.__new__

    class NamedTuple(tuple):
        _fields: tuple[str, ...] = ()
        _field_defaults: ClassVar[dict[str, Any]] = {}
        _last_defaults: ClassVar[tuple[Any, ...]] = ()  # of the fields behind the last one without a default

        def __init_subclass__(cls) -> None:
            fields = cls._fields = tuple(cls.__annotations__)
            own = cls.__dict__
            cls._field_defaults = {name: own[name] for name in fields if name in own}
            ends = len(fields)
            while ends and fields[ends - 1] in own:
                ends -= 1
            cls._last_defaults = tuple([own[name] for name in fields[ends:]])
            for number, name in enumerate(fields):
                setattr(cls, name, _tuplegetter(number, ""))

        def __new__(cls, *values: Any, **named: Any) -> NamedTuple:
            missing = len(cls._fields) - len(values)
            if named or missing:
                ends = cls._last_defaults
                if not named and 0 < missing <= len(ends):
                    return _make(cls, values + ends[-missing:])
                values += _rest(cls, values, named)
            return _make(cls, values)

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in zip(self._fields, self))})"

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self))

        def _replace(self, **changes: Any) -> NamedTuple:
            replaced = _make(type(self), map(changes.pop, self._fields, self))
            if changes:
                raise TypeError(f"{type(self).__name__} has no {', '.join(changes)}")
            return replaced

    def _rest(cls: type[NamedTuple], values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """What the fields hold that no value was given for by its place: what was given by name, or the default."""
        fields = cls._fields[len(values) :]
        given = {**cls._field_defaults, **named}
        try:
            rest = tuple([given[name] for name in fields])
        except KeyError:
            missing = [name for name in fields if name not in given]
            raise TypeError(f"{cls.__name__}: missing {missing}") from None
        if len(values) > len(cls._fields):
            raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, {len(values)} values were given")
        surplus = named.keys() - fields
        if surplus:
            raise TypeError(f"{cls.__name__}: surplus {sorted(surplus)}")
        return rest
