"""Diagnostics by which clients know what ended an attempt or a container: who writes them and who reads them meet here.

Hadoop's records have a text for it and no number, so the text is the field.
"""

from typing import Final

#: of what ran on a node that is gone (SchedulerUtils.LOST_CONTAINER); stock ResourceManagers write it too
LOST_NODE: Final = "Container released on a *lost* node"
#: of an attempt whose end the ResourceManager of that time has not seen; ours alone
ENDED_WITH_RM: Final = "it ended with the ResourceManager that knew of it"
