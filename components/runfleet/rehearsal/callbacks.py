"""Transforms without a server.

The SDK keeps transform functions in a servicer and opens a gRPC server on the
loopback interface, so that the engine can call them. Here the "engine" is in the
same process: this servicer keeps the functions, and the monitor awaits them
directly. No socket is opened.

The parent class belongs to the SDK's internals (pulumi 3.272,
``pulumi/runtime/_callbacks.py``); the attributes set here are all that its
registering methods use.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from google.protobuf.message import Message
from pulumi.runtime._callbacks import (
    _CallbackServicer,  # pyright: ignore[reportPrivateUsage]
)

_Response = TypeVar("_Response", bound=Message)


class LocalCallbacks(_CallbackServicer):
    """Keeps callbacks and calls them in this process."""

    def __init__(self, monitor: Any) -> None:
        """Prepare the tables that the parent class fills; start no server."""
        self._callbacks = {}
        self._transforms = {}
        self._state_migrations = {}
        self._monitor = monitor
        self._loop = asyncio.get_running_loop()
        self._target = "in-process"

    async def serve(self) -> None:
        """Do nothing: nobody calls from outside."""

    async def call(self, token: str, request: Message, answer: _Response) -> _Response:
        """Run a callback and return its answer.

        Args:
            token: Token that the callback was registered with.
            request: Its request message.
            answer: An empty message of the type that it answers with.
        """
        response = await self._callbacks[token](request.SerializeToString())
        answer.ParseFromString(response.SerializeToString())
        return answer
