"""Why a merge comes to nothing. In every case the originals are untouched and nothing of the merge is visible."""


class MergeError(Exception):
    """The text names the file and what was found there or what the disk said."""


class Cancelled(MergeError):
    """Somebody asked for the end of it."""


class NotMergeable(MergeError):
    """The request makes no sense here: outputs that are missing, damaged, too many or not of one job."""
