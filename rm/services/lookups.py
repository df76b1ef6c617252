"""What a client names, found in the records, or the exception that its absence has in Hadoop."""

from rm.applications.former_attempts import every_attempt
from rm.applications.records import Application, Attempt
from rm.cluster import Cluster
from yaqd.ipc.errors import ApplicationAttemptNotFound, ApplicationNotFound
from yaqd.model import ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common


def no_such_application(app_id: ApplicationId) -> str:
    """Says in Hadoop's words that there is no such application."""
    return f"Application with id '{app_id}' doesn't exist in RM. Please check that the job submission was successful."


def find_application(cluster: Cluster, message: common.ApplicationId) -> Application:
    """Raises ApplicationNotFound."""
    app_id = convert.application_id(message)
    app = cluster.applications.get(app_id)
    if app is None:
        raise ApplicationNotFound(no_such_application(app_id))
    return app


def find_attempt(cluster: Cluster, app: Application, message: common.ApplicationAttemptId) -> Attempt:
    """Finds an attempt of an application that was found. Raises ApplicationAttemptNotFound."""
    attempt_id = convert.attempt_id(message)
    attempt = next((a for a in reversed(every_attempt(app)) if a.id == attempt_id), None)
    if attempt is None:
        raise ApplicationAttemptNotFound(f"ApplicationAttempt with id '{attempt_id}' doesn't exist in RM.")
    return attempt
