import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Schemas } from '../../api/client.ts'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { durationText, Time, useSeconds } from '../../ui/time.tsx'
import { reasonText } from './reasons.ts'
import styles from './jobs.module.css'

interface JobFactsProps {
  job: Schemas['Job']
  clusterName: string | undefined
}

export function JobDetails({ job, clusterName }: JobFactsProps) {
  const { clusterId, statusReason, result, lateResult } = job
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
    ...(job.startedAt === undefined ? [] : [['Started', <Time key="b" at={job.startedAt} isAbsolute />] as const]),
    ...(job.completedAt === undefined ? [] : [['Ended', <Time key="e" at={job.completedAt} isAbsolute />] as const]),
    ...(job.startedAt === undefined ? [] : [['Duration', <Duration key="d" job={job} />] as const]),
    ...(job.status === 'Queued' && clusterId !== undefined
      ? [['Expires', <Time key="x" at={job.expiresAt} />] as const]
      : []),
    ...(result === undefined ? [] : [['Exit code', result.exitCode ?? 'none'] as const]),
  ]
  return (
    <Card title="Overview">
      {statusReason !== undefined && <p>{reasonText(statusReason)}</p>}
      {job.cancelRequestedAt !== undefined && job.status === 'Running' && <p>Cancelling: waiting for the relay.</p>}
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

const ClusterLink = ({ id, name }: { id: string; name: string | undefined }) => (
  <Link to="/clusters/$clusterId" params={{ clusterId: id }}>
    {name ?? id}
  </Link>
)

/** The duration so far, or in total. */
function Duration({ job: { startedAt = '', completedAt } }: { job: Schemas['Job'] }) {
  const nowMs = useSeconds(completedAt === undefined)
  const endMs = completedAt === undefined ? nowMs : Date.parse(completedAt)
  return durationText(Math.max(0, endMs - Date.parse(startedAt)))
}
