import type { Texts } from './text.ts'

const clusterId = 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa'
const output = 'Linux\n'

const statusReason =
  'Why the job ended without success: a time limit, an exit code, a cancellation, its relay or the platform'

export const workTexts: Texts = {
  Submitter: {
    '': 'The user who submitted it',
    id: 'Identifier of the user',
    username: 'Name of the user at that time',
  },
  BatchJob: { clusterId: 'Cluster that runs the job', type: 'Job type; only `InvokeScript` can be submitted' },
  JobSubmission: {
    '': [
      'A job for one cluster',
      {
        clusterId,
        type: 'InvokeScript',
        name: 'Rotate logs',
        reason: 'Ticket 4711: disk is full',
        payload: { script: 'logrotate --force /etc/logrotate.conf', timeoutSeconds: 300 },
      },
    ],
    clusterId: 'Cluster that runs the job',
    type: 'Job type; only `InvokeScript` can be submitted',
  },
  BatchSubmission: {
    '': [
      'Up to 500 jobs: a list of jobs, or one payload for every cluster of a target',
      {
        target: { selector: 'env=prod,!legacy' },
        type: 'InvokeScript',
        payload: { script: 'uname -a' },
        expectedCount: 12,
        name: 'Kernel versions',
        maxConcurrency: 50,
        maxErrors: 3,
      },
    ],
    'target.clusterIds': 'These clusters; all must belong to the organisation',
    type: 'With `target`: job type; only `InvokeScript` can be submitted',
  },
  'AcceptedJob JobSummary Job': {
    type: ['Job type; all but `InvokeScript` are operations of the platform itself', 'InvokeScript'],
  },
  AcceptedJob: { status: 'Always `Queued`' },
  'JobSummary Job': {
    status: ['`Queued` and `Running` can change; the other values are final', 'Completed'],
    statusReason,
  },
  Job: {
    payload: 'Payload as it was submitted',
    result: 'Result; present once the relay has reported it',
    lateResult: 'Result that arrived after the job had ended',
  },
  JobResult: {
    '': 'Result of an ended job',
    output: [
      'Output of all nodes in order of arrival, at most 1 MiB: the first 256 KiB and the last 768 KiB, in whole lines',
      output,
    ],
    binary:
      'Present if bytes that are not valid UTF-8 were replaced; `GET /jobs/{id}/output` returns the original bytes',
    exitCode: ['First exit code of the nodes that is not 0, else 0; null if no script exited', 0],
    nodes: 'Results of the nodes',
    truncated: ['Whether a part of the output was dropped; a line with the number of bytes marks the cut', false],
  },
  NodeResult: {
    nodeId: ['Identifier of the node', 'node_01jd8w5k3zr9x2m4c7t6v0b1qa'],
    output: ['Output of the node', output],
  },
  LateResult: {
    '': 'Result that the relay reported after the job had ended. It does not change the status of the job',
    outcome: ['How the run ended', 'exited'],
    exitCode: ['Exit code; null if the script did not exit by itself', 0],
    reportedAt: 'Time at which the relay reported it',
  },
  JobStep: {
    name: 'Name of the step',
    status: ['State of the step', 'Completed'],
    message: 'Result or error of the step',
  },
  JobOutput: {
    items: 'Pieces of output from the requested offset, in order of arrival',
    status: 'Status of the job',
  },
  OutputChunk: {
    offset: ['Number of bytes of output before this piece, including dropped ones', 0],
    nodeId: 'Node that wrote it',
    data: 'Text, or Base64; see `encoding`',
  },
  JobGroups: {
    '': 'The groups of a batch',
    groups: 'Failed groups first, then Cancelled and Completed ones; within a status, the largest first',
  },
  JobGroup: {
    '': 'Jobs that ended with the same status, reason, exit code and output',
    status: ['Status of the jobs', 'Failed'],
  },
  'JobGroup JobOutcome': { statusReason },
  GroupCluster: { '': 'A cluster of a group, with its job', name: 'Name of the cluster' },
  JobOutcome: {
    '': 'A job of a batch with its result',
    clusterName: 'Name of the cluster',
    status: ['Status of the job', 'Completed'],
  },
  listJobs: { status: 'Only jobs with this status', type: 'Only jobs of this type' },
  AcceptedBatch: {
    jobIds: 'Jobs, in the order of `jobs` or `clusterIds`; for other targets, newest cluster first',
    submittedCount: 'Number of jobs',
  },
  Batch: {
    '': [
      'A batch with its number of jobs by status',
      {
        id: 'batch_01jd8w5k3zr9x2m4c7t6v0b1qa',
        status: 'Finished',
        submittedCount: 500,
        counts: { queued: 0, running: 0, completed: 498, failed: 2, cancelled: 0 },
        maxConcurrency: 50,
        name: 'Rotate logs',
        title: 'Rotate logs',
        createdBy: { id: 'user_01jd8w5k3zr9x2m4c7t6v0b1qa', username: 'ann', via: 'session' },
        createdAt: '2026-11-21T09:30:00.000Z',
        finishedAt: '2026-11-21T09:42:10.000Z',
      },
    ],
    status: '`Finished` shortly after every job has ended; `Cancelling` until then after a cancellation',
    submittedCount: 'Number of jobs of the batch',
    maxConcurrency: 'Maximum number of its jobs that are queued for a relay or running at once',
    maxErrors: 'Number of failed jobs above which the jobs that have not started are cancelled',
    name: 'Short title',
    reason: 'Why the scripts run',
  },
  BatchCounts: {
    '': 'Number of jobs of a batch by status; the start or end of a job counts within seconds',
    queued: 'Jobs that no relay has claimed yet',
    running: 'Jobs that run',
    completed: 'Jobs whose script exited with 0 on every node',
    failed: 'Jobs that failed or did not end in time',
    cancelled: 'Jobs that were cancelled',
  },
}
