"""Choosing and running an authentication method, both ends, without I/O.

```
client                                   server
NEGOTIATE                        ->
                                 <-      SUCCESS                        server takes anybody: carry on as SIMPLE
                                 <-      NEGOTIATE [TOKEN, SIMPLE]      (the TOKEN entry may carry the challenge)
INITIATE [SIMPLE]                ->                                     done, no answer
INITIATE [TOKEN] response        ->
INITIATE [TOKEN]                 ->                                     when there was no challenge
                                 <-      CHALLENGE
RESPONSE response                ->
                                 <-      SUCCESS rspauth                both ends have proved themselves
```
"""

import base64
import enum
from typing import Final

from yaqd.ipc.errors import AccessControl, InvalidToken, SaslFailure
from yaqd.ipc.sasl import MECHANISM, SERVER_ID, DigestClient, DigestResponse, challenge
from yaqd.ipc.wire import RandomBytes, TokenCredential, TokenSecrets
from yaqd.proto import rpc_pb2 as rpc

_NONCE_BYTES: Final = 24
_TOKEN: Final = "TOKEN"
_SIMPLE: Final = "SIMPLE"

State = rpc.RpcSasl.SaslState


def _nonce(random: RandomBytes) -> str:
    return base64.b64encode(random(_NONCE_BYTES)).decode()


class ServerStep(enum.Enum):
    """Where the server stands; which message may come next is the table below."""

    START = enum.auto()
    OFFERED = enum.auto()
    CHALLENGED = enum.auto()
    DONE = enum.auto()


_SERVER_ACCEPTS: Final = {
    ServerStep.START: rpc.RpcSasl.NEGOTIATE,
    ServerStep.OFFERED: rpc.RpcSasl.INITIATE,
    ServerStep.CHALLENGED: rpc.RpcSasl.RESPONSE,
}


class ServerNegotiation:
    """The server's end. `receive` returns the answer, None where there is none, and raises what ends it."""

    def __init__(self, secrets: TokenSecrets | None, *, allow_simple: bool, random: RandomBytes) -> None:
        self._secrets = secrets
        self._allow_simple = allow_simple
        self._random = random
        self._nonce = ""
        self.step = ServerStep.START
        #: verified identifier of the token, None while unknown and for SIMPLE
        self.identifier: bytes | None = None

    @property
    def is_done(self) -> bool:
        return self.step is ServerStep.DONE

    def receive(self, message: rpc.RpcSasl) -> rpc.RpcSasl | None:
        """Raises SaslFailure, InvalidToken, AccessControl."""
        if message.state != _SERVER_ACCEPTS.get(self.step):
            raise SaslFailure(f"SASL message {State.Name(message.state)} not allowed in state {self.step.name}")
        if self.step is ServerStep.START:
            return self._offer()
        if self.step is ServerStep.OFFERED:
            return self._initiate(message)
        return self._verify(message.token)

    def _offer(self) -> rpc.RpcSasl:
        if self._secrets is None:
            if not self._allow_simple:
                raise AccessControl("no authentication method is enabled at this server")
            self.step = ServerStep.DONE
            return rpc.RpcSasl(state=rpc.RpcSasl.SUCCESS)
        self._nonce = _nonce(self._random)
        self.step = ServerStep.OFFERED
        offer = rpc.RpcSasl(state=rpc.RpcSasl.NEGOTIATE, auths=[self._token_method()])
        offer.auths[0].challenge = challenge(self._nonce)
        if self._allow_simple:
            offer.auths.add(method=_SIMPLE, mechanism="")
        return offer

    @staticmethod
    def _token_method() -> rpc.RpcSasl.SaslAuth:
        return rpc.RpcSasl.SaslAuth(method=_TOKEN, mechanism=MECHANISM, protocol="", serverId=SERVER_ID)

    def _initiate(self, message: rpc.RpcSasl) -> rpc.RpcSasl | None:
        if len(message.auths) != 1:
            raise SaslFailure("client must choose exactly one authentication method")
        chosen = message.auths[0]
        if chosen.method == _SIMPLE:
            if not self._allow_simple:
                raise AccessControl("SIMPLE authentication is not enabled. Available: [TOKEN]")
            self.step = ServerStep.DONE
            return None
        if chosen != self._token_method():
            raise SaslFailure("client chose an authentication method that was not offered")
        if not message.token:
            self.step = ServerStep.CHALLENGED
            return rpc.RpcSasl(state=rpc.RpcSasl.CHALLENGE, token=challenge(self._nonce))
        return self._verify(message.token)

    def _verify(self, token: bytes) -> rpc.RpcSasl:
        assert self._secrets is not None
        answer = DigestResponse.parse(token, self._nonce)
        password = self._secrets.password(None, answer.identifier)
        proof = answer.verify(password, self._nonce)
        if proof is None:
            raise InvalidToken("the client's proof does not match its token: wrong password")
        self.identifier = answer.identifier
        self.step = ServerStep.DONE
        return rpc.RpcSasl(state=rpc.RpcSasl.SUCCESS, token=proof)


class ClientStep(enum.Enum):
    START = enum.auto()
    NEGOTIATING = enum.auto()
    INITIATED = enum.auto()
    PROVED = enum.auto()
    DONE = enum.auto()


_CLIENT_ACCEPTS: Final = {
    ClientStep.NEGOTIATING: (rpc.RpcSasl.NEGOTIATE, rpc.RpcSasl.SUCCESS),
    ClientStep.INITIATED: (rpc.RpcSasl.CHALLENGE,),
    ClientStep.PROVED: (rpc.RpcSasl.SUCCESS,),
}


class ClientNegotiation:
    """The client's end. `used_token` tells, once done, whether the token or SIMPLE was taken."""

    def __init__(self, token: TokenCredential, *, random: RandomBytes) -> None:
        self._digest = DigestClient(token.identifier, token.password, _nonce(random))
        self.step = ClientStep.START
        self.used_token = False

    @property
    def is_done(self) -> bool:
        return self.step is ClientStep.DONE

    @property
    def awaits_verdict(self) -> bool:
        """The token has been put forward, and the server has not said what it thinks of it."""
        return self.step in (ClientStep.INITIATED, ClientStep.PROVED)

    def start(self) -> rpc.RpcSasl:
        self.step = ClientStep.NEGOTIATING
        return rpc.RpcSasl(state=rpc.RpcSasl.NEGOTIATE)

    def receive(self, message: rpc.RpcSasl) -> rpc.RpcSasl | None:
        """Return the answer, if any. Raises SaslFailure, AccessControl."""
        if message.state not in _CLIENT_ACCEPTS.get(self.step, ()):
            raise SaslFailure(f"SASL message {State.Name(message.state)} not allowed in state {self.step.name}")
        if self.step is ClientStep.NEGOTIATING:
            if message.state == rpc.RpcSasl.SUCCESS:
                self.step = ClientStep.DONE
                return None
            return self._choose(message)
        if self.step is ClientStep.INITIATED:
            self.step = ClientStep.PROVED
            return rpc.RpcSasl(state=rpc.RpcSasl.RESPONSE, token=self._digest.respond(message.token))
        self._digest.check(message.token)
        self.step = ClientStep.DONE
        self.used_token = True
        return None

    def _choose(self, offer: rpc.RpcSasl) -> rpc.RpcSasl:
        """Take the first usable method in the server's order."""
        for auth in offer.auths:
            if auth.method == _TOKEN and auth.mechanism == MECHANISM:
                return self._take_token(auth)
            if auth.method == _SIMPLE and auth.mechanism == "":
                self.step = ClientStep.DONE
                return rpc.RpcSasl(state=rpc.RpcSasl.INITIATE, auths=[auth])
        offered = ", ".join(auth.method for auth in offer.auths)
        raise AccessControl(f"server offers only [{offered}]; TOKEN and SIMPLE are what this client can do")

    def _take_token(self, auth: rpc.RpcSasl.SaslAuth) -> rpc.RpcSasl:
        opening = rpc.RpcSasl(state=rpc.RpcSasl.INITIATE, token=b"")
        if auth.challenge:
            opening.token = self._digest.respond(auth.challenge)
            self.step = ClientStep.PROVED
        else:
            self.step = ClientStep.INITIATED
        chosen = opening.auths.add()
        chosen.CopyFrom(auth)
        chosen.ClearField("challenge")
        return opening
