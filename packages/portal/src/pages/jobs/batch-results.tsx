import { resultsCsv } from '@platform/contract/results-csv'
import { Link, useNavigate } from '@tanstack/react-router'
import { Download, Play } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button, TextButton } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { Loaded } from '../../ui/state.tsx'
import { showErrorToast } from '../../ui/toast.tsx'
import { useClusterName } from '../clusters/cluster-queries.ts'
import styles from './batch-results.module.css'
import { GroupDiff } from './group-diff.tsx'
import { clustersOf, type Group, groupText, readResults, useGroups } from './group-queries.ts'
import { plainLines } from './terminal-text.ts'
import { reasonText } from './status.ts'

// More groups are shown on request.
const maxShownGroups = 20
const maxShownNames = 5

/** The results of one or several batches: equal ones in one group, failures first. */
export function BatchResults({ batchIds }: { batchIds: readonly string[] }) {
  const query = useGroups(batchIds)
  return (
    <Card title="Results" actions={<ExportButtons batchIds={batchIds} />}>
      <Loaded query={query} what="the results">
        {({ groups, pending }) => <Groups batchIds={batchIds} groups={groups} pending={pending} />}
      </Loaded>
    </Card>
  )
}

interface GroupsProps {
  batchIds: readonly string[]
  groups: readonly Group[]
  pending: number
}

function Groups({ batchIds, groups, pending }: GroupsProps) {
  const [showsAll, setShowsAll] = useState(false)
  const shownGroups = showsAll ? groups : groups.slice(0, maxShownGroups)
  return (
    <>
      <p role="status" className={styles['quiet']}>
        {groups.length === 1 ? '1 result' : `${groups.length.toLocaleString('en')} different results`}
        {pending > 0 && `; ${jobsText(pending)} not ended`}
      </p>
      <ul className={styles['groups']} aria-label="Groups of equal results">
        {shownGroups.map((group) => (
          <li key={group.key}>
            <GroupView batchIds={batchIds} group={group} />
          </li>
        ))}
      </ul>
      {shownGroups.length < groups.length && (
        <TextButton onClick={() => setShowsAll(true)}>Show all {groups.length.toLocaleString('en')} results</TextButton>
      )}
      {groups.length > 1 && <GroupDiff groups={groups} />}
    </>
  )
}

const jobsText = (count: number): string => (count === 1 ? '1 job has' : `${count.toLocaleString('en')} jobs have`)

function GroupView({ batchIds, group }: { batchIds: readonly string[]; group: Group }) {
  const { status, statusReason, exitCode, count, sample, sampleTruncated, sampleJobId } = group
  return (
    <section className={styles['group']} aria-label={groupText(group)}>
      <div className={styles['head']}>
        <h3>
          {count.toLocaleString('en')} <StatusBadge status={status} />
          {exitCode !== null && ` exit code ${exitCode}`}
        </h3>
        <RunOnThese batchIds={batchIds} group={group} />
      </div>
      {statusReason !== undefined && <p>{reasonText(statusReason)}</p>}
      <Clusters batchIds={batchIds} group={group} />
      {sample !== undefined && <Sample text={sample} label={`Output of ${groupText(group)}`} />}
      {(sample === undefined || sampleTruncated) && (
        <Link to="/jobs/$jobId" params={{ jobId: sampleJobId }}>
          {sampleTruncated ? 'Complete output' : 'One of the jobs'}
        </Link>
      )}
    </section>
  )
}

const Sample = ({ text, label }: { text: string; label: string }) =>
  text === '' ? (
    <p className={styles['quiet']}>No output.</p>
  ) : (
    <pre role="region" aria-label={label} tabIndex={0} className={styles['sample']}>
      {plainLines(text)}
    </pre>
  )

function Clusters({ batchIds, group }: { batchIds: readonly string[]; group: Group }) {
  const [allIds, setAllIds] = useState<string[]>()
  const load = async () => {
    try {
      setAllIds(await idsOf(batchIds, group))
    } catch (error) {
      showErrorToast('The clusters cannot be loaded', error)
    }
  }
  const shownIds = allIds ?? group.clusterIds.slice(0, maxShownNames)
  const moreCount = group.count - shownIds.length
  return (
    <p className={styles['clusters']}>
      {shownIds.map((id) => (
        <ClusterLink key={id} id={id} />
      ))}
      {allIds === undefined && moreCount > 0 && (
        <TextButton onClick={() => void load()}>and {moreCount.toLocaleString('en')} more</TextButton>
      )}
    </p>
  )
}

const idsOf = async (batchIds: readonly string[], { key }: Group): Promise<string[]> => [
  ...new Set((await clustersOf(batchIds, key)).map(({ clusterId }) => clusterId)),
]

function ClusterLink({ id }: { id: string }) {
  const name = useClusterName(id)
  return (
    <Link to="/clusters/$clusterId" params={{ clusterId: id }}>
      {name ?? id}
    </Link>
  )
}

function RunOnThese({ batchIds, group }: { batchIds: readonly string[]; group: Group }) {
  const mayWrite = useHasPermission('jobs:write')
  const navigate = useNavigate()
  const [isBusy, setIsBusy] = useState(false)
  if (!mayWrite) return null
  const run = async () => {
    setIsBusy(true)
    try {
      const clusterIds = await idsOf(batchIds, group)
      await navigate({ to: '/jobs/new', state: { clusterIds } })
    } catch (error) {
      showErrorToast('The clusters cannot be loaded', error)
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <Button icon={Play} isBusy={isBusy} onClick={() => void run()}>
      Run on these <span className="visually-hidden">{groupText(group)}</span>
    </Button>
  )
}

// Excel reads a CSV file as UTF-8 only with this mark.
const byteOrderMark = '\ufeff'

function ExportButtons({ batchIds }: { batchIds: readonly string[] }) {
  const [progress, setProgress] = useState<string>()
  const save = async (format: 'csv' | 'json') => {
    setProgress('Reading results …')
    try {
      const results = await readResults(batchIds, (count) => setProgress(`${count.toLocaleString('en')} results read`))
      const [text, type] =
        format === 'csv'
          ? [byteOrderMark + resultsCsv(results), 'text/csv']
          : [`${JSON.stringify({ items: results, totalCount: results.length }, null, 2)}\n`, 'application/json']
      saveFile(`${batchIds[0] ?? 'batch'}.${format}`, [text], type)
    } catch (error) {
      showErrorToast('The results cannot be exported', error)
    } finally {
      setProgress(undefined)
    }
  }
  return (
    <>
      <span role="status" className={styles['quiet']}>
        {progress}
      </span>
      {(['csv', 'json'] as const).map((format) => (
        <Button key={format} icon={Download} isBusy={progress !== undefined} onClick={() => void save(format)}>
          Export {format.toUpperCase()}
        </Button>
      ))}
    </>
  )
}
