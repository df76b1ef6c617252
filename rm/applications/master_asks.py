"""What a submission asks for its master."""

from yaqd.model import ANY_HOST, Resource
from yaqd.policies.asks.rows import AskRow
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common


def master_rows(context: common.ApplicationSubmissionContext) -> tuple[AskRow, ...]:
    """Return what the master's container asks for: priority 0, one container, in preferred places if some are named."""
    if not context.am_container_resource_request:
        return (AskRow(0, -1, ANY_HOST, convert.resource(context.resource), 1),)
    asked = context.am_container_resource_request
    capability = next((r.capability for r in asked if r.resource_name == ANY_HOST), asked[0].capability)
    amount = convert.resource(capability)
    rows = [AskRow(0, -1, r.resource_name, amount, 1, r.relax_locality) for r in asked if r.resource_name]
    if all(row.resource_name != ANY_HOST for row in rows):
        rows.append(AskRow(0, -1, ANY_HOST, amount, 1))
    return tuple(rows)


def master_resource(context: common.ApplicationSubmissionContext) -> Resource:
    return master_rows(context)[0].capability


def label_expressions(context: common.ApplicationSubmissionContext) -> list[str]:
    """List the label expressions of the master's container: the submission's own, and each request's.

    They say which nodes it asks for.
    """
    return [context.node_label_expression, *(r.node_label_expression for r in context.am_container_resource_request)]
