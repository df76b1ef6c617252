"""The two services of a job manager as method tables: one for its tasks, one for its client."""

from typing import Final

from yaqd.proto import job_exploration_pb2 as exploration
from yaqd.proto import job_pb2 as pb
from yaqd.proto import job_training_pb2 as training
from yaqd.proto.protocols import Method

#: what a NodeManager calls its shuffle service
SHUFFLE_SERVICE: Final = "mapreduce_shuffle"
#: in the environment of tasks: the folder on HDFS that has the job's map outputs; absent where nodes have them
SHARED_FOLDER: Final = "YAQ_SHUFFLE_FOLDER"


class TaskUmbilicalProtocol:
    """Task process to job manager, authenticated by the job token."""

    NAME: Final = "yaqd.job.TaskUmbilicalProtocol"
    getTask: Final = Method(NAME, "getTask", pb.GetTaskRequest, pb.GetTaskResponse)
    statusUpdate: Final = Method(NAME, "statusUpdate", pb.StatusUpdateRequest, pb.StatusUpdateResponse)
    taskDone: Final = Method(NAME, "taskDone", pb.TaskDoneRequest, pb.TaskDoneResponse)
    taskFailed: Final = Method(NAME, "taskFailed", pb.TaskFailedRequest, pb.TaskFailedResponse)
    canCommit: Final = Method(NAME, "canCommit", pb.CanCommitRequest, pb.CanCommitResponse)
    getMapCompletionEvents: Final = Method(
        NAME, "getMapCompletionEvents", pb.GetMapCompletionEventsRequest, pb.GetMapCompletionEventsResponse
    )
    fetchFailed: Final = Method(NAME, "fetchFailed", pb.FetchFailedRequest, pb.FetchFailedResponse)
    mergerRuns: Final = Method(NAME, "mergerRuns", pb.MergerRunsRequest, pb.MergerRunsResponse)


class TrainingProtocol:
    """Of a job that trains a model, beside the umbilical: its driver, its workers, its script."""

    NAME: Final = "yaqd.job.TrainingProtocol"
    begin: Final = Method(NAME, "begin", training.TrainingBeginRequest, training.TrainingBeginResponse)
    report: Final = Method(NAME, "report", training.TrainingReportRequest, training.TrainingReportResponse)
    evaluate: Final = Method(NAME, "evaluate", training.EvaluateRequest, training.EvaluateResponse)
    trained: Final = Method(NAME, "trained", training.TrainedRequest, training.TrainedResponse)
    work: Final = Method(NAME, "work", training.WorkRequest, training.WorkResponse)
    pullState: Final = Method(NAME, "pullState", training.PullStateRequest, training.PullStateResponse)


class ExplorationProtocol:
    """Of an exploration, beside the umbilical: its slots and the trials in them."""

    NAME: Final = "yaqd.job.ExplorationProtocol"
    slotTurn: Final = Method(NAME, "slotTurn", exploration.SlotTurnRequest, exploration.SlotTurnResponse)
    trialChanged: Final = Method(
        NAME, "trialChanged", exploration.TrialChangedRequest, exploration.TrialChangedResponse
    )
    begin: Final = Method(NAME, "begin", exploration.TrialBeginRequest, exploration.TrialBeginResponse)
    report: Final = Method(NAME, "report", exploration.TrialReportRequest, exploration.TrialReportResponse)
    keepCheckpoint: Final = Method(
        NAME, "keepCheckpoint", exploration.KeepCheckpointRequest, exploration.KeepCheckpointResponse
    )
    woken: Final = Method(NAME, "woken", exploration.TrialWokenRequest, exploration.TrialReportResponse)


class JobClientProtocol:
    """Whoever follows the job to its job manager."""

    NAME: Final = "yaqd.job.JobClientProtocol"
    getJobStatus: Final = Method(NAME, "getJobStatus", pb.GetJobStatusRequest, pb.GetJobStatusResponse)
    killJob: Final = Method(NAME, "killJob", pb.KillJobRequest, pb.KillJobResponse)
    getTrainingStatus: Final = Method(
        NAME, "getTrainingStatus", training.TrainingStatusRequest, training.TrainingStatusResponse
    )
    stopTraining: Final = Method(NAME, "stopTraining", training.StopTrainingRequest, training.StopTrainingResponse)
    getExplorationStatus: Final = Method(
        NAME, "getExplorationStatus", exploration.ExplorationStatusRequest, exploration.ExplorationStatusResponse
    )
    stopExploration: Final = Method(
        NAME, "stopExploration", exploration.StopExplorationRequest, exploration.StopExplorationResponse
    )
