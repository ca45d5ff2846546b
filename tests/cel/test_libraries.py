"""Functions by library: values, and errors in upstream's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

TRUE = [
    # arithmetic, order, conversions
    "7 / -2 == -3 && -7 / 2 == -3 && 7 % -2 == 1 && -7 % 2 == -1",
    "1.0 / 0.0 > 1e308 && !(0.0 / 0.0 == 0.0 / 0.0)",
    "9223372036854775807 == 9223372036854775806 + 1",
    "dyn(1) == 1u && dyn(2u) == 2.0 && dyn(true) != 1 && dyn(1.5) != 1",
    "'a' < 'b' && b'a' < b'b' && false < true && duration('1s') < duration('2s')",
    "int('-5') == -5 && int(3.99) == 3 && int(-3.99) == -3 && uint(7) == 7u && double('1e3') == 1000.0",
    "string(1.0) == '1' && string(1e100) == '1e+100' && string(-0.0) == '-0' && string(0.00001) == '1e-05'",
    "string(123456789.0) == '1.23456789e+08' && string(true) == 'true' && string(5u) == '5'",
    "string(b'abc') == 'abc' && bytes('é') == b'\\xc3\\xa9' && bool('T') && !bool('0')",
    "double('NaN') != double('NaN') && double('-Infinity') < 0.0",
    "type(1) == int && type('') == string && type(type(1)) == type && type(null) == null_type",
    "type(quantity('1')) != type(semver('1.0.0')) && type(ip('::1')) == net.IP",
    "size('é✓') == 2 && size(b'\\xff\\xfe') == 2 && size([1, 2]) == 2 && size({'a': 1}) == 1",
    "{1: 'a', 2: 'b'}[1] == 'a' && {1u: 2}[dyn(1)] == 2 && {true: 1}[true] == 1 && {1: 2}[dyn(1.0)] == 2",
    "{'a': 1} == {'a': 1} && {'a': 1} != {'a': 2} && [1, 2] == [1, 2] && [1] != [1, 2]",
    "dyn(5.0) in [5] && dyn(5) in [5.0] && !(dyn('5') in [5]) && !(dyn(1) in [true])",
    "2 in {1: 1, 2: 2} && !(3 in {1: 1}) && 'a' in ['a']",
    # strings
    "'tacocat'.charAt(3) == 'o' && 'abc'.charAt(3) == ''",
    "'hello mellow'.indexOf('ello', 2) == 7 && 'a'.indexOf('', 5) == 1 && 'hello'.lastIndexOf('l') == 3",
    "'hello mellow'.lastIndexOf('ello', 6) == 1 && ''.lastIndexOf('a') == -1 && 'ab'.lastIndexOf('abc') == -1",
    "'TacoCÆt'.lowerAscii() == 'tacocÆt' && 'æa'.upperAscii() == 'æA'",
    "'hello'.replace('l', 'L', 1) == 'heLlo' && 'ab'.replace('', '-') == '-a-b-' && 'aa'.replace('a', 'b', 0) == 'aa'",
    "'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'abc'.split('') == ['a', 'b', 'c'] && 'a,b'.split(',', 0).size() == 0",
    "'abc'.split('', 2) == ['a', 'bc'] && 'a,b'.split(',', -1) == ['a', 'b']",
    "'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco' && '\\u2000 x\\t'.trim() == 'x'",
    "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && strings.quote('a\"\\n') == '\"a\\\\\"\\\\n\"'",
    "'abc'.contains('bc') && 'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.matches('^a.c$')",
    # format
    "'%s %s %s'.format(['a', 1.5, [1, 'x', null]]) == 'a 1.5 [1, \"x\", null]'",
    "'%d|%x|%X|%o|%b|%b'.format([-5, 255, b'\\xab', 8, 5u, true]) == '-5|ff|AB|10|101|1'",
    "'%.2f|%f'.format([1234.567, 1.0]) == '1,234.57|1.000000' && '%x'.format(['hi']) == '6869'",
    "'%s'.format([{'b': 1, 'a': duration('90s')}]) == '{\"a\":duration(\"90s\"), \"b\":1}'",
    "'%s %%'.format([timestamp('2024-01-02T03:04:05.5Z')]) == '2024-01-02T03:04:05.5Z %' && '%s'.format([int]) == 'int'",
    # lists, sets
    "[1, 2, 3, 4].slice(1, 3) == [2, 3] && [[1], [2, 3]].flatten() == [1, 2, 3]",
    "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [].sort() == []",
    "['ccc', 'a', 'bb'].sortBy(s, s.size()) == ['a', 'bb', 'ccc'] && [1, 2].reverse() == [2, 1]",
    "[1, 1, 2].distinct() == [1, 2] && lists.range(3) == [0, 1, 2] && lists.range(-1).size() == 0",
    "[1, 2, 3].sum() == 6 && [1.5, 2.5].sum() == 4.0 && [duration('1s')].sum() == duration('1s')",
    "[3, 1, 2].min() == 1 && ['a', 'c'].max() == 'c' && [1, 2, 2].isSorted() && ![2, 1].isSorted()",
    "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(2) == -1",
    "sets.contains([1, 2], [1]) && sets.equivalent([1, 1, 2], [2, 1]) && sets.intersects([1], [1, 2])",
    "[1, 2].first().value() == 1 && [1, 2].last() == optional.of(2) && [].first() == optional.none()",
    "'a'.includes('a') && [1, 2].includes(2) && !(1).includes('1')",
    # macros
    "[1, 2, 3].map(x, x * 2) == [2, 4, 6] && [1, 2, 3].map(x, x > 1, x * 2) == [4, 6]",
    "[1, 2, 3].filter(x, x > 1) == [2, 3] && [1, 2].exists_one(x, x == 1) && [1, 2].existsOne(x, x == 2)",
    "[1, 2].all(i, v, v == i + 1) && {'a': 1}.exists(k, v, k == 'a' && v == 1)",
    "['x', 'y'].transformList(i, v, i > 0, v + string(i)) == ['y1']",
    "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && ['a', 'b'].transformMap(i, v, v)[1] == 'b'",
    "['a', 'b'].transformMapEntry(i, v, {v: i}) == {'a': 0, 'b': 1}",
    "cel.bind(x, 2, cel.bind(y, x + 1, x * y)) == 6",
    # optionals
    "optional.of(1).hasValue() && !optional.none().hasValue() && optional.ofNonZeroValue('') == optional.none()",
    "{'a': {'b': 1}}.?a.b == optional.of(1) && {'a': 1}[?'b'].orValue(5) == 5 && [1][?3] == optional.none()",
    "optional.of({'a': 1}).a == optional.of(1) && optional.of([1])[0] == optional.of(1)",
    "optional.none().or(optional.of(2)).value() == 2 && optional.of(2).optMap(x, x + 1).value() == 3",
    "{'a': 1}.?a.optFlatMap(x, optional.none()) == optional.none()",
    "[?optional.of(1), ?optional.none()] == [1] && {?'a': optional.none()}.size() == 0",
    "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(2)].unwrapOpt() == [2]",
    # quantity, semver
    "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').isLessThan(quantity('1'))",
    "quantity('1k').add(24) == quantity('1024') && quantity('1Ki').sub(quantity('24')).asInteger() == 1000",
    "quantity('1.5').asApproximateFloat() == 1.5 && quantity('1e3').asInteger() == 1000 && sign(quantity('-1')) == -1",
    "quantity('1e2000').compareTo(quantity('1e1999')) == 1 && quantity('1n') != quantity('2n')",
    "semver('1.2.3-alpha').isLessThan(semver('1.2.3')) && semver('1.10.0').isGreaterThan(semver('1.9.9'))",
    "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
    "isSemver('1.2.3') && !isSemver('v1.2.3') && isSemver('v1.2', true) && semver('01.02', true) == semver('1.2.0')",
    # url, ip, cidr
    "url('https://u:p@example.com:80/a%20b?x=1&y=2&x=3#f').getHost() == 'example.com:80'",
    "url('https://example.com:80/a%20b?x=1').getEscapedPath() == '/a%20b' && url('http://[::1]:8/').getHostname() == '::1'",
    "url('https://example.com:80/').getPort() == '80' && url('/p').getScheme() == '' && isURL('http://a') && !isURL('a b')",
    "url('http://a/?x=1&y=2&x=3').getQuery()['x'] == ['1', '3'] && url('http://a/') == url('http://a/')",
    "ip('192.168.0.1').family() == 4 && ip('::1').isLoopback() && ip('fe80::1').isLinkLocalUnicast()",
    "ip('224.0.0.1').isLinkLocalMulticast() && ip('8.8.8.8').isGlobalUnicast() && ip('0.0.0.0').isUnspecified()",
    "ip.isCanonical('::1') && !ip.isCanonical('0:0::1') && string(ip('1:0:0:0:2::3')) == '1::2:0:0:3'",
    "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsIP(ip('10.1.2.3'))",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
    "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
    "cidr('::/0').prefixLength() == 0 && string(cidr('1::/16').masked()) == '1::/16' && isCIDR('1.2.3.4/32')",
    "isIP('1.2.3.4') && !isIP('1.2.3') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0') && !isIP('01.2.3.4')",
    # formats
    "!format.dns1123Label().validate('my-name').hasValue() && format.dns1123Label().validate('My').hasValue()",
    "format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
    "!format.dns1123Subdomain().validate('a.b').hasValue() && format.dns1035Label().validate('1a').hasValue()",
    "!format.dns1123LabelPrefix().validate('a-').hasValue() && format.labelValue().validate('-').hasValue()",
    "!format.qualifiedName().validate('a.b/C_d').hasValue() && format.qualifiedName().validate('a/b/c').hasValue()",
    "!format.uri().validate('http://a').hasValue() && format.uri().validate('a').hasValue()",
    "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue() && format.uuid().validate('x').hasValue()",
    "!format.byte().validate('aGVsbG8=').hasValue() && format.byte().validate('a').hasValue()",
    "!format.date().validate('2024-02-29').hasValue() && format.date().validate('2023-02-29').hasValue()",
    "!format.datetime().validate('2024-02-29T12:34:56Z').hasValue() && format.datetime().validate('2024').hasValue()",
    "format.named('uuid').value() == format.uuid() && !format.named('nope').hasValue()",
    # regex
    "'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.findAll('[0-9]+', 1) == ['1']",
    "'abc'.find('x') == '' && 'ab'.findAll('').size() == 3 && 'a\\nb'.matches('(?s)a.b') && !'a\\nb'.matches('a.b')",
    "'x'.matches('\\\\pL') && 'é'.matches('^.$') && matches('abc', 'b')",
    # times
    "timestamp('2024-02-29T12:34:56.789Z').getFullYear() == 2024 && timestamp(0).getDayOfWeek() == 4",
    "timestamp('2024-02-29T12:34:56.789Z').getMonth() == 1 && timestamp('2024-02-29T00:00:00Z').getDate() == 29",
    "timestamp('2024-02-29T12:34:56.789Z').getDayOfMonth() == 28 && timestamp('2024-03-01T00:00:00Z').getDayOfYear() == 60",
    "timestamp('2024-02-29T12:34:56.789Z').getMilliseconds() == 789 && timestamp(90).getSeconds() == 30",
    "timestamp('2024-01-01T00:00:00Z').getHours('+05:30') == 5 && timestamp('2024-01-01T00:00:00Z').getMinutes('-00:30') == 30",
    "timestamp('2024-07-01T00:00:00Z').getHours('UTC') == 0 && timestamp('2024-01-01T00:00:00+02:00') < timestamp('2024-01-01T00:00:00Z')",
    "timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')",
    "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
    "duration('1h30m').getMinutes() == 90 && duration('-1.5s').getMilliseconds() == -1500 && duration('1us') < duration('1ms')",
    "string(duration('1h1m1.5s')) == '3661.5s' && int(duration('1s')) == 1000000000 && int(timestamp('1970-01-01T00:01:00Z')) == 60",
    "string(timestamp('2024-01-01T00:00:00+02:00')) == '2024-01-01T00:00:00+02:00'",
]  # fmt: skip
FAILING = [
    ("1 / 0 == 1", "division by zero"),
    ("1 % 0 == 1", "modulus by zero"),
    ("9223372036854775807 + 1 == 0", "integer overflow"),
    ("-(-9223372036854775807 - 1) == 0", "integer overflow"),
    ("9223372036854775807 * 2 == 0", "integer overflow"),
    ("1u - 2u == 0u", "unsigned integer overflow"),
    ("dyn(1) + dyn('a') == 1", "no such overload"),
    ("dyn('a') - dyn('a') == 'a'", "no such overload"),
    ("dyn([1]) - dyn([1]) == [1]", "no such overload: _-_"),
    ("dyn(null) < dyn(1)", "no such overload: _<_"),
    ("0.0 / 0.0 < 1.0", "NaN values cannot be ordered"),
    ("[1, 2][5] == 1", "index out of bounds: 5"),
    ("[1][dyn('a')] == 1", "unsupported index type 'string' in list"),
    ("[1][dyn(1.5)] == 1", "unsupported index value 1.5 in list"),
    ("{'a': 1}.b == 1", "no such key: b"),
    ("{1: 1}[2] == 1", "no such key: 2"),
    ("size(dyn(1)) == 1", "no such overload: size"),
    ("'abc'.charAt(9) == ''", "index out of range: 9"),
    ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
    ("[dyn(1)].join() == ''", "no such overload: join(list)"),
    ("[1, 2].slice(0, 5).size() == 1", "cannot slice(0, 5), list is length 2"),
    ("[dyn(1), dyn('a')].sort().size() == 1", "list elements must have the same type"),
    ("[1].map(x, 1u).min() == 1u && [].min() == 1", "min called on empty list"),
    ("['a', 'b'].transformMapEntry(i, v, {'x': i}).size() == 1", "insert failed: key x already exists"),
    ("optional.none().value() == 1", "optional.none() dereference"),
    ("quantity('1.5').asInteger() == 1", "cannot convert value to integer"),
    ("dyn(1).isGreaterThan(quantity('1'))", "no such overload: isGreaterThan(int, kubernetes.Quantity)"),
    ("semver('1.2.3.4') == semver('1.0.0')", 'Invalid character(s) found in patch number "3.4"'),
    ("semver('1..3', true) == semver('1.0.0')", 'strconv.ParseUint: parsing "": invalid syntax'),
    ("url('::').getHost() == ''", 'URL parse error during conversion from string: parse "::": missing protocol scheme'),
    ("url('http://a b/').getHost() == ''", 'URL parse error during conversion from string: parse "http://a b/": invalid character " " in host name'),
    ("ip('1.2.3.400').family() == 4", 'IP Address "1.2.3.400" parse error during conversion from string: ParseAddr("1.2.3.400"): IPv4 field has value >255'),
    ("ip('fe80::1%a').family() == 6", 'IP address "fe80::1%a" with zone value is not allowed'),
    ("cidr('1.2.3.4/33').prefixLength() == 1", 'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("1.2.3.4/33"): prefix length out of range'),
    ("timestamp(0).getHours('Nope/Zone') == 1", "unknown time zone Nope/Zone"),
    ("timestamp('9999-12-31T23:59:59Z') + duration('1s') == timestamp(0)", "timestamp overflow"),
    ("[1, 2].map(x, lists.range(49)).exists(l, l.includes(100))", "'includes' function cannot be applied to lists longer than 48 values"),
    ("'a'.find(string(dyn('[')) + '') == ''", "Illegal regex: error parsing regexp: missing closing ]: `[`"),
    ("'%d'.format([dyn('a')]) == ''", "error during formatting: decimal clause can only be used on integers, was given string"),
    ("{semver('1.0.0'): 1}.size() == 1", "internal error: runtime error: hash of unhashable type cel.Semver"),
    ("{dyn(b'a'): 1}.size() == 1", "compile: program instantiation failed: internal error: runtime error: hash of unhashable type types.Bytes"),
]  # fmt: skip
NOT_THERE = ["math.greatest(1, 2) == 2", "base64.encode(b'a') == ''", "'a'.reverse() == 'a'", "regex.replace('a', 'b', 'c') == ''",
             "jsonpatch.escapeKey('a') == ''", "1.5.floor() == 1.0"]  # fmt: skip


@pytest.mark.parametrize("expression", TRUE)
def test_true(evaluate: Callable[[str], Any], expression: str) -> None:
    assert evaluate(expression) is True


@pytest.mark.parametrize(("expression", "message"), FAILING)
def test_fails(evaluate: Callable[[str], Any], expression: str, message: str) -> None:
    assert evaluate(expression) == message


@pytest.mark.parametrize("expression", NOT_THERE)
def test_libraries_that_kubernetes_leaves_out(evaluate: Callable[[str], Any], expression: str) -> None:
    got = evaluate(expression)
    assert isinstance(got, str)
    assert got.startswith("compile: ERROR")
    assert "undeclared reference" in got or "no matching overload" in got


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("[", "missing closing ]: `[`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("\\\\8", "invalid escape sequence: `\\8`"),
        ("\\\\C", "invalid escape sequence: `\\C`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
    ],
)
def test_what_re2_refuses(evaluate: Callable[[str], Any], pattern: str, message: str) -> None:
    expected = f"compile: program instantiation failed: error parsing regexp: {message}"
    assert evaluate(f'matches(device.driver, "{pattern}")') == expected
    assert evaluate(f'device.driver.matches(device.driver.substring(0, 0) + "{pattern}")') == expected.removeprefix(
        "compile: program instantiation failed: "
    )


def test_no_pattern_backtracks(evaluate: Callable[[str], Any]) -> None:
    text = "a" * 5000
    assert evaluate(f'("{text}" + "!").matches("^(a+)+$")') is False
