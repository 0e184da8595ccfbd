"""Small wrong changes to a module, one at a time: another comparison, an operand or a row of a table gone, a statement left out.

Only what runs is changed: no annotation, no docstring. Tables at the top of a module count as much as what stands in functions.
"""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

REMOVED = "(removed)"
COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
}
TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}
LEFT_OUT = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Mutant(NamedTuple):
    """`name` stays the same when lines move: where it is, what stood there, and what stands there now. `tree` holds until the next one."""

    name: str
    line: int
    tree: ast.Module


def mutants(source: str) -> Iterator[Mutant]:
    tree = ast.parse(source)
    seen: Counter[str] = Counter()
    for where, line, was, now in _changes(tree, tree, ""):
        name = f"{where or 'module'}: `{was}` -> `{now}`"
        seen[name] += 1
        yield Mutant(name if seen[name] == 1 else f"{name} #{seen[name]}", line, tree)


def _changes(tree: ast.Module, node: ast.AST, where: str) -> Iterator[tuple[str, int, str, str]]:
    """The tree is changed while a change is given, and as it was afterwards."""
    if isinstance(node, DEFINITIONS):
        where = f"{where}.{node.name}" if where else node.name
    for field, value in ast.iter_fields(node):
        if _means_nothing(node, field):
            continue
        if isinstance(value, ast.AST):
            for other in _instead(value):
                setattr(node, field, other)
                yield where, _line(value, node), _text(value), _text(other)
            setattr(node, field, value)
            yield from _changes(tree, value, where)
        elif isinstance(value, list):
            yield from _in_list(tree, node, field, value, where)


def _in_list(tree: ast.Module, node: ast.AST, field: str, items: list[ast.AST], where: str) -> Iterator[tuple[str, int, str, str]]:
    for index, item in enumerate(items):
        if not isinstance(item, ast.AST) or _is_docstring(item) or _is_name(item):
            continue
        for other in _instead(item):
            items[index] = other
            yield where, _line(item, node), _text(item), _text(other)
        items[index] = item
        if isinstance(item, LEFT_OUT) and field in ("body", "orelse", "finalbody") and not isinstance(node, (ast.ClassDef, ast.Module)):
            items[index] = ast.copy_location(ast.Pass(), item)
            yield where, _line(item, node), _text(item), REMOVED
            items[index] = item
        elif _may_go(node, field, items):
            pairs = node.values if isinstance(node, ast.Dict) else None
            value = pairs.pop(index) if pairs else None
            items.pop(index)
            yield where, _line(item, node), f"{_text(item)}: {_text(value)}" if value else _text(item), REMOVED
            items.insert(index, item)
            if pairs is not None and value is not None:
                pairs.insert(index, value)
        yield from _changes(tree, item, where)


def _may_go(node: ast.AST, field: str, items: list[ast.AST]) -> bool:
    match node, field:
        case ast.Dict(), "keys":
            return None not in items
        case ((ast.Tuple(ctx=ast.Load()) | ast.List(ctx=ast.Load()) | ast.Set()), "elts"):
            return len(items) > 1
        case ast.Call(), "keywords":
            return True
        case ast.Match(), "cases":
            return len(items) > 1
        case ast.comprehension(), "ifs":
            return True
    return False


def _instead(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """What can stand in the place of an expression or a statement."""
    match node:
        case ast.Compare(ops=[op]):
            for other in COMPARED[type(op)]:
                yield _copy(node, ops=[other()])
        case ast.BoolOp(op=op, values=values):
            yield _copy(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            for index in range(len(values)):
                rest = values[:index] + values[index + 1 :]
                yield rest[0] if len(rest) == 1 else _copy(node, values=rest)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=ast.BitOr()):
            yield left
        case ast.BinOp(op=op) if type(op) in COUNTED:
            yield _copy(node, op=COUNTED[type(op)]())
        case ast.Constant(value=bool(value)):
            yield ast.copy_location(ast.Constant(not value), node)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.copy_location(ast.Constant(value + 1), node)
        case ast.Constant(value=str(value)):
            yield ast.copy_location(ast.Constant(f"{value}~"), node)
        case ast.IfExp(body=body, orelse=orelse):
            yield body
            yield orelse
        case ast.If(test=ast.Name() | ast.Call() | ast.Attribute() | ast.NamedExpr() as test):
            yield _copy(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield _copy(node, value=ast.Constant(None))
        case ast.Call(func=ast.Name(id=name)) if name in TWINS:
            yield _copy(node, func=ast.Name(TWINS[name], ast.Load()))
        case ast.match_case(guard=ast.expr()):
            yield _copy(node, guard=None)


def _copy(node: ast.AST, **fields: object) -> ast.expr:
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made  # type: ignore[return-value]


def _means_nothing(node: ast.AST, field: str) -> bool:
    """What a program does not do: types, decorators, imports; the parts of an f-string, which say little alone; how a class is made."""
    if field in ("annotation", "returns", "decorator_list", "type_params", "type_comment", "bases", "ctx", "ops", "op"):
        return True
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr, ast.TypeAlias if hasattr(ast, "TypeAlias") else ast.Import)):
        return True
    if isinstance(node, ast.ClassDef) and field == "keywords":
        return True
    return field == "slice" and isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and not isinstance(node.ctx, ast.Load)


def _is_docstring(item: ast.AST) -> bool:
    """Or the three dots of a body that is none."""
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)


def _is_name(item: ast.AST) -> bool:
    """Names alone: of a type, or those that a module gives on."""
    match item:
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Assign(value=value):
            return _is_type(value)
    return False


def _is_type(value: ast.AST) -> bool:
    """A name for a type: `Key = tuple[int, int]`, `Action = Say | Stop`."""
    match value:
        case ast.Subscript(
            value=ast.Name(id="tuple" | "list" | "dict" | "set" | "frozenset" | "type" | "Callable" | "Mapping" | "Sequence")
        ):
            return True
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return all((isinstance(side, ast.Name) and side.id[0].isupper()) or _is_type(side) for side in (left, right))
    return False


def _line(node: ast.AST, parent: ast.AST) -> int:
    return int(getattr(node, "lineno", getattr(parent, "lineno", 0)))


def _text(node: ast.AST | None) -> str:
    if node is None:
        return ""
    first = ast.unparse(ast.fix_missing_locations(node)).strip().splitlines()[0]
    return first if len(first) <= 100 else f"{first[:97]}..."
