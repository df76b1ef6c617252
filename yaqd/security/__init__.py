"""Tokens, the keys they are made with, and the credentials files that carry them."""

from yaqd.security.checks import check_container_password, check_container_token, check_nm_token
from yaqd.security.credentials import BadCredentials, Credentials
from yaqd.security.keys import MasterKey, RollingKeys, VerifierKeys
from yaqd.security.secrets import (
    AM_RM_TOKEN,
    CONTAINER_TOKEN,
    JOB_TOKEN,
    KINDS,
    NM_TOKEN,
    AMRMTokenSecrets,
    ContainerTokenSecrets,
    JobTokenSecrets,
    NMTokenSecrets,
    parse_identifier,
)
from yaqd.security.token import Token, token_password

__all__ = [
    "AM_RM_TOKEN",
    "CONTAINER_TOKEN",
    "JOB_TOKEN",
    "KINDS",
    "NM_TOKEN",
    "AMRMTokenSecrets",
    "BadCredentials",
    "ContainerTokenSecrets",
    "Credentials",
    "JobTokenSecrets",
    "MasterKey",
    "NMTokenSecrets",
    "RollingKeys",
    "Token",
    "VerifierKeys",
    "check_container_password",
    "check_container_token",
    "check_nm_token",
    "parse_identifier",
    "token_password",
]
