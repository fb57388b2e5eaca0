"""What ``nvidia-smi`` prints of a node, as far as tests give it to be read."""

from __future__ import annotations

from collections.abc import Iterable

A100 = "NVIDIA A100-SXM4-80GB"


def card(
    uuid: str = "GPU-0",
    mig: str = "Enabled",
    name: str = A100,
    *,
    pending: str | None = None,
    devices: Iterable[tuple[int, int]] | None = None,
    more: str = "",
) -> str:
    """A GPU of the XML, on one line; its devices are GPU instances with their multiprocessors."""
    parts = "".join(
        f"<mig_device><index>{at}</index><gpu_instance_id>{number}</gpu_instance_id>"
        "<compute_instance_id>0</compute_instance_id><device_attributes><shared>"
        f"<multiprocessor_count>{size}</multiprocessor_count></shared></device_attributes>"
        "</mig_device>"
        for at, (number, size) in enumerate(devices or ())
    )
    listed = "" if devices is None else f"<mig_devices>{parts or 'None'}</mig_devices>"
    return (
        f'<gpu id="00000000:07:00.0"><product_name>{name}</product_name><mig_mode>'
        f"<current_mig>{mig}</current_mig><pending_mig>{pending or mig}</pending_mig></mig_mode>"
        f"{listed}<uuid>{uuid}</uuid>{more}</gpu>\n"
    )


def log(*cards: str, driver: str = "550.54.15", attached: int | None = None, head: str = "") -> str:
    """The XML of a node: its GPUs are on the lines from 5 on."""
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
        f"<nvidia_smi_log>{head}\n<driver_version>{driver}</driver_version>"
        f"<attached_gpus>{len(cards) if attached is None else attached}</attached_gpus>\n"
        f"{''.join(cards)}</nvidia_smi_log>\n"
    )


def lgi(*rows: str) -> str:
    """The listing of GPU instances; a row is ``0 3g.40gb 2 4:4``: GPU, profile, id, place."""
    frame = f"+{'-' * 55}+\n"
    said = [row.split() for row in rows]
    lines = [
        f"|{gpu:>4}  MIG {name:<14}{9:>4}{number:>9}{place:>13}     |\n{frame}"
        for gpu, name, number, place in said
    ]
    head = (
        "| GPU instances:                                        |\n"
        "| GPU   Name             Profile  Instance   Placement  |\n"
        "|                          ID       ID       Start:Size |\n"
        "|=======================================================|\n"
    )
    return frame + head + "".join(lines)
