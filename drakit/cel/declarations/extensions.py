"""Strings, lists, sets, optionals and two-variable comprehensions: the extension libraries that Kubernetes turns on."""

from __future__ import annotations

from typing import Final

from drakit.cel.declarations import Overload, member, overload
from drakit.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
    map_of,
    optional_of,
    parameter,
)

__all__ = ["COMPARABLE", "COMPREHENSIONS", "LISTS", "OPTIONALS", "SETS", "STRINGS", "STRINGS_0"]

_T: Final = parameter("T")
_K: Final = parameter("K")
_V: Final = parameter("V")
_LIST: Final = list_of(_T)
_MAP: Final = map_of(_K, _V)
_MAYBE: Final = optional_of(_V)
_TEXTS: Final = list_of(STRING)
COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)

STRINGS_0: Final[tuple[Overload, ...]] = (
    member("charAt", "string_char_at_int", STRING, INT, STRING),
    member("indexOf", "string_index_of_string", STRING, STRING, INT),
    member("indexOf", "string_index_of_string_int", STRING, STRING, INT, INT),
    member("lastIndexOf", "string_last_index_of_string", STRING, STRING, INT),
    member("lastIndexOf", "string_last_index_of_string_int", STRING, STRING, INT, INT),
    member("lowerAscii", "string_lower_ascii", STRING, STRING),
    member("replace", "string_replace_string_string", STRING, STRING, STRING, STRING),
    member("replace", "string_replace_string_string_int", STRING, STRING, STRING, INT, STRING),
    member("split", "string_split_string", STRING, STRING, _TEXTS),
    member("split", "string_split_string_int", STRING, STRING, INT, _TEXTS),
    member("substring", "string_substring_int", STRING, INT, STRING),
    member("substring", "string_substring_int_int", STRING, INT, INT, STRING),
    member("trim", "string_trim", STRING, STRING),
    member("upperAscii", "string_upper_ascii", STRING, STRING),
    member("join", "list_join", _TEXTS, STRING),
    member("join", "list_join_string", _TEXTS, STRING, STRING),
)
STRINGS: Final[tuple[Overload, ...]] = (
    *STRINGS_0,
    member("format", "string_format", STRING, list_of(DYN), STRING),
    overload("strings.quote", "strings_quote", STRING, STRING),
)
SETS: Final[tuple[Overload, ...]] = (
    overload("sets.contains", "list_sets_contains_list", _LIST, _LIST, BOOL),
    overload("sets.equivalent", "list_sets_equivalent_list", _LIST, _LIST, BOOL),
    overload("sets.intersects", "list_sets_intersects_list", _LIST, _LIST, BOOL),
)
LISTS: Final[tuple[Overload, ...]] = (
    member("slice", "list_slice", _LIST, INT, INT, _LIST),
    member("flatten", "list_flatten", list_of(_LIST), _LIST),
    member("flatten", "list_flatten_int", list_of(DYN), INT, list_of(DYN)),
    *(member("sort", f"list_{each.name}_sort", list_of(each), list_of(each)) for each in COMPARABLE),
    *(
        member("@sortByAssociatedKeys", f"list_{each.name}_sortByAssociatedKeys", _LIST, list_of(each), _LIST)
        for each in COMPARABLE
    ),
    overload("lists.range", "lists_range", INT, list_of(INT)),
    member("reverse", "list_reverse", _LIST, _LIST),
    member("distinct", "list_distinct", _LIST, _LIST),
)
OPTIONALS: Final[tuple[Overload, ...]] = (
    overload("optional.of", "optional_of", _V, _MAYBE),
    overload("optional.ofNonZeroValue", "optional_ofNonZeroValue", _V, _MAYBE),
    overload("optional.none", "optional_none", _MAYBE),
    member("value", "optional_value", _MAYBE, _V),
    member("hasValue", "optional_hasValue", _MAYBE, BOOL),
    member("or", "optional_or_optional", _MAYBE, _MAYBE, _MAYBE),
    member("orValue", "optional_orValue_value", _MAYBE, _V, _V),
    overload("_?._", "select_optional_field", DYN, STRING, _MAYBE),
    overload("_[?_]", "list_optindex_optional_int", list_of(_V), INT, _MAYBE),
    overload("_[?_]", "optional_list_optindex_optional_int", optional_of(list_of(_V)), INT, _MAYBE),
    overload("_[?_]", "map_optindex_optional_value", _MAP, _K, _MAYBE),
    overload("_[?_]", "optional_map_optindex_optional_value", optional_of(_MAP), _K, _MAYBE),
    overload("_[_]", "optional_list_index_int", optional_of(list_of(_V)), INT, _MAYBE),
    overload("_[_]", "optional_map_index_value", optional_of(_MAP), _K, _MAYBE),
    member("last", "list_last", list_of(_V), _MAYBE),
    member("first", "list_first", list_of(_V), _MAYBE),
    overload("optional.unwrap", "optional_unwrap", list_of(_MAYBE), list_of(_V)),
    member("unwrapOpt", "optional_unwrapOpt", list_of(_MAYBE), list_of(_V)),
)
COMPREHENSIONS: Final[tuple[Overload, ...]] = (
    overload("cel.@mapInsert", "@mapInsert_map_key_value", _MAP, _K, _V, _MAP),
    overload("cel.@mapInsert", "@mapInsert_map_map", _MAP, _MAP, _MAP),
)
