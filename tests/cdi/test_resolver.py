"""CDI injection as a runtime does it (kubelet-recorded.md section 21; pains 53, 56)."""

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit import cdi

NODES = {
    "/dev/a": cdi.HostNode("c", 10, 232, 0o660),
    "/dev/b": cdi.HostNode("b", 8, 1, 0o600),
    "/dev/p": cdi.HostNode("p", 0, 0, 0o644),
}


def device(name: str, **edits: Any) -> dict[str, Any]:
    return {"name": name, "containerEdits": edits or {"env": [f"{name.upper()}=1"]}}


def write(path: Path, *devices: dict[str, Any], kind: str = "v/c", **fields: Any) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps({"cdiVersion": "1.1.0", "kind": kind, "devices": devices} | fields))
    return path


def inject(root: Path, *edits: dict[str, Any], oci: dict[str, Any] | None = None) -> dict[str, Any]:
    write(root / "a.json", *(device(f"d{index}", **edit) for index, edit in enumerate(edits)))
    ids = [f"v/c=d{index}" for index in range(len(edits))]
    return cdi.resolve([root], ids, oci or {}, node=NODES.get)


def test_env_last_value_wins_at_the_place_of_the_first(tmp_path: Path) -> None:
    oci = {"process": {"env": ["PATH=/bin", "X=0", "Y=0"]}}
    result = inject(tmp_path, {"env": ["X=1", "NEW=1"]}, {"env": ["X=2", "NEW=2"]}, oci=oci)
    assert result["process"]["env"] == ["PATH=/bin", "X=2", "Y=0", "NEW=2"]


def test_the_input_is_not_changed(tmp_path: Path) -> None:
    oci: dict[str, Any] = {"process": {"env": ["A=1"]}, "mounts": [{"destination": "/x"}], "linux": {"devices": []}}
    before = copy.deepcopy(oci)
    inject(tmp_path, {"env": ["A=2"], "mounts": [{"hostPath": "/y", "containerPath": "/x"}]}, oci=oci)
    assert oci == before


def test_edits_of_the_file_come_once_and_before_its_first_device(tmp_path: Path) -> None:
    write(tmp_path / "a.json", device("a"), device("b"), containerEdits={"env": ["FILE=a", "N=file"]})
    write(
        tmp_path / "b.json", device("c"), kind="v/d", containerEdits={"hooks": [{"hookName": "poststop", "path": "/h"}]}
    )
    result = cdi.resolve([tmp_path], ["v/c=b", "v/d=c", "v/c=a"], {})
    assert result["process"]["env"] == ["FILE=a", "N=file", "B=1", "C=1", "A=1"]
    assert result["hooks"] == {"poststop": [{"path": "/h"}]}


def test_order_of_the_ids_is_the_order_of_the_edits(tmp_path: Path) -> None:
    write(tmp_path / "a.json", device("a"), device("b"))
    assert cdi.resolve([tmp_path], ["v/c=b", "v/c=a"], {})["process"]["env"] == ["B=1", "A=1"]


def test_repeated_ids_count_once(tmp_path: Path) -> None:
    write(tmp_path / "a.json", device("a", deviceNodes=[{"path": "/dev/a"}]))
    result = cdi.resolve([tmp_path], ["v/c=a", "v/c=a"], {}, node=NODES.get)
    assert len(result["linux"]["resources"]["devices"]) == 1


def test_no_ids_no_change(tmp_path: Path) -> None:
    oci = {"ociVersion": "1.2.0", "process": {"env": ["A=1"]}}
    assert cdi.resolve([tmp_path / "missing"], [], oci) == oci


def test_device_nodes_are_completed_from_the_host(tmp_path: Path) -> None:
    result = inject(tmp_path, {"deviceNodes": [{"path": "/dev/inside", "hostPath": "/dev/a"}, {"path": "/dev/b"}]})
    assert result["linux"]["devices"] == [
        {"path": "/dev/inside", "type": "c", "major": 10, "minor": 232, "fileMode": 0o660},
        {"path": "/dev/b", "type": "b", "major": 8, "minor": 1, "fileMode": 0o600},
    ]
    assert result["linux"]["resources"]["devices"] == [
        {"allow": True, "type": "c", "major": 10, "minor": 232, "access": "rwm"},
        {"allow": True, "type": "b", "major": 8, "minor": 1, "access": "rwm"},
    ]


def test_what_the_file_says_of_a_node_holds(tmp_path: Path) -> None:
    node = {"path": "/dev/z", "type": "c", "major": 1, "minor": 3, "fileMode": 0o400, "permissions": "r", "uid": 7}
    result = inject(tmp_path, {"deviceNodes": [node]}, oci={"process": {"user": {"uid": 1000, "gid": 1001}}})
    described = {key: value for key, value in node.items() if key != "permissions"}
    assert result["linux"]["devices"] == [described | {"gid": 1001}]
    assert result["linux"]["resources"]["devices"] == [
        {"allow": True, "type": "c", "major": 1, "minor": 3, "access": "r"}
    ]


def test_nodes_belong_to_the_containers_user(tmp_path: Path) -> None:
    for user, expected in (({"uid": 1000, "gid": 5}, {"uid": 1000, "gid": 5}), ({"uid": 0, "gid": 0}, {})):
        [node] = inject(tmp_path, {"deviceNodes": [{"path": "/dev/a"}]}, oci={"process": {"user": user}})["linux"][
            "devices"
        ]
        assert {key: node[key] for key in ("uid", "gid") if key in node} == expected


def test_a_pipe_gets_no_cgroup_rule(tmp_path: Path) -> None:
    result = inject(tmp_path, {"deviceNodes": [{"path": "/dev/p"}]})
    assert result["linux"] == {"devices": [{"path": "/dev/p", "type": "p", "major": 0, "minor": 0, "fileMode": 0o644}]}


def test_no_permissions_allow_nothing(tmp_path: Path) -> None:
    result = inject(tmp_path, {"deviceNodes": [{"path": "/dev/a", "permissions": "none"}]})
    assert result["linux"]["resources"]["devices"] == [{"allow": True, "type": "c", "major": 10, "minor": 232}]


def test_the_same_node_twice_is_one_node_with_two_rules(tmp_path: Path) -> None:
    oci = {"linux": {"devices": [{"path": "/dev/a", "type": "c", "major": 0, "minor": 0}]}}
    node = {"deviceNodes": [{"path": "/dev/a"}]}
    result = inject(tmp_path, node, node, oci=oci)
    assert [found["major"] for found in result["linux"]["devices"]] == [10]
    assert len(result["linux"]["resources"]["devices"]) == 2


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"path": "/dev/missing"}, "the host has no such device"),
        ({"path": "/dev/missing", "type": "c"}, "the host has no such device"),
        ({"path": "/dev/a", "type": "b"}, "is of type c on the host, not b"),
    ],
)
def test_nodes_that_cannot_be_made_stop_the_container(tmp_path: Path, node: dict[str, Any], message: str) -> None:
    with pytest.raises(cdi.ResolveError, match=message) as caught:
        inject(tmp_path, {"deviceNodes": [node]})
    assert caught.value.ids == ()


def test_a_missing_pipe_may_be_described(tmp_path: Path) -> None:
    assert inject(tmp_path, {"deviceNodes": [{"path": "/x", "type": "p"}]})["linux"]["devices"][0]["type"] == "p"


def test_this_machines_nodes_are_the_default(tmp_path: Path) -> None:
    write(tmp_path / "a.json", device("a", deviceNodes=[{"path": "/dev/null"}]))
    [node] = cdi.resolve([tmp_path], ["v/c=a"], {})["linux"]["devices"]
    assert (node["type"], node["major"], node["minor"]) == ("c", 1, 3)
    write(tmp_path / "a.json", device("a", deviceNodes=[{"path": str(tmp_path)}]))
    with pytest.raises(cdi.ResolveError, match="no such device"):
        cdi.resolve([tmp_path], ["v/c=a"], {})


def test_mounts_replace_and_are_ordered_by_depth(tmp_path: Path) -> None:
    oci = {"mounts": [{"destination": "/proc"}, {"destination": "/etc/old/"}, {"destination": "/x/y"}]}
    mounts = [
        {"hostPath": "/h/deep", "containerPath": "/a/b/c", "options": ["ro", "nosuid", "bind"]},
        {"hostPath": "/h/new", "containerPath": "/x/y", "type": "bind"},
        {"hostPath": "/h/top", "containerPath": "/a"},
    ]
    result = inject(tmp_path, {"mounts": mounts}, oci=oci)["mounts"]
    assert [mount["destination"] for mount in result] == ["/proc", "/a", "/etc/old/", "/x/y", "/a/b/c"]
    assert result[3] == {"destination": "/x/y", "source": "/h/new", "type": "bind"}
    assert result[4]["options"] == ["ro", "nosuid", "bind"]


@pytest.mark.parametrize(
    ("options", "kind", "expected"),
    [
        (["bind"], None, ["bind", "idmap"]),
        (["rbind", "ro"], None, ["rbind", "ro", "ridmap"]),
        ([], "bind", ["idmap"]),
        (["bind", "idmap"], None, ["bind", "idmap"]),
        (["ro"], "tmpfs", ["ro"]),
    ],
)
def test_mounts_in_a_user_namespace_are_mapped(
    tmp_path: Path, options: list[str], kind: str | None, expected: list[str]
) -> None:
    mount = {"hostPath": "/h", "containerPath": "/c", "options": options, "type": kind}
    oci = {"linux": {"namespaces": [{"type": "pid"}, {"type": "user"}]}}
    [made] = inject(tmp_path, {"mounts": [mount]}, oci=oci)["mounts"]
    assert made["options"] == expected


def test_hooks_net_devices_rdt_and_groups(tmp_path: Path) -> None:
    first = {
        "hooks": [{"hookName": "createRuntime", "path": "/h", "args": ["h", "1"], "env": ["A=1"], "timeout": 3}],
        "netDevices": [{"hostInterfaceName": "enp1", "name": "net1"}],
        "intelRdt": {"closID": "one", "schemata": ["L3:0=f"]},
        "additionalGids": [0, 5],
    }
    last = {"intelRdt": {"closID": "two", "enableMonitoring": True}, "additionalGids": [5, 6]}
    oci = {"hooks": {"createRuntime": [{"path": "/first"}]}, "process": {"user": {"additionalGids": [6]}}}
    result = inject(tmp_path, first, last, oci=oci)
    assert result["hooks"]["createRuntime"] == [
        {"path": "/first"},
        {"path": "/h", "args": ["h", "1"], "env": ["A=1"], "timeout": 3},
    ]
    assert result["linux"]["netDevices"] == {"enp1": {"name": "net1"}}
    assert result["linux"]["intelRdt"] == {"closID": "two", "enableMonitoring": True}
    assert result["process"]["user"]["additionalGids"] == [6, 5]


def test_later_directories_hide_earlier_ones(tmp_path: Path) -> None:
    write(tmp_path / "etc" / "z.json", device("a", env=["FROM=etc"]))
    write(tmp_path / "run" / "a.json", device("a", env=["FROM=run"]))
    both = [tmp_path / "etc", tmp_path / "run"]
    assert cdi.resolve(both, ["v/c=a"], {})["process"]["env"] == ["FROM=run"]
    assert cdi.resolve(reversed(both), ["v/c=a"], {})["process"]["env"] == ["FROM=etc"]


def test_two_of_one_priority_are_a_conflict_that_no_directory_settles(tmp_path: Path) -> None:
    one, two = (
        write(tmp_path / "etc" / "1.json", device("a"), device("b")),
        write(tmp_path / "etc" / "2.json", device("a")),
    )
    write(tmp_path / "run" / "3.json", device("a"))
    directories = [tmp_path / "etc", tmp_path / "run"]
    with pytest.raises(
        cdi.ResolveError, match=r"unresolvable CDI devices v/c=a \(v/c=a is in .*1.json and .*2.json"
    ) as e:
        cdi.resolve(directories, ["v/c=a", "v/c=b"], {})
    assert e.value.ids == ("v/c=a",)
    assert cdi.scan(directories).conflicts == {"v/c=a": (str(one), str(two))}
    assert cdi.resolve(directories, ["v/c=b"], {})


def test_unresolvable_names_every_id_and_the_files_passed_over(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"cdiVersion"')
    old = write(tmp_path / "old.yaml", device("a"), cdiVersion="0.3.0", annotations={"a": "b"})
    write(tmp_path / "good.json", device("good"))
    with pytest.raises(cdi.ResolveError) as caught:
        cdi.resolve([tmp_path], ["v/c=a", "v/c=good", "x/y=z"], {})
    assert caught.value.ids == ("v/c=a", "x/y=z")
    assert set(caught.value.errors) == {str(broken), str(old)}
    assert "v/c=a, x/y=z" in str(caught.value)
    assert "must be at least 0.6.0" in str(caught.value)


def test_only_json_and_yaml_files_count(tmp_path: Path) -> None:
    text = write(tmp_path / "a.json", device("a")).read_text()
    for name in ("b.yml", "c.json.tmp", ".d.json.12345678.tmp", "e"):
        (tmp_path / name).write_text(text)
    (tmp_path / "d.json").mkdir()
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nowhere")
    inventory = cdi.scan([tmp_path])
    assert list(inventory.devices) == ["v/c=a"]
    assert list(inventory.errors) == [str(tmp_path / "dangling.json")]


def test_links_to_files_count(tmp_path: Path) -> None:
    target = write(tmp_path / "elsewhere" / "spec", device("a"))
    (tmp_path / "cdi").mkdir()
    (tmp_path / "cdi" / "link.json").symlink_to(target)
    assert cdi.resolve([tmp_path / "cdi"], ["v/c=a"], {})


def test_a_directory_that_cannot_be_read_ends_the_scan(tmp_path: Path) -> None:
    write(tmp_path / "run" / "a.json", device("a"))
    write(tmp_path / "first" / "b.json", device("b"))
    (tmp_path / "file").touch()
    inventory = cdi.scan([tmp_path / "first", tmp_path / "file", tmp_path / "run"])
    assert list(inventory.devices) == ["v/c=b"]
    assert inventory.errors == {os.fspath(tmp_path / "file"): "Not a directory"}


@given(st.lists(st.sampled_from("ABCD"), max_size=8), st.lists(st.sampled_from("ABCD"), max_size=8))
def test_env_names_stay_unique_and_in_place(present: list[str], added: list[str]) -> None:
    before = [f"{name}={index}" for index, name in enumerate(dict.fromkeys(present))]
    edits = cdi.ContainerEdits(env=tuple(f"{name}=new{index}" for index, name in enumerate(added)))
    after = cdi.apply(edits, {"process": {"env": before}})["process"]["env"]
    names = [variable.partition("=")[0] for variable in after]
    assert names == list(dict.fromkeys([*present, *added]))
    for name in set(added):
        last = max(index for index, other in enumerate(added) if other == name)
        assert f"{name}=new{last}" in after
