import { Link } from '@tanstack/react-router'
import { Ban, CircleAlert, CircleCheck, CircleDashed } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Schemas } from '../../api/client.ts'
import { Badge } from '../../ui/badge.tsx'
import { Spinner } from '../../ui/button.tsx'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { durationText, Time, totalDurationText, useRunningClock } from '../../ui/time.tsx'
import styles from './jobs.module.css'
import { reasonText } from './status.ts'

export function JobLead({ job, clusterName }: { job: Schemas['Job']; clusterName: string | undefined }) {
  const { clusterId, createdBy, createdAt, result, statusReason } = job
  return (
    <>
      {clusterId !== undefined && (
        <>
          On <ClusterLink id={clusterId} name={clusterName} />
          {', '}
        </>
      )}
      {clusterId === undefined ? 'By' : 'by'} {submitterText(createdBy)}, <Time at={createdAt} />
      {result !== undefined && typeof result.exitCode === 'number' && `, exit code ${result.exitCode}`}.{' '}
      {statusReason !== undefined && reasonText(statusReason)}
      {job.cancelRequestedAt !== undefined && job.status === 'Running' && 'Cancelling: waiting for the relay.'}
    </>
  )
}

export function JobDetails({ job, clusterName }: { job: Schemas['Job']; clusterName: string | undefined }) {
  const { clusterId, result, lateResult, reason } = job
  const items: (readonly [string, ReactNode])[] = [
    [
      'Id',
      <span key="id" className={styles['id']}>
        <code>{job.id}</code> <CopyButton text={job.id} label="Copy id" />
      </span>,
    ],
    ...(clusterId === undefined
      ? []
      : [['Cluster', <ClusterLink key="c" id={clusterId} name={clusterName} />] as const]),
    ['Submitted', <Time key="s" at={job.createdAt} isAbsolute />],
    ['Submitted by', submitterText(job.createdBy)],
    ...(reason === undefined ? [] : [['Reason', reason] as const]),
    ...(job.startedAt === undefined ? [] : [['Started', <Time key="b" at={job.startedAt} isAbsolute />] as const]),
    ...(job.completedAt === undefined ? [] : [['Ended', <Time key="e" at={job.completedAt} isAbsolute />] as const]),
    ...(job.startedAt === undefined ? [] : [['Duration', <Duration key="d" job={job} />] as const]),
    ...(job.status === 'Queued' && clusterId !== undefined
      ? [['Expires', <Time key="x" at={job.expiresAt} />] as const]
      : []),
    ...(result === undefined ? [] : [['Exit code', result.exitCode ?? 'none'] as const]),
  ]
  return (
    <Card title="Details">
      <DescriptionList items={items} />
      {lateResult !== undefined && (
        <p>
          After that its relay reported <strong>{lateResult.outcome}</strong>, exit code {lateResult.exitCode ?? 'none'}{' '}
          (
          <Time at={lateResult.reportedAt} isAbsolute />
          ). The status stays as it was.
        </p>
      )}
    </Card>
  )
}

/** Returns the name of the submitter, with a note if an API token was used. */
export const submitterText = ({ id, username, via }: Schemas['Submitter']): string =>
  `${username || id}${via === 'token' ? ' (API token)' : ''}`

const ClusterLink = ({ id, name }: { id: string; name: string | undefined }) => (
  <Link to="/clusters/$clusterId" params={{ clusterId: id }}>
    {name ?? id}
  </Link>
)

// While the job runs, the duration is updated every second.
function Duration({ job: { startedAt = '', completedAt } }: { job: Schemas['Job'] }) {
  const nowMs = useRunningClock(completedAt === undefined)
  const endMs = completedAt === undefined ? nowMs : Date.parse(completedAt)
  return durationText(Math.max(0, endMs - Date.parse(startedAt)))
}

type Step = Schemas['JobStep']

const icons = { Pending: CircleDashed, Completed: CircleCheck, Failed: CircleAlert, Skipped: Ban }

export const JobSteps = ({ steps }: { steps: readonly Step[] }) => (
  <Card title="Steps">
    <ol className={styles['steps']}>
      {steps.map((step) => (
        <li key={step.name} data-status={step.status}>
          <StepIcon status={step.status} />
          <span>
            <strong>{step.name}</strong> <span className={styles['quiet']}>{stateText(step)}</span>
            {step.message !== undefined && <p className={styles['message']}>{step.message}</p>}
          </span>
        </li>
      ))}
    </ol>
  </Card>
)

function StepIcon({ status }: { status: Step['status'] }) {
  if (status === 'Running') return <Spinner />
  const Icon = icons[status]
  return <Icon size={16} aria-hidden />
}

function stateText(step: Step): string {
  const duration = totalDurationText(step)
  return duration === '' ? step.status : `${step.status} in ${duration}`
}

type NodeResult = Schemas['NodeResult']

export function NodeResults({ nodes, nameOf }: { nodes: readonly NodeResult[]; nameOf: (nodeId: string) => string }) {
  const columns: Column<NodeResult>[] = [
    { title: 'Node', cell: ({ nodeId }) => nameOf(nodeId) },
    { title: 'Exit code', cell: ({ exitCode }) => <ExitCode code={exitCode} />, isNarrow: true },
  ]
  const rows = nodes.toSorted((a, b) => Number(a.exitCode === 0) - Number(b.exitCode === 0)).slice(0, maxResults)
  return (
    <Card title="Nodes">
      <Table label="Results by node" columns={columns} rows={rows} keyOf={({ nodeId }) => nodeId} />
      {nodes.length > maxResults && <p>{nodes.length - maxResults} more are available through the API.</p>}
    </Card>
  )
}

const maxResults = 200

function ExitCode({ code }: { code: number | null }) {
  if (code === null) return <Badge variant="bad">no exit code</Badge>
  return <Badge variant={code === 0 ? 'good' : 'bad'}>{code}</Badge>
}
