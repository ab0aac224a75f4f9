"""The package's own pins: complete, and none without a source."""

from __future__ import annotations

from runfleet.catalogue.pins import UNRESOLVED, load_pins

NAMES = {
    "eks-version",
    "eks-image-al2023",
    "karpenter-chart",
    "arc-version",
    "arc-controller-image",
    "arc-runner-image",
    "arc-hooks-version",
    "external-secrets-chart",
    "nvidia-device-plugin-chart",
    "eks-addon-vpc-cni",
    "eks-addon-coredns",
    "eks-addon-kube-proxy",
    "eks-addon-pod-identity-agent",
    "eks-addon-ebs-csi-driver",
    "buildkit-image",
}


def test_all_names_that_stacks_read_are_there() -> None:
    assert load_pins().pins.keys() >= NAMES


def test_what_was_read_from_a_source() -> None:
    pins = load_pins()
    assert pins.value("eks-version") == "1.35"
    assert pins.value("eks-image-al2023") == "al2023@v20260318"
    assert pins.value("karpenter-chart") == "1.14.1"
    assert pins.value("arc-version") == "0.14.2"


def test_resolved_pins_have_a_date_and_unresolved_ones_a_place_to_look() -> None:
    for name, pin in load_pins().pins.items():
        assert pin.source, name
        assert (pin.read is not None) == (pin.value != UNRESOLVED), name


def test_actions_do_not_hold_up_a_stack() -> None:
    pins = load_pins().pins
    actions = {name: pin for name, pin in pins.items() if pin.kind == "action"}
    assert {name.removeprefix("action-") for name in actions} >= {
        "checkout",
        "setup-python",
        "configure-aws-credentials",
        "upload-artifact",
    }
    assert all(pin.used_by == ["workflows"] for pin in actions.values())
