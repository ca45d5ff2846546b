"""The parser: precedence climbing on explicit stacks, two Python frames per level of nesting.

Upstream's limits: 250 levels of each grammar rule, 250 nested operators and selections. Syntax errors are worded as
upstream's parser generator words them; only the first one is looked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from drakit.cel import literals
from drakit.cel.depth import deeply
from drakit.cel.errors import Issue, render
from drakit.cel.macros import MacroError, expand
from drakit.cel.syntax import Call, Entry, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from drakit.cel.tokens import EOF, Token, tokenize

if TYPE_CHECKING:
    from drakit.cel.macros import Macros

__all__ = ["MAX_DEPTH", "RESERVED", "parse"]

MAX_DEPTH: Final = 250
_MAX_CODE_POINTS: Final = 100_000
RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_RELATIONS: Final = {"<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_CALCULATIONS: Final = {"*": "_*_", "/": "_/_", "%": "_%_", "+": "_+_", "-": "_-_"}
_PRECEDENCE: Final = {**dict.fromkeys(_RELATIONS, 1), "+": 2, "-": 2, "*": 3, "/": 3, "%": 3}
_FUNCTIONS: Final = {**_RELATIONS, **_CALCULATIONS}
_NUMBERS: Final = frozenset({"NUM_INT", "NUM_FLOAT"})
_ORDER: Final = [
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ".",
    ",",
    "-",
    "!",
    "?",
    ":",
    "+",
    "true",
    "false",
    "null",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
    "IDENTIFIER",
    "ESC_IDENTIFIER",
]
_STARTS: Final = frozenset(
    [
        "[",
        "{",
        "(",
        ".",
        "-",
        "!",
        "true",
        "false",
        "null",
        "NUM_FLOAT",
        "NUM_INT",
        "NUM_UINT",
        "STRING",
        "BYTES",
        "IDENTIFIER",
    ]
)


class _SyntaxStopError(Exception):
    """A syntax error was recorded: parsing ends."""


def parse(text: str, macros: Macros) -> Node:
    """The expression's tree with macros expanded.

    Raises:
        CompileError: It does not parse, or an escape, number or macro is malformed.
    """
    if len(text) > _MAX_CODE_POINTS:
        limit = f"expression code point size exceeds limit: size: {len(text)}, limit {_MAX_CODE_POINTS}"
        raise render(text, [Issue(-1, limit)])
    issues: list[Issue] = []
    tokens = tokenize(text, issues)
    lexical = len(issues)

    def start() -> Node:
        del issues[lexical:]
        return _Parser(tokens, text, macros, issues).start()

    try:
        node = deeply(start)
    except (_SyntaxStopError, RecursionError) as error:
        if isinstance(error, RecursionError):
            issues.append(Issue(-1, f"expression recursion limit exceeded: {MAX_DEPTH}"))
        raise render(text, issues) from None
    if issues:
        raise render(text, issues)
    return node


class _Parser:
    def __init__(self, tokens: list[Token], text: str, macros: Macros, issues: list[Issue]) -> None:
        self.tokens = tokens
        self.text = text
        self.macros = macros
        self.issues = issues
        self.index = 0
        self.token = tokens[0]
        self.expressions = self.relations = self.calculations = 0
        self.height = 0  # nested operators and selections of the part parsed last

    def start(self) -> Node:
        node = self.expression()
        if self.token.kind != EOF:
            self.unexpected([EOF])
        if self.height > MAX_DEPTH:
            self.stop(-1, "max recursion depth exceeded")
        return node

    # --- tokens and errors

    def advance(self) -> Token:
        token = self.token
        self.index += 1
        self.token = self.tokens[self.index]
        return token

    def peek(self, ahead: int = 1) -> str:
        index = self.index + ahead
        return self.tokens[index].kind if index < len(self.tokens) else EOF

    def expect(self, kind: str, *alternatives: str) -> Token:
        if self.token.kind != kind:
            self.unexpected([kind, *alternatives], insertable=not alternatives)
        return self.advance()

    def stop(self, offset: int, message: str) -> NoReturn:
        self.issues.append(Issue(offset, message))
        raise _SyntaxStopError

    def unexpected(self, expected: list[str] | frozenset[str], *, insertable: bool = False) -> NoReturn:
        """Report the token as the parser generator's default strategy does: extraneous, missing or mismatched."""
        token = self.token
        shown = _expecting(expected)
        if token.kind != EOF and self.peek() in expected:
            self.stop(token.offset, f"Syntax error: extraneous input '{token.text}' expecting {shown}")
        if insertable and self.may_follow(token.kind, next(iter(expected))):
            self.stop(token.offset, f"Syntax error: missing {shown} at '{token.text}'")
        self.stop(token.offset, f"Syntax error: mismatched input '{token.text}' expecting {shown}")

    def may_follow(self, kind: str, missing: str) -> bool:
        """Whether a token could stand after the one that is missing."""
        if missing == ":":
            return kind in _STARTS
        return kind in _PRECEDENCE or kind in (".", "[", "?", "&&", "||", EOF, ",", ")", "]", "}", ":")

    # --- the grammar

    def expression(self) -> Node:
        """A ternary of `||` of `&&` of relations, on explicit stacks; chains become balanced trees."""
        self.expressions += 1
        if self.expressions > MAX_DEPTH:
            self.stop(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")
        parts: list[Node] = []
        offset = highest = 0
        relations, calculations = self.relations, self.calculations
        ors: list[Node] = []
        or_offsets: list[int] = []
        ands: list[Node] = []
        and_offsets: list[int] = []
        operands: list[tuple[Node, int]] = []
        operators: list[Token] = []
        while True:
            pending = sum(1 for each in operators if _PRECEDENCE[each.kind] > 1)
            self.relations = relations + 1 + len(operators) - pending
            self.calculations = calculations + 1 + pending
            if self.relations > MAX_DEPTH or self.calculations > MAX_DEPTH:
                self.stop(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")
            operands.append((self.operand(), self.height))
            kind = self.token.kind
            precedence = _PRECEDENCE.get(kind, 0)
            while operators and _PRECEDENCE[operators[-1].kind] >= precedence:
                _reduce(operands, operators)
            if precedence:
                operators.append(self.advance())
                continue
            node, height = operands.pop()
            highest = max(highest, height)
            ands.append(node)
            if kind == "&&":
                and_offsets.append(self.advance().offset)
                continue
            ors.append(_balanced("_&&_", ands, and_offsets))
            ands, and_offsets = [], []
            if kind == "||":
                or_offsets.append(self.advance().offset)
                continue
            parts.append(_balanced("_||_", ors, or_offsets))
            ors, or_offsets = [], []
            if kind == "?" and len(parts) == 1:
                offset = self.advance().offset
                continue
            break
        self.relations, self.calculations = relations, calculations
        if len(parts) == 2:
            self.expect(":")
            parts.append(self.expression())
            highest = max(highest, self.height) + 1
            parts = [Call(offset, "_?_:_", None, parts)]
        self.expressions -= 1
        self.height = highest
        return parts[0]

    def operand(self) -> Node:
        """A unary expression with all its selections, calls and indices."""
        token = self.token
        kind = token.kind
        prefix, count = "", 0
        if kind == "!" or (kind == "-" and self.peek() not in _NUMBERS):
            prefix = kind
            last = token
            while self.token.kind == kind:
                last = self.advance()
                count += 1
            if self.token.kind == "-" and self.peek() not in _NUMBERS:
                last = self.advance()
                self.no_alternative(last)
            if self.token.kind not in _STARTS or self.token.kind == "!":
                self.no_alternative(last)
        kind = self.token.kind
        if kind == "(":
            self.advance()
            node = self.expression()
            self.expect(")")
        elif kind == "IDENTIFIER" and self.peek() == "(":
            node = self.global_call("")
        elif kind == "[":
            node = self.list_literal()
        elif kind == "{":
            node = self.map_literal()
        else:
            node = self.primary()
        while True:
            kind = self.token.kind
            if kind == "." and self.peek() == "IDENTIFIER" and self.peek(2) == "(":
                height = self.height
                self.advance()
                name, place = self.advance(), self.advance().offset
                arguments = self.arguments()
                self.height = max(height, self.height) + 1
                node = self.call(place, name.text, node, arguments)
            elif kind == ".":
                node = self.selection(node)
            elif kind == "[":
                node = self.index_of(node)
            else:
                break
        if count % 2:
            node = Call(token.offset, "!_" if prefix == "!" else "-_", None, [node])
        return node

    def no_alternative(self, first: Token) -> NoReturn:
        if first.kind == "!":
            self.unexpected(_STARTS)
        offset = self.token.offset
        seen = self.text[first.offset : offset + (0 if self.token.kind == EOF else len(self.token.text))]
        self.stop(offset, f"Syntax error: no viable alternative at input '{seen}'")

    def primary(self) -> Node:
        token = self.token
        kind = token.kind
        self.height = 0
        if kind == "IDENTIFIER":
            return self.name(self.advance(), "")
        if kind == "STRING":
            self.advance()
            return self.literal(token, literals.string_value)
        if kind in _NUMBERS:
            self.advance()
            return self.literal(token, literals.int_value if kind == "NUM_INT" else literals.double_value)
        return self.other_primary(token)

    def other_primary(self, token: Token) -> Node:
        kind = token.kind
        if kind not in _STARTS:
            self.unexpected(_STARTS)
        self.advance()
        if kind == "-":
            return self.negative(token)
        if kind == ".":
            if self.token.kind != "IDENTIFIER":
                self.no_alternative(token)
            if self.peek() == "(":
                return self.global_call(".", token.offset)
            return self.name(self.advance(), ".", token.offset)
        if kind == "NUM_UINT":
            return self.literal(token, literals.uint_value)
        if kind == "BYTES":
            return self.literal(token, literals.bytes_value)
        if kind == "!":
            self.index -= 1
            self.token = token
            self.unexpected([each for each in _STARTS if each != "!"])
        return Literal(token.offset, {"true": True, "false": False, "null": None}[kind])

    def negative(self, sign: Token) -> Node:
        number = self.advance()
        try:
            if number.kind == "NUM_INT":
                return Literal(sign.offset, literals.int_value(number.text, "-"))
            return Literal(sign.offset, literals.double_value("-" + number.text))
        except ValueError as error:
            self.issues.append(Issue(sign.offset, str(error)))
            return Literal(sign.offset, None)

    def literal(self, token: Token, convert: object) -> Node:
        try:
            return Literal(token.offset, convert(token.text))  # type: ignore[operator]
        except ValueError as error:
            self.issues.append(Issue(token.offset, str(error)))
            return Literal(token.offset, None)

    def global_call(self, dot: str, start: int | None = None) -> Node:
        token = self.advance()
        if token.text in RESERVED:
            self.issues.append(Issue(token.offset if start is None else start, f"reserved identifier: {token.text}"))
        place = self.advance().offset
        return self.call(place, dot + token.text, None, self.arguments())

    def name(self, token: Token, dot: str, start: int | None = None) -> Node:
        """An identifier or a message literal."""
        offset = token.offset if start is None else start
        if self.token.kind in ("{", ".") and self.is_message():
            return self.message(token, dot)
        if token.text in RESERVED:
            self.issues.append(Issue(offset, f"reserved identifier: {token.text}"))
        return Ident(token.offset, dot + token.text)

    def is_message(self) -> bool:
        ahead = 0
        while self.peek(ahead) == "." and self.peek(ahead + 1) == "IDENTIFIER":
            ahead += 2
        return self.peek(ahead) == "{"

    def message(self, token: Token, dot: str) -> Node:
        name = dot + token.text
        while self.token.kind == ".":
            self.advance()
            name += "." + self.advance().text
        offset = self.advance().offset
        entries: list[Entry] = []
        highest = 0
        while self.token.kind != "}":
            optional = self.token.kind == "?"
            if optional:
                self.advance()
            if self.token.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
                self.unexpected(["}", ",", "?", "IDENTIFIER", "ESC_IDENTIFIER"])
            field = self.advance()
            place = self.expect(":").offset
            value = self.expression()
            highest = max(highest, self.height)
            entries.append(Entry(place, Literal(field.offset, self.field_name(field)), value, optional=optional))
            if self.token.kind != ",":
                break
            self.advance()
        self.expect("}", ",")
        self.height = highest
        return StructNode(offset, name, entries)

    def field_name(self, token: Token) -> str:
        if token.kind == "ESC_IDENTIFIER":
            self.issues.append(Issue(token.offset, "unsupported syntax: '`'"))
        return token.text

    def selection(self, operand: Node) -> Node:
        height = self.height
        dot = self.advance()
        if self.token.kind == "?":
            self.advance()
            self.expect_name(dot)
            name = self.advance()
            self.height = height + 1
            return Call(dot.offset, "_?._", None, [operand, Literal(name.offset, self.field_name(name))])
        self.expect_name(dot)
        name = self.advance()
        self.height = height + 1
        return Select(dot.offset, operand, self.field_name(name))

    def expect_name(self, dot: Token) -> None:
        kind = self.token.kind
        if kind in ("IDENTIFIER", "ESC_IDENTIFIER"):
            return
        if kind in ("true", "false", "null"):
            self.stop(self.token.offset, f"Syntax error: mismatched input '{kind}' expecting IDENTIFIER")
        self.no_alternative(dot)

    def index_of(self, operand: Node) -> Node:
        height = self.height
        offset = self.advance().offset
        function = "_[_]"
        if self.token.kind == "?":
            self.advance()
            function = "_[?_]"
        index = self.expression()
        self.expect("]")
        self.height = max(height, self.height) + 1
        return Call(offset, function, None, [operand, index])

    def arguments(self) -> list[Node]:
        """Arguments up to and with the closing parenthesis."""
        found: list[Node] = []
        highest = 0
        if self.token.kind == ")":
            self.advance()
            self.height = 0
            return found
        if self.token.kind not in _STARTS:
            self.unexpected([*_STARTS, ")"])
        while True:
            found.append(self.expression())
            highest = max(highest, self.height)
            if self.token.kind != ",":
                break
            self.advance()
        if self.token.kind != ")":
            self.unexpected([")"], insertable=True)
        self.advance()
        self.height = highest
        return found

    def call(self, offset: int, function: str, target: Node | None, arguments: list[Node]) -> Node:
        try:
            expanded = expand(self.macros, offset, function, target, arguments)
        except MacroError as error:
            self.issues.append(Issue(error.offset, error.message))
            return Literal(offset, None)
        return Call(offset, function, target, arguments) if expanded is None else expanded

    def list_literal(self) -> Node:
        offset = self.advance().offset
        elements: list[Node] = []
        optionals: list[int] = []
        highest = 0
        while self.token.kind not in ("]", ","):
            if self.token.kind == "?":
                self.advance()
                optionals.append(len(elements))
            elif self.token.kind not in _STARTS:
                self.unexpected([*_STARTS, "?", "]", ","] if not elements else [*_STARTS, "?", "]"])
            elements.append(self.expression())
            highest = max(highest, self.height)
            if self.token.kind != "," or self.peek() == "]":
                break
            self.advance()
            if self.token.kind == ",":
                self.unexpected([*_STARTS, "?"])
        self.close("]")
        self.height = highest
        return ListNode(offset, elements, frozenset(optionals))

    def close(self, bracket: str) -> None:
        """The end of a list or map, after a comma or without."""
        if self.token.kind == ",":
            self.advance()
            self.expect(bracket)
        else:
            self.expect(bracket, ",")

    def map_literal(self) -> Node:
        offset = self.advance().offset
        entries: list[Entry] = []
        highest = 0
        while self.token.kind not in ("}", ","):
            optional = self.token.kind == "?"
            if optional:
                self.advance()
            elif self.token.kind not in _STARTS:
                self.unexpected([*_STARTS, "?", "}", ","] if not entries else [*_STARTS, "?", "}"])
            key = self.expression()
            highest = max(highest, self.height)
            place = self.expect(":").offset
            value = self.expression()
            highest = max(highest, self.height)
            entries.append(Entry(place, key, value, optional=optional))
            if self.token.kind != "," or self.peek() == "}":
                break
            self.advance()
            if self.token.kind == ",":
                self.unexpected([*_STARTS, "?"])
        self.close("}")
        self.height = highest
        return MapNode(offset, entries)


def _reduce(operands: list[tuple[Node, int]], operators: list[Token]) -> None:
    right, high = operands.pop()
    left, low = operands.pop()
    operator = operators.pop()
    operands.append((Call(operator.offset, _FUNCTIONS[operator.kind], None, [left, right]), max(low, high) + 1))


def _balanced(function: str, terms: list[Node], offsets: list[int]) -> Node:
    """The tree that upstream builds from a chain: the middle operator on top."""
    if len(terms) == 1:
        return terms[0]

    def build(low: int, high: int) -> Node:
        middle = (low + high + 1) // 2
        left = terms[middle] if middle == low else build(low, middle - 1)
        right = terms[middle + 1] if middle == high else build(middle + 1, high)
        return Call(offsets[middle], function, None, [left, right])

    return build(0, len(offsets) - 1)


def _expecting(expected: list[str] | frozenset[str]) -> str:
    if len(expected) == 1:
        return _quoted(next(iter(expected)))
    ordered = sorted(set(expected), key=_ORDER.index)
    return "{" + ", ".join(_quoted(each) for each in ordered) + "}"


def _quoted(kind: str) -> str:
    return kind if (kind[0].isalpha() and kind.isupper()) or kind[0] == "<" or "_" in kind else f"'{kind}'"
