"""The one place where sockets listen or lead to: this machine."""

from __future__ import annotations

import ipaddress
import socket

from oncebench.messages import BadInput

PATH = "/deliveries"
"""Where a warehouse takes messages."""


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A listening socket on this machine; port 0 is a free one.

    Raises:
        BadInput: The host is not loopback, or the port is taken.
    """
    check_loopback(host)
    door = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((host, port))
        door.listen(128)
    except (OSError, OverflowError) as error:
        door.close()
        why = error.strerror if isinstance(error, OSError) else "a port is 0 to 65535"
        raise BadInput(
            f"cannot listen on {host} port {port}: {why}: choose another --port, or 0 for a free one"
        ) from error
    return door


def check_loopback(host: str) -> None:
    """Refuse all that is not this machine itself, written as an address.

    Raises:
        BadInput: It is not.
    """
    try:
        inside = ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name may lead anywhere
        inside = False
    if not inside:
        raise BadInput(
            f"{host} is not loopback: this is for teaching and has no accounts and no encryption, "
            "so it speaks to 127.0.0.1 only"
        )
